"""Every run of a store, whether it belongs to a table of the paper or not."""

from collections.abc import Sequence

from emea.reporting.markdown import markdown_table
from emea.reporting.records import RecordedRun
from emea.reporting.study import Study

STAGES = ("initial", "final")
REMARK = (
    "Hit@1, MRR and MR among test targets, before and after EM; empty where there were no test "
    "links. The other parts of this report are the paper's tables and figures: of these runs they "
    "show those that belong to a cell: of its pair, ratio, protocol, model and rule, with the "
    "paper's seed, decoding and EM. Other settings of the model are not looked at."
)


def study(runs: Sequence[RecordedRun]) -> Study:
    """One row per run, in the order in which they began."""
    titles = ["run", "pair", "model", "rule", "em", "protocol"]
    titles += ["Hit@1 before", "Hit@1", "MRR", "MR", "seconds"]
    table = markdown_table(titles, [_row(run) for run in runs], num_left=6)
    return Study("runs", "All runs", (REMARK, table), is_experiment=False)


def _row(run: RecordedRun) -> list[str]:
    metrics = run.metrics
    place = [str(metrics.get(key, "")) for key in ("data", "model", "rule", "em", "protocol")]
    numbers = [_number(run, "hit@1", stage) for stage in STAGES]
    numbers += [_number(run, "mrr"), _number(run, "mr", form="{:.1f}")]
    return [run.header["name"], *place, *numbers, f"{metrics['seconds']['total']:.0f}"]


def _number(run: RecordedRun, metric: str, stage: str = "final", form: str = "{:.4f}") -> str:
    value = run.value(metric, stage=stage) if run.metrics.get(stage) else None
    return "" if value is None else form.format(value)
