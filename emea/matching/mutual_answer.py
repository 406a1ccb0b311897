"""The answer of pairs that choose each other."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.matching.best_answer import BestAnswer


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
