"""Summarises the sizes and degrees of a pair in a table."""

import numpy as np

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, PairReading


def statistics_table(pair: GraphPair) -> str:
    """Return the statistics of a pair as a text table."""
    sides = [_counts(graph, len(pair.links)) for graph in (pair.source, pair.target)]
    rows = [(pair.name, "source", "target")]
    rows += [(what, left, sides[1][what]) for what, left in sides[0].items()]
    if pair.reading is not None:
        source = pair.reading.source
        target = pair.reading.target
        literals = "kept" if pair.source.attributes is not None else "left out"
        counts = (
            (f"literals {literals}", source.num_literals, target.num_literals),
            ("entities with literals only", source.num_isolated, target.num_isolated),
            ("owl:sameAs left out", source.num_same_as, target.num_same_as),
            ("repeated triples left out", source.num_duplicates, target.num_duplicates),
            ("bad lines left out", source.num_bad, target.num_bad),
        )
        rows += [(what, f"{left:,}", f"{right:,}") for what, left, right in counts]
    for one, other in zip(pair.source.vectors, pair.target.vectors, strict=True):
        what = f"vectors of {one.name} ({one.values.shape[1]} numbers)"
        rows.append((what, f"{len(one.values):,}", f"{len(other.values):,}"))
    official = "none"
    if pair.official is not None:
        parts = ("train", "validation", "test")
        official = ", ".join(
            f"{len(getattr(pair.official, part)):,} {part}" for part in parts
        )
    facts = [
        ("links", f"{len(pair.links):,}"),
        *(
            _read_links(pair.reading)
            if pair.reading
            else [("official split", official)]
        ),
        ("checksum", pair.checksum()),
    ]
    if pair.num_absent and not pair.reading:
        facts.insert(1, ("links without triples", f"{pair.num_absent:,}"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}"
        for row in rows
    ]
    width = max(len(row[0]) for row in [*rows, *facts])
    return "\n".join(
        [*lines, "", *(f"{what:<{width}}  {value}" for what, value in facts)]
    )


def _counts(graph: KnowledgeGraph, num_links: int) -> dict[str, str]:
    """Return the sizes and degrees of a graph by their names in the table."""
    degrees = graph.degrees()
    # the numbers below also need an empty graph to have a degree
    known = degrees if graph.num_entities else np.zeros(1, dtype=np.int64)
    return {
        "entities": f"{graph.num_entities:,}",
        "relations": f"{graph.num_relations:,}",
        "triples": f"{graph.num_triples:,}",
        "mean degree": f"{known.mean():.2f}",
        "median degree": f"{np.median(known):g}",
        "max degree": f"{known.max():,}",
        "entities without triple": f"{int((degrees == 0).sum()):,}",
        "share of entities linked": f"{num_links / max(1, graph.num_entities):.1%}",
    }


def _read_links(reading: PairReading) -> list[tuple[str, str]]:
    """Return the counts of the link files, without counts that are zero."""
    facts = []
    for links in (reading.links, reading.test_links):
        if links is None:
            continue
        others = (
            (links.num_unknown, "with an unknown entity"),
            (links.num_duplicates, "repeated"),
            (links.num_contradicting, "contradicting others"),
            (links.num_other, "of another kind"),
            (links.num_bad, "bad lines"),
        )
        left_out = ", ".join(f"{count:,} {what}" for count, what in others if count)
        suffix = f"; left out: {left_out}" if left_out else ""
        facts.append((links.label, f"{links.num_links:,} links{suffix}"))
    return facts
