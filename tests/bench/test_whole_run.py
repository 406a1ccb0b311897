"""The benchmarks of whole runs measure what they say."""

from pathlib import Path

import pytest
import torch
from omegaconf import DictConfig

from emea.bench import overhead, whole_run
from emea.config.overrides import composed
from emea.config.schema import register_schema

QUICK = ["data.num_entities=150", "split.num_validation=10", "model.initial_epochs=4"]
QUICK += ["model.epochs_per_iteration=2", "em.iterations=1", "trainer=cpu"]
QUICK += ["model.encoder.dim=16"]


@pytest.fixture(autouse=True)
def schema() -> None:
    register_schema()


@pytest.mark.slow
def test_a_whole_run_is_timed_and_described() -> None:
    numbers = whole_run.measure([*QUICK, "tracking=none"])
    assert numbers["epochs"] == "4 + 1 x 2"
    assert 0 < numbers["neural_s"] < numbers["total_s"]
    assert numbers["joint_cpu_s"] > 0 and numbers["joint_estimate_s"] > 0
    assert 0 <= numbers["final"]["hit@1"] <= 1


@pytest.mark.slow
def test_the_shares_add_up() -> None:
    numbers = overhead.shares(QUICK)
    parts = [value for name, value in numbers.items() if name.endswith("_s") and name != "total_s"]
    assert sum(parts) == pytest.approx(numbers["total_s"])
    assert all(value > 0 for value in parts)
    assert 0 < numbers["share_of_overhead"] < 1


@pytest.mark.parametrize(("em", "num_iterations"), [("em=paper", 1), ("em=none", 0)])
def test_a_shortened_run_differs_in_its_length(em: str, num_iterations: int) -> None:
    config = composed(["data=synthetic", em, "tracking=none"])
    before = config.copy()
    short = whole_run.shortened(config)
    assert config == before
    assert short.em.iterations == num_iterations
    assert short.model.initial_epochs == short.model.epochs_per_iteration == whole_run.FEW_EPOCHS
    assert short.data == config.data and short.rule == config.rule


@pytest.mark.parametrize(("kind", "num_runs"), [("cpu", 1), ("cuda", 2)])
def test_a_gpu_compiles_kernels_for_the_sizes_of_the_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, num_runs: int
) -> None:
    configs: list[DictConfig] = []
    monkeypatch.setattr(whole_run, "run_job", lambda config, folder: configs.append(config))
    monkeypatch.setattr(whole_run, "choose_device", lambda _: torch.device(kind))
    whole_run.compile_kernels(["data=zh", "tracking=none"], tmp_path)
    assert [config.data.name for config in configs] == ["synthetic", "dbp15k_zh"][:num_runs]
