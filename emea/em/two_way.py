"""Two-way beliefs: belief updates on both sides, with a running mean of similarities."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.data.arrays import NO_MATCH
from emea.em.match_model import MatchModel, PairFeatures
from emea.em.normaliser import DEFAULT_SHARPNESS, FittedSearch, sharpness_of
from emea.em.propagation import Propagation
from emea.matching.matching import Matching
from emea.matching.pair_table import PairTable, ScoredPairs, tabulate
from emea.matching.similarity import Similarity
from emea.matching.two_sided import OneSided, TwoSided, two_sided
from emea.matching.unlabelled import Unlabelled
from emea.rules.pair_evidence import EvidenceModel, PairEvidence

Sides = tuple[Tensor, Tensor]


class RunningScores:
    """Keeps a running mean of the pairs' log-probabilities from both sides.

    The similarity of a pair differs between fits on nearly the same labels. A pair that was in the
    last table has the mean of its past and its current value. A new pair has its current value.

    Args:
        share: Share of the past in the mean; with 0 nothing is kept.
    """

    def __init__(self, share: float = 0.0) -> None:
        if not 0 <= share < 1:
            raise ValueError(f"The share of the past must be at least 0 and below 1, got {share}.")
        self.share = share
        self.keys = torch.zeros(0, dtype=torch.int64)
        self.past: Sides = (torch.zeros(0), torch.zeros(0))

    def blended(self, table: PairTable, log_probs: Sides) -> Sides:
        """Return the mean of the past and the given values, ``[num_source, width]`` per side."""
        if not len(self.keys):
            return log_probs
        keys = table.keys()
        self.keys, self.past = self.keys.to(keys.device), _moved(self.past, log_probs[0])
        place = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
        weight = self.share * ((self.keys[place] == keys) & table.filled)
        first, second = (
            torch.lerp(now, past[place], weight.to(now.dtype))
            for now, past in zip(log_probs, self.past, strict=True)
        )
        return first, second

    def keep(self, table: PairTable, log_probs: Sides) -> None:
        """Keep the values for the next iteration."""
        if not self.share:
            return
        keys, order = table.keys()[table.filled].sort()
        self.keys = keys
        first, second = (side[table.filled][order] for side in log_probs)
        self.past = first, second

    def state_dict(self) -> dict[str, Tensor]:
        """Return the running means; empty if the past has no share."""
        if not self.share:
            return {}
        return {"keys": self.keys, "forth": self.past[0], "back": self.past[1]}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore a saved state.

        Raises:
            ValueError: If the tensors do not have the same length.
        """
        if not self.share:
            return
        keys, past = state["keys"], (state["forth"], state["back"])
        if keys.dtype != torch.int64 or any(side.shape != (len(keys),) for side in past):
            raise ValueError("The running means of pairs do not have the same length.")
        self.keys, self.past = keys, past


def _moved(sides: Sides, like: Tensor) -> Sides:
    return sides[0].to(like), sides[1].to(like)


FEW_CHANGES = 0.01
"""Share of entities whose match must change in a round of propagation to start another one."""


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
    """

    table: PairTable
    from_source: Tensor
    belief: Tensor
    log_probs: tuple[Tensor, Tensor]
    evidence: PairEvidence
    sharpness: tuple[float, float]
    num_updates: int
    change: float

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
    ) -> TwoWayBeliefs:
        """Compute the beliefs.

        Args:
            similarity: Similarity of the encoder.
            labels: ``[num_labels, 2]`` links that are certain.
            links: ``[num_links, 2]`` held-out links on which the weights are fitted.
            searched: The search that q is based on. It is reused if it has the same settings.
            rejected: ``[num_pairs, 2]`` pairs that are not candidates; ``None`` if there are none.
        """
        free = Unlabelled.of(similarity, labels) if self.one_to_one else None
        links = links if free is None else free.between(links)
        sides = self._search(similarity, links, searched, free)
        scores = similarity.of_pairs(*labels.T)
        preferred = ScoredPairs(labels[:, 0], labels[:, 1], scores)
        start, self.start = self._begin(similarity.source.device), None
        if start is not None:
            sources, targets = start.pairs().T
            begun = ScoredPairs(sources, targets, similarity.of_pairs(sources, targets))
            preferred = preferred.joined(begun)
        known: Matching | None = None
        for left in range(self.rounds, -1, -1):
            table = self._tabulated(similarity, sides.pairs, preferred, len(labels), rejected)
            settled = self._settled(table, sides, labels, links, known or start)
            matching = settled.mutual()
            if not left or (known is not None and _nearly_equal(matching, known)):
                break
            known = matching
            implied = self.propagation(known, settled.evidence.subsumption, similarity, free)
            preferred = preferred.joined(ScoredPairs(*implied, similarity.of_pairs(*implied)))
        self.past.keep(table, settled.log_probs)
        return settled

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
        free: Unlabelled | None,
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
    ) -> TwoWayBeliefs:
        """Run the updates of a round, starting from the encoder's beliefs or from a matching."""
        log_probs = self.past.blended(table, sides.log_probs(table))
        log_rest = sides.log_rest(table)
        if known is None:
            start = self.model.encoder_beliefs(PairFeatures(table, log_probs, log_rest, {}))
            probs = certain(start, table, labels).exp()
        else:
            probs = _of_matching(known, table)
        for num_updates in range(1, self.max_updates + 1):  # noqa: B007
            evidence = self.evidence(table, probs)
            features = PairFeatures(table, log_probs, log_rest, _named(evidence))
            self.model.fit(features, links)
            from_source, _, belief = self.model.beliefs(features)
            belief = certain(belief, table, labels)
            change = float((belief.exp() - probs).abs().sum() / table.num_source)
            probs = belief.exp()
            if change <= self.tolerance:
                break
        return TwoWayBeliefs(
            table,
            certain(from_source, table, labels),
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


def certain(log_probs: Tensor, table: PairTable, labels: Tensor) -> Tensor:
    """Make labelled pairs certain and the other pairs of their entities impossible."""
    of_source = torch.zeros(table.num_source, dtype=torch.bool, device=labels.device)
    of_target = torch.zeros(table.num_target, dtype=torch.bool, device=labels.device)
    of_source[labels[:, 0]] = True
    of_target[labels[:, 1]] = True
    excluded = of_source.unsqueeze(1) | of_target[table.targets] | ~table.filled
    impossible = torch.where(excluded, -torch.inf, log_probs)
    return torch.where(table.marked(labels), 0.0, impossible)


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


def _nearly_equal(one: Matching, other: Matching) -> bool:
    return one.num_changes(other) <= FEW_CHANGES * len(one.sources)


def _without_rivals(targets: Tensor, probs: Tensor, chosen: Tensor, num_target: int) -> Matching:
    """Return a matching of the chosen pairs; if several tie for one target, none is matched.

    In many datasets, counterparts have equal ids. Ids must therefore not break ties.
    """
    rivals = torch.bincount(targets[chosen], minlength=num_target)
    chosen = chosen & (rivals[targets] == 1)
    return Matching(
        torch.where(chosen, targets, NO_MATCH), torch.where(chosen, probs, 0.0).double(), num_target
    )
