"""Calibrated probabilities."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit, logit

from emea.em.two_way_step import calibrated
from emea.matching.beliefs import Beliefs


def overconfident(seed: int = 0, size: int = 4000) -> tuple[Beliefs, torch.Tensor]:
    """Entities whose best candidate says p and is right with probability sigmoid(logit(p) / 2)."""
    rng = np.random.default_rng(seed)
    best = rng.uniform(0.5, 0.999, size)
    probs = np.stack([best, (1 - best) * 0.6, (1 - best) * 0.3], axis=1)
    right = rng.random(size) < expit(logit(best) / 2)
    targets = np.stack([np.arange(size), np.arange(size) + 1, np.arange(size) + 2], axis=1)
    links = np.stack([np.arange(size), np.arange(size) + np.where(right, 0, 1)], axis=1)
    beliefs = Beliefs(torch.from_numpy(targets), torch.from_numpy(probs))
    return beliefs, torch.from_numpy(links)


def test_the_scale_is_found() -> None:
    beliefs, links = overconfident()
    best = calibrated(beliefs, links, ridge=1e-6).probs[:, 0].numpy()
    expected = expit(logit(beliefs.probs[:, 0].numpy()) / 2)
    assert np.abs(best - expected).max() < 0.05


@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_equals_a_general_optimiser(ridge: float) -> None:
    beliefs, links = overconfident(1, size=60)
    x = logit(beliefs.probs[:, 0].numpy())
    y = (links[:, 1] == beliefs.targets[:, 0]).numpy()

    def loss(w: np.ndarray) -> float:
        z = w[0] * x + w[1]
        penalty = 100 / 60 * ridge / 2 * ((w[0] - 1) ** 2 + w[1] ** 2)  # as among 100 links
        return float(np.mean(np.log1p(np.exp(z)) - y * z) + penalty)

    found = minimize(loss, [1.0, 0.0], bounds=[(0, None), (None, None)], method="L-BFGS-B").x
    expected = expit(found[0] * x + found[1])
    best = calibrated(beliefs, links, ridge).probs[:, 0].numpy()
    np.testing.assert_allclose(best, expected, atol=1e-4)


def test_the_order_stays_and_rows_are_probabilities() -> None:
    beliefs, links = overconfident(2)
    # so few are right that the best candidates lose most of what they had
    wrong = links + torch.tensor([0, 5])
    for given in (links, wrong):
        changed = calibrated(beliefs, given)
        assert torch.equal(changed.best_targets(), beliefs.best_targets())
        assert (changed.probs.sum(1) <= 1 + 1e-6).all() and (changed.probs >= 0).all()
        first, second = changed.probs[:, 0], changed.probs[:, 1]
        assert (first >= second).all()


def test_what_is_no_candidate_stays_none() -> None:
    beliefs = Beliefs(torch.tensor([[3, 0], [4, 5]]), torch.tensor([[0.9, 0.0], [0.0, 0.0]]))
    changed = calibrated(beliefs, torch.tensor([[0, 3]]))
    assert changed.probs[0, 1] == 0 and (changed.probs[1] == 0).all()


def test_without_links_nothing_changes() -> None:
    beliefs, links = overconfident(3, size=5)
    assert calibrated(beliefs, links[:0]) is beliefs
