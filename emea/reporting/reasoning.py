"""PARIS and PRASE, which answer with one counterpart or none instead of ranking."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from emea.reporting.cells import NO_RECORD, cell, num_splits, over_splits, select, shown
from emea.reporting.markdown import PaperNumbers, machine_of, markdown_table
from emea.reporting.methods import is_usual
from emea.reporting.records import RecordedRun, provenance_line

METHODS = {"paris": "PARIS", "prase": "PRASE"}
MAPPING = {"precision": "precision", "f1": "F1"}
REMARK = (
    "PARIS and PRASE answer with one counterpart or none, one to one and among all targets: their "
    "Hit@1 is the recall of the answers in either pool, and metrics of ranks are not applicable "
    "(n/a). Precision is over all answers for source entities without a label: one for an entity "
    "without counterpart is wrong."
)


def summary(runs: Iterable[RecordedRun], paper: PaperNumbers, pairs: Sequence[str]) -> list[str]:
    """Hit@1 beside the paper's, two rows per method and pair; nothing where none was run."""
    runs = [run for run in _of_reasoning(runs) if run.metrics["data"] in pairs]
    if not runs:
        return []
    ratios = sorted({run.metrics["ratio"] for run in runs})
    rows = [
        row
        for method in METHODS
        for data in pairs
        for row in _paper_and_ours(runs, paper, method, data, ratios)
    ]
    titles = ["method", "pair", "", *(f"{ratio:.0%}" for ratio in ratios)]
    return [markdown_table(titles, rows, num_left=3), provenance_line(runs)]


def mapping_table(runs: Iterable[RecordedRun], pairs: Sequence[str]) -> str:
    """Precision and F1 of the answers; recall is Hit@1."""
    runs = [run for run in _of_reasoning(runs) if run.metrics["data"] in pairs]
    titles = ["method", "pair", "ratio", *MAPPING.values()]
    rows = [
        [METHODS[method], data, f"{ratio:.0%}", *_mapping(found, num_splits(runs))]
        for method, data, ratio, found in _groups(runs, pairs)
    ]
    return markdown_table(titles, rows, num_left=3)


def other_pairs(runs: Iterable[RecordedRun], pairs: Sequence[str]) -> str:
    """Every other pair, with time and memory: means over splits, the machine beside them."""
    runs = [run for run in _of_reasoning(runs) if run.metrics["data"] not in pairs]
    others = sorted({run.metrics["data"] for run in runs})
    titles = ["method", "pair", "ratio", "machine", "Hit@1", *MAPPING.values()]
    titles += ["whole run, s", "peak memory, MB"]
    rows = [
        [METHODS[method], data, f"{ratio:.0%}", *_measured(found, num_splits(runs))]
        for method, data, ratio, found in _groups(runs, others)
    ]
    return markdown_table(titles, rows, num_left=4)


def _of_reasoning(runs: Iterable[RecordedRun]) -> list[RecordedRun]:
    """Of several runs of a split a study's own, then the latest."""
    found = {}
    for run in sorted(runs, key=lambda run: run.precedence):
        # of a split that is no share of the links (ratio is None) there is no cell
        counts = run.metrics["ratio"] is not None and is_usual(run, {})
        if counts and run.metrics["method"] in METHODS:
            keys = ("method", "data", "ratio", "split_seed")
            found[tuple(run.metrics[key] for key in keys)] = run
    return list(found.values())


def _paper_and_ours(
    runs: list[RecordedRun], paper: PaperNumbers, method: str, data: str, ratios: list[float]
) -> list[list[str]]:
    printed = [paper.get((data, ratio, method), {}).get("hit@1") for ratio in ratios]
    found = [cell(runs, "hit@1", method=method, data=data, ratio=ratio) for ratio in ratios]
    name, splits = METHODS[method], num_splits(runs)
    return [
        [name, data, "paper", *("" if value is None else f"{value:.3f}" for value in printed)],
        [name, data, "here", *(shown(value, splits) for value in found)],
    ]


def _groups(
    runs: list[RecordedRun], pairs: Sequence[str]
) -> list[tuple[str, str, float, list[RecordedRun]]]:
    """Method, pair, ratio and their runs; a method without runs keeps its row."""
    cells = sorted(
        {(run.metrics["data"], run.metrics["ratio"]) for run in runs},
        key=lambda key: (pairs.index(key[0]), key[1]),
    )
    return [
        (method, data, ratio, select(runs, method=method, data=data, ratio=ratio))
        for method in METHODS
        for data, ratio in cells
    ]


def _mapping(runs: list[RecordedRun], splits: int) -> list[str]:
    answers = [run.metrics["mapping"]["all"] for run in runs]
    return [shown(over_splits([answer[key] for answer in answers]), splits) for key in MAPPING]


def _measured(runs: list[RecordedRun], splits: int) -> list[str]:
    if not runs:
        return ["", NO_RECORD, *([""] * (len(MAPPING) + 2))]
    machines = ", ".join(sorted({machine_of(run.header["tags"]) for run in runs}))
    seconds = fmean(run.metrics["seconds"]["total"] for run in runs)
    memory = max(run.metrics["peak_memory_mb"] for run in runs)
    answers = [shown(cell(runs, "hit@1"), splits), *_mapping(runs, splits)]
    return [machines, *answers, f"{seconds:.1f}", f"{memory:.0f}"]
