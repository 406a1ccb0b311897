"""The answer and what has none, as tab-separated names."""

from collections.abc import Iterator

from emea.export.alignment import Alignment


def matched_lines(alignment: Alignment) -> Iterator[str]:
    """Source, target, probability of each source entity that has a target."""
    yield "source\ttarget\tprobability"
    for row in alignment.rows(0):
        if row.target is not None:
            yield f"{cell(row.source)}\t{cell(row.target)}\t{row.prob:.6f}"


def unmatched_lines(alignment: Alignment) -> Iterator[str]:
    """Each source entity that has none, with its best candidate where there is one."""
    yield "source\tcandidate\tprobability"
    for row in alignment.rows(1):
        if row.target is None:
            candidate, prob = row.candidates[0] if row.candidates else ("", 0.0)
            yield f"{cell(row.source)}\t{cell(candidate)}\t{prob:.6f}"


def cell(name: str) -> str:
    """The name without what would end a cell.

    A backslash stays as it is: the readers of data let neither tabs nor newlines into a name, so
    nobody meets an escaped one but those who build their graphs otherwise.
    """
    return name.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
