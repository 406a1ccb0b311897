"""Marks of the rows of a gradient that can differ from zero."""

import torch
from torch import Tensor

ALIGNED = 16
"""Divisor of the length of marks. Triton would compile a kernel again for unaligned tensors."""


def no_marks(num_rows: int, device: torch.device, number: int = 1) -> Tensor:
    """Return ``[number, num_rows]`` bytes that are zero; each row of them is aligned."""
    length = -(-num_rows // ALIGNED) * ALIGNED
    return torch.zeros(number, length, dtype=torch.int8, device=device)[:, :num_rows]


class RowMarks:
    """Passes the marks of a gradient from the function that computes it to the one that needs it.

    Autograd passes only the gradient. The function whose output has few rows with a gradient keeps
    an object of this class as ``ctx.marks``; its consumer finds it with ``marks_of``. If the output
    has several consumers, autograd adds up their gradients into another tensor without marks.
    """

    def __init__(self) -> None:
        self._noted: tuple[Tensor, Tensor] | None = None

    def note(self, gradient: Tensor, marks: Tensor) -> None:
        """Note the marks of a gradient. Autograd does not change a tensor that is kept here."""
        self._noted = gradient, marks

    def taken(self, gradient: Tensor) -> Tensor | None:
        """Return and forget the marks of this gradient; ``None`` if all rows may have values."""
        noted, self._noted = self._noted, None
        if noted is None or noted[0].data_ptr() != gradient.data_ptr():
            return None
        return noted[1]


def marks_of(output: Tensor) -> RowMarks | None:
    """Return where to note the marks of the gradient of a function's output, if it uses them."""
    return getattr(output.grad_fn, "marks", None)
