"""Table 1 of the paper beside our recorded runs."""

from pathlib import Path

from emea.reporting.markdown import markdown_table
from emea.reporting.paper_numbers import PaperNumbers, load_paper_numbers
from emea.reporting.records import Cell, RecordedRun, cell, load_records, provenance_line

FORMATS = {"hit@1": "{:.3f}", "mrr": "{:.3f}", "mr": "{:.1f}"}
TITLES = {"hit@1": "Hit@1", "mrr": "MRR", "mr": "MR"}
COLUMNS = (
    ("RREA paper", "rrea", None),
    ("RREA", "neural", "strict"),
    ("EMEA paper", "emea", None),
    ("EMEA released", "emea", "released"),
    ("EMEA strict", "emea", "strict"),
)
"""Title, method and protocol of each column; the paper's have no protocol of ours."""


def report(folder: Path) -> str:
    """The whole comparison as Markdown: each metric, both pools, and where it comes from."""
    runs = load_records(folder / "records")
    paper = load_paper_numbers(folder / "paper.csv")
    parts = ["# Table 1: RREA and EMEA on DBP15K", provenance_line(runs)]
    for metric, title in TITLES.items():
        parts += [f"## {title} among test targets", table(runs, paper, metric)]
    parts += ["## Hit@1 among all targets", table(runs, {}, "hit@1", pool="all")]
    return "\n\n".join(parts) + "\n"


def summary(folder: Path) -> str:
    """The table of the README: Hit@1 among test targets."""
    runs = load_records(folder / "records")
    paper = load_paper_numbers(folder / "paper.csv")
    return f"{table(runs, paper, 'hit@1')}\n\n{provenance_line(runs)}"


def table(runs: list[RecordedRun], paper: PaperNumbers, metric: str, pool: str = "test") -> str:
    """One metric, a row per pair and ratio that was run."""
    columns = [column for column in COLUMNS if paper or column[2]]
    titles = ["pair", "ratio", *(title for title, _, _ in columns), "released - strict"]
    rows = []
    for data, ratio in _cells(runs):
        values, means = [], {}
        for title, method, protocol in columns:
            if protocol is None:
                printed = paper.get((data, ratio, method), {}).get(metric)
                values.append("" if printed is None else FORMATS[metric].format(printed))
            else:
                where = {"data": data, "ratio": ratio, "method": method, "protocol": protocol}
                found = cell(runs, metric, pool, **where)
                values.append(_shown(found, metric))
                means[title] = found.mean if found else float("nan")
        leak = means["EMEA released"] - means["EMEA strict"]
        rows.append([data, f"{ratio:.0%}", *values, _signed(leak, metric)])
    return markdown_table(titles, rows, num_left=2)


def _cells(runs: list[RecordedRun]) -> list[tuple[str, float]]:
    order = ("dbp15k_zh", "dbp15k_fr", "dbp15k_ja")
    found = {(run.metrics["data"], run.metrics["ratio"]) for run in runs}
    return sorted(found, key=lambda key: (order.index(key[0]), key[1]))


def _shown(value: Cell | None, metric: str) -> str:
    if value is None:
        return "not run"
    form = FORMATS[metric]
    if value.num_runs == 1:
        return f"{form.format(value.mean)} (1 split)"
    return f"{form.format(value.mean)} ± {form.format(value.spread)}"


def _signed(value: float, metric: str) -> str:
    return FORMATS[metric].replace(":", ":+").format(value)
