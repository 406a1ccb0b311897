"""Models, training modes and rules: what EMEA makes of each."""

from collections.abc import Iterable
from pathlib import Path

from emea.reporting.markdown import markdown_table
from emea.reporting.paper_numbers import PaperNumbers, load_paper_numbers
from emea.reporting.records import RecordedRun, load_records, provenance_line

Setting = tuple[str, str, str, str, str]
"""Data, model, training, rule and protocol of a run."""


def report(folder: Path, others: Iterable[Path] = ()) -> str:
    """The study as Markdown.

    Args:
        folder: of the study, with ``records`` and ``paper.csv``.
        others: studies whose EM runs are shown beside them.
    """
    runs = load_records(folder / "records")
    parts = ["# Models, training modes and rules", summary(folder, others), provenance_line(runs)]
    return "\n\n".join(parts) + "\n"


def summary(folder: Path, others: Iterable[Path] = ()) -> str:
    """One row per setting, one column per ratio: Hit@1 of the model alone and after EM."""
    runs = load_records(folder / "records")
    for other in others:
        runs += load_records(other / "records")
    runs = [run for run in runs if run.metrics["method"] == "emea"]
    ratios = sorted({run.metrics["ratio"] for run in runs})
    settings = sorted({setting(run) for run in runs})
    paper = load_paper_numbers(folder / "paper.csv")
    rows = [
        [*found, *(_shown(runs, found, ratio) for ratio in ratios)]
        for found in settings
        if found[0] == "dbp15k_zh"
    ]
    rows.append(_paper_row(paper, ratios))
    titles = ["pair", "model", "training", "rule", "protocol", *(f"{r:.0%}" for r in ratios)]
    return markdown_table(titles, rows, num_left=5)


def setting(run: RecordedRun) -> Setting:
    """What distinguishes a run from others of the same ratio."""
    keys = ("data", "model", "training", "rule", "protocol")
    data, model, training, rule, protocol = (str(run.metrics[key]) for key in keys)
    return data, model, training, rule, protocol


def _shown(runs: list[RecordedRun], wanted: Setting, ratio: float) -> str:
    chosen = [run for run in runs if setting(run) == wanted and run.metrics["ratio"] == ratio]
    # one split for every cell, so that rows compare
    chosen = [run for run in chosen if run.metrics["split_seed"] == 0]
    if not chosen:
        return "not run"
    metrics = chosen[0].metrics
    return f"{metrics['initial']['hit@1']:.3f} → {metrics['final']['hit@1']:.3f}"


def _paper_row(paper: PaperNumbers, ratios: list[float]) -> list[str]:
    data = "dbp15k_zh"
    cells = []
    for ratio in ratios:
        before, after = (
            paper.get((data, ratio, method), {}).get("hit@1")
            for method in ("rrea_semi", "emea_semi")
        )
        found = before is not None and after is not None
        cells.append(f"{before:.3f} → {after:.3f}" if found else "")
    return [data, "rrea", "semi", "paris", "paper's Table 2", *cells]
