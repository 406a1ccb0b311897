"""Shortlists of candidates with exact dot products, from which an approximate search selects."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.errors import ConfigError
from emea.matching import compiled
from emea.matching.search import SearchGroup
from emea.runtime.block_memory import block_budget, in_smaller_blocks

BLOCK_BYTES = {"cpu": 2**24}
"""Memory of the gathered vectors while candidates are scored exactly."""

ROWS_PER_GROUP = 2**14
"""Source entities of a group; the scores of a group are computed at a time."""


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """Holds the candidates of every entity of one side, by ascending id, and their dot products.

    Args:
        columns: ``[num_queries, length]`` ids of the candidates.
        dots: ``[num_queries, length]`` their exact dot products with the entity.
    """

    columns: Tensor
    dots: Tensor

    @classmethod
    def of(cls, queries: Tensor, vectors: Tensor, columns: Tensor) -> "CandidateLists":
        """Score candidates exactly.

        Args:
            queries: ``[num_queries, dim]`` unit vectors, or zeros.
            vectors: ``[num_vectors, dim]`` unit vectors.
            columns: ``[num_queries, length]`` ids of the candidates, -1 if none was found. A zero
                vector, such as that of an entity that no label reaches, gets other candidates.
        """
        missing = (queries == 0).all(1) | (columns < 0).any(1)
        if bool(missing.any()):
            spread = spread_rows(vectors, columns.shape[1])
            columns = torch.where(missing.unsqueeze(1), spread, columns)
        # sorted by id, so that ties do not depend on the order of the approximate scores
        columns = columns.sort(1).values
        return cls(columns, _dots(queries, vectors, columns))


@dataclass(frozen=True, eq=False)
class Shortlists:
    """Holds the candidates of every entity of both sides with their exact dot products.

    Args:
        source: Candidates of the source entities among the targets.
        target: Candidates of the target entities among the sources.
    """

    source: CandidateLists
    target: CandidateLists

    def groups(self, least: int) -> Iterator[SearchGroup]:
        """Yield every source entity once, with its candidates.

        Args:
            least: Number of candidates that every source entity needs.

        Raises:
            ConfigError: If the lists are shorter.
        """
        num_source, length = self.source.columns.shape
        if least > length:
            raise ConfigError(
                f"search.shortlist={length} is too short for {least} candidates per entity. "
                f"Set search.shortlist={10 * least}."
            )
        rows = torch.arange(num_source)
        for part in torch.split(rows, ROWS_PER_GROUP):
            ids = slice(int(part[0]), int(part[-1]) + 1)
            yield SearchGroup(part, self.source.columns[ids], self.source.dots[ids])

    def reversed(self) -> "Shortlists":
        """Return the lists with the two sides exchanged."""
        return Shortlists(source=self.target, target=self.source)


def spread_rows(vectors: Tensor, num_rows: int) -> Tensor:
    """Return rows that are evenly spaced along a fixed direction, independent of entity ids."""
    generator = torch.Generator().manual_seed(0)
    direction = torch.randn(vectors.shape[1], generator=generator).to(vectors)
    order = torch.argsort(vectors @ direction, stable=True)
    num_rows = min(num_rows, len(order))
    return order[torch.linspace(0, len(order) - 1, num_rows).round().long()]


def _dots(queries: Tensor, vectors: Tensor, columns: Tensor) -> Tensor:
    """Return the exact dot products of each query with its candidates."""
    if compiled.usable(queries) and queries.dtype == torch.float32:
        return compiled.list_dots(queries, vectors, columns)
    return _gathered_dots(queries, vectors, columns)


@in_smaller_blocks
def _gathered_dots(queries: Tensor, vectors: Tensor, columns: Tensor) -> Tensor:
    dots = queries.new_empty(columns.shape)
    per_row = queries.element_size() * queries.shape[1] * max(1, columns.shape[1])
    size = max(1, block_budget(BLOCK_BYTES, queries.device) // per_row)
    for start in range(0, len(queries), size):
        part = slice(start, start + size)
        near = vectors.index_select(0, columns[part].flatten()).view(*columns[part].shape, -1)
        # multiply and sum instead of a matrix product, so equal vectors get exactly equal scores
        dots[part] = near.mul_(queries[part].unsqueeze(1)).sum(2)
    return dots
