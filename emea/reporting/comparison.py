"""Our numbers beside the paper's: difference, verdict, and the runs they come from."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from emea.reporting.cells import NOT_APPLICABLE, Cell, over_splits, shown, signed
from emea.reporting.markdown import PaperNumbers, markdown_table
from emea.reporting.methods import Found, Method, runs_of
from emea.reporting.records import RecordedRun, run_links

NOT_RUN = "not run"
FORMATS = {"hit@1": "{:.3f}", "mrr": "{:.3f}", "mr": "{:.1f}"}
TITLES = {"hit@1": "Hit@1", "mrr": "MRR", "mr": "MR"}
PROTOCOLS = ("released", "strict")
TOLERANCE = 0.02
"""Of Hit@1 and MRR, in which verdicts call a mean the paper's."""

MR_TOLERANCE = 0.2
"""The same of a mean rank, as a share of it: a few entities at the far end move it."""

REMARK = (
    f"A verdict says where our mean lies: *within* {TOLERANCE} of the paper's number (a mean rank: "
    f"within {MR_TOLERANCE:.0%}), *above* or *below* it. The paper ran the `released` protocol, "
    "which lets test links into training; `strict` does not."
)


@dataclass(frozen=True)
class Entry:
    """One method in one cell, under one protocol."""

    study: str
    method: str
    data: str
    ratio: float
    protocol: str
    metric: str
    pool: str
    cell: Cell | None
    paper: float | None
    found: tuple[Found, ...]

    @property
    def verdict(self) -> str:
        """Where it lies beside the paper's number; empty where that is missing."""
        if self.cell is None:
            return NOT_RUN
        if self.paper is None or self.cell.mean is None:
            return ""
        distance = self.cell.mean - self.paper
        allowed = MR_TOLERANCE * self.paper if self.metric == "mr" else TOLERANCE
        if round(abs(distance) - allowed, 9) <= 0:  # 0.52 - 0.5 is a little more than 0.02
            return "within"
        return "above" if distance > 0 else "below"

    @property
    def difference(self) -> str:
        """Signed, as text; empty where one of the two is missing."""
        mean = self.cell.mean if self.cell else None
        return signed(mean, self.paper, FORMATS[self.metric])


def entries(
    study: str,
    runs: Sequence[RecordedRun],
    methods: Iterable[Method],
    paper: PaperNumbers,
    cells: Iterable[tuple[str, float]],
    metric: str,
    pool: str = "test",
) -> list[Entry]:
    """Every method in every cell, under each of its protocols, whether it was run or not."""
    found = []
    methods = list(methods)
    for data, ratio in cells:
        for method in methods:
            # printed for the test pool alone
            printed = paper.get((data, ratio, method.paper), {}) if pool == "test" else {}
            for protocol in method.protocols:
                there = tuple(runs_of(runs, method, protocol, data, ratio).values())
                cell = over_splits([one.value(metric, pool) for one in there])
                place = (study, method.label, data, ratio, protocol, metric, pool)
                found.append(Entry(*place, cell, printed.get(metric), there))
    return found


def comparison_table(found: Iterable[Entry], paper: bool = True) -> str:
    """A row per method and cell, both protocols beside the paper's number, runs linked."""
    rows: dict[tuple[str, float, str], dict[str, Entry]] = {}
    for entry in found:
        rows.setdefault((entry.data, entry.ratio, entry.method), {})[entry.protocol] = entry
    splits = max((entry.cell.num_runs for entry in _all(rows) if entry.cell), default=0)
    titles = ["pair", "ratio", "method", *(["paper"] if paper else [])]
    for protocol in PROTOCOLS:
        titles += [protocol, *(["difference", "verdict"] if paper else [])]
    lines = [
        [data, f"{ratio:.0%}", method, *_row(by_protocol, splits, paper)]
        for (data, ratio, method), by_protocol in rows.items()
    ]
    return markdown_table([*titles, "runs"], lines, num_left=3, text=["verdict", "runs"])


def csv_text(found: Iterable[Entry]) -> str:
    """The same numbers for a machine, one line per method, cell, protocol and metric."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(
        [
            "study",
            "metric",
            "pool",
            "data",
            "ratio",
            "method",
            "protocol",
            "mean",
            "deviation",
            "splits",
            "paper",
            "verdict",
            "runs",
        ]
    )
    for one in found:
        cell = one.cell or Cell(None, 0.0, 0)
        spread = cell.spread if cell.mean is not None and cell.num_runs > 1 else None
        numbers = [cell.mean, spread, cell.num_runs, one.paper]
        ids = " ".join(there.run.run_id for there in one.found)
        place = [one.study, one.metric, one.pool, one.data, one.ratio, one.method, one.protocol]
        writer.writerow([*place, *map(_plain, numbers), one.verdict, ids])
    return buffer.getvalue()


def _all(rows: dict[tuple[str, float, str], dict[str, Entry]]) -> list[Entry]:
    return [entry for by_protocol in rows.values() for entry in by_protocol.values()]


def _row(by_protocol: dict[str, Entry], splits: int, paper: bool) -> list[str]:
    first = next(iter(by_protocol.values()))
    form = FORMATS[first.metric]
    cells = []
    if paper:
        cells.append("" if first.paper is None else form.format(first.paper))
    for protocol in PROTOCOLS:
        entry = by_protocol.get(protocol)
        if entry is None:
            cells += [""] * (3 if paper else 1)
            continue
        cells.append(shown(entry.cell, splits, form) if entry.cell else NOT_RUN)
        cells += [entry.difference, _verdict(entry)] if paper else []
    linked = [there.run for entry in by_protocol.values() for there in entry.found]
    return [*cells, run_links(linked)]


def _verdict(entry: Entry) -> str:
    """What the value's own column says need not be said again."""
    if entry.cell is None or (entry.cell.mean is None and entry.paper is None):
        return ""
    return entry.verdict or ("" if entry.cell.mean is not None else NOT_APPLICABLE)


def _plain(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
