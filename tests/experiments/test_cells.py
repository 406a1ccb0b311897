"""The file of cells says how the recorded runs were made."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from emea.pipeline.overrides import composed
from emea.pipeline.schema import register_schema
from emea.reporting.records import RecordedRun, load_records
from experiments.batch import line_groups

MODELS = Path(__file__).resolve().parents[2] / "experiments" / "models"
TOLD = ("data.name", "ratio.value", "split_seed", "seed", "model.name", "training.name")
TOLD += ("training.epochs_per_turn", "rule.name", "em.name", "em.iterations", "em.num_candidates")
TOLD += ("protocol.name",)
"""What a line decides; what else a run was made with may have changed in its files since."""


def lines() -> dict[str, list[str]]:
    text = (MODELS / "cells.txt").read_text(encoding="utf-8")
    named = [line.split() for group in line_groups(text) for line in group]
    found = {name: overrides for name, *overrides in named}
    assert len(found) == len(named), "a name stands twice"
    return found


@pytest.mark.parametrize(
    "run", load_records(MODELS / "records"), ids=lambda run: str(run.folder.name)
)
def test_a_recorded_run_is_the_one_its_line_names(run: RecordedRun) -> None:
    register_schema()
    overrides = lines()[run.folder.name]
    config = composed([text for text in overrides if "@" not in text])
    params = run.header["params"]
    assert {key: OmegaConf.select(config, key) for key in TOLD} == {
        key: params.get(key) for key in TOLD
    }
