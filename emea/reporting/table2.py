"""Table 2 of the paper, semi-supervised RREA, beside our recorded runs."""

from collections.abc import Iterable

from emea.reporting.cells import NO_RECORD, select, signed
from emea.reporting.em_runs import PAIR, em_runs, steps_per_turn
from emea.reporting.markdown import markdown_table
from emea.reporting.paper_numbers import PaperNumbers
from emea.reporting.records import RecordedRun

STAGES = {"initial": ("RREA", "rrea_semi"), "final": ("EMEA", "emea_semi")}
"""Part of the metrics, its title and the paper's name of it."""


def table(runs: Iterable[RecordedRun], paper: PaperNumbers, metric: str = "hit@1") -> str:
    """A row per ratio and protocol: before and after EM, and how far each is from the paper's."""
    runs = select(em_runs(runs), model="rrea", training="semi", rule="paris")
    titles = ["pair", "ratio", "protocol", "steps a turn"]
    for name, _ in STAGES.values():
        titles += [f"{name} paper", name, "difference"]
    ratios = sorted({ratio for data, ratio, _ in paper if data == PAIR})
    rows = [
        row
        for ratio in ratios
        for protocol in ("released", "strict")
        for row in _rows(
            select(runs, ratio=ratio, protocol=protocol), paper, ratio, protocol, metric
        )
    ]
    return markdown_table(titles, rows, num_left=4)


def paper_row(paper: PaperNumbers, ratios: Iterable[float]) -> list[str]:
    """What the paper printed, in the form of a row of settings."""
    cells = []
    for ratio in ratios:
        printed = [_printed(paper, ratio, name, "hit@1") for _, name in STAGES.values()]
        cells.append("" if None in printed else " → ".join(f"{value:.3f}" for value in printed))
    return [PAIR, "rrea", "semi", "paris", "paper's Table 2", *cells]


def _rows(
    runs: list[RecordedRun], paper: PaperNumbers, ratio: float, protocol: str, metric: str
) -> list[list[str]]:
    """One row per run, as they may differ in the length of their turns; one without any."""
    rows = []
    shown: list[RecordedRun | None] = [*runs] or [None]
    for run in shown:
        cells = [PAIR, f"{ratio:.0%}", protocol, str(steps_per_turn(run)) if run else ""]
        for stage, (_, name) in STAGES.items():
            printed = _printed(paper, ratio, name, metric)
            value = run.metrics[stage][metric] if run else None
            cells += ["" if printed is None else f"{printed:.3f}"]
            cells += [NO_RECORD if value is None else f"{value:.3f}", signed(value, printed)]
        rows.append(cells)
    return rows


def _printed(paper: PaperNumbers, ratio: float, name: str, metric: str) -> float | None:
    return paper.get((PAIR, ratio, name), {}).get(metric)
