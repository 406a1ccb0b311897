"""Unusual input works with a warning, or stops with a sentence; never a NaN."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from omegaconf import DictConfig

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.errors import UserError
from emea.run import job
from emea.run.job import run_job

Configs = Callable[..., DictConfig]


def numbers(node: object) -> list[float]:
    if isinstance(node, dict):
        return [number for value in node.values() for number in numbers(value)]
    if isinstance(node, list):
        return [number for value in node for number in numbers(value)]
    return [float(node)] if isinstance(node, int | float) else []


def run_and_check(config: DictConfig, folder: Path) -> dict:
    run_job(config, folder)
    metrics = json.loads((folder / "metrics.json").read_text())
    for key in ("initial", "final", "mapping"):
        assert all(map(math.isfinite, numbers(metrics[key]))), key
    assert "nan" not in (folder / "alignment.tsv").read_text().lower()
    files = (folder / "metrics.json").read_text(), (folder / "series.jsonl").read_text()
    assert "NaN" not in "".join(files)  # they are valid JSON
    return metrics


@pytest.mark.slow
def test_more_candidates_than_targets(
    tiny_config: Configs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_and_check(tiny_config("em.iterations=1", "em.num_candidates=5000"), tmp_path)
    assert "All 150 entities are candidates" in caplog.text


def test_one_candidate(tiny_config: Configs, tmp_path: Path) -> None:
    run_and_check(tiny_config("em.iterations=1", "em.num_candidates=1"), tmp_path)


def test_no_validation_links(
    tiny_config: Configs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_and_check(tiny_config("em.iterations=1", "split.num_validation=0"), tmp_path)
    assert "not calibrated" in caplog.text


@pytest.mark.slow
def test_pseudolikelihood(tiny_config: Configs, tmp_path: Path) -> None:
    run_and_check(
        tiny_config("em.iterations=1", "em.m_step=pseudolikelihood"), tmp_path
    )


@pytest.mark.slow
def test_markov_blanket(tiny_config: Configs, tmp_path: Path) -> None:
    overrides = ("em.iterations=1", "rule.markov_blanket=true", "similarity=cosine")
    run_and_check(tiny_config(*overrides), tmp_path)


def test_one_labelled_link(
    tiny_config: Configs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = run_and_check(
        tiny_config("em.iterations=1", "ratio.value=0.009"), tmp_path
    )
    assert metrics["num_links"]["train"] == 1
    assert "only 1 training link." in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        ("em.num_candidates=5000", "split.num_validation=0"),
        ("em.num_candidates=1", "em.two_way.max_candidates=1"),
        ("search=one_pass", "ratio.value=0.013"),
        ("protocol=released",),
    ],
)
def test_two_way_bears_extremes(
    tiny_config: Configs, tmp_path: Path, options: tuple[str, ...]
) -> None:
    short = (
        "data.num_entities=100",
        "model.initial_epochs=5",
        "model.epochs_per_iteration=2",
    )
    run_and_check(tiny_config("em=dual", "em.iterations=1", *short, *options), tmp_path)


def test_no_labelled_link_is_refused(tiny_config: Configs, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="training"):
        run_job(tiny_config("ratio.value=0.0001"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("em", ["paper", "dual"])
def test_graphs_without_common_structure(
    em: str,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    chain = KnowledgeGraph(np.array([[i, 0, i + 1] for i in range(0, 98, 2)]), 120, 1)
    empty = KnowledgeGraph(np.zeros((0, 3), dtype=np.int64), 120, 1)
    links = np.stack([np.arange(100)] * 2, axis=1)
    monkeypatch.setattr(
        job, "load_pair", lambda _: GraphPair("apart", chain, empty, links)
    )
    run_and_check(tiny_config(f"em={em}", "em.iterations=1"), tmp_path)
    assert em == "dual" or "No candidate has support" in caplog.text
