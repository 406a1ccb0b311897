"""The neighbours that are drawn, and their drawing."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from emea.explain.explanation import Case, Entity
from emea.explain.page import MOST, drawing, neighbourhood

from .fabricated import case, explanation, piece, silent, source, target


def test_neighbours_by_what_they_say() -> None:
    shown = neighbourhood(explanation().asked)
    assert [one.entity.id for one in shown.source] == [11, 12, 80, 81]
    assert [one.entity.id for one in shown.target] == [21, 22, 90]
    assert [one.is_label for one in shown.source] == [True, False, False, False]
    assert [one.supports for one in shown.target] == [True, True, False]
    ends = {(link.source, link.target): link.share for link in shown.links}
    assert ends == {(0, 0): 0.6, (0, 1): 0.3, (1, 1): 0.1}
    assert shown.num_more == (0, 0)


ends = st.tuples(st.integers(0, 30), st.integers(0, 30))


@given(st.lists(ends, max_size=60), st.integers(0, 30), st.integers(0, 30))
def test_a_side_has_no_more_than_fit_and_counts_the_rest(
    found: list[tuple[int, int]], num_source: int, num_target: int
) -> None:
    pieces = tuple(piece(n, n2, 1 / len(found)) for n, n2 in found)
    shown = neighbourhood(
        case(
            1,
            pieces,
            unmatched=tuple(silent(source(100 + number)) for number in range(num_source)),
            target_unmatched=tuple(silent(target(100 + number)) for number in range(num_target)),
        )
    )
    totals = (len({n for n, _ in found}) + num_source, len({n2 for _, n2 in found}) + num_target)
    for side, more, total in zip((shown.source, shown.target), shown.num_more, totals, strict=True):
        assert len(side) == min(MOST, total)
        assert len(side) + more == total
    drawn = {one.entity.id for one in shown.source}, {one.entity.id for one in shown.target}
    assert len(shown.links) == len({(n, m) for n, m in found if n in drawn[0] and m in drawn[1]})


def drawn(shown: Case, entity: Entity | None = None) -> ET.Element:
    return ET.fromstring(drawing(entity or source(1), shown, "pair1"))


def test_as_many_lines_as_matched_neighbours() -> None:
    picture = drawn(explanation().asked)
    lines = picture.findall("line")
    assert len(lines) == 3
    widths = [float(line.get("stroke-width", "0")) for line in lines]
    assert widths == sorted(widths, reverse=True) and widths[0] > 2 * widths[-1]
    texts = ["".join(text.itertext()) for text in picture.iter("text")]
    assert {"60%", "30%", "10%", "bornIn →", "birthplace →", "likes +1 →"} <= set(texts)


def test_it_is_named_for_who_cannot_see_it() -> None:
    picture = drawn(explanation().asked)
    assert picture.get("role") == "img"
    assert picture.get("aria-labelledby") == "pair1-title pair1-description"
    assert "Source_<1>" in picture.findtext("title", "")
    assert "Source_<11> with Target_&_21, 60%" in picture.findtext("desc", "")
    empty = drawn(case(1, ()))
    assert "No neighbour supports the pair" in empty.findtext("desc", "")


def test_full_names_are_tooltips_and_long_ones_are_cut() -> None:
    name = "http://a.org/" + "A_very_long_name_of_an_entity_" * 3
    shown = case(1, (), unmatched=(silent(Entity(7, name)),))
    picture = drawn(shown, Entity(8, name))
    titles = [title.text for title in picture.iter("title")]
    assert titles.count(name) == 2
    assert all(len("".join(text.itertext())) < 26 for text in picture.iter("text"))


def test_wide_characters_take_their_room() -> None:
    name = "http://a.org/" + "北京市海淀区" * 8
    picture = drawn(case(1, (), unmatched=(silent(Entity(7, name)),)), Entity(8, name))
    texts = ["".join(text.itertext()) for text in picture.iter("text")]
    assert all(cell_len(text) < 26 for text in texts)
    assert sum(text.endswith("…") for text in texts) == 2


def test_the_rest_is_counted() -> None:
    pieces = tuple(piece(number, number, 1 / 20) for number in range(20))
    picture = drawn(case(1, pieces, unmatched=(), target_unmatched=()))
    texts = ["".join(text.itertext()) for text in picture.iter("text")]
    assert texts.count("and 8 more") == 2
    assert len(picture.findall("line")) == 12


def test_a_pair_without_neighbours_can_be_drawn() -> None:
    lonely = replace(case(1, ()), unmatched=(), target_unmatched=())
    assert len(drawn(lonely).findall("line")) == 0
