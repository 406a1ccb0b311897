"""A rule in thirty lines: counterparts have about as many neighbours."""

import numpy as np
import torch
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs
from emea.rules.rule import Rule, RuleView


class SimilarDegree(Rule):
    """g(e, e') = min(d, d') / max(d, d'), with d the degrees plus one.

    Args:
        pair: the two graphs.
        device: where to compute.
    """

    names = ("similar_degree",)

    def __init__(self, pair: GraphPair, device: torch.device | str = "cpu") -> None:
        degrees = [
            np.asarray(graph.degrees()) + 1.0 for graph in (pair.source, pair.target)
        ]
        self.source, self.target = (
            torch.from_numpy(values).to(device) for values in degrees
        )

    def prepare(self, view: RuleView) -> None:
        """Degrees do not change between iterations."""

    def __call__(self, beliefs: Beliefs) -> Tensor:
        """``[num_source, k, 1]`` value of each candidate."""
        mine, theirs = self.source.unsqueeze(1), self.target[beliefs.targets]
        ratio = torch.minimum(mine, theirs) / torch.maximum(mine, theirs)
        return ratio.to(beliefs.probs.dtype).unsqueeze(2)
