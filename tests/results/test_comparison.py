"""Runs are compared setting by setting, metric by metric and link by link."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from emea.errors import DataError
from emea.results.compared_run import ComparedRun, NamedLinks
from emea.results.comparison import compare, paired_test


def made(label: str = "a", given: list[float] | None = None, **changes: Any) -> ComparedRun:
    final = np.array([1, 2, 1, 5] if given is None else given, dtype=np.float64)
    names = NamedLinks([f"s{i}" for i in range(len(final))], [f"t{i}" for i in range(len(final))])
    values: dict[str, Any] = {
        "settings": {"em.name": "paper", "seed": 0, "tracking.uri": label, "data.root": label},
        "tags": {"commit": "c", "data_checksum": "d"},
        "metrics": {"final": {"hit@1": 0.5, "mrr": None}, "seconds": {"total": 3}},
        "ranks": {"final": final},
        "links_checksum": "l",
        "read_links": lambda: names,
    }
    return ComparedRun(label, **(values | changes))


def test_only_settings_that_differ_are_shown() -> None:
    other = made("b", settings={"em.name": "dual", "seed": 0, "tracking.uri": "x", "new": None})
    found = compare([made(), other])
    assert [(row.name, row.values) for row in found.settings] == [("em.name", ("paper", "dual"))]
    assert found.provenance == ()
    assert compare([made(), made("b", tags={"commit": "e", "data_checksum": "d"})]).provenance


def test_metrics_side_by_side() -> None:
    metrics = {"final": {"hit@1": 0.75, "all_targets": {"hit@1": 0.25}}}
    rows = {row.name: row.values for row in compare([made(), made("b", metrics=metrics)]).metrics}
    assert rows == {
        "final.hit@1": (0.5, 0.75),
        "final.all_targets.hit@1": (None, 0.25),
        "seconds.total": (3.0, None),
    }


def test_the_protocol_is_named_although_it_is_the_same() -> None:
    metrics = {"protocol": "released"}
    found = compare([made(metrics=metrics), made("b", metrics=metrics)])
    assert found.protocols == ("released (USED TEST LINKS in training)",) * 2
    assert "MAY HAVE USED" in compare([made(), made("b")]).protocols[0]


def test_links_are_won_and_lost() -> None:
    test = paired_test(made(), made("b", [1, 1, 7, np.inf]))
    assert (test.num_won, test.num_lost, test.num_both, test.num_neither) == (1, 1, 1, 1)
    assert [(one.source, one.target, one.ranks) for one in test.won] == [("s1", "t1", (2, 1))]
    assert [(one.source, one.target, one.ranks) for one in test.lost] == [("s2", "t2", (1, 7))]
    assert test.problem == test.no_examples == ""


def test_the_test_is_the_one_of_scipy() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.integers(1, 6, 200) / 2 + 0.5, rng.integers(1, 9, 200) / 2 + 0.5
    test = paired_test(made("a", list(before)), made("b", list(after)))
    hits = stats.ttest_rel(1.0 * (after <= 1), 1.0 * (before <= 1))
    reciprocal = stats.ttest_rel(1 / after, 1 / before)
    assert test.p_values is not None and test.differences is not None
    assert test.p_values["hit@1"] == pytest.approx(hits.pvalue)
    assert test.p_values["mrr"] == pytest.approx(reciprocal.pvalue)
    assert test.differences["hit@1"] == pytest.approx(np.mean(after <= 1) - np.mean(before <= 1))
    assert test.differences["mrr"] == pytest.approx(np.mean(1 / after) - np.mean(1 / before))


def test_links_that_no_run_can_find_count() -> None:
    runs = [
        made("a", [1, 2, 2, 2], metrics={"num_links": {"test": 4, "missed": 4}}),
        made("b", [1, 1, 1, 2], metrics={"num_links": {"test": 4, "missed": 4}}),
    ]
    test = paired_test(*runs)
    assert (test.num_links, test.num_won, test.num_neither) == (8, 2, 5)
    assert test.differences == {"hit@1": 0.25, "mrr": 0.125}
    assert test.p_values is not None
    gains = np.array([0, 1, 1, 0, 0, 0, 0, 0])
    assert test.p_values["hit@1"] == pytest.approx(stats.ttest_1samp(gains, 0).pvalue)
    assert [one.source for one in test.won] == ["s1", "s2"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"links_checksum": "other"}, "tested on different links"),
        ({"tags": {"data_checksum": "other"}}, "tested on different links"),
        ({"links_checksum": None}, "the test links of b are unknown"),
        ({"ranks": {}}, "b has no ranks"),
        ({"ranks": {"final": np.ones(3)}}, "different numbers"),
    ],
)
def test_runs_on_other_links_are_not_paired(changes: dict[str, Any], problem: str) -> None:
    for pair in ((made(), made("b", **changes)), (made("b", **changes), made())):
        test = paired_test(*pair)
        assert problem in test.problem
        assert test.p_values is None and not test.num_won


def test_without_data_there_are_numbers_but_no_names() -> None:
    def fail() -> NamedLinks:
        raise DataError("no data")

    other = made("b", [1, 1, 7, 1])
    test = paired_test(replace(made(), read_links=fail), other)
    assert (test.num_won, test.won, test.no_examples) == (2, (), "no data")
    unread: Callable[[], NamedLinks] = lambda: pytest.fail("read")  # noqa: E731
    assert paired_test(replace(made(), read_links=unread), other, 0).no_examples == ""
