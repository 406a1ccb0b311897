"""PARIS (Suchanek, Abiteboul and Senellart, VLDB 2011), from seed links or from literals."""

import logging
from collections.abc import Iterator

import torch
from torch import Tensor

from emea.baselines.reasoner import (
    Embed,
    Fusion,
    MaximalAssignment,
    Observer,
    Reasoner,
    ReasoningReport,
)
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Matching
from emea.rules.directed_triples import DirectedTriples, TailGroups
from emea.rules.implied_pairs import ImpliedPairs, implied_pairs
from emea.rules.literal_rows import literal_rows, with_values
from emea.rules.neighbour_join import join_neighbours
from emea.rules.pair_evidence import log_doubt
from emea.rules.subsumption import Subsumption, estimate_subsumption, matched_sizes
from emea.runtime.block_memory import in_smaller_blocks

logger = logging.getLogger(__name__)


class ParisReasoner(Reasoner):
    """Estimates equivalences of entities and inclusions of relations in turn.

    Inclusions come from the current matching (Eq. 12 of PARIS). Equivalences come from matched
    neighbours and inclusions (Eq. 13, in both directions of every relation). Between iterations
    only the maximal assignment is kept: one counterpart for each entity of either side. Seed
    links stay certain. If the pair has matched literals, these are matched neighbours like any
    other, and seed links are optional. Validation links are not seeds, because the other methods do
    not train on them either.

    Args:
        pair: The two graphs.
        theta: Equivalences and inclusions below this probability are ignored.
        max_iterations: Maximum number of iterations.
        tolerance: Iterations stop when at most this share of the matched entities changes.
        device: Device to compute on.
    """

    initial_inclusion = 0.1  # theta of the PARIS paper
    """Inclusion of relations without evidence, in the first ``initial_iterations``."""

    initial_iterations = 1  # PARIS paper; released PRASE: 2; released PARIS: literal relations only
    retention = 0.9  # ours
    """Share of a match's evidence that is kept for one iteration after the evidence is gone.

    Without it, two halves of the graph can alternate and never converge. It does not change the
    fixed points.
    """

    least_evidence = 0.01  # released PRASE; released PARIS drops relations of functionality < 0.1
    """Weaker pieces of evidence are dropped, which limits the work for hubs."""

    def __init__(
        self,
        pair: GraphPair,
        theta: float,
        max_iterations: int,
        tolerance: float,
        device: torch.device | str = "cpu",
    ) -> None:
        if not 0 < theta <= 1 or not 0 <= tolerance <= 1:
            raise ValueError("theta and tolerance must be between 0 and 1, and theta above 0")
        extended = with_values(pair)
        self.literals = literal_rows(pair, device)
        self.num_source, self.num_target = pair.source.num_entities, pair.target.num_entities
        self.source = DirectedTriples(extended.source).to(device)
        self.target = DirectedTriples(extended.target).to(device)
        self.groups = TailGroups(self.source), TailGroups(self.target)
        self.functionality = (
            self.source.inverse_functionality.double(),
            self.target.inverse_functionality.double(),
        )
        self.theta = theta
        self.max_iterations = max_iterations
        self.tolerance = tolerance

    def align(self, seeds: Tensor, embed: Embed, observer: Observer) -> Matching:
        """Align from seed links; the encoder is not used."""
        known = Matching.of_links(seeds, self.num_source, self.num_target)
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
            known: Pairs that keep at least their probability; probability 1 means certain.
            matching: Matching to start from.
            observer: Called with the state after each iteration.
            fusion: Mixes the similarity of an embedding into the equivalences.
            first_iteration: Number of the first iteration.
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
        logger.info(
            "PARIS did not converge within %d iterations. The last matching is used.",
            self.max_iterations,
        )
        return matching

    @in_smaller_blocks
    def iterated(
        self,
        known: Matching,
        matching: Matching,
        initial: bool = False,
        fusion: Fusion | None = None,
    ) -> Matching:
        """Run one iteration: inclusions from the matching, then the next matching."""
        assignment = MaximalAssignment(known, self.theta)
        for pairs in self.implied(matching, assignment.free_source, initial):
            assignment.offer(pairs if fusion is None else fusion(pairs))
        assignment.hold(matching.faded(self.retention))
        return assignment.matching()

    def implied(
        self, matching: Matching, wanted: Tensor, initial: bool = False
    ) -> Iterator[ImpliedPairs]:
        """Yield the pairs that a matching implies for the wanted source entities (Eq. 13)."""
        included = self.inclusions(matching)
        if self.literals is not None:
            matching, wanted = self.literals.matching(matching), self.literals.wanted(wanted)

        def doubt(relation: Tensor, target_relation: Tensor, prob: Tensor) -> Tensor:
            forth, back = self._used_inclusions(included, relation, target_relation, initial)
            of_source, of_target = self.functionality
            return log_doubt(forth, back, of_source[relation], of_target[target_relation], prob)

        for pairs in implied_pairs(*self.groups, matching, wanted, doubt, self.least_evidence):
            yield pairs.to_targets_below(self.num_target)

    def inclusions(self, matching: Matching) -> Subsumption:
        """Estimate inclusions (Eq. 12): the share of the triples with matched ends that match.

        The released code of PRASE adds 10 to the number of triples with matched ends.
        """
        if self.literals is not None:
            matching = self.literals.matching(matching)
        beliefs = matching.beliefs()
        join = join_neighbours(self.source, self.target, beliefs)
        sizes = (
            matched_sizes(self.source, matching.probs),
            matched_sizes(self.target, matching.target_probs()),
        )
        return estimate_subsumption(join, beliefs, self.source, self.target, sizes)

    def _used_inclusions(
        self, included: Subsumption, relation: Tensor, target_relation: Tensor, initial: bool
    ) -> tuple[Tensor, Tensor]:
        """Return both inclusions if one of them reaches theta, else the default."""
        forth, back = included.of(relation, target_relation)
        known = torch.maximum(forth, back) >= self.theta
        default = self.initial_inclusion if initial else 0.0
        return torch.where(known, forth, default), torch.where(known, back, default)
