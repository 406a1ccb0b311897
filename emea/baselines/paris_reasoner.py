"""PARIS (Suchanek, Abiteboul and Senellart, VLDB 2011), from seed links or from literals."""

import logging
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from emea.baselines.reasoner import (
    AnyMatching,
    Assignment,
    Embed,
    Fusion,
    Observer,
    Reasoner,
    ReasoningReport,
    fixed_log_doubt,
)
from emea.data.entity_kinds import EntityKind
from emea.data.graph_pair import GraphPair
from emea.data.settings import Cardinality
from emea.matching.beliefs import Matching
from emea.matching.many_matching import ManyMatching
from emea.matching.rejected_pairs import RejectedPairs
from emea.rules.directed_triples import DirectedTriples, TailGroups
from emea.rules.implied_pairs import FIXED_POINT, ImpliedPairs, implied_pairs
from emea.rules.literal_rows import literal_rows, named_pairs, with_values
from emea.rules.negative_evidence import Difference, lowered, negative_evidence
from emea.rules.neighbour_join import join_neighbours
from emea.rules.subsumption import Subsumption, estimate_subsumption, matched_sizes
from emea.runtime.block_memory import in_smaller_blocks

logger = logging.getLogger(__name__)

FACTOR_TOLERANCE = 0.02
"""Change of the factor of a difference at which the negative evidence has settled."""

MOST_WAITS = 10
"""Iterations that a settled matching waits for the negative evidence to settle, at most."""

