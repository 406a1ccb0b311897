"""Looks up entities and pairs by name, with their relations and candidates."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from emea.data.formats.tab_file import read_lines
from emea.data.graph import KnowledgeGraph
from emea.data.names import EntityIndex
from emea.errors import DataError
from emea.explain.explanation import Entity, Relation
from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.support import neighbours_of, relations_between


def ranked_targets(beliefs: Beliefs, source: int) -> list[int]:
    """Return candidates with a positive probability, best first; ties keep the neural order."""
    probs = beliefs.probs[source]
    order = torch.argsort(probs, descending=True, stable=True)
    return beliefs.targets[source, order[probs[order] > 0]].tolist()


def slot_of(beliefs: Beliefs, source: int, target: int) -> int | None:
    """Return the slot of a target among the candidates, or ``None`` if it is not one."""
    slots = (beliefs.targets[source] == target).nonzero().squeeze(1)
    if not len(slots):
        return None
    # An empty slot also contains a target id, with probability 0.
    return int(slots[beliefs.probs[source, slots].argmax()])


def prob_of(beliefs: Beliefs | None, source: int, target: int) -> float | None:
    """Return the probability of a target, or ``None`` if it is not a candidate."""
    slot = None if beliefs is None else slot_of(beliefs, source, target)
    return (
        None if beliefs is None or slot is None else float(beliefs.probs[source, slot])
    )


def rank_of(beliefs: Beliefs, source: int, target: int) -> int | None:
    """Return the rank of a target by probability, from 1; ``None`` if its probability is 0."""
    prob = prob_of(beliefs, source, target)
    return 1 + int((beliefs.probs[source] > prob).sum()) if prob else None


def best_of(beliefs: Beliefs, source: int) -> tuple[int | None, float]:
    """Return the most probable target and its probability; ``None`` if all probabilities are 0."""
    prob, slot = beliefs.probs[source].max(0)
    return (
        (int(beliefs.targets[source, slot]), float(prob)) if prob > 0 else (None, 0.0)
    )


def believed_back(beliefs: Beliefs, num_target: int) -> Beliefs:
    """Return, for each target, the source entity with the strongest belief in it."""
    targets = beliefs.targets.flatten()
    probs = beliefs.probs.flatten()
    best = probs.new_zeros(num_target).scatter_reduce_(0, targets, probs, "amax")
    found = ((probs == best[targets]) & (probs > 0)).nonzero().squeeze(1)
    sources = torch.zeros(num_target, dtype=torch.int64)
    sources[targets[found]] = found // beliefs.num_candidates
    return Beliefs(sources.unsqueeze(1), best.unsqueeze(1))


@dataclass(frozen=True, eq=False)
class GraphSide:
    """Entities, relations and neighbours of one graph, by name.

    Args:
        graph: The graph.
        shown: The graph in which the evidence is shown, with values of literals as nodes.
        triples: Its triples in both directions.
        side: ``source`` or ``target``, for messages.
    """

    graph: KnowledgeGraph
    shown: KnowledgeGraph
    triples: DirectedTriples
    side: str

    @cached_property
    def _index(self) -> EntityIndex:
        return EntityIndex(self.graph, f"{self.side} entity")

    def find(self, name: str) -> int:
        """Find an entity by name (see :meth:`EntityIndex.find`)."""
        return self._index.find(name)

    def entity(self, entity: int) -> Entity:
        """Return an entity with its name."""
        return Entity(
            entity, self.shown.entity_name(entity), self.shown.entity_label(entity)
        )

    def relation(self, directed: int) -> Relation:
        """Return a directed relation with its name."""
        number = self.shown.num_relations
        return Relation(self.shown.relation_name(directed % number), directed >= number)

    def neighbours(self, entity: int) -> list[int]:
        """Return the neighbours of an entity."""
        return neighbours_of(self.triples, entity)

    def relations(self, head: int, tail: int) -> tuple[Relation, ...]:
        """Return the relations from one entity to another."""
        return tuple(map(self.relation, relations_between(self.triples, head, tail)))


def listed_pairs(
    path: Path, source: GraphSide, target: GraphSide
) -> list[tuple[int, int]]:
    """Read pairs from a file: names of source and target, separated by a tab.

    Further columns are ignored and a header is allowed, so that rows of a run's
    ``alignment.tsv`` can be used.

    Raises:
        DataError: If the file cannot be read or is empty, or a line has no valid pair.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        names = line.split("\t")
        if not line.strip() or (number == 1 and names[:2] == ["source", "target"]):
            continue
        if len(names) < 2:
            raise DataError(
                f"{path}, line {number}: a tab must separate source and target"
            )
        try:
            pairs.append((source.find(names[0]), target.find(names[1])))
        except DataError as error:
            raise DataError(f"{path}, line {number}: {error}") from error
    if not pairs:
        raise DataError(f"{path} contains no pairs")
    return pairs
