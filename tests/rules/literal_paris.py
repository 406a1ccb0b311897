"""PARIS by loops over triples in double precision: slow, and plain enough to trust."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs

Triple = tuple[int, int, int]
Mapping = list[dict[int, float]]
"""Probability of each candidate, per source entity."""
Inclusions = dict[tuple[int, int], tuple[float, float]]
"""``Pr(r in r')`` and ``Pr(r' in r)`` by (r, r')."""


def both_directions(graph: KnowledgeGraph) -> set[Triple]:
    """Distinct triples and their inverses."""
    forward = {(h, r, t) for h, r, t in graph.triples.tolist()}
    return forward | {(t, r + graph.num_relations, h) for h, r, t in forward}


def inverse_functionality(triples: set[Triple]) -> dict[int, float]:
    """Distinct tails of each relation over its triples."""
    sizes = Counter(r for _, r, _ in triples)
    tails = Counter(r for r, _ in {(r, t) for _, r, t in triples})
    return {r: tails[r] / sizes[r] for r in sizes}


def inclusions(source: set[Triple], target: set[Triple], q: Mapping) -> Inclusions:
    """Expected matched triples of a relation over all its triples, either way."""
    size, size2 = Counter(r for _, r, _ in source), Counter(r for _, r, _ in target)

    def matched(triple: Triple, triple2: Triple) -> float:
        (h, _, t), (h2, _, t2) = triple, triple2
        return q[h].get(h2, 0.0) * q[t].get(t2, 0.0)

    def forth(r: int, r2: int) -> float:
        of_r2 = [triple2 for triple2 in target if triple2[1] == r2]
        held = [
            sum(matched(one, other) for other in of_r2) for one in source if one[1] == r
        ]
        return sum(held) / size[r]

    def back(r: int, r2: int) -> float:
        of_r = [triple for triple in source if triple[1] == r]
        held = [
            sum(matched(one, other) for one in of_r)
            for other in target
            if other[1] == r2
        ]
        return sum(min(1.0, claims) for claims in held) / size2[r2]

    return {(r, r2): (forth(r, r2), back(r, r2)) for r in size for r2 in size2}


def as_mapping(beliefs: Beliefs) -> Mapping:
    """The beliefs as dictionaries."""
    rows = zip(beliefs.targets.tolist(), beliefs.probs.double().tolist(), strict=True)
    return [dict(zip(targets, probs, strict=True)) for targets, probs in rows]


def best_alone(q: Mapping) -> Mapping:
    """Certainty of the best candidate, where any is possible."""
    best = [max(dist, key=lambda target: dist[target]) for dist in q]
    return [{e2: 1.0} if dist[e2] > 0 else {} for e2, dist in zip(best, q, strict=True)]


@dataclass
class LiteralPARIS:
    """Eq. 19 with given relation inclusions."""

    source: set[Triple]
    target: set[Triple]
    included: Inclusions

    def value(self, e: int, e2: int, q: Mapping) -> float:
        """``g(y_F_e)`` at ``y_e = e2``."""
        fun, fun2 = (
            inverse_functionality(self.source),
            inverse_functionality(self.target),
        )
        doubt = 1.0
        for r, n in [(r, n) for h, r, n in self.source if h == e]:
            for r2, n2 in [(r2, n2) for h2, r2, n2 in self.target if h2 == e2]:
                source_in_target, target_in_source = self.included[r, r2]
                prob = q[n].get(n2, 0.0)
                doubt *= 1 - target_in_source * fun[r] * prob
                doubt *= 1 - source_in_target * fun2[r2] * prob
        return 1 - doubt

    def blanket_value(self, e: int, e2: int, q: Mapping) -> float:
        """The value summed over all subsets that hold e, ``y_e = e2`` set hard in each.

        Neighbours take their most probable candidate in the subsets of their own.
        """
        certain = [{e2: 1.0} if i == e else dist for i, dist in enumerate(q)]
        neighbours = {n for h, _, n in self.source if h == e} - {e}
        total = self.value(e, e2, certain)
        for n in neighbours:
            total += self.value(n, max(q[n], key=lambda target: q[n][target]), certain)
        return total


@st.composite
def graphs(draw: st.DrawFn, loops: bool = True) -> KnowledgeGraph:
    """Small graphs: hubs, multi-edges, repeated triples, lonely entities, no triples at all."""
    num_entities, num_relations = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    entity, relation = (
        st.integers(0, num_entities - 1),
        st.integers(0, num_relations - 1),
    )
    triples = draw(st.lists(st.tuples(entity, relation, entity), max_size=14))
    kept = [triple for triple in triples if loops or triple[0] != triple[2]]
    return KnowledgeGraph(np.array(kept, dtype=np.int64), num_entities, num_relations)


@st.composite
def pairs(draw: st.DrawFn, loops: bool = True) -> GraphPair:
    """Two unrelated small graphs, with links between some of their entities."""
    source, target = draw(graphs(loops)), draw(graphs(loops))
    most = min(source.num_entities, target.num_entities)
    sources = draw(st.permutations(range(source.num_entities)))
    targets = draw(st.permutations(range(target.num_entities)))
    links = list(zip(sources, targets, strict=False))[: draw(st.integers(0, most))]
    return GraphPair("pair", source, target, np.array(links, dtype=np.int64))


@st.composite
def beliefs_of(draw: st.DrawFn, pair: GraphPair, hard: bool = False) -> Beliefs:
    """Candidates in any order; some impossible, some certain, links clamped."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    num_source, num_target = pair.source.num_entities, pair.target.num_entities
    k = min(draw(st.integers(1, 7)), num_target)
    targets = np.array([rng.permutation(num_target)[:k] for _ in range(num_source)])
    probs = rng.random((num_source, k)) * (rng.random((num_source, k)) < 0.7)
    probs /= np.maximum(probs.sum(1, keepdims=True), 1e-9) * rng.uniform(
        1, 1.5, (num_source, 1)
    )
    soft = Beliefs(torch.from_numpy(targets), torch.from_numpy(probs).float())
    beliefs = soft.hardened() if hard else soft
    return beliefs.clamped(torch.from_numpy(pair.links.copy()))
