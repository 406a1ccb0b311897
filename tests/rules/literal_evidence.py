"""Evidence for pairs of a table by dictionaries in double precision."""

import math
from collections import defaultdict
from dataclasses import dataclass, field

from emea.data.graph_pair import GraphPair

from .literal_paris import Inclusions, both_directions, inverse_functionality

Pair = tuple[int, int]
Probs = dict[Pair, float]
"""Belief by (source, target)."""

FOUND_PRIOR, EXPECTED_PRIOR = 0.1, 0.5


@dataclass
class LiteralEvidence:
    """Noisy-or, inclusions and coverage of pairs, given what is believed of all of them."""

    pair: GraphPair
    believed: Probs
    num_carriers: int = 6
    least_belief: float = 0.01
    smoothing: float = 0.5
    of_matched: bool = True
    carriers: Probs = field(init=False)
    included: Inclusions = field(init=False)

    def __post_init__(self) -> None:
        self.source = both_directions(self.pair.source)
        self.target = both_directions(self.pair.target)
        by_source: dict[int, list[tuple[float, int]]] = defaultdict(list)
        for (s, t), prob in self.believed.items():
            by_source[s].append((prob, t))
        self.carriers = {
            (s, t): prob
            for s, found in by_source.items()
            for prob, t in sorted(found, reverse=True)[: self.num_carriers]
            if prob >= self.least_belief and prob > 0
        }
        self.matched = self._matched(0), self._matched(1)
        self.included = self._inclusions()

    def _matched(self, side: int) -> dict[int, float]:
        """Probability that an entity has any match."""
        total: dict[int, float] = defaultdict(float)
        for pair, prob in self.believed.items():
            total[pair[side]] += prob
        return {entity: min(1.0, prob) for entity, prob in total.items()}

    def _inclusions(self) -> Inclusions:
        """Of the relation pairs that some candidate pair and carrying pair show together."""
        shared: dict[Pair, float] = defaultdict(float)
        claims: dict[tuple[Pair, Pair], float] = defaultdict(float)
        for h, r, t in self.source:
            for h2, r2, t2 in self.target:
                if (h, h2) in self.believed and (t, t2) in self.carriers:
                    weight = self.believed[h, h2] * self.carriers[t, t2]
                    shared[r, r2] += weight
                    claims[(r, r2), (h2, t2)] += weight
        held: dict[Pair, float] = defaultdict(float)
        for (relations, _), claimed in claims.items():
            held[relations] += min(1.0, claimed)
        sizes = self._size(0), self._size(1)
        return {
            (r, r2): (
                min(1.0, weight / sizes[0][r]),
                min(1.0, held[r, r2] / sizes[1][r2]),
            )
            for (r, r2), weight in shared.items()
        }

    def _size(self, side: int) -> dict[int, float]:
        """Triples of each relation: those whose ends are matched, and some more; or all."""
        triples, matched = (self.source, self.target)[side], self.matched[side]
        sizes: dict[int, float] = defaultdict(
            lambda: self.smoothing if self.of_matched else 0.0
        )
        for h, r, t in triples:
            both = matched.get(h, 0.0) * matched.get(t, 0.0)
            sizes[r] += both if self.of_matched else 1.0
        return sizes

    def log_doubt(self, e: int, e2: int) -> float:
        """Logarithm of the noisy-or's product (Eq. 19)."""
        fun, fun2 = (
            inverse_functionality(self.source),
            inverse_functionality(self.target),
        )
        total = 0.0
        around = [(r, n) for h, r, n in self.source if h == e]
        around2 = [(r2, n2) for h2, r2, n2 in self.target if h2 == e2]
        for r, n in around:
            for r2, n2 in around2:
                if (n, n2) in self.carriers:
                    forth, back = self.included[r, r2]
                    prob = self.carriers[n, n2]
                    for part in (back * fun[r] * prob, forth * fun2[r2] * prob):
                        total += math.log1p(-min(part, 1 - 1e-7))
        return total

    def rarity(self, side: int, entity: int) -> float:
        """1 / log2(1 + number of distinct neighbours)."""
        triples = (self.source, self.target)[side]
        neighbours = {n for h, _, n in triples if h == entity}
        return 1 / math.log2(1 + max(1, len(neighbours)))

    def coverage(self, e: int, e2: int, rare: bool = False) -> float:
        """Matched neighbours found over the mean of those that both sides expect."""
        worth: dict[int, float] = defaultdict(float)
        around = [(r, n) for h, r, n in self.source if h == e]
        around2 = [(r2, n2) for h2, r2, n2 in self.target if h2 == e2]
        for r, n in around:
            for r2, n2 in around2:
                if (n, n2) in self.carriers:
                    one = max(self.included[r, r2]) * self.carriers[n, n2]
                    if rare:
                        one *= math.sqrt(self.rarity(0, n) * self.rarity(1, n2))
                    worth[n] = max(worth[n], one)
        mean, num_source = 1.0, self.pair.source.num_entities
        if rare:
            mean = sum(self.rarity(0, n) for n in range(num_source)) / num_source
        expected = [
            self.expected(side, entity, rare) + EXPECTED_PRIOR * mean
            for side, entity in [(0, e), (1, e2)]
        ]
        found = sum(worth.values()) + FOUND_PRIOR * mean
        return min(1.0, found / math.sqrt(expected[0] * expected[1]))

    def expected(self, side: int, entity: int, rare: bool = False) -> float:
        """Matched neighbours, each by the likeliest inclusion of a relation it is reached by."""
        best: dict[int, float] = defaultdict(float)
        for relations, probs in self.included.items():
            best[relations[side]] = max(best[relations[side]], *probs)
        worth: dict[int, float] = defaultdict(float)
        for h, r, n in (self.source, self.target)[side]:
            if h == entity:
                weight = self.rarity(side, n) if rare else 1.0
                worth[n] = max(
                    worth[n], best[r] * self.matched[side].get(n, 0.0) * weight
                )
        return sum(worth.values())
