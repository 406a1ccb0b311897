"""Curves of recorded runs: a mean and a spread at each place, drawn to be read in grey."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emea.reporting.cells import Cell

if TYPE_CHECKING:  # matplotlib loads only where something is drawn
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELLED = "labelled links"
"""What the axis of ratios is called."""

STYLES = (
    ("0.0", "-", "o"),
    ("0.35", "--", "s"),
    ("0.55", "-.", "^"),
    ("0.2", ":", "D"),
    ("0.65", "-", "v"),
    ("0.45", "--", "P"),
)
"""Shade, line and marker of each curve: no two alike in print."""


@dataclass(frozen=True)
class Curve:
    """A named line; places without a run are left out."""

    label: str
    points: Mapping[Any, Cell]


def panels(
    titles: Sequence[str], heading: str, columns: int = 2, height: float = 3.0
) -> "tuple[Figure, list[Axes]]":
    """A figure with a panel per title, under what all of them are of."""
    from matplotlib.figure import Figure

    rows = -(-len(titles) // columns)
    figure = Figure(figsize=(4.3 * columns, height * rows), layout="constrained")
    figure.suptitle(f"{heading}; bars: standard deviation over splits", fontsize=10)
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(title, fontsize=10)
        axis.grid(color="0.9", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(titles) :]:
        axis.set_axis_off()
    return figure, axes[: len(titles)]


def draw(
    axis: "Axes", curves: Sequence[Curve], places: Sequence[float], names: Sequence[str]
) -> None:
    """Curves over places at equal distance, with the spread over splits as bars."""
    for curve, (shade, line, marker) in zip(curves, STYLES * 2, strict=False):
        at = [index for index, place in enumerate(places) if place in curve.points]
        cells = [curve.points[places[index]] for index in at]
        means = [math.nan if cell.mean is None else cell.mean for cell in cells]
        spreads = [cell.spread for cell in cells]
        style: dict[str, Any] = {"color": shade, "linestyle": line, "marker": marker}
        style |= {"capsize": 2, "markersize": 4, "linewidth": 1.2}
        label = curve.label if curve.points else f"{curve.label} (not run)"
        axis.errorbar(at, means, yerr=spreads, label=label, **style)
    axis.set_xticks(range(len(places)), names)
    if any(curve.points for curve in curves):
        axis.legend(fontsize=7, frameon=False, handlelength=4)
    else:
        axis.text(0.5, 0.5, "not run", ha="center", va="center", transform=axis.transAxes)
