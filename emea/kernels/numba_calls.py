"""Calls of compiled loops: arrays that share the memory of tensors, and the modules of the loops.

numba takes half a second to import, so the modules are imported when a loop is called.
"""

from typing import Any

import numpy as np
from torch import Tensor


def arrays(*tensors: Tensor) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the tensors as arrays that share their memory."""
    return tuple(tensor.detach().contiguous().numpy() for tensor in tensors)


def score_loops() -> Any:
    """Return the module of the loops over pairs of rows and blocks of scores."""
    from emea.kernels import numba_score_loops

    return numba_score_loops


def evidence_loops() -> Any:
    """Return the module of the loops over candidate pairs."""
    from emea.kernels import numba_evidence_loops

    return numba_evidence_loops


def layer_loops() -> Any:
    """Return the module of the loops over edges and pairs."""
    from emea.kernels import numba_layer_loops

    return numba_layer_loops
