"""The joint distribution q*, and the interface and report of a joint step."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.em.normaliser import FittedSearch
from emea.matching.beliefs import Beliefs, DenseBeliefs, Matching
from emea.matching.pair_table import PairRanking
from emea.matching.similarity import Similarity

if TYPE_CHECKING:
    from emea.em.local import LocalUpdate


def conditional(values: Tensor, weights: Tensor) -> Tensor:
    """Return ``p(y_e = e' | y_-e)`` over the candidates of each entity (Eq. 7).

    The local compatibility of Eq. 4 is ``exp(sum_k phi_k g_k + phi_0)``; phi_0 is the same for
    every candidate and cancels.

    Args:
        values: ``[num_source, k, num_rules]`` indicator values of each candidate.
        weights: ``[num_rules]`` phi.

    Returns:
        ``[num_source, k]`` probabilities, each row summing to 1.
    """
    return torch.softmax(values @ weights.to(values), dim=1)


def compatible_beliefs(
    beliefs: Beliefs, values: Tensor, weights: Tensor, labels: Tensor
) -> Beliefs:
    """Return q* after one block update of all entities (Eq. 12); labelled entities stay certain.

    Args:
        beliefs: q, whose candidates q* keeps.
        values: ``[num_source, k, num_rules]`` indicator values under q.
        weights: ``[num_rules]`` phi.
        labels: ``[num_labels, 2]`` links of the labelled entities.
    """
    free = Beliefs(targets=beliefs.targets, probs=conditional(values, weights))
    return free.clamped(labels)


@dataclass(frozen=True, eq=False)
class JointReport:
    """Holds the result of the joint step in one iteration.

    Args:
        beliefs: q*. If ``ranking`` is set, the best candidates by the ranking come first.
        labels: ``[num_labels, 2]`` pseudo-labels for the next fit, without the training links.
        weights: Rule weights by name.
        compatibility: ``[num_source]`` rule value of the neural model's best candidate.
        label_weights: ``[num_labels]`` weight of each pseudo-label in training. With ``None`` a
            pseudo-label has the weight of a training link.
        ranking: Ranks the pairs of a table before all others. With ``None``, q* reorders the
            neural model's candidates.
        is_answer: Whether the run answers with this ranking instead of the neural model's.
        details: Further numbers by name.
        recomputed: ``[num_source]`` bool: entities that a local update recomputed, if the step
            added some to the given ones.
    """

    beliefs: Beliefs
    labels: IntArray
    weights: dict[str, float]
    compatibility: Tensor
    label_weights: Tensor | None = None
    ranking: PairRanking | None = None
    is_answer: bool = False
    details: dict[str, float] = field(default_factory=dict)
    recomputed: Tensor | None = None


@dataclass(frozen=True, eq=False)
class NeuralBeliefs:
    """Holds the beliefs of the neural model after a fit.

    Args:
        embeddings: ``[num_source, dim]`` embeddings of the source entities.
        offered: q over the neural model's own candidates.
        beliefs: q in which the step's certain links have probability 1.
        searched: The search that q is based on; ``None`` if q is not a softmax or if the step does
            not use it.
        is_first: Whether this is the first fit of the run.
        dense: q over all targets with the same certain links; ``None`` if q is not a softmax.
        local: Entities whose beliefs are recomputed; ``None`` means all.
    """

    embeddings: Tensor
    offered: Beliefs
    beliefs: Beliefs
    searched: FittedSearch | None = None
    is_first: bool = False
    dense: DenseBeliefs | None = None
    local: "LocalUpdate | None" = None


class JointStep(ABC):
    """Interface of the M-step and the E-step: from the neural model's similarity to new labels.

    A step receives its rule in its constructor and raises a ``ConfigError`` if it cannot use it.
    """

    uses_search: bool = False
    """Whether the step uses the search behind q. If so, the callback keeps the search."""

    is_off: bool = False
    """Whether all parts of the step are switched off; the paper's step is then used instead."""

    @abstractmethod
    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        """Run the M- and the E-step.

        Args:
            similarity: The similarity of the neural model.
            visible: All links that may be used.
            neural: The beliefs of the neural model.
        """

    def certain_links(self, visible: Visible) -> IntArray:
        """Return ``[num_links, 2]`` links that have probability 1 in q."""
        return visible.train

    def start_from(self, known: Matching) -> bool:
        """Let the first call start from the matches of an earlier run.

        Returns:
            Whether the step supports it. Otherwise it starts from the neural model's beliefs.
        """
        return False

    def state_dict(self) -> dict[str, Any]:
        """Return everything the next iteration depends on, as plain values and tensors."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state, which may also contain the state of other objects."""
        if self.state_dict():
            raise NotImplementedError(f"{type(self).__name__} has a state but cannot restore it")


def links_on(links: IntArray, device: torch.device) -> Tensor:
    """Return a copy of the links as a tensor on the device."""
    return torch.from_numpy(np.array(links)).to(device)
