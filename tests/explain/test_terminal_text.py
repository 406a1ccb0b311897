import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from emea.explain.explanation import Entity, Explanation
from emea.explain.text import MOST_PIECES, print_explanations

from .fabricated import case, explanation, piece


def printed(told: list[Explanation], width: int = 80, colour: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=colour, highlight=False)
    print_explanations(console, told)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = printed([explanation(), explanation()], width).splitlines()
    assert max(map(cell_len, lines)) <= width


def test_output_is_plain_without_a_terminal() -> None:
    assert "\x1b" not in printed([explanation()])
    assert "\x1b[" in printed([explanation()], colour=True)


def test_everything_is_said() -> None:
    text = printed([explanation()], 120)
    for part in ("Source_<11> = Target_&_21", "60%", "training link", "bornIn → ~ ← birthplace"):
        assert part in text
    for part in ("r⊆r' 0.90, r'⊆r 0.80, fun⁻¹ 0.50 and 0.40", "this pair", "runner-up"):
        assert part in text
    assert "Neighbours of the source that do not support it: 2" in text
    assert "Only Target_&_1 is supported by Source_<12>." in text


def test_names_are_no_markup() -> None:
    odd = replace(explanation(), source=Entity(1, "[bold]x[/bold] [/]"))
    assert "[bold]x[/bold] [/]" in printed([odd], 120)


def test_long_lists_are_cut_and_nothing_is_hidden() -> None:
    pieces = tuple(piece(number, number, 0.1) for number in range(10))
    text = printed([explanation(asked=case(1, pieces), rival=None)])
    assert f"and {10 - MOST_PIECES} more (20%)" in text
    assert "No neighbour supports the pair." in printed([explanation(asked=case(1, ()))])
