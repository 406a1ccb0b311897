"""Similarities to probabilities."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax

from emea.em.normaliser import (
    DEFAULT_SHARPNESS,
    MAX_SHARPNESS,
    FixedNormaliser,
    MinMaxNormaliser,
    SoftmaxNormaliser,
    fit_sharpness,
)
from emea.matching import similarity as similarity_module

from ..matching.random_tables import from_scores

Array = np.ndarray


def cross_entropy(logits: Array, labels: Array) -> float:
    """Eq. 3, per link."""
    return -float(log_softmax(logits, axis=1)[np.arange(len(labels)), labels].mean())


def noisy_problem(
    seed: int, num_links: int = 40, num_target: int = 15
) -> tuple[Array, Array]:
    """Scores in which the right target is often, not always, the best."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, num_target, num_links)
    scores = rng.normal(0, 0.1, (num_links, num_target))
    scores[np.arange(num_links), labels] += rng.uniform(0.02, 0.25)
    return scores, labels


def fitted(scores: Array, labels: Array) -> float:
    return fit_sharpness(torch.from_numpy(scores), torch.from_numpy(labels))


@given(
    st.integers(0, 2**32),
    st.integers(1, 30),
    st.integers(1, 12),
    st.floats(1e-3, 1e4),
    st.floats(0, 1),
)
def test_fit_reaches_the_minimum_on_the_bounded_line(
    seed: int, num_links: int, num_target: int, scale: float, skill: float
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, scale, (num_links, num_target))
    guessed = rng.random(num_links) < skill
    labels = np.where(guessed, scores.argmax(1), rng.integers(0, num_target, num_links))
    sharpness = fitted(scores, labels)
    assert 0 <= sharpness <= MAX_SHARPNESS

    def objective(beta: float) -> float:
        return cross_entropy(beta * scores, labels)

    grid = np.concatenate([[0], np.geomspace(1e-7, MAX_SHARPNESS, 20)])
    near = grid[np.argmin([objective(beta) for beta in grid])]
    bounds = (near / 4, min(MAX_SHARPNESS, 4 * near + 1e-6))
    best = minimize_scalar(
        objective, bounds=bounds, method="bounded", options={"xatol": 1e-9}
    )
    # the fit stops within a millionth of the optimum, which costs that times the slope there
    right = scores[np.arange(num_links), labels]
    slope = ((softmax(sharpness * scores, axis=1) * scores).sum(1) - right).mean()
    allowed = 1e-8 + 2e-6 * max(1, sharpness) * abs(slope)
    assert objective(sharpness) <= min(best.fun, objective(near)) + allowed


@pytest.mark.parametrize("seed", range(5))
def test_one_parameter_does_all_that_four_do(seed: int) -> None:
    scores, labels = noisy_problem(seed)
    gap = scores.max(1, keepdims=True) - scores

    def objective(omega: Array) -> float:
        w1, w2, w0, log_tau = omega
        return cross_entropy((w1 * scores + w2 * gap + w0) / np.exp(log_tau), labels)

    starts = np.random.default_rng(seed).normal(0, 1, (6, 4))
    best = min(
        minimize(objective, start, options={"gtol": 1e-9}).fun for start in starts
    )
    assert cross_entropy(fitted(scores, labels) * scores, labels) == pytest.approx(
        best, abs=1e-6
    )


@given(
    st.integers(0, 2**32), st.integers(1, 30), st.floats(1e-2, 10), st.floats(0.1, 200)
)
def test_the_prior_is_one_of_the_terms(
    seed: int, num_links: int, scale: float, expected: float
) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.normal(0, scale, (num_links, 7)), rng.integers(0, 7, num_links)

    def objective(log_beta: float) -> float:
        beta = np.exp(log_beta)
        return (
            num_links * cross_entropy(beta * scores, labels)
            + beta / expected
            - np.log(beta)
        )

    best = minimize_scalar(
        objective, bounds=(-12, np.log(MAX_SHARPNESS)), method="bounded"
    )
    found = fit_sharpness(torch.from_numpy(scores), torch.from_numpy(labels), expected)
    assert objective(np.log(found)) <= best.fun + 1e-6


def test_fit_uses_the_rows_of_the_links() -> None:
    scores, labels = noisy_problem(3)
    everyone = np.concatenate([np.random.default_rng(0).normal(size=(7, 15)), scores])
    links = np.stack([7 + np.arange(40), labels], axis=1)
    normaliser = SoftmaxNormaliser()
    normaliser.fit(from_scores(everyone), torch.from_numpy(links))
    alone = fit_sharpness(torch.from_numpy(scores), torch.from_numpy(labels), 20.0)
    assert normaliser.sharpness == pytest.approx(alone, rel=1e-4)
    assert normaliser.parameters() == {"sharpness": normaliser.sharpness}
    other = SoftmaxNormaliser()
    other.restore(normaliser.parameters())
    assert other.sharpness == normaliser.sharpness


