"""Decoders: best candidate, mutual pairs, Sinkhorn and one-to-one assignment."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from emea.answer.settings import HungarianSettings
from emea.data.arrays import IntArray
from emea.data.settings import Cardinality
from emea.matching.beliefs import Beliefs
from emea.matching.many_matching import ManyMatching

MORE_LIKELY = 0.5
"""Least probability of a match if both entities may have further matches."""


def with_certain(beliefs: Beliefs, labels: Tensor, cardinality: Cardinality) -> Beliefs:
    """Return the beliefs in which labels are certain, and pairs that contradict them impossible.

    An entity may have several labels if the cardinality allows them. Then, only labels have
    probability 1.
    """
    if cardinality == Cardinality.ONE_TO_ONE:
        return beliefs.clamped(labels)
    pairs = beliefs.pairs()
    probs = beliefs.probs[beliefs.probs > 0].double()
    num_target = 1 + max(
        beliefs.num_target, int(labels[:, 1].max()) if len(labels) else 0
    )
    keys, known = (part[:, 0] * num_target + part[:, 1] for part in (pairs, labels))
    kept = ~torch.isin(keys, known)
    for column in cardinality.unique_sides.values():
        kept &= ~torch.isin(pairs[:, column], labels[:, column])
    return ManyMatching.of_pairs(
        torch.cat([labels, pairs[kept]]),
        torch.cat([probs.new_ones(len(labels)), probs[kept].clamp(max=BELOW_ONE)]),
        beliefs.num_source,
        num_target,
    ).beliefs()


BELOW_ONE = 1 - 1e-12
"""Largest probability of a match that is not a label, if an entity may have several matches."""


@dataclass(frozen=True)
class ManyAnswer:
    """Selects all pairs that a cardinality allows, if entities may have several counterparts.

    An entity with at most one counterpart has its most probable one. If both entities of a pair may
    have several, the pair must be more probable than not.

    Args:
        cardinality: How many counterparts an entity may have.
    """

    cardinality: Cardinality

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """Select the pairs; labels are kept."""
        found = with_certain(beliefs, labels, self.cardinality)
        if self.cardinality.one_target:
            return BestAnswer()(found, labels)
        chosen = found.probs >= MORE_LIKELY
        if self.cardinality.one_source:
            sources = torch.arange(found.num_source, device=found.targets.device)
            chosen = chosen_sources(found)[found.targets] == sources.unsqueeze(1)
        return replace(found, probs=found.probs * chosen)


def accepted(
    answer: Beliefs,
    threshold: float,
    labels: Tensor,
    cardinality: Cardinality = Cardinality.ONE_TO_ONE,
) -> Beliefs:
    """Remove matches below a threshold; labels are kept.

    Args:
        answer: Beliefs with one slot; probability 0 means no match.
        threshold: Minimum probability; above 1, only labels are kept.
        labels: ``[num_labels, 2]`` links that are certain.
        cardinality: How many counterparts an entity may have.
    """
    # In double precision, so that a threshold taken from a probability accepts that probability.
    probs = answer.probs.masked_fill(answer.probs.double() < threshold, 0)
    return with_certain(replace(answer, probs=probs), labels, cardinality)


@dataclass(frozen=True)
class BestAnswer:
    """Selects the most probable candidate of each source entity (``decoding=greedy``).

    Several source entities can get the same target.
    """

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """Select at most one target for each source entity.

        Args:
            beliefs: Candidates and probabilities.
            labels: ``[num_labels, 2]`` links that are certain.

        Returns:
            Beliefs with one slot; probability 0 means no match.
        """
        slots = beliefs.best_slots().unsqueeze(1)
        best = Beliefs(beliefs.targets.gather(1, slots), beliefs.probs.gather(1, slots))
        return best.clamped(labels)


LEAST_SECOND = 0.1
"""Minimum probability of a match that is not the best candidate of its source entity. On zh at 5%
(LightEA, split seed 11), the F1 of 1,000 validation links is .764 with 0, .791 with .01, .794 with
.1 and .794 with .5."""


@dataclass(frozen=True)
class OneToOneAnswer:
    """Selects the most probable pairs first, each entity once (``decoding=one_to_one``).

    A pair is selected if both of its entities are still free. A source entity whose best candidate
    belongs to a more probable pair gets its next free candidate, if that has a probability of at
    least ``LEAST_SECOND``; otherwise it stays unmatched. Probabilities do not change.

    Time and memory are those of sorting the candidates. Ties go to the smallest id, which is a
    random choice because readers shuffle the ids.
    """

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """Select at most one target for each source entity and the reverse; labels are kept."""
        free = beliefs.without(labels)
        is_best = torch.zeros_like(free.probs, dtype=torch.bool)
        is_best.scatter_(1, free.best_slots().unsqueeze(1), True)
        is_offered = (free.probs >= LEAST_SECOND) | (is_best & (free.probs > 0))
        rows, slots = is_offered.nonzero(as_tuple=True)

        # the most probable pairs first
        order = torch.argsort(free.probs[rows, slots], descending=True, stable=True)
        rows = rows[order]
        slots = slots[order]
        chosen = _first_of_each(rows.tolist(), free.targets[rows, slots].tolist())

        taken = torch.zeros_like(free.probs)
        rows = rows[chosen]
        slots = slots[chosen]
        taken[rows, slots] = free.probs[rows, slots]
        return BestAnswer()(replace(free, probs=taken), labels)


def _first_of_each(sources: Sequence[int], targets: Sequence[int]) -> list[int]:
    """Return the places of pairs whose entities are in none of the pairs chosen before."""
    used_sources: set[int] = set()
    used_targets: set[int] = set()
    places = []
    for place, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if source not in used_sources and target not in used_targets:
            places.append(place)
            used_sources.add(source)
            used_targets.add(target)
    return places


@dataclass(frozen=True)
class MutualAnswer:
    """Selects pairs in which each entity is the other's best candidate (``decoding=mutual``).

    All other entities stay unmatched. A target has no beliefs, so its best candidate is the source
    entity with the strongest belief in it. Ties go to the smallest id, which is a random choice
    because readers shuffle the ids.
    """

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """Select the mutual pairs; labels are kept."""
        free = beliefs.without(labels)
        wanted = chosen_sources(free)[free.best_targets()]
        mutual = wanted == torch.arange(free.num_source, device=wanted.device)
        return BestAnswer()(
            replace(free, probs=free.probs * mutual.unsqueeze(1)), labels
        )


def chosen_sources(beliefs: Beliefs) -> Tensor:
    """Return the best source entity of each target, or ``num_source``, ``[num_target]``."""
    rows, slots = (beliefs.probs > 0).nonzero(as_tuple=True)
    targets = beliefs.targets[rows, slots]
    probs = beliefs.probs[rows, slots]
    best = probs.new_zeros(beliefs.num_target)
    best.scatter_reduce_(0, targets, probs, "amax")
    is_best = probs == best[targets]
    chosen = torch.full_like(best, beliefs.num_source, dtype=torch.int64)
    return chosen.scatter_reduce_(0, targets[is_best], rows[is_best], "amin")


LEAST_REST = 1e-6
"""Minimum probability of all targets that are not candidates. Without it, two source entities that
are certain of the same target could not choose another one."""


@dataclass(frozen=True)
class SinkhornAnswer:
    """Normalises both sides in turn, then selects the best candidates (``decoding=sinkhorn``).

    The beliefs of a source entity sum to 1, including the targets that are not candidates. The
    beliefs in a target may sum to at most 1, because it has at most one counterpart. If they sum
    to more, they are all divided by the sum, and the source entities shift to their other
    candidates. A smaller sum is not changed, because not every target has a counterpart. A
    one-to-one matching therefore does not change. ``LEAST_REST`` keeps beliefs below 1.

    Only candidates are stored: a round costs ``num_source * num_candidates``.

    Args:
        rounds: Number of normalisations of each side; later ones change little.
    """

    rounds: int = 20

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """Select the best candidates after the last round, with their new probabilities."""
        return BestAnswer()(self.balanced(beliefs.without(labels)), labels)

    def balanced(self, beliefs: Beliefs) -> Beliefs:
        """Return the same candidates with probabilities that are normalised on both sides."""
        # in double precision, because beliefs can span many magnitudes
        exact = replace(beliefs, probs=beliefs.probs.double())
        left = exact.rest_prob.clamp(min=LEAST_REST).unsqueeze(1)
        own = torch.cat([exact.probs, left], dim=1)
        shares = torch.softmax(own.log(), dim=1)
        probs = shares[:, :-1]
        rest = shares[:, -1:]
        for _ in range(self.rounds):
            probs = (
                probs
                / claims(replace(beliefs, probs=probs)).clamp(min=1)[beliefs.targets]
            )
            total = probs.sum(1, keepdim=True) + rest
            probs = probs / total
            rest = rest / total
        return replace(beliefs, probs=probs)


SMALLEST_SUM = 1e-300
"""Smallest sum of beliefs to divide by, in double precision."""


@dataclass(frozen=True)
class BalancedAnswer:
    """Normalises rows and columns in turn, as LightEA's code does (``decoding=balanced``).

    Each entity of both sides is assumed to have exactly one counterpart among the candidates.
    This holds within the entities of test links (``protocol=test_pool``), but not in whole graphs.
    There, an entity without a counterpart takes that of another entity. ``SinkhornAnswer`` lets
    entities stay unmatched.

    Only candidates are stored: a round costs ``num_source * num_candidates``.

    Args:
        rounds: Number of normalisations of each side; LightEA's code has 15.

    Examples:
        >>> targets = torch.tensor([[0, 1], [0, 1]])
        >>> beliefs = Beliefs(targets, torch.tensor([[0.9, 0.1], [0.6, 0.4]]))
        >>> answer = BalancedAnswer()(beliefs, torch.zeros(0, 2, dtype=torch.int64))
        >>> answer.best_targets().tolist()
        [0, 1]
    """

    rounds: int = 15

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """Select the best candidates after the last round, with their new probabilities."""
        return BestAnswer()(self.balanced(beliefs.without(labels)), labels)

    def balanced(self, beliefs: Beliefs) -> Beliefs:
        """Return the same candidates with probabilities that are normalised on both sides."""
        probs = _rows_to_one(beliefs.probs.double())
        for _ in range(self.rounds):
            of_target = claims(replace(beliefs, probs=probs)).clamp(min=SMALLEST_SUM)
            # rows are normalised last: it changes no ranking, and their sums stay at most 1
            probs = _rows_to_one(probs / of_target[beliefs.targets])
        return replace(beliefs, probs=probs)


def _rows_to_one(probs: Tensor) -> Tensor:
    """Scale each row to sum 1; empty rows stay empty."""
    return probs / probs.sum(1, keepdim=True).clamp(min=SMALLEST_SUM)


def claims(beliefs: Beliefs) -> Tensor:
    """Return ``[num_target]`` sum of the beliefs in each target."""
    total = beliefs.probs.new_zeros(beliefs.num_target)
    return total.scatter_add_(0, beliefs.targets.flatten(), beliefs.probs.flatten())


@dataclass(frozen=True)
class HungarianAnswer:
    """Selects the most probable one-to-one assignment (``decoding=hungarian``).

    It maximises the sum of log-probabilities over all source entities. Each of them gets one of its
    candidates or stays unmatched, which counts as ``unmatched_prob``. The solution is exact on the
    candidates and uses shortest augmenting paths on one core.

    Memory is linear in the number of candidates. Time grows with the square of the number of
    entities, and it grows as ``unmatched_prob`` becomes smaller. For large graphs use
    ``SinkhornAnswer``, whose time is linear.

    Args:
        unmatched_prob: Only candidates with a higher probability are selected.

    Examples:
        >>> targets = torch.tensor([[0, 1], [0, 1]])
        >>> beliefs = Beliefs(targets, torch.tensor([[0.9, 0.1], [0.6, 0.4]]))
        >>> answer = HungarianAnswer(0.01)(beliefs, torch.zeros(0, 2, dtype=torch.int64))
        >>> answer.best_targets().tolist()
        [0, 1]
    """

    unmatched_prob: float = HungarianSettings.unmatched_prob

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """Select the assigned pairs; labels are kept."""
        free = beliefs.without(labels)
        assigned = torch.from_numpy(self.assigned_targets(free)).to(free.targets.device)
        taken = free.targets == assigned.unsqueeze(1)
        return BestAnswer()(replace(free, probs=free.probs * taken), labels)

    def assigned_targets(self, beliefs: Beliefs) -> IntArray:
        """Return the target of each source entity; ``num_target`` or more means no match."""
        # scipy takes long to load, and most runs decode without it
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import min_weight_full_bipartite_matching

        probs = beliefs.probs.double().cpu().numpy()
        targets = beliefs.targets.cpu().numpy()
        rows, slots = np.nonzero(
            probs > self.unmatched_prob
        )  # other candidates are never selected
        everyone = np.arange(beliefs.num_source)
        # An extra column for each source entity lets it stay unmatched, so a full matching exists.
        columns = np.concatenate([targets[rows, slots], beliefs.num_target + everyone])
        unmatched = np.full(len(everyone), -math.log(self.unmatched_prob))
        costs = np.concatenate([-np.log(probs[rows, slots]), unmatched])
        shape = (beliefs.num_source, beliefs.num_target + beliefs.num_source)
        # scipy treats a cost of 0 as a missing edge. Adding 1 to all costs changes no choice.
        graph = csr_array(
            (costs + 1, (np.concatenate([rows, everyone]), columns)), shape=shape
        )
        assigned: IntArray = min_weight_full_bipartite_matching(graph)[1].astype(
            np.int64
        )
        return assigned
