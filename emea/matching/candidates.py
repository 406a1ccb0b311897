"""The best few targets of each source entity."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching.similarity import Similarity


@dataclass(frozen=True, eq=False)
class Candidates:
    """Top targets per source entity, best first.

    Args:
        targets: ``[num_source, k]`` target ids.
        scores: ``[num_source, k]`` their scores.
    """

    targets: Tensor
    scores: Tensor

    @property
    def num_candidates(self) -> int:
        """How many targets each source entity has."""
        return self.targets.shape[1]


def top_candidates(similarity: Similarity, k: int) -> Candidates:
    """The k best targets of every source entity."""
    k = min(k, similarity.num_target)
    best = [scores.topk(k, dim=1) for _, scores in similarity.blocks()]
    return Candidates(
        targets=torch.cat([part.indices for part in best]),
        scores=torch.cat([part.values for part in best]),
    )


def mutual_best(forward: Candidates, backward: Candidates) -> Tensor:
    """``[num_source]`` bool: whether a source entity's best target chooses it back."""
    best = forward.targets[:, 0]
    back = backward.targets[:, 0].index_select(0, best)
    return back == torch.arange(len(best), device=best.device)
