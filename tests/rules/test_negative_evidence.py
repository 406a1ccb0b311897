"""Evidence from different values, against loops over the values of each entity."""

import math

import numpy as np
import pytest
import torch

from emea.baselines.paris_reasoner import ParisReasoner
from emea.data.attributes import AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.literals.match_literals import EqualLiterals
from emea.literals.settings import EqualLiteralsSettings
from emea.matching.beliefs import Matching
from emea.rules.negative_evidence import (
    LEAST_FUNCTIONALITY,
    Difference,
    NegativeEvidence,
    lowered,
)
from emea.rules.subsumption import Subsumption

NAMES = ("name", "born", "phone", "tag")
Person = dict[str, list[str]]


def graph_of(people: list[Person]) -> KnowledgeGraph:
    values = sorted(
        {text for one in people for texts in one.values() for text in texts}
    )
    rows = [
        (number, NAMES.index(name), values.index(text))
        for number, one in enumerate(people)
        for name, texts in one.items()
        for text in texts
    ]
    attributes = AttributeTriples(
        np.array(rows), NAMES, values, np.zeros(len(values), dtype=np.int64)
    )
    edges = np.array([(number, 0, 0) for number in range(1, len(people))])
    return KnowledgeGraph(edges, len(people), 1, attributes=attributes)


def people(seed: int, noise: float) -> tuple[list[Person], list[Person]]:
    """Persons and their copies, in whose values a share is replaced; tags are several."""
    rng = np.random.default_rng(seed)
    sources, targets = [], []
    for number in range(60):
        one = {
            "name": [f"name{rng.integers(20)}"],
            "born": [f"b{number}"],
            "phone": [f"p{number}"],
            "tag": [f"t{tag}" for tag in rng.choice(9, 3, replace=False)],
        }
        if rng.random() < 0.2:
            del one["phone"]
        sources.append(one)
        targets.append(
            {
                name: [f"other{rng.integers(10**9)}"] if rng.random() < noise else texts
                for name, texts in one.items()
            }
        )
    return sources, targets


def reasoner_of(
    sources: list[Person], targets: list[Person], negative: bool = True
) -> ParisReasoner:
    pair = GraphPair(
        "p", graph_of(sources), graph_of(targets), np.zeros((0, 2), dtype=np.int64)
    )
    budget = EqualLiteralsSettings().pairs_per_triple
    matches = EqualLiterals(True, budget, "never", None, negative)(pair)
    return ParisReasoner(
        GraphPair("p", pair.source, pair.target, pair.links, literals=matches)
    )


def looped_factor(
    sources: list[Person],
    targets: list[Person],
    pairs: list[tuple[int, int]],
    name: str,
) -> float:
    """The share of certain matches that agree, and the chance that any two entities do."""
    agreeing, compared = 1.0, 2.0
    for one, other in pairs:
        mine, theirs = sources[one].get(name, []), targets[other].get(name, [])
        if len(mine) == len(theirs) == 1:
            compared += 1
            held = {text for texts in targets[other].values() for text in texts}
            back = {text for texts in sources[one].values() for text in texts}
            agreeing += mine[0] in held or theirs[0] in back
    lists = [
        [one[name][0] for one in side if len(one.get(name, [])) == 1]
        for side in (sources, targets)
    ]
    equal = sum(mine == theirs for mine in lists[0] for theirs in lists[1])
    return (1 - agreeing / compared) / (1 - equal / (len(lists[0]) * len(lists[1])))


@pytest.mark.parametrize(("seed", "noise"), [(0, 0.05), (1, 0.4), (2, 0.9)])
def test_what_a_difference_is_worth(seed: int, noise: float) -> None:
    sources, targets = people(seed, noise)
    reasoner = reasoner_of(sources, targets)
    negative = reasoner.negative
    assert negative is not None
    pairs = [(number, number) for number in range(60)]
    certain = Matching.of_links(torch.tensor(pairs), 60, 60)
    found = negative.differences(
        reasoner.inclusions(certain), certain.pairs(), certain.pair_probs()
    )
    # an estimate does not depend on what differences were worth before
    likely = torch.full((60,), 0.9, dtype=torch.float64)
    fitted = negative.differences(reasoner.inclusions(certain), certain.pairs(), likely)
    less = -torch.expm1(
        lowered(
            torch.log1p(-likely), negative.log_factors(fitted[:1], *certain.pairs().T)
        )
    )
    again = negative.differences(
        reasoner.inclusions(certain), certain.pairs(), less, fitted[:1]
    )
    assert again[0] == pytest.approx(fitted[0], abs=1e-6)
    factors = {NAMES[one.relation - 1]: one.factor for one in found}
    assert "tag" not in factors, f"it has several values, {LEAST_FUNCTIONALITY}"
    for name in NAMES[:3]:
        expected = looped_factor(sources, targets, pairs, name)
        assert factors.get(name, 1.0) == pytest.approx(min(expected, 1.0))
    asked = torch.cartesian_prod(torch.arange(60), torch.arange(60))
    logs = negative.log_factors(found, *asked.T)
    for (one, other), value in zip(asked.tolist(), logs.tolist(), strict=True):
        product = 1.0
        held = {text for texts in targets[other].values() for text in texts}
        back = {text for texts in sources[one].values() for text in texts}
        for name, factor in factors.items():
            mine, theirs = sources[one].get(name, []), targets[other].get(name, [])
            if (
                len(mine) == len(theirs) == 1
                and mine[0] not in held
                and theirs[0] not in back
            ):
                product *= factor
        assert value == pytest.approx(math.log(product), abs=1e-9)


