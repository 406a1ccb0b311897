"""Paired t-tests over test entities."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from emea.evaluation.metrics import link_scores
from emea.evaluation.ranks import Ranks
from emea.record.run_folder import links_checksum, write_ranks
from emea.results.recorded_run import RecordedRun, load_record
from experiments.report.run_table import SplitRun, run_table
from experiments.report.significance import largest_p, p_of_splits

from .fabricated import write_folder, write_run

BEFORE = [[1, 2, 3, 9, 4], [2, 2, 1, 9, 4]]
AFTER = [[1, 1, 1, 2, 4], [1, 2, 1, 1, 1]]


def test_entities_without_an_answer_count_nothing() -> None:
    ranks = np.array([1.0, 4, np.inf, np.nan])
    assert link_scores(ranks, "hit@1").tolist() == [1, 0, 0, 0]
    assert link_scores(ranks, "mrr").tolist() == [1, 0.25, 0, 0]


def split(folder: Path, seed: int, before: Any, after: Any) -> RecordedRun:
    return write_run(
        folder, f"s{seed}", {"initial": before, "final": after}, split_seed=seed
    )


def stages(*runs: RecordedRun) -> tuple[list[SplitRun], list[SplitRun]]:
    """The runs before and after EM."""
    rows = run_table(runs).to_dict("records")
    return [SplitRun(row, "initial") for row in rows], [
        SplitRun(row, "final") for row in rows
    ]


@pytest.mark.parametrize("metric", ["hit@1", "mrr"])
def test_the_largest_over_the_splits_counts(metric: str, tmp_path: Path) -> None:
    first, second = stages(
        *(split(tmp_path, seed, BEFORE[seed], AFTER[seed]) for seed in (0, 1))
    )
    values = [
        [
            np.equal(ranks, 1) if metric == "hit@1" else 1 / np.array(ranks)
            for ranks in both
        ]
        for both in zip(BEFORE, AFTER, strict=True)
    ]
    expected = [ttest_rel(*np.array(both, dtype=float)).pvalue for both in values]
    assert expected[0] != expected[1]
    found = p_of_splits(first, second, metric)
    assert found == pytest.approx(expected)
    assert largest_p(found) == pytest.approx(max(expected))
    # a split that only one of them has is ignored
    assert p_of_splits(first[:1], second, metric) == pytest.approx(expected[:1])
    assert p_of_splits(first[:1], second[1:], metric) == []
    assert p_of_splits(first[:0], second, metric) == []
    assert largest_p([]) is None


@pytest.mark.parametrize(
    "change",
    [{"links": "f" * 64}, {"links": None}, {"tags": {"data_checksum": "f" * 64}}],
    ids=["other links", "unknown links", "other data"],
)
def test_only_ranks_of_the_same_links_are_paired(
    change: dict[str, Any], tmp_path: Path
) -> None:
    ranks = {"initial": [1.0, 2.0, 3.0], "final": [1.0, 1.0, 1.0]}
    first, _ = stages(write_run(tmp_path / "a", "a", ranks))
    _, same = stages(write_run(tmp_path / "b", "b", ranks))
    _, others = stages(write_run(tmp_path / "c", "c", ranks, **change))
    assert p_of_splits(first, same, "mrr") != [None]
    assert (
        p_of_splits(first, others, "mrr") == p_of_splits(others, first, "mrr") == [None]
    )


def test_a_run_folder_knows_its_links(tmp_path: Path) -> None:
    write_folder(tmp_path, "a")
    assert load_record(tmp_path / "a").tested_links() is None
    links, ranks = (
        np.arange(4).reshape(2, 2),
        Ranks(np.array([1.0, 2.0]), np.array([1.0, 2.0])),
    )
    write_ranks(tmp_path / "a", links, {"initial": ranks, "final": ranks})
    assert load_record(tmp_path / "a").tested_links() == (
        "d" * 64,
        links_checksum(links),
    )
