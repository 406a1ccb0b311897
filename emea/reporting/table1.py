"""Table 1 of the paper beside our recorded runs."""

from pathlib import Path

from emea.reporting import reasoning
from emea.reporting.cells import cell, num_splits, select, shown, signed
from emea.reporting.markdown import markdown_table
from emea.reporting.paper_numbers import PaperNumbers, load_paper_numbers
from emea.reporting.records import RecordedRun, load_committed, provenance_line

FORMATS = {"hit@1": "{:.3f}", "mrr": "{:.3f}", "mr": "{:.1f}"}
TITLES = {"hit@1": "Hit@1", "mrr": "MRR", "mr": "MR"}
PAIRS = ("dbp15k_zh", "dbp15k_fr", "dbp15k_ja")

Column = tuple[str, str, str | None]
"""Title, method and protocol; the paper's have no protocol of ours."""

REASONING: tuple[Column, ...] = (
    ("PARIS paper", "paris", None),
    ("PARIS", "paris", "strict"),
    ("PRASE paper", "prase", None),
    ("PRASE", "prase", "strict"),
)
NEURAL: tuple[Column, ...] = (
    ("RREA paper", "rrea", None),
    ("RREA", "neural", "strict"),
    ("EMEA paper", "emea", None),
    ("EMEA released", "emea", "released"),
    ("EMEA strict", "emea", "strict"),
)


def report(folder: Path) -> str:
    """The whole comparison as Markdown: each metric, both pools, and where it comes from."""
    runs = load_committed(folder / "records")
    paper = load_paper_numbers(folder / "paper.csv")
    parts = ["# Table 1: PARIS, PRASE, RREA and EMEA on DBP15K", provenance_line(runs)]
    parts += [reasoning.REMARK]
    columns = (*REASONING, *NEURAL)
    for metric, title in TITLES.items():
        parts += [f"## {title} among test targets", table(runs, paper, metric, columns)]
    parts += ["## Hit@1 among all targets", table(runs, {}, "hit@1", columns, pool="all")]
    parts += ["## What PARIS and PRASE answer", reasoning.mapping_table(runs, PAIRS)]
    parts += ["## PARIS and PRASE on other pairs", reasoning.other_pairs(runs, PAIRS)]
    return "\n\n".join(parts) + "\n"


def summary(folder: Path) -> str:
    """The tables of the README, Hit@1 among test targets: neural methods, then reasoning."""
    runs = load_committed(folder / "records")
    paper = load_paper_numbers(folder / "paper.csv")
    neural = [run for run in runs if run.metrics["method"] in ("neural", "emea")]
    parts = [table(neural, paper, "hit@1", NEURAL), provenance_line(neural)]
    return "\n\n".join([*parts, *reasoning.summary(runs, paper, PAIRS)])


def table(
    runs: list[RecordedRun],
    paper: PaperNumbers,
    metric: str,
    columns: tuple[Column, ...],
    pool: str = "test",
) -> str:
    """One metric, a row per pair and ratio that was run."""
    columns = tuple(column for column in columns if paper or column[2])
    titles = ["pair", "ratio", *(title for title, _, _ in columns), "released - strict"]
    runs = [run for run in runs if run.metrics["data"] in PAIRS]
    rows = []
    for data, ratio in _cells(runs):
        here = select(runs, data=data, ratio=ratio)
        printed = {key[2]: numbers for key, numbers in paper.items() if key[:2] == (data, ratio)}
        values = [
            _value(here, printed, column, metric, pool, num_splits(runs)) for column in columns
        ]
        rows.append([data, f"{ratio:.0%}", *values, _leak(here, metric, pool)])
    return markdown_table(titles, rows, num_left=2)


def _cells(runs: list[RecordedRun]) -> list[tuple[str, float]]:
    found = {(run.metrics["data"], run.metrics["ratio"]) for run in runs}
    return sorted(found, key=lambda key: (PAIRS.index(key[0]), key[1]))


def _value(
    runs: list[RecordedRun],
    printed: dict[str, dict[str, float]],
    column: Column,
    metric: str,
    pool: str,
    splits: int,
) -> str:
    _, method, protocol = column
    if protocol is None:
        number = printed.get(method, {}).get(metric)
        return "" if number is None else FORMATS[metric].format(number)
    found = cell(runs, metric, pool, method=method, protocol=protocol)
    return shown(found, splits, FORMATS[metric])


def _leak(runs: list[RecordedRun], metric: str, pool: str) -> str:
    released, strict = (
        cell(runs, metric, pool, method="emea", protocol=protocol)
        for protocol in ("released", "strict")
    )
    if released is None or strict is None:
        return ""
    return signed(released.mean, strict.mean, FORMATS[metric])
