import errno
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import DictConfig
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from emea.config.composition import composed, option_names
from emea.config.run_config import RunConfig
from emea.errors import DataError, UserError
from emea.fit import checkpoint, tensor_file
from emea.fit.checkpoint import (
    CHECKPOINT_FILE,
    PREVIOUS_FILE,
    Progress,
    load_checkpoint,
    load_progress,
    load_weights,
    resumable,
    save_checkpoint,
)
from emea.fit.training_loop import fit_stage
from emea.record.run_folder import METRICS_FILE
from emea.run.building import BuiltRun
from emea.run.em_run import EMRun, stages
from emea.run.job import run_job

from ..small_runs import TINY, make_parts

Configs = Callable[..., DictConfig]
OF_PAPER_STEP = {"weights"}
SHORT = (
    "data.num_entities=100",
    "model.initial_epochs=4",
    "model.epochs_per_iteration=2",
)


def load_state(folder: Path, parts: BuiltRun) -> None:
    load_checkpoint(folder / "checkpoint.safetensors", parts)


@pytest.mark.parametrize(
    "options",
    [
        *(
            pytest.param(
                (f"model={model}",),
                marks=() if model == "rrea" else pytest.mark.slow,
            )
            for model in option_names("model")
        ),
        pytest.param(
            ("training=semi", "training.epochs_per_turn=5"), marks=pytest.mark.slow
        ),
        pytest.param(
            ("model.restart=true", "model.early_stopping={every:4,patience:1}"),
            marks=pytest.mark.slow,
        ),
        ("em=dual", "training=semi", "training.epochs_per_turn=1"),
    ],
)
def test_resuming_from_a_checkpoint_equals_never_stopping(
    options: tuple[str, ...], tiny_config: Configs, tmp_path: Path
) -> None:
    run_job(tiny_config(*SHORT, "em.iterations=2", *options), tmp_path / "whole")
    config = tiny_config(*SHORT, "em.iterations=1", *options)
    run_job(config, tmp_path / "half")
    parts = make_parts(config)
    load_state(tmp_path / "half", parts)
    assert parts.em.iteration == 2
    fit_stage(stages(RunConfig.of(config))[-1], parts, torch.device("cpu"), [])
    whole = make_parts(config)
    load_state(tmp_path / "whole", whole)
    for whole_rows, rows in zip(
        whole.module.embeddings(), parts.module.embeddings(), strict=True
    ):
        assert whole_rows.any()
        assert torch.equal(whole_rows, rows)
    for name, value in whole.module.state_dict().items():
        assert torch.equal(value, parts.module.state_dict()[name]), name
    assert torch.equal(whole.data.links, parts.data.links)
    if "em=dual" in options:
        assert whole.data.weights is not None and parts.data.weights is not None
        assert len(whole.data.weights) == len(whole.data.links)
        assert torch.equal(whole.data.weights, parts.data.weights)
    else:
        assert whole.data.weights is None and parts.data.weights is None
    assert whole.em.step is not None and parts.em.step is not None
    states = whole.em.step.state_dict(), parts.em.step.state_dict()
    assert set(states[0]) == set(states[1])
    if (
        "em=dual" in options
    ):  # the probabilities of the answer also follow from the first fit
        assert {f"witnesses.{fit}.probs" for fit in ("first", "last")} <= set(states[0])
    else:
        assert set(states[0]) == OF_PAPER_STEP
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
    assert whole.em.normaliser.parameters() == parts.em.normaliser.parameters()


@pytest.mark.parametrize(
    "model", ["rrea", pytest.param("lightea", marks=pytest.mark.slow)]
)
def test_a_run_can_start_from_another_ones_first_training(
    model: str, tiny_config: Configs, tmp_path: Path
) -> None:
    shared = (*SHORT, f"model={model}", "em.iterations=1")
    whole = run_job(tiny_config(*shared), tmp_path / "whole").metrics
    run_job(tiny_config(*SHORT, f"model={model}", "em=none"), tmp_path / "first")
    start = tmp_path / "first" / "checkpoint.safetensors"
    taken = run_job(
        tiny_config(*shared, f"initial_from={start}"), tmp_path / "taken"
    ).metrics
    assert taken["initial"] == whole["initial"]
    assert taken["final"] == whole["final"]


def test_a_file_that_is_no_checkpoint_is_refused(
    tiny_config: Configs, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"not a checkpoint")
    parts = make_parts(tiny_config())
    with pytest.raises(DataError, match="is not a valid checkpoint of emea"):
        load_weights(path, parts)
    with pytest.raises(DataError, match="is not a valid checkpoint of emea"):
        load_weights(tmp_path / "missing", parts)


def test_a_checkpoint_of_another_model_is_refused(
    tiny_config: Configs, tmp_path: Path
) -> None:
    run_job(tiny_config("em=none"), tmp_path)
    other = make_parts(tiny_config("model.encoder.dim=7"))
    with pytest.raises(DataError, match="another model"):
        load_weights(tmp_path / "checkpoint.safetensors", other)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[BuiltRun, Path]:
    """The objects of a run, and a checkpoint of them after the first stage."""
    parts = make_parts(composed([*TINY, "em=dual"]))
    path = tmp_path_factory.mktemp("saved") / "checkpoint.safetensors"
    ranks = {"initial_in_pool": np.ones(3), "initial_in_all": np.ones(3)}
    progress = Progress(1, {"history": [{"iteration": 0}]}, ranks)
    save_checkpoint(path, parts, progress)
    return parts, path


