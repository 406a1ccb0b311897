"""How a matching that ranks nothing does on links."""

from typing import Any

import numpy as np

from emea.data.arrays import IntArray
from emea.evaluation.ranking_metrics import HIT_CUTS
from emea.evaluation.ranks import Ranks


def matched_ranks(targets: IntArray, links: IntArray) -> Ranks:
    """Rank 1 for a link that the matching has, infinity for one that it has not.

    The matching was chosen among all targets, so both pools have the same ranks.

    Args:
        targets: ``[num_source]`` target of each source entity, negative where it has none.
        links: ``[num_links, 2]``.
    """
    ranks = np.where(targets[links[:, 0]] == links[:, 1], 1.0, np.inf)
    return Ranks(in_pool=ranks, in_all=ranks)


def matched_metrics(ranks: Ranks) -> dict[str, Any]:
    """Hit@1, which is recall here, in both pools; what needs a ranking does not apply."""
    absent = dict.fromkeys([*(f"hit@{cut}" for cut in HIT_CUTS), "mrr", "mr"])
    found = float(np.mean(ranks.in_pool <= 1)) if len(ranks.in_pool) else float("nan")
    return {**absent, "hit@1": found, "all_targets": {**absent, "hit@1": found}}
