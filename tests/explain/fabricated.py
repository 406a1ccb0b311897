"""Explanations with hand-written values."""

from dataclasses import replace

from emea.explain.explanation import (
    Case,
    Claim,
    Contribution,
    Entity,
    Explanation,
    Relation,
    Term,
    Unmatched,
)

BASE = "http://a.org/resource/"


def source(number: int) -> Entity:
    return Entity(number, f"{BASE}Source_<{number}>")


def target(number: int) -> Entity:
    return Entity(number, f"Target_&_{number}")


def piece(
    neighbour: int, counterpart: int, share: float, is_label: bool = False
) -> Contribution:
    return Contribution(
        neighbour=source(neighbour),
        counterpart=target(counterpart),
        relation=Relation(f"{BASE}bornIn", inverse=False),
        target_relation=Relation("birthplace", inverse=True),
        source_in_target=0.9,
        target_in_source=0.8,
        source_functionality=0.5,
        target_functionality=0.4,
        neighbour_prob=0.95,
        evidence_prob=0.6,
        share=share,
        is_label=is_label,
    )


def silent(
    entity: Entity, believed: Entity | None = None, is_neighbour: bool = False
) -> Unmatched:
    relations = (Relation("likes", inverse=False), Relation("hates", inverse=True))
    return Unmatched(
        entity, relations, believed, 0.3 if believed else 0.0, is_neighbour
    )


def case(number: int, pieces: tuple[Contribution, ...], **changes: object) -> Case:
    made = Case(
        target=target(number),
        rank=1,
        neural_rank=2,
        neural_prob=0.25,
        joint_prob=0.7,
        final_prob=0.8,
        value=0.9,
        evidence=2.3,
        coverage=None,
        terms=(Term("paris", "g", 3.0, 0.9),),
        contributions=pieces,
        unmatched=(silent(source(80)), silent(source(81), target(5))),
        target_unmatched=(silent(target(90), source(7), is_neighbour=True),),
        claims=(Claim(source(99), 0.4, is_best=True),),
        num_claims=3,
        num_claimed_best=1,
        link="test",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def explanation(**changes: object) -> Explanation:
    pieces = (piece(11, 21, 0.6, is_label=True), piece(11, 22, 0.3), piece(12, 22, 0.1))
    made = Explanation(
        source=source(1),
        asked=case(1, pieces),
        rival=case(
            2, pieces[1:2], rank=2, final_prob=0.1, link=None, claims=(), num_claims=0
        ),
        only_asked=(source(12),),
        only_rival=(),
        answer=target(1),
        answer_prob=0.8,
        is_labelled=False,
        rule="PARIS rule (Eq. 19)",
        rule_used=True,
        both_sides=False,
        used_test_links=False,
    )
    return replace(made, **changes)  # type: ignore[arg-type]
