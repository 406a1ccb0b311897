"""Hubs: relations of functionality 1 and of one over all their triples, and beliefs of any size."""

from functools import cache

import numpy as np
import pytest
import torch

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs

from .both_precisions import ROUNDOFF


def star(num_leaves: int) -> KnowledgeGraph:
    """Entity 0 with a relation to all others, another to every second; a third in a small ring."""
    leaves = np.arange(1, num_leaves + 1)
    hub, ring = np.zeros_like(leaves), leaves[:30]
    parts = [
        np.stack([hub, np.zeros_like(leaves), leaves], axis=1),
        np.stack([hub, np.ones_like(leaves), leaves], axis=1)[::2],
        np.stack([ring, np.full_like(ring, 2), np.roll(ring, 1)], axis=1),
    ]
    return KnowledgeGraph(np.concatenate(parts), num_leaves + 1, 3)


@cache
def twin_stars(num_leaves: int) -> GraphPair:
    """The same star on both sides."""
    graph = star(num_leaves)
    return GraphPair("stars", graph, graph, np.empty((0, 2), dtype=np.int64))


SMALL, HUGE = 30, 100_000
STRENGTHS = {"hopeless": 1e-30, "faint": 1e-6, "even": 0.3, "sure": 1 - ROUNDOFF}

of_any_strength = pytest.mark.parametrize("strength", STRENGTHS.values(), ids=STRENGTHS)
on_hard_stars = pytest.mark.parametrize(
    ("num_leaves", "strength"),
    [
        *((SMALL, strength) for strength in STRENGTHS.values()),
        (HUGE, STRENGTHS["even"]),
    ],
    ids=[*STRENGTHS, "hub"],
)


def twin_beliefs(num_entities: int, strength: float) -> Beliefs:
    """Beliefs of each entity in its twin, with a given probability, and a little in the next one.

    Some have nothing to believe in, and some are certain of the wrong one.
    """
    twins = torch.arange(num_entities)
    targets = torch.stack([twins, (twins + 1) % num_entities], dim=1)
    probs = torch.tensor([strength, (1 - strength) * 1e-3]).repeat(num_entities, 1)
    probs[5::10] = 0
    probs[6::10] = torch.tensor([0.0, 1.0])
    return Beliefs(targets, probs)
