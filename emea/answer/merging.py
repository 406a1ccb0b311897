"""Merges two aligned graphs into one, in which matched entities have one identifier."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from emea.data.attributes import Kind
from emea.data.entity_kinds import OWL, is_blank
from emea.data.formats.tab_file import number_of, read_bytes
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.names import IRI_NAME, cell, entity_iri, entity_title
from emea.data.settings import Cardinality
from emea.errors import DataError
from emea.record.checked_files import MISMATCH, damaged, read_file, sha256

Match = tuple[str, str, float]
Node = tuple[str, str]
"""A side and a name."""


COLUMNS = ("source", "target", "probability")
"""The first columns of an ``alignment.tsv``."""


def read_matches(
    path: Path, is_own: bool = True, checksum: str | None = None
) -> list[Match]:
    """Return the matches of an ``alignment.tsv``.

    Args:
        path: The file.
        is_own: Whether it is the file of a run.
        checksum: Its SHA-256, if it was recorded.

    Raises:
        DataError: It cannot be read, has other columns or another checksum, or a probability is not
            a number from 0 to 1.
    """
    try:
        content = read_file(path) if is_own else read_bytes(path)
        if checksum not in (None, sha256(content)):
            raise ValueError(MISMATCH)
        # not splitlines(): a name can contain other line separators
        lines = content.decode().replace("\r\n", "\n").rstrip("\n").split("\n")
        header = tuple(lines[0].split("\t"))
        if header[: len(COLUMNS)] != COLUMNS:
            raise ValueError(f"its columns are not {', '.join(COLUMNS)}")
        return [
            _match(line, number, len(header))
            for number, line in enumerate(lines[1:], 2)
        ]
    except (OSError, ValueError) as error:
        if is_own:
            raise damaged(path, str(error)) from error
        changed = ""
        if str(error) == MISMATCH:
            changed = (
                ". Write it again, or save a changed alignment under another name."
            )
        raise DataError(
            f"{path} cannot be read as an alignment.tsv of emea: {error}{changed}"
        ) from error


def _match(line: str, number: int, width: int) -> Match:
    cells = line.split("\t")
    if len(cells) != width:
        raise ValueError(f"line {number} has {len(cells)} columns instead of {width}")
    source, target, text = cells[: len(COLUMNS)]
    prob = number_of(text)
    if not 0 <= prob <= 1:  # NaN is not, either
        raise ValueError(f"the probability in line {number} is {text}")
    return source, target, prob


def known_matches(path: Path, matches: Iterable[Match], pair: GraphPair) -> list[Match]:
    """Return matches with the names of the entities, which the file may have escaped.

    Args:
        path: The file of the matches, for messages.
        matches: Its matches, one in each line after the first.
        pair: The graphs.

    Raises:
        DataError: A name is not that of an entity.
    """
    sources, targets = (
        {cell(name): name for name in graph.all_entity_names}
        for graph in (pair.source, pair.target)
    )
    found = []
    for number, (source, target, prob) in enumerate(matches, 2):
        for name, known, side in (
            (source, sources, "source"),
            (target, targets, "target"),
        ):
            if name not in known:
                raise DataError(
                    f"{path}, line {number}: {name} is not an entity of the {side} graph. Give the "
                    "alignment of this run."
                )
        found.append((sources[source], targets[target], prob))
    return found


class LeftOut(NamedTuple):
    """A match that is not merged, and why."""

    match: Match
    reason: str


BELOW_THRESHOLD = "below the threshold"
SAME_GRAPH = "would join two entities of one graph"

LEFT_OUT_COLUMNS = (
    "source",
    "target",
    "probability",
    "reason",
    "source_label",
    "target_label",
)


def chosen_matches(
    matches: Iterable[Match], threshold: float, cardinality: Cardinality
) -> tuple[list[Match], list[LeftOut]]:
    """Return the matches to merge, the most probable first, and those that are left out.

    A match is left out if it is less probable than the threshold, or if it would join two entities
    of one graph through a more probable match and the cardinality does not allow that.

    Args:
        matches: Source name, target name and probability of each match.
        threshold: Minimum probability of a match.
        cardinality: How many counterparts an entity may have.
    """
    chosen = []
    left_out = []
    used: tuple[set[str], set[str]] = set(), set()
    sides = cardinality.unique_sides.values()
    for match in sorted(matches, key=lambda match: (-match[2], *match[:2])):
        if match[2] < threshold:
            left_out.append(LeftOut(match, BELOW_THRESHOLD))
        elif any(str(match[side]) in used[side] for side in sides):
            left_out.append(LeftOut(match, SAME_GRAPH))
        else:
            chosen.append(match)
            used[0].add(match[0])
            used[1].add(match[1])
    return chosen, left_out


def left_out_lines(pair: GraphPair, left_out: Iterable[LeftOut]) -> Iterator[str]:
    """Yield the lines of a table of the matches that are not merged."""
    yield "\t".join(LEFT_OUT_COLUMNS)
    labels = [
        {name: entity_title(graph, entity) for entity, name in enumerate(names)}
        for graph, names in (
            (one, one.all_entity_names) for one in (pair.source, pair.target)
        )
    ]
    for (source, target, prob), reason in left_out:
        shown = labels[0].get(source, ""), labels[1].get(target, "")
        yield "\t".join((source, target, f"{prob:.6f}", reason, *map(cell, shown)))


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
            first = root(("source", source))
            second = root(("target", target))
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
    graphs = {"source": pair.source, "target": pair.target}
    return united_lines(pair.name, graphs, identifiers(matches))


def united_lines(
    name: str, graphs: Mapping[str, KnowledgeGraph], replaced: Mapping[Node, Node]
) -> Iterator[str]:
    """Yield the triples of all graphs as N-Triples, each once, and owl:sameAs triples.

    Args:
        name: The name of the data, for identifiers of names that are not IRIs.
        graphs: The graphs by side.
        replaced: The entity whose identifier each matched entity gets.
    """
    seen: set[str] = set()
    for side, graph in graphs.items():
        for line in _lines(graph, _Terms(name, side, replaced)):
            if line not in seen:
                seen.add(line)
                yield line
    for (side, entity), kept in replaced.items():
        first = entity_iri(kept[1], name, kept[0])
        second = entity_iri(entity, name, side)
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
    relations = [
        term(graph.relation_name(one), "-relation")
        for one in range(graph.num_relations)
    ]
    for head, relation, tail in graph.triples.tolist():
        yield f"{entities[head]} {relations[relation]} {entities[tail]} ."
    if (found := graph.attributes) is not None:
        attributes = [term(name, "-relation") for name in found.attribute_names]
        # names that were made from IRIs are not in the files
        given = np.array([name != IRI_NAME for name in found.attribute_names], bool)
        for entity, name, value in found.triples[given[found.triples[:, 1]]].tolist():
            text = _literal(found.values[value], found.kind(value))
            yield f"{entities[entity]} {attributes[name]} {text} ."


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r'[\\"\n\r]')


def _literal(text: str, kind: Kind) -> str:
    quoted = '"' + _ESCAPED.sub(lambda found: _ESCAPES[found.group()], text) + '"'
    if kind.language:
        return f"{quoted}@{kind.language}"
    return f"{quoted}^^<{kind.datatype}>" if kind.datatype else quoted
