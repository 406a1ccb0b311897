"""All runs of a store, and the best of them."""

from collections.abc import Sequence

from emea.reporting.markdown import markdown_table
from emea.reporting.records import RecordedRun
from emea.reporting.study import Study

NAME = "runs"
STAGES = ("initial", "final")
REMARK = (
    "Hit@1, MRR and MR are among test targets, before and after EM; they are empty where a run had "
    "no test links. Below are those tables and figures of the paper that some of these runs belong "
    "to: they have the pair, ratio, protocol, model and rule of a cell, and the paper's seed, "
    "decoding and EM settings. Other settings of the model are not compared."
)


def study(runs: Sequence[RecordedRun]) -> Study:
    """A summary, then one row per run, in the order in which they started."""
    titles = ["run", "pair", "model", "rule", "em", "protocol"]
    titles += ["Hit@1 before", "Hit@1", "MRR", "MR", "seconds"]
    table = markdown_table(titles, [_row(run) for run in runs], num_left=6)
    return Study(NAME, "All runs", (*_summary(runs), REMARK, table), is_experiment=False)


def _summary(runs: Sequence[RecordedRun]) -> list[str]:
    """How many runs there are, and the best of each pair, ratio and protocol."""
    groups: dict[tuple[str, str, str], list[RecordedRun]] = {}
    for run in runs:
        if _number(run, "hit@1"):
            ratio, split = run.metrics.get("ratio"), run.metrics.get("split", "")
            share = str(split) if ratio is None else f"{ratio:.4g}"
            place = (str(run.metrics.get("data", "")), share, str(run.metrics.get("protocol", "")))
            groups.setdefault(place, []).append(run)
    num_measured = sum(map(len, groups.values()))
    sentence = f"{len(runs)} finished runs, {num_measured} of them with test links."
    if not groups:
        return [sentence]
    rows = []
    for place, members in sorted(groups.items()):
        best = max(members, key=lambda run: run.value("hit@1") or 0.0)
        rows.append([*place, best.header["name"], _number(best, "hit@1"), str(len(members))])
    titles = ["pair", "ratio", "protocol", "best run", "Hit@1", "runs"]
    remark = (
        "The run with the highest Hit@1 on test links, by pair, ratio and protocol. Choose "
        "settings on validation links, not by this table."
    )
    return [sentence, remark, markdown_table(titles, rows, num_left=4)]


def _row(run: RecordedRun) -> list[str]:
    metrics = run.metrics
    place = [str(metrics.get(key, "")) for key in ("data", "model", "rule", "em", "protocol")]
    numbers = [_number(run, "hit@1", stage) for stage in STAGES]
    numbers += [_number(run, "mrr"), _number(run, "mr", form="{:.1f}")]
    return [run.header["name"], *place, *numbers, f"{metrics['seconds']['total']:.0f}"]


def _number(run: RecordedRun, metric: str, stage: str = "final", form: str = "{:.4f}") -> str:
    value = run.value(metric, stage=stage) if run.metrics.get(stage) else None
    return "" if value is None else form.format(value)
