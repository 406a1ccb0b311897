"""Table 3 of the paper: neural models alone, ours beside what was reported of them."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from emea.reporting.cells import over_splits, shown, signed
from emea.reporting.comparison import REMARK, comparison_table, entries
from emea.reporting.markdown import PaperNumbers, load_paper_numbers, markdown_table
from emea.reporting.methods import MODEL_NAMES, RREA, RREA_SEMI, Method, Source, runs_of
from emea.reporting.records import RecordedRun, provenance_line
from emea.reporting.study import Study

PAIRS = ("dbp15k_zh", "dbp15k_ja", "dbp15k_fr")
CELLS = tuple(product(PAIRS, (0.3,)))
RANKED = (
    "Dual-AMN's authors rank from English, which is target → source here: that direction is below. "
    "LightEA's settings are ours; its authors reported it with others. Models that are only "
    "reported are not part of this project."
)

SPLITS = 3
"""That a cell is to have."""


def study(runs: Sequence[RecordedRun], folder: Path) -> Study:
    """Hit@1 and MRR of every model that was reported or is here."""
    paper = load_paper_numbers(folder / "paper.csv")
    methods = _methods(paper)
    parts, numbers = [REMARK, RANKED], []
    for metric, title in (("hit@1", "Hit@1"), ("mrr", "MRR")):
        of_metric = [
            entry
            for entry in entries("table3", runs, methods, paper, CELLS, metric)
            if entry.paper is not None or entry.cell
        ]
        parts += [f"## {title} among test targets, 30% of the links", comparison_table(of_metric)]
        numbers += of_metric
    parts += ["## The other direction", _reverse(runs, methods, paper)]
    used = [one.run for entry in numbers for one in entry.found]
    title = "Table 3: neural models alone"
    return Study("table3", title, (provenance_line(used), *parts), tuple(numbers))


def _methods(paper: PaperNumbers) -> list[Method]:
    """A row per model and training mode of the paper, and LightEA's."""
    keys = dict.fromkeys([*(key for _, _, key in paper), "lightea_sup"])
    return [_method(key) for key in keys]


def _method(key: str) -> Method:
    model, training = key.rsplit("_", 1)
    label = f"{MODEL_NAMES[model]} ({training})"
    if model == "rrea":  # alone it is also the first model of EM runs
        known = RREA if training == "sup" else RREA_SEMI
        return Method(label, key, known.sources, known.protocols)
    where = {"method": "neural", "model": model, "training": training}
    return Method(label, key, (Source(where),))


def _reverse(runs: Sequence[RecordedRun], methods: list[Method], paper: PaperNumbers) -> str:
    rows = []
    for (data, ratio), method in product(CELLS, methods):
        found = runs_of(runs, method, "strict", data, ratio).values()
        # measured at the end of a run alone, so not of a model that EM went on from
        alone = [one.run for one in found if one.stage == "final"]
        cell = over_splits([run.value("hit@1", stage="final_reverse") for run in alone])
        if cell:
            printed = paper.get((data, ratio, method.paper), {}).get("hit@1")
            reported = "" if printed is None else f"{printed:.3f}"
            value, difference = shown(cell, SPLITS), signed(cell.mean, printed)
            rows.append([data, method.label, reported, value, difference])
    titles = ["pair", "method", "reported", "Hit@1, target → source", "difference"]
    return markdown_table(titles, rows, num_left=2)
