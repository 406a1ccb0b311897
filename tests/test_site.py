"""The site of the documentation: it builds, its links lead somewhere, and no public name lacks."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import emea
from emea import errors, testing
from emea.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
INTERFACES = (
    "JointGraph",
    "Objective",
    "Rule",
    "RuleView",
    "JointStep",
    "HungarianAnswer",
)
DATA = (
    "KnowledgeGraph",
    "GraphPair",
    "Split",
    "Beliefs",
    "AttributeTriples",
    "FinishedRun",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-q",
        "-d",
        str(folder),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def public_names() -> set[str]:
    found = {name for name, value in vars(errors).items() if isinstance(value, type)}
    found -= {"Iterator", "Path"}
    found |= {name for name in vars(testing) if name.startswith("check_")}
    return {*emea.__all__, *found, *INTERFACES, *DATA}


def test_every_public_name_has_a_directive() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: emea\.(?:\w+\.)*(\w+)$", page, re.MULTILINE)
    assert public_names() - set(vars(errors)) <= set(named)


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site: Path) -> None:
    page = (site / "docs" / "api" / "index.html").read_text(encoding="utf-8")
    shown = {
        name.rpartition(".")[2] for name in re.findall(r'id="emea\.([\w.]+)"', page)
    }
    methods = {name for name in vars(emea.Aligner) if not name.startswith("_")}
    assert public_names() | methods <= shown


@pytest.mark.slow
def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    pages = [
        path for path in site.rglob("index.html") if "experiments" not in path.parts
    ]
    links = []
    for page in pages:
        for link in re.findall(
            r'(?:href|src)="([^"#?]+)', page.read_text(encoding="utf-8")
        ):
            if not re.match(r"\w+:|/", link):
                links.append((page, link))
    wrong = [one for one in links if not (one[0].parent / unquote(one[1])).exists()]
    assert len(links) > 1000 and not wrong


@pytest.mark.slow
def test_the_site_can_be_searched(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert all(
        f"emea {command}" in index
        for command in COMMANDS
        if command not in ("data", "ui")
    )
