"""The report page: its HTML, and its appearance in a browser."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from emea.results.page import html_document
from experiments.archive.study import EXPERIMENTS
from experiments.report import report_page as page
from experiments.report.line_charts import Chart, lines, points, stacked
from experiments.report.report import Cell, Entry, Part, Report, Table, text_table
from experiments.report.report_page import report_page, row_command
from experiments.report.write import PAGE

ROWS = [
    ["zh", "0.712 ± 0.003", "1%", "+0.010", "within"],
    ["fr", "n/a", "20%", "-0.200", "not run"],
    ["ja", "0.09 → 0.95 (1 split)", "5%", "", "below"],
    ["en", "0.8", "10%", "-0.03", "above"],
    ["de", "not run", "30%", "1,200", "above"],
]
TABLE = text_table(
    ["pair"], ["ours", "share", "difference", "verdict"], ROWS, ["verdict"]
)
CHART = Chart("Hit@1", 0, "ratio", ("RREA", "em=dual"))


def chart() -> dict[str, Any]:
    cells = [
        Entry(f"0.{n}00", Cell(n / 10, 0.01, 3), number=n / 10) for n in (2, 7, 4, 8)
    ]
    rows = ((("1%",), (cells[0], cells[1])), (("5%",), (cells[2], cells[3])))
    table = Table(("ratio",), ("RREA", "em=dual"), frozenset(), rows)
    return stacked([lines(CHART, points(CHART, table))])


@pytest.fixture(autouse=True)
def _bundle_of_the_committed_page(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Take the chart library from the committed page, except in a browser: bundling takes long."""
    if "browser" not in request.keywords:
        script = re.search(r"<script>(.*?)</script>", committed_page(), re.DOTALL)
        assert script is not None and "vega" in script[1]
        monkeypatch.setattr(page, "vega_bundle", lambda: script[1])


@cache
def committed_page() -> str:
    return (EXPERIMENTS / PAGE).read_text(encoding="utf-8")


@pytest.fixture
def reports() -> list[Report]:
    note = "247 runs, see [the manual](https://example.org)."
    return [
        Report(
            "table1",
            "Table 1",
            note,
            (Part("Hit@1", "A note.", TABLE),),
            "By commit c.",
        ),
        Report("dual", "Two <ways>", "Text & *more*.", (), "", chart()),
    ]


