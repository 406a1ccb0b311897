"""Two-way beliefs: belief updates on both sides."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from emea.em.counterparts import Share
from emea.em.local import LocalSearch, LocalUpdate, WholeSearch
from emea.em.match_model import BeliefModel, PairFeatures
from emea.em.normaliser import FittedSearch, fitted_sharpness
from emea.em.propagation import Propagation
from emea.em.settings import TwoWaySettings
from emea.matching.beliefs import Matching
from emea.matching.pair_table import (
    LabelledSlots,
    PairRanking,
    PairTable,
    ScoredPairs,
    tabulate,
)
from emea.matching.similarity import Similarity
from emea.matching.two_sided import Subset, two_sided
from emea.rules.pair_evidence import EvidenceModel, PairEvidence

FEW_CHANGES = 0.01
"""Share of entities whose match must change in a round of propagation to start another one."""

SMALL_CHANGE = 0.002
"""Mean change of an entity's beliefs at which the updates of a round end."""

NOTED_PROB = 0.1
"""If a match of at least this probability changes, a local update recomputes its neighbours."""


@dataclass(frozen=True, eq=False)
class TwoWayBeliefs:
    """The beliefs in the pairs of a table.

    Args:
        table: The pairs.
        from_source: ``[num_source, width]`` log p(e'|e); labelled entities are certain.
        belief: ``[num_source, width]`` log belief in each pair; labelled entities are certain.
        log_probs: ``[num_source, width]`` log probabilities of the encoder from both sides.
        evidence: Evidence on which the beliefs are based, in addition to the similarity.
        sharpness: Sharpness of the neural model's softmaxes.
        num_updates: Updates of the beliefs in the last round.
        change: Mean change of an entity's beliefs in the last update.
        shares: Share of the unlabelled entities of each side that have a counterpart; ``None``
            without held-out links.
        recomputed: ``[num_source]`` bool: entities that a local update recomputed; ``None`` if all
            are.
    """

    table: PairTable
    from_source: Tensor
    belief: Tensor
    log_probs: tuple[Tensor, Tensor]
    evidence: PairEvidence
    sharpness: tuple[float, float]
    num_updates: int
    change: float
    shares: tuple[Share, ...] | None = None
    recomputed: Tensor | None = None

    @property
    def ranking(self) -> PairRanking:
        """The pairs, ranked by their belief."""
        return PairRanking(self.table, self.belief)

    def mutual(self) -> Matching:
        """Return the pairs in which each entity is the other's best candidate."""
        return Matching.mutual(self.ranking)


class GivenPairs(NamedTuple):
    """What is known about pairs before the beliefs are computed.

    Args:
        labels: ``[num_labels, 2]`` links that are certain.
        links: ``[num_links, 2]`` held-out links on which the weights are fitted.
        unlabelled: Ids of the entities of each side without a label and without a held-out link.
        preferred: Pairs that are candidates in any case, the labels first.
        rejected: ``[num_pairs, 2]`` pairs that are not candidates; ``None`` if there are none.
    """

    labels: Tensor
    links: Tensor
    unlabelled: tuple[Tensor, Tensor]
    preferred: ScoredPairs
    rejected: Tensor | None


