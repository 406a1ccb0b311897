"""Cosine similarity."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor
from torch.nn.functional import normalize

from emea.matching.cells import Cells
from emea.matching.exact_search import ExactSearch
from emea.matching.similarity import Similarity

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
