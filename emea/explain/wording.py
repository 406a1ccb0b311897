"""What an explanation says, in words that the text and the page share."""

from collections.abc import Sequence

from emea.data.names import local_name
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

NOTHING = "-"
UNMATCHED = "unmatched"
"""The one weight that belongs to no pair."""

BOTH_SIDES = (
    "Either entity chooses by such a sum and the belief is the product of both choices: a target "
    "that others claim is believed less."
)
LINKS = {"train": "training link", "validation": "validation link", "test": "test link"}
USES = {"train": "the run learned from it", "validation": "such links chose the run's weights"}
"""What a run makes of the links that it may see."""


def heading(explanation: Explanation) -> str:
    """The pair."""
    return f"{short(explanation.source)} → {short(explanation.asked.target)}"


def short(entity: Entity) -> str:
    """An entity's name without its address."""
    return local_name(entity.name)


def verdict(explanation: Explanation) -> str:
    """What the run decided, in a sentence or two."""
    asked, source = explanation.asked, short(explanation.source)
    if explanation.is_matched:
        said = f"The run matches {source} to {short(asked.target)}"
        if explanation.is_labelled:
            return f"{said}: it is a training link."
        said = f"{said} with probability {number(explanation.answer_prob)}."
        is_best = asked.rank in (1, None)
        return said if is_best else f"{said} {_standing(asked)} The decoding chose it all the same."
    if explanation.answer is None:
        said = f"The run leaves {source} unmatched."
    else:
        other = f"{short(explanation.answer)} ({number(explanation.answer_prob)})"
        label = ", its training link" if explanation.is_labelled else ""
        said = f"The run matches {source} to {other}{label}."
    return f"{said} {_standing(asked)}"


def _standing(case: Case) -> str:
    target = short(case.target)
    if case.rank is None:
        return f"{target} is no candidate."
    return f"{target} is candidate {case.rank}, with probability {number(case.final_prob)}."


def truth(explanation: Explanation) -> str:
    """Whether the data links the pair."""
    link = explanation.asked.link
    linked = f"links the two ({LINKS[link]})" if link else "does not link the two"
    if explanation.used_test_links:
        return f"The data {linked}; its protocol let the run see test links."
    use = USES.get(link or "", "nothing here was computed from that")
    return f"The data {linked}; {use}."


def grounds(explanation: Explanation) -> str:
    """What reads the evidence, and whether the run listened."""
    if explanation.rule_used:
        return f"Evidence by {explanation.rule}, from the final beliefs in the neighbours."
    return f"Structural support by the {explanation.rule}: it took no part in the result."


def rival_name(explanation: Explanation) -> str:
    """What the other candidate is to the one that was asked for."""
    asked, rival = explanation.asked.rank, explanation.rival
    if rival is None or rival.rank is None:
        return "runner-up"
    if asked is not None and asked <= rival.rank:
        return "runner-up"
    return "ranked higher" if explanation.is_matched else "preferred"


def comparison(explanation: Explanation) -> list[tuple[str, str, str]]:
    """What is compared, of the pair that was asked for and of its rival."""
    cases = [case for case in (explanation.asked, explanation.rival) if case is not None]
    rows = [
        ("final probability", *(number(case.final_prob) for case in cases)),
        ("neural model", *(_neural(case) for case in cases)),
        ("joint probability", *(number(case.joint_prob) for case in cases)),
        ("neighbours that support it", *(_supporters(case) for case in cases)),
        ("evidence g (Eq. 19)", *(number(case.value) for case in cases)),
        ("coverage", *(number(case.coverage) for case in cases)),
    ]
    rows += [
        (f"{term.weight:.2f} * {term.name}", *(_product(case.terms[index]) for case in cases))
        for index, term in enumerate(explanation.asked.terms)
    ]
    rows.append(("weighted sum", *(_weighted_sum(case.terms) for case in cases)))
    filled = [row for row in rows if any(cell != NOTHING for cell in row[1:])]
    return [(row[0], row[1], row[2] if len(row) > 2 else "") for row in filled]


