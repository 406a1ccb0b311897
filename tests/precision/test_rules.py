"""Evidence, inclusions and rules in single against double precision."""

from itertools import product

import pytest
import torch
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairTable
from emea.rules.avoid_conflict import AvoidConflict
from emea.rules.directed_triples import DirectedTriples
from emea.rules.neighbour_join import join_neighbours
from emea.rules.pair_evidence import SURE, EvidenceModel, PairEvidence, log_doubt
from emea.rules.paris import PARIS, mapping_compatibility
from emea.rules.rule import RuleView
from emea.rules.subsumption import Subsumption, estimate_subsumption, matched_sizes
from emea.rules.support import Grounds, support_of

from ..rules.literal_avoid_conflict import bare_pair
from .both_precisions import ROUNDOFF, assert_near, both, in_precision
from .stars import (
    HUGE,
    SMALL,
    STRENGTHS,
    of_any_strength,
    on_hard_stars,
    twin_beliefs,
    twin_stars,
)

HARD_PROBS = [0.0, 1e-38, 1e-30, 1e-5, 0.3, 0.999, 1 - 1e-6, 1 - ROUNDOFF, 1.0]


Options = dict[str, bool | str]
OWN: Options = {}
BLANKET: Options = {"markov_blanket": True}


def test_one_piece_of_evidence() -> None:
    grid = torch.tensor(
        list(product(HARD_PROBS, HARD_PROBS, [1e-5, 1.0], [1.0], HARD_PROBS))
    )
    single, double = both(log_doubt, *grid.T)
    # two products, then a logarithm that enlarges the error by what is left of 1
    by_source, by_target = (
        grid.double()[:, parts].prod(1) for parts in ([1, 2, 4], [0, 3, 4])
    )
    left = ((1 - part).clamp(min=1 - SURE) for part in (by_source, by_target))
    off = 4 * ROUNDOFF * sum(1 / part for part in left)
    assert_near(single, double, relative=4 * ROUNDOFF, absolute=off)
    # the probability, to which the logarithm is only a way, is as good as the inputs
    assert_near(-torch.expm1(single), -torch.expm1(double), absolute=12 * ROUNDOFF)
    # next to no evidence is none the less as much as it is
    faint = double > -1e-20
    assert_near(single[faint], -(by_source + by_target)[faint], relative=8 * ROUNDOFF)


def assert_same_inclusions(
    single: Subsumption, double: Subsumption, relative: float
) -> None:
    assert torch.equal(single.keys, double.keys)
    assert_near(single.source_in_target, double.source_in_target, relative)
    assert_near(single.target_in_source, double.target_in_source, relative)


@of_any_strength
@pytest.mark.parametrize("num_leaves", [SMALL, 5000])
@pytest.mark.parametrize(
    "matched", [True, False], ids=["of matched triples", "of all triples"]
)
def test_inclusions(num_leaves: int, strength: float, matched: bool) -> None:
    graph = DirectedTriples(twin_stars(num_leaves).source)
    beliefs = twin_beliefs(num_leaves + 1, strength)
    join = join_neighbours(graph, graph, beliefs)

    def estimated(given: Beliefs, triples: DirectedTriples) -> Subsumption:
        sizes = (
            (matched_sizes(triples, given.probs.sum(1)) + 0.5,) * 2 if matched else None
        )
        return estimate_subsumption(join, given, triples, triples, sizes=sizes)

    single, double = both(estimated, beliefs, graph)
    # of a relation's triples, each joined with a few of the other side, and of their number
    assert_same_inclusions(single, double, relative=(8 * num_leaves + 8) * ROUNDOFF)


def test_functionality_of_a_hub() -> None:
    # a quotient of counts, which single precision has exactly up to 2^24
    found = DirectedTriples(twin_stars(HUGE).source).inverse_functionality.double()
    exact = torch.tensor([1, 1, 1, 1 / HUGE, 2 / HUGE, 1], dtype=torch.float64)
    assert_near(found, exact, relative=ROUNDOFF)


def paris_values(pair: GraphPair, beliefs: Beliefs, options: Options) -> Tensor:
    rule = PARIS(pair, **options)  # type: ignore[arg-type]
    rule.source.to(beliefs.probs.dtype)
    rule.target.to(beliefs.probs.dtype)
    rule.prepare(RuleView(beliefs, torch.zeros(beliefs.num_source, 1)))
    return rule(beliefs)[:, :, 0]


