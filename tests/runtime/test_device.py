"""The device of a run and its memory."""

import numpy as np
import pytest
import torch

from emea.errors import ConfigError
from emea.runtime.device import (
    choose_device,
    deterministic_mode,
    forget_peak_memory,
    peak_memory_mb,
)


def test_a_gpu_is_used_only_where_there_is_one() -> None:
    if torch.cuda.is_available():
        assert choose_device("auto").type == "cuda"
        return
    assert choose_device("auto").type == "cpu"
    with pytest.raises(ConfigError, match="trainer=cpu"):
        choose_device("gpu")


def test_peak_memory_is_reset() -> None:
    cpu = torch.device("cpu")
    block = np.ones(60_000_000)
    high = peak_memory_mb(cpu)
    del block
    forget_peak_memory(cpu)
    assert peak_memory_mb(cpu) < high - 300


def test_what_is_wanted_of_torch_ends_with_the_run() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with deterministic_mode(False):
            assert torch.is_deterministic_algorithms_warn_only_enabled()
        with deterministic_mode(True):
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
    with deterministic_mode(True):
        assert torch.are_deterministic_algorithms_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
