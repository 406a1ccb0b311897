"""The content of an explanation, as plain values for any output format."""

from dataclasses import dataclass

from emea.data.names import title_of
from emea.literals.similar_items import ComparedWords

LONGEST = 200
"""Characters of the longest name that is shown; JSON keeps the whole name."""


@dataclass(frozen=True)
class Entity:
    """An entity of either graph: its id in the run's data, its name and its label, if any."""

    id: int
    name: str
    label: str | None = None

    @property
    def short(self) -> str:
        """The label, or the name in words; the beginning of a long text."""
        is_value = self.name.startswith('"')  # a literal may contain an IRI
        return beginning(self.label or (self.name if is_value else title_of(self.name)))

    @property
    def title(self) -> str:
        """The name, for a tooltip; the beginning of a long text."""
        return beginning(self.name)


def beginning(text: str) -> str:
    """Return the part of a text that is shown."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


@dataclass(frozen=True)
class Relation:
    """A relation of either graph; ``inverse`` means that it is read from tail to head."""

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
        neighbour_prob: Belief in n = n'.
        evidence_prob: Probability of the pair if this were the only evidence.
        share: Share of all evidence for the pair; shares add up to 1.
        is_label: Whether n = n' is a training link.
        shared_words: The words that both entities share, if these are the evidence.
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
    shared_words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unmatched:
    """A neighbour of one side that does not support the pair.

    Args:
        neighbour: The neighbour.
        relations: Relations from the pair's entity to the neighbour.
        believed: Most probable counterpart of the neighbour, or ``None``.
        prob: Probability of that counterpart.
        is_neighbour: Whether that counterpart is a neighbour of the pair's other entity, through
            relations that do not include each other.
    """

    neighbour: Entity
    relations: tuple[Relation, ...]
    believed: Entity | None
    prob: float
    is_neighbour: bool


@dataclass(frozen=True)
class Differing:
    """Values of corresponding attributes that differ (negative evidence of PARIS).

    Args:
        relation: The attribute of the source entity.
        target_relation: The attribute of the target.
        value: The value of the source entity.
        target_value: The value of the target.
        factor: What the difference multiplies the odds of the pair by.
        words: The words of both entities, if the attribute contains all their words.
    """

    relation: Relation
    target_relation: Relation
    value: Entity
    target_value: Entity
    factor: float
    words: ComparedWords | None = None


@dataclass(frozen=True)
class Claim:
    """Another source entity with the same candidate.

    Args:
        source: The source entity.
        prob: Its probability for the candidate.
        is_best: Whether the candidate is its best one.
    """

    source: Entity
    prob: float
    is_best: bool


@dataclass(frozen=True)
class Term:
    """A weight of the run and what it multiplies.

    Args:
        name: Name of the indicator function or feature.
        meaning: What it measures.
        weight: Weight from the last M-step.
        value: Value for the pair; ``None`` if it does not apply to a pair or was not recorded.
    """

    name: str
    meaning: str
    weight: float
    value: float | None

    @property
    def product(self) -> float | None:
        """Weight times value, if the value is known."""
        return None if self.value is None else self.weight * self.value


@dataclass(frozen=True)
class Case:
    """The evidence for and against one target.

    Args:
        target: The target entity.
        rank: Rank among the candidates in the final result; ``None`` if it is not a candidate.
        neural_rank: Rank among the encoder's candidates; ``None`` if it is not one of them.
        neural_prob: Probability by the encoder; 1 for a label.
        joint_prob: Probability by the joint distribution or by the baseline.
        final_prob: Probability in the final result, calibrated if the run calibrates.
        value: g, the noisy-or of all evidence (Eq. 19).
        evidence: -log(1 - g).
        coverage: Matched neighbours divided by the number that both sides expect (em=dual);
            ``None`` if it is not a candidate.
        terms: The run's weights and the values that they multiply.
        contributions: Pieces of evidence, largest first.
        unmatched: Neighbours of the source entity that do not support this target.
        target_unmatched: Neighbours of the target that do not support it.
        claims: Other source entities with this candidate, most probable first (a few).
        num_claims: Number of all such source entities.
        num_claimed_best: Number of source entities for which it is the best candidate.
        link: Which links of the data contain the pair: train, validation or test. It is shown for
            information; nothing else uses it.
        witnesses: Number of encoders whose best target it is, and number of all encoders.
        differing: Values that count against the pair, the worst first.
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
    witnesses: tuple[int, int] | None = None
    differing: tuple[Differing, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Why a run matched two entities, or did not.

    Args:
        source: The source entity.
        asked: The target that the user asked about.
        rival: The best other candidate: the runner-up, or the one that the run preferred.
        only_asked: Neighbours of the source entity that support only ``asked``.
        only_rival: Neighbours that support only ``rival``.
        answer: The match in the run's alignment, or ``None``.
        answer_prob: Probability of the match.
        is_labelled: Whether the source entity has a training link.
        rule: Name of the rule that the evidence comes from.
        rule_used: Whether the run itself reasoned with it.
        both_sides: Whether beliefs are the product of the choices of both sides.
        used_test_links: Whether the run's protocol used test links.
        judged_by_decoys: Whether decoys gave the probabilities of the matches.
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
    judged_by_decoys: bool = False

    @property
    def is_matched(self) -> bool:
        """Whether the run matched the source entity to the target asked about."""
        return self.answer == self.asked.target
