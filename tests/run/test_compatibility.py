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
    found: dict[str, Any] = metrics["compatibility"]
    return found


@pytest.mark.parametrize("em", WITH_MODEL)
def test_a_model_is_reported_before_and_after(
    em: str, tiny_config: Configs, tmp_path: Path
) -> None:
    found = section(tiny_config(*WITH_MODEL[em]), tmp_path)
    assert list(found) == ["initial", "final", "oracle"]
    assert (found["initial"] == found["final"]) is (em == "none")
    assert found["oracle"]["mean"] > found["initial"]["mean"]
    assert found["oracle"]["conflicts"] == found["oracle"]["num_unmatched"] == 0
    assert found["initial"]["conflicts"] > 0
    points = {key: value for point in read_series(tmp_path) for key, value in point.metrics.items()}
    for stage, numbers in found.items():
        for name in ("mean", "conflicts"):
            assert points[f"run/compatibility/{stage}/{name}"] == numbers[name]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["paris", "prase"])
def test_reasoning_has_an_end_and_no_beginning(
    method: str, tiny_config: Configs, tmp_path: Path
) -> None:
    found = section(tiny_config(f"method={method}", "model.initial_epochs=5"), tmp_path)
    assert list(found) == ["final", "oracle"]
    assert found["final"]["conflicts"] == 0  # one counterpart for each entity of either side
    assert found["final"]["histogram"][0] >= found["final"]["num_unmatched"] > 0


def test_the_oracle_does_not_depend_on_the_compared_run(
    tiny_config: Configs, tmp_path: Path
) -> None:
    found = [
        section(tiny_config(*options), tmp_path / name)["oracle"]
        for name, options in (("a", WITH_MODEL["none"]), ("b", ("method=paris",)))
    ]
    assert found[0] == found[1]


def test_candidates_without_probability_are_no_answer() -> None:
    beliefs = Beliefs(torch.tensor([[4, 5], [6, 7]]), torch.tensor([[0.1, 0.2], [0.0, 0.0]]))
    assert np.array_equal(hard_mapping(beliefs), [5, -1])
