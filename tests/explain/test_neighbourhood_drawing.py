import xml.etree.ElementTree as ET
from dataclasses import replace

from rich.cells import cell_len

from emea.explain.drawing import drawing
from emea.explain.explanation import Case, Entity

from .fabricated import case, explanation, piece, silent, source


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
