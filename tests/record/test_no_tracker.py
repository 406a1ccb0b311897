"""Tracking works where MLflow is not installed."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from emea.record.run_record import RunHeader, read_closing, read_series
from emea.record.tracker import NoTracker

WITHOUT_MLFLOW = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "mlflow":
            raise ImportError("mlflow is not installed")

sys.meta_path.insert(0, Block())
from pathlib import Path
from emea.record.tracker import NoTracker
from emea.record.mlflow_tracker import MlflowTracker
from emea.record.run_record import RunHeader, read_series

header = RunHeader("a" * 32, "name", "tests")
for tracker, folder in [(NoTracker(), "none"), (MlflowTracker(), "mlflow")]:
    tracker.start(header, Path(folder))
    tracker.log({"hit@1": 0.5}, 1)
    tracker.finish("FINISHED")
    assert len(read_series(folder)) == 1, folder
assert "mlflow" not in sys.modules
"""


def test_records_stay_in_the_folder(tmp_path: Path, make_header: Callable[..., RunHeader]) -> None:
    tracker = NoTracker()
    tracker.start(make_header(), tmp_path)
    tracker.log({"hit@1": 0.5}, step=2)
    tracker.finish("KILLED", "signal")
    tracker.finish("FINISHED")
    closing = read_closing(tmp_path)
    assert closing is not None and (closing.status, closing.reason) == ("KILLED", "signal")
    assert [point.step for point in read_series(tmp_path)] == [2]
    assert tracker.ui_hint is None
    with pytest.raises(RuntimeError, match="started"):
        tracker.log({}, step=3)


def test_nothing_needs_mlflow(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_MLFLOW],
        cwd=tmp_path,
        env={"PYTHONPATH": str(root), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Live tracking without MLflow says so once and goes on.
    assert done.stderr.count("emea sync") == 1
