"""Compiled loops on a CPU, which are used if numba is installed."""

import functools
import importlib.util
from typing import Any

import numpy as np
import torch
from torch import Tensor


@functools.cache
def _numba_installed() -> bool:
    return importlib.util.find_spec("numba") is not None


def usable(values: Tensor) -> bool:
    """Return whether compiled loops support tensors on this device."""
    return values.device.type == "cpu" and _numba_installed()


def arrays(*tensors: Tensor) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the tensors as arrays that share their memory."""
    return tuple(tensor.detach().contiguous().numpy() for tensor in tensors)


def pair_dots(first: Tensor, second: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the dot product of ``first[row]`` and ``second[column]`` of each pair.

    The rows are not copied. Equal rows have equal products.
    """
    from emea.matching import compiled_loops  # numba takes half a second to import

    loops: Any = compiled_loops
    products = torch.empty(len(rows), dtype=first.dtype)
    loops.pair_dots(*arrays(first, second, rows, columns, products))
    return products
