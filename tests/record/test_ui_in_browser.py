"""A sweep, then its runs side by side in the MLflow UI, as a person sees them."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from emea.record.mlflow_client import open_client
from emea.record.mlflow_view import SECTION
from emea.record.run_record import read_header

from .serving import LOG_FILE, ROOT, served

pytestmark = pytest.mark.browser

SWEEP = (
    "ratio=0.05,0.2",
    "data=synthetic",
    "data.num_entities=150",
    "split.num_validation=20",
    "model.initial_epochs=30",
    "model.epochs_per_iteration=10",
    "em.iterations=2",
    "trainer=cpu",
    "hydra.sweep.dir=multirun/day/time",
)
NAMES = {"20% synthetic rrea s0", "5% synthetic rrea s0"}
PARENT = "sweep day/time"

TEXTS_AT_HEIGHT = """(y) => [...document.querySelectorAll("body *")]
    .filter((node) => !node.children.length && node.textContent.trim())
    .map((node) => ({node, place: node.getBoundingClientRect()}))
    .filter(({place}) => place.top <= y && y <= place.bottom)
    .filter(({node, place}) => node === document.elementFromPoint(place.x + place.width / 2, y))
    .sort((a, b) => a.place.left - b.place.left)
    .map(({node}) => node.textContent.trim())"""
"""What can be seen of a row; the UI's tables are grids of boxes, and their class names change."""

ONLY_CHART_IS = """(points) => {
    const charts = [...document.querySelectorAll(".js-plotly-plot")];
    const drawn = charts.map(({data: [line]}) => [...line.x].map((x, i) => [x, line.y[i]]));
    return JSON.stringify(drawn) === JSON.stringify([points]);
}"""
"""Whether one chart is to be seen, and its line goes through the points."""

ONE_CHART_HAS_BOTH = """(metrics) => [...document.querySelectorAll(".js-plotly-plot")]
    .some(({data}) => metrics.every((metric) =>
        data.filter(({name, metricKey}) => `${name} ${metricKey}`.includes(metric)).length >= 2))"""
"""Whether a chart has a line of each of two runs for every one of the metrics."""


LINES_OF_FIRST_CHART = """() => Object.fromEntries(
    [...document.querySelector(".js-plotly-plot").data]
        .map(({metricKey, x, y}) => [metricKey, [...x].map((step, i) => [step, y[i]])]))"""
"""The points of each metric in the first chart."""


@dataclass(frozen=True)
class Served:
    """The store that a sweep filled, and the address at which the UI shows its runs."""

    folder: Path
    runs: dict[str, Any]
    address: str
    client: Any


@pytest.fixture(scope="module")
def ui(
    browser: Any, store_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("sweep")
    shutil.copy(store_template, folder / "mlflow.db")
    _sweep(folder)
    uri = f"sqlite:///{folder}/mlflow.db"
    client = open_client(uri)
    experiment = client.get_experiment_by_name("emea")
    assert experiment is not None
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    with served(uri, folder):
        yield Served(folder, runs, _address(folder / LOG_FILE), client)


def _address(log: Path) -> str:
    """The one address that the command prints, once the server is ready."""
    for _ in range(120):
        found = re.findall(r"http://\S+", log.read_text())
        if found:
            assert len(set(found)) == 1
            return str(found[0])
        time.sleep(0.5)
    raise TimeoutError(log.read_text())


def _sweep(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("MLFLOW_TRACKING_URI", None)
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), "-m", *SWEEP],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def shown(ui: Served, visit: Any) -> Any:
    """The table of runs, as the printed address opens it."""
    # a panel that opens by itself at the first visit would cover a third of the page
    visit.page.add_init_script(
        "localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true')"
    )
    visit.page.set_viewport_size({"width": 1800, "height": 1000})
    page = visit.open(ui.address)
    page.get_by_role("link", name="5% synthetic rrea s0").first.wait_for()
    yield page
    # reports of what the page asked for: a person without network sees the same
    server = ui.address.split("/#")[0]
    strangers = [url for url in visit.requests if not url.startswith((server, "data:", "blob:"))]
    assert strangers == []


def row(page: Any, label: Any) -> list[str]:
    """What can be seen at the height of a label, from the left."""
    box = label.bounding_box()
    return list(page.evaluate(TEXTS_AT_HEIGHT, box["y"] + box["height"] / 2))


def numbers(texts: list[str]) -> list[float]:
    return [float(text) for text in texts if re.fullmatch(r"-?\d+(\.\d+)?", text)]


def save_picture(page: Any, name: str) -> None:
    """Keep what was seen where `EMEA_PICTURES` names a folder."""
    folder = os.environ.get("EMEA_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png")


def test_sweeps_are_distinguished_and_their_runs_grouped(ui: Served) -> None:
    assert set(ui.runs) == NAMES | {PARENT}
    parent, jobs = ui.runs[PARENT], [ui.runs[name] for name in NAMES]
    assert {run.data.tags["sweep"] for run in jobs} == {"day/time"}
    assert {run.data.tags["mlflow.parentRunId"] for run in jobs} == {parent.info.run_id}
    assert "| ratio=0.05 | strict | 1 |" in parent.data.tags["mlflow.note.content"]
    assert {run.inputs.dataset_inputs[0].dataset.name for run in jobs} == {"synthetic"}
    shares = {name: ui.runs[name].data.params["ratio.value"] for name in NAMES}
    assert shares == {name: "0.2" if "20%" in name else "0.05" for name in NAMES}
    for folder in (ui.folder / "multirun" / "day" / "time").glob("*-*"):
        header = read_header(folder)
        shown = ui.runs[header.name].data.params
        assert header.params["tracking.uri"] == "sqlite:///mlflow.db"
        assert set(shown) < set(header.params)
        assert not [key for key in shown if key.startswith(("tracking", "trainer")) or "._" in key]


