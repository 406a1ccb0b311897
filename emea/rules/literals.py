"""The Literals rule: shared literal values support a mapping."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairTable
from emea.rules.directed_triples import DirectedTriples
from emea.rules.literal_rows import literal_rows, with_values
from emea.rules.pair_evidence import EvidenceModel
from emea.rules.rule import Rule, RuleView


class Literals(Rule):
    """Supports a mapping by literal values that both entities have.

    The value of a candidate is the noisy-or of Eq. 19 over its shared values. The inclusions of
    attributes are estimated from the beliefs.

    Args:
        pair: The two graphs, with matched literals.
        device: Where to compute.
    """

    names = ("literals",)

    def __init__(self, pair: GraphPair, device: torch.device | str = "cpu") -> None:
        if pair.literals is None:
            raise ValueError("the pair has no matched literals")
        extended = with_values(pair)
        source = _attributes_only(extended.source, pair.source)
        target = _attributes_only(extended.target, pair.target)
        self.model = EvidenceModel(
            DirectedTriples(source).to(device),
            DirectedTriples(target).to(device),
            literals=literal_rows(pair, device),
        )
        self.num_target = pair.target.num_entities
        self._values: Tensor | None = None

    def prepare(self, view: RuleView) -> None:
        """Compute the evidence once, since it does not depend on beliefs about other entities."""
        beliefs = view.beliefs
        filled = torch.ones_like(beliefs.targets, dtype=torch.bool)
        table = PairTable(beliefs.targets, beliefs.probs, filled, self.num_target)
        self._values = -torch.expm1(self.model(table, beliefs.probs).log_doubt)

    def __call__(self, beliefs: Beliefs) -> Tensor:
        """Return Eq. 19 over the shared values of each candidate, ``[num_source, k, 1]``."""
        assert self._values is not None, "prepare comes first"
        return self._values.unsqueeze(2)


def _attributes_only(extended: KnowledgeGraph, graph: KnowledgeGraph) -> KnowledgeGraph:
    """Return the extended graph without the triples between entities."""
    kept = extended.triples[extended.triples[:, 1] >= graph.num_relations]
    return replace(extended, triples=np.ascontiguousarray(kept))
