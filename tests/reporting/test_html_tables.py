"""How a page shows tables."""

import pytest
from markdown_it import MarkdownIt

from emea.reporting.html_tables import dress_tables


def rendered(text: str) -> str:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    dress_tables(tokens, "the report")
    return str(parser.renderer.render(tokens, parser.options, {}))


def cell(content: str) -> str:
    html = rendered(f"| a |\n| --- |\n| {content} |")
    return html.split("<td")[1].split(">", 1)[1].split("</td>")[0]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("within", '<span class="badge good">within</span>'),
        ("**not upheld**", '<strong><span class="badge bad">not upheld</span></strong>'),
        ("upheld (3 of 3)", '<span class="badge good">upheld</span> (3 of 3)'),
        ("not run", '<span class="badge none">not run</span>'),
        ("above all else", "above all else"),
        ("withins", "withins"),
        ("`within`", "<code>within</code>"),
        ("", ""),
    ],
)
def test_verdicts_are_badges(content: str, expected: str) -> None:
    assert cell(content) == expected


def test_headers_are_no_verdicts() -> None:
    assert "badge" not in rendered("| within |\n| --- |\n| 1 |")


def test_numbers_are_named_by_class_and_not_by_style() -> None:
    html = rendered("| a | b |\n| --- | ---: |\n| x | 1 |")
    assert '<td class="number">1</td>' in html
    assert '<th class="number" scope="col">b</th>' in html
    assert "style" not in html


def test_long_cells_get_room() -> None:
    html = rendered(f"| a | b |\n| --- | --- |\n| {'word ' * 10} | [x](records/{'x' * 50}) |")
    assert html.count('class="prose"') == 1


def test_links_to_runs_stay_on_one_line() -> None:
    html = rendered("| a | runs |\n| --- | --- |\n| 1 2 x | [1](a.json) [2](b.json) |")
    assert html.count('<td class="runs">') == 1
    assert '<td class="runs"><a href="a.json">1</a>' in html


def test_the_frame_is_called_by_the_heading_above() -> None:
    table = "| a |\n| --- |\n| 1 |\n"
    html = rendered(f'{table}\n## "Hit@1"\n\n{table}')
    assert 'aria-label="the report"><table>' in html
    assert 'aria-label="&quot;Hit@1&quot;"><table>' in html
    assert html.count("</table></div>") == 2
