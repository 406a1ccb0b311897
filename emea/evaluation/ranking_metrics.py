"""Hit@k, MRR and MR from ranks."""

from typing import Any

import numpy as np

from emea.data.arrays import FloatArray
from emea.evaluation.ranks import Ranks

HIT_CUTS = (1, 5, 10)


def ranking_metrics(ranks: FloatArray) -> dict[str, float]:
    """Hit@1/5/10, mean reciprocal rank and mean rank; not a number where there are no ranks."""
    if not len(ranks):
        return dict.fromkeys([*(f"hit@{cut}" for cut in HIT_CUTS), "mrr", "mr"], float("nan"))
    metrics = {f"hit@{cut}": float(np.mean(ranks <= cut)) for cut in HIT_CUTS}
    metrics["mrr"] = float(np.mean(1 / ranks))
    metrics["mr"] = float(np.mean(ranks))
    return metrics


def both_pools(ranks: Ranks) -> dict[str, Any]:
    """Metrics among the test targets, with those among all targets beside them."""
    return {**ranking_metrics(ranks.in_pool), "all_targets": ranking_metrics(ranks.in_all)}
