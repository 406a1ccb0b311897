"""A comparison as text, CSV and page."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from emea.results.comparison import (
    Comparison,
    PairedTest,
    Row,
    as_html,
    as_text,
    best_columns,
    verdicts,
)

ODD = "<script>alert('x')</script>"
TEST = PairedTest(
    "b",
    num_links=4,
    changes={"hit@1": (0.25, 0.04), "mrr": (-0.5, 1e-9)},
    counts={"won": 2, "lost": 1, "both": 0, "neither": 1},
)
COMPARISON = Comparison(
    labels=("a", ODD),
    settings=(Row("em.name", ("paper", None)),),
    provenance=(Row("commit", ("c", "e")),),
    metrics=(Row("final.hit@1", (0.5, 0.75)), Row("final.mr", (12.34, None))),
    tests=(TEST,),
    protocols=("strict (saw no test links)",) * 2,
)


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (TEST, "x is better than a: Hit@1 +0.2500 on 4 test links (p = 0.040)."),
        (
            replace(TEST, changes={"hit@1": (-0.5, 1e-9)}),
            "x is worse than a: Hit@1 -0.5000",
        ),
        (
            replace(TEST, changes={"hit@1": (0.1, 0.3)}),
            "x does not differ significantly from a",
        ),
        (
            PairedTest("x", "there are no ranks"),
            "x is not paired with a, because there are no",
        ),
    ],
)
def test_text_and_page_begin_with_the_verdict(test: PairedTest, said: str) -> None:
    compared = replace(COMPARISON, labels=("a", "x"), tests=(test,))
    assert verdicts(compared)[0].startswith(said)
    for text in (as_text(compared), as_html(compared)):
        assert (
            text.index(said)
            < text.index("Settings that differ")
            < text.index("final.hit@1")
        )


def test_protocols_are_always_shown() -> None:
    assert "Protocol: strict (saw no test links)\n" in as_text(COMPARISON)
    mixed = replace(
        COMPARISON, labels=("a", "b"), protocols=("strict (x)", "released (y)")
    )
    for text in (as_text(mixed), as_html(mixed)):
        assert "Protocol: a strict (x); b released (y). Do not compare" in text


def test_a_page_shows_the_same_and_runs_nothing() -> None:
    html = as_html(COMPARISON)
    assert not re.search("<(script|link|img)", html.split("<body")[1])
    for word in ("em.name", "2 won", "1 lost", "p &lt; 0.001", str(escape(ODD))):
        assert word in html, word
    assert '<td class="best">0.7500</td>' in html


def test_the_best_value_is_marked() -> None:
    assert best_columns(Row("final.hit@1", (0.1, 0.3, None))) == {1}
    assert best_columns(Row("final.mr", (5.0, 3.0, 3.0))) == {1, 2}
    assert best_columns(Row("final.mrr", (0.5, 0.5))) == set()
    # values that differ in digits that are not shown
    assert best_columns(Row("final.mrr", (0.50001, 0.50002))) == set()
    assert best_columns(Row("final.mrr", (0.50001, 0.50002, 0.4))) == {0, 1}


@pytest.mark.browser
def test_the_page_in_a_browser(visit: Any, tmp_path: Path) -> None:
    path = tmp_path / "comparison.html"
    path.write_text(as_html(COMPARISON), encoding="utf-8")
    page = visit.open(path)
    # a name that contains HTML is shown as text
    assert page.get_by_role("heading", name=ODD).is_visible()
    page.set_viewport_size(
        {"width": 420, "height": 900}
    )  # a phone scrolls tables, not the page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert visit.errors == [] and visit.requests == [path.as_uri()]
