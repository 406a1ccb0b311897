"""PARIS against counts by hand and against dictionaries."""

from unittest.mock import patch

import numpy as np
import pytest
import torch

from emea.baselines.paris_reasoner import ParisReasoner
from emea.baselines.reasoner import ReasoningReport
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.matching.beliefs import Matching
from emea.rules import implied_pairs

from .literal_paris import LiteralPARIS
from .random_pairs import overlapping_pair


def no_encoder(links: torch.Tensor) -> None:
    raise AssertionError("PARIS trains nothing")


def aligned(
    paris: ParisReasoner, seeds: np.ndarray
) -> tuple[Matching, list[ReasoningReport]]:
    reports: list[ReasoningReport] = []
    links = torch.from_numpy(np.array(seeds).reshape(-1, 2))
    return paris.align(links, no_encoder, reports.append), reports  # type: ignore[arg-type]


def as_dict(matching: Matching) -> dict[int, tuple[int, float]]:
    pairs = zip(
        matching.pairs().tolist(),
        matching.probs[matching.sources].tolist(),
        strict=True,
    )
    return {x: (y, p) for (x, y), p in pairs}


def test_a_chain_by_hand() -> None:
    # r(0, 1), r(1, 2) and the same with entities 2, 0, 1: each r and r^-1 has functionality 1
    source = KnowledgeGraph(np.array([[0, 0, 1], [1, 0, 2]]), 3, 1)
    target = KnowledgeGraph(np.array([[2, 0, 0], [0, 0, 1]]), 3, 1)
    paris = ParisReasoner(
        GraphPair("chain", source, target, np.empty((0, 2), dtype=np.int64))
    )
    seed = Matching.of_links(torch.tensor([[0, 2]]), 3, 3)
    # one seed shows no relation pair: each has inclusion 0.1, so 1 gets 1 - 0.9 * 0.9
    first = paris.iterated(seed, seed, initial=True)
    assert as_dict(first) == {0: (2, 1.0), 1: (0, pytest.approx(0.19))}
    # now r(0, 1) is matched by r(2, 0): inclusion 0.19 / 0.19 either way. 1 hears the seed with
    # certainty, 2 hears 1 with probability 0.19, in r and of r alone
    second = paris.iterated(seed, first)
    assert as_dict(second) == {
        0: (2, 1.0),
        1: (0, pytest.approx(1.0, abs=1e-6)),
        2: (1, pytest.approx(1 - (1 - 0.19) ** 2)),
    }
    matching, reports = aligned(paris, np.array([[0, 2]]))
    assert matching.pairs().tolist() == [[0, 2], [1, 0], [2, 1]]
    assert reports[-1].num_changes == 0


@pytest.mark.parametrize("seed", range(12))
def test_equals_dictionaries(seed: int) -> None:
    pair = overlapping_pair(seed)
    paris = ParisReasoner(pair)
    literal = LiteralPARIS(pair, paris.theta, paris.retention)
    links = torch.from_numpy(pair.links[:3].copy())
    known = Matching.of_links(links, pair.source.num_entities, pair.target.num_entities)
    matching, expected = known, as_dict(known)
    for iteration in range(5):
        initial = iteration < 2
        matching = paris.iterated(known, matching, initial)
        default = paris.initial_inclusion if initial else 0.0
        expected = literal.iterated(
            as_dict(known), expected, default, paris.least_evidence
        )
        found = as_dict(matching)
        assert {x: y for x, (y, _) in found.items()} == {
            x: y for x, (y, _) in expected.items()
        }
        for x, (_, prob) in found.items():
            assert prob == pytest.approx(expected[x][1], abs=1e-5)
    assert len(found) > 3  # the test says something


def test_does_not_depend_on_the_blocks() -> None:
    pair = synthetic_pair(num_entities=150)
    whole, _ = aligned(ParisReasoner(pair), pair.links[:20])
    with patch.dict(implied_pairs.EVIDENCE_PER_BLOCK, cpu=7):
        parts, _ = aligned(ParisReasoner(pair), pair.links[:20])
    assert torch.equal(whole.targets, parts.targets)
    assert torch.equal(whole.probs, parts.probs)


@pytest.mark.parametrize(("retention", "num_changes"), [(0.0, 2), (0.9, 0)])
def test_settles_where_undamped_matchings_alternate(
    retention: float, num_changes: int
) -> None:
    # the seeds 2 and 3 prove the relation; 0 and 1 vouch for each other, beginning with 0 alone
    graph = KnowledgeGraph(np.array([[0, 0, 1], [2, 0, 3]]), 4, 1)
    pair = GraphPair("two edges", graph, graph, np.empty((0, 2), dtype=np.int64))
    paris = ParisReasoner(pair)
    paris.retention, paris.initial_iterations, paris.max_iterations = retention, 0, 9
    known = Matching.of_links(torch.tensor([[2, 2], [3, 3]]), 4, 4)
    first = Matching(
        torch.tensor([0, -1, -1, -1]), torch.tensor([0.9, 0, 0, 0]).double(), 4
    )
    start = known.joined(first)
    reports: list[ReasoningReport] = []
    matching = paris.settled(known, start, reports.append)
    assert reports[-1].num_changes == num_changes
    assert len(matching.sources) == (3 if num_changes else 4)


def test_links_between_equal_ids_are_no_easier() -> None:
    pair = synthetic_pair(num_entities=300)
    rng = np.random.default_rng(0)
    hits: dict[str, list[float]] = {"random": [], "equal": []}
    for _ in range(8):
        names = rng.permutation(pair.source.num_entities)
        others = rng.permutation(pair.target.num_entities)
        hits["random"].append(hit_of_renamed(pair, names, others))
        # linked entities get the same id, the others what is left
        rest = np.setdiff1d(
            np.arange(pair.target.num_entities), names[pair.links[:, 0]]
        )
        free = np.setdiff1d(np.arange(pair.target.num_entities), pair.links[:, 1])
        others[pair.links[:, 1]], others[free] = (
            names[pair.links[:, 0]],
            rng.permutation(rest),
        )
        hits["equal"].append(hit_of_renamed(pair, names, others))
    assert np.mean(hits["equal"]) == pytest.approx(np.mean(hits["random"]), abs=0.03)


def hit_of_renamed(pair: GraphPair, names: np.ndarray, others: np.ndarray) -> float:
    renamed = pair.relabelled(names, others)
    links = np.stack([names[pair.links[:, 0]], others[pair.links[:, 1]]], axis=1)
    matching, _ = aligned(ParisReasoner(renamed), links[:30])
    return float((matching.targets.numpy()[links[:, 0]] == links[:, 1]).mean())


def test_without_common_structure_only_seeds_are_matched() -> None:
    empty = KnowledgeGraph(np.empty((0, 3), dtype=np.int64), 5, 1)
    pair = GraphPair("empty", empty, empty, np.empty((0, 2), dtype=np.int64))
    matching, reports = aligned(ParisReasoner(pair), np.array([[1, 2]]))
    assert matching.pairs().tolist() == [[1, 2]]
    assert len(reports) == 2
