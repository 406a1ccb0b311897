"""Similarities to probabilities."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax

from emea.em.normaliser import (
    MAX_SHARPNESS,
    MinMaxNormaliser,
    RunningScores,
    SoftmaxNormaliser,
    fit_sharpness,
)
from emea.matching import similarity as similarity_module
from emea.matching.pair_table import PairTable
from emea.matching.similarity import Similarity

Array = np.ndarray


def similarity_of(scores: Array) -> Similarity:
    """A similarity with exactly these scores."""
    rows = torch.from_numpy(np.asarray(scores, dtype=np.float32))
    num_source, num_target = rows.shape
    return Similarity(rows, torch.eye(num_target), torch.zeros(num_source), torch.zeros(num_target))


def cross_entropy(logits: Array, labels: Array) -> float:
    """Eq. 3, per link."""
    return -float(log_softmax(logits, axis=1)[np.arange(len(labels)), labels].mean())


def noisy_problem(seed: int, num_links: int = 40, num_target: int = 15) -> tuple[Array, Array]:
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
    st.floats(1e-3, 100),
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
    best = minimize_scalar(objective, bounds=bounds, method="bounded", options={"xatol": 1e-9})
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
    best = min(minimize(objective, start, options={"gtol": 1e-9}).fun for start in starts)
    assert cross_entropy(fitted(scores, labels) * scores, labels) == pytest.approx(best, abs=1e-6)


def test_links_that_speak_against_the_scores_leave_no_sharpness() -> None:
    # Eq. 1 could turn the order round by w1 < w2; a similarity is not made to mean its opposite
    scores, labels = noisy_problem(0)
    assert fitted(-scores, labels) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("gap", [1e-4, 0.01, 0.3, 2.0, 1e4])
def test_separable_links_stay_finite(gap: float) -> None:
    scores = gap * np.eye(6)
    sharpness = fitted(scores, np.arange(6))
    assert 0 < sharpness <= MAX_SHARPNESS
    floor = cross_entropy(MAX_SHARPNESS * scores, np.arange(6))
    assert cross_entropy(sharpness * scores, np.arange(6)) <= floor + 1e-6


@given(st.integers(0, 2**32), st.integers(1, 30), st.floats(1e-2, 10), st.floats(0.1, 200))
def test_the_prior_is_one_of_the_terms(
    seed: int, num_links: int, scale: float, expected: float
) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.normal(0, scale, (num_links, 7)), rng.integers(0, 7, num_links)

    def objective(log_beta: float) -> float:
        beta = np.exp(log_beta)
        return num_links * cross_entropy(beta * scores, labels) + beta / expected - np.log(beta)

    best = minimize_scalar(objective, bounds=(-12, np.log(MAX_SHARPNESS)), method="bounded")
    found = fit_sharpness(torch.from_numpy(scores), torch.from_numpy(labels), expected)
    assert objective(np.log(found)) <= best.fun + 1e-6


@pytest.mark.parametrize("num_links", [1, 2, 5])
def test_a_few_links_that_are_all_first_are_no_proof(num_links: int) -> None:
    scores = 0.3 * np.eye(num_links, 50)
    links = torch.arange(num_links).repeat(2, 1).T
    normaliser = SoftmaxNormaliser()
    normaliser.fit(similarity_of(scores), links)
    # without a prior the bound itself would fit best
    assert fitted(scores, np.arange(num_links)) > 100
    assert normaliser.default_sharpness < normaliser.sharpness < 40


def test_many_links_outweigh_the_prior() -> None:
    scores, labels = noisy_problem(3, num_links=4000)
    links = torch.from_numpy(np.stack([np.arange(4000), labels], axis=1))
    normaliser = SoftmaxNormaliser()
    normaliser.fit(similarity_of(scores), links)
    assert normaliser.sharpness == pytest.approx(fitted(scores, labels), rel=0.01)


def test_fit_uses_the_rows_of_the_links() -> None:
    scores, labels = noisy_problem(3)
    everyone = np.concatenate([np.random.default_rng(0).normal(size=(7, 15)), scores])
    links = np.stack([7 + np.arange(40), labels], axis=1)
    normaliser = SoftmaxNormaliser()
    normaliser.fit(similarity_of(everyone), torch.from_numpy(links))
    alone = fit_sharpness(torch.from_numpy(scores), torch.from_numpy(labels), 20.0)
    assert normaliser.sharpness == pytest.approx(alone, rel=1e-4)
    assert normaliser.parameters() == {"sharpness": normaliser.sharpness}
    other = SoftmaxNormaliser()
    other.restore(normaliser.parameters())
    assert other.sharpness == normaliser.sharpness


def test_without_links_it_warns_and_takes_the_default(caplog: pytest.LogCaptureFixture) -> None:
    normaliser = SoftmaxNormaliser(default_sharpness=7.0)
    normaliser.restore({"sharpness": 3.0})
    normaliser.fit(similarity_of(np.eye(3)), torch.empty(0, 2, dtype=torch.int64))
    assert normaliser.sharpness == 7.0
    assert "no links" in caplog.text
    normaliser.fit(similarity_of(np.eye(3)), torch.empty(0, 2, dtype=torch.int64))
    assert len(caplog.records) == 1  # not in every iteration


@pytest.mark.parametrize("k", [1, 4, 15, 40])
@pytest.mark.parametrize("rows_in_block", [1, 1000])
def test_beliefs_are_the_top_of_a_softmax_over_all(
    k: int, rows_in_block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(similarity_module.BLOCK_BYTES, "cpu", rows_in_block * 15 * 4)
    scores, _ = noisy_problem(1)
    normaliser = SoftmaxNormaliser(default_sharpness=12.0)
    beliefs = normaliser.beliefs(similarity_of(scores), k)
    dense = softmax(12.0 * scores, axis=1)
    order = np.argsort(-scores, axis=1)[:, :k]
    np.testing.assert_array_equal(beliefs.targets.numpy(), order)
    np.testing.assert_allclose(beliefs.probs, np.take_along_axis(dense, order, 1), atol=1e-6)
    rest = dense.sum(1) - np.take_along_axis(dense, order, 1).sum(1)
    np.testing.assert_allclose(beliefs.rest_prob, rest, atol=1e-6)


def test_labelled_entities_are_certain() -> None:
    scores = np.array([[3.0, 2, 1, 0], [3, 2, 1, 0], [3, 2, 1, 0]])
    free = SoftmaxNormaliser(1.0).beliefs(similarity_of(scores), 2)
    clamped = free.clamped(torch.tensor([[0, 1], [2, 3]]))  # inside and outside the candidates
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
    normaliser.fit(similarity_of(scores), torch.tensor([[0, 2], [1, 0], [2, 1]]))
    for sharpness in (normaliser.sharpness, MAX_SHARPNESS):
        normaliser.restore({"sharpness": sharpness})
        beliefs = normaliser.beliefs(similarity_of(scores), 2)
        assert beliefs.probs.isfinite().all()
        assert (beliefs.probs.sum(1) <= 1 + 1e-6).all()
        assert (beliefs.probs[:, 0] >= 1 / 3 - 1e-6).all()


def test_min_max_scales_within_the_candidates() -> None:
    normaliser = MinMaxNormaliser()
    normaliser.fit(similarity_of(np.eye(3)), torch.empty(0, 2, dtype=torch.int64))
    assert normaliser.parameters() == {}
    similarity = similarity_of([[0.1, 0.9, 0.5, -9.0], [2.0, 2.0, 2.0, 1.0]])
    beliefs = normaliser.beliefs(similarity, 3)
    assert beliefs.targets[0].tolist() == [1, 2, 0]
    np.testing.assert_allclose(beliefs.probs, [[2 / 3, 1 / 3, 0], [1 / 3] * 3], atol=1e-6)
    assert normaliser.beliefs(similarity, 1).probs.tolist() == [[1], [1]]


def pair_table(rows: list[list[int]], num_target: int = 9) -> PairTable:
    """A row of targets per source entity, padded with target 0."""
    width = max(len(row) for row in rows)
    targets = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    filled = torch.tensor([[slot < len(row) for slot in range(width)] for row in rows])
    return PairTable(targets, torch.zeros(targets.shape), filled, num_target)


def test_known_pairs_are_blended_and_new_ones_are_not() -> None:
    running = RunningScores(0.25)
    first, second = pair_table([[4, 2], [7]]), pair_table([[2, 5], [7, 0]])
    past = torch.tensor([[-1.0, -2.0], [-3.0, 99.0]])
    now = torch.tensor([[-4.0, -5.0], [-6.0, -7.0]])
    assert running.blended(first, (past, 2 * past))[0] is past
    running.keep(first, (past, 2 * past))
    forth, back = running.blended(second, (now, now))
    # of (1, 0) there is a slot in the first table, but an empty one
    torch.testing.assert_close(forth, torch.tensor([[-3.5, -5.0], [-5.25, -7.0]]))
    torch.testing.assert_close(back, torch.tensor([[-4.0, -5.0], [-6.0, -7.0]]))


def test_the_mean_continues() -> None:
    running, pairs = RunningScores(0.5), pair_table([[1]])
    for score in (-8.0, -4.0, -2.0):
        given = torch.tensor([[score]])
        blended = running.blended(pairs, (given, given))
        running.keep(pairs, blended)
    assert float(blended[0]) == pytest.approx(-4.0)


def test_a_saved_state_continues_the_same() -> None:
    running, pairs = RunningScores(0.5), pair_table([[1, 3], [2]])
    scores = torch.tensor([[-1.0, -2.0], [-3.0, 0.0]])
    running.keep(pairs, (scores, scores))
    restored = RunningScores(0.5)
    restored.load_state_dict(running.state_dict())
    now = torch.zeros(2, 2)
    for mine, theirs in zip(
        running.blended(pairs, (now, now)), restored.blended(pairs, (now, now)), strict=True
    ):
        assert torch.equal(mine, theirs)


def test_without_a_share_nothing_is_kept() -> None:
    running, pairs = RunningScores(0.0), pair_table([[1]])
    scores = torch.tensor([[-1.0]])
    running.keep(pairs, (scores, scores))
    assert running.state_dict() == {}
    assert running.blended(pairs, (scores, scores))[0] is scores
