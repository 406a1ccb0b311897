"""How compatible a mapping is, and how many conflicts it has."""

from typing import Any

import numpy as np
import numpy.typing as npt

from emea.data.arrays import FloatArray, IntArray
from emea.matching.matching import NOBODY


def conflict_share(targets: IntArray) -> float:
    """Share of the predictions whose target another entity claims too.

    Args:
        targets: ``[num_predictions]`` predicted target of each source entity; who has none
            (``NOBODY``) takes no part.
    """
    claims = targets[targets != NOBODY]
    return float(conflicting(claims).mean()) if len(claims) else 0.0


def conflicting(targets: IntArray) -> npt.NDArray[np.bool_]:
    """``[num_predictions]`` whether another entity claims the same target."""
    _, index, counts = np.unique(targets, return_inverse=True, return_counts=True)
    shared: npt.NDArray[np.bool_] = (counts[index] > 1) & (targets != NOBODY)
    return shared


NUM_BINS = 50
"""Bins of equal width between 0 and 1."""


def compatibility_metrics(
    values: FloatArray, targets: IntArray, judged: IntArray, linked: IntArray
) -> dict[str, Any]:
    """Mean, histogram and conflicts of a mapping over the entities that are judged.

    An entity without an answer is compatible with nothing: it counts as 0 in the mean and in the
    histogram, and takes no part in conflicts. Rivals for a target are looked for among linked
    entities, since whatever an entity without a counterpart claims is somebody else's: with those
    among the rivals no mapping that answers for everybody could come near the oracle's 0.

    Args:
        values: ``[num_source]`` compatibility of each source entity's counterpart.
        targets: ``[num_source]`` that counterpart, ``NOBODY`` where there is none.
        judged: source entities of the test links.
        linked: source entities of all links, those of the test links among them.

    Returns:
        ``mean`` (not a number where nobody is judged), ``histogram`` (counts in ``NUM_BINS`` bins
        over [0, 1]), ``conflicts`` (share of the judged answers whose target a rival claims; not a
        number where nobody is judged) and
        ``num_unmatched`` (judged entities without an answer).
    """
    answered = judged[targets[judged] != NOBODY]
    seen = np.zeros(len(judged))
    seen[targets[judged] != NOBODY] = values[answered]
    return {
        "mean": float(seen.mean()) if len(seen) else float("nan"),
        "histogram": np.histogram(seen, bins=NUM_BINS, range=(0, 1))[0].tolist(),
        "conflicts": _conflicts(targets, answered, linked) if len(judged) else float("nan"),
        "num_unmatched": len(judged) - len(answered),
    }


def _conflicts(targets: IntArray, answered: IntArray, linked: IntArray) -> float:
    if not len(answered):
        return 0.0
    claims = np.full_like(targets, NOBODY)
    claims[linked] = targets[linked]
    return float(conflicting(claims)[answered].mean())
