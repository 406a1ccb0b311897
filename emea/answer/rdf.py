"""Writes an alignment as RDF: N-Triples, or cells of OAEI's Alignment format."""

from collections.abc import Iterable, Iterator
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from emea.answer.alignment import Alignment, statements
from emea.data.entity_kinds import ALIGNMENT, OWL, RDF, SKOS
from emea.data.names import EMEA

NAMESPACES = {"owl": OWL, "skos": SKOS}


def owl_triples(alignment: Alignment) -> Iterator[str]:
    """Yield an N-Triples line for each source entity that has a target.

    By default, individuals are joined by ``owl:sameAs``, classes by ``owl:equivalentClass`` and
    properties by ``owl:equivalentProperty``.
    """
    for statement in statements(alignment):
        if statement.target_iri is not None:
            prefix, _, name = statement.predicate.partition(":")
            predicate = NAMESPACES[prefix] + name
            yield f"<{statement.source_iri}> <{predicate}> <{statement.target_iri}> ."


Cell = tuple[str, str, float, str]
"""The IRIs of both entities, the probability, and ``=``, ``<`` (is included in) or ``>``."""


def rdf_cells(alignment: Alignment) -> Iterator[str]:
    """Yield the lines of ``alignment.rdf``: a cell with a measure for each match."""
    cells = (
        (one.source_iri, one.target_iri, one.row.prob, "=")
        for one in statements(alignment)
        if one.target_iri is not None
    )
    yield from cell_lines(alignment.pair.name, cells)


def cell_lines(name: str, cells: Iterable[Cell]) -> Iterator[str]:
    """Yield the lines of an alignment in RDF/XML, in the layout that most programs write.

    Args:
        name: The name of the pair of graphs.
        cells: The statements.
    """
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f'<rdf:RDF xmlns="{ALIGNMENT}#"'
    yield f'         xmlns:rdf="{RDF}"'
    yield '         xmlns:xsd="http://www.w3.org/2001/XMLSchema#">'
    yield "<Alignment>"
    yield "  <xml>yes</xml>"
    yield "  <level>0</level>"
    yield "  <type>??</type>"
    for number, side in enumerate(("source", "target"), 1):
        yield f"  <onto{number}>{EMEA}{quote(name, safe='')}:{side}</onto{number}>"
    for source, target, measure, relation in cells:
        yield "  <map><Cell>"
        yield f"    <entity1 rdf:resource={quoteattr(source)}/>"
        yield f"    <entity2 rdf:resource={quoteattr(target)}/>"
        yield (
            '    <measure rdf:datatype="http://www.w3.org/2001/XMLSchema#float">'
            f"{measure:.6f}</measure>"
        )
        yield f"    <relation>{escape(relation)}</relation>"
        yield "  </Cell></map>"
    yield "</Alignment>"
    yield "</rdf:RDF>"
