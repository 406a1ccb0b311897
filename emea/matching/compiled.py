"""Compiled loops on a CPU, which are used if numba is installed."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.runtime.threads import in_ranges


def arrays(*tensors: Tensor) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the tensors as arrays that share their memory."""
    return tuple(tensor.detach().contiguous().numpy() for tensor in tensors)


def pair_dots(first: Tensor, second: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the dot product of ``first[row]`` and ``second[column]`` of each pair.

    The rows are not copied. Equal rows have equal products.
    """
    products = torch.empty(len(rows), dtype=first.dtype)
    given = arrays(first, second, rows, columns, products)
    in_ranges(loops().pair_dots, len(rows), *given)
    return products


PAIRS_PER_PROGRAM, NUMBERS_PER_STEP = 16, 128
"""Pairs that one program of the kernel scores, and numbers of a vector that it reads at a time."""


def triton_pair_dots(first: Tensor, second: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the same products as ``pair_dots`` on a GPU, without copies of the rows.

    All pairs are summed in the same order, however many there are.
    """
    from emea.matching.triton_kernels import pair_dots_kernel  # torch may come without Triton

    products = first.new_empty(len(rows))
    given = [values.to(first.device).contiguous() for values in (first, second, rows, columns)]
    if len(rows):
        pair_dots_kernel[(-(-len(rows) // PAIRS_PER_PROGRAM),)](
            *(*given, products, len(rows)),
            DIM=first.shape[1],
            PAIRS=PAIRS_PER_PROGRAM,
            WIDTH=NUMBERS_PER_STEP,
        )
    return products


def loops() -> Any:
    """Return the module of the compiled loops."""
    from emea.matching import compiled_loops  # numba takes half a second to import

    return compiled_loops
