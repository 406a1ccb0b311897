"""Two graphs and the links known between them."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from emea.data.arrays import IntArray, frozen
from emea.data.graph import KnowledgeGraph, check_ids
from emea.data.reading_report import PairReading
from emea.errors import DataError


@dataclass(frozen=True, eq=False)
class OfficialSplit:
    """The parts a data set's authors fixed; an empty validation part means they fixed none."""

    train: IntArray
    validation: IntArray
    test: IntArray

    def __post_init__(self) -> None:
        for part in ("train", "validation", "test"):
            object.__setattr__(self, part, frozen(getattr(self, part), 2))

    def relabelled(self, source_ids: IntArray, target_ids: IntArray) -> "OfficialSplit":
        """The same parts after a relabelling of the entities."""
        parts = (self.train, self.validation, self.test)
        return OfficialSplit(*(relabel_links(links, source_ids, target_ids) for links in parts))


@dataclass(frozen=True, eq=False, repr=False)
class GraphPair:
    """Two graphs to align; each side has its own ids.

    Args:
        name: what the pair is called in results.
        source: the graph whose entities look for a counterpart.
        target: the graph in which they look.
        links: ``[num_links, 2]`` all known links (source id, target id), one-to-one.
        official: the data set's own parts of the links, if it has any.
        reading: what was read from files and left out, where a reader counts it.
    """

    name: str
    source: KnowledgeGraph
    target: KnowledgeGraph
    links: IntArray
    official: OfficialSplit | None = None
    reading: PairReading | None = None

    def __post_init__(self) -> None:
        links = frozen(self.links, 2)
        object.__setattr__(self, "links", links)
        _check_links(self, links, "more than one link")
        if self.official is not None:
            parts = (self.official.train, self.official.validation, self.official.test)
            _check_links(self, np.concatenate(parts), "more than one link in the official parts")

    def __repr__(self) -> str:
        return (
            f"GraphPair({self.name!r}, source={self.source!r}, target={self.target!r}, "
            f"{len(self.links):,} links)"
        )

    def relabelled(self, source_ids: IntArray, target_ids: IntArray) -> "GraphPair":
        """The same pair with entity ``i`` of a side called ``ids[i]`` (permutations)."""
        official = self.official.relabelled(source_ids, target_ids) if self.official else None
        return replace(
            self,
            source=self.source.relabelled(source_ids),
            target=self.target.relabelled(target_ids),
            links=relabel_links(self.links, source_ids, target_ids),
            official=official,
        )

    def shuffled(self, seed: int) -> "GraphPair":
        """The same pair with entity ids drawn at random.

        Public files give linked entities matching ids, so whatever breaks a tie by index
        would leak links. Random ids close that door at the root.
        """
        rng = np.random.default_rng(seed)
        return self.relabelled(
            rng.permutation(self.source.num_entities), rng.permutation(self.target.num_entities)
        )

    def checksum(self) -> str:
        """SHA-256 over sizes, triples and links: equal data, equal checksum."""
        digest = hashlib.sha256()
        for graph in (self.source, self.target):
            digest.update(f"{graph.num_entities} {graph.num_relations};".encode())
            digest.update(graph.triples.tobytes())
        digest.update(self.links.tobytes())
        return digest.hexdigest()


def _check_links(pair: GraphPair, links: IntArray, fault: str) -> None:
    """Refuse links of entities that are not there, or of one entity twice."""
    sizes = (pair.source.num_entities, pair.target.num_entities)
    for side, size, column in zip(("source", "target"), sizes, links.T, strict=True):
        check_ids(column, size, f"{side} entity")
        if len(np.unique(column)) != len(column):
            raise DataError(f"a {side} entity of {pair.name} has {fault}")


def relabel_links(links: IntArray, source_ids: IntArray, target_ids: IntArray) -> IntArray:
    """Links after a relabelling of both sides."""
    return np.stack([source_ids[links[:, 0]], target_ids[links[:, 1]]], axis=1)