def test_without_links_it_warns_and_takes_the_default(
    caplog: pytest.LogCaptureFixture,
) -> None:
    normaliser = SoftmaxNormaliser(3.0)
    normaliser.fit(from_scores(np.eye(3)), torch.empty(0, 2, dtype=torch.int64))
    assert normaliser.sharpness == DEFAULT_SHARPNESS
    assert "no links" in caplog.text
    normaliser.fit(from_scores(np.eye(3)), torch.empty(0, 2, dtype=torch.int64))
    assert len(caplog.records) == 1  # not in every iteration


@pytest.mark.parametrize("k", [1, 4, 15, 40])
@pytest.mark.parametrize("rows_in_block", [1, 1000])
def test_beliefs_are_the_top_of_a_softmax_over_all(
    k: int, rows_in_block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(similarity_module.BLOCK_BYTES, "cpu", rows_in_block * 15 * 4)
    scores, _ = noisy_problem(1)
    normaliser = SoftmaxNormaliser(12.0)
    beliefs = normaliser.beliefs(from_scores(scores), k)
    dense = softmax(12.0 * scores, axis=1)
    order = np.argsort(-scores, axis=1)[:, :k]
    np.testing.assert_array_equal(beliefs.targets.numpy(), order)
    np.testing.assert_allclose(
        beliefs.probs, np.take_along_axis(dense, order, 1), atol=1e-6
    )
    rest = dense.sum(1) - np.take_along_axis(dense, order, 1).sum(1)
    np.testing.assert_allclose(beliefs.rest_prob, rest, atol=1e-6)


def test_labelled_entities_are_certain() -> None:
    scores = np.array([[3.0, 2, 1, 0], [3, 2, 1, 0], [3, 2, 1, 0]])
    free = SoftmaxNormaliser(1.0).beliefs(from_scores(scores), 2)
    clamped = free.clamped(
        torch.tensor([[0, 1], [2, 3]])
    )  # inside and outside the candidates
    assert clamped.targets.tolist() == [[0, 1], [0, 1], [0, 3]]
    assert clamped.probs[[0, 2]].tolist() == [[0, 1], [0, 1]]
    assert torch.equal(clamped.probs[1], free.probs[1])
    assert clamped.rest_prob[[0, 2]].tolist() == [0, 0]
    assert clamped.best_targets().tolist() == [1, 0, 3]
    assert free.targets.tolist() == [[0, 1]] * 3  # what it was given is left alone


@pytest.mark.parametrize("size", [1e-30, 1e4, 1e30])
def test_extreme_scores_give_probabilities(size: float) -> None:
    scores = size * np.array([[1.0, -1, 0.5], [0, 0, 0], [-1, 1, 1]])
    normaliser = SoftmaxNormaliser()
    normaliser.fit(from_scores(scores), torch.tensor([[0, 2], [1, 0], [2, 1]]))
    for sharpness in (normaliser.sharpness, MAX_SHARPNESS):
        normaliser.restore({"sharpness": sharpness})
        beliefs = normaliser.beliefs(from_scores(scores), 2)
        assert beliefs.probs.isfinite().all()
        assert (beliefs.probs.sum(1) <= 1 + 1e-6).all()
        assert (beliefs.probs[:, 0] >= 1 / 3 - 1e-6).all()


def test_min_max_scales_the_candidates_to_one() -> None:
    normaliser = MinMaxNormaliser()
    normaliser.fit(from_scores(np.eye(3)), torch.tensor([[0, 0]]))
    scores = np.array([[0.9, 0.1, 0.5, -1.0], [0.2, 0.2, 0.2, 0.2]])
    beliefs = normaliser.beliefs(from_scores(scores), 3)
    assert beliefs.targets[0].tolist() == [0, 2, 1]
    # 0.9, 0.5 and 0.1 become 1, 0.5 and 0, and then sum to 1
    np.testing.assert_allclose(beliefs.probs[0], [2 / 3, 1 / 3, 0], atol=1e-6)
    np.testing.assert_allclose(beliefs.probs[1], [1 / 3] * 3, atol=1e-6)
    assert normaliser.parameters() == {}


def test_a_fixed_sharpness_is_not_fitted() -> None:
    vectors = torch.nn.functional.normalize(
        torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    )
    similarity = similarity_module.Cosine()(vectors, vectors.flip(0))
    normaliser = FixedNormaliser()
    normaliser.fit(similarity, torch.tensor([[0, 5], [1, 4]]))
    beliefs = normaliser.beliefs(similarity, 6)
    cosines = (vectors @ vectors.flip(0).T).double()
    expected = torch.exp(cosines / 0.02)
    expected /= expected.sum(1, keepdim=True)
    found = torch.zeros(6, 6).scatter(1, beliefs.targets, beliefs.probs).double()
    assert normaliser.parameters() == {"sharpness": 50.0}
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)