@dataclass(eq=False)
class TwoWay:
    """Updates the beliefs of both sides in parallel.

    Candidates are the encoder's best from both sides. An update computes the evidence for every
    pair from the current beliefs, estimates the inclusions of relations, fits the weights of the
    features and replaces all beliefs at once. After the updates of a round, pairs implied by the
    mutual best pairs join the candidates, and another round starts. The rounds end when few mutual
    best pairs change. The updates are a heuristic: they do not maximise a common objective.

    Args:
        evidence: Evidence of PARIS for pairs.
        model: Computes beliefs from features.
        propagation: Finds implied pairs.
        settings: Settings of the two-way step.
        num_candidates: Candidates per entity from the encoder.
        start: Matches from which the next call starts instead of the encoder's beliefs; ``None``
            if there are none.
    """

    evidence: EvidenceModel
    model: BeliefModel
    propagation: Propagation
    settings: TwoWaySettings
    num_candidates: int
    start: Matching | None = None

    def __call__(
        self,
        similarity: Similarity,
        labels: Tensor,
        links: Tensor,
        *,
        searched: FittedSearch | None = None,
        rejected: Tensor | None = None,
        local: LocalUpdate | None = None,
    ) -> TwoWayBeliefs:
        """Compute the beliefs.

        Args:
            similarity: Similarity of the encoder.
            labels: ``[num_labels, 2]`` links that are certain.
            links: ``[num_links, 2]`` held-out links on which the weights are fitted.
            searched: The search that q is based on. It is reused if it has the same settings.
            rejected: ``[num_pairs, 2]`` pairs that are not candidates; ``None`` if there are none.
            local: Entities to which the computation is restricted; ``None`` means all. The entities
                of ``links`` must be among them.
        """
        free = (
            Subset.unlabelled(similarity, labels) if self.settings.one_to_one else None
        )
        links = links if free is None else free.between(links)
        search = self._search(similarity, links, searched, free, local)
        self.model.shares = None
        # the start is used once: later calls begin with the beliefs of the encoder. Only a local
        # update sets it again, at its end
        start = self.start
        self.start = None
        if start is not None:
            start = start.to(similarity.source.device)
        given = GivenPairs(
            labels=labels,
            links=links,
            unlabelled=Subset.unlabelled(similarity, torch.cat([labels, links])).ids(),
            preferred=_preferred_pairs(similarity, labels, start, local),
            rejected=rejected,
        )
        settled = self._after_rounds(similarity, search, given, start)
        if search.local is None:
            return settled
        self.start = settled.mutual()  # a second local update continues from here
        return replace(settled, recomputed=search.local.source)

    def _after_rounds(
        self,
        similarity: Similarity,
        search: WholeSearch | LocalSearch,
        given: GivenPairs,
        start: Matching | None,
    ) -> TwoWayBeliefs:
        """Return the beliefs of the last round; each one adds the pairs that the last implied."""
        preferred = given.preferred
        known: Matching | None = None
        for left in range(self.settings.propagation, -1, -1):
            candidates = given._replace(preferred=preferred)
            table = self._tabulated(similarity, search.pairs, candidates)
            settled = self._settled(table, search, given, known or start)
            if not left:
                break
            matching = settled.mutual()
            # the rounds end when the matching hardly changes, and, for a local update, no further
            # entities must be recomputed
            is_wider = self._widen(search, start, matching)
            is_equal = known is not None and _nearly_equal(
                matching, known, search.local
            )
            if is_equal and not is_wider:
                break
            known = matching
            implied = self.propagation(
                known, settled.evidence.subsumption, similarity, search.free
            )
            preferred = preferred.joined(_scored(similarity, *implied))
        return settled

    def _widen(
        self,
        search: WholeSearch | LocalSearch,
        start: Matching | None,
        matching: Matching,
    ) -> bool:
        """Let a local update recompute the neighbours of entities that have another match.

        Returns:
            Whether there are enough such neighbours that it has not recomputed yet.
        """
        if isinstance(search, WholeSearch) or start is None:
            return False
        differs = (matching.targets != start.targets) & search.local.source
        differs &= torch.maximum(matching.probs, start.probs) >= NOTED_PROB
        triples = self.evidence.source
        rows = torch.zeros_like(search.local.source)
        rows[triples.pair_heads[differs[triples.pair_tails]]] = True
        return search.widen(rows)

    def _search(
        self,
        similarity: Similarity,
        links: Tensor,
        searched: FittedSearch | None,
        free: Subset | None,
        local: LocalUpdate | None,
    ) -> WholeSearch | LocalSearch:
        """Search candidates; only among unlabelled entities, or of affected ones, if given."""
        among = similarity
        numbered = links
        if free is not None:
            among = free.similarity(similarity)
            numbered = free.numbered(links)
        k = min(self.num_candidates, among.num_target)
        both = self.model.both
        if local is not None:
            whole = Subset.unlabelled(similarity, links[:0]) if free is None else free
            sharpness = fitted_sharpness(among, numbered)
            return LocalSearch(
                similarity, k, sharpness=sharpness, both=both, local=local, whole=whole
            )
        forth = None
        if free is None and searched is not None and searched.equals(k, links):
            forth = searched.side
        sides = two_sided(
            among, k, fitted_sharpness(among, numbered, forth), both, forth
        )
        return WholeSearch(sides if free is None else free.restored(sides), free)

    def _tabulated(
        self,
        similarity: Similarity,
        found: ScoredPairs,
        given: GivenPairs,
    ) -> PairTable:
        """Return the candidates: labels first, then the other preferred pairs, then found ones."""
        both = given.preferred.joined(found)
        preference = torch.zeros_like(both.sources)
        preference[: len(given.preferred.sources)] = 1
        preference[: len(given.labels)] = 2
        num_source = similarity.num_source
        num_target = similarity.num_target
        if given.rejected is not None:
            kept = ~both.among(given.rejected, num_target)
            both = both.kept(kept)
            preference = preference[kept]
        return tabulate(
            both, preference, num_source, num_target, self.settings.max_candidates
        )

    def _settled(
        self,
        table: PairTable,
        search: WholeSearch | LocalSearch,
        given: GivenPairs,
        known: Matching | None,
    ) -> TwoWayBeliefs:
        """Run the updates of a round, starting from the encoder's beliefs or from a matching."""
        # what the encoder says, from both sides: log q of each pair, and of all entities that are
        # not candidates. It stays the same in all updates of the round
        sides = search.sides(table)
        log_probs = sides.log_probs(table)
        log_rest = sides.log_rest(table, log_probs)
        labelled = LabelledSlots.of(table, given.labels)
        # the first beliefs, [num_source, width]: those of the encoder, or of a matching from the
        # round before or from an earlier run
        if known is None:
            alone = PairFeatures(table, log_probs, log_rest, {})
            probs = labelled.put_into(self.model.encoder_beliefs(alone)).exp()
        else:
            probs = _probs_of(known, table)
        # a local update keeps the former beliefs of the entities that it does not recompute, in
        # the start and after each update; only recomputed entities count in the mean change
        num_rows = table.num_source
        local = search.local
        if local is not None:
            former = local.kept_probs(table)
            probs = local.put_former(former, probs)
            num_rows = int(local.source.sum())
        examples = self.model.examples(table, given.links)
        # an update: evidence from the current beliefs (E-step of the neighbours), weights fitted on
        # held-out links with this evidence (M-step), then all beliefs at once. Labels are certain
        # after each update
        for num_updates in range(1, self.settings.sweeps + 1):  # noqa: B007
            evidence = self.evidence(table, probs)
            features = PairFeatures(table, log_probs, log_rest, evidence.features)
            self.model.fit(features, examples, given.unlabelled)
            found = self.model.beliefs(features)
            belief = labelled.put_into(found.joint)
            if local is not None:
                belief = local.put_former(former.log(), belief)
            before = probs
            probs = belief.exp()
            change = float((probs - before).abs().sum() / num_rows)
            if change <= SMALL_CHANGE:
                break
        return TwoWayBeliefs(
            table,
            labelled.put_into(found.from_source),
            belief,
            log_probs,
            evidence,
            sides.sharpness,
            num_updates,
            change,
            self.model.shares,
        )


def _probs_of(known: Matching, table: PairTable) -> Tensor:
    """Return the probabilities of a matching, ``[num_source, width]``; other pairs have 0."""
    matched = known.probs.to(table.scores.dtype).unsqueeze(1)
    return torch.where(table.marked(known.pairs()), matched, 0.0)


def _scored(similarity: Similarity, sources: Tensor, targets: Tensor) -> ScoredPairs:
    return ScoredPairs(sources, targets, similarity.of_pairs(sources, targets))


def _preferred_pairs(
    similarity: Similarity,
    labels: Tensor,
    start: Matching | None,
    local: LocalUpdate | None,
) -> ScoredPairs:
    """Return the pairs that are candidates in any case: labels, known matches, former pairs."""
    pairs = _scored(similarity, *labels.T)
    if start is not None:
        pairs = pairs.joined(_scored(similarity, *start.pairs().T))
    return pairs if local is None else pairs.joined(local.kept_pairs(similarity))


def _nearly_equal(one: Matching, other: Matching, local: LocalUpdate | None) -> bool:
    sources = one.sources if local is None else one.sources[local.source[one.sources]]
    return one.num_changes(other) <= FEW_CHANGES * len(sources)
