"""Reads links from tables, SSSOM files and RDF statements such as ``owl:sameAs``."""

from pathlib import Path

from pyoxigraph import BlankNode, NamedNode, Quad

from emea.data.entity_kinds import OWL
from emea.data.formats.content import content_explained
from emea.data.formats.files import LINK_FORMATS, BadLines, file_format
from emea.data.formats.limits import explained_failures
from emea.data.formats.ntriples import statements_of
from emea.data.formats.rdf import RDF_FORMATS, shown_name, statements
from emea.data.formats.rows import wanted_cells
from emea.data.formats.sssom import read_sssom, sssom_format
from emea.data.formats.triple_collector import SAME_AS
from emea.data.links import LinkListing

EQUIVALENT_TERMS = (f"{OWL}equivalentClass", f"{OWL}equivalentProperty")
"""Relations that an exported alignment has between classes and between properties."""

LINK_COLUMNS = (("source", "subject_id", "left"), ("target", "object_id", "right"))
"""Column names for the two entities that a header may use."""


def read_link_file(
    path: Path, given_format: str | None = None, on_error: str = "stop"
) -> LinkListing:
    """Read the links of a file.

    A table has two columns, or a header that names the two among others. A table with the columns
    ``subject_id`` and ``object_id`` is read as SSSOM, with tabs or commas as separators. In RDF
    every ``owl:sameAs`` triple is a link, and its subject may belong to either graph. So is every
    ``owl:equivalentClass`` or ``owl:equivalentProperty`` triple of two IRIs. Other triples are
    ignored.

    Args:
        path: The file. A ``.gz`` file is decompressed while it is read.
        given_format: Its format. ``None`` chooses the format by the suffix of the file.
        on_error: ``stop`` at a line that cannot be read, or ``skip`` and count it.

    Raises:
        ConfigError: A setting has an unknown value.
        DataError: The file cannot be read.
    """
    key = "data.links_format"
    found = file_format(path, given_format, LINK_FORMATS, key)
    bad = BadLines(path.name, on_error)
    with content_explained(path, found, given_format, key), explained_failures(path):
        if found == "ntriples":
            listing = _links_by_line(path, bad)
        elif found in RDF_FORMATS:
            listing = _links_by_number(path, found, bad)
        elif (separated := sssom_format(path, found)) is not None:
            listing = read_sssom(path, separated, bad)
        else:
            listing = _from_table(path, found, bad)
    bad.log_others()
    return listing


def _from_table(path: Path, found: str, bad: BadLines) -> LinkListing:
    rows = list(wanted_cells(path, found, LINK_COLUMNS, bad))
    links = [(row.cells[0], row.cells[1]) for row in rows]
    return LinkListing(path.name, links, [row.line for row in rows], num_bad=bad.num_lines)


def _links_by_line(path: Path, bad: BadLines) -> LinkListing:
    numbered = statements_of((SAME_AS, *EQUIVALENT_TERMS), path, bad)
    kept = [(line, quad) for line, quad in numbered if _is_link(quad)]
    return _from_statements(path.name, kept, "line", bad)


def _links_by_number(path: Path, found: str, bad: BadLines) -> LinkListing:
    numbered = enumerate(statements(path, found, bad), 1)
    kept = [(number, quad) for number, quad in numbered if _is_link(quad)]
    return _from_statements(path.name, kept, "triple", bad)


def _from_statements(
    label: str, found: list[tuple[int, Quad]], unit: str, bad: BadLines
) -> LinkListing:
    links = [(shown_name(str(quad.subject)), shown_name(str(quad.object))) for _, quad in found]
    places = [place for place, _ in found]
    return LinkListing(label, links, places, unit, symmetric=True, num_bad=bad.num_lines)


def _is_link(quad: Quad) -> bool:
    ends, relation = (quad.subject, quad.object), quad.predicate.value
    if relation in EQUIVALENT_TERMS:
        # a blank node is a class expression and not an entity
        return all(isinstance(end, NamedNode) for end in ends)
    return relation == SAME_AS and all(isinstance(end, NamedNode | BlankNode) for end in ends)
