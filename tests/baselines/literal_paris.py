"""PARIS by dictionaries in double precision: slow, and plain enough to trust."""

import math
from collections import defaultdict

import torch

from emea.baselines.reasoner import tie_order
from emea.data.graph_pair import GraphPair

from ..rules.literal_paris import Triple, both_directions, inverse_functionality

Match = dict[int, tuple[int, float]]
"""Target and probability by source entity."""


def one_way(
    triples: set[Triple], others: set[Triple], match: Match
) -> dict[tuple[int, int], float]:
    """Eq. 12: Pr(r in r') by (r, r')."""
    shared: dict[tuple[int, int], float] = defaultdict(float)
    total: dict[int, float] = defaultdict(float)
    for h, r, t in triples:
        if h in match and t in match:
            (h2, p), (t2, q) = match[h], match[t]
            total[r] += p * q
            for a, r2, b in others:
                if (a, b) == (h2, t2):
                    shared[r, r2] += p * q
    return {(r, r2): min(1.0, value / total[r]) for (r, r2), value in shared.items()}


class LiteralPARIS:
    def __init__(self, pair: GraphPair, theta: float, retention: float) -> None:
        self.source, self.target = (
            both_directions(pair.source),
            both_directions(pair.target),
        )
        self.num_target = pair.target.num_entities
        self.theta, self.retention = theta, retention

    def equivalences(self, match: Match, default: float, least: float) -> dict:
        """Eq. 13 by (x, x'), for every pair with a matched pair of neighbours."""
        back = {y: (x, p) for x, (y, p) in match.items()}
        forth = one_way(self.source, self.target, match)
        reverse = one_way(self.target, self.source, back)
        fun, fun2 = (
            inverse_functionality(self.source),
            inverse_functionality(self.target),
        )
        doubt: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
        for x, r, n in self.source:
            if n not in match:
                continue
            n2, p = match[n]
            for x2, r2, m2 in self.target:
                if m2 != n2:
                    continue
                a, b = forth.get((r, r2), 0.0), reverse.get((r2, r), 0.0)
                if max(a, b) < self.theta:
                    a = b = default
                factor = (1 - b * fun[r] * p) * (1 - a * fun2[r2] * p)
                if 1 - factor > least:
                    doubt[x, x2] *= factor
        return {pair: 1 - value for pair, value in doubt.items()}

    def iterated(
        self, seeds: Match, match: Match, default: float, least: float
    ) -> Match:
        """The next maximal assignment."""
        values = self.equivalences(match, default, least)
        taken = {y for y, _ in seeds.values()}
        best: dict[int, tuple] = {}
        for (x, y), p in values.items():
            if x not in seeds and y not in taken and p >= self.theta:
                best[x] = min(best.get(x, (math.inf,)), self.key(x, y, p))
        for x, (y, p) in match.items():
            faded = 1 - (1 - p) ** self.retention
            if (
                x not in seeds
                and faded >= self.theta
                and -faded < best.get(x, (0.0,))[0] - 1e-9
            ):
                best[x] = self.key(x, y, faded)
        winners: dict[int, tuple] = {}
        for x, (value, tie, y) in best.items():
            winners[y] = min(winners.get(y, (math.inf,)), (value, tie, x))
        return dict(seeds) | {x: (y, -value) for y, (value, _, x) in winners.items()}

    def key(self, x: int, y: int, p: float) -> tuple[float, int, int]:
        tie = tie_order(torch.tensor(x), torch.tensor(y), self.num_target)
        return -round(p, 9), int(tie), y
