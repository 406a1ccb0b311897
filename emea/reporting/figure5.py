"""Figure 5: the neural model and the joint distribution over the iterations of EM."""

from collections.abc import Sequence
from pathlib import Path

from emea.reporting.cells import Cell, num_splits, over_splits, shown
from emea.reporting.curves import Curve, draw, panels
from emea.reporting.markdown import markdown_table
from emea.reporting.methods import EMEA, runs_of
from emea.reporting.records import RecordedRun, provenance_line, run_links
from emea.reporting.study import Study

DATA = "dbp15k_zh"
CELLS = tuple((ratio, protocol) for ratio in (0.01, 0.05) for protocol in ("released", "strict"))
PARTS = {"neural": "neural model", "joint": "joint distribution"}
REMARK = (
    "Hit@1 among test targets of both parts of EMEA on DBP15K zh; iteration 0 is the first model "
    "and what the joint distribution makes of it."
)


def study(runs: Sequence[RecordedRun], folder: Path) -> Study:
    """A panel per ratio and protocol; the folder holds nothing the paper printed."""
    figure, axes = panels([f"{ratio:.0%}, {protocol}" for ratio, protocol in CELLS], DATA)
    rows = []
    iterations = range(11)
    by_cell = {
        cell: [one.run for one in runs_of(runs, EMEA, cell[1], DATA, cell[0]).values()]
        for cell in CELLS
    }
    used = [run for found in by_cell.values() for run in found]
    splits = num_splits(used)
    for axis, ((ratio, protocol), found) in zip(axes, by_cell.items(), strict=True):
        curves = {part: convergence(found, part) for part in PARTS}
        drawn = [Curve(name, curves[part]) for part, name in PARTS.items()]
        draw(axis, drawn, iterations, [str(index) for index in iterations])
        axis.set_xlabel("iteration")
        axis.set_ylabel("Hit@1")
        for part, name in PARTS.items():
            cells = [curves[part].get(index) for index in iterations]
            values = [_shown(cell, splits) for cell in cells]
            rows.append([f"{ratio:.0%}", protocol, name, *values, run_links(found)])
    titles = ["ratio", "protocol", "part", *map(str, iterations), "runs"]
    parts = (provenance_line(used), REMARK, markdown_table(titles, rows, num_left=3))
    return Study("figure5", "Figure 5: convergence of both parts", parts, figure=figure)


def convergence(runs: Sequence[RecordedRun], part: str) -> dict[int, Cell]:
    """Hit@1 of a part after each iteration that any of the runs has."""
    last = max((len(run.metrics["history"]) for run in runs), default=0)
    curve = {}
    for index in range(last):
        entries = [run.metrics["history"][index : index + 1] for run in runs]
        cell = over_splits([one[part]["hit@1"] for entry in entries for one in entry if one[part]])
        if cell:
            curve[index] = cell
    return curve


def _shown(cell: Cell | None, splits: int) -> str:
    return shown(cell, splits) if cell else ""
