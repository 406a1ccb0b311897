"""Fixtures of the encoder tests."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode


class LargestOutput(TorchDispatchMode):
    """Records how many elements the outputs of all operations hold."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, tuple | list) else [result]:
            if isinstance(part, Tensor):
                held = part.values() if part.layout == torch.sparse_csr else part
                self.largest = max(self.largest, held.numel())
        return result


@pytest.fixture
def largest_output() -> type[LargestOutput]:
    """A context in which the size of every operation's output is watched."""
    return LargestOutput


@pytest.fixture
def assert_same_on_cuda(
    cuda_kernels: torch.device,
) -> Callable[[nn.Module, nn.Module], None]:
    """Compares an encoder in single precision on CUDA with one in double on the CPU."""

    def compare(reference: nn.Module, encoder: nn.Module) -> None:
        encoder.load_state_dict(reference.state_dict())
        encoder.to(cuda_kernels)
        expected, result = reference(), encoder()
        torch.testing.assert_close(
            result.double().cpu(), expected, rtol=1e-4, atol=1e-4
        )
        weights = torch.randn(expected.shape)
        (expected * weights).sum().backward()
        (result * weights.to(cuda_kernels)).sum().backward()
        for left, right in zip(
            encoder.parameters(), reference.parameters(), strict=True
        ):
            assert left.grad is not None
            assert right.grad is not None
            slack = 1e-4 * float(right.grad.abs().max())
            torch.testing.assert_close(
                left.grad.double().cpu(), right.grad, rtol=0, atol=slack
            )

    return compare
