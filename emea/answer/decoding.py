"""From beliefs to an answer: best candidate, mutual pairs, Sinkhorn or assignment."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from torch import Tensor

from emea.data.arrays import IntArray
from emea.matching.beliefs import Beliefs


def accepted(answer: Beliefs, threshold: float, labels: Tensor) -> Beliefs:
    """The answer without what is less probable than a threshold; labels stay.

    Args:
        answer: over one slot, probability 0 where an entity has no match.
        threshold: least probability; beyond 1 nothing but the labels is left.
        labels: ``[num_labels, 2]`` links that are certain.
    """
    # in double precision: a threshold that was itself a probability must meet it exactly
    probs = answer.probs.masked_fill(answer.probs.double() < threshold, 0)
    return replace(answer, probs=probs).clamped(labels)


@dataclass(frozen=True)
class BestAnswer:
    """Each source entity takes its most probable candidate, whoever else takes it."""

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """At most one target for each source entity.

        Args:
            beliefs: what to choose from.
            labels: ``[num_labels, 2]`` links that are certain.

        Returns:
            Beliefs over one slot; an entity without a match has probability 0 there.
        """
        slots = beliefs.best_slots().unsqueeze(1)
        best = Beliefs(beliefs.targets.gather(1, slots), beliefs.probs.gather(1, slots))
        return best.clamped(labels)


@dataclass(frozen=True)
class MutualAnswer:
    """A pair is kept where each is the other's most probable; all others stay unmatched.

    A target entity has no beliefs of its own: it chooses the source entity that believes in it
    most. Of several that do so equally it takes the one with the smallest id, which is a random
    one, since readers shuffle the ids.
    """

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """The mutual pairs, and the labels."""
        free = beliefs.without(labels)
        wanted = chosen_sources(free)[free.best_targets()]
        mutual = wanted == torch.arange(free.num_source, device=wanted.device)
        return BestAnswer()(replace(free, probs=free.probs * mutual.unsqueeze(1)), labels)


def chosen_sources(beliefs: Beliefs) -> Tensor:
    """``[num_target]`` the source entity each target chooses, ``num_source`` where it has none."""
    rows, slots = (beliefs.probs > 0).nonzero(as_tuple=True)
    targets, probs = beliefs.targets[rows, slots], beliefs.probs[rows, slots]
    best = probs.new_zeros(beliefs.num_target)
    best.scatter_reduce_(0, targets, probs, "amax")
    is_best = probs == best[targets]
    chosen = torch.full_like(best, beliefs.num_source, dtype=torch.int64)
    return chosen.scatter_reduce_(0, targets[is_best], rows[is_best], "amin")


LEAST_REST = 1e-6
"""Least probability of all targets that are no candidates: single precision cannot tell a much
smaller one from none, and it makes all the difference to those who are sure of the same target."""


@dataclass(frozen=True)
class SinkhornAnswer:
    """Both sides are normalised in turn; then each source entity takes its best candidate.

    What a source entity believes sums to 1, with what it believes of targets that are no
    candidates. What is believed of a target must sum to at most 1, since it is the counterpart
    of one entity: where more is claimed, everybody's claim is cut by the same factor, and the
    claimants turn to their other candidates. Less than 1 is left as it is, because not every
    target has a counterpart; so a matching that is one to one already does not change. Nobody is
    quite certain (``LEAST_REST``): those who are sure of one target must be able to leave it.

    Nothing beyond the candidates is held: a round costs ``num_source * num_candidates``.

    Args:
        rounds: normalisations of each side.
        temperature: exponent ``1 / temperature`` of the beliefs at the start; below 1 the answer
            comes nearer to a hard assignment, and needs more rounds.
    """

    rounds: int = 20
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"Sinkhorn needs at least one round, got rounds={self.rounds}")
        if self.temperature <= 0:
            raise ValueError(f"temperature must be above 0, got {self.temperature}")

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """The best candidates after the last round, with their new probabilities."""
        return BestAnswer()(self.balanced(beliefs.without(labels)), labels)

    def balanced(self, beliefs: Beliefs) -> Beliefs:
        """The same candidates with probabilities that also respect the target side."""
        # in double precision, and as logarithms: a low temperature spreads over many magnitudes
        exact = replace(beliefs, probs=beliefs.probs.double())
        left = exact.rest_prob.clamp(min=LEAST_REST).unsqueeze(1)
        own = torch.cat([exact.probs, left], dim=1)
        shares = torch.softmax(own.log() / self.temperature, dim=1)
        probs, rest = shares[:, :-1], shares[:, -1:]
        for _ in range(self.rounds):
            probs = probs / claims(replace(beliefs, probs=probs)).clamp(min=1)[beliefs.targets]
            total = probs.sum(1, keepdim=True) + rest
            probs, rest = probs / total, rest / total
        return replace(beliefs, probs=probs)


def claims(beliefs: Beliefs) -> Tensor:
    """``[num_target]`` the probability with which all source entities together claim a target."""
    total = beliefs.probs.new_zeros(beliefs.num_target)
    return total.scatter_add_(0, beliefs.targets.flatten(), beliefs.probs.flatten())


@dataclass(frozen=True)
class HungarianAnswer:
    """The most probable set of pairs in which no target stands twice.

    Maximises the sum of log-probabilities over all source entities, each of which has one of its
    candidates or stays unmatched; the latter counts as ``unmatched_prob``. Solved exactly on the
    candidates alone, by shortest augmenting paths on one core.

    Memory is linear in the candidates, time grows with the square of the number of entities. The
    less staying unmatched is worth, the longer it takes. For more entities than one cares to wait
    for there is Sinkhorn's iteration, whose time is linear.

    Args:
        unmatched_prob: only a candidate that is more probable is taken, and left to whom it
            suits best.
    """

    unmatched_prob: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.unmatched_prob <= 1:
            raise ValueError(
                f"unmatched_prob must lie above 0 and at most at 1, got {self.unmatched_prob}"
            )

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """The assigned pairs, and the labels."""
        free = beliefs.without(labels)
        assigned = torch.from_numpy(self.assigned_targets(free)).to(free.targets.device)
        taken = free.targets == assigned.unsqueeze(1)
        return BestAnswer()(replace(free, probs=free.probs * taken), labels)

    def assigned_targets(self, beliefs: Beliefs) -> IntArray:
        """``[num_source]`` target of each source entity, beyond all targets where it has none."""
        probs, targets = beliefs.probs.double().cpu().numpy(), beliefs.targets.cpu().numpy()
        rows, slots = np.nonzero(probs > self.unmatched_prob)  # the others are never taken
        everyone = np.arange(beliefs.num_source)
        # a column of its own lets each stay unmatched, so there always is a full matching
        columns = np.concatenate([targets[rows, slots], beliefs.num_target + everyone])
        unmatched = np.full(len(everyone), -math.log(self.unmatched_prob))
        costs = np.concatenate([-np.log(probs[rows, slots]), unmatched])
        shape = (beliefs.num_source, beliefs.num_target + beliefs.num_source)
        # a cost of 0 would be no edge: 1 more for everybody changes no choice
        graph = csr_array((costs + 1, (np.concatenate([rows, everyone]), columns)), shape=shape)
        assigned: IntArray = min_weight_full_bipartite_matching(graph)[1].astype(np.int64)
        return assigned
