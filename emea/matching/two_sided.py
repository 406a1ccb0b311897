"""Candidates and their probabilities from both sides, also among some of the entities only."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.matching.candidates import Candidates, top_candidates
from emea.matching.pair_table import OUT_OF_THE_QUESTION, PairTable, ScoredPairs
from emea.matching.search import Scope, SearchGroup
from emea.matching.similarity import Similarity

NOTHING_LEFT = 1e-6
"""Smallest probability of entities that are not candidates, so that its log is finite."""


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
        over_source = (
            torch.where(table.filled, forth, -torch.inf).logsumexp(1).clamp(min=0)
        )
        nothing = torch.full_like(of_target, OUT_OF_THE_QUESTION)
        over_target = table.logsumexp_by_target(back, nothing).clamp(min=0)
        return forth - over_source.unsqueeze(1), back - over_target[table.targets]

    @staticmethod
    def log_rest(
        table: PairTable, log_probs: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return the log probability of all entities that are not candidates, for both sides."""
        forth, back = log_probs
        # the values of empty slots may overflow
        of_source = torch.where(table.filled, forth.exp(), 0.0).sum(1)
        of_target = table.sum_by_target(back.exp())
        rest = [
            (1 - mass).clamp(min=NOTHING_LEFT).log() for mass in (of_source, of_target)
        ]
        return rest[0], rest[1]


def two_sided(
    similarity: Similarity,
    k: int,
    sharpness: tuple[float, float],
    both: bool = True,
    forth: Candidates | None = None,
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
        forth = top_candidates(similarity, k, sharpness[0])
    back = top_candidates(similarity.reversed(), k, sharpness[1])
    pairs = forth.pairs()
    if both:
        found = back.pairs()
        pairs = pairs.joined(ScoredPairs(found.targets, found.sources, found.scores))
    return TwoSided(pairs, sharpness, (forth.log_mass, back.log_mass))


@dataclass(frozen=True, eq=False)
class Subset:
    """Marks some entities of both sides, for example those without a label.

    Args:
        source: ``[num_source]`` bool: whether a source entity belongs to the subset.
        target: ``[num_target]`` bool: whether a target entity belongs to the subset.
    """

    source: Tensor
    target: Tensor

    @classmethod
    def unlabelled(cls, similarity: Similarity, labels: Tensor) -> "Subset":
        """Return the entities that do not occur in the labels."""
        sizes = similarity.num_source, similarity.num_target
        sides = [
            torch.ones(size, dtype=torch.bool, device=labels.device) for size in sizes
        ]
        for side, named in zip(sides, labels.T, strict=True):
            side[named] = False
        return cls(sides[0], sides[1])

    def ids(self) -> tuple[Tensor, Tensor]:
        """Return these entities of both sides, ascending."""
        return self.source.nonzero().squeeze(1), self.target.nonzero().squeeze(1)

    def similarity(self, similarity: Similarity) -> Similarity:
        """Return the similarity of these entities, numbered from 0, with the same search."""
        rows, columns = self.ids()
        scope = None
        if similarity.scope is not None:
            scope = SubsetScope(similarity.scope, self.source, self.target)
        return replace(similarity.restricted(rows, columns), scope=scope)

    def between(self, links: Tensor) -> Tensor:
        """Return the links between these entities."""
        return links[self.source[links[:, 0]] & self.target[links[:, 1]]]

    def numbered(self, links: Tensor) -> Tensor:
        """Return links between these entities, numbered as in ``similarity``."""
        sides = zip((self.source, self.target), links.T, strict=True)
        return torch.stack(
            [(is_free.cumsum(0) - 1)[ids] for is_free, ids in sides], dim=1
        )

    def restored(self, sides: TwoSided) -> TwoSided:
        """Return the result of a search among these entities, with their original numbers."""
        rows, columns = self.ids()
        sources, targets, scores = sides.pairs
        masses = []
        for ids, is_free, mass in zip(
            (rows, columns), (self.source, self.target), sides.log_mass, strict=True
        ):
            whole = mass.new_zeros(len(is_free))
            whole[ids] = torch.where(mass > -torch.inf, mass, 0.0)
            masses.append(whole)
        found = (
            scores > -torch.inf
        )  # an approximate search may find too few of these entities
        pairs = ScoredPairs(
            rows[sources[found]], columns[targets[found]], scores[found]
        )
        return TwoSided(pairs, sides.sharpness, (masses[0], masses[1]))


@dataclass(frozen=True, eq=False)
class SubsetScope:
    """Restricts an approximate search to a subset of the entities, numbered from 0.

    The search has to return more targets, in proportion to the number of the other ones.

    Args:
        scope: The scope of all entities.
        source: ``[num_source]`` bool: whether a source entity belongs to the subset.
        target: ``[num_target]`` bool: whether a target entity belongs to the subset.
    """

    scope: Scope
    source: Tensor
    target: Tensor

    def groups(self, least: int) -> Iterator[SearchGroup]:
        """Yield every source entity of the subset once.

        Args:
            least: Number of targets that every source entity needs.
        """
        num_all = len(self.target)
        num_free = int(self.target.sum())
        if not num_free:
            return
        # the number of each entity within the subset
        row_numbers = self.source.cumsum(0) - 1
        column_numbers = self.target.cumsum(0) - 1
        for rows, columns, dots in self.scope.groups(
            min(num_all, -(-least * num_all // num_free))
        ):
            kept = self.source[rows]
            rows = row_numbers[rows[kept]]
            dots = None if dots is None else dots[kept]
            if columns.dim() == 2:
                assert dots is not None, (
                    "columns of each row come with their dot products"
                )
                columns = columns[kept]
                dots = dots.masked_fill(~self.target[columns], -torch.inf)
                yield SearchGroup(rows, column_numbers[columns].clamp(min=0), dots)
                continue
            free = self.target[columns]
            columns = column_numbers[columns[free]]
            dots = None if dots is None else dots[:, free]
            if len(columns) < least:  # compare with all targets of the subset
                columns = torch.arange(num_free, device=columns.device)
                dots = None
            if len(rows):
                yield SearchGroup(rows, columns, dots)

    def reversed(self) -> "SubsetScope":
        """Return the scope of a search from the target side."""
        return SubsetScope(self.scope.reversed(), self.target, self.source)
