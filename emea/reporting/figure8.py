"""Fig. 8 of the paper: compatibility of a model's predictions, and how many of them conflict."""

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from emea.data.arrays import FloatArray
from emea.errors import DataError
from emea.reporting.cells import Cell, num_splits, over_splits, select, shown
from emea.reporting.comparison import NOT_RUN, PROTOCOLS
from emea.reporting.curves import LABELLED
from emea.reporting.methods import EMEA, runs_of
from emea.reporting.records import RecordedRun, provenance_line, run_links
from emea.reporting.study import Study, protocol_tables

if TYPE_CHECKING:  # matplotlib loads only where something is drawn
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAIR = "dbp15k_zh"
STAGES = {"initial": "RREA", "final": "EMEA"}
"""Part of the compatibility section, and whose predictions it is about."""

NUMBERS = {"mean": "compatibility", "conflicts": "conflicts"}
"""Numbers of a stage, and their titles."""

MEASURED = tuple(product(NUMBERS, STAGES))
COLUMNS = ("labels", *(f"{NUMBERS[number]}, {STAGES[stage]}" for number, stage in MEASURED), "runs")

LIGHT, DARK, EDGE, LINE = "0.82", "0.55", "0.35", "0.1"
"""Shades of grey: the figure is to be read in print."""

MEANS: dict[str, dict[str, Any]] = {
    "initial": {"marker": "^", "linestyle": "-", "color": LINE},
    "final": {"marker": "^", "linestyle": "--", "color": LINE, "markerfacecolor": "white"},
}
BARS: dict[str, dict[str, Any]] = {
    "initial": {"facecolor": LIGHT, "edgecolor": EDGE},
    "final": {"facecolor": DARK, "edgecolor": LINE, "hatch": "////"},
}
BAR_WIDTH = 0.4

WIDTH = 0.42
"""Half the width of a violin where it is widest."""

BLUR = 2.5
"""Standard deviation, in bins, of what smooths a violin's outline: of 50 bins about what the
usual rule of thumb takes for ten thousand entities."""


REMARK = (
    "PARIS compatibility (Eq. 19) of each test entity's predicted counterpart, given the "
    "predictions for its neighbours, by RREA before EM and by EMEA after it; the oracle predicts "
    "the true links. They are not quite alike: each mapping is judged by the relation inclusions "
    "that it gives itself, and the oracle maps linked entities alone where a model maps all, which "
    "may be why EMEA, trained for compatibility, can come out above it. Conflicts: the share of "
    "predictions whose target another linked entity claims, too."
)


def study(runs: Sequence[RecordedRun], folder: Path) -> Study:
    """The figure and its numbers; the folder holds nothing the paper printed."""
    title = "Figure 8: compatibility and conflicts"
    used = [run for protocol in PROTOCOLS for run in figure_runs(runs, protocol=protocol)]
    rows = {protocol: table_rows(runs, protocol=protocol) for protocol in PROTOCOLS}
    if not rows["strict"]:
        return Study("figure8", title, (REMARK, NOT_RUN))
    parts = (provenance_line(used), REMARK, *protocol_tables(COLUMNS, rows, num_left=1))
    return Study("figure8", title, parts, figure=draw(runs))


