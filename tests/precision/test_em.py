"""Normalisers, both EM steps and calibration in single against double precision."""

import math

import pytest
import torch
from torch import Tensor

from emea.em.earlier_fits import MARGIN, calibrated
from emea.em.m_step import fit_weights
from emea.em.match_model import MatchModel, OneToOneModel, PairFeatures
from emea.em.normaliser import SoftmaxNormaliser, fitted_sharpness
from emea.em.paper_step import compatible_beliefs, conditional
from emea.em.reports import JointReport
from emea.em.settings import TwoWaySettings
from emea.em.two_way_step import TwoWayStep
from emea.matching.beliefs import Beliefs
from emea.matching.csls import CSLS
from emea.matching.matching_marginals import TOLERANCE
from emea.matching.pair_table import PairTable
from emea.matching.similarity import Similarity
from emea.rules.paris import PARIS

from ..em.aligned_pairs import Aligned, aligned
from ..em.test_two_way_step import visible
from ..matching.random_tables import from_scores
from .both_precisions import (
    ROUNDOFF,
    assert_near,
    both,
)
from .embeddings import HARD_EMBEDDINGS, csls_error


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


HARD_SCORES = {
    "ordinary": 0.2 * randn(20, 60),
    "nearly equal": 0.7 + 1e-6 * randn(20, 60),
    "equal": torch.full((20, 60), 0.7),
    "all zero": torch.zeros(20, 60),
    "far apart": torch.linspace(-1, 1, 60).repeat(20, 1),
    "far from zero": 100 + 0.01 * randn(20, 60),
}
on_hard_scores = pytest.mark.parametrize(
    "scores", HARD_SCORES.values(), ids=HARD_SCORES
)


@on_hard_scores
@pytest.mark.parametrize("sharpness", [1e-6, 20.0, 80.0, 1000.0])
def test_softmax_normaliser(scores: Tensor, sharpness: float) -> None:
    normaliser = SoftmaxNormaliser(sharpness)
    single, double = both(
        lambda given: normaliser.beliefs(from_scores(given), 10), scores
    )
    # a logit is a difference times the sharpness; the denominator is a sum over all targets
    best = scores.double().sort(dim=1, descending=True).values
    logits = sharpness * (best[:, :1] - best[:, :10])
    assert_near(single.probs, double.probs, relative=(4 * logits + 60 + 8) * ROUNDOFF)


def cross_entropy(similarity: Similarity, links: Tensor, sharpness: float) -> float:
    logits = sharpness * similarity.scores(links[:, 0])
    return float(torch.nn.functional.cross_entropy(logits, links[:, 1]))


@pytest.mark.parametrize("embeddings", HARD_EMBEDDINGS.values(), ids=HARD_EMBEDDINGS)
@pytest.mark.parametrize(
    "alike", [0.0, 0.3, 1.0], ids=["strangers", "alike", "the same"]
)
def test_fitted_sharpness(embeddings: tuple[Tensor, Tensor], alike: float) -> None:
    source, target = embeddings
    target = alike * torch.cat([source, target[40:]]) + (1 - alike) * target
    links = torch.arange(40).unsqueeze(1).expand(-1, 2)
    similarity = both(CSLS(10), source, target)
    fits = (fitted_sharpness(one, links) for one in similarity)
    exact = similarity[1]
    for side, single, double in zip((exact, exact.reversed()), *fits, strict=True):
        reached, best = (cross_entropy(side, links, fit) for fit in (single, double))
        # either stops a millionth from the optimum; scores that are off move what either reaches
        off = 4 * max(single, double) * csls_error(10)
        assert abs(reached - best) <= 4e-6 * max(1, double) + off


@pytest.mark.parametrize("size", [1e-30, 1.0, 80.0, 1000.0])
def test_joint_distribution(size: float) -> None:
    values, weights = randn(50, 10, 3).clamp(-1, 1), torch.tensor([size, 0.0, size / 3])
    values[:10] = 0.5
    values[10:20, :, 0] = torch.tensor([0.0, 1.0]).repeat(5)
    single, double = both(conditional, values, weights)
    # three products and their sum, in the numerator and in the denominator of ten terms
    logit = 4 * float(weights.sum())
    assert_near(single, double, relative=math.expm1((2 * logit + 10 + 4) * ROUNDOFF))
    beliefs = Beliefs(torch.arange(10).repeat(50, 1), torch.full((50, 10), 0.1))
    labels = torch.tensor([[3, 7]])
    clamped = compatible_beliefs(beliefs, values, weights.double(), labels)
    assert clamped.probs[3, 7] == 1
    assert_near(
        clamped.probs[4:], double[4:], relative=math.expm1((2 * logit + 14) * ROUNDOFF)
    )


@pytest.mark.parametrize("size", [1e-30, 1.0, 80.0, 1e4])
@pytest.mark.parametrize("kind", ["useless", "useful", "always right", "constant"])
def test_rule_weights(size: float, kind: str) -> None:
    # it goes over to double precision before it computes anything
    values = size * randn(100, 6, 2)
    best = values[:, :, 0].argmax(1)
    slots = {
        "useless": values[:, :, 0].argmin(1),
        "useful": torch.where(best > 2, best, 0),
    }
    values[:, :, 1] = size if kind == "constant" else values[:, :, 1]
    offsets = torch.where(randn(100, 6, seed=1) > 1, -torch.inf, 0.0)
    right = slots.get(kind, best)
    offsets[torch.arange(100), right] = 0
    single, double = both(
        lambda given, shift: fit_weights(given, right, 0.01, offsets=shift),
        values,
        offsets,
    )
    assert (single >= 0).all() and single.isfinite().all()
    assert_near(single, double, relative=1e-12)


