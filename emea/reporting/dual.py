"""Two-way compatibility: what one part less costs, other models and pairs, and its costs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from emea.reporting.cells import over_splits, shown, signed, splits_told
from emea.reporting.comparison import NOT_RUN, Entry, entries
from emea.reporting.markdown import PaperNumbers, load_paper_numbers, markdown_table
from emea.reporting.methods import DUAL, DUAL_PARTS, EMEA, PARIS, RREA, USUAL, is_usual, runs_of
from emea.reporting.records import RecordedRun, provenance_line, run_links
from emea.reporting.study import DBP15K_CELLS, Study
from emea.settings.em import FEATURES

OTHERS = (("D_Y_15K_V1", 0.01), ("D_Y_15K_V1", 0.05), ("D_Y_15K_V1", 0.2), ("contea_fr_en", 0.2))
REMARK = (
    "Hit@1 among test targets; `protocol=strict`, no Sinkhorn, one setting for all cells. It was "
    "developed on DBP15K zh with split seed 11, by looking at that split's links; the other pairs "
    "were looked at once, after it. *encoder* is the neural model's own ranking after the last "
    "iteration. *published* is the best known to us from structure alone; but for Dual-AMN its "
    "authors let Sinkhorn iterations see the test pool (`published.csv`)."
)
CHANGED = (
    "Hit@1 among test targets of runs on zh, split 0, that differ in one setting and start from "
    "one first training (other models and training modes: from their own), and how far they lie "
    "from the run with all parts. One run each: differences of a few thousandths are noise."
)
SPLITS = 5
"""That a cell is to have."""

NAMES = {
    ("em.two_way.both_directions", "False"): "one direction",
    ("em.two_way.sweeps", "1"): "one sweep",
    ("em.two_way.propagation", "0"): "no propagation of candidates",
    ("em.two_way.unmatched", "False"): "no room to stay unmatched",
    ("em.two_way.matched_inclusions", "False"): "inclusions from all triples",
    ("em.two_way.memory", "0.5"): "similarities remembered",
    ("em.two_way.mutual_labels", "False"): "labels need not be mutual",
    ("em.two_way.weighted_labels", "False"): "labels not weighted",
    ("em.two_way.fused_answer", "False"): "the encoder's answer",
    ("em.two_way.one_to_one", "True"): "one-to-one inference",
}
"""What a changed setting means."""


def study(runs: Sequence[RecordedRun], folder: Path) -> Study:
    """All that is recorded of ``em=dual``."""
    published = load_paper_numbers(folder / "published.csv")
    numbers = entries("dual", runs, (DUAL,), {}, (*DBP15K_CELLS, *OTHERS), "hit@1")
    ours = [one.run for entry in numbers for one in entry.found]
    ours += [run for by_ratio in _changed_runs(runs).values() for run in by_ratio.values()]
    parts = [provenance_line(ours), REMARK]
    parts += ["## Hit@1 among test targets", table(runs, published)]
    parts += ["## Pairs never used in development", other_pairs(runs)]
    parts += ["## The rest of it", _details(numbers)]
    parts += ["## One thing changed", CHANGED, changes(runs)]
    return Study("dual", "Two-way compatibility (`em=dual`)", tuple(parts), tuple(numbers))


def summary(runs: Sequence[RecordedRun], folder: Path) -> str:
    """The tables of the README: results, other pairs, and one part less."""
    published = load_paper_numbers(folder / "published.csv")
    changed = changes(runs, folder.parent.name)
    return "\n\n".join([table(runs, published), other_pairs(runs), CHANGED, changed])


def table(runs: Sequence[RecordedRun], published: PaperNumbers) -> str:
    """DBP15K beside the paper's EM and the best that was published."""
    titles = ["pair", "ratio", "RREA", "em=paper", "encoder", "em=dual", "published", "difference"]
    rows = []
    for place in DBP15K_CELLS:
        rrea, _, paper, dual = entries("", runs, (RREA, EMEA, DUAL), {}, [place], "hit@1")
        best = _best(published, *place)
        shown_best = "" if best is None else f"{best[1]:.3f} {best[0]}"
        mean = dual.cell.mean if dual.cell else None
        beside = [_mean(entry, len(dual.found)) for entry in (rrea, paper)]
        cells = [*beside, _encoder(dual), _here(dual), shown_best]
        rows.append([*_place(place), *cells, signed(mean, best[1] if best else None)])
    return markdown_table(titles, rows, num_left=2)


def other_pairs(runs: Sequence[RecordedRun]) -> str:
    """Pairs that were looked at once."""
    titles = [
        "pair",
        "ratio",
        "PARIS",
        "RREA",
        "em=dual",
        "all targets",
        "seconds",
        "GPU memory, MB",
    ]
    rows = []
    for place in OTHERS:
        paris, dual = entries("", runs, (PARIS, DUAL), {}, [place], "hit@1")
        splits = {one.run.metrics["split_seed"] for one in dual.found}
        same = [one for one in paris.found if one.run.metrics["split_seed"] in splits]
        paris = replace(paris, cell=over_splits([one.value("hit@1") for one in same]))
        before = over_splits([one.run.value("hit@1", stage="initial") for one in dual.found])
        first = f"{before.mean:.3f}" if before and before.mean is not None else ""
        cells = [_mean(paris, len(splits)), first, _here(dual)]
        cells += [*_costs(dual)[2:3], *_costs(dual)[5:]]
        rows.append([*_place(place), *cells])
    return markdown_table(titles, rows, num_left=2)