def meanings(explanation: Explanation) -> str:
    """What the weights multiply, and what else decides."""
    terms = explanation.asked.terms
    told = [f"{term.name}: {term.meaning}" for term in terms if term.name != UNMATCHED]
    free = [term for term in terms if term.name == UNMATCHED]
    told += [f"{term.meaning} has the weight {term.weight:.2f} instead" for term in free]
    if not told:
        return ""
    both = f" {BOTH_SIDES}" if explanation.both_sides else ""
    return f"Weights of the last M-step. {'; '.join(told)}.{both}"


def paths(contribution: Contribution) -> str:
    """Both relations, as read from the pair's entities."""
    relations = (contribution.relation, contribution.target_relation)
    return " ~ ".join(map(relation, relations))


def relation(one: Relation) -> str:
    """A relation's name and direction, as read from the pair's entity."""
    name = local_name(one.name)
    return f"← {name}" if one.inverse else f"{name} →"


def numbers(contribution: Contribution) -> str:
    """What the relations are worth."""
    return (
        f"r⊆r' {number(contribution.source_in_target)}, "
        f"r'⊆r {number(contribution.target_in_source)}, "
        f"fun⁻¹ {number(contribution.source_functionality)} and "
        f"{number(contribution.target_functionality)}"
    )


def silent(one: Unmatched) -> str:
    """A neighbour that supports nothing, whom it is believed to be, and why that does not help."""
    named = ", ".join(relation(each) for each in one.relations)
    if one.believed is None:
        return f"{short(one.neighbour)} ({named}): matched to nobody"
    reason = "no neighbour here"
    if one.is_neighbour:
        reason = "a neighbour here by relations that do not include each other"
    believed = f"{short(one.believed)} ({number(one.prob)})"
    return f"{short(one.neighbour)} ({named}): believed to be {believed}, {reason}"


def lacking(explanation: Explanation) -> list[str]:
    """What one of the two has and the other lacks."""
    if explanation.rival is None:
        return []
    asked, rival = explanation.asked.target, explanation.rival.target
    sides = ((asked, explanation.only_asked), (rival, explanation.only_rival))
    return [
        f"Only {short(target)} is supported by {listed([short(entity) for entity in only])}."
        for target, only in sides
        if only
    ]


def conflicts(case: Case) -> str:
    """Who else claims the target."""
    if not case.num_claims:
        return f"Nobody else claims {short(case.target)}."
    told = listed([_claim(claim) for claim in case.claims], case.num_claims)
    return f"{short(case.target)} is also a candidate of {told}."


def listed(names: Sequence[str], num_all: int | None = None, most: int = 5) -> str:
    """Some names and how many more there are."""
    left = (len(names) if num_all is None else num_all) - min(most, len(names))
    return ", ".join(names[:most]) + (f" and {left} more" if left else "")


def number(value: float | None) -> str:
    """Two digits; what is not quite 0 or 1 does not look like it."""
    if value is None:
        return NOTHING
    if 0 < value < 0.005:
        return "<0.01"
    return ">0.99" if 0.995 <= value < 1 else f"{value:.2f}"


def percent(share: float) -> str:
    """A share of the evidence."""
    return "<1%" if 0 < share < 0.005 else f"{100 * share:.0f}%"


def _neural(case: Case) -> str:
    if case.neural_prob is None:
        return NOTHING
    rank = "" if case.neural_rank is None else f", rank {case.neural_rank}"
    return f"{number(case.neural_prob)}{rank}"


def _supporters(case: Case) -> str:
    found = len({one.neighbour for one in case.contributions})
    return f"{found} of {found + len(case.unmatched)}"


def _product(term: Term) -> str:
    return NOTHING if term.value is None else _signed(term.weight * term.value)


def _weighted_sum(terms: Sequence[Term]) -> str:
    products = [
        None if term.value is None else term.weight * term.value
        for term in terms
        if term.name != UNMATCHED
    ]
    known = [product for product in products if product is not None]
    return NOTHING if len(known) < len(products) or len(known) < 2 else _signed(sum(known))


def _signed(value: float) -> str:
    return f"{value + 0.0:+.2f}".replace("-0.00", "+0.00")


def _claim(claim: Claim) -> str:
    best = ", its best" if claim.is_best else ""
    return f"{short(claim.source)} ({number(claim.prob)}{best})"
