"""Finds the pairs that a user asks about."""

from pathlib import Path

from emea.errors import DataError
from emea.explain.explainer import Explainer

HEADER = ["source", "target"]


def named_pair(explainer: Explainer, source: str, target: str) -> tuple[int, int]:
    """Find the ids of a source and a target entity by their names."""
    return explainer.source.find(source), explainer.target.find(target)


def best_pair(explainer: Explainer, source: str) -> tuple[int, int]:
    """Find a source entity and its match, or its best candidate if it has no match.

    Raises:
        DataError: If the entity is unknown, or it has no candidate.
    """
    entity = explainer.source.find(source)
    target = explainer.best_target(entity)
    if target is None:
        raise DataError(f"{source} has no candidate in this run. Name a target with --pair.")
    return entity, target


def listed_pairs(explainer: Explainer, path: Path) -> list[tuple[int, int]]:
    """Read pairs from a file: names of source and target, separated by a tab.

    Further columns are ignored and a header is allowed, so that rows of a run's
    ``alignment.tsv`` can be used.

    Raises:
        DataError: If the file cannot be read or is empty, or a line has no valid pair.
    """
    try:
        # Not splitlines(): a name can contain other Unicode line separators.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    pairs = []
    for number, line in enumerate(lines, start=1):
        names = line.split("\t")
        if not line.strip() or (number == 1 and names[:2] == HEADER):
            continue
        if len(names) < 2:
            raise DataError(f"{path}, line {number}: a tab must separate source and target")
        try:
            pairs.append(named_pair(explainer, *names[:2]))
        except DataError as error:
            raise DataError(f"{path}, line {number}: {error}") from error
    if not pairs:
        raise DataError(f"{path} contains no pairs")
    return pairs
