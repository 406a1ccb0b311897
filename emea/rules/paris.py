"""The PARIS rule (Eq. 19), and the compatibility of a given mapping by this rule."""

from collections.abc import Sequence

import torch
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs, Matching
from emea.rules.directed_triples import DirectedTriples
from emea.rules.literal_rows import literal_rows, with_values
from emea.rules.neighbour_join import NeighbourJoin, join_neighbours
from emea.rules.pair_evidence import EvidenceModel, log_doubt
from emea.rules.rule import Rule, RuleView
from emea.rules.settings import ParisRuleSettings
from emea.rules.subsumption import Subsumption, estimate_subsumption


class PARIS(Rule):
    """Supports a mapping by matching neighbours with corresponding relations (Eq. 19).

    For a candidate e' of e the value is the noisy-or of Eq. 19 over r(e, n) and r'(e', n'),
    evaluated as a sum of logarithms over the neighbour join, which has the candidates n' of each
    neighbour n.

    Args:
        pair: The two graphs.
        markov_blanket: Add the factor subsets of e's neighbours, which contain e (Eq. 7); if
            false, a candidate is scored only by its own subset, as in the released code.
        device: Where to compute.

    Examples:
        >>> from emea.data.sources.synthetic import synthetic_pair
        >>> rule = PARIS(synthetic_pair(num_entities=20), markov_blanket=True)
        >>> rule.names
        ('paris',)
    """

    names = ("paris",)

    def __init__(
        self,
        pair: GraphPair,
        markov_blanket: bool = ParisRuleSettings.markov_blanket,
        device: torch.device | str = "cpu",
    ) -> None:
        self.pair = pair
        self.device = device
        self.source = DirectedTriples(pair.source).to(device)
        self.target = DirectedTriples(pair.target).to(device)
        self.markov_blanket = markov_blanket
        self._join: NeighbourJoin | None = None
        self._subsumption: Subsumption | None = None

    def prepare(self, view: RuleView) -> None:
        """Join the candidates, and estimate inclusions from labels and best predictions."""
        # the Markov blanket needs evidence of improbable candidates, so the join must contain them
        self._join = join_neighbours(
            self.source,
            self.target,
            view.beliefs,
            skip_impossible=not self.markov_blanket,
        )
        if view.relation_links is None:
            best = view.beliefs.hardened()
            self._subsumption = estimate_subsumption(
                self._join, best, self.source, self.target
            )
        else:
            sizes = self.source.num_entities, self.target.num_entities
            beliefs = Matching.of_links(view.relation_links, *sizes).beliefs()
            beliefs = Beliefs(beliefs.targets, beliefs.probs.float())
            join = join_neighbours(self.source, self.target, beliefs)
            self._subsumption = estimate_subsumption(
                join, beliefs, self.source, self.target
            )

    def __call__(self, beliefs: Beliefs) -> Tensor:
        """Return Eq. 19 for each candidate, ``[num_source, k, 1]``."""
        assert self._join is not None, "call prepare first"
        join = self._join
        certain = beliefs.probs[join.neighbour, join.neighbour_slot]
        support = _summed(self._log_doubt(certain), join.entity, join.slot, beliefs)
        values = -torch.expm1(support)
        if self.markov_blanket:
            values = values + self._neighbours_gain(beliefs, certain)
        return values.unsqueeze(2)

    def pair_evidence(
        self, features: Sequence[str] = (), of_matched: bool = True
    ) -> EvidenceModel:
        """Return Eq. 19 for pairs of a table, on this rule's graphs and on matched literals."""
        literals = literal_rows(self.pair, self.device)
        source = self.source
        target = self.target
        if literals is not None:
            extended = with_values(self.pair)
            source = DirectedTriples(extended.source).to(self.device)
            target = DirectedTriples(extended.target).to(self.device)
        return EvidenceModel(source, target, literals, features, of_matched)

    def inclusions(self) -> Subsumption:
        """Return the last estimates of Pr(r in r') and Pr(r' in r) of pairs seen together."""
        assert self._subsumption is not None, "call prepare first"
        return self._subsumption

    def _log_doubt(self, prob: Tensor) -> Tensor:
        """Return the log of the two factors of Eq. 19 per row of the join, given q(y_n = n')."""
        assert self._join is not None
        relation = self._join.relation
        target_relation = self._join.target_relation
        return log_doubt(
            *self.inclusions().of(relation, target_relation),
            self.source.inverse_functionality[relation],
            self.target.inverse_functionality[target_relation],
            prob,
        )

    def _neighbours_gain(self, beliefs: Beliefs, certain: Tensor) -> Tensor:
        """Return what y_e = e' adds to the subsets of e's neighbours at their best candidates.

        In rows of the join read from the neighbour's side, ``entity`` owns the factor subset
        and ``neighbour`` is the entity whose candidates are compared. The subset's value
        without any support from that entity is the same for all its candidates, so only what a
        candidate adds to it matters (it cancels in the softmax of Eq. 7).
        """
        assert self._join is not None
        join = self._join
        held = (join.slot == beliefs.best_slots()[join.entity]) & (
            join.entity != join.neighbour
        )
        now = self._log_doubt(certain)[held]
        sure = self._log_doubt(torch.ones_like(certain))[held]
        owner = join.entity[held]
        other = join.neighbour[held]
        slot = join.neighbour_slot[held]
        total = now.new_zeros(beliefs.num_source).index_add_(0, owner, now)
        edge, edge_index = torch.unique(
            owner * beliefs.num_source + other, return_inverse=True
        )
        from_other = now.new_zeros(len(edge)).index_add_(0, edge_index, now)
        without = torch.exp(total[edge // beliefs.num_source] - from_other)
        width = beliefs.num_candidates
        key, key_index = torch.unique(edge_index * width + slot, return_inverse=True)
        gain = now.new_zeros(len(key)).index_add_(0, key_index, sure)
        gain = without[key // width] * -torch.expm1(gain)
        return _summed(
            gain, edge[key // width] % beliefs.num_source, key % width, beliefs
        )


def _summed(values: Tensor, entity: Tensor, slot: Tensor, beliefs: Beliefs) -> Tensor:
    """Sum the values of each (entity, slot) into ``[num_source, k]``."""
    flat = values.new_zeros(beliefs.targets.numel())
    flat.index_add_(0, entity * beliefs.num_candidates + slot, values)
    return flat.view(beliefs.targets.shape)


def mapping_compatibility(rule: PARIS, targets: Tensor) -> Tensor:
    """Return Eq. 19 of each entity's counterpart, given its neighbours' counterparts.

    The inclusions of relations are estimated from the mapping itself. The result, ``[num_source]``,
    measures how consistent the mapping is with itself.

    Args:
        rule: The rule of the pair of graphs; its prepared state is replaced.
        targets: ``[num_source]`` counterpart of each source entity, on the rule's device; negative
            without one. Such entities support no other entity and have compatibility 0.
    """
    mapped = targets >= 0
    # with one slot per entity, the join has at most one row per edge: nothing is quadratic
    beliefs = Beliefs(targets.clamp(min=0).unsqueeze(1), mapped.float().unsqueeze(1))
    unused = torch.empty(len(targets), 0, device=targets.device)
    rule.prepare(RuleView(beliefs, source_embeddings=unused))
    return rule(beliefs)[:, 0, 0] * mapped
