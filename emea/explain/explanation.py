"""What is told of a pair of entities: plain values that any output can show."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entity:
    """An entity of either graph: its id in the run's data and its name."""

    id: int
    name: str


@dataclass(frozen=True)
class Relation:
    """A relation of either graph; ``inverse``: read from its tail to its head."""

    name: str
    inverse: bool


@dataclass(frozen=True)
class Contribution:
    """One piece of evidence: r(e, n) and r'(e', n') with n and n' believed to match.

    Args:
        neighbour: n.
        counterpart: n'.
        relation: r, from e to n.
        target_relation: r', from e' to n'.
        source_in_target: Pr(r in r').
        target_in_source: Pr(r' in r).
        source_functionality: fun^-1(r).
        target_functionality: fun^-1(r').
        neighbour_prob: belief in n = n'.
        evidence_prob: how far the piece alone would prove the pair.
        share: its part of all evidence for the pair; shares add up to 1.
        is_label: whether n = n' is a training link.
    """

    neighbour: Entity
    counterpart: Entity
    relation: Relation
    target_relation: Relation
    source_in_target: float
    target_in_source: float
    source_functionality: float
    target_functionality: float
    neighbour_prob: float
    evidence_prob: float
    share: float
    is_label: bool


@dataclass(frozen=True)
class Unmatched:
    """A neighbour of one side that says nothing for the pair.

    Args:
        neighbour: the neighbour.
        relations: from the pair's entity to it.
        believed: who it is believed to be; ``None``: nobody.
        prob: how far.
        is_neighbour: whether that is a neighbour of the pair's other entity after all, reached by
            relations that do not include each other.
    """

    neighbour: Entity
    relations: tuple[Relation, ...]
    believed: Entity | None
    prob: float
    is_neighbour: bool


@dataclass(frozen=True)
class Claim:
    """Another source entity with the same candidate.

    Args:
        source: who.
        prob: its probability for the candidate.
        is_best: whether the candidate is its best one.
    """

    source: Entity
    prob: float
    is_best: bool


@dataclass(frozen=True)
class Term:
    """A weight of the run and what it multiplies.

    Args:
        name: of the rule's function or the feature.
        meaning: what it measures.
        weight: fitted in the run's last M-step.
        value: of the pair; ``None``: the weight is of no pair, or the run does not tell the value.
    """

    name: str
    meaning: str
    weight: float
    value: float | None


@dataclass(frozen=True)
class Case:
    """Everything for and against one target.

    Args:
        target: the target.
        rank: its place among the candidates by what the run stands for; ``None``: no candidate.
        neural_rank: its place among the neural model's candidates; ``None``: behind them.
        neural_prob: its probability by the neural model, a label's 1 included.
        joint_prob: its probability by the joint distribution or the baseline.
        final_prob: its probability by what the run stands for, calibrated where the run is.
        value: g, the noisy-or of all evidence (Eq. 19).
        evidence: minus the logarithm of the doubt that is left; g is ``1 - exp(-evidence)``.
        coverage: neighbours found matched over those both sides expect (em=dual).
        terms: the run's weights and what they multiply.
        contributions: pieces of evidence, weightiest first.
        unmatched: neighbours of the source entity that say nothing for this target.
        target_unmatched: neighbours of the target that say nothing for it.
        claims: other source entities that believe in this candidate, most probable first, a few.
        num_claims: how many there are.
        num_claimed_best: of how many it is the best one.
        link: the part of the data's links that holds the pair: train, validation or test; told
            beside all this, and used by none of it.
    """

    target: Entity
    rank: int | None
    neural_rank: int | None
    neural_prob: float | None
    joint_prob: float | None
    final_prob: float | None
    value: float
    evidence: float
    coverage: float | None
    terms: tuple[Term, ...]
    contributions: tuple[Contribution, ...]
    unmatched: tuple[Unmatched, ...]
    target_unmatched: tuple[Unmatched, ...]
    claims: tuple[Claim, ...]
    num_claims: int
    num_claimed_best: int
    link: str | None


@dataclass(frozen=True)
class Explanation:
    """Why a run matches two entities, or does not.

    Args:
        source: the source entity.
        asked: the target that was asked for.
        rival: the best other candidate: the runner-up, or who is preferred.
        only_asked: neighbours of the source entity that speak for ``asked`` alone.
        only_rival: those that speak for ``rival`` alone.
        answer: the target that the run's alignment gives; ``None``: it gives none.
        answer_prob: with this probability.
        is_labelled: whether the source entity's counterpart was a training link.
        rule: what reads the evidence, in words.
        rule_used: whether the run itself reasoned with it.
        both_sides: whether its beliefs are the product of both sides' choices.
        used_test_links: whether the run's protocol let it see test links.
    """

    source: Entity
    asked: Case
    rival: Case | None
    only_asked: tuple[Entity, ...]
    only_rival: tuple[Entity, ...]
    answer: Entity | None
    answer_prob: float | None
    is_labelled: bool
    rule: str
    rule_used: bool
    both_sides: bool
    used_test_links: bool

    @property
    def is_matched(self) -> bool:
        """Whether the run answers with the target that was asked for."""
        return self.answer == self.asked.target
