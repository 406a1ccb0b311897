"""Two graphs to align, the links between them, and counts of what was read from files."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from emea.data.arrays import FloatArray, IntArray, check_ids, frozen
from emea.data.graph import KnowledgeGraph
from emea.data.settings import Cardinality
from emea.data.sorting import distinct_ids
from emea.data.vectors import check_sizes
from emea.errors import DataError

# Public files give similar ids to linked entities (in DBP15K most links join id i to id
# i + constant), so ids in file order would leak links wherever ties are broken by id. The seed is
# fixed, so that the same files give the same ids in every run, with any seed of the experiment.
SHUFFLE_SEED = 20_221_206


TRANSLATION = "translation"
"""Name of the attribute whose values are translations of other values."""

ARROW = " \u2192 "
"""What separates a text from its translation in the name of a value."""


@dataclass(frozen=True, eq=False, repr=False)
class LiteralMatches:
    """Both graphs with their values as additional nodes, and the values that match.

    An extended graph has the entities first, under their own ids, then one node for each distinct
    value. Its relations come first, then its attributes. A triple of an attribute leads from an
    entity to a value, so the rules that reason with matched neighbours reason with matched values
    in the same way.

    Args:
        source: The extended source graph.
        target: The extended target graph.
        pairs: ``[num_pairs, 2]`` value nodes that match, by their ids in the extended graphs.
        probs: ``[num_pairs]`` probability that a pair identifies the same value.
        anchors: ``[num_anchors, 2]`` pairs of entities that unambiguous equal values suggest, each
            entity in one of them.
        anchor_probs: ``[num_anchors]`` estimated probability of each anchor.
        anchor_ways: The way in which values match that suggest each anchor, such as ``equal``.
        num_confirming: How many neighbours of a right pair agree on average, as far as the anchors
            show it.
        same: ``[num_same, 2]`` value nodes whose normal forms are equal, also those that are too
            common to be evidence.
        negative: Whether different values are evidence against a pair.
        texts: The text of each value node of both graphs, to compare: its normal form, in Latin
            letters if the scripts differ. Nodes of vectors and of all words have an empty text.
    """

    source: KnowledgeGraph
    target: KnowledgeGraph
    pairs: IntArray
    probs: FloatArray
    anchors: IntArray
    anchor_probs: FloatArray
    anchor_ways: Sequence[str] = ()
    num_confirming: float = 0.0
    same: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    negative: bool = False
    texts: tuple[Sequence[str], Sequence[str]] = ((), ())

    @property
    def anchor_kinds(self) -> dict[str, tuple[int, float]]:
        """The number of anchors of each way, and their mean probability."""
        probs: dict[str, list[float]] = {}
        for way, prob in zip(self.anchor_ways, self.anchor_probs, strict=True):
            probs.setdefault(way, []).append(float(prob))
        return {
            way: (len(found), float(np.mean(found)))
            for way, found in sorted(probs.items())
        }

    def __repr__(self) -> str:
        return (
            f"LiteralMatches({len(self.pairs):,} values, {len(self.anchors):,} anchors)"
        )


@dataclass(frozen=True)
class GraphReading:
    """Counts from reading a graph file.

    Args:
        label: The name of the file.
        num_literals: Triples whose object is a literal. The graph may keep them as attributes; then
            repeated ones count once.
        num_same_as: Triples left out because they are links.
        num_duplicates: Repetitions of a triple.
        num_isolated: Entities that have literals and no other triple.
        num_bad: Lines skipped because they could not be read.
        left_out: Names of entities of the file that are not in the graph.
        reason: Why they are left out.
        columns: The columns of a table of entities; none for other files.
    """

    label: str
    num_literals: int = 0
    num_same_as: int = 0
    num_duplicates: int = 0
    num_isolated: int = 0
    num_bad: int = 0
    left_out: frozenset[str] = frozenset()
    reason: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class LinkReading:
    """Counts from reading a link file.

    Args:
        label: The name of the file.
        num_links: Links that are used.
        num_unknown: Links left out because one of their entities is not in its graph.
        num_duplicates: Repetitions of a link.
        num_contradicting: Links left out because one of their entities has another link.
        num_other: Mappings left out because they do not state that two entities are the same.
        num_bad: Lines skipped because they could not be read.
    """

    label: str
    num_links: int = 0
    num_unknown: int = 0
    num_duplicates: int = 0
    num_contradicting: int = 0
    num_other: int = 0
    num_bad: int = 0


@dataclass(frozen=True)
class PairReading:
    """Counts from reading the files of a pair.

    Args:
        source: Counts of the source graph.
        target: Counts of the target graph.
        links: Counts of the file of links to learn from.
        test_links: Counts of the file of test links.
    """

    source: GraphReading
    target: GraphReading
    links: LinkReading | None = None
    test_links: LinkReading | None = None


@dataclass(frozen=True, eq=False)
class OfficialSplit:
    """The split that the authors of a data set published.

    Args:
        train: ``[n, 2]`` links for training.
        validation: ``[n, 2]`` links for validation; empty if the authors published none.
        test: ``[n, 2]`` links for the evaluation.
        num_absent: The number of further test links whose source or target is not in its graph.
    """

    train: IntArray
    validation: IntArray
    test: IntArray
    num_absent: int = 0

    def __post_init__(self) -> None:
        for part in ("train", "validation", "test"):
            object.__setattr__(self, part, frozen(getattr(self, part), 2))

    def relabelled(self, source_ids: IntArray, target_ids: IntArray) -> "OfficialSplit":
        """Return the same split after new ids were given to the entities."""
        train, validation, test = (
            relabel_links(links, source_ids, target_ids)
            for links in (self.train, self.validation, self.test)
        )
        return OfficialSplit(train, validation, test, self.num_absent)


@dataclass(frozen=True, eq=False, repr=False)
class GraphPair:
    """Two graphs to align. Each graph has its own ids.

    Args:
        name: The name of the pair in results.
        source: The graph whose entities are to be matched.
        target: The graph that contains the candidates.
        links: ``[num_links, 2]`` all known links (source id, target id).
        official: The published split of the links, if there is one.
        reading: Counts of what was read and left out, if the reader counts it.
        literals: Matching values of both graphs, if they are used as evidence.
        num_absent: The number of further known links whose source or target is not in its graph.
        rejected: ``[n, 2]`` pairs that a person rejected; ``None`` if there are none.
        unmatched: ``[n]`` source entities that are known to have no counterpart, for the evaluation
            only; ``None`` if there are none.
        cardinality: How many counterparts an entity may have.
    """

    name: str
    source: KnowledgeGraph
    target: KnowledgeGraph
    links: IntArray
    official: OfficialSplit | None = None
    reading: PairReading | None = None
    literals: LiteralMatches | None = None
    num_absent: int = 0
    rejected: IntArray | None = None
    unmatched: IntArray | None = None
    cardinality: Cardinality = Cardinality.ONE_TO_ONE

    def __post_init__(self) -> None:
        links = frozen(self.links, 2)
        object.__setattr__(self, "links", links)
        if self.rejected is not None:
            object.__setattr__(self, "rejected", frozen(self.rejected, 2))
            check_ids(self.rejected[:, 0], self.source.num_entities, "source entity")
            check_ids(self.rejected[:, 1], self.target.num_entities, "target entity")
        check_sizes(self.source.vectors, self.target.vectors)
        _check_links(self, links, "links")
        if self.unmatched is not None:
            check_ids(self.unmatched, self.source.num_entities, "source entity")
            linked = self.unmatched[np.isin(self.unmatched, links[:, 0])]
            if len(linked):
                raise DataError(
                    f"{self.name}: {self.source.entity_name(int(linked[0]))} has a link, but "
                    "data.unmatched says that it has no counterpart. Remove one of them."
                )
        if self.official is not None:
            parts = (self.official.train, self.official.validation, self.official.test)
            _check_links(self, np.concatenate(parts), "official split")

    def __repr__(self) -> str:
        return (
            f"GraphPair({self.name!r}, source={self.source!r}, target={self.target!r}, "
            f"{len(self.links):,} links)"
        )

    @property
    def matched_kinds(self) -> tuple[IntArray, IntArray] | None:
        """The kinds of the entities of both graphs, if only entities of a kind are matched."""
        source = self.source.kinds
        target = self.target.kinds
        return None if source is None or target is None else (source, target)

    def relabelled(self, source_ids: IntArray, target_ids: IntArray) -> "GraphPair":
        """Return the same pair in which entity ``i`` of a graph has the id ``ids[i]``.

        Args:
            source_ids: A permutation of the source ids.
            target_ids: A permutation of the target ids.
        """
        official = (
            self.official.relabelled(source_ids, target_ids) if self.official else None
        )
        rejected = self.rejected
        if rejected is not None:
            rejected = relabel_links(rejected, source_ids, target_ids)
        return replace(
            self,
            source=self.source.relabelled(source_ids),
            target=self.target.relabelled(target_ids),
            links=relabel_links(self.links, source_ids, target_ids),
            official=official,
            literals=None,
            rejected=rejected,
            unmatched=None
            if self.unmatched is None
            else np.sort(source_ids[self.unmatched]),
        )

    def shuffled(self, seed: int = SHUFFLE_SEED) -> "GraphPair":
        """Return the same pair with random entity ids, as all readers of files do."""
        rng = np.random.default_rng(seed)
        return self.relabelled(
            rng.permutation(self.source.num_entities),
            rng.permutation(self.target.num_entities),
        )

    def checksum(self) -> str:
        """Return the SHA-256 of sizes, triples, literals and links.

        Labels are not included, because no prediction depends on them.
        """
        digest = hashlib.sha256()
        for graph in (self.source, self.target):
            _add_graph(digest, graph)
        digest.update(self.links.tobytes())
        if self.num_absent:
            digest.update(f"{self.num_absent}".encode())
        if self.rejected is not None:
            digest.update(b"rejected" + self.rejected.tobytes())
        if self.unmatched is not None:
            digest.update(b"unmatched" + self.unmatched.tobytes())
        return digest.hexdigest()


def graph_checksum(graph: KnowledgeGraph) -> str:
    """Return the SHA-256 of what `GraphPair.checksum` covers of one graph."""
    digest = hashlib.sha256()
    _add_graph(digest, graph)
    return digest.hexdigest()


def _add_graph(digest: "hashlib._Hash", graph: KnowledgeGraph) -> None:
    """Add the sizes, triples, literals, kinds and vectors of a graph to a digest."""
    digest.update(f"{graph.num_entities} {graph.num_relations};".encode())
    digest.update(graph.triples.tobytes())
    if graph.attributes is not None:
        digest.update(graph.attributes.triples.tobytes())
        digest.update("\0".join(graph.attributes.values).encode(errors="surrogatepass"))
    if graph.kinds is not None:
        digest.update(b"kinds" + graph.kinds.tobytes())
    for one in graph.vectors:
        digest.update(f"vectors {one.name}".encode() + one.entities.tobytes())
        digest.update(one.values.tobytes())


def _check_links(pair: GraphPair, links: IntArray, where: str) -> None:
    """Raise an error if an entity does not exist or has too many links."""
    sizes = (pair.source.num_entities, pair.target.num_entities)
    for side, size, column in zip(("source", "target"), sizes, links.T, strict=True):
        check_ids(column, size, f"{side} entity")
    for side, place in pair.cardinality.unique_sides.items():
        if len(distinct_ids(links[:, place])) != len(links):
            raise DataError(
                f"{pair.name}: a {side} entity occurs more than once in the {where}, but "
                f"cardinality={pair.cardinality} allows one link of each {side} entity. Choose "
                "another cardinality."
            )


def relabel_links(
    links: IntArray, source_ids: IntArray, target_ids: IntArray
) -> IntArray:
    """Return links after new ids were given to the entities of both graphs."""
    return np.stack([source_ids[links[:, 0]], target_ids[links[:, 1]]], axis=1)


def sorted_links(links: IntArray) -> IntArray:
    """Return links sorted by source and target, so that their order in a file does not matter."""
    return links[np.lexsort(links.T[::-1])]
