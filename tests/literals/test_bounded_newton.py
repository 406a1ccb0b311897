"""Newton's method with bounds against the optimiser of scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from emea.literals import bounded_newton
from emea.literals.bounded_newton import Examples, Prior, bounded_logistic


def drawn(seed: int, num_examples: int, num_columns: int) -> tuple[Examples, Prior]:
    """Examples whose best weights are partly below their bounds, and a constant column."""
    rng = np.random.default_rng(seed)
    table = rng.normal(0, 2, (num_columns + 1, num_examples))
    table[:-1] += rng.normal(0, 1, (num_columns, 1)) * (np.arange(num_examples) % 2)
    table[-1] = 1
    right = rng.random(num_examples) * (np.arange(num_examples) % 2) / num_examples
    wrong = rng.random(num_examples) / num_examples
    prior = Prior(
        mean=np.append(np.full(num_columns, 0.5), 0.0),
        strength=np.append(np.full(num_columns, 0.02), 0.0),
        least=np.append(np.full(num_columns, 0.05), -np.inf),
    )
    return Examples(table, right, wrong), prior


def loss_of(examples: Examples, prior: Prior, weights: np.ndarray) -> tuple:
    scores = weights @ examples.table
    loss = (examples.right * np.logaddexp(0, -scores)).sum()
    loss += (examples.wrong * np.logaddexp(0, scores)).sum()
    gap = weights - prior.mean
    probs = 1 / (1 + np.exp(-scores))
    errors = examples.wrong * probs - examples.right * (1 - probs)
    slope = examples.table @ errors + 2 * prior.strength * gap
    return loss + (prior.strength * gap**2).sum(), slope


@given(st.integers(0, 10_000), st.integers(2, 200), st.integers(1, 8))
def test_weights_equal_those_of_scipy(seed: int, rows: int, columns: int) -> None:
    examples, prior = drawn(seed, rows, columns)
    expected = minimize(
        lambda weights: loss_of(examples, prior, weights),
        prior.mean,
        jac=True,
        method="L-BFGS-B",
        bounds=[(None if np.isinf(one) else one, None) for one in prior.least],
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000},
    )

    found = bounded_logistic(examples, prior)

    assert (found >= prior.least).all()
    assert loss_of(examples, prior, found)[0] <= expected.fun + 1e-12
    np.testing.assert_allclose(found, expected.x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("many", [0, bounded_newton.MANY])
def test_it_ends_after_a_few_steps(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    examples, prior = drawn(3, 500, 12)
    steps = []
    derivatives = bounded_newton._derivatives
    monkeypatch.setattr(bounded_newton, "MANY", many)
    monkeypatch.setattr(
        bounded_newton,
        "_derivatives",
        lambda *given: steps.append(given) or derivatives(*given),
    )
    found = bounded_logistic(examples, prior)
    assert len(steps) < 20
    is_held = found <= prior.least
    slope = loss_of(examples, prior, found)[1]
    assert np.abs(slope[~is_held]).max() < 1e-9 and (slope[is_held] > 0).all()


def test_without_examples_of_a_class_the_weights_are_finite() -> None:
    examples, prior = drawn(5, 30, 3)
    for right, wrong in (
        (np.zeros(30), examples.wrong),
        (examples.right, np.zeros(30)),
        (np.zeros(30), np.zeros(30)),
    ):
        found = bounded_logistic(Examples(examples.table, right, wrong), prior)
        assert np.isfinite(found).all() and (found >= prior.least).all()
