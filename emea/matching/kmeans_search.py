"""Approximate search in the k-means cells nearest to each entity, on any device."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.kernels.flat_groups import run_ends
from emea.matching.candidates import search_recall, top_candidates
from emea.matching.search import SearchGroup
from emea.matching.settings import KMeansSearchSettings
from emea.matching.similarity import Similarity

ROUNDS = 8
"""Rounds of k-means. More rounds hardly change the cells."""

SAMPLES_PER_CELL = 64
"""Sampled vectors per cell from which k-means computes the centres."""

ASSIGN_SCORES = 2**26
"""Scores in memory at a time while entities are assigned to cells."""


@dataclass(frozen=True, eq=False)
class KMeansCells:
    """Holds the entities of both sides, each assigned to the nearest of one set of centres.

    Each entity is searched in its own cell and in the nearest other cells. With n entities in
    sqrt(n) cells the work is ``n * sqrt(n) * num_probes``.

    Args:
        source: ``[num_source]`` cell of each source entity.
        target: ``[num_target]`` cell of each target entity.
        around: ``[num_cells, num_cells]`` all cells by their distance to each cell, nearest first.
        num_probes: Number of cells to search.
    """

    source: Tensor
    target: Tensor
    around: Tensor
    num_probes: int

    def groups(self, least: int) -> Iterator[SearchGroup]:
        """Yield the source entities of each cell with the targets in the cells around it.

        Args:
            least: Number of targets that every group needs; more cells are searched to reach it.
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
            near = [
                columns[column_starts[other] : column_starts[other + 1]]
                for other in probed
            ]
            yield SearchGroup(rows[first:last], torch.cat(near))

    def reversed(self) -> "KMeansCells":
        """Return the same cells with the two sides exchanged."""
        return replace(self, source=self.target, target=self.source)

    def recall(self, source: Tensor, target: Tensor, k: int, num_rows: int) -> float:
        """Return the share of the nearest targets that the cells contain, by a sample.

        Args:
            source: ``[num_source, dim]`` unit vectors.
            target: ``[num_target, dim]`` unit vectors.
            k: Number of targets per source entity.
            num_rows: Number of source entities.
        """
        generator = torch.Generator().manual_seed(0)
        sample = torch.randperm(len(source), generator=generator)[:num_rows].to(
            source.device
        )
        cells = replace(self, source=self.source[sample])
        offsets = source.new_zeros
        similarity = Similarity(
            source[sample],
            target,
            offsets(len(sample)),
            offsets(len(target)),
            scope=cells,
        )
        return search_recall(
            similarity, top_candidates(similarity, k).targets, len(sample)
        )


def _by_cell(cells: Tensor, num_cells: int) -> tuple[Tensor, Tensor]:
    """Return the entities sorted by cell, and the start of each cell (on the CPU)."""
    order = torch.argsort(cells, stable=True)
    return order, run_ends(torch.bincount(cells, minlength=num_cells).cpu())


@dataclass(frozen=True)
class KMeansSearch:
    """Searches approximately in the nearest few of sqrt(n) k-means cells.

    It suits trained encoders, whose embeddings form clusters, and runs on any device.

    Args:
        num_probes: Number of cells searched for each entity; more cells find more true neighbours.
        num_cells: Total number of cells; ``None`` means the square root of the number of targets.
        seed: Seed of the sample that k-means runs on.
    """

    num_probes: int = KMeansSearchSettings.num_probes
    num_cells: int | None = KMeansSearchSettings.num_cells
    seed: int = 0

    def __call__(self, source: Tensor, target: Tensor) -> KMeansCells:
        """Return the cells of two sets of unit vectors."""
        num_cells = self.num_cells or round(len(target) ** 0.5)
        num_cells = max(1, min(num_cells, len(target)))
        generator = torch.Generator().manual_seed(self.seed)
        centres = _centres(source, target, num_cells, generator)
        around = (centres @ centres.T).argsort(dim=1, descending=True).cpu()
        return KMeansCells(
            _nearest(source, centres),
            _nearest(target, centres),
            around,
            self.num_probes,
        )


def _centres(
    source: Tensor, target: Tensor, num_cells: int, generator: torch.Generator
) -> Tensor:
    """Run spherical k-means on a sample of both sides."""
    per_side = SAMPLES_PER_CELL * num_cells // 2
    sample = torch.cat(
        [_sampled(side, per_side, generator) for side in (source, target)]
    )
    start = torch.randperm(len(sample), generator=generator)[:num_cells].to(
        sample.device
    )
    centres = sample[start]
    for _ in range(ROUNDS):
        cells = _nearest(sample, centres)
        sums = torch.zeros_like(centres).index_add_(0, cells, sample)
        # an empty cell keeps its centre
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
