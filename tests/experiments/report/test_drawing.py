"""Charts as data and as files."""

from typing import Any

import numpy as np

from experiments.archive.study import EXPERIMENTS
from experiments.report.curves import PAIRS, SHARES, precision_and_recall, reliability
from experiments.report.drawing import svg
from experiments.report.line_charts import Chart, lines, points, stacked
from experiments.report.records import load_records
from experiments.report.report import Cell, Entry, Table
from experiments.report.run_table import Runs, run_table

CHART = Chart("a title", 0, "ratio", ("model", "EMEA"), panel="pair", dashed=("model",))


def entry(mean: float | None, spread: float = 0.0) -> Entry:
    text = "n/a" if mean is None else f"{mean:.3f}"
    return Entry(text, Cell(mean, spread, 2), number=mean)


def table(model: float = 0.1, emea: float = 0.5) -> Table:
    rows = (
        (("zh", "1%"), (entry(model), entry(emea, 0.1))),
        (("zh", "20%"), (entry(None), entry(0.9))),
        (("fr", "5%"), (entry(0.2), Entry("not run"))),
    )
    return Table(("pair", "ratio"), ("model", "EMEA"), frozenset(), rows)


def picture(**numbers: float) -> dict[str, Any]:
    return stacked([lines(CHART, points(CHART, table(**numbers)))])


def test_drawings_are_repeatable_and_need_no_other_file() -> None:
    drawn = svg(picture())
    # the last bits of a mean differ between machines
    assert (
        drawn
        == svg(picture(model=float(np.nextafter(0.1, 1))))
        != svg(picture(model=0.15))
    )
    for words in ("a title", "labelled links", "Hit@1", "EMEA", ">zh<"):
        assert words in drawn, words
    assert "href" not in drawn and "url(" not in drawn.replace("url(#", "")


def test_names_are_escaped_in_drawings() -> None:
    chart = Chart("</script> & ü", 0, "ratio", ("EMEA",), series="pair")
    assert "&lt;/script&gt; &amp; ü" in svg(
        stacked([lines(chart, points(chart, table()))])
    )


def test_curves_are_those_of_the_recorded_runs() -> None:
    recorded = load_records(EXPERIMENTS / "dangling")
    runs = Runs(run_table(recorded), "dangling")
    (run,) = [
        one
        for one in recorded
        if one.name == "data-0.2-s0-paper-final-dangling_EN_FR_40"
    ]
    panel = precision_and_recall(runs)["concat"][PAIRS.index("EN_FR")]
    assert panel["title"] == "EN_FR"
    drawn = [
        point
        for point in panel["layer"][0]["data"]["values"]
        if point["series"] == "EMEA"
    ]
    expected = [
        (one["recall"], one["precision"]) for one in run.metrics["sources"]["curve"]
    ]
    np.testing.assert_allclose(
        [(point["x"], point["y"]) for point in drawn], expected, atol=6e-5
    )
    found = reliability(runs)["concat"][0]["layer"][1]["data"]["values"]
    assert {point["series"] for point in found} == set(SHARES)
