"""Decisions about pairs as a file: of a service, a person, a script or a language model."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from emea.answer.curation import (
    ACCEPTED,
    COLUMNS,
    REJECTED,
    Curated,
    decision_lines,
    restored,
)
from emea.data.formats.tab_file import read_lines
from emea.data.links import LinkListing
from emea.errors import DataError
from emea.record.checked_files import json_object, write_lines

ANSWERS = {"yes": ACCEPTED, "no": REJECTED, "unsure": ""}
"""Answers to the question whether two entities are the same, and the decision that follows."""

REQUIRED = COLUMNS[:3]

MOST_COST = 1e12
ALIKE = 0.8
"""Similarity of a misspelt key to the right one."""

KEYS = ("answer", "source", "target", "author", "date", "cost")
"""Keys of an answer that have a meaning. Others are ignored, unless they are misspelt."""


@dataclass(frozen=True)
class DecidedPairs:
    """The decisions of a file.

    Args:
        label: The name of the file.
        decisions: One decision for each decided pair.
        places: The line of each decision.
        num_open: Number of pairs without a decision.
        cost: The sum of the costs that the answers state; ``None`` if they state none.
    """

    label: str
    decisions: Sequence[Curated]
    places: Sequence[int]
    num_open: int = 0
    cost: float | None = None

    def listing(self, decision: str) -> LinkListing | None:
        """Return the pairs with a decision as a list of links, or ``None`` if there are none."""
        rows = [
            (one.pair, place)
            for one, place in zip(self.decisions, self.places, strict=True)
            if one.decision == decision
        ]
        if not rows:
            return None
        pairs, places = map(list, zip(*rows, strict=True))
        return LinkListing(self.label, pairs, places)

    def completed(self, decisions: Iterable[Curated]) -> list[Curated]:
        """Return decisions with the author and the date that the file states for their pair."""
        stated = {one.pair: one for one in self.decisions}
        found = []
        for one in decisions:
            own = stated.get(one.pair)
            if own is not None and own.decision == one.decision:
                author = own.author or one.author
                one = one._replace(author=author, date=own.date or one.date)
            found.append(one)
        return found


def read_decided(path: Path) -> DecidedPairs:
    """Read decisions from ``decisions.tsv``, or from the answers to questions in JSON Lines.

    Raises:
        DataError: The file cannot be read, or a line has no valid decision.
    """
    found: dict[tuple[str, str], tuple[Curated, int]] = {}
    costs = []
    num_open = 0
    is_json = path.suffix in (".jsonl", ".json", ".ndjson")
    for place, row in _objects(path) if is_json else _rows(path):
        where = f"{path}, line {place}"
        decided = _answered(row, where) if is_json else _listed(row, where)
        cost = row.get("cost")
        if isinstance(cost, int | float):
            if abs(cost) > MOST_COST:
                raise DataError(f"{where}: cost is too large. Correct it or remove it.")
            costs += [float(cost)] * math.isfinite(cost)
        if decided is None:
            num_open += 1
            continue
        known = found.get(decided.pair)
        if known is not None and known[0].decision != decided.decision:
            raise DataError(
                f"{where}: {' - '.join(decided.pair)} is both accepted and rejected (line "
                f"{known[1]}). Remove one of the lines."
            )
        found[decided.pair] = decided, place
    decisions = [decided for decided, _ in found.values()]
    places = [place for _, place in found.values()]
    return DecidedPairs(
        path.name, decisions, places, num_open, sum(costs) if costs else None
    )


def write_decided(path: Path, decisions: Iterable[Curated]) -> None:
    """Write decisions in the form of ``decisions.tsv``, atomically."""
    write_lines(path, decision_lines(decisions))


def _rows(path: Path) -> Iterable[tuple[int, Mapping[str, Any]]]:
    """Yield the lines of a table, each with its number; a header names the columns."""
    header: list[str] = []
    for place, line in enumerate(read_lines(path), 1):
        cells = list(map(restored, line.split("\t")))
        if not line.strip():
            continue
        if not header:
            header = cells
            twice = [name for name in COLUMNS if header.count(name) > 1]
            if twice:
                raise DataError(
                    f"{path} has more than one column {twice[0]}. Remove the others."
                )
            if not set(REQUIRED) <= set(header):
                raise DataError(
                    f"{path} has no decisions: its first line must name the columns "
                    f"{', '.join(REQUIRED)}. Answers in JSON need a name that ends with .jsonl."
                )
            continue
        if len(cells) != len(header):
            raise DataError(
                f"{path}, line {place}: there are {len(cells)} cells, but {len(header)} columns."
            )
        yield place, dict(zip(header, cells, strict=True))


def _objects(path: Path) -> Iterable[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of JSON Lines, each with the number of its line."""
    for place, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            yield place, json_object(line.encode())
        except (ValueError, json.JSONDecodeError) as error:
            raise DataError(
                f"{path}, line {place}: {error}. Write one JSON object per line."
            ) from error


def _listed(row: Mapping[str, Any], where: str) -> Curated | None:
    decision = row["decision"]
    if decision not in (ACCEPTED, REJECTED, ""):
        raise DataError(
            f"{where}: decision must be {ACCEPTED} or {REJECTED}, got {decision!r}."
        )
    return _decision(row, decision, where)


def _answered(row: Mapping[str, Any], where: str) -> Curated | None:
    for key in KEYS:
        others = [one for one in row if one not in KEYS]
        if key not in row and (misspelt := get_close_matches(key, others, 1, ALIKE)):
            raise DataError(f"{where}: the key {misspelt[0]!r} must be {key!r}.")
    answer = str(row.get("answer") or "unsure").strip(" .").casefold()
    if answer not in ANSWERS:
        raise DataError(
            f"{where}: answer must be {', '.join(ANSWERS)} or null, got {row['answer']!r}."
        )
    return _decision(row, ANSWERS[answer], where)


def _decision(row: Mapping[str, Any], decision: str, where: str) -> Curated | None:
    names = [row.get("source"), row.get("target")]
    if not all(isinstance(name, str) and name for name in names):
        raise DataError(f"{where}: source and target must be names of entities.")
    if not decision:
        return None
    author, date = (str(row.get(key) or "") for key in COLUMNS[3:])
    return Curated(str(names[0]), str(names[1]), decision, author, date)
