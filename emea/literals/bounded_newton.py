"""Logistic regression with lower bounds, by Newton's method.

The optimiser of scipy finds the same weights, but its import and its threads take longer than the
regression of a small table. The products of few examples use no BLAS library, whose threads wait
actively after each call.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from emea.data.arrays import FloatArray

MOST_STEPS = 50
"""Newton's method needs about ten steps."""

TOLERANCE = 1e-10
"""Largest element of the projected gradient at the end."""

SUFFICIENT = 1e-4
"""Least decrease of the loss in a step, relative to what the gradient promises."""

LEAST_CURVATURE = 1e-12
"""Added to the second derivatives, so that a step exists."""

MANY = 20_000
"""Examples from which threads save more than they cost."""

ROUNDING = 1e-13
"""Difference of the losses before and after a step that may be due to rounding."""

SHORTEST = 1e-6
"""Length of the shortest step, relative to Newton's."""


class Examples(NamedTuple):
    """Examples that count as both of two classes, with weights.

    Args:
        table: ``[num_columns, num_examples]`` features.
        right: ``[num_examples]`` how much each counts as one of the first class.
        wrong: ``[num_examples]`` how much each counts as one of the second class.
    """

    table: FloatArray
    right: FloatArray
    wrong: FloatArray


class Prior(NamedTuple):
    """A quadratic prior of weights, and their bounds.

    Args:
        mean: ``[num_columns]`` the means.
        strength: ``[num_columns]`` factors of the squared differences from the means.
        least: ``[num_columns]`` the lower bounds.
    """

    mean: FloatArray
    strength: FloatArray
    least: FloatArray


def bounded_logistic(examples: Examples, prior: Prior) -> FloatArray:
    """Return the ``[num_columns]`` weights with the least loss.

    The loss is the weighted negative log-likelihood plus the prior. Each step is Newton's step of
    the weights that are not held by their bound (Bertsekas, 1982), shortened until the loss falls
    enough.

    Args:
        examples: The examples.
        prior: The prior and the bounds. The search starts at its means.
    """

    def loss(weights: FloatArray) -> float:
        scores = np.einsum("k,kn->n", weights, examples.table)
        gap = weights - prior.mean
        # log (1 + exp(s)) is the loss of a wrong pair; that of a right one is s lower
        fit = counts * np.logaddexp(0, scores) - examples.right * scores
        return float(fit.sum() + (prior.strength * gap**2).sum())

    counts = examples.right + examples.wrong

    weights = np.maximum(prior.mean, prior.least)
    value = loss(weights)
    for _ in range(MOST_STEPS):
        slope, curvature = _derivatives(examples, prior, weights)
        is_held = (weights <= prior.least) & (slope > 0)
        if np.abs(slope[~is_held]).max(initial=0.0) <= TOLERANCE:
            break
        step = np.zeros_like(weights)
        free = np.flatnonzero(~is_held)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        found = _shortened(loss, value, (weights, step, slope), prior.least)
        if found is None:
            break
        weights, value = found
    return weights


def _derivatives(
    examples: Examples, prior: Prior, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the gradient and the Hessian matrix of the loss."""
    table = examples.table
    scores = np.einsum("k,kn->n", weights, table)
    probs = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
    counts = examples.right + examples.wrong
    errors = counts * probs - examples.right
    slope = np.einsum("kn,n->k", table, errors)
    slope += 2 * prior.strength * (weights - prior.mean)
    weighted = table * (counts * probs * (1 - probs))
    if table.shape[1] > MANY:
        curvature = weighted @ table.T
    else:
        curvature = np.einsum("kn,ln->kl", weighted, table)
    # without examples of a class, nothing determines a weight that has no prior
    curvature += np.diag(2 * prior.strength + LEAST_CURVATURE)
    return slope, curvature


def _shortened(
    loss: Callable[[FloatArray], float],
    value: float,
    place: tuple[FloatArray, FloatArray, FloatArray],
    least: FloatArray,
) -> tuple[FloatArray, float] | None:
    """Return the weights after a step that lowers the loss enough, and their loss.

    Args:
        loss: The loss.
        value: The loss before the step.
        place: The weights, Newton's step and the gradient.
        least: The lower bounds.

    Returns:
        ``None`` if no step lowers the loss.
    """
    weights, step, slope = place
    length = 1.0
    while length > SHORTEST:
        after = np.maximum(weights - length * step, least)
        new_value = loss(after)
        promised = float((slope * (after - weights)).sum())
        if new_value <= value + SUFFICIENT * promised + ROUNDING:
            return after, new_value
        length /= 2
    return None
