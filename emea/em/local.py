"""Restricts EM to the entities that a change of the graphs affects; others keep their beliefs."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.matching.candidates import Candidates, top_candidates
from emea.matching.pair_table import PairTable, ScoredPairs, widened
from emea.matching.similarity import Similarity
from emea.matching.two_sided import Subset, TwoSided

TINY = 1e-30
"""Smallest probability whose logarithm is taken."""

FEW_MORE = 0.05
"""Fewer further entities, relative to those that are recomputed, are not worth another round."""

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
        return LocalUpdate(
            self.source.to(device),
            self.target.to(device),
            self.unmatched.to(device),
            self.neural.to(device),
            None if self.joint is None else self.joint.to(device),
        )

    def numbers(self) -> dict[str, float]:
        """Return how many entities of both sides are recomputed, and their share."""
        source = int(self.source.sum())
        target = int(self.target.sum())
        share = (source + target) / max(1, len(self.source) + len(self.target))
        return {"source": source, "target": target, "share": round(share, 4)}

    def with_nearest(self, similarity: Similarity) -> "LocalUpdate":
        """Recompute the source entities that are most similar to unmatched targets, too."""
        if bool(self.source.all()) or not bool(self.unmatched.any()):
            return self
        part = Subset(torch.ones_like(self.source), self.unmatched)
        nearest = top_candidates(part.similarity(similarity).reversed(), 1).targets[
            :, 0
        ]
        source = self.source.clone()
        source[nearest] = True
        return replace(self, source=source)

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
        part = Subset(self.source, torch.ones_like(self.target))
        new = beliefs_of(part.similarity(similarity))
        width = max(new.num_candidates, kept.num_candidates)
        targets = widened(kept.targets, width)
        probs = widened(kept.probs, width)
        targets = targets.clone()
        probs = probs.to(new.probs.dtype, copy=True)
        targets[self.source] = widened(new.targets, width)
        probs[self.source] = widened(new.probs, width)
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

    def kept_probs(self, table: PairTable) -> Tensor:
        """Return the former probabilities of a table's pairs; 0 if they were not candidates."""
        assert self.joint is not None, "only EM has joint beliefs"
        rows = torch.arange(table.num_source, device=table.targets.device).unsqueeze(1)
        held = (self.joint.probs > 0) & ~self.source.unsqueeze(1)
        keys, order = (rows * table.num_target + self.joint.targets)[held].sort()
        probs = torch.zeros_like(table.scores)
        if len(keys):
            place = torch.searchsorted(keys, table.keys()).clamp_(max=len(keys) - 1)
            found = (keys[place] == table.keys()) & table.filled
            probs = torch.where(
                found, self.joint.probs[held][order][place].to(probs), probs
            )
        return probs

    def put_former(self, former: Tensor, values: Tensor) -> Tensor:
        """Replace the values of entities that are not recomputed by former ones."""
        return torch.where(~self.source.unsqueeze(1), former.to(values), values)


@dataclass(frozen=True, eq=False)
class WholeSearch:
    """Holds the candidates of all entities, with the attributes of :class:`LocalSearch`.

    Args:
        found: The result of the search.
        free: The entities for which implied pairs are wanted; ``None`` means all.
    """

    found: TwoSided
    free: Subset | None

    local = None

    @property
    def pairs(self) -> ScoredPairs:
        """Best candidates of every entity."""
        return self.found.pairs

    def sides(self, table: PairTable) -> TwoSided:
        """Return the result of the search."""
        return self.found


