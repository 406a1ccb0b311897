"""Embeddings that are hard on single precision."""

import torch
from torch import Tensor

from .both_precisions import ROUNDOFF

DIM = 300
NUM_SOURCE, NUM_TARGET = 40, 50

COSINE_ERROR = (2 * DIM + 6) * ROUNDOFF
"""Of a cosine: two norms and divisions, ``DIM / 2 + 3`` roundings each, and a sum of ``DIM``."""


def csls_error(k: int) -> float:
    """Of a CSLS score: twice the cosine, two means of k cosines, and three more roundings."""
    return 4 * COSINE_ERROR + (2 * k + 12) * ROUNDOFF


def _drawn(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    sizes = NUM_SOURCE, NUM_TARGET
    source, target = (torch.randn(size, DIM, generator=generator) for size in sizes)
    return source, target


def _nearly_equal() -> tuple[Tensor, Tensor]:
    source, target = _drawn()
    return source[:1] + 1e-6 * source, source[:1] + 1e-6 * target


def _with_zeros() -> tuple[Tensor, Tensor]:
    source, target = _drawn()
    source[::3] = 0
    target[:20] = 0
    return source, target


def _zeros() -> tuple[Tensor, Tensor]:
    return torch.zeros(NUM_SOURCE, DIM), torch.zeros(NUM_TARGET, DIM)


def _scaled(by: float) -> tuple[Tensor, Tensor]:
    source, target = _drawn()
    return by * source, by * target


HARD_EMBEDDINGS = {
    "ordinary": _drawn(),
    "nearly equal": _nearly_equal(),
    "some zero": _with_zeros(),
    "all zero": _zeros(),
    "tiny": _scaled(1e-11),
    "huge": _scaled(1e15),
}