def hard_features(logit: float, num_source: int = 60, width: int = 5) -> PairFeatures:
    """Logits of either sign, rows and slots without a pair, and a target that most others claim."""
    generator = torch.Generator().manual_seed(0)
    targets = torch.rand(num_source, 20, generator=generator).argsort(1)[:, :width]
    targets[:, 0] = 19
    filled = torch.rand(num_source, width, generator=generator) < 0.8
    filled[::6] = False
    table = PairTable(targets, torch.zeros(num_source, width), filled, 20)
    log_probs, back, doubt, share = (
        -torch.rand(num_source, width, generator=generator) for _ in range(4)
    )
    return PairFeatures(
        table,
        log_probs=(logit * log_probs, 2 * logit * back),
        log_rest=(torch.full((num_source,), -13.8), torch.full((20,), -logit)),
        evidence={
            "noisy_or": -torch.expm1(doubt * 30),
            "evidence": torch.log1p(-doubt * 1e5),
            "coverage": share + 1,
        },
    )


@pytest.mark.parametrize("logit", [1e-6, 80.0, 2000.0])
@pytest.mark.parametrize("unmatched", [True, False])
def test_match_model(logit: float, unmatched: bool) -> None:
    model = MatchModel(TwoWaySettings(unmatched=unmatched))
    features = hard_features(logit)
    filled = features.table.filled
    # four products and their sum; the denominator of at most sixty; the difference of both
    size = 2 * logit * 0.5 + 3 + math.log1p(1e5) + 6 + 14
    off = (2 * 6 * size + 60 + 4) * ROUNDOFF
    for single, double in zip(*both(model.beliefs, features), strict=True):
        assert_near(single[filled], double[filled], absolute=off)


@pytest.mark.parametrize("logit", [1e-6, 80.0, 2000.0])
def test_one_to_one_model(logit: float) -> None:
    features = hard_features(logit)
    filled = features.table.filled
    # passes end at a change of TOLERANCE, so the two may differ by a pass
    for single, double in zip(
        *both(OneToOneModel(TwoWaySettings()).beliefs, features), strict=True
    ):
        assert_near(single[filled].exp(), double[filled].exp(), absolute=TOLERANCE)


def sure_beliefs(num_source: int = 400) -> tuple[Beliefs, Tensor]:
    """Best candidates of any probability, hardly anything to the others; links of half of them."""
    doubt = torch.logspace(-12, -0.31, num_source, dtype=torch.float64)
    others = torch.tensor([0.7, 0.2, 1e-7, 1e-25])
    probs = torch.cat([1 - doubt.unsqueeze(1), doubt.unsqueeze(1) * others], dim=1)
    probs[::50] = 0
    links = torch.stack([torch.arange(0, num_source, 2)] * 2, dim=1)
    links[::5, 1] = num_source  # nobody's best
    targets = torch.arange(num_source).unsqueeze(1) + torch.arange(5)
    return Beliefs(targets, probs), links


def test_calibration_keeps_every_candidate() -> None:
    beliefs, links = sure_beliefs()
    single, double = both(lambda given: calibrated(given, links), beliefs)
    assert torch.equal(single.probs > 0, beliefs.probs.float() > 0)
    # logits are off by a rounding of the distance to 1, which is MARGIN at least
    best = double.probs[:, 0]
    assert_near(
        single.probs[:, 0], best, absolute=best * (1 - best) * ROUNDOFF / MARGIN
    )
    # what is left to the others is a difference, too, and kept in proportion
    off = (2 * ROUNDOFF / MARGIN) * double.probs[:, 1:]
    assert_near(single.probs[:, 1:], double.probs[:, 1:], absolute=off)


SWEEPS_ERROR = 1e3 * ROUNDOFF
"""Of beliefs after two rounds of two updates, each of sums of some 20 and logits of some 50."""


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_two_way_step(seed: int, noise: float) -> None:
    def reported(problem: Aligned) -> JointReport:
        step = TwoWayStep(PARIS(problem.pair), num_candidates=10)
        return step(problem.similarity, visible(problem))

    single, double = both(reported, aligned(seed, num_entities=40, noise=noise))
    assert single.beliefs.probs.dtype == torch.float32
    assert single.ranking is not None and double.ranking is not None
    assert_near(
        single.ranking.scores.exp(), double.ranking.scores.exp(), absolute=SWEEPS_ERROR
    )
    assert_near(single.beliefs.probs, double.beliefs.probs, absolute=SWEEPS_ERROR)
    assert_near(single.compatibility, double.compatibility, absolute=SWEEPS_ERROR)
    assert single.labels.tolist() == double.labels.tolist()
    assert single.label_weights is not None and double.label_weights is not None
    assert_near(single.label_weights, double.label_weights, absolute=SWEEPS_ERROR)
