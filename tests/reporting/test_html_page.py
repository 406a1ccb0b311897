"""The page as it is written, and as a browser shows it."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from emea.reporting.page import HtmlPart, page

REPORT = """# Table 1

247 runs, see [one](records/x/run.json) and [the other report](../dual/results.md).

## Hit@1

| pair | ours | share | difference | verdict |
| --- | ---: | ---: | ---: | --- |
| zh | 0.712 ± 0.003 | 1% | +0.010 | within |
| fr | n/a | 20% | -0.200 | not run |
| ja | 0.09 → 0.95 (1 split) | 5% |  | below |
| en | 0.8 | 10% | -0.03 | above |
| de | not run | 30% | 1,200 | above |

## Figure 5

![Hit@1 over iterations](figure5.svg)
"""
DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40">'
    '<rect width="60" height="40"/></svg>'
)


@pytest.fixture
def parts(tmp_path: Path) -> list[HtmlPart]:
    for name in ("table1", "dual"):
        (tmp_path / name).mkdir()
    (tmp_path / "table1" / "figure5.svg").write_text(DRAWING)
    table1 = HtmlPart("table1", REPORT, tmp_path / "table1")
    return [table1, HtmlPart("dual", "# Two <ways>\n\nno record", tmp_path / "dual")]


class Tags(HTMLParser):
    """The attributes of every tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str, attribute: str) -> list[str | None]:
        return [
            attrs[attribute] for name, attrs in self.found if name == tag and attribute in attrs
        ]


def test_navigation_leads_to_every_part(parts: list[HtmlPart]) -> None:
    text = page("Results", parts)
    addresses = [address for address in Tags(text).all("a", "href") if address]
    assert addresses[:4] == ["#table1", "#table1.hit1", "#table1.figure-5", "#dual"]
    ids = {attrs["id"] for _, attrs in Tags(text).found if "id" in attrs}
    assert {address[1:] for address in addresses if address.startswith("#")} <= ids
    assert "table1/records/x/run.json" in addresses


def test_everything_is_inside(parts: list[HtmlPart]) -> None:
    tags = Tags(page("Results", parts))
    assert [str(source)[:26] for source in tags.all("img", "src")] == ["data:image/svg+xml;base64,"]
    assert tags.all("img", "alt") == ["Hit@1 over iterations"]
    assert tags.all("script", "src") == []
    assert tags.all("link", "href") == ["data:,"]


def test_titles_are_escaped(parts: list[HtmlPart]) -> None:
    text = page("<Results>", parts)
    assert "<title>&lt;Results&gt;</title>" in text
    assert ">Two &lt;ways&gt;</a>" in text
    assert "<ways>" not in text


def test_links_count_from_where_the_page_lies(parts: list[HtmlPart], tmp_path: Path) -> None:
    text = page("Results", parts, tmp_path / "site" / "pages")
    assert 'href="../../table1/records/x/run.json"' in text


def test_a_page_of_nothing_is_a_page() -> None:
    assert "<h1>Results</h1>" in page("Results", [])


def column(shown: Any, number: int) -> list[str]:
    cells = shown.locator(f"tbody tr:visible td:nth-child({number})")
    return list(map(str, cells.all_inner_texts()))


@pytest.mark.browser
def test_the_page_opens_from_disk_and_asks_nobody(
    visit: Any, parts: list[HtmlPart], tmp_path: Path
) -> None:
    (tmp_path / "report.html").write_text(page("Results", parts), encoding="utf-8")
    shown = visit.open(tmp_path / "report.html")
    assert shown.title() == "Results"
    assert shown.evaluate("[...document.images].map((image) => image.naturalWidth)") == [60]
    assert shown.locator("#table1").get_by_text("within").is_visible()
    shown.get_by_role("navigation").get_by_role("link", name="Two <ways>").click()
    assert shown.url.endswith("#dual")
    asked = [address for address in visit.requests if not address.startswith(("file:", "data:"))]
    assert asked == []
    assert len([address for address in visit.requests if address.startswith("file:")]) == 1
    assert visit.errors == []


@pytest.mark.browser
@pytest.mark.parametrize(
    ("header", "ascending", "descending"),
    [
        ("pair", "de en fr ja zh", "zh ja fr en de"),
        ("ours", "zh en ja fr de", "ja en zh fr de"),
        ("share", "zh ja en fr de", "de fr en ja zh"),
        ("difference", "fr en zh de ja", "de zh en fr ja"),
        ("verdict", "en de ja zh fr", "zh ja en de fr"),
    ],
)
def test_tables_sort_by_what_a_header_says(
    visit: Any, parts: list[HtmlPart], tmp_path: Path, header: str, ascending: str, descending: str
) -> None:
    (tmp_path / "report.html").write_text(page("Results", parts), encoding="utf-8")
    shown = visit.open(tmp_path / "report.html")
    before = column(shown, 1)
    assert before == ["zh", "fr", "ja", "en", "de"]
    button = shown.get_by_role("button", name=header)
    title = shown.locator("th", has=button)
    button.click()
    assert column(shown, 1) == ascending.split()
    assert title.get_attribute("aria-sort") == "ascending"
    button.press("Enter")  # as who uses no mouse
    assert column(shown, 1) == descending.split()
    assert title.get_attribute("aria-sort") == "descending"
    button.press("Space")
    assert column(shown, 1) == before
    assert title.get_attribute("aria-sort") is None


@pytest.mark.browser
def test_rows_are_filtered(visit: Any, parts: list[HtmlPart], tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(page("Results", parts), encoding="utf-8")
    shown = visit.open(tmp_path / "report.html")
    shown.get_by_label("Filter rows").fill("above 10%")
    assert column(shown, 1) == ["en"]
    assert shown.get_by_text("1 of 5 rows").is_visible()
    shown.get_by_label("Filter rows").fill("nowhere")
    assert column(shown, 1) == []
    shown.get_by_label("Filter rows").fill("")
    assert len(column(shown, 1)) == 5


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 800, 1500])
def test_wide_tables_scroll_and_the_page_does_not(
    visit: Any, parts: list[HtmlPart], tmp_path: Path, width: int
) -> None:
    titles = [f"a long title {number}" for number in range(30)]
    rows = ["| " + " | ".join(cells) + " |" for cells in (titles, ["---"] * 30, ["0.5 ± 0.1"] * 30)]
    wide = HtmlPart("wide", "\n".join(rows), tmp_path)
    (tmp_path / "report.html").write_text(page("Results", [*parts, wide]), encoding="utf-8")
    visit.page.set_viewport_size({"width": width, "height": 700})
    shown = visit.open(tmp_path / "report.html")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    frame = shown.locator("#wide .table")
    assert frame.evaluate("(frame) => frame.scrollWidth > frame.clientWidth")
