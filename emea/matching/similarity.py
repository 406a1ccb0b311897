"""Similarity of entities by their embeddings, computed in blocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.kernels.pair_dots import pair_dots
from emea.matching.best_scores import best_of_rows
from emea.matching.search import ExactSearch, Scope, Search
from emea.runtime.block_memory import block_budget

BLOCK_BYTES = {"cpu": 2**26, "cuda": 2**28}
"""Memory of one block of scores, per type of device."""


class SearchBlock(NamedTuple):
    """Holds scores of some source entities with the targets that they are compared with.

    Args:
        rows: ``[n]`` source ids.
        columns: ``[m]`` target ids, or ``[n, m]`` target ids of each row; ``None`` means all.
        scores: ``[n, m]`` scores.
    """

    rows: Tensor
    columns: Tensor | None
    scores: Tensor

    def best(self, k: int) -> tuple[Tensor, Tensor]:
        """Return the scores and target ids of the k best targets of each row, best first."""
        values, indices = best_of_rows(self.scores, k)
        if self.columns is None:
            return values, indices
        if self.columns.dim() == 2:
            return values, self.columns.gather(1, indices)
        return values, self.columns[indices]


@dataclass(frozen=True, eq=False)
class Similarity:
    """Computes a similarity ``scale * <s, t> - source_offset[s] - target_offset[t]``.

    Cosine and CSLS are both of this form, so code that ranks or searches handles one type.

    Args:
        source: ``[num_source, dim]`` unit vectors.
        target: ``[num_target, dim]`` unit vectors.
        source_offset: ``[num_source]`` offsets of the source entities.
        target_offset: ``[num_target]`` offsets of the target entities.
        scale: Factor of the dot product.
        scope: The targets that a search compares; ``None`` means all of them.
    """

    source: Tensor
    target: Tensor
    source_offset: Tensor
    target_offset: Tensor
    scale: float = 1.0
    scope: Scope | None = None

    @property
    def num_source(self) -> int:
        """Number of source entities."""
        return len(self.source)

    @property
    def num_target(self) -> int:
        """Number of target entities."""
        return len(self.target)

    def scores(self, rows: Tensor, columns: Tensor | None = None) -> Tensor:
        """Return ``[len(rows), len(columns)]`` scores of the given source and target entities."""
        target = self.target
        offset = self.target_offset
        if columns is not None:
            target = target.index_select(0, columns)
            offset = offset.index_select(0, columns)
        block = _dots(self.scale * self.source.index_select(0, rows), target)
        block -= self.source_offset.index_select(0, rows).unsqueeze(1)
        return block.sub_(offset)

    def of_pairs(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the score of each row with the column at the same position, ``[num_pairs]``."""
        scores = self.scale * pair_dots(self.source, self.target, rows, columns)
        return scores - self.source_offset[rows] - self.target_offset[columns]

    def blocks(self, rows: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield rows and their scores with all targets, in blocks of bounded memory."""
        if rows is None:
            rows = torch.arange(self.num_source, device=self.source.device)
        for part in torch.split(rows, rows_per_block(self.target, self.num_target)):
            yield part, self.scores(part)

    def search(self, k: int = 1) -> Iterator[SearchBlock]:
        """Yield every source entity once, with the targets that the search compares.

        Args:
            k: Number of targets that each source entity needs.
        """
        if self.scope is None:
            for rows, scores in self.blocks():
                yield SearchBlock(rows, None, scores)
            return
        for rows, columns, dots in self.scope.groups(min(k, self.num_target)):
            if dots is not None:
                offset = self.source_offset.index_select(0, rows).unsqueeze(1)
                scores = self.scale * dots - offset - self.target_offset[columns]
                yield SearchBlock(rows, columns, scores)
                continue
            for part in torch.split(rows, rows_per_block(self.target, len(columns))):
                yield SearchBlock(part, columns, self.scores(part, columns))

    def reversed(self) -> "Similarity":
        """Return the same similarity with the two sides exchanged."""
        return replace(
            self,
            source=self.target,
            target=self.source,
            source_offset=self.target_offset,
            target_offset=self.source_offset,
            scope=None if self.scope is None else self.scope.reversed(),
        )

    def restricted(self, rows: Tensor, columns: Tensor) -> "Similarity":
        """Return the similarity of some entities only, in which a search compares all of them."""
        return replace(
            self,
            source=self.source[rows],
            target=self.target[columns],
            source_offset=self.source_offset[rows],
            target_offset=self.target_offset[columns],
            scope=None,
        )


Decoder = Callable[[Tensor, Tensor], Similarity]
"""Takes the embeddings of both sides, like ``Cosine`` and ``CSLS``."""


def rows_per_block(target: Tensor, num_columns: int) -> int:
    """Return how many rows of ``num_columns`` scores fit into one block."""
    budget = block_budget(BLOCK_BYTES, target.device)
    return max(1, budget // (target.element_size() * max(1, num_columns)))


def _dots(source: Tensor, target: Tensor) -> Tensor:
    """Return the dot products of all pairs; equal targets get exactly equal scores.

    A single row is multiplied twice. A product with a vector would sum the last columns in another
    order, which would break ties.
    """
    if len(source) == 1:
        return (source.expand(2, -1) @ target.T)[:1]
    return source @ target.T


@dataclass(frozen=True)
class Cosine:
    """Computes the cosine of the angle between two embeddings.

    Args:
        search: Chooses the targets to compare.
    """

    search: Search = field(default_factory=ExactSearch)

    def __call__(self, source: Tensor, target: Tensor) -> Similarity:
        """Return the similarity of two sets of embeddings."""
        source = normalize(source)
        target = normalize(target)
        return Similarity(
            source=source,
            target=target,
            source_offset=source.new_zeros(len(source)),
            target_offset=target.new_zeros(len(target)),
            scope=self.search(source, target),
        )
