"""A killed run resumes where it stopped, and its results are those of an uninterrupted run."""

import errno
import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from omegaconf import DictConfig, OmegaConf, open_dict

from emea.cli import run
from emea.config.composition import composed
from emea.config.instantiate import factory
from emea.errors import ConfigError, DataError, UserError
from emea.fit import training_loop
from emea.fit.alignment_module import AlignmentModule
from emea.fit.checkpoint import PREVIOUS_FILE
from emea.record.mlflow_tracker import MlflowTracker
from emea.record.run_header import Launch, with_own_store, without_secrets
from emea.record.run_record import read_series
from emea.record.tracker import NoTracker
from emea.run.job import run_job
from emea.run.resuming import config_to_resume, locked_folder
from emea.runtime import signals

from ..sweeping import TINY, called_here
from ..unsigned_files import replace_in, unsigned

Configs = Callable[..., DictConfig]
ROOT = Path(__file__).resolve().parents[2]
SAME = (
    "initial",
    "final",
    "final_reverse",
    "mapping",
    "answer",
    "calibration",
    "compatibility",
)


NUM_STAGES = 3
"""Of the runs that are killed: the first training and two iterations."""


class KilledError(Exception):
    """Raised to simulate a killed process."""


def essence(metrics: dict[str, Any]) -> dict[str, Any]:
    """All numbers but times."""
    history = [
        {k: v for k, v in entry.items() if k != "seconds"}
        for entry in metrics["history"]
    ]
    return {key: metrics[key] for key in SAME} | {"history": history}


SWEPT = Launch("emea run em.iterations=2", "day/time", {"em.iterations": "2"})


def killed_after(
    stage: int,
    config: DictConfig,
    folder: Path,
    monkeypatch: Any,
    launch: Launch | None = None,
) -> None:
    """Run until the checkpoint after a stage is written, then die."""
    save = training_loop.save_checkpoint

    def save_and_die(*arguments: Any, **named: Any) -> None:
        save(*arguments, **named)
        progress = arguments[2]
        if (progress.num_stages if progress else NUM_STAGES) == stage:
            raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(training_loop, "save_checkpoint", save_and_die)
        run_job(config, folder, launch)


