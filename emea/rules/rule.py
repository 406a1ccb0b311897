"""What a rule is, and rules put together."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs
from emea.rules.pair_evidence import EvidenceModel


@dataclass(frozen=True, eq=False)
class RuleView:
    """What a rule may look at when it prepares for an EM iteration.

    Args:
        beliefs: q of the neural model, labelled entities certain.
        source_embeddings: ``[num_source, dim]`` of the neural model.
        relation_links: links to learn about relations from; ``None``: from the beliefs.
    """

    beliefs: Beliefs
    source_embeddings: Tensor
    relation_links: Tensor | None = None


class Rule(ABC):
    """Measures how compatible each candidate is with what is believed of other entities.

    A rule may hold several indicator functions g; each gets a weight of its own (Eq. 4).
    """

    names: Sequence[str]
    """One name per indicator function."""

    fits_on_unseen_links: bool = False
    """Whether links the encoder trained on say little about the weights: a rule that follows the
    neural model looks always right there. What follows from it is the protocol's to say."""

    @abstractmethod
    def prepare(self, view: RuleView) -> None:
        """Estimate what the rule needs from the current state, once per EM iteration."""

    @abstractmethod
    def __call__(self, beliefs: Beliefs) -> Tensor:
        """``[num_source, k, len(names)]`` value of each indicator for each candidate.

        The beliefs have the same candidates as those the rule was prepared with, and give none
        of them a probability that had none then.
        """

    def pair_evidence(self, of_matched: bool = True) -> EvidenceModel | None:
        """The rule's evidence for pairs seen from both sides; ``None``: it has none.

        Args:
            of_matched: estimate inclusions of relations from matched triples; off, from all.
        """
        return None


class Composed(Rule):
    """Rules side by side: each indicator function keeps its name and gets its own weight.

    Args:
        rules: by any name, what makes each rule from the pair and the device.
        pair: the two graphs.
        device: where to compute.
    """

    def __init__(
        self,
        rules: Mapping[str, Callable[..., Rule]],
        pair: GraphPair,
        device: torch.device | str = "cpu",
    ) -> None:
        if not rules:
            raise ValueError("at least one rule is needed")
        self.parts = [make(pair=pair, device=device) for make in rules.values()]
        self.names = [name for part in self.parts for name in part.names]
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"rules that share a name cannot be told apart: {self.names}")
        self.fits_on_unseen_links = any(part.fits_on_unseen_links for part in self.parts)

    def prepare(self, view: RuleView) -> None:
        """Prepare every rule."""
        for part in self.parts:
            part.prepare(view)

    def __call__(self, beliefs: Beliefs) -> Tensor:
        """``[num_source, k, len(names)]`` the rules' values one after the other."""
        return torch.cat([part(beliefs) for part in self.parts], dim=2)