def test_a_whole_checkpoint_is_taken(saved: tuple[BuiltRun, Path]) -> None:
    parts, path = saved
    progress = load_progress(path)
    assert progress is not None and progress.num_stages == 1
    load_checkpoint(path, parts)
    load_weights(path, parts)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("links", None),
        ("links", torch.zeros(3)),
        ("links", torch.tensor([[0, 10**6]])),
        ("link_weights", torch.zeros(1)),
        ("random.cpu", None),
        ("random.cpu", torch.zeros(8, dtype=torch.uint8)),
        ("random.cpu", torch.zeros(8)),
    ],
)
def test_a_checkpoint_with_another_tensor_is_reported(
    saved: tuple[BuiltRun, Path], tmp_path: Path, name: str, tensor: torch.Tensor | None
) -> None:
    parts, path = saved
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    del metadata[
        "sha256"
    ]  # as in a file of an earlier version: the content itself is checked
    tensors = load_file(path) | ({} if tensor is None else {name: tensor})
    if tensor is None:
        del tensors[name]
    save_file(tensors, tmp_path / "changed", metadata)
    with pytest.raises(DataError, match="changed is not a valid checkpoint of emea"):
        load_checkpoint(tmp_path / "changed", parts)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("em", None),
        ("em", {"iteration": "x"}),
        ("losses", [1]),
        ("num_steps_done", None),
        ("progress", 5),
        ("progress", {"num_stages": 1}),
        ("progress", {"num_stages": 1, "observer": {}}),
        ("progress", {"num_stages": 1, "observer": {"history": 1}}),
        ("progress", {"num_stages": "1", "observer": {"history": []}}),
        ("progress", {"num_stages": 0, "observer": {"history": []}}),
    ],
)
def test_a_checkpoint_with_another_state_is_reported(
    saved: tuple[BuiltRun, Path], tmp_path: Path, name: str, value: object
) -> None:
    parts, path = saved
    with safe_open(path, "pt") as file:
        state = json.loads(file.metadata()["state"]) | {name: value}
    save_file(load_file(path), tmp_path / "changed", {"state": json.dumps(state)})
    with pytest.raises(DataError, match="changed is not a valid checkpoint of emea"):
        load_progress(tmp_path / "changed")
        load_checkpoint(tmp_path / "changed", parts)


@pytest.mark.parametrize("state", ["5", "[" * 100_000, "{}"])
def test_a_checkpoint_without_a_state_is_reported(
    saved: tuple[BuiltRun, Path], tmp_path: Path, state: str
) -> None:
    parts, path = saved
    save_file(load_file(path), tmp_path / "changed", {"state": state})
    with pytest.raises(DataError, match="changed is not a valid checkpoint of emea"):
        load_weights(tmp_path / "changed", parts)


def test_a_changed_byte_is_noticed_and_the_previous_checkpoint_is_used(
    saved: tuple[BuiltRun, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = saved[1].read_bytes()
    latest, previous = tmp_path / CHECKPOINT_FILE, tmp_path / PREVIOUS_FILE
    latest.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(
        DataError, match=f"{CHECKPOINT_FILE} is not a valid .* another checksum"
    ):
        resumable(tmp_path)
    assert latest.exists()
    previous.write_bytes(content)
    assert resumable(tmp_path) == previous
    assert f"{latest} is not a valid checkpoint" in caplog.text
    assert resumable(tmp_path) == previous and not latest.exists()


def test_a_failing_checksum_leaves_both_checkpoints(
    saved: tuple[BuiltRun, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, _ = saved
    latest, previous = tmp_path / CHECKPOINT_FILE, tmp_path / PREVIOUS_FILE
    latest.write_bytes(b"latest")
    previous.write_bytes(b"previous")

    def fail(*_: object) -> str:
        raise MemoryError

    monkeypatch.setattr(tensor_file, "checksum", fail)
    with pytest.raises(MemoryError):
        save_checkpoint(latest, parts)
    assert sorted(tmp_path.iterdir()) == [latest, previous]
    assert (latest.read_bytes(), previous.read_bytes()) == (b"latest", b"previous")


def test_a_run_waits_for_its_last_checkpoint(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = checkpoint._write_checkpoint

    def slowly(*arguments: Any) -> None:
        time.sleep(0.5)
        write(*arguments)

    monkeypatch.setattr(checkpoint, "_write_checkpoint", slowly)
    run_job(tiny_config("em=none", *SHORT), tmp_path)
    assert (tmp_path / CHECKPOINT_FILE).exists()


def test_an_error_of_the_last_checkpoint_ends_the_run(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "_write_checkpoint", no_room)
    with pytest.raises(UserError, match="disk is full"):
        run_job(tiny_config("em=none", *SHORT), tmp_path)
    assert not (tmp_path / METRICS_FILE).exists()


@pytest.mark.parametrize("step", ["outcome", "_scores"])
def test_an_error_after_the_training_waits_for_the_last_checkpoint(
    step: str, tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, may_write = checkpoint._write_checkpoint, threading.Event()

    def slowly(*arguments: Any) -> None:
        assert may_write.wait(10)
        time.sleep(0.2)
        write(*arguments)

    def fail(*_: object) -> None:
        assert not (tmp_path / CHECKPOINT_FILE).exists()
        may_write.set()
        raise ValueError("between training and results")

    monkeypatch.setattr(checkpoint, "_write_checkpoint", slowly)
    monkeypatch.setattr(EMRun, step, fail)
    with pytest.raises(ValueError, match="between training"):
        run_job(tiny_config("em=none", *SHORT), tmp_path)
    assert (tmp_path / CHECKPOINT_FILE).exists()
