"""Candidate search: exact, or approximate in k-means cells."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import normalize


@dataclass(frozen=True)
class ExactSearch:
    """Looks everywhere."""

    def __call__(self, source: Tensor, target: Tensor) -> None:
        """No cells: nothing narrows the search."""
        return None


ROUNDS = 8
"""Rounds of k-means: more move the cells little."""

SAMPLES_PER_CELL = 64
"""Vectors per cell that place its centre."""

ASSIGN_SCORES = 2**26
"""Scores held at a time while entities look for their cell."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Both sides' entities by the nearest of one set of centres.

    An entity's best counterparts lie in its own cell or in those around it, so only these are
    searched: with n entities in sqrt(n) cells the work is ``n * sqrt(n) * num_probes``.

    Args:
        source: ``[num_source]`` cell of each source entity.
        target: ``[num_target]`` cell of each target entity.
        around: ``[num_cells, num_cells]`` all cells from near to far, seen from each.
        num_probes: cells that are searched.
    """

    source: Tensor
    target: Tensor
    around: Tensor
    num_probes: int

    def groups(self, least: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Source entities of each cell, and the targets around them.

        Args:
            least: targets that every group must have; more cells are searched to find them.
        """
        num_cells = len(self.around)
        rows, row_starts = _by_cell(self.source, num_cells)
        columns, column_starts = _by_cell(self.target, num_cells)
        sizes = torch.diff(column_starts)
        for cell in range(num_cells):
            first, last = row_starts[cell : cell + 2].tolist()
            if first == last:
                continue
            reach = sizes[self.around[cell]].cumsum(0)
            num_probes = max(self.num_probes, int((reach < least).sum()) + 1)
            probed = self.around[cell, :num_probes].tolist()
            near = [columns[column_starts[other] : column_starts[other + 1]] for other in probed]
            yield rows[first:last], torch.cat(near)

    def reversed(self) -> "Cells":
        """The same cells seen from the target side."""
        return replace(self, source=self.target, target=self.source)


def _by_cell(cells: Tensor, num_cells: int) -> tuple[Tensor, Tensor]:
    """Entities sorted by cell, and (on the CPU) where each cell's start."""
    order = torch.argsort(cells, stable=True)
    counts = torch.bincount(cells, minlength=num_cells).cpu()
    return order, torch.cat([counts.new_zeros(1), counts.cumsum(0)])


@dataclass(frozen=True)
class CellSearch:
    """Approximate search: the nearest few of sqrt(n) cells.

    Args:
        num_probes: cells searched for each entity; more find more of the true neighbours.
        num_cells: cells in all; ``None``: the square root of the number of targets.
        seed: of the sample that places the centres.
    """

    num_probes: int = 16
    num_cells: int | None = None
    seed: int = 0

    def __call__(self, source: Tensor, target: Tensor) -> Cells:
        """Cells of two sets of unit vectors."""
        num_cells = self.num_cells or round(len(target) ** 0.5)
        num_cells = max(1, min(num_cells, len(target)))
        generator = torch.Generator().manual_seed(self.seed)
        centres = _centres(source, target, num_cells, generator)
        around = (centres @ centres.T).argsort(dim=1, descending=True).cpu()
        return Cells(_nearest(source, centres), _nearest(target, centres), around, self.num_probes)


def _centres(source: Tensor, target: Tensor, num_cells: int, generator: torch.Generator) -> Tensor:
    """Spherical k-means on a sample of both sides."""
    per_side = SAMPLES_PER_CELL * num_cells // 2
    sample = torch.cat([_sampled(side, per_side, generator) for side in (source, target)])
    start = torch.randperm(len(sample), generator=generator)[:num_cells].to(sample.device)
    centres = sample[start]
    for _ in range(ROUNDS):
        cells = _nearest(sample, centres)
        sums = torch.zeros_like(centres).index_add_(0, cells, sample)
        # a centre that nobody chose stays where it is
        centres = torch.where(sums.any(1, keepdim=True), normalize(sums), centres)
    return centres


def _sampled(vectors: Tensor, size: int, generator: torch.Generator) -> Tensor:
    if len(vectors) <= size:
        return vectors
    chosen = torch.randint(len(vectors), (size,), generator=generator)
    return vectors[chosen.to(vectors.device)]


def _nearest(vectors: Tensor, centres: Tensor) -> Tensor:
    parts = torch.split(vectors, max(1, ASSIGN_SCORES // len(centres)))
    return torch.cat([(part @ centres.T).argmax(1) for part in parts])
