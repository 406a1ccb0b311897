"""Accuracy by how well connected an entity is."""

import numpy as np

from emea.data.arrays import FloatArray, IntArray

BUCKET_STARTS = (0, 1, 2, 4, 8, 16, 32)
"""Lower ends of the degree buckets; the last one is open."""


def accuracy_by_degree(ranks: FloatArray, degrees: IntArray) -> list[dict[str, float]]:
    """Hit@1 within each bucket of degrees that holds an entity."""
    bucket = np.searchsorted(BUCKET_STARTS, degrees, side="right") - 1
    rows = []
    for index, start in enumerate(BUCKET_STARTS):
        inside = bucket == index
        if inside.any():
            hit = float(np.mean(ranks[inside] <= 1))
            rows.append({"min_degree": start, "num_entities": int(inside.sum()), "hit@1": hit})
    return rows