def draw(runs: Sequence[RecordedRun], data: str = PAIR) -> "Figure":
    """Violins of the compatibility by ratio, the oracle's last; beside them the conflicts.

    Args:
        runs: recorded runs; those of supervised RREA with the paper's EM and the PARIS rule,
            protocol strict, count where they tell their compatibility.
        data: the pair of graphs they are of.

    Raises:
        DataError: there is none.
    """
    from matplotlib.figure import Figure

    runs = figure_runs(runs, data)
    if not runs:
        raise DataError(f"no recorded run of EMEA with data={data} tells its compatibility")
    figure = Figure(figsize=(9.4, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    figure.suptitle(f"{data}, protocol=strict, {_num_splits(runs)}", fontsize=10)
    _draw_compatibility(left, runs)
    _draw_conflicts(right, runs)
    return figure


def table_rows(
    runs: Sequence[RecordedRun], data: str = PAIR, protocol: str = "strict"
) -> list[list[str]]:
    """The numbers of the figure: a row per ratio, the oracle's last; none without runs."""
    runs = figure_runs(runs, data, protocol)
    if not runs:
        return []
    rows = [
        [
            _percent(ratio),
            *(shown(over_runs(found, *column), num_splits(runs)) for column in MEASURED),
            run_links(found),
        ]
        for ratio, found in by_ratio(runs).items()
    ]
    oracle = {number: f"{over_runs(runs, number, 'oracle').mean:.3f}" for number in NUMBERS}
    rows.append(["oracle", oracle["mean"], "", oracle["conflicts"], "", ""])
    return rows


def figure_runs(
    runs: Iterable[RecordedRun], data: str = PAIR, protocol: str = "strict"
) -> list[RecordedRun]:
    """The runs that tell their compatibility, with the paper's EM over supervised RREA."""
    # an official split has no ratio, and no place on the axis
    drawn = [run for run in runs if run.metrics["ratio"] is not None]
    telling = [run for run in drawn if "compatibility" in run.metrics]
    ratios = sorted({run.metrics["ratio"] for run in telling})
    by_split = [runs_of(telling, EMEA, protocol, data, ratio).values() for ratio in ratios]
    return [one.run for ones in by_split for one in ones]


def by_ratio(runs: Iterable[RecordedRun]) -> dict[float, list[RecordedRun]]:
    """The runs of each training ratio, ascending."""
    runs = list(runs)
    ratios = sorted({run.metrics["ratio"] for run in runs})
    return {ratio: select(runs, ratio=ratio) for ratio in ratios}


def distribution(runs: Iterable[RecordedRun], stage: str) -> FloatArray:
    """``[num_bins]`` share of the entities in each bin of compatibility, mean over the runs."""
    counts = [np.array(run.metrics["compatibility"][stage]["histogram"]) for run in runs]
    mean: FloatArray = np.mean([count / count.sum() for count in counts], axis=0)
    return mean


def over_runs(runs: Iterable[RecordedRun], number: str, stage: str) -> Cell:
    """A number of the compatibility section over the runs."""
    value = over_splits([run.metrics["compatibility"][stage][number] for run in runs])
    assert value is not None and value.mean is not None
    return value


def outline(shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Height and half-width of a violin; it ends where values end, at 0 and 1.

    Every violin is ``WIDTH`` wide at its widest. The shares are smoothed a little, as a violin's
    are; what would leave the range is reflected.
    """
    reach = int(np.ceil(4 * BLUR))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / BLUR) ** 2)
    smooth = np.convolve(np.pad(shares, reach, mode="symmetric"), kernel, mode="valid")
    centres = (np.arange(len(shares)) + 0.5) / len(shares)
    width = np.concatenate([smooth[:1], smooth, smooth[-1:]])
    return np.concatenate([[0.0], centres, [1.0]]), WIDTH * width / width.max()


def _draw_compatibility(axes: "Axes", runs: list[RecordedRun]) -> None:
    ratios = by_ratio(runs)
    for place, found in enumerate(ratios.values()):
        label = "" if place else STAGES["initial"]
        _violin(axes, place, distribution(found, "initial"), facecolor=LIGHT, label=label)
    last, oracle = len(ratios), distribution(runs, "oracle")
    _violin(axes, last, oracle, facecolor="white", hatch="////", label="oracle")
    for stage, style in MEANS.items():
        means = _means([over_runs(found, "mean", stage) for found in ratios.values()])
        axes.plot(range(last), means, label=f"mean, {STAGES[stage]}", markersize=7, **style)
    alone: dict[str, Any] = {"marker": "D", "linestyle": "", "color": LINE}
    axes.plot([last], _means([over_runs(runs, "mean", "oracle")]), markersize=7, **alone)
    axes.set(ylabel="compatibility", ylim=(-0.02, 1.02))
    axes.set_title("(a) PARIS compatibility", fontsize=10)
    _ratio_axis(axes, [*map(_percent, ratios), "oracle"])
    _legend(axes)


def _violin(axes: "Axes", place: int, shares: FloatArray, **style: Any) -> None:
    height, width = outline(shares)
    axes.fill_betweenx(height, place - width, place + width, edgecolor=EDGE, lw=0.8, **style)


def _draw_conflicts(axes: "Axes", runs: list[RecordedRun]) -> None:
    ratios = by_ratio(runs)
    for side, (stage, style) in zip((-1, 1), BARS.items(), strict=True):
        cells = [over_runs(found, "conflicts", stage) for found in ratios.values()]
        heights, places = _means(cells), np.arange(len(cells)) + side * BAR_WIDTH / 2
        spreads = [cell.spread for cell in cells] if any(cell.spread for cell in cells) else None
        whiskers = {"ecolor": LINE, "elinewidth": 0.8, "capsize": 2}
        label = STAGES[stage]
        bars = axes.bar(
            places, heights, BAR_WIDTH, label=label, yerr=spreads, error_kw=whiskers, **style
        )
        axes.bar_label(bars, [f"{height:.2f}" for height in heights], padding=1, fontsize=8)
    axes.set(ylabel="share of the predictions")
    axes.margins(y=0.1)
    axes.set_title("(b) Conflicting predictions (the oracle has none)", fontsize=10)
    _ratio_axis(axes, list(map(_percent, ratios)))
    _legend(axes)


def _means(cells: Iterable[Cell]) -> list[float]:
    return [cell.mean for cell in cells if cell.mean is not None]


def _legend(axes: "Axes") -> None:
    """Below the axes, in one line: violins and bars leave no corner free."""
    style: dict[str, Any] = {"frameon": False, "fontsize": 9, "columnspacing": 1.4}
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=4, **style)


def _ratio_axis(axes: "Axes", names: list[str]) -> None:
    axes.set_xticks(range(len(names)), names)
    axes.set_xlabel(LABELLED)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.4g}%"


def _num_splits(runs: list[RecordedRun]) -> str:
    most = num_splits(runs)
    return "one split" if most == 1 else f"mean of up to {most} splits"
