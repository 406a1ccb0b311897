"""The entities that an update recomputes: what changed and its surroundings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from emea.data.arrays import NO_MATCH, IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.versions import GraphVersions
from emea.matching.beliefs import Beliefs

FORMER_PROB = 0.1
"""Former candidates of at least this probability belong to the surroundings of an entity."""

Masks = tuple[np.ndarray, np.ndarray]
"""Whether each source entity and each target entity belongs to a set."""


@dataclass(frozen=True, eq=False)
class Affected:
    """Marks the entities of the new graphs that a change affects.

    Args:
        source: ``[num_source]`` bool.
        target: ``[num_target]`` bool.
    """

    source: np.ndarray
    target: np.ndarray

    @property
    def share(self) -> float:
        """Share of the affected entities among all entities."""
        num = len(self.source) + len(self.target)
        return float(self.source.sum() + self.target.sum()) / max(1, num)

    def joined(self, links: IntArray) -> "Affected":
        """Return these entities and those of the links."""
        source, target = self.source.copy(), self.target.copy()
        source[links[:, 0]] = True
        target[links[:, 1]] = True
        return Affected(source, target)


def affected_entities(
    versions: tuple[GraphVersions, GraphVersions],
    beliefs: Beliefs,
    pairs: IntArray,
    hops: int = 0,
) -> Affected:
    """Return the entities whose evidence a change of the graphs or labels touches.

    These are new entities, the ends of added and removed triples, the entities of changed pairs
    with their neighbours, and neighbours of all these within some hops. Probable former candidates
    of affected entities on the other side are affected, too, and so are the entities that lost a
    candidate because it no longer exists.

    Args:
        versions: Both versions of the source graph and of the target graph.
        beliefs: Beliefs of the earlier run, in the ids of the earlier versions.
        pairs: ``[n, 2]`` links and rejected pairs that the run did not have, in the later ids.
        hops: Distance up to which neighbours are affected.
    """
    changed = []
    for column, one in enumerate(versions):
        entities = np.zeros(one.new.num_entities, dtype=bool)
        entities[pairs[:, column]] = True
        entities = _with_neighbours(one.new, entities) | one.is_changed()
        for _ in range(hops):
            entities = _with_neighbours(one.new, entities)
        changed.append(entities)
    source, target = _with_former(changed, versions, beliefs)
    return Affected(source, target)


def _with_neighbours(graph: KnowledgeGraph, entities: np.ndarray) -> np.ndarray:
    """Return the entities and their neighbours."""
    heads, tails = graph.triples[:, 0], graph.triples[:, 2]
    found = entities.copy()
    found[tails[entities[heads]]] = True
    found[heads[entities[tails]]] = True
    return found


def _with_former(
    changed: Sequence[np.ndarray], versions: tuple[GraphVersions, GraphVersions], beliefs: Beliefs
) -> Masks:
    """Add the former candidates of changed entities, and entities whose candidates are gone."""
    probs, targets = beliefs.probs.numpy(), beliefs.targets.numpy()
    rows, slots = np.nonzero(probs >= FORMER_PROB)
    best = np.flatnonzero(probs.max(1, initial=0) > 0)
    rows, slots = np.append(rows, best), np.append(slots, probs[best].argmax(1))
    ends = versions[0].new_entities[rows], versions[1].new_entities[targets[rows, slots]]
    is_gone = [side == NO_MATCH for side in ends]
    is_changed = [
        gone | entities[np.where(gone, 0, side)]
        for gone, entities, side in zip(is_gone, changed, ends, strict=True)
    ]
    found = [entities.copy() for entities in changed]
    for side, other in ((0, 1), (1, 0)):
        found[side][ends[side][is_changed[other] & ~is_gone[side]]] = True
    return found[0], found[1]


def moved_beliefs(beliefs: Beliefs, versions: tuple[GraphVersions, GraphVersions]) -> Beliefs:
    """Return beliefs of an earlier run in the ids of the later graphs.

    Rows of new entities are empty. Candidates that no longer exist move behind the others and have
    probability 0.
    """
    source, target = versions
    known = source.old_entities != NO_MATCH
    old = torch.from_numpy(source.old_entities[known])
    moved = torch.from_numpy(target.new_entities)[beliefs.targets[old]]
    order = torch.argsort((moved == NO_MATCH).long(), dim=1, stable=True)
    moved, probs = moved.gather(1, order), beliefs.probs[old].gather(1, order)
    probs = torch.where(moved == NO_MATCH, 0.0, probs)
    moved = torch.where(moved == NO_MATCH, moved[:, :1].clamp(min=0), moved)
    shape = source.new.num_entities, beliefs.num_candidates
    targets, rows = torch.zeros(shape, dtype=torch.int64), torch.from_numpy(np.flatnonzero(known))
    all_probs = probs.new_zeros(shape)
    targets[rows], all_probs[rows] = moved, probs
    return Beliefs(targets, all_probs)
