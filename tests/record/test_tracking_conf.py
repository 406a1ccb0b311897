"""Every option of the group builds a tracker."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hydra.utils import instantiate

from emea.config.composition import composed
from emea.record.mlflow_tracker import MlflowTracker
from emea.record.run_record import RunHeader, read_closing
from emea.record.tracker import Tracker

OPTIONS = sorted((Path(__file__).resolve().parents[2] / "conf" / "tracking").glob("*.yaml"))


@pytest.mark.parametrize("path", OPTIONS, ids=lambda path: path.stem)
def test_option_is_a_tracker(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    store_template: Path,
    make_header: Callable[..., RunHeader],
) -> None:
    (tmp_path / "mlflow.db").write_bytes(store_template.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert path.read_text().startswith("# ")
    tracker: Tracker = instantiate(composed([f"tracking={path.stem}"]).tracking)
    tracker.start(make_header(), tmp_path / "run")
    tracker.log({"hit@1": 0.5}, step=0)
    tracker.finish("FINISHED")
    assert read_closing(tmp_path / "run") is not None


def test_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    config = composed(["tracking=mlflow"]).tracking
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert config.uri == "sqlite:///mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://host:5000")
    assert config.uri == "http://host:5000"
    tracker = instantiate(config)
    assert isinstance(tracker, MlflowTracker)
    assert tracker.ui_hint == "open http://host:5000"
