"""Scores between all source and all target entities, never held as a whole."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

BLOCK_BYTES = {"cpu": 2**26, "cuda": 2**28}
"""Memory one block of scores may take, per kind of device."""


@dataclass(frozen=True, eq=False)
class Similarity:
    """A similarity of the form ``scale * <s, t> - source_offset[s] - target_offset[t]``.

    Cosine and CSLS are both of this form, so whatever ranks or searches needs to know one type.

    Args:
        source: ``[num_source, dim]`` unit vectors.
        target: ``[num_target, dim]`` unit vectors.
        source_offset: ``[num_source]``.
        target_offset: ``[num_target]``.
        scale: factor of the dot product.
    """

    source: Tensor
    target: Tensor
    source_offset: Tensor
    target_offset: Tensor
    scale: float = 1.0

    @property
    def num_source(self) -> int:
        """Entities that look for a counterpart."""
        return len(self.source)

    @property
    def num_target(self) -> int:
        """Entities among which they look."""
        return len(self.target)

    def scores(self, rows: Tensor) -> Tensor:
        """``[len(rows), num_target]`` scores of the given source entities."""
        block = (self.scale * self.source.index_select(0, rows)) @ self.target.T
        block -= self.source_offset.index_select(0, rows).unsqueeze(1)
        return block.sub_(self.target_offset)

    def blocks(self, rows: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and their scores, as many at a time as a block of memory holds."""
        if rows is None:
            rows = torch.arange(self.num_source, device=self.source.device)
        for part in torch.split(rows, rows_per_block(self.target)):
            yield part, self.scores(part)

    def reversed(self) -> "Similarity":
        """The same similarity seen from the target side."""
        return replace(
            self,
            source=self.target,
            target=self.source,
            source_offset=self.target_offset,
            target_offset=self.source_offset,
        )


def rows_per_block(target: Tensor) -> int:
    """How many rows of scores against all targets fit into one block."""
    budget = BLOCK_BYTES.get(target.device.type, BLOCK_BYTES["cpu"])
    return max(1, budget // (target.element_size() * max(1, len(target))))