def changes(runs: Sequence[RecordedRun], studies: str = "..") -> str:
    """A row per changed setting; how far it lies from the whole.

    Args:
        runs: recorded runs; of several of a cell a study's own counts, then the latest.
        studies: where the studies lie, seen from the text.
    """
    ratios = (0.01, 0.05, 0.3)
    found = _changed_runs(runs)
    whole = {}
    for ratio in ratios:
        usual = runs_of(runs, DUAL, "strict", "dbp15k_zh", ratio).get(0)
        whole[ratio] = usual.run if usual else None
    rows = [["nothing", *(_changed(whole[ratio], None) for ratio in ratios), ""]]
    for change, by_ratio in sorted(found.items()):
        cells = [_changed(by_ratio.get(ratio), whole[ratio]) for ratio in ratios]
        linked = [by_ratio[ratio] for ratio in ratios if ratio in by_ratio]
        rows.append([change, *cells, run_links(linked, studies)])
    return markdown_table(["changed", *(f"{ratio:.0%}" for ratio in ratios), "runs"], rows, 1)


def _changed_runs(runs: Sequence[RecordedRun]) -> dict[str, dict[float, RecordedRun]]:
    """Runs that differ from the whole in one setting, by that and their ratio."""
    found: dict[str, dict[float, RecordedRun]] = {}
    wanted = {"em": "dual", "data": "dbp15k_zh", "split_seed": 0, "protocol": "strict"}
    for run in sorted(runs, key=lambda run: run.precedence):
        if all(run.metrics.get(key) == value for key, value in wanted.items()):
            change = changed_setting(run)
            if change:
                found.setdefault(change, {})[run.metrics["ratio"]] = run
    return found


def changed_setting(run: RecordedRun) -> str | None:
    """The one thing in which a run differs from the usual; ``None`` where it is none or several."""
    if not is_usual(run, {}):
        return None
    params = run.header["params"]
    usual: dict[str, Any] = USUAL | DUAL_PARTS
    differs = [key for key, value in usual.items() if params.get(key, value) != value]
    told = [_named(key, str(params[key])) for key in differs]
    told += [f"model={run.metrics['model']}"] if run.metrics["model"] != "rrea" else []
    told += [f"training={run.metrics['training']}"] if run.metrics["training"] != "sup" else []
    return told[0] if len(told) == 1 else None


def _named(key: str, value: str) -> str:
    if key == "em.two_way.features":
        missing = [name for name in FEATURES if f"'{name}'" not in value]
        return f"without {', '.join(missing)}"
    return NAMES.get((key, value), f"{key.removeprefix('em.')}={value}")


def _changed(run: RecordedRun | None, whole: RecordedRun | None) -> str:
    if run is None:
        return ""
    difference = signed(run.value("hit@1"), whole.value("hit@1") if whole else None)
    return f"{run.value('hit@1'):.3f}" + (f" ({difference})" if difference else "")


def _details(numbers: Sequence[Entry]) -> str:
    titles = ["pair", "ratio", "splits", "MRR", "Hit@10", "all targets", "target → source"]
    titles += ["calibration error", "seconds", "GPU memory, MB", "runs"]
    rows = [
        [entry.data, f"{entry.ratio:.0%}", str(len(entry.found)), *_costs(entry), *_linked(entry)]
        for entry in numbers
        if entry.found
    ]
    return markdown_table(titles, rows, num_left=2)


def _linked(entry: Entry) -> list[str]:
    return [run_links(one.run for one in entry.found)]


def _costs(entry: Entry) -> list[str]:
    def mean(*path: str, form: str = "{:.3f}") -> str:
        values = [_at(one.run, *path) for one in entry.found]
        return form.format(fmean(values)) if values else ""

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


def _encoder(entry: Entry) -> str:
    values = [one.run.metrics["history"][-1]["neural"]["hit@1"] for one in entry.found]
    return f"{fmean(values):.3f}" if values else ""


def _mean(entry: Entry, splits: int) -> str:
    if entry.cell is None or entry.cell.mean is None:
        return ""
    told = splits_told(entry.cell, splits) if splits > 1 else ""
    return f"{entry.cell.mean:.3f}{told}"


def _here(entry: Entry) -> str:
    return shown(entry.cell, SPLITS) if entry.cell else NOT_RUN


def _place(place: tuple[str, float]) -> list[str]:
    return [place[0], f"{place[1]:.0%}"]


def _best(published: PaperNumbers, data: str, ratio: float) -> tuple[str, float] | None:
    found = [
        (method, numbers["hit@1"])
        for (of_data, of_ratio, method), numbers in published.items()
        if (of_data, of_ratio) == (data, ratio)
    ]
    return max(found, key=lambda entry: entry[1], default=None)
