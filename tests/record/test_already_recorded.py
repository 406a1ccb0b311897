"""Runs that are recorded are passed over, and interrupted ones are continued."""

from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig

from emea.errors import UserError
from emea.record.earlier_runs import AlreadyRecordedError
from emea.record.run_record import is_finished, read_header, read_series
from emea.run.job import run_job
from emea.run.observer import EvaluationObserver
from emea.run.sweep import read_outcomes

from ..small_runs import TINY
from ..sweeping import called_here

Configs = Callable[..., DictConfig]
QUICK = (
    "model.initial_epochs=2",
    "model.epochs_per_iteration=2",
    "em=none",
    "skip_recorded=true",
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_second_time_it_is_passed_over(tiny_config: Configs) -> None:
    first = Path("outputs") / "sweep" / "0"
    metrics = run_job(tiny_config(*QUICK), first).metrics
    again = Path("multirun") / "later" / "0"
    with pytest.raises(
        AlreadyRecordedError, match=f"Already recorded as .*{first}"
    ) as told:
        run_job(tiny_config(*QUICK, "study=another"), again)
    assert told.value.objective == metrics["history"][-1]["validation"]["mrr"]
    assert not again.exists()


def test_asked_for_it_runs_again(tiny_config: Configs) -> None:
    run_job(tiny_config(*QUICK), Path("multirun/0"))
    run_job(tiny_config(*QUICK, "skip_recorded=false"), Path("multirun/1"))
    assert Path("multirun/1/metrics.json").exists()


def test_an_unfinished_run_is_continued_in_its_folder(
    tiny_config: Configs, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (
        "model.initial_epochs=2",
        "model.epochs_per_iteration=2",
        "em.iterations=2",
    )
    interrupted = Path("multirun/first/0")
    step = EvaluationObserver.log_iteration

    def stopped(self: EvaluationObserver, *arguments: float) -> None:
        if len(self.history) == 2:
            raise MemoryError("a stop in the first iteration of EM")
        step(self, *arguments)

    with monkeypatch.context() as patch, pytest.raises(UserError):
        patch.setattr(EvaluationObserver, "log_iteration", stopped)
        run_job(tiny_config(*settings), interrupted)
    first, points = read_header(interrupted), read_series(interrupted)
    again = Path("multirun/second/0")
    result = run_job(tiny_config(*settings, "skip_recorded=true"), again)
    assert result.folder == interrupted.resolve() and not again.exists()
    assert is_finished(interrupted) and read_header(interrupted).run_id == first.run_id
    # the training before the stop is not repeated
    assert read_series(interrupted)[0] == points[0]
    alike = run_job(tiny_config(*settings), Path("elsewhere"))
    assert alike.metrics["final"] == result.metrics["final"]


def test_a_job_that_is_recorded_elsewhere_counts_in_its_sweep(tmp_path: Path) -> None:
    for sweep, seeds in (("first", "0"), ("second", "0,1")):
        settings = [*TINY, *QUICK, f"seed={seeds}", f"hydra.sweep.dir=multirun/{sweep}"]
        done = called_here(tmp_path, "-m", *settings)
        assert done.returncode == 0, done.stderr
    assert done.stderr.count("Already recorded as") == 1
    [earlier] = read_outcomes(Path("multirun/first"))
    skipped, run = read_outcomes(Path("multirun/second"))
    assert skipped.metrics == earlier.metrics and not skipped.failed
    assert not (skipped.folder / "metrics.json").exists()
    assert (run.folder / "metrics.json").is_file()
