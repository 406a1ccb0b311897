"""PARIS (Suchanek, Abiteboul and Senellart, VLDB 2011) on structure alone, from seeds."""

import logging
from collections.abc import Iterator

import torch
from torch import Tensor

from emea.baselines.maximal_assignment import MaximalAssignment
from emea.baselines.reasoner import Embed, Fusion, Observer, Reasoner, ReasoningReport
from emea.data.graph_pair import GraphPair
from emea.matching.block_memory import in_smaller_blocks
from emea.matching.matching import Matching
from emea.rules.directed_triples import DirectedTriples
from emea.rules.implied_pairs import ImpliedPairs, implied_pairs
from emea.rules.neighbour_join import TailGroups, TargetEdges, join_neighbours
from emea.rules.pair_evidence import log_doubt
from emea.rules.subsumption import Subsumption, estimate_subsumption, matched_sizes

logger = logging.getLogger(__name__)


class PARIS(Reasoner):
    """Equivalences of entities and inclusions of relations, estimated in turn.

    Inclusions come from the current matching (Eq. 12), equivalences from matched neighbours
    and inclusions (Eq. 13, read in both directions of every relation); between iterations the
    maximal assignment alone is kept, one counterpart for each entity of either side. There are
    no literals here: seeds take their place and stay certain throughout. Validation links are
    no seeds, since the other methods do not train on them either.

    Args:
        pair: the two graphs.
        theta: equivalences and inclusions below this probability are ignored.
        initial_inclusion: inclusion of relations of which nothing is known yet, in the first
            ``initial_iterations``.
        initial_iterations: iterations that use it.
        smoothing: added to the denominator of Eq. 12, so that few matched triples prove little.
        retention: share of a match's evidence that stays for an iteration after the evidence
            has gone. Without it the graph falls into two halves that take turns in vouching for
            each other and never settle; a fixed point with it is a fixed point without it.
        least_evidence: a single piece of evidence this weak is dropped; bounds what hubs imply.
        max_iterations: after which it ends, settled or not.
        tolerance: settled once no larger share of the matched entities changes its counterpart.
        device: where to compute.
    """

    def __init__(
        self,
        pair: GraphPair,
        theta: float = 0.1,
        initial_inclusion: float = 0.1,
        initial_iterations: int = 1,
        smoothing: float = 0.0,
        retention: float = 0.9,
        least_evidence: float = 0.01,
        max_iterations: int = 50,
        tolerance: float = 0.01,
        device: torch.device | str = "cpu",
    ) -> None:
        shares = {"theta": theta, "retention": retention, "tolerance": tolerance}
        shares |= {"initial_inclusion": initial_inclusion, "least_evidence": least_evidence}
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {share}")
        if smoothing < 0 or theta == 0:
            raise ValueError("theta must be more than 0, and smoothing not less")
        self.source = DirectedTriples(pair.source).to(device)
        self.target = DirectedTriples(pair.target).to(device)
        self.edges = TargetEdges(self.target)
        self.groups = TailGroups(self.source), TailGroups(self.target)
        self.functionality = (
            self.source.inverse_functionality.double(),
            self.target.inverse_functionality.double(),
        )
        self.theta = theta
        self.initial_inclusion = initial_inclusion
        self.initial_iterations = initial_iterations
        self.smoothing = smoothing
        self.retention = retention
        self.least_evidence = least_evidence
        self.max_iterations = max_iterations
        self.tolerance = tolerance

    def align(self, seeds: Tensor, embed: Embed, observer: Observer) -> Matching:
        """The matching that the seeds lead to; no encoder is used."""
        known = Matching.of_links(seeds, self.source.num_entities, self.target.num_entities)
        return self.settled(known, known, observer)

    def settled(
        self,
        known: Matching,
        matching: Matching,
        observer: Observer,
        fusion: Fusion | None = None,
        first_iteration: int = 0,
    ) -> Matching:
        """Iterate from a matching to a fixed point.

        Args:
            known: pairs that never fall below their probability; those of 1 are certain.
            matching: where to start.
            observer: told the state after each iteration.
            fusion: mixes the similarity of an embedding into the equivalences.
            first_iteration: what the first iteration is called.
        """
        for step in range(self.max_iterations):
            initial = first_iteration == 0 and step < self.initial_iterations
            updated = self.iterated(known, matching, initial, fusion)
            num_changes = updated.num_changes(matching)
            matching = updated
            similarity = None if fusion is None else fusion.similarity
            observer(ReasoningReport(first_iteration + step, matching, num_changes, similarity))
            if num_changes <= self.tolerance * len(matching.sources) and not initial:
                return matching
        logger.info("not settled after %d iterations", self.max_iterations)
        return matching

    @in_smaller_blocks
    def iterated(
        self,
        known: Matching,
        matching: Matching,
        initial: bool = False,
        fusion: Fusion | None = None,
    ) -> Matching:
        """Inclusions from the matching, then the next matching from both."""
        assignment = MaximalAssignment(known, self.theta)
        for pairs in self.implied(matching, assignment.free_source, initial):
            assignment.offer(pairs if fusion is None else fusion(pairs))
        assignment.hold(matching.faded(self.retention))
        return assignment.matching()

    def implied(
        self, matching: Matching, wanted: Tensor, initial: bool = False
    ) -> Iterator[ImpliedPairs]:
        """The pairs that a matching implies for the wanted source entities (Eq. 13)."""
        included = self.inclusions(matching)

        def doubt(relation: Tensor, target_relation: Tensor, prob: Tensor) -> Tensor:
            forth, back = self._heard(included, relation, target_relation, initial)
            of_source, of_target = self.functionality
            return log_doubt(forth, back, of_source[relation], of_target[target_relation], prob)

        return implied_pairs(*self.groups, matching, wanted, doubt, self.least_evidence)

    def inclusions(self, matching: Matching) -> Subsumption:
        """Eq. 12: of the triples whose ends are matched, those whose counterpart exists."""
        beliefs = matching.beliefs()
        join = join_neighbours(self.source, self.target, self.edges, beliefs)
        sizes = (
            matched_sizes(self.source, matching.probs) + self.smoothing,
            matched_sizes(self.target, matching.target_probs()) + self.smoothing,
        )
        return estimate_subsumption(join, beliefs, self.source, self.target, sizes)

    def _heard(
        self, included: Subsumption, relation: Tensor, target_relation: Tensor, initial: bool
    ) -> tuple[Tensor, Tensor]:
        """Both inclusions where either is worth listening to."""
        forth, back = included.of(relation, target_relation)
        known = torch.maximum(forth, back) >= self.theta
        default = self.initial_inclusion if initial else 0.0
        return torch.where(known, forth, default), torch.where(known, back, default)
