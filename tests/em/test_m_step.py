"""Rule weights against a general optimiser."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax

from emea.em.m_step import fit_weights, link_examples
from emea.matching.beliefs import Beliefs

Array = np.ndarray


def objective(
    weights: Array,
    values: Array,
    slots: Array,
    ridge: float,
    prior: float | Array = 1.0,
    offsets: float | Array = 0.0,
) -> tuple[float, Array]:
    """What fit_weights minimises, and its gradient."""
    ridge *= max(1.0, 100 / len(slots))  # a prior that few examples cannot outweigh
    rows = np.arange(len(slots))
    log_probs = log_softmax(values @ weights + offsets, axis=1)
    mean = np.einsum("ek,ekr->er", np.exp(log_probs), values)
    value = -log_probs[rows, slots].mean() + ridge / 2 * ((weights - prior) ** 2).sum()
    return value, (mean - values[rows, slots]).mean(0) + ridge * (weights - prior)


def best_weights(values: Array, *others: Any, least: Array | float = 0.0) -> Array:
    bounds = np.broadcast_to(least, values.shape[2])
    found = [
        minimize(
            objective,
            np.maximum(start, bounds),
            (values, *others),
            jac=True,
            method="L-BFGS-B",
            bounds=[(None if bound == -np.inf else bound, None) for bound in bounds],
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 3000},
        )
        for start in (0.0, 1.0)
    ]
    return min(found, key=lambda result: result.fun).x


def fitted(values: Array, slots: Array, ridge: float, prior: float = 1.0) -> Array:
    return fit_weights(
        torch.from_numpy(values), torch.from_numpy(slots), ridge, prior=prior
    ).numpy()


@settings(deadline=None)
@given(
    st.integers(0, 2**32),
    st.floats(0.01, 30),
    st.floats(1e-4, 1),
    st.sampled_from(["independent", "collinear", "separable"]),
    st.booleans(),
)
def test_equals_a_general_optimiser(
    seed: int, scale: float, ridge: float, kind: str, own: bool
) -> None:
    rng = np.random.default_rng(seed)
    num, k, num_rules = rng.integers(1, 31), rng.integers(1, 7), rng.integers(1, 6)
    values = scale * rng.normal(size=(num, k, num_rules))
    if kind == "collinear":
        values = values[:, :, :1] * rng.normal(size=num_rules) + 0.1 * values
    slots = (
        values[:, :, 0].argmax(1) if kind == "separable" else rng.integers(0, k, num)
    )
    least, prior, offsets = np.zeros(num_rules), np.ones(num_rules), np.zeros((num, k))
    if own:  # bounds and priors of each rule, offsets of each candidate
        least = rng.choice([-np.inf, -0.5, 0.0, 0.3], num_rules)
        prior = rng.normal(size=num_rules) * 2
        offsets = rng.normal(size=(num, k)) + np.where(
            rng.random((num, k)) < 0.3, -np.inf, 0.0
        )
        offsets[np.arange(num), slots] = rng.normal(size=num)
    given = (
        torch.from_numpy(array) for array in (values, slots, prior, least, offsets)
    )
    rows, right, priors, bound, shift = given
    weights = fit_weights(
        rows, right, ridge, prior=priors, least=bound, offsets=shift
    ).numpy()
    if not own:
        np.testing.assert_array_equal(weights, fitted(values, slots, ridge))
    arguments = (values, slots, ridge, prior, offsets)
    assert (weights >= least).all()
    reached, slope = objective(weights, *arguments)
    best = best_weights(*arguments, least=least)
    assert reached <= objective(best, *arguments)[0] + 1e-9
    # the conditions of an optimum under the bound
    assert np.abs(slope[weights > least]).max(initial=0) < 1e-5 * max(1, scale)
    assert slope[weights == least].min(initial=0) > -1e-5 * max(1, scale)


# weights that stop a hair above zero, and a rule freed at zero only to be pushed back
@pytest.mark.parametrize("seed", [155, 700, 918, 1097])
def test_bound_does_not_stall_the_descent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num, k, num_rules = rng.integers(1, 30), rng.integers(1, 6), rng.integers(1, 5)
    values = rng.normal(size=(num, k, num_rules)) * 10 ** rng.uniform(-2, 2)
    if rng.random() < 0.5:
        shared = values[:, :, :1]
        values = shared * rng.normal(size=num_rules) + values * 10 ** rng.uniform(-4, 0)
    if rng.random() < 0.3:
        values[:, :, 0] = 0
    slots = rng.integers(0, k, num)
    if rng.random() < 0.3:
        slots = values[:, :, 0].argmax(1)
    ridge = 10 ** rng.uniform(-4, 0)
    expected = best_weights(values, slots, ridge)
    reached = objective(fitted(values, slots, ridge), values, slots, ridge)[0]
    assert reached <= objective(expected, values, slots, ridge)[0] + 1e-7


def test_without_examples_it_is_the_prior() -> None:
    weights = fit_weights(
        torch.zeros(0, 5, 3), torch.zeros(0, dtype=torch.int64), 0.01, prior=2.0
    )
    assert weights.tolist() == [2, 2, 2]
    each, least = torch.tensor([1.0, -2.0, -3.0]), torch.tensor([0.0, -torch.inf, -1.0])
    weights = fit_weights(
        torch.zeros(0, 5, 3),
        torch.zeros(0, dtype=torch.int64),
        0.01,
        prior=each,
        least=least,
    )
    assert weights.tolist() == [1, -2, -1]


def test_link_examples_are_those_whose_target_is_a_candidate() -> None:
    beliefs = Beliefs(
        torch.tensor([[5, 3], [0, 1], [2, 4], [7, 6]]), torch.full((4, 2), 0.5)
    )
    rows, slots = link_examples(beliefs, torch.tensor([[3, 6], [0, 1], [2, 2]]))
    assert rows.tolist() == [3, 2]
    assert slots.tolist() == [1, 0]
    rows, slots = link_examples(beliefs, torch.zeros(0, 2, dtype=torch.int64))
    assert len(rows) == len(slots) == 0


@pytest.mark.gpu
def test_on_a_gpu(cuda: torch.device) -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(500, 7, 3, generator=generator)
    slots = torch.randint(7, (500,), generator=generator)
    offsets = torch.where(
        torch.rand(500, 7, generator=generator) < 0.3, -torch.inf, 0.0
    )
    offsets[torch.arange(500), slots] = 0
    expected = fit_weights(values, slots, 0.01, offsets=offsets)
    weights = fit_weights(
        values.to(cuda), slots.to(cuda), 0.01, offsets=offsets.to(cuda)
    )
    assert weights.device.type == "cpu"
    torch.testing.assert_close(weights, expected, rtol=1e-9, atol=1e-9)
