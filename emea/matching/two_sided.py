"""Candidates and their probabilities from both sides."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching import scanned_search
from emea.matching.best_scores import log_sums
from emea.matching.pair_table import OUT_OF_THE_QUESTION, PairTable, ScoredPairs
from emea.matching.similarity import Similarity
from emea.runtime.block_memory import in_smaller_blocks

NOTHING_LEFT = 1e-6
"""Smallest probability of entities that are not candidates, so that its log is finite."""


@dataclass(frozen=True, eq=False)
class OneSided:
    """Holds the candidates of every entity of one side, and the softmax over the other side.

    Args:
        targets: ``[num_source, k]`` the best targets, best first.
        scores: ``[num_source, k]`` their scores.
        sharpness: Sharpness of the softmax.
        log_mass: ``[num_source]`` logarithm of the softmax's denominator.
    """

    targets: Tensor
    scores: Tensor
    sharpness: float
    log_mass: Tensor

    def pairs(self) -> ScoredPairs:
        """Return every entity with each of its candidates."""
        num_source, k = self.targets.shape
        rows = torch.arange(num_source, device=self.targets.device).repeat_interleave(k)
        return ScoredPairs(rows, self.targets.flatten(), self.scores.flatten())


@dataclass(frozen=True, eq=False)
class TwoSided:
    """Holds the neural model's candidates and the softmax over all entities of the other side.

    Args:
        pairs: Best candidates of every entity.
        sharpness: Sharpness of the softmaxes over targets and over sources.
        log_mass: ``[num_source]`` and ``[num_target]`` logarithms of the softmaxes' denominators.
    """

    pairs: ScoredPairs
    sharpness: tuple[float, float]
    log_mass: tuple[Tensor, Tensor]

    def log_probs(self, table: PairTable) -> tuple[Tensor, Tensor]:
        """Return log q(e'|e) and log q(e|e') of each pair, ``[num_source, width]``.

        The denominator lacks pairs that an approximate search missed. If the sum of the
        probabilities of an entity's pairs would exceed 1, they are normalised to 1.
        """
        of_source, of_target = self.log_mass
        forth = self.sharpness[0] * table.scores - of_source.unsqueeze(1)
        back = self.sharpness[1] * table.scores - of_target[table.targets]
        over_source = torch.where(table.filled, forth, -torch.inf).logsumexp(1).clamp(min=0)
        nothing = torch.full_like(of_target, OUT_OF_THE_QUESTION)
        over_target = table.logsumexp_by_target(back, nothing).clamp(min=0)
        return forth - over_source.unsqueeze(1), back - over_target[table.targets]

    def log_rest(
        self, table: PairTable, log_probs: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the log probability of all entities that are not candidates, for both sides.

        Args:
            table: The pairs.
            log_probs: Result of ``log_probs`` for this table, if it is known.
        """
        forth, back = log_probs or self.log_probs(table)
        # the values of empty slots may overflow
        of_source = torch.where(table.filled, forth.exp(), 0.0).sum(1)
        of_target = table.sum_by_target(back.exp())
        rest = [(1 - mass).clamp(min=NOTHING_LEFT).log() for mass in (of_source, of_target)]
        return rest[0], rest[1]


def two_sided(
    similarity: Similarity,
    k: int,
    sharpness: tuple[float, float],
    both: bool = True,
    forth: OneSided | None = None,
) -> TwoSided:
    """Search candidates from both sides.

    Args:
        similarity: Scores all pairs.
        k: Number of candidates per entity.
        sharpness: Sharpness of the softmaxes over targets and over sources.
        both: Whether target entities propose candidates, too.
        forth: An earlier search from the source side with the same settings.
    """
    if forth is None:
        forth = one_sided(similarity, k, sharpness[0])
    back = one_sided(similarity.reversed(), k, sharpness[1])
    pairs = forth.pairs()
    if both:
        found = back.pairs()
        pairs = pairs.joined(ScoredPairs(found.targets, found.sources, found.scores))
    return TwoSided(pairs, sharpness, (forth.log_mass, back.log_mass))


@in_smaller_blocks
def one_sided(similarity: Similarity, k: int, sharpness: float) -> OneSided:
    """Return the k best targets of every source entity, and its softmax denominator."""
    k = min(k, similarity.num_target)
    if scanned_search.usable(similarity, k):
        found = scanned_search.scanned(similarity, k, sharpness)
        return OneSided(found.targets, found.scores, sharpness, found.log_mass)
    scores = similarity.source.new_empty(similarity.num_source, k)
    targets = torch.empty(scores.shape, dtype=torch.int64, device=scores.device)
    mass = similarity.source.new_full((similarity.num_source,), -torch.inf)
    for block in similarity.search(k) if k else ():
        best, targets[block.rows] = block.best(k)
        scores[block.rows] = best
        mass[block.rows] = log_sums(sharpness * block.scores, sharpness * best[:, 0])
    return OneSided(targets, scores, sharpness, mass)
