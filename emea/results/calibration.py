"""A run's reliability diagram: how often its answers are correct, by their probability."""

from pathlib import Path
from typing import Any

from emea.data.protocol import seen_links
from emea.errors import DataError, writing
from emea.record.checked_files import write_atomic
from emea.record.run_folder import read_metrics
from emea.results.charts import COLOURS, Spec, framed, png, svg

WIDTH = 380


def write_calibration(folder: Path, base: Path | None = None) -> list[Path]:
    """Draw the diagram of a run as PNG and SVG.

    Args:
        folder: The run folder.
        base: The name of the files; by default ``reliability`` in the run folder.

    Raises:
        DataError: If the run has no calibration, or the files are not writable.
    """
    base = base or folder / "reliability"
    if base.suffix in (".png", ".svg"):
        base = base.with_suffix("")
    metrics = read_metrics(folder)
    if not metrics.get("calibration", {}).get("bins"):
        raise DataError(
            f"{folder}/metrics.json has no calibration, because no test link has an answer. Choose "
            "a run with test links."
        )
    spec = calibration_chart(metrics)
    paths = [base.with_name(f"{base.name}.{ending}") for ending in ("png", "svg")]
    with writing(base):
        write_atomic(paths[0], png(spec))
        write_atomic(paths[1], svg(spec))
    return paths


def calibration_chart(metrics: dict[str, Any]) -> Spec:
    """Return accuracy by probability, and below it the number of entities by probability."""
    calibration = metrics["calibration"]
    unmatched = calibration["num_unmatched"]
    without = f", {unmatched:,} without an answer not counted" if unmatched else ""
    x_title = f"probability of the answer ({calibration['num_entities']:,} test links{without})"
    ends = [{"mean_prob": 0, "accuracy": 0}, {"mean_prob": 1, "accuracy": 1}]
    x = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {"title": None}}
    y = {"field": "accuracy", "type": "quantitative", "scale": {"domain": [0, 1]}}
    line = {"x": {**x, "field": "mean_prob"}, "y": y}
    error = f"expected calibration error {calibration['ece']:.3f}"
    accuracy = {
        "title": {"text": title(metrics).split("\n"), "subtitle": f"{error}; dashed: calibrated"},
        "width": WIDTH,
        "height": 260,
        "data": {"values": calibration["bins"]},
        "layer": [
            _bars(x, y),
            {
                "data": {"values": ends},
                "mark": {"type": "line", "strokeDash": [5, 4], "color": "#8a929c"},
                "encoding": line,
            },
            {"mark": {"type": "line", "point": True, "color": COLOURS[0]}, "encoding": line},
        ],
    }
    num = {"field": "num_entities", "type": "quantitative", "title": "entities"}
    counts = {"width": WIDTH, "height": 80, "data": {"values": calibration["bins"]}}
    rows = [accuracy, counts | _bars(x | {"axis": {"title": x_title}}, num)]
    return framed({"vconcat": rows, "spacing": 30})


def title(metrics: dict[str, Any]) -> str:
    """Return what was run on which data, and what the method could see of the test links."""
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


def _bars(x: Spec, y: Spec) -> Spec:
    bar = {"type": "bar", "color": "#dbe3ee", "stroke": "#8a929c", "strokeWidth": 0.8}
    start, end = {**x, "field": "min_prob"}, {"field": "max_prob"}
    return {"mark": bar, "encoding": {"x": start, "x2": end, "y": y}}
