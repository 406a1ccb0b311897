"""Precision-recall and reliability curves over all source entities, as in ``metrics.json``."""

from collections.abc import Mapping, Sequence
from typing import Any

from emea.results.charts import COLOURS
from experiments.report.drawing import Spec
from experiments.report.line_charts import HEIGHT, OPACITY, WIDTH
from experiments.report.methods import DUAL, EMEA, ENSEMBLE, ONE_TO_ONE, Method
from experiments.report.run_table import Runs

LABELLED = 0.2
PAIRS = ("zh", "ja", "fr", "D_Y", "EN_FR", "EN_DE")
METHODS = (EMEA, DUAL, ONE_TO_ONE, ENSEMBLE)
SHARES = {"none deleted": 0, "20% deleted": 20, "40% deleted": 40}
SPLIT = 0
DIAGONAL = {"data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]}}


def precision_and_recall(runs: Runs) -> Spec:
    """Return one panel per pair with 40% deleted, with a curve per method."""
    panels = {
        pair: {
            method.label: (values, "sources.curve", "recall", "precision")
            for method in METHODS
            if (values := _values(runs, method, f"{pair}_40")) is not None
        }
        for pair in PAIRS
    }
    title = "Precision and recall over all source entities, 40% deleted"
    return _chart(title, ("recall", "precision"), panels)


def reliability(runs: Runs) -> Spec:
    """Return one panel per pair, with a curve per share of deleted targets."""
    panels = {
        pair: {
            name: (values, "sources.bins", "mean_prob", "accuracy")
            for name, share in SHARES.items()
            if (values := _values(runs, ENSEMBLE, f"{pair}_{share}")) is not None
        }
        for pair in PAIRS
    }
    title = "Correct matches at each stated probability, four encoders"
    return _chart(
        title, ("stated probability", "share correct"), panels, is_diagonal=True
    )


Curve = tuple[Mapping[str, Any], str, str, str]
"""The values of a run, a section of them, and the quantities on both axes."""


def _values(runs: Runs, method: Method, pair: str) -> Mapping[str, Any] | None:
    for run in runs.of(method, "strict", pair, LABELLED):
        if run.split_seed == SPLIT:
            values: Mapping[str, Any] = run.row["values"]
            return values
    return None


def _points(curve: Curve) -> list[tuple[float, float]]:
    """Return the points of a curve; bins without entities have no numbers and are left out."""
    values, section, x, y = curve
    places = range(
        sum(key.startswith(f"{section}.") and key.endswith(f".{x}") for key in values)
    )
    pairs = [
        (values[f"{section}.{i}.{x}"], values[f"{section}.{i}.{y}"]) for i in places
    ]
    return [
        (round(a, 4), round(b, 4)) for a, b in pairs if a is not None and b is not None
    ]


def _chart(
    title: str,
    axes: Sequence[str],
    panels: Mapping[str, Mapping[str, Curve]],
    is_diagonal: bool = False,
) -> Spec:
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    colour = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": list(COLOURS[: len(names)])},
    }
    encoding: Spec = {"color": colour, "opacity": OPACITY}
    for channel, name in zip("xy", axes, strict=True):
        axis = {"field": channel, "type": "quantitative", "title": name}
        encoding[channel] = {**axis, "scale": {"domain": [0, 1]}}
    straight = {
        "mark": {"type": "line", "strokeDash": [4, 4], "color": "#8a929c"},
        **DIAGONAL,
    }
    straight["encoding"] = {channel: encoding[channel] for channel in "xy"}
    drawn = []
    for pair, curves in panels.items():
        points = [
            {"series": name, "x": x, "y": y}
            for name, curve in curves.items()
            for x, y in _points(curve)
        ]
        line = {
            "data": {"values": points},
            "mark": {"type": "line", "point": is_diagonal},
            "encoding": {**encoding, "order": {"field": "x", "type": "quantitative"}},
        }
        layers = [straight, line] if is_diagonal else [line]
        drawn.append({"title": pair, "layer": layers, "width": WIDTH, "height": HEIGHT})
    return {
        "title": title,
        "concat": drawn,
        "columns": 3,
        "columnPadding": 30,
        "rowPadding": 6,
    }