def test_the_table_opens_on_results(ui: Served, shown: Any) -> None:
    shown.get_by_role("columnheader", name="run/initial/hit_at_1").first.wait_for()
    keys = ("run/final/hit_at_1", "run/final/mrr", "run/initial/hit_at_1")
    for name in NAMES:
        texts = row(shown, shown.get_by_role("link", name=name, exact=True))
        expected = [ui.runs[name].data.metrics[key] for key in keys]
        assert numbers(texts)[:3] == pytest.approx(expected, abs=1e-6)
        assert {"synthetic", "rrea", "paper", "paris"} <= set(texts)
        assert ui.runs[name].data.params["ratio.value"] in texts
    save_picture(shown, "runs")


def test_encoder_and_joint_share_a_chart(ui: Served, shown: Any) -> None:
    shown.goto(ui.address.replace("/runs?", "/runs?compareRunsMode=CHART&"))
    shown.get_by_text(SECTION).first.wait_for()
    shown.wait_for_function(ONE_CHART_HAS_BOTH, arg=["neural/hit_at_1", "joint/hit_at_1"])
    save_picture(shown, "both")


def test_a_run_links_to_the_chart_of_encoder_and_joint(ui: Served, shown: Any) -> None:
    name = "20% synthetic rrea s0"
    shown.get_by_role("link", name=name, exact=True).click()
    with shown.expect_popup() as popup:
        shown.get_by_role("link", name="Chart of encoder and joint").click()
    popup.value.wait_for_function("() => document.querySelector('.js-plotly-plot')?.data")
    lines = popup.value.evaluate(LINES_OF_FIRST_CHART)
    for metric in ("neural/hit_at_1", "joint/hit_at_1"):
        history = ui.client.get_metric_history(ui.runs[name].info.run_id, metric)
        assert lines[metric] == sorted([point.step, point.value] for point in history)
    save_picture(popup.value, "chart_of_run")


def test_a_run_describes_its_result(ui: Served, shown: Any) -> None:
    shown.get_by_role("link", name="5% synthetic rrea s0", exact=True).click()
    shown.get_by_text("before EM").first.wait_for()
    shown.get_by_text("synthetic", exact=False).first.wait_for()
    save_picture(shown, "description")


def test_runs_are_grouped_by_sweep(ui: Served, shown: Any) -> None:
    shown.get_by_role("button", name="Group by").click()
    shown.get_by_placeholder("Search").last.fill("sweep")
    shown.get_by_role("menuitemcheckbox", name="sweep", exact=True).click()
    shown.get_by_text("day/time").first.wait_for()
    save_picture(shown, "groups")


def test_a_run_shows_its_metrics_over_iterations(ui: Served, shown: Any) -> None:
    name = "20% synthetic rrea s0"
    shown.get_by_role("link", name=name, exact=True).click()
    shown.get_by_role("tab", name="Model metrics").click()
    for metric in ("joint/hit_at_1", "neural/hit_at_1"):
        history = ui.client.get_metric_history(ui.runs[name].info.run_id, metric)
        points = sorted((point.step, point.value) for point in history)
        assert [step for step, _ in points] == [0, 1, 2]
        shown.get_by_placeholder("Search metric charts").fill(f"^{metric}$")
        shown.get_by_text(f"{name} ({metric})").wait_for()
        shown.wait_for_function(ONLY_CHART_IS, arg=points)
    save_picture(shown, "charts")


def test_runs_are_compared_side_by_side(ui: Served, shown: Any) -> None:
    search = shown.get_by_placeholder("metrics.rmse")
    search.fill("tags.sweep = 'day/time'")
    search.press("Enter")
    shown.get_by_role("link", name=PARENT).wait_for(state="hidden")  # only its jobs are compared
    shown.get_by_label("Select all runs").click()
    shown.get_by_role("button", name="Compare").click()
    shown.get_by_text("Comparing 2 Runs from 1 Experiment").wait_for()
    names = row(shown, shown.get_by_text("Run Name:"))[1:]
    assert set(names) == NAMES
    runs = [ui.runs[name] for name in names]
    for key in ("ratio.value", "em.iterations", "model.encoder.dropout"):
        label = shown.get_by_role("rowheader", name=key, exact=True)
        label.scroll_into_view_if_needed()
        assert row(shown, label)[1:] == [run.data.params[key] for run in runs]
    # the metrics are a window that scrolls by itself, so these are of those it opens on
    shown.get_by_role("button", name="Artifacts").scroll_into_view_if_needed()
    for key in ("compatibility", "joint/all_targets/hit_at_1", "joint/all_targets/hit_at_5"):
        label = shown.get_by_role("link", name=key, exact=True)
        expected = [run.data.metrics[key] for run in runs]
        assert numbers(row(shown, label)) == pytest.approx(expected, abs=6e-4)
    save_picture(shown, "comparison")
