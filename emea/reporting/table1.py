"""Table 1 of the paper beside our recorded runs: PARIS, RREA, PRASE, EMEA, and em=dual."""

from collections.abc import Sequence
from pathlib import Path

from emea.reporting import reasoning
from emea.reporting.cells import shown, signed
from emea.reporting.comparison import (
    NOT_RUN,
    REMARK,
    TITLES,
    Entry,
    comparison_table,
    entries,
)
from emea.reporting.markdown import PaperNumbers, load_paper_numbers, markdown_table
from emea.reporting.methods import DUAL, EMEA, PARIS, PRASE, RREA, Method
from emea.reporting.records import RecordedRun, provenance_line
from emea.reporting.significance import REMARK as OF_P
from emea.reporting.significance import p_table
from emea.reporting.study import CELLS, DBP15K, DBP15K_CELLS, Study

NEURAL = (RREA, EMEA, DUAL)
METHODS = (PARIS, RREA, PRASE, EMEA, DUAL)
COMPARED = (
    (EMEA, "released", RREA, "strict"),
    (EMEA, "strict", RREA, "strict"),
    (DUAL, "strict", EMEA, "strict"),
)


def study(runs: Sequence[RecordedRun], folder: Path) -> Study:
    """The whole comparison: each metric, both pools, significance, and where it comes from."""
    paper = load_paper_numbers(folder / "paper.csv")
    numbers: list[Entry] = []
    parts = [provenance_line(_shown(runs, METHODS, CELLS)), REMARK, reasoning.REMARK]
    for metric, title in TITLES.items():
        of_metric = entries("table1", runs, METHODS, paper, CELLS, metric)
        parts += [f"## {title} among test targets", comparison_table(of_metric)]
        numbers += of_metric
    everywhere = entries("table1", runs, METHODS, paper, DBP15K_CELLS, "hit@1", pool="all")
    parts += ["## Hit@1 among all targets", comparison_table(everywhere, paper=False)]
    parts += ["## Significance", OF_P, p_table(runs, COMPARED, DBP15K_CELLS)]
    parts += ["## What PARIS and PRASE answer", reasoning.mapping_table(runs, DBP15K)]
    parts += ["## PARIS and PRASE on other pairs", reasoning.other_pairs(runs, DBP15K)]
    title = "Table 1: PARIS, RREA, PRASE, EMEA and em=dual"
    return Study("table1", title, tuple(parts), (*numbers, *everywhere))


def summary(runs: Sequence[RecordedRun], folder: Path) -> str:
    """The tables of the README: Hit@1 among test targets, neural methods, then reasoning."""
    paper = load_paper_numbers(folder / "paper.csv")
    parts = [neural_table(runs, paper), provenance_line(_shown(runs, NEURAL, DBP15K_CELLS))]
    return "\n\n".join([*parts, *reasoning.summary(runs, paper, DBP15K)])


def neural_table(runs: Sequence[RecordedRun], paper: PaperNumbers) -> str:
    """RREA, EMEA under both protocols and em=dual, one row per cell.

    The last column has the splits of each, in the order of the columns.
    """
    titles = ["pair", "ratio", "RREA paper", "RREA", "EMEA paper", "EMEA released", "EMEA strict"]
    titles += ["released - strict", "em=dual strict", "splits"]
    rows = []
    for place in DBP15K_CELLS:
        rrea, released, strict, dual = entries("", runs, NEURAL, paper, [place], "hit@1")
        cells = [_printed(rrea), _here(rrea), _printed(released), _here(released), _here(strict)]
        means = [one.cell.mean if one.cell else None for one in (released, strict)]
        leak = signed(means[0], means[1])
        splits = _splits([rrea, released, strict, dual])
        rows.append([place[0], f"{place[1]:.0%}", *cells, leak, _here(dual), splits])
    return markdown_table(titles, rows, num_left=2)


def _shown(
    runs: Sequence[RecordedRun],
    methods: Sequence[Method],
    cells: Sequence[tuple[str, float]],
) -> list[RecordedRun]:
    found = entries("table1", runs, methods, {}, cells, "hit@1")
    return [one.run for entry in found for one in entry.found]


def _printed(entry: Entry) -> str:
    return "" if entry.paper is None else f"{entry.paper:.3f}"


def _here(entry: Entry) -> str:
    return shown(entry.cell, entry.cell.num_runs) if entry.cell else NOT_RUN


def _splits(found: Sequence[Entry]) -> str:
    """How many splits each has; once where it is the same for all."""
    numbers = [len(entry.found) for entry in found]
    return str(numbers[0]) if len(set(numbers)) == 1 else ", ".join(map(str, numbers))
