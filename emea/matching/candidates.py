"""The best candidates of each entity, and pairs that choose each other."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching.block_memory import in_smaller_blocks
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


@in_smaller_blocks
def top_candidates(similarity: Similarity, k: int) -> Candidates:
    """The k best targets of every source entity, as far as the similarity's search finds them."""
    k = min(k, similarity.num_target)
    scores = similarity.source.new_empty(similarity.num_source, k)
    targets = torch.empty(scores.shape, dtype=torch.int64, device=scores.device)
    for block in similarity.search(k):
        scores[block.rows], targets[block.rows] = block.best(k)
    return Candidates(targets, scores)


@in_smaller_blocks
def search_recall(similarity: Similarity, targets: Tensor, num_rows: int, seed: int = 0) -> float:
    """Share of the true best targets that a search found, on a sample of source entities.

    Args:
        similarity: whose best targets were sought.
        targets: ``[num_source, k]`` what was found.
        num_rows: source entities to look at.
        seed: which ones.
    """
    generator = torch.Generator().manual_seed(seed)
    sample = torch.randperm(similarity.num_source, generator=generator)[:num_rows]
    right, total = 0, 0
    for rows, scores in similarity.blocks(sample.to(targets.device)):
        best = scores.topk(targets.shape[1], dim=1).indices
        right += int((best.unsqueeze(2) == targets[rows].unsqueeze(1)).any(2).sum())
        total += best.numel()
    return right / total


def mutual_best(forward: Candidates, backward: Candidates) -> Tensor:
    """``[num_source]`` bool: whether a source entity's best target chooses it back."""
    best = forward.targets[:, 0]
    back = backward.targets[:, 0].index_select(0, best)
    return back == torch.arange(len(best), device=best.device)


def mutual_pairs(similarity: Similarity) -> Tensor:
    """``[num_pairs, 2]`` source and target entities each of which is the other's best."""
    forward = top_candidates(similarity, 1)
    mutual = mutual_best(forward, top_candidates(similarity.reversed(), 1))
    sources = mutual.nonzero().squeeze(1)
    return torch.stack([sources, forward.targets[sources, 0]], dim=1)
