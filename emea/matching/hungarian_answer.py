"""The answer of the best one-to-one assignment."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from torch import Tensor

from emea.data.arrays import IntArray
from emea.matching.beliefs import Beliefs
from emea.matching.best_answer import BestAnswer


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
