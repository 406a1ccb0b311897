"""The answer as owl:sameAs links in N-Triples."""

from collections.abc import Iterator

from emea.data.entity_iri import entity_iri
from emea.export.alignment import Alignment

SAME_AS = "<http://www.w3.org/2002/07/owl#sameAs>"


def sameas_triples(alignment: Alignment) -> Iterator[str]:
    """A triple for each source entity that has a target; there is none to say of the others."""
    pair = alignment.pair.name
    for row in alignment.rows(0):
        if row.target is not None:
            source = entity_iri(row.source, pair, "source")
            target = entity_iri(row.target, pair, "target")
            yield f"<{source}> {SAME_AS} <{target}> ."
