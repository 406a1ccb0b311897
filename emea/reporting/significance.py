"""Paired two-tailed t-tests over test entities."""

import math
from collections.abc import Sequence

import pandas as pd

from emea.evaluation.significance import link_scores, paired_p

NOTE = (
    "The table has p of a paired two-tailed t-test over the test entities, for correct first "
    "answers (Hit@1) and reciprocal ranks (MRR). It is the largest p over the splits on which both "
    "methods were run and ranks were recorded. The test assumes independent entities, but "
    "neighbours depend on each other: do not rely on a p close to its threshold."
)


def p_of_splits(first: pd.DataFrame, second: pd.DataFrame, metric: str) -> list[float | None]:
    """Return p for each split that both methods were run on.

    ``None`` means that the ranks of one of the runs are missing.

    Args:
        first: The runs of a method, see :meth:`emea.reporting.run_table.Runs.of`.
        second: The runs of another method.
        metric: ``hit@1`` or ``mrr``.
    """
    if first.empty or second.empty:
        return []
    by_split = [
        {split: record.ranks(stage) for split, record, stage in zip(*columns, strict=True)}
        for columns in (
            [runs[key] for key in ("split_seed", "record", "stage")] for runs in (first, second)
        )
    ]
    found: list[float | None] = []
    for split in sorted(by_split[0].keys() & by_split[1].keys()):
        ranks = [ranks[split] for ranks in by_split]
        if ranks[0] is None or ranks[1] is None or len(ranks[0]) != len(ranks[1]):
            found.append(None)
        else:
            found.append(paired_p(link_scores(ranks[0], metric), link_scores(ranks[1], metric)))
    return found


def largest_p(of_splits: Sequence[float | None]) -> float | None:
    """Return the largest p; ``None`` if no split has one."""
    return max((p for p in of_splits if p is not None), default=None)


def shown_p(of_splits: Sequence[float | None]) -> str:
    """Return the largest p as text, with the number of splits if some have none."""
    value = largest_p(of_splits)
    if value is None or math.isnan(value):
        return ""
    num_known = len(of_splits) - of_splits.count(None)
    remark = f" ({num_known} of {len(of_splits)} splits)" if num_known < len(of_splits) else ""
    return (f"{value:.3f}" if value >= 0.001 else "< 0.001") + remark
