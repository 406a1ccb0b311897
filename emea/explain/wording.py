"""The sentences of an explanation, shared by text and page."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from emea.answer.schema import Schema, TermMatch
from emea.data.names import local_name
from emea.explain.explanation import (
    Case,
    Contribution,
    Entity,
    Explanation,
    Relation,
    Term,
    Unmatched,
)
from emea.literals.similar_items import ComparedWords

MOST_LISTED = 5
NOTHING = "-"
UNMATCHED = "unmatched"
"""Name of the weight that does not belong to a pair."""

BOTH_SIDES = (
    "Both entities choose by such a sum, and the belief is the product of both choices, so a "
    "target that others claim gets a lower belief."
)
LINKS = {"train": "training link", "validation": "validation link", "test": "test link"}
USES = {
    "train": "the run was trained on it",
    "validation": "the run fitted weights on such links",
}
"""How a run uses the links that it may see."""


def stated_terms(schema: Schema) -> list[tuple[str, str, list[TermMatch]]]:
    """Return heading, file and rows of the mapped relations and classes, without empty ones."""
    parts = (
        ("Relations that correspond", "relations.tsv", schema.relations),
        ("Classes that correspond", "classes.tsv", schema.classes),
    )
    stated = [
        (title, file, [row for row in rows if row.mapping])
        for title, file, rows in parts
    ]
    return [part for part in stated if part[2]]


def heading(explanation: Explanation) -> str:
    """Return the pair as a title."""
    return f"{explanation.source.short} → {explanation.asked.target.short}"


def verdict(explanation: Explanation) -> str:
    """Describe the decision of the run in one or two sentences."""
    asked = explanation.asked
    source = explanation.source.short
    if explanation.is_matched:
        decision = f"The run matches {source} to {asked.target.short}"
        if explanation.is_labelled:
            return f"{decision}: it is a training link."
        if asked.link == "validation" and explanation.answer_prob == 1:
            return f"{decision}: it is a link that the run was given."
        decision = f"{decision} with probability {number(explanation.answer_prob)}."
        is_best = asked.rank in (1, None)
        return (
            decision
            if is_best
            else f"{decision} {_rank(asked)} The decoding selected it anyway."
        )
    if explanation.answer is None:
        decision = f"The run leaves {source} unmatched."
    else:
        other = f"{explanation.answer.short} ({number(explanation.answer_prob)})"
        label = ", its training link" if explanation.is_labelled else ""
        decision = f"The run matches {source} to {other}{label}."
    return f"{decision} {_rank(asked)}"


def _rank(case: Case) -> str:
    target = case.target.short
    if case.rank is None:
        return f"{target} is not a candidate."
    return f"{target} is candidate {case.rank}, with probability {number(case.final_prob)}."


def truth(explanation: Explanation) -> str:
    """Describe whether the data links the pair, and how the run used that link."""
    link = explanation.asked.link
    linked = f"links the two ({LINKS[link]})" if link else "does not link the two"
    if explanation.used_test_links:
        return f"The data {linked}; the run used test links (protocol=released)."
    use = USES.get(link or "", "this is not used elsewhere in the explanation")
    return f"The data {linked}; {use}."


def grounds(explanation: Explanation) -> str:
    """Describe which rule the evidence comes from, and whether the run used it."""
    grounds = f"Values and neighbours of both entities that match, weighed by {explanation.rule}."
    if explanation.judged_by_decoys:
        return (
            f"{grounds} The probability does not come from these weights: it follows from how well "
            "all values agree, compared with those of decoys (docs/literals.md)."
        )
    return (
        grounds
        if explanation.rule_used
        else f"{grounds} They had no influence on the result."
    )


def rival_name(explanation: Explanation) -> str:
    """Return the name of the other candidate in the text."""
    asked = explanation.asked.rank
    rival = explanation.rival
    if rival is None or rival.rank is None:
        return "runner-up"
    if asked is not None and asked <= rival.rank:
        return "runner-up"
    return "ranked higher" if explanation.is_matched else "preferred"


class Group(NamedTuple):
    """All evidence from one pair of neighbours, with its share of the evidence."""

    neighbour: Entity
    counterpart: Entity
    prob: float
    share: float
    is_label: bool
    pieces: tuple[Contribution, ...]


def grouped(contributions: Sequence[Contribution]) -> list[Group]:
    """Return the evidence by pair of neighbours, the largest share first."""
    pieces: dict[tuple[Entity, Entity], list[Contribution]] = defaultdict(list)
    for one in contributions:
        pieces[one.neighbour, one.counterpart].append(one)
    groups = []
    for ends, found in pieces.items():
        share = sum(one.share for one in found)
        first = found[0]
        groups.append(
            Group(*ends, first.neighbour_prob, share, first.is_label, tuple(found))
        )
    return sorted(groups, key=lambda group: -group.share)


def group_title(group: Group) -> str:
    """Return what matches: two neighbours, two values, or the words that both entities share."""
    shared = group.pieces[0].shared_words
    if not shared:
        return f"{group.neighbour.short} = {group.counterpart.short}"
    words = "1 word" if len(shared) == 1 else f"{len(shared)} words"
    return f"{words} in common: {listed(shared)}"


def relations_text(group: Group) -> str:
    """Return the relations with most evidence, and how many more there are."""
    if group.pieces[0].shared_words:
        return "in all their values"
    left = len(group.pieces) - 1
    more = f" and {left} more relation{'s' if left > 1 else ''}" if left else ""
    return f"{paths(group.pieces[0])}{more}"


Row = tuple[str, str, str]


def comparison(explanation: Explanation) -> list[Row]:
    """Return the rows of the table that compares the pair with its rival."""
    cases = _cases(explanation)
    return _filled(
        ("final probability", *(number(case.final_prob) for case in cases)),
        ("neural model", *(_neural(case) for case in cases)),
        ("joint probability", *(number(case.joint_prob) for case in cases)),
        ("encoders that agree", *(_agreement(case) for case in cases)),
        ("neighbours that support it", *(_supporters(case) for case in cases)),
    )


def features(explanation: Explanation) -> list[Row]:
    """Return the rows with the weighted features of the pair and its rival."""
    cases = _cases(explanation)
    products = [
        (
            f"{term.weight:.2f} * {term.name}",
            *(_signed(case.terms[index].product) for case in cases),
        )
        for index, term in enumerate(explanation.asked.terms)
    ]
    return _filled(
        ("evidence g (Eq. 19)", *(number(case.value) for case in cases)),
        ("coverage", *(number(case.coverage) for case in cases)),
        *products,
        ("weighted sum", *(_signed(_weighted_sum(case.terms)) for case in cases)),
    )


def _cases(explanation: Explanation) -> list[Case]:
    return [case for case in (explanation.asked, explanation.rival) if case is not None]


def _filled(*rows: tuple[str, ...]) -> list[Row]:
    """Return the rows that have a value; without a rival, the last column is empty."""
    filled = [row for row in rows if any(cell != NOTHING for cell in row[1:])]
    return [(row[0], row[1], row[2] if len(row) > 2 else "") for row in filled]


def meanings(explanation: Explanation) -> str:
    """Return the meaning of the weighted values."""
    terms = explanation.asked.terms
    parts = [f"{term.name}: {term.meaning}" for term in terms if term.name != UNMATCHED]
    free = [term for term in terms if term.name == UNMATCHED]
    parts += [f"{term.meaning} has the weight {term.weight:.2f}" for term in free]
    if not parts:
        return ""
    both = f" {BOTH_SIDES}" if explanation.both_sides else ""
    return f"Weights are from the last M-step. {'; '.join(parts)}.{both}"


def paths(contribution: Contribution) -> str:
    """Return both relations, starting from the entities of the pair."""
    relations = (contribution.relation, contribution.target_relation)
    return " corresponds to ".join(map(relation, relations))


def relation(one: Relation) -> str:
    """Return the name and direction of a relation, starting from the entity of the pair."""
    name = local_name(one.name)
    return f"← {name}" if one.inverse else f"{name} →"


def numbers(contribution: Contribution) -> str:
    """Return the inclusions and functionalities of the relations."""
    return (
        f"r⊆r' {number(contribution.source_in_target)}, "
        f"r'⊆r {number(contribution.target_in_source)}, "
        f"fun⁻¹ {number(contribution.source_functionality)} and "
        f"{number(contribution.target_functionality)}"
    )


def silent(one: Unmatched) -> str:
    """Describe a neighbour that does not support the pair, its counterpart and the reason."""
    named = ", ".join(relation(each) for each in one.relations)
    if one.believed is None:
        return f"{one.neighbour.short} ({named}): no match"
    reason = "which is not a neighbour of the other entity"
    if one.is_neighbour:
        reason = "a neighbour of the other entity, but through unrelated relations"
    believed = f"{one.believed.short} ({number(one.prob)})"
    return f"{one.neighbour.short} ({named}): matched to {believed}, {reason}"


def against(explanation: Explanation) -> list[str]:
    """Return what speaks against each candidate: missing support and rival claims."""
    cases = _cases(explanation)
    supporters = (explanation.only_asked, explanation.only_rival)
    return [
        *(
            f"Only {case.target.short} is supported by {listed([one.short for one in only])}."
            for case, only in zip(cases, supporters, strict=False)
            if only and explanation.rival is not None
        ),
        *map(conflicts, cases),
        *(
            line
            for case in cases
            for line in differing(case, not explanation.judged_by_decoys)
        ),
    ]


def differing(case: Case, with_factor: bool = True) -> list[str]:
    """Describe the values that count against a target.

    Args:
        case: The target and the evidence.
        with_factor: Whether to say what a difference multiplies the odds by.
    """
    found = []
    for one in case.differing[:MOST_LISTED]:
        if one.words is None:
            text = (
                f"{relation(one.relation)} {one.value.short} differs from "
                f"{relation(one.target_relation)} {one.target_value.short}"
            )
        else:
            text = _differing_words(one.words)
        weight = f" (odds multiplied by {number(one.factor)})" if with_factor else ""
        found.append(f"{case.target.short}: {text}{weight}")
    return found


def _differing_words(words: ComparedWords) -> str:
    """Describe the words that two entities have in common, and those that only one has."""
    parts = {
        "in common": words.shared,
        "only in the source": words.only_source,
        "only in the target": words.only_target,
    }
    return "; ".join(
        f"words {place}: {listed(found) if found else 'none'}"
        for place, found in parts.items()
    )


def conflicts(case: Case) -> str:
    """Return the other source entities that claim the target."""
    if not case.num_claims:
        return f"No other source entity claims {case.target.short}."
    names = [
        f"{claim.source.short} ({number(claim.prob)}{', its best' if claim.is_best else ''})"
        for claim in case.claims
    ]
    others = listed(names, case.num_claims)
    return f"{case.target.short} is also a candidate of {others}."


def listed(names: Sequence[str], num_all: int | None = None) -> str:
    """Return the first names and how many more there are."""
    shown = names[:MOST_LISTED]
    left = (len(names) if num_all is None else num_all) - len(shown)
    return ", ".join(shown) + (f" and {left} more" if left else "")


def number(value: float | None) -> str:
    """Format with two digits; values near 0 or 1 are shown as <0.01 or >0.99."""
    if value is None:
        return NOTHING
    if 0 < value < 0.005:
        return "<0.01"
    return ">0.99" if 0.995 <= value < 1 else f"{value:.2f}"


def percent(share: float) -> str:
    """Format a share as a percentage."""
    return "<1%" if 0 < share < 0.005 else f"{100 * share:.0f}%"


def _neural(case: Case) -> str:
    if case.neural_prob is None:
        return NOTHING
    rank = "" if case.neural_rank is None else f", rank {case.neural_rank}"
    return f"{number(case.neural_prob)}{rank}"


def _agreement(case: Case) -> str:
    """Return how many encoders of an ensemble agree; with one encoder there is nothing to say."""
    return NOTHING if case.witnesses is None else "{} of {}".format(*case.witnesses)


def _supporters(case: Case) -> str:
    found = len({one.neighbour for one in case.contributions})
    return f"{found} of {found + len(case.unmatched)}"


def _weighted_sum(terms: Sequence[Term]) -> float | None:
    products = [term.product for term in terms if term.name != UNMATCHED]
    known = [product for product in products if product is not None]
    return None if len(known) < len(products) or len(known) < 2 else sum(known)


def _signed(value: float | None) -> str:
    return NOTHING if value is None else f"{value + 0.0:+.2f}".replace("-0.00", "+0.00")
