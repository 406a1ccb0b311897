"""The distributions of Figure 8: compatibility of the predictions at each ratio."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from emea.data.arrays import FloatArray
from emea.results.charts import COLOURS
from experiments.report.drawing import Spec
from experiments.report.line_charts import HEIGHT, OPACITY
from experiments.report.methods import EMEA_COMPATIBLE
from experiments.report.run_table import Runs, SplitRun
from experiments.report.study_spec import RATIOS

PAIR = "dbp15k_zh"
SIDES = {"initial": ("RREA", -1), "final": ("EMEA", 1)}
"""Whose predictions are on the left and on the right of a violin."""

BLUR = 2.5
"""Standard deviation, in bins, of the kernel that smooths an outline. For 50 bins and ten thousand
entities this is about what the usual rule of thumb gives."""


def violins(runs: Runs) -> Spec:
    """Return one violin per ratio (RREA on the left, EMEA on the right) and one of the oracle."""
    panels = []
    everything: list[SplitRun] = []
    for ratio in RATIOS:
        found = runs.of(EMEA_COMPATIBLE, "strict", PAIR, ratio)
        if not found:
            continue
        everything += found
        sides = [
            (name, side, distribution(found, stage))
            for stage, (name, side) in SIDES.items()
        ]
        panels.append(_violin(f"{100 * ratio:.4g}%", sides))
    oracle = distribution(everything, "oracle")
    panels.append(_violin("oracle", [("oracle", -1, oracle), ("oracle", 1, oracle)]))
    return {
        "title": "Distribution of compatibility: RREA (left half) and EMEA (right half)",
        "hconcat": panels,
        "spacing": 8,
    }


def distribution(runs: Iterable[SplitRun], stage: str) -> FloatArray:
    """Return the share of entities in each bin of compatibility, as a mean over runs."""
    path = f"compatibility.{stage}.histogram"
    counts = [np.array(run.row["values"][path]) for run in runs]
    mean: FloatArray = np.mean([count / count.sum() for count in counts], axis=0)
    return mean


def outline(shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return height and half-width of a violin between 0 and 1; the largest half-width is 1.

    The shares are smoothed. The part of the kernel outside of the range is reflected.
    """
    reach = int(np.ceil(4 * BLUR))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / BLUR) ** 2)
    smooth = np.convolve(np.pad(shares, reach, mode="symmetric"), kernel, mode="valid")
    centres = (np.arange(len(shares)) + 0.5) / len(shares)
    width = np.concatenate([smooth[:1], smooth, smooth[-1:]])
    return np.concatenate([[0.0], centres, [1.0]]), width / width.max()


def _violin(title: str, sides: Iterable[tuple[str, int, FloatArray]]) -> Spec:
    values: list[dict[str, Any]] = []
    for number, (name, side, shares) in enumerate(sides):
        height, width = outline(shares)
        values += [
            {
                "series": name,
                "side": number,
                "y": round(float(y), 4),
                "x": round(side * float(x), 4),
            }
            for y, x in zip(height, width, strict=True)
        ]
    names = [name for name, _ in SIDES.values()] + ["oracle"]
    colour = {"field": "series", "type": "nominal", "title": None}
    colour["scale"] = {"domain": names, "range": list(COLOURS[: len(names)])}  # type: ignore[assignment]
    width_axis = {
        "field": "x",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [-1, 1]},
    }
    axis = (
        {"title": "compatibility"}
        if title == "1%"
        else {"title": None, "labelOpacity": 0, "ticks": False}
    )
    return {
        "title": {"text": title, "anchor": "middle"},
        "data": {"values": values},
        "width": 80,
        "height": HEIGHT,
        "mark": {"type": "area", "orient": "horizontal"},
        "encoding": {
            "y": {
                "field": "y",
                "type": "quantitative",
                "axis": axis,
                "scale": {"domain": [0, 1]},
            },
            "x": width_axis,
            "x2": {"datum": 0},
            "detail": {"field": "side", "type": "nominal"},
            "color": colour,
            "opacity": OPACITY,
        },
    }
