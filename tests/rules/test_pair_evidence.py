"""Evidence for the pairs of a table, against dictionaries."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.matching.pair_table import PairTable
from emea.rules.directed_triples import DirectedTriples
from emea.rules.pair_evidence import EvidenceModel, PairEvidence

from ..baselines.random_pairs import overlapping_pair
from ..matching.random_tables import pairs_of, random_table
from .literal_evidence import LiteralEvidence
from .literal_paris import Inclusions, pairs


def evidence_of(
    pair: GraphPair, table: PairTable, probs: Tensor, **options: float
) -> PairEvidence:
    source, target = DirectedTriples(pair.source), DirectedTriples(pair.target)
    model = EvidenceModel(source, target, features=["rare_coverage"])
    vars(model).update(options)
    return model(table, probs)


def believed(
    rng: np.random.Generator, pair: GraphPair, width: int
) -> tuple[PairTable, Tensor]:
    """Candidates, the links among some of them, with beliefs of any size."""
    table = random_table(rng, pair.source.num_entities, pair.target.num_entities, width)
    probs = torch.from_numpy(rng.random(table.targets.shape))
    sure = rng.random(table.num_source) < 0.5
    probs[torch.from_numpy(sure)] *= 0.02
    marked = table.marked(torch.from_numpy(pair.links.copy()))
    return table, torch.where(marked, 0.95, probs) * table.filled


def assert_included(found: PairEvidence, expected: Inclusions) -> None:
    included = found.subsumption.as_dict()
    for key in included.keys() | expected.keys():
        both = expected.get(key, (0.0, 0.0))
        assert included.get(key, (0.0, 0.0)) == pytest.approx(both, rel=1e-5, abs=1e-9)


def assert_same(
    found: PairEvidence, literal: LiteralEvidence, table: PairTable
) -> None:
    assert_included(found, literal.included)
    for pair, place in pairs_of(table).items():
        doubt = literal.log_doubt(*pair)
        assert found.log_doubt[place].item() == pytest.approx(doubt, rel=1e-4, abs=1e-9)
        assert found.features["coverage"][place].item() == pytest.approx(
            literal.coverage(*pair), rel=1e-5
        )
        rare = literal.coverage(*pair, rare=True)
        assert found.features["rare_coverage"][place].item() == pytest.approx(
            rare, rel=1e-5
        )


def compared(
    rng: np.random.Generator, pair: GraphPair, width: int, **options: float
) -> LiteralEvidence:
    table, probs = believed(rng, pair, width)
    beliefs = {key: probs[place].item() for key, place in pairs_of(table).items()}
    literal = LiteralEvidence(pair, beliefs, **options)  # type: ignore[arg-type]
    found = evidence_of(pair, table, probs, **options)
    assert_same(found, literal, table)
    return literal


OPTIONS = [
    {},
    {"of_matched": False},
    {"smoothing": 3.0},
    {"num_carriers": 1},
    {"num_carriers": 2, "least_belief": 0.3},
    {"least_belief": 0.0},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_dictionaries(seed: int, options: dict[str, float]) -> None:
    literal = compared(
        np.random.default_rng(seed), overlapping_pair(seed, 9), 5, **options
    )
    assert literal.carriers


@given(pairs(), st.integers(0, 2**32), st.integers(1, 7), st.sampled_from(OPTIONS))
def test_equals_dictionaries_on_odd_graphs(
    pair: GraphPair, seed: int, width: int, options: dict[str, float]
) -> None:
    compared(np.random.default_rng(seed), pair, width, **options)


def test_empty_slots_say_nothing() -> None:
    rng, pair = np.random.default_rng(4), overlapping_pair(4, 9)
    table, probs = believed(rng, pair, 5)
    elsewhere = torch.from_numpy(rng.integers(0, table.num_target, table.targets.shape))
    moved = replace(table, targets=torch.where(table.filled, table.targets, elsewhere))
    assert not torch.equal(moved.targets, table.targets)
    one, other = evidence_of(pair, table, probs), evidence_of(pair, moved, probs)
    for name in ("noisy_or", "coverage"):
        values, others = one.features[name], other.features[name]
        torch.testing.assert_close(values[table.filled], others[table.filled])
    assert_included(one, other.subsumption.as_dict())
