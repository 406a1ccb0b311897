"""The best candidates of each entity, and mutual best pairs."""

import logging
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching import scanned_search
from emea.matching.best_scores import log_sums
from emea.matching.pair_table import ScoredPairs
from emea.matching.similarity import Similarity
from emea.runtime.block_memory import in_smaller_blocks

logger = logging.getLogger(__name__)

LEAST_RECALL = 0.9
"""Recall of an approximate search below which a warning is logged."""

ROUNDING_STEPS = 8
"""Rounding errors by which two computations of one score may differ."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Holds the best targets of each source entity, and the softmax over the compared targets.

    Args:
        targets: ``[num_source, k]`` target ids, best first.
        scores: ``[num_source, k]`` their scores.
        log_mass: ``[num_source]`` logarithm of the softmax's denominator, if it has a sharpness.
        sharpness: Sharpness of the softmax.
    """

    targets: Tensor
    scores: Tensor
    log_mass: Tensor
    sharpness: float | None

    def pairs(self) -> ScoredPairs:
        """Return every entity with each of its candidates."""
        num_source, k = self.targets.shape
        rows = torch.arange(num_source, device=self.targets.device).repeat_interleave(k)
        return ScoredPairs(rows, self.targets.flatten(), self.scores.flatten())


@in_smaller_blocks
def top_candidates(
    similarity: Similarity, k: int, sharpness: float | None = None
) -> Candidates:
    """Return the k best targets of every source entity that the search finds.

    Args:
        similarity: Scores all pairs and chooses the targets to compare.
        k: Number of targets per entity.
        sharpness: Sharpness of the softmax; ``None`` to skip its denominator.
    """
    k = min(k, similarity.num_target)
    if scanned_search.usable(similarity, k):
        return Candidates(*scanned_search.scanned(similarity, k, sharpness), sharpness)
    scores = similarity.source.new_empty(similarity.num_source, k)
    targets = torch.empty(scores.shape, dtype=torch.int64, device=scores.device)
    log_mass = similarity.source.new_full((similarity.num_source,), -torch.inf)
    for block in similarity.search(k) if k else ():
        best, targets[block.rows] = block.best(k)
        scores[block.rows] = best
        if sharpness is not None:
            log_mass[block.rows] = log_sums(
                sharpness * block.scores, sharpness * best[:, 0]
            )
    return Candidates(targets, scores, log_mass, sharpness)


@in_smaller_blocks
def search_recall(similarity: Similarity, targets: Tensor, num_rows: int) -> float:
    """Return the share of found targets that are among the true best, on a sample of rows.

    A target counts if its score is at least the k-th best score, up to rounding. If targets tie
    for the last place, each of them counts.

    Args:
        similarity: The similarity that was searched.
        targets: ``[num_source, k]`` distinct targets that the search found.
        num_rows: Size of the sample.
    """
    generator = torch.Generator().manual_seed(0)
    sample = torch.randperm(similarity.num_source, generator=generator)[:num_rows]
    rounding = (
        ROUNDING_STEPS
        * torch.finfo(similarity.source.dtype).eps
        * abs(similarity.scale)
    )
    right = 0
    total = 0
    for rows, scores in similarity.blocks(sample.to(targets.device)):
        bound = scores.topk(targets.shape[1], dim=1).values[:, -1:]
        right += int((scores.gather(1, targets[rows]) >= bound - rounding).sum())
        total += len(rows) * targets.shape[1]
    return right / total


def warn_of_low_recall(recall: float) -> None:
    """Log a warning if a search misses too many of the best targets."""
    if recall < LEAST_RECALL:
        logger.warning(
            "The approximate search finds only %.0f%% of the best candidates, below %.0f%%. Set a "
            "larger search.shortlist (one_pass) or search.num_probes (kmeans), or search=exact.",
            100 * recall,
            100 * LEAST_RECALL,
        )


def mutual_best(best: Tensor, similarity: Similarity) -> Tensor:
    """Return ``[num_source]`` bool: whether the best target of a source entity chooses it back."""
    back = top_candidates(similarity.reversed(), 1).targets[:, 0].index_select(0, best)
    return back == torch.arange(len(best), device=best.device)


def mutual_pairs(similarity: Similarity) -> Tensor:
    """Return ``[num_pairs, 2]`` source and target entities that are each other's best."""
    best = top_candidates(similarity, 1).targets[:, 0]
    sources = mutual_best(best, similarity).nonzero().squeeze(1)
    return torch.stack([sources, best[sources]], dim=1)
