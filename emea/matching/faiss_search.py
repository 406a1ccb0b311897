"""Approximate search with faiss: compressed vectors propose candidates, exact scores rank them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from emea.errors import ConfigError
from emea.matching.shortlists import CandidateLists, Shortlists, spread_rows

INSTALL_FAISS = "pip install faiss-cpu"

DIMS_PER_CODE = 2
"""Dimensions that share a 4-bit code. With 4, LightEA's recall falls from .96 to .82."""

NUM_TRAINING = 8192
"""Sampled targets from which faiss learns the codes."""

NUM_ROUNDS = 10
"""Rounds of the k-means that learns the codes."""

MIN_TRAINING = 16
"""Targets that a 4-bit code needs. Fewer targets are all compared."""


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
            columns = torch.from_numpy(index.search(_padded(queries).numpy(), length)[1])
        return CandidateLists.of(queries, vectors, columns)


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
    index.train(rows.index_select(0, spread_rows(rows, NUM_TRAINING)).numpy())
    index.add(rows.numpy())
    return index


def _padded(vectors: Tensor) -> Tensor:
    """Return the vectors with zeros up to a multiple of the dimensions that share a code."""
    return torch.nn.functional.pad(vectors.float(), (0, -vectors.shape[1] % DIMS_PER_CODE))
