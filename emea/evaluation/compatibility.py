"""Compatibility and conflicts of a mapping (Figure 8 of the paper)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from emea.data.arrays import NO_MATCH, FloatArray, IntArray


def conflict_share(targets: IntArray) -> float:
    """Return the share of the predictions whose target is also predicted for another entity.

    Args:
        targets: ``[num_predictions]`` predicted target of each source entity; entities without
            one (``NO_MATCH``) are ignored.
    """
    claims = targets[targets != NO_MATCH]
    return float(conflicting(claims).mean()) if len(claims) else 0.0


def conflicting(targets: IntArray) -> npt.NDArray[np.bool_]:
    """Return ``[num_predictions]`` whether another entity has the same target."""
    _, index, counts = np.unique(targets, return_inverse=True, return_counts=True)
    shared: npt.NDArray[np.bool_] = (counts[index] > 1) & (targets != NO_MATCH)
    return shared


NUM_BINS = 50
"""Bins of equal width between 0 and 1."""


def compatibility_metrics(
    values: FloatArray, targets: IntArray, judged: IntArray, linked: IntArray
) -> dict[str, Any]:
    """Compute mean, histogram and conflicts of a mapping over the judged entities.

    An entity without a match counts as 0 in the mean and in the histogram, and is ignored in the
    conflicts. Conflicts are counted among linked entities only: the match of an entity without a
    counterpart always conflicts with a true link, so otherwise no mapping that matches all entities
    could come close to the oracle's 0.

    Args:
        values: ``[num_source]`` compatibility of each source entity's match.
        targets: ``[num_source]`` that match, or ``NO_MATCH``.
        judged: Source entities of the test links.
        linked: Source entities of all links, including the test links.

    Returns:
        ``mean`` (NaN without judged entities), ``histogram`` (counts in ``NUM_BINS`` bins over
        [0, 1]), ``conflicts`` (share of the judged matches whose target another linked entity
        has; NaN without judged entities) and ``num_unmatched`` (judged entities without a match).
    """
    answered = judged[targets[judged] != NO_MATCH]
    seen = np.zeros(len(judged))
    seen[targets[judged] != NO_MATCH] = values[answered]
    return {
        "mean": float(seen.mean()) if len(seen) else float("nan"),
        "histogram": np.histogram(seen, bins=NUM_BINS, range=(0, 1))[0].tolist(),
        "conflicts": _conflicts(targets, answered, linked) if len(judged) else float("nan"),
        "num_unmatched": len(judged) - len(answered),
    }


def _conflicts(targets: IntArray, answered: IntArray, linked: IntArray) -> float:
    if not len(answered):
        return 0.0
    claims = np.full_like(targets, NO_MATCH)
    claims[linked] = targets[linked]
    return float(conflicting(claims)[answered].mean())
