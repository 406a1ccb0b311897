"""A report as a section of a page."""

from pathlib import Path

from emea.reporting.page import HtmlPart, Section, render_part, slug


def section(text: str) -> Section:
    return render_part(HtmlPart("dual", text, Path("experiments/dual")), Path("experiments"), {})


def test_headings_go_down_a_level_and_get_addresses() -> None:
    made = section("# Two-way (`em=dual`)\n\n## Hit@1\n\n### Deep\n\n## Hit@1")
    assert made.title == "Two-way (em=dual)"
    assert made.headings == [("dual.hit1", "Hit@1"), ("dual.hit1-1", "Hit@1")]
    assert '<h2 id="dual.two-way-emdual">Two-way (<code>em=dual</code>)</h2>' in made.html
    assert '<h3 id="dual.hit1">Hit@1</h3>' in made.html
    assert '<h4 id="dual.deep">Deep</h4>' in made.html


def test_a_report_without_a_heading_goes_by_its_name() -> None:
    assert section("no record").title == "dual"


def test_slugs_are_those_of_github() -> None:
    assert slug("EM over each model (Fig. 4)") == "em-over-each-model-fig-4"


def test_marks_are_text() -> None:
    html = section("<script>alert(1)</script> <img src=x onerror=y>\n\n[a](javascript:b)").html
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert "&lt;script&gt;" in html


def test_marks_in_cells_are_text() -> None:
    html = section("| <b>a</b> |\n| --- |\n| <i>x</i> & `<u>` |").html
    assert "&lt;b&gt;a" in html
    assert "&lt;i&gt;x&lt;/i&gt; &amp; <code>&lt;u&gt;</code>" in html


def test_links_are_rewritten_wherever_they_stand() -> None:
    html = section(
        "[a](records/a)\n\n| x |\n| --- |\n| **[b](records/b)** |\n\n- [c](records/c)"
    ).html
    for name in "abc":
        assert f'<a href="dual/records/{name}">{name}</a>' in html
