"""The pairs a person asks for."""

from pathlib import Path

from emea.errors import DataError
from emea.explain.explainer import Explainer

HEADER = ["source", "target"]


def named_pair(explainer: Explainer, source: str, target: str) -> tuple[int, int]:
    """The pair of two names."""
    return explainer.source.find(source), explainer.target.find(target)


def best_pair(explainer: Explainer, source: str) -> tuple[int, int]:
    """A source entity and what the run answers for it, else its best candidate."""
    entity = explainer.source.find(source)
    target = explainer.best_target(entity)
    if target is None:
        raise DataError(f"{source} has no candidate at all in this run")
    return entity, target


def listed_pairs(explainer: Explainer, path: Path) -> list[tuple[int, int]]:
    """The pairs of a file: names of source and target, tab-separated.

    Further columns are passed over and a heading is allowed, so that rows of a run's
    ``alignment.tsv`` can be asked for.
    """
    try:
        # not splitlines: a name may hold what ends a line elsewhere
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    pairs = []
    for number, line in enumerate(lines, start=1):
        names = line.split("\t")
        if not line.strip() or (number == 1 and names[:2] == HEADER):
            continue
        if len(names) < 2:
            raise DataError(f"{path}, line {number}: source and target must be tab-separated")
        try:
            pairs.append(named_pair(explainer, *names[:2]))
        except DataError as error:
            raise DataError(f"{path}, line {number}: {error}") from error
    if not pairs:
        raise DataError(f"{path} has no pairs")
    return pairs
