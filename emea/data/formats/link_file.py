"""Reads links from tables, SSSOM files, RDF statements such as ``owl:sameAs``, and alignments."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import yaml
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from emea.data.entity_kinds import ALIGNMENT, NO_TERM_FOUND, OWL, SKOS
from emea.data.formats.input_file import (
    FORMATS,
    BadLines,
    InputFile,
    file_format,
    link_formats,
    loaded_reader,
)
from emea.data.formats.limits import Guard, explained_failures
from emea.data.formats.ntriples import statements_of
from emea.data.formats.rdf import (
    ImperfectRDFError,
    rdf_guard,
    shown_name,
    statements,
)
from emea.data.formats.rows import lines, name_problem, rows, wanted_cells
from emea.data.formats.tab_file import number_of
from emea.data.formats.triple_collector import SAME_AS
from emea.data.links import LinkListing
from emea.data.names import Prefixes
from emea.errors import DataError

log = logging.getLogger(__name__)

EQUIVALENT_TERMS = (
    f"{OWL}equivalentClass",
    f"{OWL}equivalentProperty",
    f"{SKOS}exactMatch",
)
"""Relations that an exported alignment has between classes, properties or any entities."""

LINK_COLUMNS = (("source", "subject_id", "left"), ("target", "object_id", "right"))
"""Column names for the two entities that a header may use."""


DECISION = "decision"
STATEMENTS = tuple(
    form
    for name in (DECISION, "probability", "confidence", "measure")
    for form in (name, name.capitalize(), name.upper())
)
"""Columns of a table that may deny a link."""


def read_link_file(
    path: Path,
    given_format: str | None = None,
    on_error: str = "stop",
    base_iri: str | None = None,
) -> LinkListing:
    r"""Read the links of a file.

    A table has two columns, or a header that names the two among others. Pairs that its column
    ``decision`` does not accept, or whose probability is 0, are not links. A table with the columns
    ``subject_id`` and ``object_id`` is read as SSSOM, with tabs or commas as separators. In RDF
    every ``owl:sameAs`` triple is a link, and its subject may belong to either graph. So is every
    ``owl:equivalentClass``, ``owl:equivalentProperty`` or ``skos:exactMatch`` triple of two IRIs.
    If the file contains cells of the Alignment format, its links are the cells with the relation
    ``=``. Other triples are ignored.

    Args:
        path: The file. A ``.gz`` file is decompressed while it is read.
        given_format: Its format. ``None`` finds it out.
        on_error: ``stop`` at a line that cannot be read, or ``skip`` and count it.
        base_iri: What relative IRIs in RDF are resolved against.

    Raises:
        ConfigError: A setting has an unknown value.
        DataError: The file cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        ...     _ = file.write("anna\tAnna\nben\tBen\n")
        ...     file.flush()
        ...     read_link_file(Path(file.name)).links
        [('anna', 'Anna'), ('ben', 'Ben')]
    """
    found = file_format(path, given_format, link_formats(), "data.links_format")
    bad = BadLines(path.name, on_error, FORMATS[found].unit, base_iri)
    with explained_failures(path):
        read = loaded_reader(FORMATS[found].link_reader)
        listing: LinkListing = read(InputFile(path, found, bad))
    bad.log_others(path)
    return listing


def read_statements(file: InputFile) -> LinkListing:
    """Read the links of a file in a format of RDF."""
    try:
        return _from_statements(file.path, file.format, file.bad)
    except ImperfectRDFError:  # now the reader is lenient
        return _from_statements(file.path, file.format, file.bad)


def read_link_table(file: InputFile) -> LinkListing:
    """Read the links of a table, which may be in the format SSSOM."""
    if (separated := sssom_format(file.path, file.format)) is not None:
        return read_sssom(file.path, separated, file.bad)
    return _from_table(file.path, file.format, file.bad)


def _from_table(path: Path, found: str, bad: BadLines) -> LinkListing:
    links = []
    places = []
    num_other = 0
    invalid: list[tuple[int, str]] = []
    is_decided = _has_decisions(path, found)
    for row in wanted_cells(path, found, LINK_COLUMNS, bad, attributes=STATEMENTS):
        stated = {name.lower(): text.strip() for name, text in row.attributes}
        decision = stated.pop(DECISION, "")
        if is_decided and decision not in ("accepted", "rejected", ""):
            bad.add(row.line, f"decision must be accepted or rejected, got {decision}")
            continue
        meanings = {text: _meaning_of(text) for text in stated.values()}
        invalid += [
            (row.line, text) for text, one in meanings.items() if one == INVALID
        ][:1]
        is_denied = is_decided and decision != "accepted"
        if is_denied or set(meanings.values()) - {EQUAL}:
            num_other += 1
        else:
            links.append((row.cells[0], row.cells[1]))
            places.append(row.line)
    if invalid:
        _warn_of_confidence(path.name, invalid, "links", "probability")
    if num_other > len(invalid):
        log.warning(
            "%s: %d pairs are rejected, undecided or have the probability 0, and are not links.",
            path.name,
            num_other - len(invalid),
        )
    return LinkListing(
        path.name, links, places, num_other=num_other, num_bad=bad.num_lines
    )


def _has_decisions(path: Path, found: str) -> bool:
    """Return whether a table has a column with the decisions of a person."""
    header = next(lines(path, found), "")
    cells = header.split("\t" if found == "tsv" else ",")
    return DECISION in (cell.strip(' "\ufeff').lower() for cell in cells)


def _from_statements(path: Path, found: str, bad: BadLines) -> LinkListing:
    """Return the links of an RDF file. Only in N-Triples are the numbers those of lines."""
    guard = None if found == "ntriples" else rdf_guard(path, found)
    numbered: Iterable[tuple[int, Quad]]
    if guard is None:
        numbered = statements_of((SAME_AS, *EQUIVALENT_TERMS, ALIGNMENT), path, bad)
    else:
        numbered = enumerate(statements(path, found, bad, guard), 1)
    links = []
    places = []
    cells: dict[str, dict[str, str]] = {}
    for number, quad in numbered:
        predicate = quad.predicate.value
        value = quad.object
        if predicate.startswith(ALIGNMENT):
            part = predicate[len(ALIGNMENT) :].lstrip("#")
            if part not in CELL_PARTS or not isinstance(value, NamedNode | Literal):
                continue
            names: tuple[str, ...] = (value.value,)
            cells.setdefault(str(quad.subject), {})[part] = value.value
        elif _is_link(quad):
            names = shown_name(str(quad.subject)), shown_name(str(value))
            links.append((names[0], names[1]))
            places.append(number)
        else:
            continue
        if guard is not None:
            guard.check_expanded(names)
    unit = "line" if guard is None else "triple"
    stated = LinkListing(
        path.name, links, places, unit, symmetric=True, num_bad=bad.num_lines
    )
    return _with_cells(stated, cells) if cells else stated


def _is_link(quad: Quad) -> bool:
    ends = (quad.subject, quad.object)
    relation = quad.predicate.value
    if relation in EQUIVALENT_TERMS:
        # a blank node is a class expression and not an entity
        return all(isinstance(end, NamedNode) for end in ends)
    return relation == SAME_AS and all(
        isinstance(end, NamedNode | BlankNode) for end in ends
    )


SUBJECT, OBJECT = "subject_id", "object_id"
SSSOM_COLUMNS = {SUBJECT, OBJECT}
"""Columns by which an SSSOM table is recognised."""

PREDICATE, MODIFIER = "predicate_id", "predicate_modifier"
CONFIDENCE = "confidence"
EQUIVALENCES = (
    *("skos:exactMatch", "owl:sameAs", "owl:equivalentClass", "owl:equivalentProperty"),
    *(SAME_AS, *EQUIVALENT_TERMS),
)
"""Predicates which state that two entities are the same."""


def sssom_format(path: Path, file_format: str) -> str | None:
    """Return how an SSSOM table separates its columns, or ``None`` if it is not an SSSOM table.

    The header decides and not the suffix of the file, because some programs save SSSOM tables with
    commas.
    """
    header = next(
        (line for line in lines(path, file_format) if not _is_above(line)), ""
    )
    cells = {
        "tsv": header.split("\t"),
        "csv": [cell.strip(' "') for cell in header.split(",")],
    }
    return next(
        (found for found in cells if set(_names(cells[found])) >= SSSOM_COLUMNS), None
    )


def _names(header: Sequence[str]) -> list[str]:
    """Return the column names of a header. As in other tables, case does not matter."""
    return [cell.strip().lower() for cell in header]


def _warn_of_confidence(
    name: str,
    invalid: Sequence[tuple[int, str]],
    what: str = "mappings",
    measure: str = CONFIDENCE,
) -> None:
    """Count the mappings whose confidence is not a probability, and show the first one."""
    line, text = invalid[0]
    log.warning(
        "%s: %d %s are left out, because their %s is not a number from 0 to 1. The first is in "
        "line %d, with the %s %r.",
        name,
        len(invalid),
        what,
        measure,
        line,
        measure,
        text,
    )


def read_sssom(path: Path, file_format: str, bad: BadLines) -> LinkListing:
    """Read the mappings which state that two entities are the same.

    The ``curie_map`` in the commented YAML at the top defines the prefixes. Other mappings, such as
    broader, narrower or negated matches, are left out and counted.

    Args:
        path: The file.
        file_format: ``tsv`` or ``csv``, as returned by ``sssom_format``.
        bad: Handles lines that cannot be used.

    Raises:
        DataError: The YAML or the header cannot be read.
    """
    comments = list(takewhile(_is_above, lines(path, file_format)))
    # Comments are not rows. Quotes in them do not follow the rules for cells.
    body = rows(path, file_format, bad, after=len(comments))
    header = _names(next((row.cells for row in body), []))
    if not set(header) >= SSSOM_COLUMNS:
        raise DataError(
            f"{path.name}: the header cannot be read. Check the quotes in it."
        )
    links = []
    places = []
    num_other = 0
    invalid: list[tuple[int, str]] = []
    for row in body:
        cells = dict(zip(header, row.cells, strict=False))
        if row.cells[0].startswith("#") and not cells.get(OBJECT):
            continue
        if (problem := _problem(cells)) is not None:
            bad.add(row.line, problem)
        elif not _is_equivalence(cells):
            num_other += 1
        elif (meaning := _meaning_of(cells.get(CONFIDENCE) or "1")) != EQUAL:
            num_other += 1
            if meaning == INVALID:
                invalid.append((row.line, cells[CONFIDENCE]))
        else:
            links.append((cells[SUBJECT], cells[OBJECT]))
            places.append(row.line)
    yaml_lines = [_without_mark(line, file_format) for line in comments]
    if invalid:
        _warn_of_confidence(path.name, invalid)
    prefixes = Prefixes(_curie_map(path.name, yaml_lines))
    guard = Guard(path, path.stat().st_size)
    for namespace in prefixes.namespaces.values():
        guard.check_iri(len(namespace))
    guard.check_expanded(prefixes.in_full(name) for link in links for name in link)
    return LinkListing(
        path.name,
        links,
        places,
        prefixes=prefixes,
        num_other=num_other,
        num_bad=bad.num_lines,
    )


def _is_above(line: str) -> bool:
    """Return whether a line above the table is empty or a comment, which may be quoted."""
    return not line.strip(",\t") or line.startswith(("#", '"#'))


def _without_mark(line: str, file_format: str) -> str:
    """Return the YAML of a comment. Spreadsheet programs may have quoted it and added cells."""
    if file_format == "csv":
        line = line.rstrip(",")
        if line.startswith('"'):
            line = line[1:].removesuffix('"').replace('""', '"')
    return line[1:]


def _problem(cells: dict[str, str]) -> str | None:
    for column in (SUBJECT, OBJECT):
        if (problem := name_problem(cells.get(column, ""))) is not None:
            return f"{column} {problem}"
    return None


def _is_equivalence(cells: dict[str, str]) -> bool:
    predicate = cells.get(PREDICATE) or EQUIVALENCES[0]
    is_pair = NO_TERM_FOUND not in (cells[SUBJECT], cells[OBJECT])
    return is_pair and predicate in EQUIVALENCES and not cells.get(MODIFIER)


def _curie_map(label: str, yaml_lines: Sequence[str]) -> dict[str, str]:
    try:
        # BaseLoader reads all values as text; other loaders read the prefix NO as false
        metadata = yaml.load("\n".join(yaml_lines), yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise DataError(
            f"{label}: the commented header is not valid YAML: {error}"
        ) from error
    prefixes = metadata.get("curie_map") if isinstance(metadata, dict) else None
    if not isinstance(prefixes, dict):
        return {}
    return {
        prefix: namespace
        for prefix, namespace in prefixes.items()
        if isinstance(prefix, str) and isinstance(namespace, str) and namespace
    }


ENTITIES = ("entity1", "entity2")
CELL_RELATION, MEASURE = "relation", "measure"
CELL_PARTS = (*ENTITIES, CELL_RELATION, MEASURE)
EQUAL_RELATIONS = ("=", "==", "EquivRelation")
"""Relations which state that two entities are the same: a sign or the name of a Java class."""


EQUAL, OTHER, INVALID = "equal", "other", "invalid"
"""What a cell states: two equal entities, another relation, or a measure that is not one."""


def _with_cells(stated: LinkListing, cells: dict[str, dict[str, str]]) -> LinkListing:
    """Return the cells with the relation ``=``, with the links that the file states in triples.

    A cell relates two entities, either of which may be the source entity. Cells with a measure of 0
    deny a link. Cells whose measure is not a number from 0 to 1 are left out with a warning.
    """
    links = list(stated.links)
    places = list(stated.places)
    invalid: list[tuple[int, str]] = []
    for number, parts in enumerate(cells.values(), 1):
        first, second = (parts.get(name) for name in ENTITIES)
        meaning = _meaning(parts)
        if meaning == INVALID:
            invalid.append((number, parts[MEASURE]))
        if first and second and meaning == EQUAL:
            links.append((first, second))
            places.append(number)
    num_cells = len(links) - len(stated.links)
    if invalid:
        log.warning(
            "%s: %d cells are left out, because their measure is not a number from 0 to 1. The "
            "first is cell %d, with the measure %r.",
            stated.label,
            len(invalid),
            *invalid[0],
        )
    if stated.links:
        log.info(
            "%s: %d links are cells of the Alignment format, and %d are triples such as owl:sameAs",
            stated.label,
            num_cells,
            len(stated.links),
        )
    return replace(
        stated,
        links=links,
        places=places,
        unit=CELL if not stated.links else "cell or triple",
        num_other=len(cells) - num_cells,
    )


CELL = "cell"


def _meaning(parts: dict[str, str]) -> str:
    """Return whether a cell states that its entities are equal."""
    relation = parts.get(CELL_RELATION, "=").strip().rpartition(".")[2]
    if relation not in EQUAL_RELATIONS:
        return OTHER
    return _meaning_of(parts.get(MEASURE, "1"))


def _meaning_of(measure: str) -> str:
    """Return what a measure or a confidence states: 0 denies a link."""
    try:
        value = number_of(measure)
    except ValueError:
        return INVALID
    if not 0 <= value <= 1:  # also false for NaN
        return INVALID
    return EQUAL if value > 0 else OTHER
