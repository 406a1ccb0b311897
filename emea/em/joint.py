"""The joint distribution q*, what a joint step is, sees and reports."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.em.normaliser import FittedSearch
from emea.em.protocol import Visible
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking
from emea.matching.similarity import Similarity


def conditional(values: Tensor, weights: Tensor) -> Tensor:
    """``p(y_e = e' | y_-e)`` over the candidates (Eq. 7).

    The local compatibility of Eq. 4 is ``exp(sum_k phi_k g_k + phi_0)``; phi_0 is the same for
    every candidate and cancels.

    Args:
        values: ``[num_source, k, num_rules]`` indicator values of each candidate.
        weights: ``[num_rules]`` phi.

    Returns:
        ``[num_source, k]`` probabilities, each row summing to 1.
    """
    return torch.softmax(values @ weights.to(values.dtype), dim=1)


def compatible_beliefs(
    beliefs: Beliefs, values: Tensor, weights: Tensor, labels: Tensor
) -> Beliefs:
    """q* of all entities in one block update (Eq. 12); labelled entities stay certain.

    Args:
        beliefs: q, which names the candidates.
        values: ``[num_source, k, num_rules]`` indicator values under q.
        weights: ``[num_rules]`` phi.
        labels: ``[num_labels, 2]`` links of the labelled entities.
    """
    free = Beliefs(targets=beliefs.targets, probs=conditional(values, weights))
    return free.clamped(labels)


@dataclass(frozen=True, eq=False)
class JointReport:
    """What the joint module made of one iteration.

    Args:
        beliefs: q*; where pairs are ranked, best by the ranking first.
        labels: ``[num_labels, 2]`` pseudo-labels handed to the next fit, training links apart.
        weights: rule weights by name.
        compatibility: ``[num_source]`` rule value of the neural model's best candidate.
        label_weights: ``[num_labels]`` how much each label counts in training; ``None``: as much
            as a training link.
        ranking: ranks pairs of a table before all others; ``None``: q* reorders the neural
            model's candidates.
        is_answer: whether the run stands for this ranking, and not for the neural model's.
        details: further numbers by name.
    """

    beliefs: Beliefs
    labels: IntArray
    weights: dict[str, float]
    compatibility: Tensor
    label_weights: Tensor | None = None
    ranking: PairRanking | None = None
    is_answer: bool = False
    details: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class NeuralBeliefs:
    """What the neural model believes after a fit.

    Args:
        embeddings: ``[num_source, dim]`` of the source entities.
        offered: q over the neural model's own candidates.
        beliefs: q with the step's certain links certain.
        searched: the search behind q; ``None``: q is not a softmax, or the step does not use it.
        is_first: whether no fit came before.
    """

    embeddings: Tensor
    offered: Beliefs
    beliefs: Beliefs
    searched: FittedSearch | None = None
    is_first: bool = False


class JointStep(ABC):
    """The M- and the E-step of one iteration: from the neural model's similarity to labels.

    A step gets its rule when it is made, and raises a ``ConfigError`` if it cannot use the rule.
    """

    uses_search: bool = False
    """Whether it uses the search behind q, which is then kept for it."""

    is_off: bool = False
    """Whether all its parts are switched off, so that the paper's step takes its place."""

    @abstractmethod
    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        """Both steps.

        Args:
            similarity: the neural model's.
            visible: all links that may be used.
            neural: what the neural model believes.
        """

    def certain_links(self, visible: Visible) -> IntArray:
        """``[num_links, 2]`` links of which q is certain."""
        return visible.train

    def state_dict(self) -> dict[str, Any]:
        """Everything the next iteration depends on, in plain values and tensors."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state, which may hold the state of others, too."""
        if self.state_dict():
            raise NotImplementedError(f"{type(self).__name__} has a state but cannot restore it")


def links_on(links: IntArray, device: torch.device) -> Tensor:
    """A copy of the links as a tensor on the device."""
    return torch.from_numpy(np.array(links)).to(device)
