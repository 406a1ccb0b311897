"""Collects the triples of a file and numbers their entities and relations."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import compress, islice
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from emea.data.arrays import IntArray
from emea.data.attributes import (
    LABEL_ATTRIBUTES,
    AttributeTriples,
    Kind,
    chosen_labels,
    literal_parts,
)
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphReading
from emea.data.names import LABEL_NAMES, further_label_attributes, label_name
from emea.data.sorting import distinct_rows
from emea.errors import DataError


def distinct_triples(triples: IntArray) -> IntArray:
    """Return the distinct triples, sorted by head, relation and tail."""
    if not len(triples):
        return triples
    sizes = (triples.max(axis=0) + 1).tolist()
    return np.stack(distinct_rows(list(triples.T), sizes), axis=1)


Name = TypeVar("Name", bound=Hashable)


class NameTable(dict[Name, int]):
    """Numbers names from zero in order of first appearance.

    Looking up a new name adds it. A single dictionary lookup is all the work for most names of a
    large file.
    """

    def __missing__(self, name: Name) -> int:
        number = len(self)
        self[name] = number
        return number

    def numbers(self, names: Sequence[Name]) -> IntArray:
        """Return the numbers of some names."""
        return np.fromiter(map(self.__getitem__, names), np.int64, len(names))

    def since(self, size: int) -> Iterator[Name]:
        """Iterate over the names after the first ``size`` names, in reverse order."""
        return islice(reversed(self), len(self) - size)

    def forget(self, size: int) -> None:
        """Remove all names after the first ``size`` names."""
        while len(self) > size:
            self.popitem()


SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
"""The attribute that marks terms of an ontology that are no longer used."""

SAME_AS_NAMES = (SAME_AS, "owl:sameAs")
"""Relations whose triples are links and not edges of the graph."""


class OnlyLiteralsError(DataError):
    """Raised if a graph has literals but no triple between entities, and literals are left out."""


ONLY_LITERALS = (
    "has only literals, which literals=none leaves out (set literals=similar to use them, or "
    "data.keep_isolated=true to keep the entity)"
)
MOST_LEFT_OUT = 1_000_000
"""Entities left out whose names are kept for messages; the names of more would need much memory."""

LEAST_NAMES, LEAST_SHARED, MOST_NAMES = 10, 0.1, 100
"""Limits of ``check_column_order``: names in the second column, the share of them that are also
entities, and how many times the names of another column they may be."""


class CollectorMark(NamedTuple):
    """How much a collector contains: sizes of its tables of names and of its lists of blocks."""

    names: tuple[int, ...]
    blocks: tuple[int, ...]
    num_literals: int


class TripleCollector(Generic[Name]):
    """Collects triples as numbers, together with the names that the numbers represent.

    Args:
        name_of: Returns the name of an entity or relation in results from the key that the reader
            uses.
        literal_of: Returns text and kind of a literal from the key that the reader uses.
        keep_literals: Whether to keep all literals, not only labels.

    Attributes:
        entities: The numbers of the entities.
        relations: The numbers of the relations.
        attributes: The numbers of the relations whose object is a literal.
        values: The numbers of the literals that are kept.
        num_literals: The number of triples with a literal.
        label_attributes: Attributes that name an entity, in order of preference.
        columns: The columns of a table of entities; none for other files.
    """

    def __init__(
        self,
        name_of: Callable[[Name], str],
        literal_of: Callable[[Name], tuple[str, Kind]] | None = None,
        keep_literals: bool = False,
    ) -> None:
        self.entities: NameTable[Name] = NameTable()
        self.relations: NameTable[Name] = NameTable()
        self.attributes: NameTable[Name] = NameTable()
        self.values: NameTable[Name] = NameTable()
        self.num_literals = 0
        self.keep_literals = keep_literals
        self.label_attributes: Sequence[str] = LABEL_ATTRIBUTES
        self.columns: tuple[str, ...] = ()
        self._name_of = name_of
        self._literal_of = literal_of or (lambda key: literal_parts(str(key)))
        self._blocks: list[IntArray] = []
        self._described: list[IntArray] = []
        self._literals: list[IntArray] = []
        self._is_label: list[bool] = []

    def add(
        self, heads: Sequence[Name], relations: Sequence[Name], tails: Sequence[Name]
    ) -> None:
        """Add triples between entities."""
        block = np.empty((len(heads), 3), dtype=np.int64)
        block[:, 0] = self.entities.numbers(heads)
        block[:, 1] = self.relations.numbers(relations)
        block[:, 2] = self.entities.numbers(tails)
        self._blocks.append(block)

    def add_rows(
        self, edges: Sequence[Sequence[Name]], literals: Sequence[Sequence[Name]] = ()
    ) -> None:
        """Add triples between entities, and triples whose object is a literal."""
        for rows, add in ((edges, self.add), (literals, self.add_literals)):
            if rows:
                add(*zip(*rows, strict=True))

    def take_back(self, num_entities: int, num_relations: int) -> None:
        """Undo the last call of ``add``.

        Args:
            num_entities: The number of entities before that call.
            num_relations: The number of relations before that call.
        """
        self._blocks.pop()
        self.entities.forget(num_entities)
        self.relations.forget(num_relations)

    def mark(self) -> "CollectorMark":
        """Return what ``return_to`` needs to forget all triples that are added from now on."""
        tables = (self.entities, self.relations, self.attributes, self.values)
        lists: tuple[list[Any], ...] = (
            self._blocks,
            self._described,
            self._literals,
            self._is_label,
        )
        sizes = tuple(len(table) for table in tables)
        return CollectorMark(sizes, tuple(len(one) for one in lists), self.num_literals)

    def return_to(self, mark: "CollectorMark") -> None:
        """Forget all triples that were added since the mark."""
        tables = (self.entities, self.relations, self.attributes, self.values)
        for table, size in zip(tables, mark.names, strict=True):
            table.forget(size)
        lists: tuple[list[Any], ...] = (
            self._blocks,
            self._described,
            self._literals,
            self._is_label,
        )
        for blocks, size in zip(lists, mark.blocks, strict=True):
            del blocks[size:]
        self.num_literals = mark.num_literals

    def tails_of(self, relation: Name) -> list[Name]:
        """Return the tails of the triples of a relation."""
        number = self.relations.get(relation)
        tails = [
            block[block[:, 1] == number, 2]
            for block in self._blocks
            if number is not None
        ]
        wanted = {place for some in tails for place in some.tolist()}
        return [name for place, name in enumerate(self.entities) if place in wanted]

    def add_literals(
        self, heads: Sequence[Name], attributes: Sequence[Name], values: Sequence[Name]
    ) -> None:
        """Add triples whose object is a literal.

        Args:
            heads: The entities.
            attributes: The relations.
            values: The literals. Only those that are kept are looked up.
        """
        self.num_literals += len(heads)
        block = np.empty((len(heads), 3), dtype=np.int64)
        block[:, 0] = self.entities.numbers(heads)
        block[:, 1] = self.attributes.numbers(attributes)
        self._described.append(np.unique(block[:, 0]))
        if not self.keep_literals:
            for name in islice(self.attributes, len(self._is_label), None):
                self._is_label.append(self._may_be_label(self._name_of(name)))
            kept = np.array(self._is_label, dtype=bool)[block[:, 1]]
            block = block[kept]
            values = list(compress(values, kept.tolist()))
        block[:, 2] = self.values.numbers(values)
        self._literals.append(block)

    def check_column_order(self, label: str) -> None:
        """Refuse a table without a header whose second column seems to contain entities.

        Raises:
            DataError: The second column has many more names than the first or the third one, and
                many of its names also occur in these.
        """
        num_names = len(self.relations)
        num_shared = sum(name in self.entities for name in self.relations)
        is_shared = num_names >= LEAST_NAMES and num_shared >= LEAST_SHARED * num_names
        if not is_shared and num_names <= MOST_NAMES:
            return
        sizes = [
            len(np.unique(np.concatenate([block[:, column] for block in self._blocks])))
            for column in (0, 2)
        ]
        if num_names > min(sizes) * (2 if is_shared else MOST_NAMES):
            column = "first" if sizes[0] == min(sizes) else "third"
            raise DataError(
                f"{label}: the second column has {num_names:,} different names, as if it contained "
                f"entities, and the {column} has {min(sizes):,}, as if it contained relations. Add "
                "a first row that names the columns, such as relation, head, tail."
            )

    def finish(
        self,
        label: str,
        num_bad: int,
        keep_isolated: bool,
        label_language: str | None = None,
    ) -> tuple[KnowledgeGraph, GraphReading]:
        """Return the graph, and counts of what was left out of it.

        Entities and relations are numbered in the order of their names. The same triples give the
        same graph, in any format and in any order.

        Args:
            label: The name of the file.
            num_bad: The number of lines that could not be read.
            keep_isolated: Whether to keep entities that only have literals. They are always kept
                if all literals are kept.
            label_language: The preferred language of labels.

        Raises:
            DataError: There is no triple between entities, and literals are not kept.
        """
        triples = np.concatenate([np.empty((0, 3), dtype=np.int64), *self._blocks])
        self._blocks.clear()
        names = [(number, self._name_of(key)) for key, number in self.relations.items()]
        same_as = [number for number, name in names if name in SAME_AS_NAMES]
        edges = triples[~np.isin(triples[:, 1], same_as)]
        distinct = distinct_triples(edges)
        num_same_as = len(triples) - len(edges)
        num_duplicates = len(edges) - len(distinct)
        if not len(distinct) and not (self.keep_literals and self.num_literals):
            message = self._no_triple(label, num_same_as, num_bad)
            raise (
                OnlyLiteralsError(message) if self.num_literals else DataError(message)
            )
        is_entity = _marked(len(self.entities), [distinct[:, 0], distinct[:, 2]])
        isolated = _marked(len(self.entities), self._described) & ~is_entity
        keep_isolated |= self.keep_literals
        kept = is_entity | isolated if keep_isolated else is_entity
        graph = self._graph(distinct, kept, label_language)
        num_isolated = int(isolated.sum())
        num_literals = self.num_literals
        if graph.attributes is not None:  # repeated literals are left out, too
            num_literals = len(graph.attributes)
            num_duplicates += self.num_literals - num_literals
        left_out: frozenset[str] = frozenset()
        if not keep_isolated and num_isolated <= MOST_LEFT_OUT:
            left_out = frozenset(
                map(self._name_of, compress(self.entities, isolated.tolist()))
            )
        return graph, GraphReading(
            label,
            num_literals=num_literals,
            num_same_as=num_same_as,
            num_duplicates=num_duplicates,
            num_isolated=num_isolated,
            num_bad=num_bad,
            left_out=left_out,
            reason=ONLY_LITERALS,
        )

    def _graph(
        self, triples: IntArray, is_entity: np.ndarray, label_language: str | None
    ) -> KnowledgeGraph:
        is_relation = _marked(len(self.relations), [triples[:, 1]])
        entity_ids, entity_names = self._by_name(self.entities, is_entity)
        relation_ids, relation_names = self._by_name(self.relations, is_relation)
        triples[:, 0] = entity_ids[triples[:, 0]]
        triples[:, 1] = relation_ids[triples[:, 1]]
        triples[:, 2] = entity_ids[triples[:, 2]]
        literals = self._attribute_triples(entity_ids)
        labels = None
        if literals is not None:
            names = self.label_attributes
            if names is LABEL_ATTRIBUTES:  # the columns of a table are known
                names = (*names, *further_label_attributes(literals))
            labels = chosen_labels(literals, len(entity_names), label_language, names)
        return KnowledgeGraph(
            distinct_triples(triples),
            len(entity_names),
            len(relation_names),
            entity_names,
            relation_names,
            literals if self.keep_literals else None,
            labels if labels and any(labels) else None,
        )

    def _may_be_label(self, attribute: str) -> bool:
        return (
            attribute in (*self.label_attributes, DEPRECATED)
            or label_name(attribute) in LABEL_NAMES
        )

    def _attribute_triples(self, entity_ids: IntArray) -> AttributeTriples | None:
        """Return the literals of the kept entities, with sorted attributes and values."""
        triples = np.concatenate([np.empty((0, 3), dtype=np.int64), *self._literals])
        self._literals.clear()
        triples[:, 0] = entity_ids[triples[:, 0]]
        triples = triples[triples[:, 0] >= 0]
        if not len(triples):
            return None
        is_attribute = _marked(len(self.attributes), [triples[:, 1]])
        attribute_ids, attribute_names = self._by_name(self.attributes, is_attribute)
        kept = _marked(len(self.values), [triples[:, 2]])
        found: list[Any] = list(self.values)
        order = sorted(np.flatnonzero(kept).tolist(), key=found.__getitem__)
        keys = [found[number] for number in order]
        value_ids = np.full(len(self.values), -1, dtype=np.int64)
        value_ids[order] = np.arange(len(order))
        triples[:, 1] = attribute_ids[triples[:, 1]]
        triples[:, 2] = value_ids[triples[:, 2]]
        kinds: NameTable[Kind] = NameTable()
        texts = []
        kind_ids = np.empty(len(keys), dtype=np.int64)
        for number, key in enumerate(keys):
            text, kind = self._literal_of(key)
            texts.append(text)
            kind_ids[number] = kinds[kind]
        return AttributeTriples(
            distinct_triples(triples), attribute_names, texts, kind_ids, tuple(kinds)
        )

    def _by_name(
        self, table: NameTable[Name], kept: np.ndarray
    ) -> tuple[IntArray, list[str]]:
        """Return new numbers in the order of the names, and the sorted names."""
        old_ids = np.flatnonzero(kept)
        names = list(map(self._name_of, compress(table, kept.tolist())))
        # sorting positions takes half the time of sorting pairs of a name and a number
        order = sorted(range(len(names)), key=names.__getitem__)
        ids = np.full(len(table), -1, dtype=np.int64)
        ids[old_ids[order]] = np.arange(len(order))
        return ids, [names[place] for place in order]

    def _no_triple(self, label: str, num_same_as: int, num_bad: int) -> str:
        if not self.entities and not num_same_as and not num_bad:
            return f"{label} contains no triples: it is empty, or has only comments or a header."
        advice = (
            "; set literals=similar to use the literals" if self.num_literals else ""
        )
        return (
            f"{label} has no triple between entities (left out: {self.num_literals} triples with "
            f"a literal, {num_same_as} owl:sameAs, {num_bad} lines that could not be read){advice}"
        )


def _marked(size: int, ids: Sequence[IntArray]) -> np.ndarray:
    marks = np.zeros(size, dtype=bool)
    for some in ids:
        marks[some] = True
    return marks
