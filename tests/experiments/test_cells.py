"""The file of cells says how the recorded runs were made."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from emea.pipeline.overrides import composed
from emea.pipeline.schema import register_schema
from emea.reporting.records import RecordedRun, load_records
from experiments.batch import line_groups

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
STUDIES = [folder.parent for folder in sorted(EXPERIMENTS.glob("*/cells.txt"))]
TOLD = ("data.name", "ratio.value", "split_seed", "seed", "model.name", "training.name")
TOLD += ("training.epochs_per_turn", "rule.name", "em.name", "em.iterations", "em.num_candidates")
TOLD += ("protocol.name", "em.two_way.both_directions", "em.two_way.sweeps", "em.two_way.memory")
TOLD += ("em.two_way.propagation", "em.two_way.unmatched", "em.two_way.matched_inclusions")
TOLD += ("em.two_way.mutual_labels", "em.two_way.weighted_labels", "em.two_way.fused_answer")
"""What a line decides; what else a run was made with may have changed in its files since."""


def lines(study: Path) -> dict[str, list[str]]:
    text = (study / "cells.txt").read_text(encoding="utf-8")
    named = [line.split() for group in line_groups(text) for line in group]
    found = {name: overrides for name, *overrides in named}
    assert len(found) == len(named), "a name stands twice"
    return found


@pytest.mark.parametrize(
    "run",
    [run for study in STUDIES for run in load_records(study / "records")],
    ids=lambda run: str(run.folder.name),
)
def test_a_recorded_run_is_the_one_its_line_names(run: RecordedRun) -> None:
    register_schema()
    overrides = lines(run.folder.parents[1])[run.folder.name]
    config = composed([text for text in overrides if "@" not in text])
    params = run.header["params"]
    assert {key: OmegaConf.select(config, key) for key in TOLD} == {
        key: params.get(key) for key in TOLD
    }


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: str(study.name))
def test_every_line_composes(study: Path) -> None:
    register_schema()
    for overrides in lines(study).values():
        composed([text for text in overrides if "@" not in text])
