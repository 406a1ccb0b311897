"""The candidate search of a local update: only affected entities are searched."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.em.local import LocalUpdate
from emea.matching.pair_table import PairTable, ScoredPairs
from emea.matching.similarity import Similarity
from emea.matching.two_sided import OneSided, Subset, TwoSided, one_sided

TINY = 1e-30
"""Smallest probability whose logarithm is taken."""

FEW_MORE = 0.05
"""Fewer further entities, relative to those that are recomputed, are not worth another round."""


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
            self.pairs = self.pairs.joined(proposed.kept(local.source[proposed.sources]))

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
        scores = self.similarity.of_pairs(rows, self.local.neural.targets[rows, best.indices])
        return self.sharpness[0] * scores - best.values.to(scores).clamp(min=TINY).log()

    def _forth(self, rows: Tensor) -> ScoredPairs:
        """Search the targets of some source entities."""
        part = Subset(self.whole.source & rows, self.whole.target)
        found = one_sided(part.similarity(self.similarity), self.k, self.sharpness[0])
        self.of_source[part.source] = torch.where(found.log_mass > -torch.inf, found.log_mass, 0.0)
        return _numbered(found, part.source, part.target)

    def _back(self, wanted: Tensor) -> ScoredPairs:
        """Search the source entities of targets whose denominators are not known yet."""
        part = Subset(self.whole.source, wanted & ~self.is_known)
        if not bool(part.target.any()):
            return self.pairs.kept(torch.zeros_like(self.pairs.sources, dtype=torch.bool))
        reverse = part.similarity(self.similarity).reversed()
        found = one_sided(reverse, self.k, self.sharpness[1])
        self.is_known = self.is_known | part.target
        self.of_target[part.target] = torch.where(found.log_mass > -torch.inf, found.log_mass, 0.0)
        targets, sources, scores = _numbered(found, part.target, part.source)
        return ScoredPairs(sources, targets, scores)


def _numbered(found: OneSided, rows: Tensor, columns: Tensor) -> ScoredPairs:
    """Return the pairs of a search among some entities, with their original numbers."""
    pairs = found.pairs()
    pairs = pairs.kept(pairs.scores > -torch.inf)
    ids = rows.nonzero().squeeze(1), columns.nonzero().squeeze(1)
    return ScoredPairs(ids[0][pairs.sources], ids[1][pairs.targets], pairs.scores)
