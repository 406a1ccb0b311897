"""Writes clusters as tables, SSSOM, one graph and a page."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from emea.answer.alignment import PREDICATES, Origin
from emea.answer.merging import Node, united_lines
from emea.answer.sssom import (
    COLUMNS,
    COMPOSITE,
    LEXICAL,
    TYPES,
    CompactURIs,
    header_lines,
    shown_confidence,
    sssom_cell,
)
from emea.clusters.clustered import Clustered
from emea.clusters.clusters_page import clusters_page
from emea.data.entity_kinds import EntityKind, entity_kinds, is_blank
from emea.data.names import cell, entity_uri
from emea.record.checked_files import write_atomic, write_lines

CLUSTERS_FILE = "clusters.tsv"
PAIRS_FILE = "pairs.tsv"
SSSOM_FILE = "clusters.sssom.tsv"
MERGED_FILE = "merged.nt"
PAGE_FILE = "clusters.html"
FILES = (CLUSTERS_FILE, PAIRS_FILE, SSSOM_FILE, MERGED_FILE, PAGE_FILE)

LEAST_SHOWN = 0.1
"""Minimum probability of the pairs that are listed, unless they are in one cluster."""

MARK = "# Merged by emea: entities of one cluster have one identifier"

COMMENT = "Pairs of entities that are in one cluster."


def write_clusters(folder: Path, found: Clustered, origin: Origin) -> None:
    """Write all files of clusters into a folder."""
    write_lines(folder / CLUSTERS_FILE, cluster_lines(found))
    write_lines(folder / PAIRS_FILE, pair_lines(found))
    write_lines(folder / SSSOM_FILE, sssom_lines(found, origin))
    write_lines(folder / MERGED_FILE, chain([MARK], merged_lines(found)))
    write_atomic(folder / PAGE_FILE, clusters_page(found))


def cluster_lines(found: Clustered) -> Iterator[str]:
    """Yield the entities of each cluster; entities without a duplicate are left out."""
    has_sides = len(found.graphs) > 1
    side = ["graph"] if has_sides else []
    yield "\t".join(["cluster", *side, "entity", "label"])
    for number, row in enumerate(found.rows, 1):
        for entity in row:
            side = [found.member(entity).side] if has_sides else []
            cells = [*side, found.entity_name(entity), found.label(entity)]
            yield "\t".join([str(number), *map(cell, cells)])


def pair_lines(found: Clustered) -> Iterator[str]:
    """Yield the pairs that may be the same, the most probable first."""
    sides = ["first_graph", "second_graph"] if len(found.graphs) > 1 else []
    columns = ["first", "second", "probability", "cluster"]
    yield "\t".join([*columns, *sides, "first_label", "second_label"])
    for first, second, prob in found.joined_pairs(LEAST_SHOWN):
        is_joined = found.is_joined(first, second)
        cluster = str(found.numbers[first]) if is_joined else ""
        names = [cell(found.entity_name(one)) for one in (first, second)]
        labels = [cell(found.label(one)) for one in (first, second)]
        if sides:
            labels = [cell(found.member(one).side) for one in (first, second)] + labels
        yield "\t".join([*names, f"{prob:.6f}", cluster, *labels])


def sssom_lines(found: Clustered, origin: Origin) -> Iterator[str]:
    """Yield the likely pairs of each cluster as SSSOM, without blank nodes."""
    pairs = [
        (first, second, prob)
        for first, second, prob in found.joined_pairs(2.0)
        if prob >= found.threshold
        and not is_blank(found.entity_name(first))
        and not is_blank(found.entity_name(second))
    ]
    named = sorted({one for first, second, _ in pairs for one in (first, second)})
    uris = {one: entity_uri(found.iri(one)) for one in named}
    shorten = CompactURIs(list(uris.values()), "source")
    is_single = len(found.graphs) == 1
    sides = (found.sides[0],) * 2 if is_single else ("graphs", "graphs")
    why = LEXICAL if is_single else COMPOSITE
    yield from header_lines(
        found.name,
        origin,
        shorten.prefixes,
        COMMENT,
        "clusters",
        sides=sides,
        probs=[prob for *_, prob in pairs],
    )
    yield "\t".join(column for column in COLUMNS if column != "mapping_cardinality")
    kinds = {side: entity_kinds(graph) for side, graph in found.graphs.items()}
    for first, second, prob in pairs:
        members = [found.member(one) for one in (first, second)]
        both = {EntityKind(kinds[side][own]) for side, own in members}
        # OWL has no property that equates a class and an individual
        if len(both) > 1:
            continue
        kind = both.pop()
        ends = [
            (
                shorten(uris[one]),
                found.label(one),
                TYPES[kind],
            )
            for one in (first, second)
        ]
        confidence = shown_confidence(prob)
        cells = (*ends[0], PREDICATES[kind], *ends[1], why, confidence)
        yield "\t".join(map(sssom_cell, cells))


def merged_lines(found: Clustered) -> Iterator[str]:
    """Yield the triples of all graphs, in which the entities of a cluster have one identifier."""
    replaced: dict[Node, Node] = {}
    for row in found.rows:
        named = [one for one in row if not is_blank(found.entity_name(one))]
        for entity in named[1:]:
            kept = found.member(named[0]).side, found.entity_name(named[0])
            node = found.member(entity).side, found.entity_name(entity)
            replaced[node] = kept
    return united_lines(found.name, found.graphs, replaced)
