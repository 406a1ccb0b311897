"""Links in the documentation lead somewhere, and texts avoid words that are easily misread."""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOP_PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*TOP_PAGES, *sorted((ROOT / "docs").glob("*.md"))]
WRITTEN_PAGES = [
    path for path in PAGES if path.name not in ("configuration.md", "results.md")
]
WRITTEN_PAGES.append(ROOT / "experiments" / "README.md")

WORDS = {
    "told, tells": r"\b(told|tells)\b",
    "anew": r"\banew\b",
    "beside": r"\bbeside\b",
    "alone": r"\balone\b",
    "is no X": r"(?<!there )\b(is|are|was|were) no\b(?! (longer|more|less|fewer)\b)",
    "goes on": r"\b(goes|go|going|went) on\b",
    "stands": r"\b(stands?|stood)\b",
    "whoever": r"\b(whoever|whatever|nobody|somebody|everybody)\b",
    "mended": r"\b(mend|mends|mended)\b",
    "as it is": r"\bas it is\b",
}
"""Words that the project used in private senses, and how to find them."""


def found_in(text: str) -> Counter[str]:
    """How often each word occurs in a text."""
    text = re.sub(r"`[^`\n]+`", " ", text)  # code keeps its names
    hits = {
        name: len(re.findall(form, text, re.IGNORECASE)) for name, form in WORDS.items()
    }
    return Counter({name: count for name, count in hits.items() if count})


def without_blocks(text: str) -> str:
    """A page without code, output and generated tables."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"<!-- (\w+): written by.*?<!-- /\1 -->", "", text, flags=re.DOTALL)


def texts_of(path: Path) -> Iterator[str]:
    """Docstrings, comments and other strings with a blank, of a Python file."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and " " in node.value
        ):
            yield node.value
    yield from re.findall(r"(?:^|\s)# (.*)", source)


def package_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "emea").parts
    return parts[0] if len(parts) > 1 else "emea"


PACKAGES = sorted({package_of(path) for path in (ROOT / "emea").rglob("*.py")})


@cache
def occurrences() -> dict[str, list[str]]:
    """File and words of every occurrence, by package."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "emea").rglob("*.py")):
        place = found.setdefault(package_of(path), [])
        for text in texts_of(path):
            counts = found_in(text)
            place += [
                f"{path.relative_to(ROOT)}: {name!r} in {text[:70]!r}"
                for name in counts.elements()
            ]
    return found


@pytest.mark.parametrize("path", WRITTEN_PAGES, ids=lambda path: path.name)
def test_pages_avoid_the_words(path: Path) -> None:
    assert not found_in(without_blocks(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_avoid_the_words(package: str) -> None:
    assert occurrences()[package] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "A run that is told nothing goes on anew.",
            ["anew", "goes on", "told, tells"],
        ),
        ("It is no longer here. Category alone stands.", ["alone", "stands"]),
        ("The code `stands alone` and understands.", []),
        ("There is no target, and that is no candidate.", ["is no X"]),
    ],
)
def test_the_words_are_found(text: str, words: list[str]) -> None:
    assert sorted(found_in(text).elements()) == words


def anchors(path: Path) -> set[str]:
    """Anchors of a page's headings, or of the lines of a table, as GitHub builds them."""
    if path.suffix == ".jsonl":
        num_lines = len(path.read_bytes().splitlines())
        return {f"L{number}" for number in range(1, num_lines + 1)}
    text = re.sub(
        r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    cleaned = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in cleaned}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(
        r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target), link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_tables_begin_with_a_header(path: Path) -> None:
    lines = ["", *path.read_text("utf-8").splitlines(), ""]
    first = [i for i, line in enumerate(lines) if line[:1] == "|" != lines[i - 1][:1]]
    assert [lines[i] for i in first if not re.fullmatch(r"[|: -]+", lines[i + 1])] == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    names = {path.name for path in PAGES if path not in TOP_PAGES} - {"README.md"}
    assert {name for name in names if f"]({name})" not in index} == set()


def test_pages_that_the_code_names_exist() -> None:
    files = [*(ROOT / "emea").rglob("*.py"), *(ROOT / "conf").rglob("*.yaml")]
    named = {
        name
        for path in files
        for name in re.findall(r"\bdocs/[\w/]+\.md", path.read_text(encoding="utf-8"))
    }
    assert named and all((ROOT / name).is_file() for name in named)


def test_the_metrics_are_documented() -> None:
    page = (ROOT / "docs" / "run_folder.md").read_text(encoding="utf-8")
    recorded = (
        ROOT / "docs" / "examples" / "records" / "worked_example" / "metrics.json"
    )
    keys = json.loads(recorded.read_text(encoding="utf-8"))
    assert [key for key in keys if f"`{key}`" not in page] == []
