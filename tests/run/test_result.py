"""Ranks and beliefs are written while a run decodes its answer; errors of both end the run."""

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig

from emea.errors import UserError
from emea.record import run_folder
from emea.run import job
from emea.run.job import run_job

Configs = Callable[..., DictConfig]
ARRAYS = (run_folder.RANKS_FILE, run_folder.BELIEFS_FILE)


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failed_write_ends_the_run_without_metrics(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config("em=none")
    with monkeypatch.context() as patch, pytest.raises(UserError, match="disk is full"):
        patch.setattr(run_folder, "write_beliefs", full_disk)
        run_job(config, tmp_path)
    assert not (tmp_path / run_folder.METRICS_FILE).exists()
    run_job(config, tmp_path, resumes=True)
    assert all((tmp_path / name).exists() for name in (*ARRAYS, run_folder.METRICS_FILE))


def test_a_failed_answer_lets_the_write_end(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_failed, write_ranks = threading.Event(), run_folder.write_ranks

    def write_late(*arguments: Any) -> None:
        assert has_failed.wait(60)
        write_ranks(*arguments)

    def fail(*_: object) -> None:
        has_failed.set()
        raise ArithmeticError("no answer")

    config = tiny_config("em=none")
    with monkeypatch.context() as patch, pytest.raises(ArithmeticError, match="no answer"):
        patch.setattr(run_folder, "write_ranks", write_late)
        patch.setattr(job, "decide", fail)
        run_job(config, tmp_path)
    assert all((tmp_path / name).exists() for name in ARRAYS)
    assert not (tmp_path / run_folder.METRICS_FILE).exists()
    run_job(config, tmp_path, resumes=True)
    assert (tmp_path / run_folder.METRICS_FILE).exists()
