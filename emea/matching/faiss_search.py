"""Approximate search with faiss: compressed vectors propose candidates, exact scores rank them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.errors import ConfigError
from emea.matching.block_memory import block_budget, in_smaller_blocks
from emea.matching.search import INSTALL_FAISS, SearchGroup

DIMS_PER_CODE = 2
"""Dimensions that share a 4-bit code. With 4, LightEA's recall falls from .96 to .82."""

NUM_TRAINING = 8192
"""Sampled targets from which faiss learns the codes."""

NUM_ROUNDS = 10
"""Rounds of the k-means that learns the codes."""

MIN_TRAINING = 16
"""Targets that a 4-bit code needs. Fewer targets are all compared."""

BLOCK_BYTES = {"cpu": 2**24}
"""Memory of the gathered vectors while candidates are scored exactly."""

ROWS_PER_GROUP = 2**16
"""Source entities of a group; their candidates and scores are in memory already."""


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """Holds the candidates of every entity of one side, by ascending id, and their dot products.

    Args:
        columns: ``[num_queries, length]`` ids of the candidates.
        dots: ``[num_queries, length]`` their exact dot products with the entity.
    """

    columns: Tensor
    dots: Tensor


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


@dataclass(frozen=True)
class FaissSearch:
    """Searches approximately by product quantisation (faiss FastScan) with exact re-ranking.

    faiss compresses the vectors of one side to 4-bit codes and scans all codes for each entity
    of the other side. The best ``shortlist`` entities are scored exactly. CSLS subtracts the mean
    score of the nearest neighbours of both sides. These means and the CSLS ranking use the exact
    scores of the shortlists.

    The training sample does not depend on entity ids, and the result does not depend on the
    number of threads. The search runs on the CPU.

    Args:
        shortlist: Number of candidates per entity that are scored exactly. A larger number raises
            recall.
    """

    shortlist: int = 100

    def __call__(self, source: Tensor, target: Tensor) -> Shortlists:
        """Return the shortlists of two sets of unit vectors.

        Raises:
            ConfigError: If faiss is not installed.
        """
        return Shortlists(self.lists(source, target), self.lists(target, source))

    def lists(self, queries: Tensor, vectors: Tensor) -> CandidateLists:
        """Return the candidates of one side among the unit vectors of the other.

        Raises:
            ConfigError: If faiss is not installed.
        """
        faiss = _faiss()
        if vectors.device.type != "cpu":
            raise ConfigError("search=faiss runs on the CPU. Set trainer=cpu or search=exact.")
        length = min(self.shortlist, len(vectors))
        if length == len(vectors) or len(vectors) < MIN_TRAINING:
            columns = torch.arange(len(vectors)).expand(len(queries), -1)
        else:
            index = _index(faiss, vectors)
            faiss.omp_set_num_threads(torch.get_num_threads())
            found = index.search(_padded(queries).numpy(), length)[1]
            # faiss finds nothing for a zero vector, such as an entity that no label reaches
            found[(found < 0).any(1)] = _sample(vectors, length).numpy()
            # sort by id, so that ties do not depend on the order of the approximate scores
            columns = torch.from_numpy(np.sort(found, axis=1))
        return CandidateLists(columns, _dots(queries, vectors, columns))


def _faiss() -> Any:
    try:
        import faiss  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ConfigError(
            f"search=faiss needs faiss, which is not installed. Run {INSTALL_FAISS}."
        ) from error
    return faiss


def _index(faiss: Any, vectors: Tensor) -> Any:
    """Return a faiss index that holds the vectors as 4-bit codes."""
    rows = _padded(vectors)
    dim = rows.shape[1]
    index = faiss.IndexPQFastScan(dim, dim // DIMS_PER_CODE, 4, faiss.METRIC_INNER_PRODUCT)
    index.pq.cp.niter = NUM_ROUNDS
    index.train(rows.index_select(0, _sample(rows, NUM_TRAINING)).numpy())
    index.add(rows.numpy())
    return index


def _padded(vectors: Tensor) -> Tensor:
    """Return the vectors with zeros up to a multiple of the dimensions that share a code."""
    return torch.nn.functional.pad(vectors.float(), (0, -vectors.shape[1] % DIMS_PER_CODE))


def _sample(vectors: Tensor, num_rows: int) -> Tensor:
    """Return rows that are evenly spaced along a fixed direction, independent of entity ids."""
    generator = torch.Generator().manual_seed(0)
    direction = torch.randn(vectors.shape[1], generator=generator).to(vectors)
    order = torch.argsort(vectors @ direction, stable=True)
    num_rows = min(num_rows, len(order))
    return order[torch.linspace(0, len(order) - 1, num_rows).round().long()]


@in_smaller_blocks
def _dots(queries: Tensor, vectors: Tensor, columns: Tensor) -> Tensor:
    """Return the exact dot products of each query with its candidates."""
    dots = queries.new_empty(columns.shape)
    per_row = queries.element_size() * queries.shape[1] * max(1, columns.shape[1])
    size = max(1, block_budget(BLOCK_BYTES, queries.device) // per_row)
    for start in range(0, len(queries), size):
        part = slice(start, start + size)
        near = vectors.index_select(0, columns[part].flatten()).view(*columns[part].shape, -1)
        # multiply and sum instead of a matrix product, so equal vectors get exactly equal scores
        dots[part] = near.mul_(queries[part].unsqueeze(1)).sum(2)
    return dots
