"""Restricts EM to the entities that a change of the graphs affects; others keep their beliefs."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.em.joint import JointReport
from emea.matching.beliefs import Beliefs
from emea.matching.candidates import top_candidates
from emea.matching.pair_table import PairRanking, PairTable, ScoredPairs
from emea.matching.similarity import Similarity
from emea.matching.two_sided import Subset

LEAST_KEPT = 0.01
"""Former candidates with a smaller probability do not compete with those of other entities."""


@dataclass(frozen=True, eq=False)
class LocalUpdate:
    """Marks the entities whose beliefs are recomputed, and holds the beliefs of the others.

    Args:
        source: ``[num_source]`` bool: source entities that are recomputed.
        target: ``[num_target]`` bool: affected target entities.
        unmatched: ``[num_target]`` bool: affected target entities that had no counterpart. The
            source entity that is most similar to one of them is recomputed, too.
        neural: Former beliefs of the neural model; rows of recomputed entities are arbitrary.
        joint: Former joint beliefs, likewise; ``None`` if the run has no EM.
    """

    source: Tensor
    target: Tensor
    unmatched: Tensor
    neural: Beliefs
    joint: Beliefs | None

    def to(self, device: torch.device) -> "LocalUpdate":
        """Return the same on a device."""
        joint = self.joint
        return LocalUpdate(
            self.source.to(device),
            self.target.to(device),
            self.unmatched.to(device),
            Beliefs(self.neural.targets.to(device), self.neural.probs.to(device)),
            None if joint is None else Beliefs(joint.targets.to(device), joint.probs.to(device)),
        )

    def numbers(self) -> dict[str, float]:
        """Return how many entities of both sides are recomputed, and their share."""
        source, target = int(self.source.sum()), int(self.target.sum())
        share = (source + target) / max(1, len(self.source) + len(self.target))
        return {"source": source, "target": target, "share": round(share, 4)}

    def with_nearest(self, similarity: Similarity) -> "LocalUpdate":
        """Recompute the source entities that are most similar to unmatched targets, too."""
        if bool(self.source.all()) or not bool(self.unmatched.any()):
            return self
        part = Subset(torch.ones_like(self.source), self.unmatched)
        nearest = top_candidates(part.similarity(similarity).reversed(), 1).targets[:, 0]
        source = self.source.clone()
        source[nearest] = True
        return replace(self, source=source)

    def rows(self, similarity: Similarity) -> Similarity:
        """Return the similarity of the recomputed source entities, numbered from 0."""
        return Subset(self.source, torch.ones_like(self.target)).similarity(similarity)

    def neural_beliefs(
        self, similarity: Similarity, beliefs_of: Callable[[Similarity], Beliefs]
    ) -> Beliefs:
        """Return new beliefs of the neural model for the recomputed entities, else former ones.

        Args:
            similarity: Similarity of all entities.
            beliefs_of: Computes the beliefs of all source entities of a similarity.
        """
        kept = self.neural
        if not bool(self.source.any()):
            return kept
        new = beliefs_of(self.rows(similarity))
        width = max(new.num_candidates, kept.num_candidates)
        targets, probs = _widened(kept.targets, width), _widened(kept.probs, width)
        targets, probs = targets.clone(), probs.to(new.probs.dtype, copy=True)
        targets[self.source] = _widened(new.targets, width)
        probs[self.source] = _widened(new.probs, width)
        return Beliefs(targets, probs)

    def kept_pairs(self, similarity: Similarity) -> ScoredPairs:
        """Return the probable former pairs of all entities that are not recomputed."""
        assert self.joint is not None, "only EM has joint beliefs"
        probs = self.joint.probs
        is_best = torch.zeros_like(probs, dtype=torch.bool)
        is_best.scatter_(1, self.joint.best_slots().unsqueeze(1), True)
        chosen = (probs >= LEAST_KEPT) | (is_best & (probs > 0))
        rows, slots = (chosen & ~self.source.unsqueeze(1)).nonzero(as_tuple=True)
        targets = self.joint.targets[rows, slots]
        return ScoredPairs(rows, targets, similarity.of_pairs(rows, targets))

    def kept_rows(self, table: PairTable) -> "KeptRows":
        """Return the former probabilities of the pairs of a table."""
        assert self.joint is not None, "only EM has joint beliefs"
        rows = torch.arange(table.num_source, device=table.targets.device).unsqueeze(1)
        held = (self.joint.probs > 0) & ~self.source.unsqueeze(1)
        keys, order = (rows * table.num_target + self.joint.targets)[held].sort()
        probs = torch.zeros_like(table.scores)
        if len(keys):
            place = torch.searchsorted(keys, table.keys()).clamp_(max=len(keys) - 1)
            found = (keys[place] == table.keys()) & table.filled
            probs = torch.where(found, self.joint.probs[held][order][place].to(probs), probs)
        return KeptRows(~self.source.unsqueeze(1), probs)

    def merged(self, report: JointReport) -> JointReport:
        """Return the report with the former beliefs and labels of entities not recomputed."""
        assert self.joint is not None, "only EM has joint beliefs"
        if bool(self.source.all()):
            return report
        new, kept, rows = report.beliefs, self.joint, self.source.unsqueeze(1)
        width = max(new.num_candidates, kept.num_candidates)
        beliefs = Beliefs(
            torch.where(rows, _widened(new.targets, width), _widened(kept.targets, width)),
            torch.where(
                rows, _widened(new.probs, width), _widened(kept.probs.to(new.probs), width)
            ),
        )
        labels = report.labels.copy()
        others = ~self.source.cpu().numpy()[labels[:, 0]]
        labels[others, 1] = kept.best_targets().cpu().numpy()[labels[others, 0]]
        ranking = None if report.ranking is None else self._merged_ranking(report.ranking)
        return replace(report, beliefs=beliefs, labels=labels, ranking=ranking)

    def _merged_ranking(self, ranking: PairRanking) -> PairRanking:
        """Rank the former candidates of entities that are not recomputed by their probabilities.

        The similarity of these pairs is not computed; it is 0 in the table.
        """
        assert self.joint is not None
        table, kept, rows = ranking.table, self.joint, self.source.unsqueeze(1)
        width = max(table.targets.shape[1], kept.num_candidates)
        former = _widened(kept.probs, width).to(ranking.scores)
        merged = PairTable(
            torch.where(rows, _widened(table.targets, width), _widened(kept.targets, width)),
            torch.where(rows, _widened(table.scores, width), 0.0),
            torch.where(rows, _widened(table.filled, width), former > 0),
            table.num_target,
        )
        return PairRanking(
            merged, torch.where(rows, _widened(ranking.scores, width, -torch.inf), former.log())
        )


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Holds the former probabilities of the pairs of a table.

    Args:
        rows: ``[num_source, 1]`` bool: entities that keep them.
        probs: ``[num_source, width]`` probabilities, 0 for pairs that were not candidates.
    """

    rows: Tensor
    probs: Tensor

    def put_into(self, values: Tensor, log: bool = False) -> Tensor:
        """Replace the values of entities that keep theirs; ``log`` means log probabilities."""
        return torch.where(self.rows, (self.probs.log() if log else self.probs).to(values), values)


def _widened(values: Tensor, width: int, filler: float = 0.0) -> Tensor:
    """Return the values, padded with empty slots to the width."""
    missing = width - values.shape[1]
    if not missing:
        return values
    return torch.cat([values, values.new_full((len(values), missing), filler)], dim=1)
