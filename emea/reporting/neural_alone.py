"""Neural models without EM beside what others reported of them."""

from collections.abc import Iterable

from emea.reporting.cells import Cell, over_splits, select, shown, signed
from emea.reporting.markdown import markdown_table
from emea.reporting.paper_numbers import PaperNumbers
from emea.reporting.records import RecordedRun

DIRECTIONS = {"final": "source → target", "final_reverse": "target → source"}


def table(runs: Iterable[RecordedRun], reported: PaperNumbers) -> str:
    """A row per reported number: Hit@1 in either direction and how far it is from that number.

    Args:
        runs: of any kind; those of models alone count.
        reported: numbers of others, with the model as the method.
    """
    runs = select(runs, method="neural", training="sup")
    titles = ["model", "pair", "ratio", "splits", "reported"]
    for direction in DIRECTIONS.values():
        titles += [direction, "difference"]
    rows = [
        [model, data, f"{ratio:.0%}", *_cells(found, numbers["hit@1"])]
        for (data, ratio, model), numbers in reported.items()
        for found in [select(runs, model=model, data=data, ratio=ratio)]
    ]
    return markdown_table(titles, rows, num_left=3)


def _cells(runs: list[RecordedRun], reported: float) -> list[str]:
    cells = [str(len(runs)), f"{reported:.3f}"]
    for direction in DIRECTIONS:
        found = over_splits([run.metrics[direction]["hit@1"] for run in runs])
        cells += [shown(found, len(runs)), _difference(found, reported)]
    return cells


def _difference(found: Cell | None, reported: float) -> str:
    return signed(found.mean, reported) if found else ""