class LocalSearch:
    """Searches the candidates of affected entities, and scores the pairs of others as needed.

    The softmax of a target entity over all source entities is computed when one of the
    recomputed entities has the target as a candidate. The softmax of a source entity that is not
    recomputed follows from its former probabilities.

    Args:
        similarity: Scores all pairs.
        k: Number of candidates per entity.
        sharpness: Sharpness of the softmaxes over targets and over sources.
        both: Whether target entities propose candidates, too.
        local: The affected entities.
        whole: Entities that take part at all.

    Attributes:
        pairs: Best candidates of the affected entities; their source entities are recomputed.
    """

    def __init__(
        self,
        similarity: Similarity,
        k: int,
        *,
        sharpness: tuple[float, float],
        both: bool,
        local: LocalUpdate,
        whole: Subset,
    ) -> None:
        self.similarity = similarity
        self.k = k
        self.sharpness = sharpness
        self.local = local
        self.whole = whole
        self.of_source = self._former_mass()
        self.of_target = similarity.target.new_zeros(similarity.num_target)
        self.of_source[~whole.source] = 0
        self.is_known = ~whole.target
        self.pairs = self._forth(local.source)
        wanted = local.target.clone()
        wanted[self.pairs.targets] = True
        proposed = self._back(wanted)
        if both:
            self.pairs = self.pairs.joined(
                proposed.kept(local.source[proposed.sources])
            )

    @property
    def free(self) -> Subset:
        """The entities for which implied pairs are wanted."""
        return Subset(self.whole.source & self.local.source, self.whole.target)

    def widen(self, rows: Tensor) -> bool:
        """Recompute further source entities unless they are few, and return whether it does.

        Args:
            rows: ``[num_source]`` bool: the entities; they may contain earlier ones.
        """
        rows = rows & self.whole.source & ~self.local.source
        if int(rows.sum()) <= FEW_MORE * int(self.local.source.sum()):
            return False
        self.pairs = self.pairs.joined(self._forth(rows))
        self.local = replace(self.local, source=self.local.source | rows)
        return True

    def sides(self, table: PairTable) -> TwoSided:
        """Return the result of the search, with the denominators that a table needs."""
        slots = table.filled & self.local.source.unsqueeze(1)
        wanted = torch.zeros_like(self.is_known)
        wanted[table.targets[slots]] = True
        self._back(wanted)
        return TwoSided(self.pairs, self.sharpness, (self.of_source, self.of_target))

    def _former_mass(self) -> Tensor:
        """Return log denominators for which the former best candidates keep their probabilities."""
        best = self.local.neural.probs.max(1)
        rows = torch.arange(self.similarity.num_source, device=best.values.device)
        scores = self.similarity.of_pairs(
            rows, self.local.neural.targets[rows, best.indices]
        )
        return self.sharpness[0] * scores - best.values.to(scores).clamp(min=TINY).log()

    def _forth(self, rows: Tensor) -> ScoredPairs:
        """Search the targets of some source entities."""
        part = Subset(self.whole.source & rows, self.whole.target)
        found = top_candidates(
            part.similarity(self.similarity), self.k, self.sharpness[0]
        )
        self.of_source[part.source] = torch.where(
            found.log_mass > -torch.inf, found.log_mass, 0.0
        )
        return _numbered(found, part.source, part.target)

    def _back(self, wanted: Tensor) -> ScoredPairs:
        """Search the source entities of targets whose denominators are not known yet."""
        part = Subset(self.whole.source, wanted & ~self.is_known)
        if not bool(part.target.any()):
            return self.pairs.kept(
                torch.zeros_like(self.pairs.sources, dtype=torch.bool)
            )
        reverse = part.similarity(self.similarity).reversed()
        found = top_candidates(reverse, self.k, self.sharpness[1])
        self.is_known = self.is_known | part.target
        self.of_target[part.target] = torch.where(
            found.log_mass > -torch.inf, found.log_mass, 0.0
        )
        targets, sources, scores = _numbered(found, part.target, part.source)
        return ScoredPairs(sources, targets, scores)


def _numbered(found: Candidates, rows: Tensor, columns: Tensor) -> ScoredPairs:
    """Return the pairs of a search among some entities, with their original numbers."""
    pairs = found.pairs()
    pairs = pairs.kept(pairs.scores > -torch.inf)
    ids = rows.nonzero().squeeze(1), columns.nonzero().squeeze(1)
    return ScoredPairs(ids[0][pairs.sources], ids[1][pairs.targets], pairs.scores)
