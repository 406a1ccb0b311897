"""Search that is exact in graphs of moderate size and approximate in larger ones."""

from dataclasses import asdict, dataclass

from torch import Tensor

from emea.matching.kmeans_search import KMeansSearch
from emea.matching.one_pass_search import OnePassSearch
from emea.matching.search import Scope
from emea.matching.settings import KMeansSearchSettings, OnePassSearchSettings

LEAST_CELL_RECALL, RECALL_SAMPLE, RECALL_SIZE = 0.95, 200, 10
"""Recall from which ``search=auto`` uses k-means cells. It is measured on a sample of this many
source entities, for this many nearest targets of each."""


@dataclass(frozen=True)
class AutoSearch:
    """Searches exactly in graphs of moderate size and approximately in larger ones.

    On a CPU, the approximate search is ``OnePassSearch``. On a GPU, it is ``KMeansSearch`` if its
    cells contain most of the nearest targets, as those of trained encoders do; otherwise the
    search is exact.

    Args:
        max_exact_pairs: Largest number of pairs of entities that are compared exactly on a CPU.
        max_exact_pairs_gpu: The same on a GPU.
    """

    max_exact_pairs: int = 2_000_000_000  # about 45,000 entities per side
    max_exact_pairs_gpu: int = 200_000_000_000  # about 450,000 entities per side

    def __call__(self, source: Tensor, target: Tensor) -> Scope | None:
        """Return the scope that suits two sets of unit vectors."""
        is_cpu = source.device.type == "cpu"
        most = self.max_exact_pairs if is_cpu else self.max_exact_pairs_gpu
        if len(source) * len(target) <= most:
            return None
        if is_cpu:
            return OnePassSearch(**asdict(OnePassSearchSettings()))(source, target)
        cells = KMeansSearch(**asdict(KMeansSearchSettings(seed=0)))(source, target)
        recall = cells.recall(source, target, RECALL_SIZE, RECALL_SAMPLE)
        return cells if recall >= LEAST_CELL_RECALL else None
