"""Files that are drawn from Vega-Lite specifications."""

import json
from typing import Any

from emea.results.charts import CONFIG

Spec = dict[str, Any]
"""A Vega-Lite specification of charts."""


def framed(body: Spec) -> Spec:
    """Return a specification with the look that all charts share."""
    schema = "https://vega.github.io/schema/vega-lite/v6.json"
    hidden = {"name": "hidden", "value": []}
    return {"$schema": schema, "config": CONFIG, "params": [hidden]} | body


def svg(spec: Spec) -> str:
    """Draw a specification as SVG."""
    import vl_convert

    return vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[])