@pytest.mark.parametrize(
    ("em", "stage"),
    [("paper", 1), pytest.param("paper", 3, marks=pytest.mark.slow), ("dual", 2)],
)
def test_it_ends_as_if_never_stopped(
    em: str,
    stage: int,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config(f"em={em}", "em.iterations=2", "data.num_entities=100")
    whole = run_job(config, tmp_path / "whole").metrics
    killed_after(stage, config, tmp_path / "half", monkeypatch)
    assert not (tmp_path / "half" / "metrics.json").exists()
    resumed = run_job(
        config_to_resume(tmp_path / "half"), tmp_path / "half", resumes=True
    ).metrics
    assert essence(resumed) == essence(whole)
    of_stages = [sum(entry["seconds"].values()) for entry in resumed["history"]]
    assert resumed["seconds"]["train"] >= sum(of_stages)
    parts = [resumed["seconds"][part] for part in ("load", "train", "evaluate")]
    assert resumed["seconds"]["total"] == pytest.approx(sum(parts))
    for name in ("alignment.tsv", "ranks.npz", "beliefs.npz"):
        assert (tmp_path / "half" / name).read_bytes() == (
            tmp_path / "whole" / name
        ).read_bytes()
    left = {path.name for path in (tmp_path / "half").iterdir()}
    assert left == {path.name for path in (tmp_path / "whole").iterdir()}


@pytest.mark.slow
def test_series_and_run_id_go_on(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config("em.iterations=2", "data.num_entities=100")
    run_job(config, tmp_path / "whole")
    killed_after(2, config, tmp_path / "half", monkeypatch, launch=SWEPT)
    before = json.loads((tmp_path / "half" / "run.json").read_text())
    run_job(config, tmp_path / "half")
    after = json.loads((tmp_path / "half" / "run.json").read_text())
    assert (after["run_id"], after["start_time"]) == (
        before["run_id"],
        before["start_time"],
    )
    assert after["tags"]["sweep"] == "day/time"
    assert after["tags"]["command"] == "emea run em.iterations=2"
    assert after["name"] == before["name"] == "iterations=2 synthetic 20% rrea s0"
    assert after["status"] == "FINISHED"
    names = [
        sorted(
            (point.step, *sorted(point.metrics))
            for point in read_series(tmp_path / folder)
        )
        for folder in ("whole", "half")
    ]
    assert names[0] == names[1]


def test_the_log_continues(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_after(
        1,
        tiny_config("em.iterations=1", "data.num_entities=100"),
        tmp_path,
        monkeypatch,
    )
    (tmp_path / "run.log").write_text("what was before\n")
    with monkeypatch.context() as patch:
        patch.setattr(
            logging.getLogger(), "level", logging.INFO
        )  # pytest has handlers of its own
        run.resume_run(tmp_path, [])
    text = (tmp_path / "run.log").read_text()
    assert text.startswith("what was before\n")
    assert "Resuming after the first training" in text


@pytest.mark.parametrize(
    ("tag", "told"),
    [
        ("fingerprint", r"its settings or code \(commit abc\) changed"),
        ("data_checksum", "its data changed"),
    ],
)
def test_a_run_of_other_code_or_data_is_kept_and_is_not_resumed(
    tag: str,
    told: str,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed_after(
        1,
        tiny_config("em.iterations=1", "data.num_entities=100"),
        tmp_path,
        monkeypatch,
    )
    header = json.loads(unsigned(tmp_path / "run.json"))
    header["tags"] |= {"commit": "abc", "fingerprint": "of before", tag: "of before"}
    (tmp_path / "run.json").write_text(json.dumps(header))
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    with pytest.raises(DataError, match=told):
        run.resume_run(tmp_path, [])
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before
    assert json.loads((tmp_path / "run.json").read_text()) == header


@pytest.mark.slow
def test_nothing_of_an_earlier_run_stays_next_to_a_new_one(
    tiny_config: Configs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short = ("data.num_entities=100", "em=none", "rule=none")
    run_job(tiny_config(*short, "export.formats=[nt,sssom,jsonl]"), tmp_path)
    results = {"alignment.nt", "alignment.sssom.tsv", "alignment.jsonl"}
    assert results <= {path.name for path in tmp_path.iterdir()}
    assert "Replacing" not in caplog.text
    run_job(tiny_config(*short, "seed=1"), tmp_path)
    assert f"Replacing the files of an earlier run in {tmp_path}" in caplog.text
    left = {path.name for path in tmp_path.iterdir()}
    assert not results & left
    assert {"alignment.tsv", "metrics.json", "ranks.npz"} <= left


@pytest.mark.slow
def test_what_another_run_left_in_the_folder_is_not_taken_up(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = ("data.num_entities=100", "em.iterations=1")
    other = tiny_config(*short, "seed=1")
    whole = run_job(other, tmp_path / "whole").metrics
    killed_after(1, tiny_config(*short), tmp_path / "shared", monkeypatch)
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(training_loop, "fit_stage", Mock(side_effect=KilledError))
        run_job(other, tmp_path / "shared")
    assert essence(run_job(other, tmp_path / "shared").metrics) == essence(whole)


def test_a_config_of_before_has_the_usual_settings(
    tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config("data.num_entities=100", "em=none")
    with open_dict(config):
        for key in ("block_memory", "deterministic"):
            del config.trainer[key]
    assert run_job(config, tmp_path).metrics["final"]


def test_a_store_of_before_has_the_usual_patience() -> None:
    tracking = composed(["tracking=mlflow"]).tracking
    with open_dict(tracking):
        del tracking.patience_seconds
    config = with_own_store(OmegaConf.create({"tracking": tracking}))
    assert isinstance(factory(config.tracking)(), MlflowTracker)


def test_a_folder_in_use_is_refused(tiny_config: Configs, tmp_path: Path) -> None:
    with locked_folder(tmp_path), pytest.raises(UserError, match="in use"):
        run_job(tiny_config("em.iterations=1"), tmp_path)


def test_a_time_out_of_the_run_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match="no answer"), locked_folder(tmp_path):
        raise TimeoutError("no answer")


@pytest.mark.parametrize(
    "environment", ["http://me:pw@host:5000", "http://me:pw@other:5000", ""]
)
def test_a_server_and_its_password_come_from_the_environment_again(
    environment: str, tiny_config: Configs, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config("tracking=mlflow", "tracking.uri=http://me:pw@host:5000")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", environment)
    shown = without_secrets(config)
    assert shown.tracking.uri == "http://host:5000"
    assert config.tracking.uri == "http://me:pw@host:5000"
    if environment.endswith("@host:5000"):
        assert with_own_store(shown).tracking.uri == environment
        return
    with pytest.raises(
        ConfigError, match="repeat the command with MLFLOW_TRACKING_URI=http://h"
    ):
        with_own_store(shown)


def test_nothing_to_go_on_with_is_reported(
    tiny_config: Configs, tmp_path: Path
) -> None:
    run_job(tiny_config("em=none", "rule=none"), tmp_path / "done")
    (tmp_path / "done" / PREVIOUS_FILE).touch()
    with pytest.raises(DataError, match="finished"):
        config_to_resume(tmp_path / "done")
    assert not (tmp_path / "done" / PREVIOUS_FILE).exists()
    with pytest.raises(UserError, match="not a run's folder"):
        config_to_resume(tmp_path)
    replace_in(tmp_path / "done" / "run.json", '"FINISHED"', '"KILLED"')
    (tmp_path / "done" / "config.yaml").write_text("- a\n")
    with pytest.raises(
        DataError, match=r"config\.yaml is damaged: it contains no settings"
    ):
        config_to_resume(tmp_path / "done")
    (tmp_path / "done" / "config.yaml").unlink()
    with pytest.raises(DataError, match=r"has no config\.yaml\. Restore the file"):
        config_to_resume(tmp_path / "done")


@pytest.mark.parametrize("first", [".running", ".hydra"])
def test_a_run_that_had_not_begun_is_run_again(first: str, tmp_path: Path) -> None:
    (tmp_path / first).mkdir()
    with pytest.raises(DataError, match="stopped before its first record"):
        config_to_resume(tmp_path)


def test_a_run_killed_before_it_is_recorded_as_finished_repeats_one_stage(
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = tiny_config("em.iterations=2", "data.num_entities=100", "tracking=none")
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(NoTracker, "finish", Mock(side_effect=KilledError))
        run_job(config, tmp_path)
    assert (tmp_path / "metrics.json").exists()
    with caplog.at_level(logging.INFO):
        run_job(config_to_resume(tmp_path), tmp_path, resumes=True)
    assert f"Resuming after EM iteration {NUM_STAGES - 2}" in caplog.text
    assert not (tmp_path / PREVIOUS_FILE).exists()


@pytest.mark.slow
def test_a_full_disk_leaves_the_last_checkpoint(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config("em.iterations=2")
    whole = run_job(config, tmp_path / "whole").metrics

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def save_twice(*arguments: Any, **named: Any) -> None:
        if arguments[2] and arguments[2].num_stages == 2:
            monkeypatch.setattr("emea.fit.checkpoint.write_atomic", no_room)
        save(*arguments, **named)

    save = training_loop.save_checkpoint
    with monkeypatch.context() as patch, pytest.raises(UserError, match="disk is full"):
        patch.setattr(training_loop, "save_checkpoint", save_twice)
        run_job(config, tmp_path / "half")
    monkeypatch.undo()
    assert essence(run_job(config, tmp_path / "half").metrics) == essence(whole)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["em=dual"], None),
        (["resume=a/b"], (Path("a/b"), [])),
        (
            ["resume=a=b", "trust=[mine, yours.too]"],
            (Path("a=b"), ["mine", "yours.too"]),
        ),
    ],
)
def test_what_is_resumed(arguments: list[str], expected: Any) -> None:
    assert run.resumed_folder(arguments) == expected


@pytest.mark.parametrize("other", ["seed=1", "-m", "resume=c"])
def test_a_resumed_run_keeps_its_settings(other: str) -> None:
    with pytest.raises(UserError, match="Give only resume=FOLDER"):
        run.resumed_folder(["resume=a", other])


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "run.py"), *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


KILLED = [
    "data.num_entities=300",
    "ratio=0.2",
    "split.num_validation=20",
    "trainer=cpu",
]
KILLED += [
    "model.initial_epochs=60",
    "model.epochs_per_iteration=30",
    "em.iterations=4",
]
KILLED += ["tracking=none"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was not killed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    subprocess.run(
        command(*KILLED, f"hydra.run.dir={folder}"), env=environment(), check=True
    )
    return folder


def wait_for(process: subprocess.Popen[bytes], folder: Path, num_fits: int) -> None:
    """Wait until a run is recorded and has written its state after so many fits."""
    path, seen = folder / "checkpoint.safetensors", {0}
    while not (folder / "run.json").exists() or len(seen) <= num_fits:
        assert process.poll() is None
        with suppress(FileNotFoundError):  # it is replaced as a whole
            seen.add(path.stat().st_mtime_ns)
        time.sleep(0.003)


MOMENTS = (
    *range(5),
    *(pytest.param(moment, marks=pytest.mark.nightly) for moment in range(5, 10)),
)


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_ten_random_moments_it_ends_the_same(
    moment: int, whole: Path, tmp_path: Path
) -> None:
    half, chosen = tmp_path / "half", random.Random(moment)
    begin = command(*KILLED, f"hydra.run.dir={half}")
    process = subprocess.Popen(begin, env=environment(), stderr=subprocess.DEVNULL)
    # the moments depend on what the run did, so that a busy machine does not move them
    wait_for(process, half, num_fits=moment % 5)
    time.sleep(chosen.uniform(0, 0.3) if moment % 5 < 4 else 0)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (half / "metrics.json").exists()
    subprocess.run(command(f"resume={half}"), env=environment(), check=True)
    metrics = [json.loads(unsigned(one / "metrics.json")) for one in (whole, half)]
    assert essence(metrics[0]) == essence(metrics[1])
    for name in ("alignment.tsv", "ranks.npz", "beliefs.npz", "unmatched.tsv"):
        assert (half / name).read_bytes() == (whole / name).read_bytes()
    assert {one.name for one in half.iterdir()} == {one.name for one in whole.iterdir()}


SIGNALS = pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)


@SIGNALS
@pytest.mark.usefixtures("default_signals")
def test_a_signal_during_training_ends_the_run(
    number: signal.Signals, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = AlignmentModule.run_block

    def signalled(*arguments: Any) -> None:
        step(*arguments)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(signals, "_received", [])
    monkeypatch.setattr(AlignmentModule, "run_block", signalled)
    done = called_here(
        tmp_path, *TINY, "tracking=none", f"hydra.run.dir={tmp_path}/run"
    )
    assert done.returncode == status
    assert f"resume={tmp_path}/run" in done.stderr
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "KILLED"


@pytest.mark.slow
@SIGNALS
@pytest.mark.usefixtures("default_signals")
def test_a_signal_closes_the_records_and_is_reported_by_the_status(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    settings = [
        "data.num_entities=300",
        "trainer=cpu",
        "tracking=none",
        "trainer.block_size=5",
    ]
    process = subprocess.Popen(
        command(*settings, f"hydra.run.dir={tmp_path}/run"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "run" / "run.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == status
    assert f"Continue with: emea run resume={tmp_path}/run" in output.replace("\n", "")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "KILLED"
