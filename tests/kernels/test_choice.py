"""The choice of kernels, and runs without compiled ones."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from emea.kernels import choice as kernels
from emea.run.job import run_job

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels._Switch, "allows_compiled", True)


@pytest.mark.parametrize(
    ("choice", "missing", "on_cpu", "on_gpu"),
    [
        ("auto", "", "numba", "triton"),
        ("auto", "numba", "torch", "triton"),
        ("auto", "triton", "numba", "torch"),
        ("torch", "", "torch", "torch"),
    ],
)
def test_each_device_has_its_kernels(
    choice: Any, missing: str, on_cpu: str, on_gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_is_installed", lambda package: package != missing)
    kernels.use_kernels(choice, CPU)
    assert [kernels.kernels_of(device) for device in (CPU, CUDA)] == [on_cpu, on_gpu]
    assert kernels.can_capture() is (on_gpu == "triton")
    assert kernels.kernels_of(torch.device("meta")) == "torch"


def test_short_loops_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.zeros(1)
    monkeypatch.setattr(kernels, "LEAST_OPERATIONS", 100)
    assert kernels.uses_numba(values)
    assert [kernels.uses_numba(values, number) for number in (99, 100)] == [False, True]
    kernels.use_kernels("torch", CPU)
    assert not kernels.uses_numba(values, 100)
    assert not kernels.uses_triton(values)


def test_a_gpu_without_triton_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kernels, "_is_installed", lambda package: package != "triton")
    with caplog.at_level(logging.WARNING):
        kernels.use_kernels("auto", CPU)
        kernels.use_kernels("torch", CUDA)
        assert not caplog.messages
        kernels.use_kernels("auto", CUDA)
    assert "Triton is not installed" in caplog.text


def hit_at_1(config: Any, folder: Path, choice: str) -> float:
    config.trainer.kernels = choice
    run_job(config, folder / choice)
    metrics = json.loads((folder / choice / "metrics.json").read_text())
    return float(metrics["final"]["hit@1"])


def test_a_run_without_compiled_kernels(
    tiny_config: Callable[..., Any], tmp_path: Path
) -> None:
    config = tiny_config("em.iterations=1")
    auto, torch_only = (
        hit_at_1(config, tmp_path, choice) for choice in ("auto", "torch")
    )
    assert torch_only == pytest.approx(auto, abs=0.1)


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("model", ["rrea", "dual_amn", "alinet", "iptranse", "lightea"])
@pytest.mark.parametrize("is_missing", [False, True], ids=["torch", "without Triton"])
def test_a_run_on_a_gpu_without_triton(
    model: str,
    is_missing: bool,
    tiny_config: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config(f"model={model}", "em.iterations=1")
    config.trainer.accelerator = "gpu"
    compiled = hit_at_1(config, tmp_path / "compiled", "auto")
    if is_missing:
        monkeypatch.setattr(
            kernels, "_is_installed", lambda package: package != "triton"
        )
    by_torch = hit_at_1(config, tmp_path, "auto" if is_missing else "torch")
    assert kernels.kernels_of(CUDA) == "torch"
    assert by_torch == pytest.approx(compiled, abs=0.2)
