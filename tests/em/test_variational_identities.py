"""Eq. 8-13 and their derivations, on a model whose assignments can all be written down."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import softmax, xlogy

from emea.em.m_step import fit_weights
from emea.em.paper_step import compatible_beliefs
from emea.matching.beliefs import Beliefs

from .enumerated_model import (
    Array,
    EnumeratedModel,
    TableRule,
    certain,
    dense,
    random_beliefs,
    random_model,
)

LABELS = torch.tensor([[3, 1]])
UNLABELLED = (0, 1, 2)
SEEDS = pytest.mark.parametrize("seed", range(2))


def e_step(model: EnumeratedModel, beliefs: Beliefs) -> Beliefs:
    """q* of all entities at once, as EM takes it."""
    values, weights = TableRule(model)(beliefs), torch.from_numpy(model.weights)
    return compatible_beliefs(beliefs, values, weights, LABELS)


def only(u: int, new: Beliefs, old: Beliefs) -> Beliefs:
    """The old beliefs but for entity u."""
    probs = old.probs.clone()
    probs[u] = new.probs[u]
    return Beliefs(old.targets, probs)


def log_joint_with_labels(model: EnumeratedModel) -> Array:
    """``log p(y_U, y_L)`` with the labelled entity's axis cut at its label."""
    return model.log_joint()[..., 1]


def independent(q: Array) -> Array:
    """``q(y_U)`` as a product."""
    return np.einsum("i,j,k->ijk", *(q[u] for u in UNLABELLED))


def elbo(model: EnumeratedModel, q: Array) -> float:
    """Eq. 9."""
    joint_q = independent(q)
    return float(
        (joint_q * log_joint_with_labels(model)).sum() - xlogy(joint_q, joint_q).sum()
    )


def summand(model: EnumeratedModel, u: int, q: Array) -> float:
    """What entity u adds to O_Theta in Eq. 11."""
    log_joint = log_joint_with_labels(model)
    log_conditional = log_joint - np.log(np.exp(log_joint).sum(axis=u, keepdims=True))
    return float((independent(q) * log_conditional).sum() - xlogy(q[u], q[u]).sum())


def with_row(q: Array, u: int, row: Array) -> Array:
    changed = q.copy()
    changed[u] = row
    return changed


@SEEDS
def test_kl_is_the_evidence_less_the_elbo(seed: int) -> None:
    model = random_model(seed)
    log_joint = log_joint_with_labels(model)
    log_evidence = np.log(np.exp(log_joint).sum())
    beliefs = random_beliefs(model, seed, LABELS)
    for q in (dense(beliefs), dense(e_step(model, beliefs))):
        joint_q = independent(q)
        kl = (xlogy(joint_q, joint_q) - joint_q * (log_joint - log_evidence)).sum()
        assert kl == pytest.approx(log_evidence - elbo(model, q), abs=1e-10)
        assert kl > 0


@SEEDS
@pytest.mark.parametrize("u", UNLABELLED)
@pytest.mark.parametrize("objective", ["summand", "elbo"])
def test_q_star_is_the_best_row_for_one_entity(
    seed: int, u: int, objective: str
) -> None:
    model = random_model(seed)
    beliefs = random_beliefs(model, seed, LABELS)
    q = dense(beliefs)
    star = dense(e_step(model, beliefs))[u]

    def value(row: Array) -> float:
        changed = with_row(q, u, row)
        return (
            elbo(model, changed) if objective == "elbo" else summand(model, u, changed)
        )

    found = minimize(
        lambda logits: -value(softmax(logits)), np.zeros(3), options={"gtol": 1e-8}
    )
    assert value(star) == pytest.approx(-found.fun, abs=1e-8)
    np.testing.assert_allclose(star, softmax(found.x), atol=1e-4)
    rng = np.random.default_rng(seed)
    for other in rng.dirichlet(np.ones(3), 10):
        for step in (1e-3, 0.1, 1):
            assert value((1 - step) * star + step * other) < value(star)


@SEEDS
def test_coordinate_ascent_never_lowers_the_elbo_and_comes_to_rest(seed: int) -> None:
    model = random_model(seed)
    beliefs = random_beliefs(model, seed, LABELS)
    reached = elbo(model, dense(beliefs))
    for _ in range(80):
        before = dense(beliefs)
        for u in UNLABELLED:
            beliefs = only(u, e_step(model, beliefs), beliefs)
            before_step, reached = reached, elbo(model, dense(beliefs))
            assert reached >= before_step - 1e-12
    np.testing.assert_allclose(dense(beliefs), before, atol=1e-8)
    np.testing.assert_allclose(dense(e_step(model, beliefs)), before, atol=1e-8)


@SEEDS
def test_q_star_is_not_the_best_row_for_the_sum_over_entities(seed: int) -> None:
    # Eq. 18 leaves out that q(y_u) also weighs the log p(y_v | y_-v) of others: Eq. 12 climbs
    # the ELBO of Eq. 9 and its own summand, not the whole sum of Eq. 11
    model = random_model(seed)
    beliefs = random_beliefs(model, seed, LABELS)
    q = dense(beliefs)

    def total(row: Array) -> float:
        return sum(summand(model, v, with_row(q, 1, row)) for v in UNLABELLED)

    found = minimize(lambda logits: -total(softmax(logits)), np.zeros(3))
    assert total(dense(e_step(model, beliefs))[1]) < -found.fun - 1e-3


def test_updating_all_entities_at_once_may_lower_the_elbo() -> None:
    # entities 0 and 1 should agree, 2 and 3 play no part; both give way and change places:
    # one block of all entities is the paper's algorithm, not coordinate ascent
    agree, flat = np.eye(3)[..., None], np.zeros((3, 1))
    model = EnumeratedModel(
        3, [(0, 1), (2,), (3,)], [agree, flat, flat], np.array([6.0])
    )
    probs = torch.tensor([[0.5, 0.4, 0.1], [0.4, 0.5, 0.1], [0.4, 0.3, 0.3], [0, 1, 0]])
    beliefs = Beliefs(torch.arange(3).repeat(4, 1), probs.double())
    block = e_step(model, beliefs)
    both = only(1, block, only(0, block, beliefs))
    assert both.best_targets().tolist()[:2] == [1, 0]
    one = only(0, block, beliefs)
    in_turn = only(1, e_step(model, one), one)
    start = elbo(model, dense(beliefs))
    assert elbo(model, dense(both)) < start < elbo(model, dense(in_turn))


def test_pseudolikelihood_recovers_the_weights_that_drew_the_labels() -> None:
    # Eq. 13 with labels from the model itself, each entity's conditional being one example
    model = random_model(1)
    rng = np.random.default_rng(0)
    probs = np.exp(model.log_joint()).ravel()
    drawn = rng.choice(len(probs), 1500, p=probs / probs.sum())
    states, index = np.unique(drawn, return_inverse=True)
    rule, assignments = TableRule(model), list(model.assignments())
    values = torch.stack([rule(certain(assignments[state], 3)) for state in states])
    labels = torch.tensor([assignments[state] for state in states])
    fitted = fit_weights(
        values[index].flatten(0, 1), labels[index].flatten(), ridge=0.0
    )
    np.testing.assert_allclose(fitted, model.weights, atol=0.15)
