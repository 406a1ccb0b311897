"""Rules for the scripts, styles and templates of the pages, which no other linter reads."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from emea.explain.alignment_page import SCRIPTS

EMEA = Path(__file__).resolve().parents[1] / "emea"
JAVASCRIPT, STYLES, TEMPLATES = (
    sorted(EMEA.rglob(f"*.{suffix}")) for suffix in ("js", "css", "html")
)
ALL = [*JAVASCRIPT, *STYLES, *TEMPLATES]

MOST_CHARACTERS = 100

TEXT = re.compile(r"`[^`]*`|\"[^\"]*\"|/[^/\s]{20,}/\w*")
"""A text or a long regular expression, which cannot be divided."""

BANNED = {
    "innerHTML": "textContent or append: names of entities are not trusted",
    "outerHTML": "textContent or append",
    "insertAdjacentHTML": "append",
    "document.write": "append",
    "eval(": "a function",
    "new Function": "a function",
    "var ": "const or let",
    " == ": "===",
    " != ": "!==",
    "console.": "nothing: pages have no log",
    "http:": "nothing from other hosts",
    "https:": "nothing from other hosts",
}
"""What a script must not contain, and what it uses instead."""

OF_OTHERS = {"vg-tooltip-element"}
"""Ids of the charts of Vega, which only the report of the experiments has."""

NAMESPACE = "http://www.w3.org/2000/svg"


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def name(path: Path) -> str:
    return path.relative_to(EMEA).as_posix()


def test_there_are_files_of_each_kind() -> None:
    assert JAVASCRIPT and STYLES and TEMPLATES
    joined = {path.stem for path in JAVASCRIPT if path.parent.name == "browser"}
    assert joined == set(SCRIPTS)  # a forgotten script would be on no page


@pytest.mark.parametrize("path", ALL, ids=name)
def test_lines_are_clean(path: Path) -> None:
    text = read(path)
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert "\t" not in text and "\r" not in text
    for number, line in enumerate(text.splitlines(), 1):
        assert line == line.rstrip(), f"line {number} has trailing white space"
        if path.suffix != ".html":
            length = len(TEXT.sub('""', line))
            assert length <= MOST_CHARACTERS, f"line {number} is too long"


@pytest.mark.parametrize("path", JAVASCRIPT, ids=name)
def test_scripts_are_strict(path: Path) -> None:
    """The scripts of the alignment page become one function, which is strict."""
    is_joined = path.parent.name == "browser"
    assert is_joined != read(path).lstrip().startswith('"use strict";')


@pytest.mark.parametrize("path", JAVASCRIPT, ids=name)
def test_scripts_contain_nothing_banned(path: Path) -> None:
    lines = read(path).replace(NAMESPACE, "").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
    assert [word for word in BANNED if word in text] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_templates_run_no_code_of_attributes(path: Path) -> None:
    assert re.findall(r"\son\w+=|javascript:|\ssrc=", read(path)) == []


def selected(style: str) -> set[str]:
    """The ids and classes of a style sheet."""
    found = set()
    without_texts = re.sub(r"/\*.*?\*/|\"[^\"]*\"", "", style, flags=re.DOTALL)
    for selectors in re.findall(r"([^{};]+)\{", without_texts):
        found |= set(re.findall(r"[.#]([A-Za-z][\w-]*)", selectors))
    return found


@pytest.mark.parametrize("path", STYLES, ids=name)
def test_styles_are_used(path: Path) -> None:
    reports = (EMEA.parent / "experiments").rglob("*.py")  # with the same style
    sources = [*JAVASCRIPT, *TEMPLATES, *EMEA.rglob("*.py"), *reports]
    words = {
        word for one in sources for word in re.findall(r"[A-Za-z][\w-]*", read(one))
    }
    assert selected(read(path)) - words - OF_OTHERS == set()


def test_ids_and_classes_of_a_style_are_found() -> None:
    style = '.a .b-c:hover, #d[x=".e"] { color: #fff; } /* .f */ @media print { .g { top: .5rem } }'
    assert selected(style) == {"a", "b-c", "d", "g"}


def test_ids_that_scripts_ask_for_are_in_a_template() -> None:
    asked = {
        one for path in JAVASCRIPT for one in re.findall(r'byId\("([^"]+)"', read(path))
    }
    given = {
        one
        for path in [*TEMPLATES, *JAVASCRIPT]
        for one in re.findall(r'\bid(?:="|: ")([\w-]+)"', read(path))
    }
    assert asked - given == set()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("path", JAVASCRIPT, ids=name)
def test_scripts_can_be_parsed(path: Path) -> None:
    command = ["node", "--check", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
