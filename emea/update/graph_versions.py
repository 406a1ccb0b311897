"""Two versions of a graph, and what differs between them and between their matches."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from emea.data.arrays import NO_MATCH, IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.names import cell
from emea.record.checked_files import write_json, write_lines


def places_by_name(names: Sequence[str], others: Sequence[str]) -> IntArray:
    """Return the place of each name in another list, or ``NO_MATCH``, ``[len(names)]``."""
    places = {name: place for place, name in enumerate(others)}
    return np.array([places.get(name, NO_MATCH) for name in names], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class GraphVersions:
    """An earlier and a later version of one graph. Names identify entities and relations.

    Args:
        old: The earlier version.
        new: The later version.
        new_entities: ``[old.num_entities]`` id in the later version, or ``NO_MATCH``.
        old_entities: ``[new.num_entities]`` id in the earlier version, or ``NO_MATCH``.
        old_relations: ``[new.num_relations]`` id in the earlier version, or ``NO_MATCH``.
        added: ``[n, 3]`` triples that only the later version has, in its ids.
        removed: ``[n, 3]`` triples that only the earlier version has, in its ids.
    """

    old: KnowledgeGraph
    new: KnowledgeGraph
    new_entities: IntArray
    old_entities: IntArray
    old_relations: IntArray
    added: IntArray
    removed: IntArray

    @classmethod
    def of(cls, old: KnowledgeGraph, new: KnowledgeGraph) -> "GraphVersions":
        """Compare two versions."""
        names = [
            [graph.relation_name(relation) for relation in range(graph.num_relations)]
            for graph in (old, new)
        ]
        old_entities = places_by_name(new.all_entity_names, old.all_entity_names)
        new_entities = places_by_name(old.all_entity_names, new.all_entity_names)
        old_relations = places_by_name(names[1], names[0])
        added = _only_first(new, old, old_entities, old_relations)
        removed = _only_first(old, new, new_entities, places_by_name(*names))
        return cls(old, new, new_entities, old_entities, old_relations, added, removed)

    def size(self) -> dict[str, int]:
        """Return how many entities and triples are new and gone."""
        return {
            "new_entities": int((self.old_entities == NO_MATCH).sum()),
            "gone_entities": int((self.new_entities == NO_MATCH).sum()),
            "added_triples": len(self.added),
            "removed_triples": len(self.removed),
        }

    def differing_names(self) -> tuple[set[str], set[str], set[str]]:
        """Return the names of new and of gone entities, and of those with other triples."""
        sides = (
            (self.new, self.old_entities == NO_MATCH),
            (self.old, self.new_entities == NO_MATCH),
            (self.new, self.is_changed()),
        )
        new, gone, changed = (
            {graph.entity_name(entity) for entity in np.flatnonzero(chosen).tolist()}
            for graph, chosen in sides
        )
        return new, gone, changed

    def is_changed(self) -> np.ndarray:
        """Return whether an entity of the later version is new or has other triples than before."""
        changed: np.ndarray = self.old_entities == NO_MATCH
        changed[self.added[:, [0, 2]].ravel()] = True
        ends = self.new_entities[self.removed[:, [0, 2]].ravel()]
        changed[ends[ends != NO_MATCH]] = True
        return changed


def _only_first(
    one: KnowledgeGraph, other: KnowledgeGraph, entities: IntArray, relations: IntArray
) -> IntArray:
    """Return the triples of a graph that another graph lacks.

    Entities and relations are the ids of the first graph's in the other, or ``NO_MATCH``.
    """
    head, relation, tail = one.triples.T
    renamed = np.stack([entities[head], relations[relation], entities[tail]], axis=1)
    known = (renamed != NO_MATCH).all(1)
    sizes = (other.num_entities, max(1, other.num_relations), other.num_entities)
    keys = np.ravel_multi_index(other.triples.T, sizes)
    known[known] = np.isin(np.ravel_multi_index(renamed[known].T, sizes), keys)
    missing: IntArray = one.triples[~known]
    return missing


Versions = tuple[GraphVersions, GraphVersions]
"""Both versions of the source graph and of the target graph."""

CHANGES_FILE, SUMMARY_FILE = "changes.tsv", "update.json"
KINDS = ("new", "changed", "gone")

Answers = dict[str, tuple[str, float]]
"""Target and probability by source entity, all by name."""

Pairs = Collection[tuple[str, str]]


class Change(NamedTuple):
    """A row of ``changes.tsv``: a source entity whose match differs between two runs.

    A target that does not exist is an empty text, and so is its probability.
    """

    change: str
    source: str
    old_target: str
    new_target: str
    old_prob: str
    new_prob: str
    reason: str


def changes_between(
    before: Answers,
    after: Answers,
    versions: Versions,
    rejected: Pairs = (),
    linked: Pairs = (),
) -> list[Change]:
    """Return the changed matches by kind and source entity; ``linked`` are the training links."""
    new_source, gone_source, changed_source = versions[0].differing_names()
    new_target, gone_target, changed_target = versions[1].differing_names()
    found = []
    for source in before.keys() | after.keys():
        old = before.get(source)
        new = after.get(source)
        if old is not None and new is not None and old[0] == new[0]:
            continue
        reasons = (
            (source in gone_source, "the source entity is gone"),
            (old is not None and old[0] in gone_target, "the target entity is gone"),
            (
                old is not None and (source, old[0]) in rejected,
                "you rejected the earlier match",
            ),
            (
                new is not None and (source, new[0]) in linked,
                "a new link names the match",
            ),
            (source in new_source, "the source entity is new"),
            (new is not None and new[0] in new_target, "the target entity is new"),
            (
                source in changed_source
                or any(one[0] in changed_target for one in (old, new) if one),
                "triples of an entity changed",
            ),
            (True, "evidence from other entities changed"),
        )
        kind = "new" if old is None else "gone" if new is None else "changed"
        cells = [
            ("", "") if one is None else (one[0], f"{one[1]:.6f}") for one in (old, new)
        ]
        targets, probs = zip(*cells, strict=True)
        reason = next(reason for is_true, reason in reasons if is_true)
        found.append(
            Change(kind, source, targets[0], targets[1], probs[0], probs[1], reason)
        )
    return sorted(found, key=lambda one: (KINDS.index(one.change), one.source))


def write_changes(
    folder: Path, changes: Sequence[Change], summary: dict[str, object]
) -> None:
    """Write ``changes.tsv`` and ``update.json``, which counts the changes."""
    rows = [Change._fields, *changes]
    write_lines(folder / CHANGES_FILE, ("\t".join(map(cell, row)) for row in rows))
    write_json(folder / SUMMARY_FILE, summary)


def counts(before: Answers, changes: Sequence[Change]) -> dict[str, int]:
    """Return how many matches are kept, new, changed and gone."""
    kinds = Counter(change.change for change in changes)
    num_kept = len(before) - kinds["changed"] - kinds["gone"]
    return {"kept": num_kept, **{kind: kinds[kind] for kind in KINDS}}
