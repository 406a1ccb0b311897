from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from omegaconf import DictConfig

from emea.errors import ConfigError, DataError, UserError
from emea.pipeline.finished_run import load_run
from emea.pipeline.job import run_job

Configs = Callable[..., DictConfig]

KINDS = {
    "paper": ("em.iterations=1",),
    "dual": ("em=dual", "em.iterations=1"),
    "none": ("em=none", "rule=none"),
    "paris": ("method=paris",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_comes_back_with_what_it_answered(
    kind: str, tiny_config: Configs, tmp_path: Path
) -> None:
    metrics = run_job(tiny_config(*KINDS[kind]), tmp_path)
    run = load_run(tmp_path)
    best, probs = run.beliefs.best_targets(), run.beliefs.probs.max(1).values
    lines = (tmp_path / "alignment.tsv").read_text().splitlines()[1:]
    names = [
        f"{run.pair.source.entity_name(source)}\t{run.pair.target.entity_name(int(best[source]))}"
        for source in torch.nonzero(probs).flatten().tolist()
    ]
    assert [line.rpartition("\t")[0] for line in lines] == names
    assert run.metrics["final"] == metrics["final"]
    assert len(run.split.test) == metrics["num_links"]["test"]


def test_changed_data_is_refused(tiny_config: Configs, tmp_path: Path) -> None:
    run_job(tiny_config("em=none", "rule=none"), tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(
        config.read_text().replace("triples_per_entity: 4.5", "triples_per_entity: 5.0")
    )
    with pytest.raises(DataError, match="other data"):
        load_run(tmp_path)


def test_an_unfinished_run_is_refused(tiny_config: Configs, tmp_path: Path) -> None:
    run_job(tiny_config("em=none", "rule=none"), tmp_path)
    header = tmp_path / "run.json"
    header.write_text(header.read_text().replace('"FINISHED"', '"FAILED"'))
    with pytest.raises(DataError, match="no finished run"):
        load_run(tmp_path)
    with pytest.raises(UserError, match="not a run's folder"):
        load_run(tmp_path / "nowhere")


def test_a_strangers_config_cannot_vouch_for_itself(tiny_config: Configs, tmp_path: Path) -> None:
    run_job(tiny_config("em=none", "rule=none"), tmp_path)
    file = tmp_path / "config.yaml"
    text = file.read_text().replace("emea.data.synthetic.synthetic_pair", "os.system")
    file.write_text(text.replace("trust: []", "trust: [os]"))
    with pytest.raises(ConfigError, match=r"data._target_ names os.system"):
        load_run(tmp_path)
