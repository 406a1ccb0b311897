"""Two-way compatibility beside the paper's EM and the best published numbers."""

from pathlib import Path

from emea.reporting.cells import NO_RECORD, cell, num_splits, select, shown, signed
from emea.reporting.markdown import markdown_table
from emea.reporting.paper_numbers import PaperNumbers, load_paper_numbers
from emea.reporting.records import RecordedRun, load_committed, provenance_line

RATIOS = (0.01, 0.05, 0.1, 0.2, 0.3)
WHOLE = "strict"
"""Variant of a run with all parts; others are named by what they change (``dual/cells.txt``)."""

DIGITS = "{:.3f}"

REMARK = (
    "Hit@1 among test targets; `protocol=strict`, no Sinkhorn, one setting for all cells. It was "
    "developed on DBP15K zh with split seed 11, by looking at that split's links; the other pairs "
    "were looked at once, after it. *encoder* is the neural model's own ranking after the last "
    "iteration. *published* is the best known to us from structure alone, where its authors let "
    "Sinkhorn iterations see the test pool (`published.csv`)."
)


CHANGED = (
    "Hit@1 among test targets of runs that differ in one setting, and how far they lie from the "
    "run with all parts on the same pair and split. What each changes is in `cells.txt`."
)


def report(folder: Path, table1: Path) -> str:
    """The study as Markdown.

    Args:
        folder: of the study, with ``records`` and ``published.csv``.
        table1: the study of the paper's EM.
    """
    runs = load_committed(folder / "records")
    parts = ["# Two-way compatibility (`em=dual`)", provenance_line(runs), REMARK]
    parts += ["## Hit@1 among test targets", summary(folder, table1)]
    parts += ["## The rest of it", _details(_of_variant(runs, WHOLE))]
    parts += ["## One thing changed", CHANGED, changes(runs)]
    return "\n\n".join(parts) + "\n"


def summary(folder: Path, table1: Path) -> str:
    """The table of the README."""
    runs = _of_variant(load_committed(folder / "records"), WHOLE)
    paper = [run for run in load_committed(table1 / "records") if _is_strict(run)]
    published = load_paper_numbers(folder / "published.csv")
    titles = ["pair", "ratio", "RREA", "em=paper", "encoder", "em=dual", "published", "difference"]
    rows = []
    for data in _pairs(runs):
        for ratio in RATIOS:
            here = select(runs, data=data, ratio=ratio)
            before = select(paper, data=data, ratio=ratio)
            if here or before:
                rows.append(_row(data, ratio, here, before, published, num_splits(runs)))
    return markdown_table(titles, rows, num_left=2)


def changes(runs: list[RecordedRun]) -> str:
    """A row per variant and pair, a column per ratio; empty where nothing was changed."""
    whole = {_place(run): run.value("hit@1") for run in _of_variant(runs, WHOLE)}
    rows = []
    for name, data in sorted({(variant(run), run.metrics["data"]) for run in runs}):
        found = {run.metrics["ratio"]: run for run in select(_of_variant(runs, name), data=data)}
        if name != WHOLE:
            rows.append([name, data, *(_changed(found.get(ratio), whole) for ratio in RATIOS)])
    if not rows:
        return NO_RECORD
    return markdown_table(["changed", "pair", *(f"{ratio:.0%}" for ratio in RATIOS)], rows, 2)


def variant(run: RecordedRun) -> str:
    """What the run's name says it changes."""
    return run.folder.name.split("-dual-")[-1]


def _of_variant(runs: list[RecordedRun], name: str) -> list[RecordedRun]:
    return [run for run in runs if variant(run) == name]


def _place(run: RecordedRun) -> tuple[str, float, int]:
    return run.metrics["data"], run.metrics["ratio"], run.metrics["split_seed"]


def _changed(run: RecordedRun | None, whole: dict[tuple[str, float, int], float | None]) -> str:
    if run is None:
        return ""
    value = run.value("hit@1")
    difference = signed(value, whole.get(_place(run)), DIGITS)
    return f"{value:.3f}" + (f" ({difference})" if difference else "")


def _row(
    data: str,
    ratio: float,
    runs: list[RecordedRun],
    paper: list[RecordedRun],
    published: PaperNumbers,
    splits: int,
) -> list[str]:
    neural, paper_em = (cell(paper, "hit@1", method=method) for method in ("neural", "emea"))
    dual = cell(runs, "hit@1")
    best = _best(published, data, ratio)
    difference = "" if dual is None or best is None else signed(dual.mean, best[1], DIGITS)
    return [
        data,
        f"{ratio:.0%}",
        "" if neural is None else DIGITS.format(neural.mean),
        "" if paper_em is None else DIGITS.format(paper_em.mean),
        _mean(runs, "neural"),
        shown(dual, splits, DIGITS),
        "" if best is None else f"{DIGITS.format(best[1])} {best[0]}",
        difference,
    ]


def _details(runs: list[RecordedRun]) -> str:
    titles = ["pair", "ratio", "splits", "MRR", "Hit@10", "all targets", "target → source"]
    titles += ["calibration error", "seconds", "GPU memory, MB"]
    rows = []
    for data in _pairs(runs):
        for ratio in RATIOS:
            here = select(runs, data=data, ratio=ratio)
            if here:
                rows.append([data, f"{ratio:.0%}", str(len(here)), *_further(here)])
    return markdown_table(titles, rows, num_left=2)


def _further(runs: list[RecordedRun]) -> list[str]:
    def mean(of: str, *path: str, form: str = DIGITS) -> str:
        return form.format(sum(_at(run, of, *path) for run in runs) / len(runs))

    return [
        mean("final", "mrr"),
        mean("final", "hit@10"),
        mean("final", "all_targets", "hit@1"),
        mean("final_reverse", "hit@1"),
        mean("calibration", "ece"),
        mean("seconds", "total", form="{:.0f}"),
        mean("peak_memory_mb", form="{:.0f}"),
    ]


def _at(run: RecordedRun, *path: str) -> float:
    node = run.metrics
    for key in path:
        node = node[key]
    return float(node)  # type: ignore[arg-type]


def _mean(runs: list[RecordedRun], of: str) -> str:
    """Mean Hit@1 of a ranking after the last iteration."""
    values = [run.metrics["history"][-1][of]["hit@1"] for run in runs]
    return DIGITS.format(sum(values) / len(values)) if values else ""


def _best(published: PaperNumbers, data: str, ratio: float) -> tuple[str, float] | None:
    found = [
        (method, numbers["hit@1"])
        for (of_data, of_ratio, method), numbers in published.items()
        if (of_data, of_ratio) == (data, ratio)
    ]
    return max(found, key=lambda entry: entry[1], default=None)


def _pairs(runs: list[RecordedRun]) -> list[str]:
    return sorted({run.metrics["data"] for run in runs}, reverse=True)


def _is_strict(run: RecordedRun) -> bool:
    return bool(run.metrics["protocol"] == "strict")
