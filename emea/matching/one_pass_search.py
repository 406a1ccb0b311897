"""Search that compares all pairs once, with 8-bit vectors, and ranks shortlists exactly."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.errors import ConfigError
from emea.kernels.pair_dots import pair_dots_of_any_number
from emea.matching.best_pairs import best_pairs
from emea.matching.search import SearchGroup
from emea.matching.settings import OnePassSearchSettings

ROWS_PER_GROUP = 2**14
"""Source entities of a group; the scores of a group are computed at a time."""


@dataclass(frozen=True, eq=False)
class Shortlists:
    """Holds the candidates of every entity of both sides with their exact dot products.

    Args:
        source: Candidates of the source entities among the targets, by ascending id, and their
            dot products, both ``[num_source, length]``.
        target: Those of the target entities among the sources.
    """

    source: tuple[Tensor, Tensor]
    target: tuple[Tensor, Tensor]

    def groups(self, least: int) -> Iterator[SearchGroup]:
        """Yield every source entity once, with its candidates.

        Args:
            least: Number of candidates that every source entity needs.

        Raises:
            ConfigError: If the lists are shorter.
        """
        columns, dots = self.source
        num_source, length = columns.shape
        if least > length:
            raise ConfigError(
                f"search.shortlist={length} is too short for {least} candidates per entity. "
                f"Set search.shortlist={10 * least}."
            )
        lists = torch.arange(num_source), columns, dots
        yield from map(
            SearchGroup, *(torch.split(part, ROWS_PER_GROUP) for part in lists)
        )

    def reversed(self) -> "Shortlists":
        """Return the lists with the two sides exchanged."""
        return Shortlists(source=self.target, target=self.source)


@dataclass(frozen=True)
class OnePassSearch:
    """Compares all pairs of entities once, for both directions, and ranks shortlists exactly.

    The vectors are rotated at random, so that all coordinates have a similar range, and rounded to
    8 bits. The pairs with the best products of each source and of each target entity are scored
    exactly. On processors without instructions for 8-bit integers, the products have single
    precision. CSLS subtracts the mean score of the nearest neighbours of both sides. These means
    and the CSLS ranking use the exact scores of the shortlists.

    The result does not depend on the number of threads. The search runs on the CPU.

    Args:
        shortlist: Number of candidates per entity that are scored exactly. A larger number raises
            recall.
    """

    shortlist: int = OnePassSearchSettings.shortlist

    def __call__(self, source: Tensor, target: Tensor) -> Shortlists:
        """Return the shortlists of two sets of unit vectors.

        Raises:
            ConfigError: If the vectors are not on the CPU.
        """
        if source.device.type != "cpu":
            raise ConfigError(
                "search=one_pass runs on the CPU. Set trainer=cpu or search=exact."
            )
        lengths = min(self.shortlist, len(target)), min(self.shortlist, len(source))
        of_source, of_target = best_pairs(source, target, lengths)
        return Shortlists(
            _scored(source, target, of_source), _scored(target, source, of_target)
        )


def _scored(queries: Tensor, vectors: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Return candidates by ascending id, and their exact dot products.

    Args:
        queries: ``[num_queries, dim]`` unit vectors, or zeros.
        vectors: ``[num_vectors, dim]`` unit vectors.
        columns: ``[num_queries, length]`` ids of the candidates. A zero vector, such as that of an
            entity that no label reaches, gets other candidates.
    """
    missing = (queries == 0).all(1)
    if bool(missing.any()):
        spread = _spread_rows(vectors, columns.shape[1])
        columns = torch.where(missing.unsqueeze(1), spread, columns)
    # sorted by id, so that ties do not depend on the order of the approximate scores
    columns = columns.sort(1).values
    return columns, _dots(queries, vectors, columns)


def _spread_rows(vectors: Tensor, num_rows: int) -> Tensor:
    """Return rows that are evenly spaced along a fixed direction, independent of entity ids."""
    generator = torch.Generator().manual_seed(0)
    direction = torch.randn(vectors.shape[1], generator=generator).to(vectors)
    order = torch.argsort(vectors @ direction, stable=True)
    num_rows = min(num_rows, len(order))
    return order[torch.linspace(0, len(order) - 1, num_rows).round().long()]


def _dots(queries: Tensor, vectors: Tensor, columns: Tensor) -> Tensor:
    """Return the exact dot products of each query with its candidates."""
    dots = torch.empty(columns.shape, dtype=queries.dtype)
    for rows in torch.split(torch.arange(len(queries)), ROWS_PER_GROUP):
        some = columns[rows]
        repeated = rows.repeat_interleave(some.shape[1])
        found = pair_dots_of_any_number(queries, vectors, repeated, some.flatten())
        dots[rows] = found.view(some.shape)
    return dots
