"""Similarity of entities by their embeddings, computed in blocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.matching.block_memory import block_budget, in_smaller_blocks
from emea.matching.search import Cells, ExactSearch

BLOCK_BYTES = {"cpu": 2**26, "cuda": 2**28}
"""Memory one block of scores may take, per kind of device."""


class SearchBlock(NamedTuple):
    """Scores of some source entities against the targets among which they look.

    Args:
        rows: ``[n]`` source ids.
        columns: ``[m]`` target ids; ``None``: all of them.
        scores: ``[n, m]``.
    """

    rows: Tensor
    columns: Tensor | None
    scores: Tensor

    def best(self, k: int) -> tuple[Tensor, Tensor]:
        """Scores and target ids of each row's k best, best first."""
        found = self.scores.topk(k, dim=1)
        targets = found.indices if self.columns is None else self.columns[found.indices]
        return found.values, targets


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
        cells: where to look for the best targets; ``None``: everywhere.
    """

    source: Tensor
    target: Tensor
    source_offset: Tensor
    target_offset: Tensor
    scale: float = 1.0
    cells: Cells | None = None

    @property
    def num_source(self) -> int:
        """Entities that look for a counterpart."""
        return len(self.source)

    @property
    def num_target(self) -> int:
        """Entities among which they look."""
        return len(self.target)

    def scores(self, rows: Tensor, columns: Tensor | None = None) -> Tensor:
        """``[len(rows), len(columns)]`` scores of the given source and target entities."""
        target, offset = self.target, self.target_offset
        if columns is not None:
            target, offset = target.index_select(0, columns), offset.index_select(0, columns)
        block = _dots(self.scale * self.source.index_select(0, rows), target)
        block -= self.source_offset.index_select(0, rows).unsqueeze(1)
        return block.sub_(offset)

    @in_smaller_blocks
    def of_pairs(self, rows: Tensor, columns: Tensor) -> Tensor:
        """``[num_pairs]`` score of each source entity with the target entity beside it."""
        scores = self.source.new_empty(len(rows))
        # two gathered rows a pair: as many at a time as a block of memory holds
        per_block = rows_per_block(self.target, 2 * self.source.shape[1])
        for start in range(0, len(rows), per_block):
            part = slice(start, start + per_block)
            source, target = self.source[rows[part]], self.target[columns[part]]
            scores[part] = self.scale * (source * target).sum(1)
        return scores - self.source_offset[rows] - self.target_offset[columns]

    def blocks(self, rows: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and their scores, as many at a time as a block of memory holds."""
        if rows is None:
            rows = torch.arange(self.num_source, device=self.source.device)
        for part in torch.split(rows, rows_per_block(self.target, self.num_target)):
            yield part, self.scores(part)

    def search(self, k: int = 1) -> Iterator[SearchBlock]:
        """Every source entity once, against the targets among which its best are sought.

        Args:
            k: targets that each must have to choose from.
        """
        if self.cells is None:
            for rows, scores in self.blocks():
                yield SearchBlock(rows, None, scores)
            return
        for rows, columns in self.cells.groups(min(k, self.num_target)):
            for part in torch.split(rows, rows_per_block(self.target, len(columns))):
                yield SearchBlock(part, columns, self.scores(part, columns))

    def reversed(self) -> "Similarity":
        """The same similarity seen from the target side."""
        return replace(
            self,
            source=self.target,
            target=self.source,
            source_offset=self.target_offset,
            target_offset=self.source_offset,
            cells=None if self.cells is None else self.cells.reversed(),
        )

    def restricted(self, rows: Tensor, columns: Tensor) -> "Similarity":
        """The same scores between some entities alone, who all look at each other."""
        return replace(
            self,
            source=self.source[rows],
            target=self.target[columns],
            source_offset=self.source_offset[rows],
            target_offset=self.target_offset[columns],
            cells=None,
        )


def rows_per_block(target: Tensor, num_columns: int) -> int:
    """How many rows of scores against so many targets fit into one block."""
    budget = block_budget(BLOCK_BYTES, target.device)
    return max(1, budget // (target.element_size() * max(1, num_columns)))


def _dots(source: Tensor, target: Tensor) -> Tensor:
    """Dot products of all pairs; those with equal targets are exactly equal, whatever rounds.

    A lone row has a companion: multiplied as a vector, its last column would be added up in
    another order than the others, and break ties.
    """
    if len(source) == 1:
        return (source.expand(2, -1) @ target.T)[:1]
    return source @ target.T


Search = Callable[[Tensor, Tensor], Cells | None]


@dataclass(frozen=True)
class Cosine:
    """Cosine of the embeddings' angle.

    Args:
        search: how the best targets are found.
    """

    search: Search = field(default_factory=ExactSearch)

    def __call__(self, source: Tensor, target: Tensor) -> Similarity:
        """Similarity of two sets of embeddings."""
        source, target = normalize(source), normalize(target)
        return Similarity(
            source=source,
            target=target,
            source_offset=source.new_zeros(len(source)),
            target_offset=target.new_zeros(len(target)),
            cells=self.search(source, target),
        )
