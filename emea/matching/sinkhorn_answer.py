"""The answer of a soft one-to-one matching (Sinkhorn's iteration on the candidates)."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.matching.best_answer import BestAnswer

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
