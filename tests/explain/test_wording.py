from dataclasses import replace

import pytest

from emea.explain import wording
from emea.explain.explanation import Entity

from .fabricated import case, explanation, piece, silent, source, target


def test_verdicts() -> None:
    told = explanation()
    assert wording.verdict(told) == (
        "The run matches Source_<1> to Target_&_1 with probability 0.80."
    )
    second = replace(told, asked=case(1, (), rank=2))
    assert "candidate 2" in wording.verdict(second) and "decoding" in wording.verdict(second)
    labelled = replace(told, is_labelled=True)
    assert wording.verdict(labelled).endswith("it is a training link.")
    other = replace(told, answer=target(2), answer_prob=0.6)
    assert wording.verdict(other) == (
        "The run matches Source_<1> to Target_&_2 (0.60). "
        "Target_&_1 is candidate 1, with probability 0.80."
    )
    left = replace(told, answer=None, answer_prob=None, asked=case(1, (), rank=None))
    assert wording.verdict(left) == (
        "The run leaves Source_<1> unmatched. Target_&_1 is not a candidate."
    )


def test_a_run_without_the_rule_says_so() -> None:
    assert "no influence" in wording.grounds(explanation(rule_used=False))
    assert "no influence" not in wording.grounds(explanation())


def test_names_from_the_data_are_marked() -> None:
    assert wording.truth(explanation()) == (
        "The data links the two (test link); this is not used elsewhere in the explanation."
    )
    assert "used test links (protocol=released)" in wording.truth(explanation(used_test_links=True))
    learned = explanation(asked=case(1, (), link="train"))
    assert wording.truth(learned).endswith("(training link); the run was trained on it.")
    held_out = explanation(asked=case(1, (), link="validation"))
    assert wording.truth(held_out).endswith("the run fitted weights on such links.")
    unlinked = explanation(asked=case(1, (), link=None))
    assert wording.truth(unlinked).startswith("The data does not link the two")


@pytest.mark.parametrize(
    ("asked", "rival", "name"),
    [(1, 2, "runner-up"), (2, 1, "preferred"), (None, 1, "preferred"), (1, None, "runner-up")],
)
def test_the_rival_is_named_by_its_place(asked: int | None, rival: int | None, name: str) -> None:
    cases = {"asked": case(1, (), rank=asked), "rival": case(2, (), rank=rival)}
    assert wording.rival_name(explanation(answer=None, **cases)) == name
    decoded = wording.rival_name(explanation(**cases))
    assert decoded == ("ranked higher" if name == "preferred" else name)
    assert wording.rival_name(explanation(rival=None)) == "runner-up"


def test_long_literals_are_cut_and_contained_iris_are_not() -> None:
    assert Entity(0, "http://a.org/b").short == "b"
    assert Entity(0, '"see http://a.org/b"').short == '"see http://a.org/b"'
    shown = Entity(0, f'"{"long " * 100_000}"').short
    assert len(shown) == 200 and shown.startswith('"long long') and shown.endswith("…")


def test_the_comparison_leaves_out_missing_values() -> None:
    rows = {row[0]: row[1:] for row in wording.comparison(explanation())}
    assert rows["final probability"] == ("0.80", "0.10")
    assert rows["neural model"] == ("0.25, rank 2", "0.25, rank 2")
    assert rows["neighbours that support it"] == ("2 of 4", "1 of 3")
    assert rows["3.00 * paris"] == ("+2.70", "+2.70")
    assert "coverage" not in rows and "weighted sum" not in rows
    alone = wording.comparison(explanation(rival=None))
    assert all(row[2] == "" for row in alone)


def test_what_one_has_and_the_other_lacks() -> None:
    assert wording.lacking(explanation()) == ["Only Target_&_1 is supported by Source_<12>."]
    assert wording.lacking(explanation(rival=None)) == []


def test_silence_has_its_reason() -> None:
    assert wording.silent(silent(source(1))).endswith("(likes →, ← hates): no match")
    away = wording.silent(silent(source(1), target(2)))
    assert away.endswith(
        "matched to Target_&_2 (0.30), which is not a neighbour of the other entity"
    )
    near = wording.silent(silent(source(1), target(2), is_neighbour=True))
    assert near.endswith("a neighbour of the other entity, but through unrelated relations")


def test_conflicts() -> None:
    assert wording.conflicts(explanation().asked) == (
        "Target_&_1 is also a candidate of Source_<99> (0.40, its best) and 2 more."
    )
    assert wording.conflicts(case(1, (), claims=(), num_claims=0)).startswith(
        "No other source entity"
    )


def test_numbers_never_look_certain_when_they_are_not() -> None:
    shown = [wording.number(value) for value in (None, 0.0, 0.001, 0.5, 0.9999, 1.0)]
    assert shown == ["-", "0.00", "<0.01", "0.50", ">0.99", "1.00"]
    assert [wording.percent(share) for share in (0.0, 0.001, 0.333, 1)] == [
        "0%",
        "<1%",
        "33%",
        "100%",
    ]


def test_directions_are_read_from_the_entity() -> None:
    assert wording.paths(piece(1, 2, 1.0)) == "bornIn → ~ ← birthplace"
