"""Paired two-tailed t-tests over test entities."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy.stats import ttest_rel

from emea.data.arrays import FloatArray
from emea.reporting.markdown import markdown_table
from emea.reporting.methods import Found, Method, runs_of
from emea.reporting.records import RecordedRun

REMARK = (
    "p of a paired two-tailed t-test over the test entities, of whether each was found first "
    "(Hit@1) and of reciprocal ranks (MRR): the largest over the splits both were run on and ranks "
    "were kept of. "
    "Entities depend on their neighbours, which the test does not know: read a p near its bound "
    "with care."
)


def p_value(first: FloatArray, second: FloatArray) -> float:
    """Of two values per entity; 1 where no entity differs."""
    if np.array_equal(first, second):
        return 1.0
    return float(ttest_rel(first, second).pvalue)


def p_of_splits(
    first: Mapping[int, Found], second: Mapping[int, Found], metric: str
) -> list[float | None]:
    """Of each split that both were run on; ``None`` where ranks of one are missing."""
    found: list[float | None] = []
    for split in sorted(first.keys() & second.keys()):
        ranks = [one.run.ranks(one.stage) for one in (first[split], second[split])]
        if ranks[0] is None or ranks[1] is None or len(ranks[0]) != len(ranks[1]):
            found.append(None)
        else:
            found.append(p_value(scores(ranks[0], metric), scores(ranks[1], metric)))
    return found


def largest_p(of_splits: Sequence[float | None]) -> float | None:
    """Over the splits that have one; ``None`` where there is none."""
    return max((p for p in of_splits if p is not None), default=None)


def scores(ranks: FloatArray, metric: str) -> FloatArray:
    """What a metric is the mean of, per entity; an entity without an answer counts nothing."""
    with np.errstate(divide="ignore"):
        values = ranks <= 1 if metric == "hit@1" else 1 / ranks
    return np.nan_to_num(values.astype(np.float64))


def p_table(
    runs: Sequence[RecordedRun],
    pairs: Iterable[tuple[Method, str, Method, str]],
    cells: Iterable[tuple[str, float]],
) -> str:
    """A row per cell, a column per pair of methods (each with its protocol) and metric."""
    pairs = list(pairs)
    titles = ["pair", "ratio"]
    for method, protocol, other, _ in pairs:
        titles += [f"{method.label} {protocol} / {other.label}: {m}" for m in ("Hit@1", "MRR")]
    rows = []
    for data, ratio in cells:
        row = []
        for method, protocol, other, of_other in pairs:
            first = runs_of(runs, method, protocol, data, ratio)
            second = runs_of(runs, other, of_other, data, ratio)
            row += [shown_p(p_of_splits(first, second, metric)) for metric in ("hit@1", "mrr")]
        if any(row):
            rows.append([data, f"{ratio:.0%}", *row])
    return markdown_table(titles, rows, num_left=2)


def shown_p(of_splits: Sequence[float | None]) -> str:
    """The largest as text, and of how many splits where not of all; empty where there is none."""
    value = largest_p(of_splits)
    if value is None or math.isnan(value):
        return ""
    told = len(of_splits) - of_splits.count(None)
    remark = f" ({told} of {len(of_splits)} splits)" if told < len(of_splits) else ""
    return (f"{value:.3f}" if value >= 0.001 else "< 0.001") + remark
