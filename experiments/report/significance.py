"""Paired two-tailed t-tests over test entities and over splits."""

import math
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from emea.evaluation.metrics import link_scores, paired_p
from emea.results.recorded_run import RecordedRun
from experiments.report.run_table import SplitRun, values_at

LEAST_SPLITS = 3
"""Splits that a paired test over splits needs."""

NOTE = (
    "The table has p of a paired two-tailed t-test over the test entities, for correct first "
    "answers (Hit@1) and reciprocal ranks (MRR). It is the largest p over the splits on which both "
    "methods were run and ranks were recorded. The test assumes independent entities, but "
    "neighbours depend on each other: do not rely on a p close to its threshold."
)


def p_of_splits(
    first: Sequence[SplitRun], second: Sequence[SplitRun], metric: str
) -> list[float | None]:
    """Return p for each split that both methods were run on.

    ``None`` means that the ranks of one of the runs are missing, or that the runs were not tested
    on the same links.

    Args:
        first: The runs of a method, see :meth:`experiments.report.run_table.Runs.of`.
        second: The runs of another method.
        metric: ``hit@1`` or ``mrr``.
    """
    runs, others = _by_split(first), _by_split(second)
    shared = sorted(runs.keys() & others.keys())
    return [_p_of_pair(runs[split], others[split], metric) for split in shared]


SPLITS_NOTE = (
    "*p* is that of a paired two-tailed t-test over the splits that both methods were run on, with "
    "one value per split. It needs at least three splits."
)


def p_over_splits(
    first: Sequence[SplitRun], second: Sequence[SplitRun], path: str
) -> float | None:
    """Return p of a paired t-test over splits; ``None`` with fewer than three common splits.

    Args:
        first: The runs of a method, see :meth:`experiments.report.run_table.Runs.of`.
        second: The runs of another method.
        path: The quantity that is compared.
    """
    values, others = _value_by_split(first, path), _value_by_split(second, path)
    shared = sorted(values.keys() & others.keys())
    if len(shared) < LEAST_SPLITS:
        return None
    pairs = [(values[split], others[split]) for split in shared]
    return paired_p(*(np.array(side) for side in zip(*pairs, strict=True)))


def _value_by_split(runs: Sequence[SplitRun], path: str) -> dict[int, float]:
    found = zip((run.split_seed for run in runs), values_at(runs, path), strict=True)
    return {split: value for split, value in found if value is not None}


RunStage = tuple[RecordedRun, str]


def _by_split(runs: Iterable[SplitRun]) -> dict[int, RunStage]:
    return {run.split_seed: (run.row["record"], run.stage) for run in runs}


@cache  # tables and claims compare the same runs
def _p_of_pair(first: RunStage, second: RunStage, metric: str) -> float | None:
    links, other_links = first[0].tested_links(), second[0].tested_links()
    if links is None or links != other_links:
        return None
    ranks, other_ranks = (run.ranks(stage) for run, stage in (first, second))
    if ranks is None or other_ranks is None:
        return None
    return paired_p(link_scores(ranks, metric), link_scores(other_ranks, metric))


def largest_p(of_splits: Sequence[float | None]) -> float | None:
    """Return the largest p; ``None`` if no split has one."""
    return max((p for p in of_splits if p is not None), default=None)


def shown_p(of_splits: Sequence[float | None]) -> str:
    """Return the largest p as text, with the number of splits if some have none."""
    value = largest_p(of_splits)
    if value is None or math.isnan(value):
        return ""
    num_known = len(of_splits) - of_splits.count(None)
    remark = (
        f" ({num_known} of {len(of_splits)} splits)"
        if num_known < len(of_splits)
        else ""
    )
    return (f"{value:.3f}" if value >= 0.001 else "< 0.001") + remark
