"""Literals as evidence: against loops over shared values."""

import math
from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emea.baselines.paris_reasoner import ParisReasoner
from emea.data.graph_pair import GraphPair
from emea.literals.match_literals import EqualLiterals
from emea.matching.pair_table import PairTable
from emea.rules.paris import PARIS
from tests.literals.pairs_with_values import Facts, graph_with_values, pair_with_values

NUM = 4
facts = st.lists(
    st.tuples(st.integers(0, NUM - 1), st.integers(0, 1), st.sampled_from("abcdef")),
    min_size=3,
    max_size=12,
    unique=True,
)


def matched(source: Facts, target: Facts) -> GraphPair:
    pair = pair_with_values(
        graph_with_values(NUM, source), graph_with_values(NUM, target)
    )
    return replace(pair, literals=EqualLiterals(pairs_per_triple=1000)(pair))


def all_pairs() -> PairTable:
    shape = NUM, NUM
    everyone = torch.arange(NUM).repeat(NUM, 1)
    return PairTable(
        everyone, torch.zeros(shape), torch.ones(shape, dtype=torch.bool), NUM
    )


def by_hand(
    pair: GraphPair, source: Facts, target: Facts, probs: torch.Tensor
) -> list[list[float]]:
    """Eq. 19 over shared values, with inclusions of attributes (Eq. 12) plus a half."""
    assert pair.literals is not None
    found = pair.literals
    belief = {
        found.source.entity_name(left).strip('"'): prob
        for (left, _), prob in zip(found.pairs.tolist(), found.probs, strict=True)
    }
    of_source = probs.sum(1).clamp(max=1).tolist()
    of_target = probs.sum(0).clamp(max=1).tolist()

    def share(facts: Facts, attribute: int) -> float:
        values = [value for _, name, value in facts if name == attribute]
        return len(set(values)) / len(values)

    def size(facts: Facts, attribute: int, matched: list[float]) -> float:
        rows = [(e, v) for e, name, v in facts if name == attribute]
        return 0.5 + sum(
            matched[entity] * belief.get(value, 0.0) for entity, value in rows
        )

    def both(a: int, b: int) -> tuple[float, float]:
        joined = [
            (e, e2, v)
            for e, name, v in source
            for e2, name2, v2 in target
            if (name, name2) == (a, b) and v == v2 and v in belief
        ]
        total = sum(float(probs[e, e2]) * belief[v] for e, e2, v in joined)
        claims: dict[tuple[int, str], float] = {}
        for e, e2, v in joined:
            claims[e2, v] = claims.get((e2, v), 0.0) + float(probs[e, e2]) * belief[v]
        back = sum(min(1.0, claim) for claim in claims.values())
        return (
            min(1.0, total / size(source, a, of_source)),
            min(1.0, back / size(target, b, of_target)),
        )

    doubt = [[0.0] * NUM for _ in range(NUM)]
    for e, a, v in source:
        for e2, b, v2 in target:
            if v == v2 and v in belief:
                forth, back = both(a, b)
                one = back * share(source, a) * belief[v]
                other = forth * share(target, b) * belief[v]
                doubt[e][e2] += math.log1p(-min(one, 1 - 1e-7)) + math.log1p(
                    -min(other, 1 - 1e-7)
                )
    return doubt


@settings(max_examples=30)
@given(facts, facts, st.integers(0, 2**32 - 1))
def test_the_evidence_of_values_is_that_of_loops(
    source: Facts, target: Facts, seed: int
) -> None:
    pair = matched(source, target)
    probs = torch.rand(NUM, NUM, generator=torch.Generator().manual_seed(seed)) / NUM
    model = PARIS(pair).pair_evidence()
    model.num_carriers, model.least_belief = 100, 0.0
    found = model(all_pairs(), probs).log_doubt
    wanted = torch.tensor(by_hand(pair, source, target, probs))
    torch.testing.assert_close(found, wanted, rtol=2e-4, atol=1e-5)


def test_paris_aligns_by_values_and_structure_without_seeds() -> None:
    # 0, 1 and 2 share values; 3 has none, but is the only neighbour of 0 by relation 0
    edges = [(0, 0, 3), (1, 0, 2)]
    source = graph_with_values(4, [(e, 0, f"n{e}") for e in range(3)], edges)
    target = graph_with_values(
        4, [(3 - e, 0, f"N{e}") for e in range(3)], [(3, 0, 0), (2, 0, 1)]
    )
    pair = pair_with_values(source, target)
    pair = replace(pair, literals=EqualLiterals()(pair))
    nothing = torch.zeros(0, 2, dtype=torch.int64)
    found = ParisReasoner(pair).align(nothing, lambda links: None, lambda report: None)  # type: ignore
    assert found.targets.tolist() == [3, 2, 1, 0]
    assert len(found.targets) == pair.source.num_entities
    assert np.all(found.probs.numpy() > 0.5)
