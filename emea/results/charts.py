"""Charts: how they look, and the files that are drawn from their Vega-Lite specifications."""

import json
from typing import Any

Spec = dict[str, Any]
"""A Vega-Lite specification of charts."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
"""The Okabe-Ito palette, which people with colour blindness can tell apart."""

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""vl-convert contains Liberation Sans, so that text has the same size on every machine."""

CONFIG = {
    "font": FONT,
    "background": "white",
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "grid": True,
        "gridColor": "#e3e6ea",
        "domainColor": "#8a929c",
        "tickColor": "#8a929c",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "legend": {
        "labelFontSize": 12,
        "symbolSize": 90,
        "labelLimit": 340,
        "orient": "bottom",
        "columns": 3,
        "columnPadding": 30,
        "rowPadding": 6,
    },
    "title": {"fontSize": 13, "anchor": "start", "frame": "group"},
}


def framed(body: Spec) -> Spec:
    """Return a specification with the look that all charts share."""
    schema = "https://vega.github.io/schema/vega-lite/v6.json"
    hidden = {"name": "hidden", "value": []}
    return {"$schema": schema, "config": CONFIG, "params": [hidden]} | body


def svg(spec: Spec) -> str:
    """Draw a specification as SVG."""
    import vl_convert

    return vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[])
