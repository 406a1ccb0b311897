"""Matching values of two graphs, as nodes in addition to the entities."""

from dataclasses import dataclass

from emea.data.arrays import FloatArray, IntArray
from emea.data.graph import KnowledgeGraph


@dataclass(frozen=True, eq=False, repr=False)
class LiteralMatches:
    """Both graphs with their values as additional nodes, and the values that match.

    An extended graph has the entities first, under their own ids, then one node for each distinct
    value. Its relations come first, then its attributes. A triple of an attribute leads from an
    entity to a value, so the rules that reason with matched neighbours reason with matched values
    in the same way.

    Args:
        source: The extended source graph.
        target: The extended target graph.
        pairs: ``[num_pairs, 2]`` value nodes that match, by their ids in the extended graphs.
        probs: ``[num_pairs]`` probability that a pair identifies the same value.
        anchors: ``[num_anchors, 2]`` pairs of entities that unambiguous equal values suggest, each
            entity in one of them.
        anchor_probs: ``[num_anchors]`` estimated probability of each anchor.
    """

    source: KnowledgeGraph
    target: KnowledgeGraph
    pairs: IntArray
    probs: FloatArray
    anchors: IntArray
    anchor_probs: FloatArray

    def __repr__(self) -> str:
        return f"LiteralMatches({len(self.pairs):,} values, {len(self.anchors):,} anchors)"
