"""Two-way beliefs: belief updates on both sides."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.data.arrays import NO_MATCH
from emea.em.local import LocalUpdate
from emea.em.local_search import LocalSearch, WholeSearch
from emea.em.match_model import MatchModel, PairFeatures
from emea.em.normaliser import DEFAULT_SHARPNESS, FittedSearch, sharpness_of
from emea.em.propagation import Propagation
from emea.em.running_scores import RunningScores
from emea.matching.beliefs import Matching
from emea.matching.pair_table import (
    LabelledSlots,
    PairTable,
    ScoredPairs,
    group_sizes,
    tabulate,
)
from emea.matching.similarity import Similarity
from emea.matching.two_sided import OneSided, Subset, TwoSided, two_sided
from emea.rules.pair_evidence import EvidenceModel, PairEvidence

FEW_CHANGES = 0.01
"""Share of entities whose match must change in a round of propagation to start another one."""

NOTED_PROB = 0.1
"""If a match of at least this probability changes, a local update recomputes its neighbours."""


@dataclass(frozen=True, eq=False)
class TwoWayBeliefs:
    """Holds the beliefs in the pairs of a table.

    Args:
        table: The pairs.
        from_source: ``[num_source, width]`` log p(e'|e); labelled entities are certain.
        belief: ``[num_source, width]`` log belief in each pair; labelled entities are certain.
        log_probs: ``[num_source, width]`` log probabilities of the encoder from both sides.
        evidence: Evidence on which the beliefs are based, in addition to the similarity.
        sharpness: Sharpness of the neural model's softmaxes.
        num_updates: Updates of the beliefs in the last round.
        change: Mean change of an entity's beliefs in the last update.
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
    recomputed: Tensor | None = None

    def mutual(self) -> Matching:
        """Return the pairs in which each entity is the other's best candidate."""
        return mutual_pairs(self.table, self.belief)


def mutual_pairs(table: PairTable, belief: Tensor) -> Matching:
    """Return the pairs in which each entity is the other's best candidate, with their belief.

    If a source entity has several candidates with the same belief, their similarity decides. If
    the similarity is equal too, the entity has no match.

    Args:
        table: The pairs.
        belief: ``[num_source, width]`` log belief in each pair.
    """
    best = belief.max(1, keepdim=True)
    targets, scores, chosen = (
        values.gather(1, best.indices) for values in (table.targets, table.scores, table.filled)
    )
    equal = (belief == best.values) & (table.scores == scores) & table.filled
    lowest = belief.new_full((table.num_target,), -torch.inf)
    of_target = table.max_by_target(belief, lowest)
    chosen &= (best.values >= of_target[targets]) & (equal.sum(1, keepdim=True) == 1)
    probs = best.values.exp()
    return _without_rivals(
        targets.squeeze(1), probs.squeeze(1), chosen.squeeze(1), table.num_target
    )


class TwoWay:
    """Updates the beliefs of both sides in parallel.

    Candidates are the encoder's best from both sides. An update computes the evidence for every
    pair from the current beliefs, estimates the inclusions of relations, fits the weights of the
    features and replaces all beliefs at once. After the updates of a round, pairs implied by the
    mutual best pairs join the candidates, and another round starts. The updates are a heuristic:
    they do not maximise a common objective.

    Args:
        evidence: Evidence of PARIS for pairs.
        model: Computes beliefs from features.
        propagation: Finds implied pairs.
        num_candidates: Candidates per entity from the encoder.
        max_candidates: Largest number of pairs per source entity.
        max_updates: Largest number of updates per round.
        tolerance: A round ends when the mean change of an entity's beliefs is at most this.
        rounds: Largest number of rounds after the first one, each with new pairs. With 0 there are
            only the encoder's candidates. The rounds end when few mutual best pairs change.
        past_share: Share of earlier iterations in the similarity of a pair.
        one_to_one: Remove labelled entities from the candidates, denominators and implied pairs
            of the others.

    Attributes:
        start: Matches from which the next call starts instead of the encoder's beliefs; ``None``
            if there are none.
    """

    def __init__(
        self,
        evidence: EvidenceModel,
        model: MatchModel,
        propagation: Propagation,
        num_candidates: int = 10,
        max_candidates: int = 30,
        max_updates: int = 2,
        tolerance: float = 0.002,
        rounds: int = 5,
        past_share: float = 0.0,
        one_to_one: bool = False,
    ) -> None:
        self.evidence = evidence
        self.model = model
        self.propagation = propagation
        self.num_candidates = num_candidates
        self.max_candidates = max_candidates
        self.max_updates = max_updates
        self.tolerance = tolerance
        self.rounds = rounds
        self.past = RunningScores(past_share)
        self.start: Matching | None = None
        self.one_to_one = one_to_one

    def __call__(
        self,
        similarity: Similarity,
        labels: Tensor,
        links: Tensor,
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
        free = Subset.unlabelled(similarity, labels) if self.one_to_one else None
        links = links if free is None else free.between(links)
        search: WholeSearch | LocalSearch
        if local is None:
            search = WholeSearch(self._search(similarity, links, searched, free), free)
        else:
            search = self._local_search(similarity, links, free, local)
        preferred = ScoredPairs(labels[:, 0], labels[:, 1], similarity.of_pairs(*labels.T))
        start, self.start = self._begin(similarity.source.device), None
        if start is not None:
            sources, targets = start.pairs().T
            begun = ScoredPairs(sources, targets, similarity.of_pairs(sources, targets))
            preferred = preferred.joined(begun)
        if local is not None:
            preferred = preferred.joined(local.kept_pairs(similarity))
        known: Matching | None = None
        for left in range(self.rounds, -1, -1):
            table = self._tabulated(similarity, search.pairs, preferred, len(labels), rejected)
            sides = search.sides(table)
            settled = self._settled(table, sides, labels, links, known or start, search.local)
            matching = settled.mutual()
            if not left:
                break
            is_wider = self._widen(search, start, matching)
            is_equal = known is not None and _nearly_equal(matching, known, search.local)
            if is_equal and not is_wider:
                break
            known = matching
            implied = self.propagation(known, settled.evidence.subsumption, similarity, search.free)
            preferred = preferred.joined(ScoredPairs(*implied, similarity.of_pairs(*implied)))
        self.past.keep(table, settled.log_probs)
        if search.local is None:
            return settled
        self.start = matching  # a second local update continues from here
        return replace(settled, recomputed=search.local.source)

    def _widen(
        self, search: WholeSearch | LocalSearch, start: Matching | None, matching: Matching
    ) -> bool:
        """Let a local update recompute the neighbours of entities that have another match.

        Returns:
            Whether there are enough such neighbours that it has not recomputed yet.
        """
        if isinstance(search, WholeSearch) or start is None:
            return False
        differs = (matching.targets != start.targets) & search.local.source
        differs &= torch.maximum(matching.probs, start.probs) >= NOTED_PROB
        triples, rows = self.evidence.source, torch.zeros_like(search.local.source)
        rows[triples.pair_heads[differs[triples.pair_tails]]] = True
        return search.widen(rows)

    def _begin(self, device: torch.device) -> Matching | None:
        if self.start is None:
            return None
        return replace(
            self.start, targets=self.start.targets.to(device), probs=self.start.probs.to(device)
        )

    def _search(
        self,
        similarity: Similarity,
        links: Tensor,
        searched: FittedSearch | None,
        free: Subset | None,
    ) -> TwoSided:
        """Search candidates from both sides; only among unlabelled entities if they are given."""
        if free is not None:
            similarity, links = free.similarity(similarity), free.numbered(links)
        k = min(self.num_candidates, similarity.num_target)
        forth = None
        if free is None and searched is not None and searched.equals(k, links):
            forth = searched.side
        sharpness = fitted_sharpness(similarity, links, forth)
        sides = two_sided(similarity, k, sharpness, self.model.both, forth)
        return sides if free is None else free.restored(sides)

    def _local_search(
        self, similarity: Similarity, links: Tensor, free: Subset | None, local: LocalUpdate
    ) -> LocalSearch:
        """Search candidates of the affected entities only."""
        whole = Subset.everything(similarity) if free is None else free
        among = similarity if free is None else free.similarity(similarity)
        sharpness = fitted_sharpness(among, whole.numbered(links))
        k = min(self.num_candidates, among.num_target)
        return LocalSearch(similarity, k, sharpness, self.model.both, local, whole)

    def _tabulated(
        self,
        similarity: Similarity,
        found: ScoredPairs,
        preferred: ScoredPairs,
        num_labels: int,
        rejected: Tensor | None,
    ) -> PairTable:
        both = preferred.joined(found)
        preference = torch.zeros_like(both.sources)
        preference[: len(preferred.sources)] = 1
        preference[:num_labels] = 2
        if rejected is not None:
            kept = ~both.among(rejected, similarity.num_target)
            both, preference = both.kept(kept), preference[kept]
        return tabulate(
            both,
            preference,
            similarity.num_source,
            similarity.num_target,
            self.max_candidates,
        )

    def _settled(
        self,
        table: PairTable,
        sides: TwoSided,
        labels: Tensor,
        links: Tensor,
        known: Matching | None,
        local: LocalUpdate | None,
    ) -> TwoWayBeliefs:
        """Run the updates of a round, starting from the encoder's beliefs or from a matching."""
        log_probs = sides.log_probs(table)
        log_rest = sides.log_rest(table, log_probs)
        log_probs = self.past.blended(table, log_probs)
        labelled = LabelledSlots.of(table, labels)
        if known is None:
            start = self.model.encoder_beliefs(PairFeatures(table, log_probs, log_rest, {}))
            probs = labelled.put_into(start).exp()
        else:
            probs = _of_matching(known, table)
        former = None if local is None else local.kept_rows(table)
        num_rows = table.num_source
        if former is not None:
            probs = former.put_into(probs)
            num_rows -= int(former.rows.sum())
        examples = self.model.examples(table, links)
        for num_updates in range(1, self.max_updates + 1):  # noqa: B007
            evidence = self.evidence(table, probs)
            features = PairFeatures(table, log_probs, log_rest, _named(evidence))
            self.model.fit(features, examples)
            from_source, _, belief = self.model.beliefs(features)
            belief = labelled.put_into(belief)
            if former is not None:
                belief = former.put_into(belief, log=True)
            before, probs = probs, belief.exp()
            change = float((probs - before).abs().sum() / num_rows)
            if change <= self.tolerance:
                break
        return TwoWayBeliefs(
            table,
            labelled.put_into(from_source),
            belief,
            log_probs,
            evidence,
            sides.sharpness,
            num_updates,
            change,
        )


def fitted_sharpness(
    similarity: Similarity, links: Tensor, forth: OneSided | None = None
) -> tuple[float, float]:
    """Return the sharpness of the softmaxes over targets and sources, fitted on links (Eq. 3).

    Args:
        similarity: Scores all pairs.
        links: Links to fit on. Without links, both have the default sharpness.
        forth: A search from the source side with a fitted sharpness.
    """
    if not len(links):
        return DEFAULT_SHARPNESS, DEFAULT_SHARPNESS
    first = sharpness_of(similarity, links) if forth is None else forth.sharpness
    return first, sharpness_of(similarity.reversed(), links.flip(1))


def _named(evidence: PairEvidence) -> dict[str, Tensor]:
    doubt = evidence.log_doubt
    named = {
        "noisy_or": -torch.expm1(doubt),
        "evidence": torch.log1p(-doubt),
        "coverage": evidence.coverage,
    }
    if evidence.rare_coverage is not None:
        named["rare_coverage"] = evidence.rare_coverage
    if evidence.relation_overlap is not None:
        named["relation_overlap"] = evidence.relation_overlap
    return named


def _of_matching(matching: Matching, table: PairTable) -> Tensor:
    marked = table.marked(matching.pairs())
    return torch.where(marked, matching.probs.to(table.scores.dtype).unsqueeze(1), 0.0)


def _nearly_equal(one: Matching, other: Matching, local: LocalUpdate | None) -> bool:
    sources = one.sources if local is None else one.sources[local.source[one.sources]]
    return one.num_changes(other) <= FEW_CHANGES * len(sources)


def _without_rivals(targets: Tensor, probs: Tensor, chosen: Tensor, num_target: int) -> Matching:
    """Return a matching of the chosen pairs; if several tie for one target, none is matched.

    In many datasets, counterparts have equal ids. Ids must therefore not break ties.
    """
    rivals = group_sizes(targets, num_target, chosen)
    chosen = chosen & (rivals[targets] == 1)
    return Matching(
        torch.where(chosen, targets, NO_MATCH), torch.where(chosen, probs, 0.0).double(), num_target
    )
