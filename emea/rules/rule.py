"""The interface of a rule, and the composition of rules."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.errors import ConfigError
from emea.matching.beliefs import Beliefs
from emea.rules.pair_evidence import EvidenceModel


@dataclass(frozen=True, eq=False)
class RuleView:
    """Holds what a rule may use when it prepares for an EM iteration.

    Args:
        beliefs: q of the neural model; labelled entities are certain.
        source_embeddings: ``[num_source, dim]`` embeddings of the neural model.
        relation_links: Links from which inclusions of relations are estimated; with ``None`` they
            are estimated from the beliefs.
    """

    beliefs: Beliefs
    source_embeddings: Tensor
    relation_links: Tensor | None = None


class Rule(ABC):
    """Interface of a rule: the compatibility of each candidate with beliefs about other entities.

    A rule may have several indicator functions g, each with its own weight (Eq. 4).
    """

    names: Sequence[str]
    """One name per indicator function."""

    fits_on_unseen_links: bool = False
    """Whether training links are unsuitable for fitting the weights: a rule that follows the neural
    model is nearly always right on them. The protocol decides which links are used instead."""

    @abstractmethod
    def prepare(self, view: RuleView) -> None:
        """Prepare the rule from the current state, once per EM iteration."""

    @abstractmethod
    def __call__(self, beliefs: Beliefs) -> Tensor:
        """Return the value of each indicator for each candidate.

        The shape is ``[num_source, k, len(names)]``. The beliefs have the same candidates as those
        in ``prepare``, and candidates that had probability 0 there have probability 0 here.
        """

    def pair_evidence(
        self, features: Sequence[str] = (), of_matched: bool = True
    ) -> EvidenceModel | None:
        """Return the rule's evidence for pairs from both sides; ``None`` if it has no evidence.

        The arguments are those of :class:`~emea.rules.pair_evidence.EvidenceModel`.
        """
        return None


def rule_values(rule: Rule, beliefs: Beliefs) -> Tensor:
    """Return the values of a rule.

    Raises:
        ConfigError: If they are not a tensor of finite values of the documented shape.
    """
    values = rule(beliefs)
    name = type(rule).__name__
    expected = [*beliefs.targets.shape, len(rule.names)]
    if not isinstance(values, Tensor):
        fault = f"a {type(values).__name__}"
    elif list(values.shape) != expected:
        fault = f"values of shape {list(values.shape)}"
    elif not torch.isfinite(values).all():
        fault = "NaN or infinite values"
    else:
        return values
    raise ConfigError(
        f"{name} returned {fault}. A rule must return a tensor with one number per entity, "
        f"candidate and indicator name, here {expected}."
    )


class Composed(Rule):
    """Composes several rules; each indicator function keeps its name and gets its own weight.

    Args:
        rules: Constructors by name; each is called with the pair and the device.
        pair: The two graphs.
        device: Where to compute.
    """

    def __init__(
        self,
        rules: Mapping[str, Callable[..., Rule]],
        pair: GraphPair,
        device: torch.device | str = "cpu",
    ) -> None:
        if not rules:
            raise ValueError("rules must contain at least one rule")
        self.parts = [make(pair=pair, device=device) for make in rules.values()]
        self.names = [name for part in self.parts for name in part.names]
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"names of rules must be distinct, got {self.names}")
        self.fits_on_unseen_links = any(
            part.fits_on_unseen_links for part in self.parts
        )

    def prepare(self, view: RuleView) -> None:
        """Prepare every rule."""
        for part in self.parts:
            part.prepare(view)

    def __call__(self, beliefs: Beliefs) -> Tensor:
        """Return the values of all rules, ``[num_source, k, len(names)]``."""
        return torch.cat([rule_values(part, beliefs) for part in self.parts], dim=2)
