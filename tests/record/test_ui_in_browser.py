"""A sweep, then its runs side by side in the MLflow UI, as a person sees them."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from emea.record.mlflow_store import open_client

from ..sweeping import called
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

TEXTS_AT_HEIGHT = """(y) => [...document.querySelectorAll("body *")]
    .filter((node) => !node.children.length && node.textContent.trim())
    .map((node) => ({node, place: node.getBoundingClientRect()}))
    .filter(({place}) => place.top <= y && y <= place.bottom)
    .filter(({node, place}) => node === document.elementFromPoint(place.x + place.width / 2, y))
    .sort((a, b) => a.place.left - b.place.left)
    .map(({node}) => node.textContent.trim())"""
"""What can be seen of a row; the UI's tables are grids of boxes, and their class names change."""


@dataclass(frozen=True)
class Served:
    """The runs that a sweep left in a store, and the address at which the UI shows them."""

    runs: dict[str, Any]
    address: str


@pytest.fixture(scope="module")
def ui(
    browser: Any, store_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("sweep")
    shutil.copy(store_template, folder / "mlflow.db")
    done = called(folder, str(ROOT / "run.py"), "-m", *SWEEP)
    assert done.returncode == 0, done.stderr
    uri = f"sqlite:///{folder}/mlflow.db"
    client = open_client(uri)
    experiment = client.get_experiment_by_name("emea")
    assert experiment is not None
    jobs = client.search_runs([experiment.experiment_id], "tags.sweep = 'day/time'")
    runs = {run.info.run_name: run for run in jobs}
    with served(uri, folder):
        # the one address that the command prints
        (address,) = set(re.findall(r"http://\S+", (folder / LOG_FILE).read_text()))
        yield Served(runs, address)


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
    strangers = [
        url for url in visit.requests if not url.startswith((server, "data:", "blob:"))
    ]
    assert strangers == []


def row(page: Any, label: Any) -> list[str]:
    """What can be seen at the height of a label, from the left."""
    box = label.bounding_box()
    return list(page.evaluate(TEXTS_AT_HEIGHT, box["y"] + box["height"] / 2))


def numbers(texts: list[str]) -> list[float]:
    return [float(text) for text in texts if re.fullmatch(r"-?\d+(\.\d+)?", text)]


def test_sweeps_are_distinguished_and_their_runs_grouped(ui: Served) -> None:
    assert set(ui.runs) == NAMES
    assert {run.data.tags["sweep"] for run in ui.runs.values()} == {"day/time"}
    shares = {name: ui.runs[name].data.params["ratio.value"] for name in NAMES}
    assert shares == {name: "0.2" if "20%" in name else "0.05" for name in NAMES}


def test_the_table_opens_on_results_and_a_run_on_its_metrics(
    ui: Served, shown: Any
) -> None:
    shown.get_by_role("columnheader", name="initial/hit_at_1").first.wait_for()
    keys = ("initial/hit_at_1", "final/hit_at_1", "final/mrr")
    for name in NAMES:
        texts = row(shown, shown.get_by_role("link", name=name, exact=True))
        expected = [ui.runs[name].data.metrics[key] for key in keys]
        assert numbers(texts)[:3] == pytest.approx(expected, abs=1e-6)
        assert {"synthetic", "rrea", "paper", "paris"} <= set(texts)
        assert ui.runs[name].data.params["ratio.value"] in texts
    shown.get_by_role("link", name="5% synthetic rrea s0", exact=True).click()
    shown.get_by_role("link", name="neural/hit_at_1").first.wait_for()
