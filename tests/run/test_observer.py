"""The log lines of a run name their numbers."""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from emea.evaluation import ranks
from emea.evaluation.joint_ranks import fused_ranks
from emea.evaluation.metrics import NUM_BINS
from emea.evaluation.ranks import link_ranks
from emea.matching.beliefs import Beliefs
from emea.record.run_folder import read_metrics, read_ranks
from emea.record.run_record import read_series
from emea.run import em_run, observer
from emea.run.job import run_job
from emea.run.observer import EvaluationObserver, hard_mapping

Configs = Callable[..., DictConfig]
QUICK = ("data.num_entities=100", "model.initial_epochs=2", "em.iterations=1")
QUICK += ("model.epochs_per_iteration=1",)
SECONDS = r"train \d+\.\d s, search \d+\.\d s, reasoning \d+\.\d s \[protocol strict\]"


def lines_of(
    config: DictConfig, folder: Path, caplog: pytest.LogCaptureFixture
) -> list[str]:
    with caplog.at_level(logging.INFO, logger=observer.__name__):
        run_job(config, folder)
    return [
        record.message for record in caplog.records if record.name == observer.__name__
    ]


def test_a_line_names_its_numbers(
    tiny_config: Configs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, *_ = lines_of(tiny_config(*QUICK, "em=dual"), tmp_path, caplog)
    both = r"{} \d[\d.]+ \(encoder\), \d[\d.]+ \(joint\)"

    def pattern(labels: str) -> str:
        validation = r"validation Hit@1 \d\.\d{4} \(joint\)"
        scores = [both.format("test Hit@1"), both.format("test MR"), validation]
        return "; ".join([*scores, labels, SECONDS])

    labels = r"\d+ new labels"
    assert re.fullmatch(f"First training: {pattern(labels)}", first)
    changed = rf"{labels} \(\d+\.\d% changed\)"
    assert re.fullmatch(f"EM 1/1: {pattern(changed)}", second)


def test_the_validation_of_the_answer_is_that_of_its_ranking(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observers: list[EvaluationObserver] = []
    made = em_run.EvaluationObserver
    monkeypatch.setattr(
        em_run,
        "EvaluationObserver",
        lambda *values: observers.append(made(*values)) or observers[0],
    )
    metrics = run_job(tiny_config(*QUICK, "em=dual"), tmp_path).metrics
    seen = observers[0]
    assert seen.last is not None and seen.last.answer_ranking is not None
    similarity, links = seen.last.similarity, seen.validation
    neural = link_ranks(similarity, links)
    ranks = fused_ranks(neural, similarity, seen.last.answer_ranking, links).in_all
    found = metrics["history"][-1]["validation_answer"]
    assert found["hit@1"] == np.mean(ranks <= 1)
    assert found["mr"] == ranks.mean()


@pytest.mark.parametrize(
    "method", ["em=dual", "em=none em.iterations=0", "method=paris"]
)
def test_of_very_many_test_links_a_sample_is_ranked(
    method: str,
    tiny_config: Configs,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config(
        "data.num_entities=100", "model.initial_epochs=2", *method.split()
    )
    whole = run_job(config, tmp_path / "whole").metrics
    monkeypatch.setattr(ranks, "MAX_RANKED", 20)
    lines = lines_of(config, tmp_path / "sample", caplog)
    sample = read_metrics(tmp_path / "sample")
    num_test = sample["num_links"]["test"]
    assert sample["num_links"] == {**whole["num_links"], "ranked": 20}
    assert any(f"sample of 20 of the {num_test} test links" in line for line in lines)
    stored = [read_ranks(tmp_path / name)[0] for name in ("whole", "sample")]
    links = stored[1]["links"]
    assert len(links) == len(stored[1]["final_in_pool"]) == 20
    places = [np.flatnonzero((stored[0]["links"] == link).all(1))[0] for link in links]
    for name in ("initial_in_pool", "final_in_pool", "final_in_all"):
        np.testing.assert_array_equal(stored[1][name], stored[0][name][places])
    assert sample["final"]["hit@1"] == np.mean(stored[1]["final_in_pool"] <= 1)
    assert sum(row["num_entities"] for row in sample["by_degree"]) == 20
    assert sample["mapping"] == whole["mapping"]
    assert sample["answer"] == whole["answer"]


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
    points = {
        key: value
        for point in read_series(tmp_path)
        for key, value in point.metrics.items()
    }
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
    assert (
        found["final"]["conflicts"] == 0
    )  # one counterpart for each entity of either side
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
    beliefs = Beliefs(
        torch.tensor([[4, 5], [6, 7]]), torch.tensor([[0.1, 0.2], [0.0, 0.0]])
    )
    assert np.array_equal(hard_mapping(beliefs), [5, -1])
