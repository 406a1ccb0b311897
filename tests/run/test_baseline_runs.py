"""Baselines through the pipeline: files, wall, refusals, the command line."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from omegaconf import DictConfig
from safetensors.torch import load_file

from emea.config.checks import check_config
from emea.config.composition import option_names
from emea.config.run_config import RunConfig
from emea.data.split import Split
from emea.errors import ConfigError
from emea.record.pair_file import load_pair
from emea.run.building import draw_split
from emea.run.job import run_job

from ..sweeping import called_here
from .test_wall import permuted_targets, predictions, without_test_links

Configs = Callable[..., DictConfig]

BASELINES = [method for method in option_names("method") if method != "emea"]


def other_seeds(split: Split) -> Split:
    known = split.supervision
    return replace(split, supervision=replace(known, train=known.train[:-3]))


def other_validation(split: Split) -> Split:
    known = split.supervision
    return replace(split, supervision=replace(known, validation=known.validation[:3]))


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(name, marks=() if name == "paris" else pytest.mark.slow)
        for name in BASELINES
    ],
)
def test_predictions_depend_on_training_links_alone(
    method: str, tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config(f"method={method}", "model.initial_epochs=5")
    original = predictions(config, tmp_path / "a", lambda split: split, monkeypatch)
    for change in (permuted_targets, without_test_links, other_validation):
        folder = tmp_path / change.__name__
        assert predictions(config, folder, change, monkeypatch) == original, change
    assert predictions(config, tmp_path / "b", other_seeds, monkeypatch) != original


@pytest.mark.parametrize("method", BASELINES)
def test_a_run_leaves_its_files(
    method: str, tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(f"method={method}")
    run_job(config, tmp_path)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    pair = load_pair(config)
    split = draw_split(RunConfig.of(config), pair)
    assert (metrics["method"], metrics["em"], metrics["rule"]) == (
        method,
        "none",
        "none",
    )
    check_numbers(metrics)
    with np.load(tmp_path / "ranks.npz") as ranks:
        assert np.array_equal(ranks["links"], split.test)
        assert set(np.unique(ranks["final_in_pool"])) == {1.0, math.inf}
        assert np.mean(ranks["final_in_pool"] <= 1) == metrics["final"]["hit@1"]
        assert ("embedding_in_pool" in ranks) is (method == "prase")
    check_alignment(tmp_path, metrics, split)
    assert (metrics["model"], metrics["embedding"] is None) == (
        ("none", True) if method == "paris" else ("rrea", False)
    )


def check_numbers(metrics: dict) -> None:
    final, last = metrics["final"], metrics["history"][-1]
    assert final == last["joint"]
    assert final["hit@1"] == metrics["mapping"]["all"]["recall"] > 0.2
    assert final["all_targets"]["hit@1"] == final["hit@1"]
    assert all(final[key] is None for key in ("hit@5", "hit@10", "mrr", "mr"))
    assert metrics["mapping"]["all"]["precision"] > 0.3
    assert metrics["num_iterations"] == len(metrics["history"]) > 2
    assert metrics["seconds"]["total"] > 0
    assert metrics["peak_memory_mb"] > 0


def check_alignment(folder: Path, metrics: dict, split: Split) -> None:
    lines = (folder / "alignment.tsv").read_text().splitlines()[1:]
    found = {
        int(source): (int(target), float(prob))
        for source, target, prob, *_ in rows(lines)
    }
    assert len(found) == metrics["history"][-1]["num_pairs"]
    assert all(
        found[source] == (target, 1.0) for source, target in split.supervision.train
    )
    right = [found.get(source, (-1,))[0] == target for source, target in split.test]
    assert np.mean(right) == pytest.approx(metrics["final"]["hit@1"])
    state = load_file(folder / "checkpoint.safetensors")
    assert state["pairs"].tolist() == [
        [source, target] for source, (target, _) in found.items()
    ]
    assert any(name.startswith("module.") for name in state) is (
        metrics["model"] != "none"
    )


def rows(lines: list[str]) -> list[list[str]]:
    return [line.split("\t") for line in lines]


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["protocol=released"], "Remove protocol=released"),
        (["initial_from=somewhere"], "Remove initial_from"),
    ],
)
def test_refuses_what_makes_no_sense(
    overrides: list[str], sentence: str, tiny_config: Configs, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        run_job(tiny_config("method=paris", *overrides), tmp_path)


def test_a_reasoner_needs_no_rule(tiny_config: Configs) -> None:
    check_config(tiny_config("method=paris", "rule=none"))
    with pytest.raises(ConfigError, match="needs a rule"):
        check_config(tiny_config("rule=none"))


@pytest.mark.parametrize("method", BASELINES)
def test_a_reasoner_runs_without_a_rule(
    method: str, tiny_config: Configs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tiny_config(f"method={method}", "rule=none")
    with caplog.at_level("INFO"):
        assert run_job(config, tmp_path).metrics["rule"] == "none"
    lines = [text for text in caplog.messages if text.startswith("Iteration ")]
    assert lines and all(text.endswith("[protocol strict]") for text in lines)


QUICK = ("data.num_entities=150", "split.num_validation=10", "trainer=cpu", "ratio=0.2")


@pytest.mark.slow
def test_the_command_line_runs_baselines(tmp_path: Path) -> None:
    sweep = ("-m", "method=paris,prase", "model.initial_epochs=4", "tracking=none")
    done = called_here(tmp_path, *sweep, *QUICK)
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "multirun").rglob("metrics.json"))
    assert [json.loads(file.read_text())["method"] for file in files] == [
        "paris",
        "prase",
    ]
    names = [file.parent.name for file in files]
    assert names == ["0-method_paris", "1-method_prase"]
    assert "n/a" in done.stdout
