"""Several rules as one."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs
from emea.rules.rule import Rule, RuleView


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