NAME, BORN, PHONE = 1, 2, 3
"""Attributes in the extended graphs, after the relation of the edges."""


def named(*values: dict[str, str]) -> list[Person]:
    return [{name: [text] for name, text in one.items()} for one in values]


def evidence_of(sources: list[Person], targets: list[Person]) -> NegativeEvidence:
    negative = reasoner_of(sources, targets).negative
    assert negative is not None
    return negative


def compared_attributes(
    inclusions: dict[tuple[int, int], tuple[float, float]],
) -> set[tuple[int, int]]:
    """The attributes whose differences are estimated, with these inclusions of attributes."""
    sources = named(*({"name": f"n{n}", "born": f"b{n}"} for n in range(9)))
    negative = evidence_of(sources, sources)
    num = 2 * (1 + len(NAMES))
    both = torch.tensor([inclusions[key] for key in sorted(inclusions)]).double()
    keys = torch.tensor([one * num + other for one, other in sorted(inclusions)])
    pairs = torch.arange(9).repeat(2, 1).T
    probs = torch.full((9,), 0.9, dtype=torch.float64)
    found = negative.differences(Subsumption(keys, *both.T, num), pairs, probs)
    return {(one.relation, one.target_relation) for one in found}


def test_attributes_are_compared_if_each_is_the_best_of_the_other() -> None:
    own = {(NAME, NAME): (0.9, 0.9), (BORN, BORN): (0.6, 0.6)}
    assert compared_attributes(own) == {(NAME, NAME), (BORN, BORN)}
    # the name is the best counterpart of the birth, which is not the best one of the name
    assert compared_attributes({**own, (BORN, NAME): (0.8, 0.8)}) == {(NAME, NAME)}
    assert compared_attributes({**own, (NAME, BORN): (0.8, 0.8)}) == {(NAME, NAME)}


def test_attributes_of_which_none_includes_the_other_are_not_compared() -> None:
    assert compared_attributes(
        {(NAME, NAME): (0.9, 0.9), (BORN, BORN): (0.0, 0.0)}
    ) == {(NAME, NAME)}


def test_a_value_that_is_in_another_attribute_does_not_differ() -> None:
    # row by row: it differs; the target has it elsewhere; the source has that of the target
    sources = named(
        {"name": "Ada", "born": "1"},
        {"name": "Bob", "born": "2"},
        {"name": "Cy", "born": "Cyril"},
    )
    targets = named(
        {"name": "Eve", "born": "1"},
        {"name": "Robert", "born": "Bob"},
        {"name": "Cyril", "born": "3"},
    )
    negative = evidence_of(sources, targets)
    three = torch.arange(3)
    rows, agree, _ = negative._compared(NAME, NAME, three, three)
    assert rows.tolist() == [0, 1, 2] and agree.tolist() == [0.0, 1.0, 1.0]
    one = Difference(NAME, NAME, agreement=0.9, factor=0.25)
    logs = negative.log_factors([one], three, three)
    assert logs.tolist() == pytest.approx([math.log(0.25), 0.0, 0.0])


def test_factors_multiply_the_odds() -> None:
    probs = torch.tensor([0.2, 0.9, 0.999], dtype=torch.float64)
    factors = torch.tensor([1.0, 0.1, 0.5], dtype=torch.float64)
    found = -torch.expm1(lowered(torch.log1p(-probs), factors.log()))
    odds = probs / (1 - probs) * factors
    assert torch.allclose(found, odds / (1 + odds))


def test_a_person_without_a_counterpart_is_not_matched() -> None:
    sources, targets = people(3, 0.02)
    for one, other in zip(
        sources[40:], targets[40:], strict=True
    ):  # another person of that name
        other["born"], other["phone"] = [f"x{other['born'][0]}"], [f"x{one['born'][0]}"]
        one["name"] = other["name"] = [f"only {one['born'][0]}"]

    def probs(negative: bool) -> torch.Tensor:
        reasoner = reasoner_of(sources, targets, negative)
        nothing = torch.zeros((0, 2), dtype=torch.int64)
        return reasoner.align(nothing, lambda links: None, lambda report: None).probs  # type: ignore

    without, lower = probs(False), probs(True)
    assert float(without[40:].mean()) > 0.8 and float(without[:40].mean()) > 0.9
    assert float(lower[40:].mean()) < 0.5 and float(lower[:40].mean()) > 0.9
