"""Runs are compared setting by setting, metric by metric and link by link."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from emea.results.comparison import compare, paired_test
from emea.results.recorded_run import RecordedRun

SETTINGS = {"em.name": "paper", "seed": 0}
TAGS = {"commit": "c", "data_checksum": "d"}
METRICS = {"final": {"hit@1": 0.5, "mrr": None}, "seconds": {"total": 3}}


def made(
    name: str = "a",
    given: Sequence[float] | None = (1, 2, 1, 5),
    settings: dict[str, Any] = SETTINGS,
    tags: dict[str, str] = TAGS,
    metrics: dict[str, Any] = METRICS,
    links: str | None = "l",
) -> RecordedRun:
    params = {"tracking.uri": name, "data.root": name, **settings}
    final = None if given is None else np.array(given, dtype=np.float64)
    return RecordedRun(
        name,
        "",
        {"method": "emea", **metrics},
        {"params": params, "tags": tags},
        lambda stage: final,
        lambda: links,
    )


def test_only_settings_that_differ_are_shown() -> None:
    other = made("b", settings={"em.name": "dual", "seed": 0, "new": None})
    found = compare([made(), other])
    assert [(row.name, row.values) for row in found.settings] == [
        ("em.name", ("paper", "dual"))
    ]
    assert found.provenance == ()
    assert compare(
        [made(), made("b", tags={"commit": "e", "data_checksum": "d"})]
    ).provenance


def test_metrics_side_by_side() -> None:
    metrics = {"final": {"hit@1": 0.75, "all_targets": {"hit@1": 0.25}}}
    rows = {
        row.name: row.values
        for row in compare([made(), made("b", metrics=metrics)]).metrics
    }
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
    assert test.counts == {"won": 1, "lost": 1, "both": 1, "neither": 1}
    assert test.problem == ""


def test_the_test_is_the_one_of_scipy() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.integers(1, 6, 200) / 2 + 0.5, rng.integers(1, 9, 200) / 2 + 0.5
    test = paired_test(made("a", list(before)), made("b", list(after)))
    for metric, (old, new) in {
        "hit@1": (1.0 * (before <= 1), 1.0 * (after <= 1)),
        "mrr": (1 / before, 1 / after),
    }.items():
        expected = np.mean(new) - np.mean(old), stats.ttest_rel(new, old).pvalue
        assert test.changes[metric] == pytest.approx(expected)


def test_links_that_no_run_can_find_count() -> None:
    runs = [
        made("a", [1, 2, 2, 2], metrics={"num_links": {"test": 4, "missed": 4}}),
        made("b", [1, 1, 1, 2], metrics={"num_links": {"test": 4, "missed": 4}}),
    ]
    test = paired_test(*runs)
    assert (test.num_links, test.counts["won"], test.counts["neither"]) == (8, 2, 5)
    assert [change for change, _ in test.changes.values()] == [0.25, 0.125]
    gains = np.array([0, 1, 1, 0, 0, 0, 0, 0])
    assert test.changes["hit@1"][1] == pytest.approx(stats.ttest_1samp(gains, 0).pvalue)


@pytest.mark.parametrize(
    "changes",
    [
        {"links": "other"},
        {"tags": {"data_checksum": "other"}},
        {"links": None},
        {"given": None},
        {"given": [1, 1, 1]},
    ],
)
def test_runs_on_other_links_are_not_paired(changes: dict[str, Any]) -> None:
    for pair in ((made(), made("b", **changes)), (made("b", **changes), made())):
        test = paired_test(*pair)
        assert "no ranks of the same test links" in test.problem
        assert not test.changes and not test.counts
