"""Runs that are recorded are passed over."""

from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig

from emea.record.sync import AlreadyRecordedError
from emea.run.job import run_job

Configs = Callable[..., DictConfig]
QUICK = ("model.initial_epochs=2", "model.epochs_per_iteration=2", "em=none", "skip_recorded=true")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_second_time_it_is_passed_over(tiny_config: Configs) -> None:
    first = Path("outputs") / "sweep" / "0"
    metrics = run_job(tiny_config(*QUICK), first).metrics
    again = Path("multirun") / "later" / "0"
    with pytest.raises(AlreadyRecordedError, match=f"Already recorded as .*{first}") as told:
        run_job(tiny_config(*QUICK, "study=another"), again)
    assert told.value.objective == metrics["history"][-1]["validation"]["mrr"]
    assert not again.exists()


def test_asked_for_it_runs_again(tiny_config: Configs) -> None:
    run_job(tiny_config(*QUICK), Path("multirun/0"))
    run_job(tiny_config(*QUICK, "skip_recorded=false"), Path("multirun/1"))
    assert Path("multirun/1/metrics.json").exists()
