"""Log ratios of levels of agreement: how much more often right pairs have a level than others."""

import numpy as np

from emea.data.arrays import FloatArray, IntArray

PSEUDO_COUNT = 2.0
"""Right and wrong pairs that are added, equally for each level."""

MOST_EVIDENCE = 6.0
"""Largest log ratio of a level of an attribute."""


def shares_by_level(
    levels: IntArray,
    num_levels: int,
    weights: FloatArray,
    added: FloatArray | None = None,
) -> FloatArray:
    """Return the share of each level from 1, by weight; level 0 is a missing value.

    Args:
        levels: The levels.
        num_levels: The number of levels.
        weights: How much each of them counts.
        added: ``[num_levels]`` pseudo-counts; ``None`` means ``PSEUDO_COUNT`` for all levels.
    """
    if added is None:
        added = np.full(num_levels, PSEUDO_COUNT / num_levels)
    counts = np.bincount(levels, weights, num_levels + 1)[1:]
    return np.asarray((counts + added) / (counts.sum() + added.sum()))


def log_ratio(
    right: FloatArray, wrong: FloatArray, levels: IntArray, most: float
) -> FloatArray:
    """Return L_k by level: log m_k / u_k, made to rise with the level. A missing value has 0.

    Args:
        right: ``[num_levels]`` m_k.
        wrong: ``[num_levels]`` u_k.
        levels: The levels of all pairs. A level with many pairs counts more.
        most: Largest absolute log ratio.
    """
    counts = np.bincount(levels, minlength=len(right) + 1)[1:] + 1e-3
    rising = isotonic(np.log(right / wrong), np.asarray(counts, dtype=np.float64))
    return np.append(0.0, np.clip(rising, -most, most))


def isotonic(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the nearest rising values: adjacent ones in the wrong order share their mean.

    The function of scipy computes the same, but its import takes longer than a small run.
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, number of values
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        number = 1
        while blocks and blocks[-1][0] >= value:
            mean, before, size = blocks.pop()
            value = (mean * before + value * weight) / (before + weight)
            weight += before
            number += size
        blocks.append((value, weight, number))
    means = [mean for mean, _, _ in blocks]
    return np.repeat(means, [size for _, _, size in blocks])