@pytest.mark.parametrize(
    ("num_leaves", "strength", "options"),
    [
        *product([SMALL], STRENGTHS.values(), [OWN, BLANKET]),
        *product([3000], STRENGTHS.values(), [OWN]),
        *product([3000], [0.3], [BLANKET]),
        (HUGE, 0.3, OWN),
    ],
)
def test_paris(num_leaves: int, strength: float, options: Options) -> None:
    pair, beliefs = twin_stars(num_leaves), twin_beliefs(num_leaves + 1, strength)
    single, double = both(lambda given: paris_values(pair, given, options), beliefs)
    # a sum of n logarithms is off by n roundings of itself; x exp(-x) is less than 1/2, so the
    # probability it stands for is off by half as many; the blanket adds as many probabilities
    num_pieces = 4 * num_leaves
    off = (
        num_pieces
        * ROUNDOFF
        * (1 + (2 * double if options.get("markov_blanket") else 0))
    )
    assert_near(single, double, absolute=off)
    faint = (double < 1e-6) & (double > 0)
    if faint.any():
        relative = 4 * num_pieces * ROUNDOFF
        assert_near(single[faint], double[faint], relative=relative)


@pytest.mark.parametrize("num_leaves", [SMALL, 3000])
def test_compatibility_of_a_mapping(num_leaves: int) -> None:
    pair = twin_stars(num_leaves)
    targets = torch.arange(num_leaves + 1)
    targets[5::10] = -1
    targets[6::10] -= 1
    values = []
    for dtype in (torch.float32, torch.float64):
        rule = PARIS(pair)
        rule.source.to(dtype)
        rule.target.to(dtype)
        values.append(mapping_compatibility(rule, targets))
    assert values[1].dtype == torch.float64
    assert_near(*values, absolute=4 * num_leaves * ROUNDOFF)


def evidence_of(
    pair: GraphPair, table: PairTable, smoothing: float = 0.5
) -> PairEvidence:
    graphs = DirectedTriples(pair.source), DirectedTriples(pair.target)
    graphs = in_precision(graphs, table.scores.dtype)
    model = EvidenceModel(*graphs)
    model.least_belief, model.smoothing = 0.0, smoothing
    return model(table, table.scores)


@on_hard_stars
def test_evidence_for_pairs(num_leaves: int, strength: float) -> None:
    beliefs = twin_beliefs(num_leaves + 1, strength)
    table = PairTable(beliefs.targets, beliefs.probs, beliefs.probs > 0, num_leaves + 1)
    pair = twin_stars(num_leaves)
    single, double = both(lambda given: evidence_of(pair, given), table)
    off = (20 * num_leaves + 20) * ROUNDOFF
    assert_same_inclusions(single.subsumption, double.subsumption, relative=off)
    # the sums over neighbours inherit that, and a certain piece saturates a little earlier
    assert_near(
        single.features["coverage"], double.features["coverage"], relative=2 * off
    )
    noisy_or = [-torch.expm1(one.log_doubt) for one in (single, double)]
    assert_near(*noisy_or, absolute=2 * off)
    assert_near(single.log_doubt, double.log_doubt, relative=2 * off + 0.02)


def test_no_matched_triple_is_no_inclusion() -> None:
    # nobody believes in both ends of a triple: of nothing, nothing is included
    pair, beliefs = twin_stars(3), twin_beliefs(4, 0.5)
    beliefs.probs[1:] = 0
    table = PairTable(beliefs.targets, beliefs.probs, beliefs.targets >= 0, 4)
    found = evidence_of(pair, table, smoothing=0.0)
    assert len(found.subsumption.keys)
    assert not found.subsumption.source_in_target.any()
    assert not found.log_doubt.any()
    assert found.features["coverage"].isfinite().all()


@of_any_strength
@pytest.mark.parametrize("mappings", ["best", "expected"])
def test_avoid_conflict(strength: float, mappings: str) -> None:
    beliefs = twin_beliefs(40, strength)
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(40, 8, generator=generator, dtype=torch.float64)

    def values(given: Beliefs) -> Tensor:
        rule = AvoidConflict(bare_pair(40, 40), 5, mappings)
        rule.prepare(RuleView(given, embeddings))
        return rule(given)

    single, double = both(values, beliefs)
    # five factors of two claims each, in the own subset and in those of up to forty others
    assert_near(single, double, absolute=41 * (5 * 3 + 4) * ROUNDOFF)


@of_any_strength
def test_support_of_a_hub(strength: float) -> None:
    num_leaves = 100
    pair, beliefs = twin_stars(num_leaves), twin_beliefs(num_leaves + 1, strength)
    rule = PARIS(pair)
    rule.prepare(RuleView(beliefs, torch.zeros(beliefs.num_source, 1)))
    included = rule.inclusions()
    exact = in_precision((rule.source, rule.target, beliefs), torch.float64)
    single = support_of(Grounds(rule.source, rule.target, beliefs, included), 0, 0)
    double = support_of(Grounds(*exact, included), 0, 0)
    assert len(single.pieces) == len(double.pieces)
    assert single.value == pytest.approx(double.value, rel=32 * ROUNDOFF)
