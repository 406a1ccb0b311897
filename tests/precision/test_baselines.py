"""PARIS, PRASE and their parts: single precision agrees with double precision."""

from itertools import product

import pytest
import torch
from torch import Tensor

from emea.baselines.paris_reasoner import ParisReasoner
from emea.baselines.prase import left_over_pairs
from emea.baselines.reasoner import ALMOST_SURE, Fusion, fixed_log_doubt
from emea.data.arrays import NO_MATCH
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Matching
from emea.matching.similarity import Cosine, Similarity
from emea.rules.directed_triples import DirectedTriples
from emea.rules.implied_pairs import FIXED_POINT, ImpliedPairs

from ..baselines.random_pairs import overlapping_pair
from .both_precisions import ROUNDOFF, assert_near, both
from .embeddings import COSINE_ERROR, HARD_EMBEDDINGS
from .stars import HUGE, SMALL, twin_stars


def exact_functionality(triples: DirectedTriples) -> Tensor:
    """From the counts: what single precision keeps of their quotient is rounded."""
    sizes = triples.relation_sizes.double()
    return (triples.inverse_functionality.double() * sizes).round() / sizes


def in_double(pair: GraphPair) -> ParisReasoner:
    rule = ParisReasoner(pair)
    for groups, triples in zip(rule.groups, (rule.source, rule.target), strict=True):
        groups.inverse_functionality = exact_functionality(triples)
    return rule


def assert_same_matching(single: Matching, double: Matching, num_pieces: int) -> None:
    assert torch.equal(single.targets, double.targets)
    # each piece of evidence is off by two roundings, each logarithm by half a step
    assert_near(
        single.probs,
        double.probs,
        absolute=num_pieces * (2 * ROUNDOFF + 1 / FIXED_POINT),
    )


@pytest.mark.parametrize(
    ("num_leaves", "prob"), [*product([SMALL], [0.1, 0.3, 1 - 1e-8, 1.0]), (HUGE, 0.1)]
)
def test_leaves_of_any_number_match_their_hubs(num_leaves: int, prob: float) -> None:
    pair = twin_stars(num_leaves)
    twins = torch.arange(num_leaves + 1)
    twins[0] = NO_MATCH
    probs = torch.full((num_leaves + 1,), prob, dtype=torch.float64)
    probs[0] = 0
    matching = Matching(twins, probs, num_leaves + 1)
    nobody = Matching(
        torch.full_like(twins, NO_MATCH), torch.zeros_like(probs), num_leaves + 1
    )
    rules = ParisReasoner(pair), in_double(pair)
    found = [rule.iterated(nobody, matching, initial=True) for rule in rules]
    assert found[0].targets[0] == 0
    assert_same_matching(found[0], found[1], 4)


def iterated(rule: ParisReasoner, known: Matching, num_iterations: int) -> Matching:
    matching = known
    for step in range(num_iterations):
        matching = rule.iterated(known, matching, initial=step == 0)
    return matching


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_paris_comes_to_the_same_fixed_point(seed: int) -> None:
    pair = overlapping_pair(seed, 40)
    known = Matching.of_links(torch.from_numpy(pair.links[::3].copy()), 40, 40)
    single, double = (
        iterated(rule, known, 10) for rule in (ParisReasoner(pair), in_double(pair))
    )
    assert len(double.sources) > len(known.sources)
    assert_same_matching(single, double, 10)


def test_inclusions_are_numbers_where_no_triple_is_matched() -> None:
    # entity 0 is not matched, and looks as if it were target 0: a share of no triples at all
    matching = Matching(
        torch.tensor([NO_MATCH, 1, 2]), torch.tensor([0, 0.5, 0.5]).double(), 3
    )
    included = ParisReasoner(twin_stars(2)).inclusions(matching)
    shares = torch.tensor(list(included.as_dict().values()))
    assert ((shares >= 0) & (shares <= 1)).all()
    assert (shares == 0).any()


@pytest.mark.parametrize(
    "prob", [0.0, 1e-30, 1e-10, 0.1, 0.5, 1 - 1e-8, ALMOST_SURE, 1.0]
)
def test_fixed_point_keeps_a_probability(prob: float) -> None:
    log_doubt = fixed_log_doubt(prob).double() / FIXED_POINT
    assert float(-torch.expm1(log_doubt)) == pytest.approx(
        min(prob, ALMOST_SURE), abs=2**-33
    )
    # what is left in doubt has its digits, too
    assert float(log_doubt.exp()) == pytest.approx(1 - min(prob, ALMOST_SURE), rel=1e-4)


@pytest.mark.parametrize("embeddings", HARD_EMBEDDINGS.values(), ids=HARD_EMBEDDINGS)
@pytest.mark.parametrize("weight", [0.0, 0.2, 1.0])
def test_fusion(embeddings: tuple[Tensor, Tensor], weight: float) -> None:
    ids = torch.arange(40)
    doubts = fixed_log_doubt(torch.linspace(0, 1, 40))

    def mixed(similarity: Similarity) -> Tensor:
        fused = Fusion(similarity, weight)(ImpliedPairs(ids, ids, doubts))
        return -torch.expm1(fused.log_doubt.double() / FIXED_POINT)

    single, double = (mixed(one) for one in both(Cosine(), *embeddings))
    assert_near(single, double, absolute=weight * COSINE_ERROR + 1 / FIXED_POINT)


def test_left_over_pairs() -> None:
    source, target = HARD_EMBEDDINGS["ordinary"]
    target = torch.cat([source[::2] + target[:20], target[20:]])
    matching = Matching.of_links(torch.tensor([[0, 0], [1, 30]]), 40, 50)
    single, double = (
        left_over_pairs(one, matching) for one in both(Cosine(), source, target)
    )
    assert (double.targets >= 0).sum() > 10
    assert torch.equal(single.targets, double.targets)
    assert_near(single.probs, double.probs, absolute=COSINE_ERROR)
