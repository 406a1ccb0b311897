"""Paired t-tests over test entities."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from emea.evaluation.metrics import link_scores, paired_p
from emea.evaluation.ranks import Ranks
from emea.record.run_folder import links_checksum, write_ranks
from emea.results.recorded_run import RecordedRun, load_run
from experiments.report.columns import PValue
from experiments.report.methods import EMEA, RREA
from experiments.report.run_table import SplitRun, run_table
from experiments.report.significance import largest_p, p_of_splits, shown_p
from experiments.report.study_spec import Row, TableSpec

from .fabricated import NEURAL, filled, texts, write_folder, write_run

BEFORE = [[1, 2, 3, 9, 4], [2, 2, 1, 9, 4]]
AFTER = [[1, 1, 1, 2, 4], [1, 2, 1, 1, 1]]


def test_p_by_hand() -> None:
    # differences 1, 2, 3: t = 2 sqrt(3); with two degrees of freedom p = 1 - t / sqrt(2 + t^2)
    t = 2 * math.sqrt(3)
    p = paired_p(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    assert p == pytest.approx(1 - t / math.sqrt(2 + t**2)) == pytest.approx(0.0742, abs=1e-4)


def test_both_ways_are_alike() -> None:
    first, second = np.array([1.0, 0, 1, 1]), np.array([0.0, 0, 1, 0])
    assert paired_p(first, second) == paired_p(second, first)


def test_what_is_the_same_does_not_differ() -> None:
    ranks = np.array([1.0, 2, np.inf])
    assert paired_p(link_scores(ranks, "mrr"), link_scores(ranks, "mrr")) == 1.0


def test_entities_without_an_answer_count_nothing() -> None:
    ranks = np.array([1.0, 4, np.inf, np.nan])
    assert link_scores(ranks, "hit@1").tolist() == [1, 0, 0, 0]
    assert link_scores(ranks, "mrr").tolist() == [1, 0.25, 0, 0]


def split(folder: Path, seed: int, before: Any, after: Any) -> RecordedRun:
    return write_run(folder, f"s{seed}", {"initial": before, "final": after}, split_seed=seed)


def stages(*runs: RecordedRun) -> tuple[list[SplitRun], list[SplitRun]]:
    """The runs before and after EM."""
    rows = run_table(runs).to_dict("records")
    return [SplitRun(row, "initial") for row in rows], [SplitRun(row, "final") for row in rows]


@pytest.mark.parametrize("metric", ["hit@1", "mrr"])
def test_the_largest_over_the_splits_counts(metric: str, tmp_path: Path) -> None:
    first, second = stages(*(split(tmp_path, seed, BEFORE[seed], AFTER[seed]) for seed in (0, 1)))
    values = [
        [np.equal(ranks, 1) if metric == "hit@1" else 1 / np.array(ranks) for ranks in both]
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
def test_only_ranks_of_the_same_links_are_paired(change: dict[str, Any], tmp_path: Path) -> None:
    ranks = {"initial": [1.0, 2.0, 3.0], "final": [1.0, 1.0, 1.0]}
    first, _ = stages(write_run(tmp_path / "a", "a", ranks))
    _, same = stages(write_run(tmp_path / "b", "b", ranks))
    _, others = stages(write_run(tmp_path / "c", "c", ranks, **change))
    assert p_of_splits(first, same, "mrr") != [None]
    assert p_of_splits(first, others, "mrr") == p_of_splits(others, first, "mrr") == [None]


def test_a_run_folder_knows_its_links(tmp_path: Path) -> None:
    write_folder(tmp_path, "a")
    assert load_run(tmp_path / "a").tested_links() is None
    links, ranks = np.arange(4).reshape(2, 2), Ranks(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    write_ranks(tmp_path / "a", links, ranks, ranks)
    assert load_run(tmp_path / "a").tested_links() == ("d" * 64, links_checksum(links))


def test_runs_without_ranks_are_not_compared(tmp_path: Path) -> None:
    run = write_run(tmp_path, "none")
    assert p_of_splits(*stages(run), "mrr") == [None]
    part = write_run(tmp_path, "part", {"final": [1, 2]})
    assert p_of_splits(*stages(part), "mrr") == [None]


def test_before_and_after_are_one_in_a_model_alone(tmp_path: Path) -> None:
    run = write_run(tmp_path, "a", {"final": [1, 3]}, **NEURAL)
    ranks = run.ranks("initial")
    assert ranks is not None and ranks.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("of_splits", "text"),
    [
        ([], ""),
        ([None], ""),
        ([math.nan], ""),
        ([1.0], "1.000"),
        ([0.0005, 0.0123], "0.012"),
        ([0.001], "0.001"),
        ([0.00099], "< 0.001"),
        ([0.0], "< 0.001"),
        ([0.0, None, 0.5], "0.500 (2 of 3 splits)"),
    ],
)
def test_how_p_is_shown(of_splits: list[float | None], text: str) -> None:
    assert shown_p(of_splits) == text


def test_a_row_per_cell_that_was_run(tmp_path: Path) -> None:
    run = split(tmp_path, 0, BEFORE[0], AFTER[0])
    rows = [Row((data,), data, 0.01) for data in ("dbp15k_zh", "dbp15k_fr")]
    columns = [PValue(m, (EMEA, "strict"), (RREA, "strict"), m) for m in ("hit@1", "mrr")]
    table = filled(TableSpec(("pair",), rows, tuple(columns)), [run]).reduced()
    hit, mrr = (
        ttest_rel(before, after).pvalue
        for before, after in [
            ([1, 0, 0, 0, 0], [1, 1, 1, 0, 0]),
            (1 / np.array(BEFORE[0]), 1 / np.array(AFTER[0])),
        ]
    )
    assert texts(table) == {("dbp15k_zh",): {"hit@1": f"{hit:.3f}", "mrr": f"{mrr:.3f}"}}
