"""The compatibility section of whole runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from emea.evaluation.compatibility import NUM_BINS
from emea.matching.beliefs import Beliefs
from emea.record.run_record import read_series
from emea.run.job import run_job
from emea.run.observer import hard_mapping

Configs = Callable[..., DictConfig]

SHORT = ("model.initial_epochs=4", "model.epochs_per_iteration=2", "em.iterations=1")
WITH_MODEL = {
    "none": ("em=none", "rule=none", "model.initial_epochs=4"),
    "paper": ("em=paper", *SHORT),
    "dual": ("em=dual", *SHORT),
}


def section(config: DictConfig, folder: Path) -> dict[str, Any]:
    run_job(config, folder)
    metrics = json.loads((folder / "metrics.json").read_text())
    for numbers in metrics["compatibility"].values():
        assert len(numbers["histogram"]) == NUM_BINS
        assert sum(numbers["histogram"]) == metrics["num_links"]["test"]
        assert 0 <= numbers["mean"] <= 1
        assert 0 <= numbers["conflicts"] <= 1
    told: dict[str, Any] = metrics["compatibility"]
    return told


@pytest.mark.parametrize("em", WITH_MODEL)
def test_a_model_is_told_before_and_after(em: str, tiny_config: Configs, tmp_path: Path) -> None:
    told = section(tiny_config(*WITH_MODEL[em]), tmp_path)
    assert list(told) == ["initial", "final", "oracle"]
    assert (told["initial"] == told["final"]) is (em == "none")
    assert told["oracle"]["mean"] > told["initial"]["mean"]
    assert told["oracle"]["conflicts"] == told["oracle"]["num_unmatched"] == 0
    assert told["initial"]["conflicts"] > 0
    points = {key: value for point in read_series(tmp_path) for key, value in point.metrics.items()}
    for stage, numbers in told.items():
        for name in ("mean", "conflicts"):
            assert points[f"run/compatibility/{stage}/{name}"] == numbers[name]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["paris", "prase"])
def test_reasoning_has_an_end_and_no_beginning(
    method: str, tiny_config: Configs, tmp_path: Path
) -> None:
    told = section(tiny_config(f"method={method}", "model.initial_epochs=5"), tmp_path)
    assert list(told) == ["final", "oracle"]
    assert told["final"]["conflicts"] == 0  # one counterpart for each entity of either side
    assert told["final"]["histogram"][0] >= told["final"]["num_unmatched"] > 0


def test_the_oracle_is_the_same_whoever_is_compared(tiny_config: Configs, tmp_path: Path) -> None:
    told = [
        section(tiny_config(*options), tmp_path / name)["oracle"]
        for name, options in (("a", WITH_MODEL["none"]), ("b", ("method=paris",)))
    ]
    assert told[0] == told[1]


def test_candidates_without_probability_are_no_answer() -> None:
    beliefs = Beliefs(torch.tensor([[4, 5], [6, 7]]), torch.tensor([[0.1, 0.2], [0.0, 0.0]]))
    assert np.array_equal(hard_mapping(beliefs), [5, -1])
