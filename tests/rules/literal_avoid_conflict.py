"""AvoidConf by loops over subsets and assignments in double precision: slow, plain to trust."""

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair

from .literal_paris import Mapping

ELSEWHERE = -1
"""What an entity maps to with the probability its candidates leave: no candidate of anyone."""


def subsets(embeddings: np.ndarray, num_neighbours: int) -> list[list[int]]:
    """Each entity and its nearest others by cosine, the entity first."""
    found = []
    for e, row in enumerate(embeddings):
        others = [n for n in range(len(embeddings)) if n != e]
        cosine = {
            n: row @ embeddings[n] / np.linalg.norm(row) / np.linalg.norm(embeddings[n])
            for n in others
        }
        found.append([e, *sorted(others, key=lambda n: -cosine[n])[:num_neighbours]])
    return found


@dataclass
class LiteralAvoidConflict:
    """Eq. 4-7 and 12 for given subsets and neural predictions."""

    subsets: list[list[int]]
    predicted: list[int]

    def g1(self, e: int, y: dict[int, int]) -> int:
        """Whether y_e follows the neural prediction."""
        return int(y[e] == self.predicted[e])

    def g2(self, e: int, y: dict[int, int]) -> int:
        """Whether y_e is unique in its subset."""
        return int(
            all(y[n] != y[e] or y[e] == ELSEWHERE for n in self.subsets[e] if n != e)
        )

    def expected(self, e: int, e2: int, q: Mapping) -> tuple[float, float]:
        """Both g summed over every subset that holds e, expected under q at ``y_e = e2``."""
        total = [0.0, 0.0]
        for owner, members in enumerate(self.subsets):
            if e not in members:
                continue
            choices = [{e2: 1.0} if m == e else with_rest(q[m]) for m in members]
            for chosen in product(*choices):
                y = dict(zip(members, chosen, strict=True))
                prob = math.prod(
                    dist[target] for dist, target in zip(choices, chosen, strict=True)
                )
                total[0] += prob * self.g1(owner, y)
                total[1] += prob * self.g2(owner, y)
        return total[0], total[1]


def with_rest(dist: dict[int, float]) -> dict[int, float]:
    """A distribution with the probability of all that are no candidates."""
    return {**dist, ELSEWHERE: max(0.0, 1 - sum(dist.values()))}


def bare_pair(num_source: int, num_target: int) -> GraphPair:
    """Two graphs without triples or links."""
    none = np.zeros((0, 3), dtype=np.int64)
    source, target = (KnowledgeGraph(none, num, 1) for num in (num_source, num_target))
    return GraphPair("bare", source, target, np.empty((0, 2), dtype=np.int64))


@st.composite
def bare_pairs(draw: st.DrawFn) -> GraphPair:
    """Graphs without triples, of few targets so that conflicts are common; some links."""
    pair = bare_pair(draw(st.integers(1, 6)), draw(st.integers(1, 4)))
    sources = draw(st.permutations(range(pair.source.num_entities)))
    targets = draw(st.permutations(range(pair.target.num_entities)))
    links = list(zip(sources, targets, strict=False))[: draw(st.integers(0, 2))]
    return replace(pair, links=np.array(links, dtype=np.int64).reshape(-1, 2))
