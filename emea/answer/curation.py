"""Decisions of a person about pairs of entities: who accepted or rejected a pair, and when."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair
from emea.record.checked_files import damaged, read_file, reading, write_lines
from emea.record.file_names import DECISIONS_FILE as DECISIONS_FILE

ACCEPTED, REJECTED = "accepted", "rejected"

COLUMNS = ("source", "target", "decision", "author", "date")

ORCID = "orcid"
ORCID_NAMESPACE = "https://orcid.org/"

_ORCID_NUMBER = re.compile(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]")
_WITH_ID = re.compile(r"(?P<label>.*?)\s*<(?P<id>[^<>\s]+)>")


class Curated(NamedTuple):
    """The decision of a person about one pair.

    Args:
        source: Name of the source entity.
        target: Name of the target entity.
        decision: ``accepted`` or ``rejected``.
        author: Who decided; empty if it is unknown.
        date: When, ISO 8601; empty if it is unknown.
    """

    source: str
    target: str
    decision: str
    author: str = ""
    date: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        """The names of both entities."""
        return self.source, self.target


class Author(NamedTuple):
    """A person: an identifier as a CURIE or IRI, and a name. Either may be empty."""

    id: str
    label: str


def author_of(text: str) -> Author:
    """Return identifier and name of an author.

    The text is a name, an ORCID, an IRI, or a name with an identifier in angle brackets, as in
    ``Ada Lovelace <0000-0002-1825-0097>``.
    """
    found = _WITH_ID.fullmatch(text.strip())
    if found is not None:
        return Author(_identifier(found["id"]), found["label"])
    identifier = _identifier(text.strip())
    is_identifier = "://" in identifier or identifier.startswith(f"{ORCID}:")
    return Author(identifier, "") if is_identifier else Author("", text.strip())


def _identifier(text: str) -> str:
    """Return an identifier; one of ORCID becomes a CURIE."""
    number = _ORCID_NUMBER.search(text)
    is_orcid = number is not None and text.removesuffix("/").endswith(number.group())
    return f"{ORCID}:{number.group()}" if number is not None and is_orcid else text


def curated_pairs(
    pair: GraphPair, pairs: IntArray | None, decision: str, author: str, date: str
) -> list[Curated]:
    """Return one decision about each of some pairs.

    Args:
        pair: The graphs, for the names.
        pairs: ``[num_pairs, 2]`` source and target entities; ``None`` means no pairs.
        decision: ``accepted`` or ``rejected``.
        author: Who decided.
        date: When.
    """
    if pairs is None:
        return []
    source = pair.source.entity_name
    target = pair.target.entity_name
    return [
        Curated(source(a), target(b), decision, author, date) for a, b in pairs.tolist()
    ]


def write_decisions(folder: Path, decisions: Sequence[Curated]) -> None:
    """Write ``decisions.tsv``, or remove it if there are no decisions."""
    path = folder / DECISIONS_FILE
    if not decisions:
        path.unlink(missing_ok=True)
        return
    write_lines(path, decision_lines(decisions))


def decision_lines(decisions: Iterable[Curated]) -> Iterator[str]:
    """Yield the lines of a table of decisions, with a header."""
    rows: Iterable[tuple[str, ...]] = (COLUMNS, *decisions)
    return ("\t".join(map(_cell, row)) for row in rows)


def read_decisions(folder: Path) -> list[Curated]:
    """Return the decisions of a run; runs of older versions have none.

    Raises:
        DataError: If the file is damaged.
    """
    path = folder / DECISIONS_FILE
    if not path.exists():
        return []
    with reading(path):
        # not splitlines(): a name can contain other line separators
        lines = read_file(path).decode().rstrip("\n").split("\n")
    rows = [line.split("\t") for line in lines[1:]]
    # a run without decisions has no such file
    if (
        not rows
        or tuple(lines[0].split("\t")) != COLUMNS
        or any(
            len(row) != len(COLUMNS) or row[2] not in (ACCEPTED, REJECTED)
            for row in rows
        )
    ):
        raise damaged(path, f"it does not consist of the columns {', '.join(COLUMNS)}")
    return [Curated(*map(restored, row)) for row in rows]


_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r"\\(.)")


def _cell(text: str) -> str:
    return "".join(_ESCAPES.get(mark, mark) for mark in text)


def restored(text: str) -> str:
    """Return the text of a cell, in which tabs, line breaks and backslashes are escaped."""
    marks = {escape[1]: mark for mark, escape in _ESCAPES.items()}
    return _ESCAPED.sub(lambda found: marks.get(found.group(1), found.group()), text)
