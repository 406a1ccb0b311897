"""Prints the table and the lines at the end of a run."""

import math
import os

from rich.table import Table

from emea.data.protocol import seen_links
from emea.evaluation.metric_table import IN_TABLES
from emea.record.run_folder import answered_entry
from emea.run.outcome import Numbers
from emea.run.result import RunResult
from emea.runtime.console import terminal


def print_results(result: RunResult) -> None:
    """Print initial and final metrics, numbers of the answer, the folder and the UI command."""
    console = terminal(highlight=False, markup=False, soft_wrap=True)
    metrics = result.metrics
    if metrics["num_links"]["test"]:
        console.print(result_table(metrics))
        answer = metrics["answer"]
        keys = ("precision", "recall", "f1")
        numbers = ", ".join(f"{key} {_shown(answer[key], '{:.4f}')}" for key in keys)
        what = "As a mapping of all unlabelled source entities"
        console.print(f"{what}{_decoded(answer)}: {numbers}")
    else:
        console.print(prediction_lines(metrics))
    console.print(answered_line(metrics["export"]))
    console.print(f"Results: {os.path.relpath(result.folder)}")
    if result.ui_hint:
        console.print(f"Compare runs in the MLflow UI: {result.ui_hint}")


def result_table(metrics: Numbers) -> Table:
    """Return a table of initial and final metrics, among test targets and among all targets.

    The title contains the protocol.
    """
    protocol = metrics["protocol"]
    table = Table(
        title=f"{_what(metrics)}, protocol={protocol}: {seen_links(protocol)}",
        title_justify="left",
    )
    table.add_column("ranked among")
    table.add_column("")
    for metric in IN_TABLES:
        table.add_column(metric.title, justify="right")
    # the last stage is what publications with a one-to-one inference report
    stages = {
        "initial": metrics["initial"],
        "final": metrics["final"],
        "final, one-to-one": metrics.get("one_to_one"),
    }
    for pool in ("test targets", "all targets"):
        for stage, scores in stages.items():
            if scores is None:
                continue
            values = scores if pool == "test targets" else scores["all_targets"]
            shown = [
                _shown(values.get(metric.name), metric.form) for metric in IN_TABLES
            ]
            table.add_row(pool, stage, *shown)
    return table


def _what(metrics: Numbers) -> str:
    by_model = "" if metrics["model"] == "none" else f" ({metrics['model']})"
    return f"{metrics['method']}{by_model} on {metrics['data']}"


def prediction_lines(metrics: Numbers) -> str:
    """Return the result of a run without test links."""
    hit = answered_entry(metrics)["validation"]["hit@1"]
    num_links = metrics["num_links"]["validation"]
    return (
        f"{_what(metrics)}: no test links, nothing was evaluated\n"
        f"validation Hit@1 {_shown(hit, '{:.4f}')} (the {num_links} validation links, among all "
        f"targets){_decoded(metrics['answer'])}"
    )


def _decoded(scores: Numbers) -> str:
    """Return the decoding's name; empty if the method has its own answer."""
    return "" if scores["decoder"] == "none" else f" (decoding={scores['decoder']})"


def answered_line(export: Numbers) -> str:
    """Return the number of source entities with an answer, the threshold and the precision."""
    threshold = export["threshold"]
    target = export["target_precision"]
    least = ""
    if threshold is not None:  # more digits if it is close to 1
        least = f", threshold {threshold:.{4 if threshold < 0.999 else 9}g}"
    chosen = ""
    if target is not None and threshold is not None:
        chosen = f", at which a precision of {target:g} is expected"
        if not export["reached"]:
            low = export.get("precision_low")
            bound = (
                "" if low is None or math.isnan(low) else f": above {low:.3f} at 95%"
            )
            chosen += f" (not confirmed{bound})"
    num_free = export["num_answered"] + export["num_unmatched"]
    answered = (
        f"Matched {export['num_answered']:,} of {num_free:,} source entities without a given link "
        f"({_shown(export['share_answered'], '{:.1%}')}){least}{chosen}"
    )
    parts = [answered, f"mean probability {_shown(export['mean_prob'], '{:.4f}')}"]
    for name, judged in (
        ("validation", export["validation"]),
        ("test", export["test"]),
    ):
        if judged["num_links"]:
            links = (
                f"{judged['num_accepted']:,} of {judged['num_links']:,} {name} links"
            )
            if judged["num_accepted"]:
                least = f"{judged['precision_low']:.4f}"
                links = f"precision {judged['precision']:.4f} (likely above {least}) on {links}"
            parts.append(links)
    return "; ".join(parts)


def _shown(value: float | None, form: str) -> str:
    return "n/a" if value is None or math.isnan(value) else form.format(value)
