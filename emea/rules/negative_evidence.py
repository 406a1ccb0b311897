"""Evidence against a pair: attributes with one value per entity whose values differ.

PARIS multiplies the probability of a pair by ``1 - fun(r) Pr(values differ)`` for each attribute r
(Eq. 14). This is too strict where values are misspelt or out of date: there, true matches differ,
too. Here, the weight of a difference is estimated from the current matches, as in record linkage
(Fellegi and Sunter, 1969). If a share m of the matches agrees in an attribute, and a share u of all
pairs does, then a difference multiplies the odds of a pair by (1 - m) / (1 - u), but at most by 1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import NO_MATCH, IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.rules.implied_pairs import ALMOST_SURE
from emea.rules.pair_evidence import log_doubt
from emea.rules.subsumption import Subsumption

LEAST_FUNCTIONALITY = 0.9
"""Attributes whose entities have more values on average are not compared."""

AGREEING_PRIOR, COMPARED_PRIOR = 1.0, 2.0
"""Matches that agree and that are compared, added to those of each attribute."""

MOST_ATTRIBUTES = 50
"""Attributes that are compared, those with the most values first."""


class Difference(NamedTuple):
    """Two attributes that are compared, and what a difference of their values is worth.

    Args:
        relation: The attribute in the extended source graph.
        target_relation: The attribute in the extended target graph.
        agreement: Estimated share of the matches whose values agree.
        factor: What a difference multiplies the odds of a pair by.
    """

    relation: int
    target_relation: int
    agreement: float
    factor: float


class NegativeEvidence:
    """Compares the values of pairs of entities.

    Args:
        pair: The graphs.
        matches: Their values, and which of them match.
        inverse_functionality: ``fun^-1`` of the directed relations of both extended graphs.
        device: Where to compute.
    """

    def __init__(
        self,
        pair: GraphPair,
        matches: LiteralMatches,
        inverse_functionality: tuple[Tensor, Tensor],
        device: torch.device | str = "cpu",
    ) -> None:
        self.inverse_functionality = inverse_functionality
        self.num_all_target = matches.target.num_entities
        self.single = (
            _single_values(matches.source, pair.source, device),
            _single_values(matches.target, pair.target, device),
        )
        self.same = (
            _counterparts(matches.same, matches.source.num_entities, device),
            _counterparts(matches.same[:, ::-1], matches.target.num_entities, device),
        )
        # entity * num_nodes + value of all values that entities have, ascending
        self.held = tuple(
            torch.from_numpy(np.unique(graph.triples @ [graph.num_entities, 0, 1])).to(
                device
            )
            for graph in (matches.source, matches.target)
        )
        keys = matches.pairs[:, 0] * self.num_all_target + matches.pairs[:, 1]
        order = np.argsort(keys)
        self.keys = torch.from_numpy(keys[order]).to(device)
        self.probs = torch.from_numpy(matches.probs[order]).to(device)

    def differences(
        self,
        included: Subsumption,
        pairs: Tensor,
        probs: Tensor,
        before: Sequence[Difference] = (),
    ) -> list[Difference]:
        """Estimate from matched pairs what differences are worth.

        A match counts by the probability that it would have without the attribute. Otherwise, an
        attribute that most matches follow from would seem to agree in all matches.

        Args:
            included: Inclusions of the attributes.
            pairs: ``[num_pairs, 2]`` matched entities.
            probs: ``[num_pairs]`` their probabilities.
            before: What differences were worth when the probabilities were computed.
        """
        found = []
        log_doubts = torch.log1p(-probs)
        former = {(one.relation, one.target_relation): one.factor for one in before}
        for relation, other in self._attributes(included):
            rows, agree, value_probs = self._compared(relation, other, *pairs.T)
            both = torch.tensor([[relation], [other]], device=pairs.device)
            forth, back = (share.double() for share in included.of(*both))
            of_source, of_target = (
                side[one]
                for side, one in zip(
                    self.inverse_functionality, (relation, other), strict=True
                )
            )
            own = log_doubt(forth, back, of_source, of_target, value_probs)
            lost = torch.log1p((agree - 1) * (1 - former.get((relation, other), 1.0)))
            weight = -torch.expm1((lowered(log_doubts[rows], -lost) - own).clamp(max=0))
            # nothing is known about the doubt in a pair that is as probable as possible
            weight[probs[rows] >= ALMOST_SURE] = 1
            agreeing = float((weight * agree).sum()) + AGREEING_PRIOR
            agreement = agreeing / (float(weight.sum()) + COMPARED_PRIOR)
            factor = (1 - agreement) / (1 - self._chance(relation, other))
            if factor < 1:
                found.append(Difference(relation, other, agreement, factor))
        return found

    def log_factors(
        self, differences: Sequence[Difference], sources: Tensor, targets: Tensor
    ) -> Tensor:
        """Return the logarithm of what all differences multiply the odds of pairs by."""
        total = torch.zeros(len(sources), dtype=torch.float64, device=sources.device)
        for one in differences:
            rows, agree, _ = self._compared(
                one.relation, one.target_relation, sources, targets
            )
            total[rows] += torch.log1p(-(1 - agree) * (1 - one.factor))
        return total

    def values_that_differ(
        self, differences: Sequence[Difference], source: int, target: int
    ) -> list[tuple[Difference, int, int, float]]:
        """Return the differing values of a pair, and what each multiplies its odds by."""
        found = []
        rows = torch.tensor([source]), torch.tensor([target])
        for one in differences:
            factor = float(self.log_factors([one], *rows).exp())
            if factor < 1:
                value = self.single[0][one.relation][source]
                other = self.single[1][one.target_relation][target]
                found.append((one, int(value), int(other), factor))
        return sorted(found, key=lambda row: row[-1])

    def _attributes(self, included: Subsumption) -> list[tuple[int, int]]:
        """Return pairs of attributes of which each is the other's best counterpart."""
        relations = included.keys // included.num_target_relations
        others = included.keys % included.num_target_relations
        score = (included.source_in_target * included.target_in_source).double()
        best: tuple[dict[int, tuple[float, int]], ...] = ({}, {})
        rows = zip(relations.tolist(), others.tolist(), score.tolist(), strict=True)
        for relation, other, value in rows:
            if relation in self.single[0] and other in self.single[1]:
                best[0][relation] = max(
                    best[0].get(relation, (0.0, -1)), (value, other)
                )
                best[1][other] = max(best[1].get(other, (0.0, -1)), (value, relation))
        return [
            (relation, other)
            for relation, (value, other) in best[0].items()
            if value > 0 and best[1][other][1] == relation
        ]

    def _compared(
        self, relation: int, target_relation: int, sources: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compare the values of two attributes for pairs of entities.

        Returns:
            Places of the pairs whose entities have one value of each, the probability that their
            values agree, or that one entity has the value of the other in another attribute, and
            the probability of the match of both values as evidence for the pair.
        """
        values = self.single[0][relation][sources]
        others = self.single[1][target_relation][targets]
        rows = ((values >= 0) & (others >= 0)).nonzero().squeeze(1)
        values = values[rows]
        others = others[rows]
        agree = self._has(1, targets[rows], self.same[0][values])
        agree |= self._has(0, sources[rows], self.same[1][others])
        keys = values * self.num_all_target + others
        probs = torch.zeros(len(rows), dtype=torch.float64, device=keys.device)
        if len(self.keys):
            place = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
            probs = torch.where(self.keys[place] == keys, self.probs[place], probs)
        return rows, torch.where(agree, 1.0, probs), probs

    def _has(self, side: int, entities: Tensor, values: Tensor) -> Tensor:
        """Return whether entities of a graph have these values; ``NO_MATCH`` is none."""
        held = self.held[side]
        keys = entities * len(self.same[side]) + values
        place = torch.searchsorted(held, keys).clamp_(max=len(held) - 1)
        return (held[place] == keys) & (values >= 0)

    def _chance(self, relation: int, target_relation: int) -> float:
        """Return the share of all pairs of entities whose values are equal."""
        values, others = (
            side[one][side[one] >= 0]
            for side, one in zip(self.single, (relation, target_relation), strict=True)
        )
        counterparts = self.same[0][values]
        counts = torch.bincount(others, minlength=self.num_all_target).double()
        equal = counts[counterparts[counterparts >= 0]].sum()
        return min(float(equal) / max(1, len(values) * len(others)), 0.99)


def negative_evidence(
    pair: GraphPair,
    inverse_functionality: tuple[Tensor, Tensor],
    device: torch.device | str = "cpu",
) -> NegativeEvidence | None:
    """Return the negative evidence of a pair; ``None`` if it has no literals or does not use it.

    Ontologies do not use it: one of several names of a class is its label, so that the labels of
    classes that mean the same often differ.
    """
    if (
        pair.literals is None
        or not pair.literals.negative
        or pair.matched_kinds is not None
    ):
        return None
    return NegativeEvidence(pair, pair.literals, inverse_functionality, device)


def lowered(log_doubt: Tensor, log_factors: Tensor) -> Tensor:
    """Return the log doubt in pairs whose odds are multiplied by factors.

    Args:
        log_doubt: Logarithm of 1 - p.
        log_factors: Logarithms of the factors, at most 0.
    """
    return -torch.log1p(torch.expm1(-log_doubt) * log_factors.exp())


def _counterparts(same: IntArray, size: int, device: torch.device | str) -> Tensor:
    """Return the equal value of the other graph for each node, or ``NO_MATCH``."""
    found = np.full(size, NO_MATCH)
    found[same[:, 0]] = same[:, 1]
    return torch.from_numpy(found).to(device)


def _single_values(
    extended: KnowledgeGraph, graph: KnowledgeGraph, device: torch.device | str
) -> dict[int, Tensor]:
    """Return ``[num_entities]`` the only value of each entity, or ``NO_MATCH``, by attribute."""
    rows = extended.triples[extended.triples[:, 1] >= graph.num_relations]
    sizes = np.bincount(rows[:, 1], minlength=extended.num_relations)
    found = {}
    for relation in np.argsort(-sizes, kind="stable")[:MOST_ATTRIBUTES].tolist():
        heads, values = rows[rows[:, 1] == relation][:, [0, 2]].T
        counts = np.bincount(heads, minlength=graph.num_entities)
        if len(heads) and np.count_nonzero(counts) / len(heads) >= LEAST_FUNCTIONALITY:
            only = np.full(graph.num_entities, NO_MATCH)
            only[heads] = values
            only[counts != 1] = NO_MATCH
            found[relation] = torch.from_numpy(only).to(device)
    return found
