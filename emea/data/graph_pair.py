"""Two graphs and the links between them."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from emea.data.arrays import IntArray, frozen
from emea.data.formats.tab_file import Key, TabTable, Vocabulary
from emea.data.formats.triple_collector import first_occurrences
from emea.data.graph import KnowledgeGraph, check_ids
from emea.data.literal_matches import LiteralMatches
from emea.data.reading import PairReading
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
        literals: values of both graphs that match, if they are used as evidence.
    """

    name: str
    source: KnowledgeGraph
    target: KnowledgeGraph
    links: IntArray
    official: OfficialSplit | None = None
    reading: PairReading | None = None
    literals: LiteralMatches | None = None

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
            literals=None,
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
        """SHA-256 over sizes, triples, literals and links: equal data, equal checksum.

        Labels are not part of it, since no prediction depends on them.
        """
        digest = hashlib.sha256()
        for graph in (self.source, self.target):
            digest.update(f"{graph.num_entities} {graph.num_relations};".encode())
            digest.update(graph.triples.tobytes())
            if graph.attributes is not None:
                digest.update(graph.attributes.triples.tobytes())
                digest.update("\0".join(graph.attributes.values).encode(errors="surrogatepass"))
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


log = logging.getLogger(__name__)

# Public files number linked entities alike (in DBP15K most links join id i to id i + constant),
# so ids in file order would tell the links to anything that breaks a tie by index. The seed is
# fixed: the same files give the same ids in every run, whatever the seed of the experiment.
SHUFFLE_SEED = 20_221_206


def build_graph(
    table: TabTable,
    columns: tuple[Sequence[Key], Sequence[Key], Sequence[Key]],
    entities: Vocabulary[Key],
    relations: Vocabulary[Key],
    entity_names: Sequence[str],
    relation_names: Sequence[str],
) -> KnowledgeGraph:
    """The graph of a triple file; repeated triples count once.

    Args:
        table: the file, for error messages.
        columns: its heads, relations and tails.
        entities: all entities of the graph.
        relations: all relations of the graph.
        entity_names: a name per entity.
        relation_names: a name per relation.
    """
    heads, relation_column, tails = columns
    triples = np.stack(
        [
            entities.ids(heads, table),
            relations.ids(relation_column, table),
            entities.ids(tails, table),
        ],
        axis=1,
    )
    rows = first_occurrences(triples)
    if len(rows) < len(triples):
        log.warning("%s: %d repeated triples dropped", table.label, len(triples) - len(rows))
    return KnowledgeGraph(
        triples[rows], len(entities), len(relations), entity_names, relation_names
    )


def assemble_pair(
    name: str,
    source: KnowledgeGraph,
    target: KnowledgeGraph,
    links: IntArray,
    official: OfficialSplit | None,
) -> GraphPair:
    """The pair as readers hand it out: with entity ids that carry no information."""
    pair = GraphPair(name, source, target, links, official)
    return pair.shuffled(SHUFFLE_SEED)
