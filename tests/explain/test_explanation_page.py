"""The explanation page: its HTML, and its appearance in a browser."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emea.answer.schema import Schema, TermMatch
from emea.explain.explainer import Explainer
from emea.explain.explanation import Entity, Explanation
from emea.explain.page import MOST_ROWS, explanation_page, neighbourhood
from emea.run.finished_run import FinishedRun

from ..finished_runs import Finished
from .fabricated import case, explanation, piece

IS_DRAWN = """lines => lines.every(line => line.getBoundingClientRect().width > 50
    && getComputedStyle(line).stroke != "none"
    && parseFloat(getComputedStyle(line).strokeWidth) > 0.5)"""
"""A horizontal line has a bounding box of height 0, so the stroke is checked as well."""


@pytest.fixture
def run(finished: Finished) -> FinishedRun:
    return finished("dual")


@pytest.fixture
def told(run: FinishedRun) -> list[Explanation]:
    explainer = Explainer(run)
    return [explainer(source, explainer.best_target(source) or 0) for source in range(3)]


def test_names_are_escaped(run: FinishedRun) -> None:
    text = explanation_page(run, [explanation()])
    assert "Source_<" not in text and "Source_&lt;1&gt;" in text
    assert "<script" not in text and " style=" not in text and "<nav" not in text


def test_same_explanations_same_page(run: FinishedRun, told: list[Explanation]) -> None:
    assert explanation_page(run, told) == explanation_page(run, told)
    assert explanation_page(run, told).count("<section ") == 3


def test_the_page_shows_the_mapped_relations(run: FinishedRun) -> None:
    example = ("a", "r<1>", "b"), ("x", "http://b.org/s", "y")
    stated = TermMatch("r<1>", "http://b.org/s", True, "equivalent", 0.75, 0.5, 7, *example)
    unstated = stated._replace(source="unstated", mapping="")
    schema = Schema("zh", [unstated, stated, *[stated] * MOST_ROWS], [])
    text = explanation_page(run, [explanation()], schema)
    assert "Relations that correspond" in text and "Classes that correspond" not in text
    assert "r&lt;1&gt;" in text and "r<1>" not in text and "unstated" not in text
    assert text.count("inverse of s</td>") == MOST_ROWS and "and 1 more" in text
    assert "Relations that correspond" not in explanation_page(run, [explanation()])


def test_long_literals_are_cut_in_the_page(run: FinishedRun) -> None:
    first, second = (Entity(number, f'"{number}{"long " * 1000}"') for number in (1, 2))
    shown = replace(piece(1, 1, 1.0), neighbour=first, counterpart=second)
    example = ("a", "r", first.name), ("x", "s", second.name)
    stated = TermMatch("r", "s", False, "equivalent", 0.75, 0.5, 7, *example)
    one = explanation(asked=case(1, (shown,)), rival=None)
    text = explanation_page(run, [one], Schema("zh", [stated], []))
    assert "1long long" in text and "2long long" in text and "…" in text
    assert "long " * 50 not in text


def test_hubs_do_not_flood_the_page(run: FinishedRun) -> None:
    pieces = tuple(piece(number, number, 1 / 400) for number in range(400))
    text = explanation_page(run, [explanation(asked=case(1, pieces), rival=None)])
    assert text.count("<td>← birthplace") == 0
    assert text.count(">← birthplace</td>") == MOST_ROWS
    assert f"and {400 - MOST_ROWS} more, 92% of the evidence (see --json)" in text


@pytest.mark.browser
@pytest.mark.parametrize("settings", [{}, {"color_scheme": "dark"}, {"java_script_enabled": False}])
def test_the_page_opens_from_disk_without_requests(
    browser: Any,
    settings: dict[str, Any],
    run: FinishedRun,
    told: list[Explanation],
    tmp_path: Path,
) -> None:
    from ..browser import Visit

    (tmp_path / "why.html").write_text(explanation_page(run, told), encoding="utf-8")
    visit = Visit(browser, **settings)
    shown = visit.open(tmp_path / "why.html")
    for place, one in enumerate(told, 1):
        section = shown.locator(f"#pair{place}")
        picture = section.locator("svg").first
        assert picture.is_visible()
        lines = picture.locator("line.link")
        assert lines.count() == len(neighbourhood(one.asked).links)
        assert lines.evaluate_all(IS_DRAWN)
        assert not section.locator("details svg").is_visible()
        section.locator("summary", has_text="Neighbourhoods of the").click()
        assert section.locator("details svg").is_visible()
    assert any(neighbourhood(one.asked).links for one in told)
    shown.get_by_role("navigation").get_by_role("link").nth(1).click()
    assert shown.url.endswith("#pair2")
    assert [address for address in visit.requests if not address.startswith("file:")] == []
    assert len(visit.requests) == 1
    assert visit.errors == []
    visit.close()


@pytest.mark.browser
def test_texts_of_the_drawing_do_not_leave_it(visit: Any, run: FinishedRun, tmp_path: Path) -> None:
    odd = explanation(source=Entity(1, "北京市海淀区" * 8))
    (tmp_path / "why.html").write_text(explanation_page(run, [odd]), encoding="utf-8")
    shown = visit.open(tmp_path / "why.html")
    frame = shown.locator("svg").first.bounding_box()
    for text in shown.locator("svg").first.locator("text").all():
        box = text.bounding_box()
        assert frame["x"] <= box["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"]
        assert frame["y"] <= box["y"] and box["y"] + box["height"] <= frame["y"] + frame["height"]


@pytest.mark.browser
def test_a_narrow_screen_scrolls_the_drawing_and_not_the_page(
    browser: Any, run: FinishedRun, told: list[Explanation], tmp_path: Path
) -> None:
    from ..browser import Visit

    (tmp_path / "why.html").write_text(explanation_page(run, told), encoding="utf-8")
    visit = Visit(browser, viewport={"width": 390, "height": 800})
    shown = visit.open(tmp_path / "why.html")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    visit.close()
