"""Charts as data: lines over the rows of filled tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emea.results.charts import COLOURS
from experiments.report.drawing import Spec, framed
from experiments.report.report import Table

SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
)
WIDTH, HEIGHT = 230, 190
OPACITY = {
    "condition": {"test": "indexof(hidden, datum.series) >= 0", "value": 0.04},
    "value": 1,
}
"""The page adds a series to the parameter ``hidden`` when its name in a legend is clicked."""


@dataclass(frozen=True)
class Chart:
    """Lines over the rows of a table.

    Args:
        title: The heading of the chart.
        table: The number of the table within its study.
        x: The key column on the horizontal axis.
        y: Titles of measured columns. Each is a series, unless ``series`` names a key column.
        y_title: The title of the vertical axis.
        x_title: The title of the horizontal axis.
        series: The key column that distinguishes the series.
        panel: The key column with one panel per value; empty for a single panel.
        names: Display names of series.
        dashed: Series with dashed lines.
        y_range: The limits of the vertical axis, if fixed.
        colours: The colours of the series, if not the usual ones.
    """

    title: str
    table: int
    x: str
    y: tuple[str, ...]
    y_title: str = "Hit@1"
    x_title: str = "labelled links"
    series: str = ""
    panel: str = ""
    names: Mapping[str, str] | None = None
    dashed: tuple[str, ...] = ()
    y_range: tuple[float, float] | None = None
    colours: tuple[str, ...] = ()


def points(chart: Chart, table: Table) -> list[Spec]:
    """Return the points of a chart: one per row and measured column that has a number."""
    keys = {title: place for place, title in enumerate(table.keys)}
    names = chart.names or {}
    found: list[Spec] = []
    for labels, cells in table.rows:
        for title in chart.y:
            if title not in table.titles:
                continue
            entry = cells[table.titles.index(title)]
            if entry.number is None:
                continue
            series = labels[keys[chart.series]] if chart.series else title
            spread = entry.cell.spread if entry.cell else 0.0
            point = {
                "panel": labels[keys[chart.panel]] if chart.panel else "",
                "x": labels[keys[chart.x]],
                "series": names.get(series, series),
                "y": _rounded(entry.number),
                "value": entry.text,
            }
            if spread:
                point |= {"low": _rounded(entry.number - spread)}
                point |= {"high": _rounded(entry.number + spread)}
            found.append(point)
    return found


def _rounded(number: float) -> float:
    """Round to six significant digits, so that files do not depend on the last bits."""
    return float(f"{number:.6g}")


def lines(chart: Chart, values: Sequence[Spec]) -> Spec:
    """Return the Vega-Lite specification of a chart: one panel of lines per value of ``panel``."""
    series = list(dict.fromkeys(value["series"] for value in values))
    panels = list(dict.fromkeys(value["panel"] for value in values))
    drawn = []
    for name in panels:
        here = [value for value in values if value["panel"] == name]
        drawn.append(_panel(chart, name, here, series))
    return {
        "title": chart.title,
        "concat": drawn,
        "columns": 3,
        "columnPadding": 30,
        "rowPadding": 6,
        "resolve": {"scale": {"color": "shared", "shape": "shared"}},
    }


def _panel(
    chart: Chart, name: str, values: Sequence[Spec], series: Sequence[str]
) -> Spec:
    x = {
        "field": "x",
        "type": "ordinal",
        "sort": list(dict.fromkeys(value["x"] for value in values)),
        "axis": {"title": chart.x_title, "labelAngle": 0},
        "scale": {"type": "point", "padding": 0.3},
    }
    limits = {"domain": list(chart.y_range)} if chart.y_range else {"zero": False}
    y = {"field": "y", "type": "quantitative", "title": chart.y_title, "scale": limits}

    def by_series(values: Sequence[Any]) -> Spec:
        scale = {"domain": list(series), "range": list(values)}
        return {"field": "series", "type": "nominal", "title": None, "scale": scale}

    colours = chart.colours or COLOURS
    colour = by_series([colours[i % len(colours)] for i in range(len(series))])
    shape = by_series([SHAPES[i % len(SHAPES)] for i in range(len(series))])
    is_dashed = f"indexof({json.dumps(list(chart.dashed))}, datum.series) >= 0"
    dash = {"condition": {"test": is_dashed, "value": [6, 3]}, "value": [1, 0]}
    tooltip = [
        {"field": "series", "title": "series"},
        {"field": "x", "title": chart.x_title},
        {"field": "value", "title": chart.y_title},
    ]
    base = {"x": x, "color": colour, "opacity": OPACITY}
    layers: list[Spec] = [
        {"mark": "line", "encoding": {**base, "y": y, "strokeDash": dash}},
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 1.2},
            "encoding": {**base, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60},
            "encoding": {**base, "y": y, "shape": shape, "tooltip": tooltip},
        },
    ]
    panel: Spec = {"data": {"values": list(values)}, "layer": layers, "width": WIDTH}
    return panel | {"height": HEIGHT} | ({"title": name} if name else {})


def stacked(charts: Sequence[Spec]) -> Spec:
    """Return one specification with the charts below each other."""
    apart = {"resolve": {"scale": dict.fromkeys(("color", "shape"), "independent")}}
    small = [chart for chart in charts if len(chart.get("concat", ())) == 1]
    rows = [chart for chart in charts if chart not in small]
    if small:  # charts with a single panel share a row
        rows.insert(0, {"hconcat": small, **apart} if len(small) > 1 else small[0])
    return framed(
        {"vconcat": rows, "spacing": 30, **apart} if len(rows) > 1 else dict(rows[0])
    )
