"""Merges two aligned graphs into one, in which matched entities have one identifier."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path

from emea.data.attributes import Kind
from emea.data.entity_kinds import OWL, is_blank
from emea.data.formats.tab_file import read_bytes
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.names import entity_iri
from emea.errors import DataError
from emea.record.checked_files import damaged, read_file

Match = tuple[str, str, float]
Node = tuple[str, str]
"""A side and a name."""


def read_matches(path: Path, is_own: bool = True) -> list[Match]:
    """Return the matches of an ``alignment.tsv``, which is the file of a run if ``is_own``."""
    try:
        content = read_file(path) if is_own else read_bytes(path)
        # not splitlines(): a name can contain other line separators
        lines = content.decode().replace("\r\n", "\n").rstrip("\n").split("\n")
        rows = (line.split("\t") for line in lines[1:])
        return [(source, target, float(prob)) for source, target, prob, *_ in rows]
    except (OSError, ValueError) as error:
        if is_own:
            raise damaged(path, str(error)) from error
        raise DataError(f"{path} cannot be read as an alignment.tsv of emea: {error}") from error


def identifiers(matches: Iterable[Match]) -> dict[Node, Node]:
    """Return the entity whose identifier each matched entity gets.

    Entities that are connected by matches get the identifier of a source entity: that of their most
    probable match.
    """
    parent: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while parent.setdefault(node, node) != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for source, target, _ in sorted(matches, key=lambda match: (-match[2], *match[:2])):
        if not (is_blank(source) or is_blank(target)):
            first, second = root(("source", source)), root(("target", target))
            if second[0] == "target":
                parent[second] = first
            elif first != second:  # a more probable match of the target came first
                parent[first] = second
    return {node: root(node) for node in parent}


def merged_lines(pair: GraphPair, matches: Iterable[Match]) -> Iterator[str]:
    """Yield the triples of both graphs as N-Triples, each once.

    An ``owl:sameAs`` triple connects each identifier with those that it replaces.

    Args:
        pair: The graphs.
        matches: Source name, target name and probability of each match.
    """
    replaced = identifiers(matches)
    seen: set[str] = set()
    for side, graph in (("source", pair.source), ("target", pair.target)):
        for line in _lines(graph, _Terms(pair.name, side, replaced)):
            if line not in seen:
                seen.add(line)
                yield line
    for (side, name), kept in replaced.items():
        first, second = entity_iri(kept[1], pair.name, kept[0]), entity_iri(name, pair.name, side)
        if first != second:
            yield f"<{first}> <{OWL}sameAs> <{second}> ."


class _Terms:
    """Writes the names of a graph as terms of N-Triples.

    Args:
        pair: The name of the pair.
        side: The side of the graph.
        replaced: The identifier of each matched entity.
    """

    def __init__(self, pair: str, side: str, replaced: Mapping[Node, Node]) -> None:
        self._pair = pair
        self._side = side
        self._replaced = replaced
        self._blank: dict[str, str] = {}
        self._numbers = count(1)

    def __call__(self, name: str, kind: str = "") -> str:
        """Return the term of an entity, or of a relation with the kind ``-relation``."""
        if is_blank(name):
            if name not in self._blank:
                self._blank[name] = f"_:{self._side}{next(self._numbers)}"
            return self._blank[name]
        node = self._side, name
        side, name = self._replaced.get(node, node)
        return f"<{entity_iri(name, self._pair, side + kind)}>"


def _lines(graph: KnowledgeGraph, term: _Terms) -> Iterator[str]:
    entities = [term(name) for name in graph.all_entity_names]
    relations = [term(graph.relation_name(one), "-relation") for one in range(graph.num_relations)]
    for head, relation, tail in graph.triples.tolist():
        yield f"{entities[head]} {relations[relation]} {entities[tail]} ."
    if (found := graph.attributes) is not None:
        attributes = [term(name, "-relation") for name in found.attribute_names]
        for entity, name, value in found.triples.tolist():
            text = _literal(found.values[value], found.kind(value))
            yield f"{entities[entity]} {attributes[name]} {text} ."


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r'[\\"\n\r]')


def _literal(text: str, kind: Kind) -> str:
    quoted = '"' + _ESCAPED.sub(lambda found: _ESCAPES[found.group()], text) + '"'
    if kind.language:
        return f"{quoted}@{kind.language}"
    return f"{quoted}^^<{kind.datatype}>" if kind.datatype else quoted
