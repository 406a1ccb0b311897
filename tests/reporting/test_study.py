"""Reports as text and as files."""

from pathlib import Path

import pytest

from emea.reporting.comparison import entries
from emea.reporting.curves import panels
from emea.reporting.methods import EMEA
from emea.reporting.studies import with_block, write_study
from emea.reporting.study import Study

from .fabricated import made


def test_a_report_says_how_it_is_run() -> None:
    study = Study("table9", "A title", ("first", "second"))
    command = "`python run.py -m experiment=table9` runs it."
    assert study.markdown == f"# A title\n\n{command}\n\nfirst\n\nsecond\n"


def test_what_a_study_has_is_written(tmp_path: Path) -> None:
    numbers = entries("table9", [made()], [EMEA], {}, [("dbp15k_zh", 0.01)], "hit@1")
    figure, _ = panels(["a"], "of a pair")
    write_study(Study("table9", "A title", (), tuple(numbers), figure), tmp_path / "table9")
    written = {path.name for path in (tmp_path / "table9").iterdir()}
    assert written == {"results.md", "results.csv", "table9.png", "table9.svg"}
    assert "![A title](table9.svg)" in (tmp_path / "table9" / "results.md").read_text()
    write_study(Study("text", "Text alone", ()), tmp_path / "text")
    assert [path.name for path in (tmp_path / "text").iterdir()] == ["results.md"]


def test_a_block_is_replaced_and_nothing_else() -> None:
    begin, end = "<!-- b: written by emea report -->", "<!-- /b -->"
    text = f"before\n{begin}\nold\n{end}\nafter\n"
    written = with_block(text, "b", "new")
    assert written == f"before\n{begin}\nnew\n{end}\nafter\n"
    assert with_block(written, "b", "new") == written
    with pytest.raises(ValueError):
        with_block(text, "c", "new")