LEAST_NAMED = 0.5
"""Share of the seed links with names that match from which other terms need such names, too."""


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
        device: Device to compute on.

    Attributes:
        differences, former: What differences were worth in the last iteration and before it.
        factor_change: Largest change of a factor in the last iteration.
        iteration: Number of the next iteration.
        named: Pairs of classes and properties of two ontologies whose names match. In the small
            graph of a schema, structure by itself also supports many wrong pairs.
    """

    theta = 0.1  # released PARIS and PRASE
    """Equivalences and inclusions below this probability are ignored."""

    max_iterations = 50  # ours, seldom reached; released PRASE: 10
    tolerance = 0.01  # ours
    """Iterations stop when at most this share of the matched entities changes."""

    initial_inclusion = 0.1  # theta of the PARIS paper
    """Inclusion of relations without evidence, in the first ``initial_iterations``."""

    initial_iterations = (
        1  # PARIS paper; released PRASE: 2; released PARIS: literal relations only
    )
    retention = 0.9  # ours
    """Share of a match's evidence that is kept for one iteration after the evidence is gone.

    Without it, two halves of the graph can alternate and never converge. It does not change the
    fixed points.
    """

    least_evidence = (
        0.01  # released PRASE; released PARIS drops relations of functionality < 0.1
    )
    """Weaker pieces of evidence are dropped, which limits the work for hubs."""

    def __init__(self, pair: GraphPair, device: torch.device | str = "cpu") -> None:
        self.cardinality = pair.cardinality
        extended = with_values(pair)
        self.literals = literal_rows(pair, device)
        self.num_source, self.num_target = (
            pair.source.num_entities,
            pair.target.num_entities,
        )
        self.source = DirectedTriples(extended.source).to(device)
        self.target = DirectedTriples(extended.target).to(device)
        self.groups = TailGroups(self.source), TailGroups(self.target)
        kinds = pair.matched_kinds
        self.kinds = kinds and [
            torch.from_numpy(one.copy()).to(device) for one in kinds
        ]
        self.named = named_pairs(pair, device)
        self.rejected = RejectedPairs(pair.rejected)
        functionality = (
            self.groups[0].inverse_functionality,
            self.groups[1].inverse_functionality,
        )
        self.negative = negative_evidence(pair, functionality, device)
        self.differences: list[Difference] = []
        self.former: list[Difference] = []
        self.factor_change = 0.0
        self.iteration = 0

    def align(self, seeds: Tensor, embed: Embed, observer: Observer) -> AnyMatching:
        """Align from seed links; the encoder is not used."""
        if len(seeds) and self.named is not None:
            has_names = self._have_names(*seeds.T).double()
            # in ontologies in different languages, structure finds what names do not
            self.named = self.named if has_names.mean() >= LEAST_NAMED else None
        known = self.certain(seeds)
        return self.settled(known, known, observer)

    def certain(self, links: Tensor) -> AnyMatching:
        """Return a matching that consists of the links, with probability 1."""
        if self.cardinality == Cardinality.ONE_TO_ONE:
            return Matching.of_links(links, self.num_source, self.num_target)
        probs = torch.ones(len(links), dtype=torch.float64, device=links.device)
        return ManyMatching.of_pairs(links, probs, self.num_source, self.num_target)

    def settled(
        self,
        known: AnyMatching,
        matching: AnyMatching,
        observer: Observer,
        fusion: Fusion | None = None,
    ) -> AnyMatching:
        """Iterate from a matching to a fixed point.

        Args:
            known: Pairs that keep at least their probability; probability 1 means certain.
            matching: Matching to start from.
            observer: Called with the state after each iteration.
            fusion: Mixes the similarity of an embedding into the equivalences.
        """
        num_waits = 0
        for _ in range(self.max_iterations):
            initial = self.iteration < self.initial_iterations
            updated = self.iterated(known, matching, initial, fusion)
            num_changes = updated.num_changes(matching)  # type: ignore[arg-type]  # same class
            matching = updated
            similarity = None if fusion is None else fusion.similarity
            observer(ReasoningReport(self.iteration, matching, num_changes, similarity))
            self.iteration += 1
            if num_changes <= self.tolerance * len(matching.sources) and not initial:
                if self.factor_change <= FACTOR_TOLERANCE or num_waits == MOST_WAITS:
                    return matching
                num_waits += 1
        logger.info(
            "PARIS did not converge within %d iterations. The last matching is used.",
            self.max_iterations,
        )
        return matching

    @in_smaller_blocks
    def iterated(
        self,
        known: AnyMatching,
        matching: AnyMatching,
        initial: bool = False,
        fusion: Fusion | None = None,
    ) -> AnyMatching:
        """Run one iteration: inclusions from the matching, then the next matching."""
        assignment = Assignment(known, self.theta, self.cardinality)
        for pairs in self.implied(matching, assignment.free_source, initial):
            assignment.offer(pairs if fusion is None else fusion(pairs))
        held = matching.faded(self.retention)
        if self.negative is None:
            assignment.hold(held)
        else:
            assignment.offer(self._still_held(held, assignment.free_source))
        return assignment.matching()

    def implied(
        self, matching: AnyMatching, wanted: Tensor, initial: bool = False
    ) -> Iterator[ImpliedPairs]:
        """Yield the pairs that a matching implies for the wanted source entities (Eq. 13)."""
        included = self.inclusions(matching)
        differences = []
        if self.negative is not None:
            differences = self._differences(included, matching)
        if self.literals is not None:
            matching = self.literals.matching(matching)
            wanted = self.literals.wanted(wanted)
        used = partial(self._used_inclusions, included, initial)
        for pairs in implied_pairs(
            *self.groups,
            matching,
            wanted=wanted,
            included=used,
            least_evidence=self.least_evidence,
        ):
            pairs = pairs.kept(
                pairs.targets < self.num_target
            )  # literal values have larger ids
            if self.kinds is not None:
                same = self.kinds[0][pairs.sources] == self.kinds[1][pairs.targets]
                pairs = pairs.kept(same)
            if self.named is not None:
                pairs = pairs.kept(self._have_names(pairs.sources, pairs.targets))
            if len(self.rejected):
                pairs = pairs.kept(~self.rejected(pairs.sources, pairs.targets))
            yield self._lowered(pairs, differences) if differences else pairs

    def relational(self, matching: AnyMatching) -> Iterator[ImpliedPairs]:
        """Yield the pairs that matched neighbours support, without the evidence of literals."""
        included = self.inclusions(matching)
        if self.literals is not None:
            matching = self.literals.without_values(matching)
        wanted = torch.ones(len(self.groups[0].starts) - 1, dtype=torch.bool)
        wanted[self.num_source :] = False
        used = partial(self._used_inclusions, included, False)
        wanted = wanted.to(matching.targets.device)
        for pairs in implied_pairs(
            *self.groups,
            matching,
            wanted=wanted,
            included=used,
            least_evidence=self.least_evidence,
        ):
            yield pairs.kept(pairs.targets < self.num_target)

    def _have_names(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return whether the names of terms match. Individuals need no names."""
        assert self.named is not None and self.kinds is not None
        is_individual = self.kinds[0][sources] == EntityKind.INDIVIDUAL
        return is_individual | torch.isin(
            sources * self.num_target + targets, self.named
        )

    def _differences(
        self, included: Subsumption, matching: AnyMatching
    ) -> list[Difference]:
        """Estimate what different values are worth, and note how much that changed."""
        assert self.negative is not None
        found = self.negative.differences(
            included, matching.pairs(), matching.pair_probs(), self.differences
        )
        self.former, self.differences = self.differences, found
        now, before = (
            {one.relation: one.factor for one in rows} for rows in (found, self.former)
        )
        changes = [
            abs(now.get(one, 1.0) - before.get(one, 1.0)) for one in now.keys() | before
        ]
        self.factor_change = max(changes, default=0.0)
        return found

    def _still_held(self, held: AnyMatching, free_source: Tensor) -> ImpliedPairs:
        """Return the pairs of an earlier matching, with what differences are worth now."""
        assert self.negative is not None
        kept = free_source[held.pairs()[:, 0]]
        sources, targets = held.pairs()[kept].T
        now, before = (
            self.negative.log_factors(found, sources, targets)
            for found in (self.differences, self.former)
        )
        log_doubt = fixed_log_doubt(held.pair_probs()[kept]).double() / FIXED_POINT
        log_doubt = lowered(log_doubt, (now - before).clamp(max=0))
        return ImpliedPairs(sources, targets, (log_doubt * FIXED_POINT).round().long())

    def _lowered(
        self, pairs: ImpliedPairs, differences: list[Difference]
    ) -> ImpliedPairs:
        """Return the pairs with the evidence of different values against them.

        Pairs below theta are left unchanged, because they are ignored.
        """
        assert self.negative is not None
        wanted = (pairs.log_doubt <= fixed_log_doubt(self.theta)).nonzero().squeeze(1)
        log_factors = self.negative.log_factors(
            differences, pairs.sources[wanted], pairs.targets[wanted]
        )
        log_doubt = pairs.log_doubt.clone()
        less = lowered(log_doubt[wanted].double() / FIXED_POINT, log_factors)
        log_doubt[wanted] = (less * FIXED_POINT).round().long()
        return pairs._replace(log_doubt=log_doubt)

    def inclusions(self, matching: AnyMatching) -> Subsumption:
        """Estimate inclusions (Eq. 12): the share of the triples with matched ends that match.

        The released code of PRASE adds 10 to the number of triples with matched ends.
        """
        if self.literals is not None:
            matching = self.literals.matching(matching)
        beliefs = matching.beliefs()
        join = join_neighbours(self.source, self.target, beliefs)
        sizes = (
            matched_sizes(self.source, matching.source_probs()),
            matched_sizes(self.target, matching.target_probs()),
        )
        return estimate_subsumption(
            join, beliefs, self.source, self.target, sizes=sizes
        )

    def _used_inclusions(
        self,
        included: Subsumption,
        initial: bool,
        relation: Tensor,
        target_relation: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return both inclusions if one of them reaches theta, else the default."""
        forth, back = included.of(relation, target_relation)
        known = torch.maximum(forth, back) >= self.theta
        default = self.initial_inclusion if initial else 0.0
        return torch.where(known, forth, default), torch.where(known, back, default)
