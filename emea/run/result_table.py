"""The table and the lines that a run prints at its end."""

import math
import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from emea.em.protocol import seen_links

COLUMNS = (
    ("hit@1", "Hit@1", "{:.4f}"),
    ("hit@10", "Hit@10", "{:.4f}"),
    ("mrr", "MRR", "{:.4f}"),
    ("mr", "MR", "{:.1f}"),
)


def print_results(metrics: dict[str, Any], folder: Path) -> None:
    """Print initial and final metrics, the answer in numbers, the folder and the UI's command."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if metrics["num_links"]["test"]:
        console.print(result_table(metrics))
        console.print(_answer_line(metrics["answer"]))
    else:
        console.print(prediction_lines(metrics))
    console.print(answered_line(metrics["export"]))
    console.print(f"Results: {os.path.relpath(folder)}")
    if metrics.get("ui_hint"):
        console.print(f"Compare runs in the MLflow UI: {metrics['ui_hint']}")


def result_table(metrics: dict[str, Any]) -> Table:
    """Initial and final rows, among test targets and among all; the title names the protocol."""
    model = "" if metrics["model"] == "none" else f" ({metrics['model']})"
    table = Table(
        title=f"{metrics['method']}{model} on {metrics['data']}, "
        f"protocol={metrics['protocol']}: {seen_links(metrics['protocol'])}",
        title_justify="left",
    )
    table.add_column("ranked among")
    table.add_column("")
    for _, title, _ in COLUMNS:
        table.add_column(title, justify="right")
    for pool in ("test targets", "all targets"):
        for stage in ("initial", "final"):
            values = metrics[stage] if pool == "test targets" else metrics[stage]["all_targets"]
            table.add_row(pool, stage, *(_shown(values[key], form) for key, _, form in COLUMNS))
    return table


def prediction_lines(metrics: dict[str, Any]) -> str:
    """The result of a run without test links."""
    labels = metrics["num_links"]
    model = "" if metrics["model"] == "none" else f" ({metrics['model']})"
    hit = metrics["history"][-1]["validation"]["hit@1"]
    held_out = f"the {labels['validation']} validation links, among all targets"
    return (
        f"{metrics['method']}{model} on {metrics['data']}: no test links, nothing was evaluated\n"
        f"validation Hit@1 {_shown(hit, '{:.4f}')} ({held_out})"
        f"{_decoded(metrics['answer'])}"
    )


def _answer_line(answer: dict[str, Any]) -> str:
    keys = ("precision", "recall", "f1")
    numbers = ", ".join(f"{key} {_shown(answer[key], '{:.4f}')}" for key in keys)
    return f"As a mapping of all unlabelled source entities{_decoded(answer)}: {numbers}"


def _decoded(answer: dict[str, Any]) -> str:
    """The decoding's name; empty where the method has an answer of its own."""
    return "" if answer["decoder"] == "none" else f" (decoding={answer['decoder']})"


def _threshold(value: float) -> str:
    """Near 1, where thousandths of thousandths matter, with more digits."""
    return f"{value:.4g}" if value < 0.999 else f"{value:.9g}"


def answered_line(export: dict[str, Any]) -> str:
    """How many source entities have an answer, the threshold, and how precise the answers are."""
    threshold, target = export["threshold"], export["target_precision"]
    least = "" if threshold is None else f", threshold {_threshold(threshold)}"
    chosen = "" if target is None or threshold is None else f" (for a precision of {target:g})"
    num_free = export["num_answered"] + export["num_unmatched"]
    answered = (
        f"Matched {export['num_answered']:,} of {num_free:,} source entities without a given link "
        f"({_shown(export['share_answered'], '{:.1%}')}){least}{chosen}"
    )
    parts = [answered, f"mean probability {_shown(export['mean_prob'], '{:.4f}')}"]
    judged = [name for name in ("validation", "test") if export[name]["num_links"]]
    return "; ".join([*parts, *(_precision(export[name], name) for name in judged)])


def _precision(found: dict[str, Any], links: str) -> str:
    of = f"{found['num_accepted']:,} of {found['num_links']:,} {links} links"
    if not found["num_accepted"]:
        return of
    return f"precision {found['precision']:.4f} (likely above {found['precision_low']:.4f}) on {of}"


def _shown(value: float | None, form: str) -> str:
    return "n/a" if value is None or math.isnan(value) else form.format(value)