@pytest.fixture
def file(reports: list[Report], tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    path.write_text(
        report_page("Results", reports, ["**First:** it works."]), encoding="utf-8"
    )
    return path


def attributes(text: str, tag: str, name: str) -> list[str]:
    return re.findall(rf'<{tag}\b[^>]* {name}="([^"]*)"', text)


def body(text: str) -> str:
    return text.split("<body")[1].split("</main>")[0]


def test_everything_is_inside(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert "<img" not in body(text) and attributes(body(text), "script", "src") == []
    assert attributes(text, "link", "href") == ["data:,"]


def test_texts_are_escaped(reports: list[Report]) -> None:
    rows = [["<b>x</b>", "</script><script>alert(1)</script>", "[a](javascript:b)"]]
    part = Part(
        "<i>",
        "<img src=x onerror=y>",
        text_table(["<u>"], ["b", "c"], rows, ["b", "c"]),
    )
    text = report_page(
        "<Results>", [*reports, Report("own", "own", "", (part,), "<s>")]
    )
    assert "<title>&lt;Results&gt;</title>" in text
    for tag in (
        "<ways>",
        "<b>",
        "<i>",
        "<u>",
        "<s>",
        "<img",
        "<script>alert",
        'href="javascript',
    ):
        assert tag not in body(text), tag
    assert "&lt;b&gt;x&lt;/b&gt;" in text and "&lt;i&gt;" in text


def test_the_policy_allows_the_pages_own_scripts_only(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    policy = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)[0]
    assert policy.startswith("default-src &#39;none&#39;")
    assert "unsafe" not in policy and policy.count("sha256-") == 4
    assert html_document("t", "<p>x</p>", "").count("script-src") == 0


def column(shown: Any, number: int) -> list[str]:
    cells = shown.locator(f"tbody tr:visible td:nth-child({number})")
    return list(map(str, cells.all_inner_texts()))


@pytest.mark.browser
def test_the_page_opens_from_disk_without_requests(visit: Any, file: Path) -> None:
    shown = visit.open(file)
    assert shown.title() == "Results"
    assert shown.locator("#table1").get_by_text("within").is_visible()
    shown.get_by_role("navigation").get_by_role("link", name="Two <ways>").click()
    assert shown.url.endswith("#dual")
    shown.locator("#dual svg").wait_for()
    asked = [
        address
        for address in visit.requests
        if not address.startswith(("file:", "data:"))
    ]
    assert asked == []
    assert (
        len([address for address in visit.requests if address.startswith("file:")]) == 1
    )
    assert visit.errors == []


@pytest.mark.browser
def test_a_chart_shows_values_and_its_legend_hides_series(
    visit: Any, file: Path
) -> None:
    shown = visit.open(file)
    figure = shown.locator("#dual figure")
    symbols = figure.locator(".mark-symbol.role-mark path")
    symbols.first.scroll_into_view_if_needed()
    assert symbols.count() == 4
    symbols.nth(0).hover(force=True)
    tooltip = shown.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert set(tooltip.inner_text().split("\n")) >= {
        "labelled links\t1%",
        "series\tRREA",
    }

    def opacities() -> list[str | None]:
        return [symbols.nth(n).get_attribute("opacity") for n in range(4)]

    before = opacities()
    figure.get_by_text("em=dual", exact=True).click(force=True)
    shown.wait_for_timeout(300)
    hidden = opacities()
    assert hidden.count("0.04") == 2 and hidden != before
    figure.get_by_text("em=dual", exact=True).click(force=True)
    shown.wait_for_timeout(300)
    assert opacities() == before
    assert visit.errors == []


@pytest.mark.browser
def test_tables_sort_by_a_column(visit: Any, file: Path) -> None:
    shown = visit.open(file)
    before = column(shown, 1)
    assert before == ["zh", "fr", "ja", "en", "de"]
    for header, ascending, descending in (
        ("pair", "de en fr ja zh", "zh ja fr en de"),
        ("ours", "zh en ja fr de", "ja en zh fr de"),
        ("share", "zh ja en fr de", "de fr en ja zh"),
        ("difference", "fr en zh de ja", "de zh en fr ja"),
        ("verdict", "en de ja zh fr", "zh ja en de fr"),
    ):
        button = shown.get_by_role("button", name=header)
        button.click()
        assert column(shown, 1) == ascending.split()
        button.press("Enter")  # without a mouse
        assert column(shown, 1) == descending.split()
        assert shown.locator("th[aria-sort=descending]", has=button).count() == 1
        button.press("Space")
        assert column(shown, 1) == before


@pytest.mark.browser
def test_rows_are_filtered_also_in_closed_tables(
    visit: Any, reports: list[Report], tmp_path: Path
) -> None:
    long = text_table(["name"], ["n"], [[f"row{n}", str(n)] for n in range(30)])
    reports[1] = Report("long", "Long", "", (Part("Long", "", long),))
    file = tmp_path / "report.html"
    file.write_text(report_page("Results", reports), encoding="utf-8")
    shown = visit.open(file)
    assert shown.get_by_text("Show 30 rows").is_visible()
    assert not shown.get_by_text("row17").is_visible()
    shown.get_by_label("Filter rows").fill("row17")
    assert shown.get_by_text("row17").is_visible()
    shown.get_by_label("Filter rows").fill("above 10%")
    assert column(shown, 1) == ["en"]
    assert shown.get_by_text("1 of 35 rows").is_visible()
    shown.get_by_label("Filter rows").fill("nowhere")
    assert column(shown, 1) == []
    shown.get_by_label("Filter rows").fill("")
    assert len(column(shown, 1)) == 5


@pytest.mark.browser
def test_wide_tables_scroll_and_the_page_does_not(
    visit: Any, reports: list[Report], tmp_path: Path
) -> None:
    titles = [f"a long title {number}" for number in range(30)]
    wide = text_table(titles[:1], titles[1:], [["0.5 ± 0.1"] * 30])
    reports.append(Report("wide", "Wide", "", (Part("", "", wide),)))
    (tmp_path / "report.html").write_text(
        report_page("Results", reports), encoding="utf-8"
    )
    shown = visit.open(tmp_path / "report.html")
    for width in (360, 800, 1500):
        shown.set_viewport_size({"width": width, "height": 700})
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        frame = shown.locator("#wide .table")
        assert frame.evaluate("(frame) => frame.scrollWidth > frame.clientWidth")


def test_a_row_has_the_command_that_makes_it() -> None:
    line = {"data": "dbp15k_zh", "ratio": "0.01"}
    expected = "emea run -m experiment=table1 data=dbp15k_zh ratio=0.01"
    assert row_command("table1", line) == expected
    folds = {"data": "openea_d_y (official folds)", "ratio": "0.2"}
    assert row_command("openea", folds) == "emea run -m experiment=openea"
