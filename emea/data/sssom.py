"""Reads mappings in SSSOM, the Simple Standard for Sharing Ontological Mappings (TSV)."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

import yaml

from emea.data.bad_lines import BadLines
from emea.data.link_listing import LinkListing
from emea.data.prefixes import Prefixes
from emea.data.row_file import Row, name_problem, rows
from emea.errors import DataError

SUBJECT, OBJECT = "subject_id", "object_id"
NO_TERM_FOUND = "sssom:NoTermFound"
"""Stands for the other entity where there is none."""

PREDICATE, MODIFIER = "predicate_id", "predicate_modifier"
EQUIVALENCES = (
    "skos:exactMatch",
    "owl:sameAs",
    "owl:equivalentClass",
    "owl:equivalentProperty",
    "http://www.w3.org/2004/02/skos/core#exactMatch",
    "http://www.w3.org/2002/07/owl#sameAs",
    "http://www.w3.org/2002/07/owl#equivalentClass",
    "http://www.w3.org/2002/07/owl#equivalentProperty",
)
"""Predicates that say that two entities are the same."""


def is_sssom(path: Path, file_format: str) -> bool:
    """Whether a table has the columns of SSSOM, after comments where it begins with some."""
    if file_format != "tsv":
        return False
    header = next((row for row in _rows(path) if not _is_comment(row)), None)
    return header is not None and {SUBJECT, OBJECT} <= set(header.cells)


def read_sssom(path: Path, file_format: str, bad: BadLines) -> LinkListing:
    """The mappings that say that two entities are the same.

    Prefixes are those of the ``curie_map`` in the commented YAML at the top. Mappings of another
    kind (a broader or narrower match, or one that is denied) are left out and counted.

    Args:
        path: the file.
        file_format: ``tsv``.
        bad: told of lines that cannot be used.

    Raises:
        DataError: the YAML cannot be read.
    """
    comments = list(takewhile(_is_comment, _rows(path)))
    body = (row for row in rows(path, file_format, bad) if not _is_comment(row))
    header = next(body).cells
    links, lines, num_other = [], [], 0
    for row in body:
        cells = dict(zip(header, row.cells, strict=False))
        if (problem := _problem(cells)) is not None:
            bad.add(row.line, problem)
        elif not _is_equivalence(cells):
            num_other += 1
        else:
            links.append((cells[SUBJECT], cells[OBJECT]))
            lines.append(row.line)
    prefixes = Prefixes(_curie_map(path.name, comments))
    return LinkListing(
        path.name, links, lines, prefixes=prefixes, num_other=num_other, num_bad=bad.num_lines
    )


def _rows(path: Path) -> Iterator[Row]:
    return rows(path, "tsv", BadLines(path.name))


def _is_comment(row: Row) -> bool:
    return row.cells[0].startswith("#")


def _problem(cells: dict[str, str]) -> str | None:
    for column in (SUBJECT, OBJECT):
        if (problem := name_problem(cells.get(column, ""))) is not None:
            return f"{column} {problem}"
    return None


def _is_equivalence(cells: dict[str, str]) -> bool:
    predicate = cells.get(PREDICATE) or EQUIVALENCES[0]
    is_pair = NO_TERM_FOUND not in (cells[SUBJECT], cells[OBJECT])
    return is_pair and predicate in EQUIVALENCES and not cells.get(MODIFIER)


def _curie_map(label: str, comments: Sequence[Row]) -> dict[str, str]:
    text = "\n".join("\t".join(row.cells)[1:] for row in comments)
    try:
        # every value as the text it is: elsewhere in YAML the prefix NO is the value false
        metadata = yaml.load(text, yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise DataError(f"{label}: the commented header is no YAML: {error}") from error
    prefixes = metadata.get("curie_map") if isinstance(metadata, dict) else None
    if not isinstance(prefixes, dict):
        return {}
    return {
        prefix: namespace
        for prefix, namespace in prefixes.items()
        if isinstance(prefix, str) and isinstance(namespace, str) and namespace
    }
