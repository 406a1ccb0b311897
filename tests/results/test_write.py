"""Reports as files."""

from pathlib import Path
from typing import Any

from emea.results.render import report_markdown
from emea.results.report import made_report
from emea.results.run_table import run_table
from emea.results.studies import STUDIES
from emea.results.study import Part, Report
from emea.results.table import text_table
from emea.results.write import BLOCKS, with_block, write_report

from .fabricated import made


def test_a_report_says_how_it_is_run() -> None:
    part = Part("Hit@1", "a note", text_table(["a"], ["b"], [["x", "1"]]))
    report = Report("table9", "A title", "text", (part,), "origin")
    table = "| a | b |\n| --- | ---: |\n| x | 1 |"
    command = "Run it with `emea run -m experiment=table9`."
    assert report_markdown(report) == (
        f"# A title\n\n{command}\n\ntext\n\n## Hit@1\n\na note\n\n{table}\n\norigin\n"
    )


def test_what_a_report_has_is_written(tmp_path: Path) -> None:
    report = made_report(STUDIES["figure7"], run_table([made()]))
    write_report(report, tmp_path / "figure7")
    written = {path.name for path in (tmp_path / "figure7").iterdir()}
    assert written == {"results.md", "results.csv", "figure7.svg"}
    assert "](figure7.svg)" in (tmp_path / "figure7" / "results.md").read_text()
    write_report(Report("text", "Only text", "", ()), tmp_path / "text")
    assert [path.name for path in (tmp_path / "text").iterdir()] == ["results.md"]


def test_a_block_is_replaced_and_nothing_else() -> None:
    results: Any = None
    begin, end = "<!-- b: written by emea report -->", "<!-- /b -->"
    text = f"before\n{begin}\nold\n{end}\nafter\n"
    written = with_block(text, "b", lambda _: "new", results)
    assert written == f"before\n{begin}\nnew\n{end}\nafter\n"
    assert with_block(written, "b", lambda _: "new", results) == written
    assert with_block(text, "c", lambda _: "new", results) == text
    assert {"results", "table1", "dual", "findings", "speed"} == set(BLOCKS)
