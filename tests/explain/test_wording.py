"""The sentences of explanations, and their layout in a terminal."""

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from emea.explain import wording
from emea.explain.explanation import Entity, Explanation
from emea.explain.text import MOST_GROUPS, print_explanations

from .fabricated import case, explanation, piece, source, target


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "The run matches Source <1> to Target & 1 with probability 0.80."),
        (
            {"asked": case(1, (), rank=2)},
            "probability 0.80. The decoding selected it anyway.",
        ),
        ({"is_labelled": True}, "it is a training link."),
        (
            {"answer": target(2), "answer_prob": 0.6},
            "to Target & 2 (0.60). Target & 1 is candidate 1, with probability 0.80.",
        ),
        (
            {"answer": None, "answer_prob": None, "asked": case(1, (), rank=None)},
            "The run leaves Source <1> unmatched. Target & 1 is not a candidate.",
        ),
    ],
)
def test_verdicts(changes: dict[str, Any], said: str) -> None:
    assert wording.verdict(explanation(**changes)).endswith(said)


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (
            "test",
            "links the two (test link); this is not used elsewhere in the explanation.",
        ),
        ("train", "links the two (training link); the run was trained on it."),
        ("validation", "(validation link); the run fitted weights on such links."),
        (None, "does not link the two; this is not used elsewhere in the explanation."),
    ],
)
def test_links_of_the_data_are_marked(link: str | None, said: str) -> None:
    asked = case(1, (), link=link)
    assert wording.truth(explanation(asked=asked)).endswith(said)
    leaked = wording.truth(explanation(asked=asked, used_test_links=True))
    assert leaked.endswith("the run used test links (protocol=released).")


def test_long_literals_are_cut_and_contained_iris_are_not() -> None:
    assert Entity(0, "http://a.org/b").short == "b"
    assert Entity(0, '"see http://a.org/b"').short == '"see http://a.org/b"'
    shown = Entity(0, f'"{"long " * 100_000}"').short
    assert len(shown) == 200 and shown.startswith('"long long') and shown.endswith("…")


def test_numbers_never_look_certain_when_they_are_not() -> None:
    shown = [wording.number(value) for value in (None, 0.0, 0.001, 0.5, 0.9999, 1.0)]
    assert shown == ["-", "0.00", "<0.01", "0.50", ">0.99", "1.00"]
    shares = [wording.percent(share) for share in (0.0, 0.001, 0.333, 1)]
    assert shares == ["0%", "<1%", "33%", "100%"]


def test_evidence_is_grouped_by_neighbours() -> None:
    pieces = (piece(1, 2, 0.3), piece(3, 4, 0.4), piece(1, 2, 0.2, is_label=True))
    first, second = wording.grouped(pieces)
    assert first.neighbour == source(1) and first.share == 0.5 and second.share == 0.4
    assert first.pieces == (pieces[0], pieces[2])
    assert wording.relations_text(first).endswith("← birthplace and 1 more relation")
    assert wording.relations_text(second) == "bornIn → corresponds to ← birthplace"


def printed(
    told: list[Explanation], width: int = 80, with_numbers: bool = False
) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_explanations(console, told, with_numbers)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [20, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = printed([explanation(), explanation()], width).splitlines()
    assert max(map(cell_len, lines)) <= width


def test_the_text_has_everything_and_names_are_no_markup() -> None:
    text = printed([explanation(source=Entity(1, "[bold]x[/bold] [/]"))], 120)
    relations = "bornIn → corresponds to ← birthplace"
    for part in (
        "Source <11> = Target & 21",
        "60%",
        "training link",
        relations,
        "this pair",
    ):
        assert part in text
    assert "3.00 * paris" not in text and "r⊆r'" not in text
    text = printed(
        [explanation(source=Entity(1, "[bold]x[/bold] [/]"))], 120, with_numbers=True
    )
    assert (
        "3.00 * paris" in text and "r⊆r' 0.90, r'⊆r 0.80, fun⁻¹ 0.50 and 0.40" in text
    )
    assert "Neighbours of the source that do not support it: 2" in text
    assert "[bold]x[/bold] [/]" in text and "\x1b" not in text
    pieces = tuple(piece(number, number, 0.1) for number in range(10))
    text = printed([explanation(asked=case(1, pieces), rival=None)])
    assert f"and {10 - MOST_GROUPS} more (20%)" in text
    assert "No neighbour supports the pair." in printed(
        [explanation(asked=case(1, ()))]
    )
