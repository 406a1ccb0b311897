"""Same seed, same machine: same bits."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from omegaconf import DictConfig

from emea.config.composition import option_names
from emea.run.job import run_job

Configs = Callable[..., DictConfig]
SHORT = ("data.num_entities=100", "model.initial_epochs=4", "model.epochs_per_iteration=2")
FILES = ("alignment.tsv", "ranks.npz", "beliefs.npz", "checkpoint.safetensors")


def bits(config: DictConfig, folder: Path) -> list[bytes]:
    run_job(config, folder)
    assert not torch.are_deterministic_algorithms_enabled()
    return [(folder / name).read_bytes() for name in FILES]


@pytest.mark.parametrize("em", ["paper", "dual"])
def test_a_cpu_gives_the_same_bits_again(em: str, tiny_config: Configs, tmp_path: Path) -> None:
    config = tiny_config(*SHORT, f"em={em}", "em.iterations=1")
    first, again = (bits(config, tmp_path / name) for name in ("first", "again"))
    assert first == again
    config.trainer.deterministic = True  # asks for nothing that a CPU does not do anyway
    assert bits(config, tmp_path / "deterministic") == first


@pytest.mark.gpu
@pytest.mark.parametrize("model", option_names("model"))
@pytest.mark.parametrize("em", ["paper", "dual"])
def test_a_gpu_gives_the_same_bits_again_where_asked(
    model: str, em: str, tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(f"model={model}", f"em={em}", "em.iterations=1")
    config.trainer.update(accelerator="gpu", deterministic=True)
    first, again = (bits(config, tmp_path / name) for name in ("first", "again"))
    assert first == again
