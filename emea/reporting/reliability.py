"""A run's reliability diagram: how often its answers are correct, by their probability."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emea.em.protocol import seen_links
from emea.errors import DataError
from emea.reporting.figures import write_figure

if TYPE_CHECKING:  # matplotlib loads only where something is drawn
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAR, EDGE, LINE = "0.82", "0.45", "0.1"
"""Shades of grey: the diagram is to be read in print."""


def draw(folder: Path, base: Path | None = None) -> list[Path]:
    """Draw the diagram of a run's folder as PNG and SVG.

    Args:
        folder: holds the run's ``metrics.json``.
        base: name of the files without their endings; by default ``reliability`` in the folder.

    Raises:
        DataError: the folder has no calibration, or the files cannot be written.
    """
    base = base or folder / "reliability"
    figure = reliability_diagram(load_metrics(folder))
    try:
        return write_figure(figure, base)
    except OSError as error:
        raise DataError(f"{base} cannot be written: {error}") from error


def load_metrics(folder: Path) -> dict[str, Any]:
    """The metrics of a run that has a calibration to draw."""
    try:
        metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} holds no metrics.json of a run: {error}") from error
    if not metrics.get("calibration", {}).get("bins"):
        raise DataError(f"{folder}/metrics.json has no calibration: no test link has an answer")
    return metrics


def reliability_diagram(metrics: dict[str, Any]) -> "Figure":
    """Accuracy by probability, and below it how many entities have such a probability."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 5.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3.2, 1))
    figure.suptitle(title(metrics), fontsize=10)
    calibration = metrics["calibration"]
    _draw_accuracy(upper, calibration)
    _draw_counts(lower, calibration)
    return figure


def title(metrics: dict[str, Any]) -> str:
    """What was run on what, and whether test links could have touched it."""
    seen = seen_links(metrics["protocol"])
    model = "" if metrics["model"] == "none" else f" ({metrics['model']})"
    em = "" if metrics["em"] in ("none", "paper") else f", em={metrics['em']}"
    ratio = metrics["ratio"]
    share = (
        f"{metrics.get('split', 'official')} split"
        if ratio is None
        else f"{100 * ratio:.4g}% labels"
    )
    decoder = metrics["answer"]["decoder"]
    answer = "" if decoder == "none" else f", decoding={decoder}"
    return (
        f"{metrics['method']}{model}{em} on {metrics['data']}, {share}{answer}\n"
        f"protocol={metrics['protocol']}: {seen}"
    )


def _draw_accuracy(axes: "Axes", calibration: dict[str, Any]) -> None:
    bins = calibration["bins"]
    accuracy = [row["accuracy"] for row in bins]
    _bars(axes, bins, accuracy)
    axes.plot([0, 1], [0, 1], linestyle="--", color=EDGE, linewidth=1, label="calibrated")
    said = [row["mean_prob"] for row in bins]
    axes.plot(said, accuracy, marker="o", markersize=5, color=LINE, linewidth=1.4, label="this run")
    axes.set(ylabel="accuracy", xlim=(0, 1), ylim=(0, 1.02))
    error = f"expected calibration error {calibration['ece']:.3f}"
    axes.legend(title=error, alignment="left", loc="best", framealpha=1, edgecolor=EDGE)


def _draw_counts(axes: "Axes", calibration: dict[str, Any]) -> None:
    bins = calibration["bins"]
    _bars(axes, bins, [row["num_entities"] for row in bins])
    unmatched = calibration["num_unmatched"]
    left_out = f", {unmatched:,} without an answer left out" if unmatched else ""
    axes.set(
        ylabel="entities",
        xlabel=f"probability of the answer\n({calibration['num_entities']:,} test links{left_out})",
    )
    axes.yaxis.set_major_formatter("{x:,.0f}")


def _bars(axes: "Axes", bins: list[dict[str, float]], heights: list[float]) -> None:
    starts = [row["min_prob"] for row in bins]
    widths = [row["max_prob"] - row["min_prob"] for row in bins]
    axes.bar(starts, heights, widths, align="edge", color=BAR, edgecolor=EDGE, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
