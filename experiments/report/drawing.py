"""Files that are drawn from Vega-Lite specifications."""

import json
from functools import cache
from typing import Any

Spec = dict[str, Any]
"""A Vega-Lite specification of charts."""

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
"""How charts look."""


def framed(body: Spec) -> Spec:
    """Return a specification with the look that all charts share."""
    schema = "https://vega.github.io/schema/vega-lite/v6.json"
    hidden = {"name": "hidden", "value": []}
    return {"$schema": schema, "config": CONFIG, "params": [hidden]} | body


def svg(spec: Spec) -> str:
    """Draw a specification as SVG."""
    import vl_convert

    return vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[])


@cache
def vega_bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(snippet=None)  # type: ignore[arg-type]
    return bundle.replace("</script", "<\\/script")
