"""The entities without a label, and a search among them only."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.matching.pair_table import ScoredPairs
from emea.matching.similarity import Similarity
from emea.matching.two_sided import TwoSided


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Entities of both sides that no label names.

    Args:
        source: ``[num_source]`` bool.
        target: ``[num_target]`` bool.
    """

    source: Tensor
    target: Tensor

    @classmethod
    def of(cls, similarity: Similarity, labels: Tensor) -> "Unlabelled":
        """Return the entities that the labels leave."""
        sizes = similarity.num_source, similarity.num_target
        sides = [torch.ones(size, dtype=torch.bool, device=labels.device) for size in sizes]
        for side, named in zip(sides, labels.T, strict=True):
            side[named] = False
        return cls(sides[0], sides[1])

    def similarity(self, similarity: Similarity) -> Similarity:
        """Return the similarity of these entities, numbered from 0 and searched as before."""
        rows, columns = self.source.nonzero().squeeze(1), self.target.nonzero().squeeze(1)
        scope = None
        if similarity.scope is not None:
            scope = UnlabelledScope(similarity.scope, self.source, self.target)
        return replace(similarity.restricted(rows, columns), scope=scope)

    def between(self, links: Tensor) -> Tensor:
        """Return the links between these entities."""
        return links[self.source[links[:, 0]] & self.target[links[:, 1]]]

    def numbered(self, links: Tensor) -> Tensor:
        """Return links between these entities, numbered as in ``similarity``."""
        sides = zip((self.source, self.target), links.T, strict=True)
        return torch.stack([(is_free.cumsum(0) - 1)[ids] for is_free, ids in sides], dim=1)

    def restored(self, sides: TwoSided) -> TwoSided:
        """Return what a search among these entities found, with their original numbers."""
        rows, columns = self.source.nonzero().squeeze(1), self.target.nonzero().squeeze(1)
        sources, targets, scores = sides.pairs
        masses = []
        for ids, is_free, mass in zip(
            (rows, columns), (self.source, self.target), sides.log_mass, strict=True
        ):
            whole = mass.new_zeros(len(is_free))
            whole[ids] = mass
            masses.append(whole)
        pairs = ScoredPairs(rows[sources], columns[targets], scores)
        return TwoSided(pairs, sides.sharpness, (masses[0], masses[1]))
