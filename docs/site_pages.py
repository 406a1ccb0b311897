"""A hook of MkDocs: the site has the pages of the repository in their own folders.

Links between pages are relative and therefore the same in the repository and on the site.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
TOP = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "CITATION.cff",
)
FOLDERS = ("docs", "experiments")
SUFFIXES = {".md", ".svg", ".png", ".csv", ".jsonl", ".html", ".ipynb"}
LANDING = "landing.md"
"""The front page, which only the site has."""

PLACES = {"README.md": "introduction/index.html", f"docs/{LANDING}": "index.html"}
"""Pages that are in other places than their names say."""

ANY_FILE = "docs/examples"
"""The folder whose files are all on the site."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the navigation from the index, and build anchors as GitHub does."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    config.nav = [{"Home": f"docs/{LANDING}"}, {"Introduction": "README.md"}]
    config.nav.append({"Index": "docs/README.md"})
    for title, rows in re.findall(
        r"^\*\*(.+)\*\*\n\n((?:\|.*\n)+)", index, re.MULTILINE
    ):
        pages = re.findall(r"^\| \[(.+?)\]\((\w+\.md)\)", rows, re.MULTILINE)
        config.nav.append(
            {title: [{name: f"docs/{page}"} for name, page in pages if page != LANDING]}
        )
    config.mdx_configs["toc"]["slugify"] = anchor
    return config


def anchor(title: str, separator: str) -> str:
    """Return the anchor of a heading; nothing is merged, so that several hyphens stay."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", separator)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the pages and files of the repository, by their paths in it."""
    paths = [ROOT / name for name in TOP]
    for folder in FOLDERS:
        paths += [path for path in sorted((ROOT / folder).rglob("*")) if is_shown(path)]
    others = [
        file for file in files if file.src_dir != config.docs_dir
    ]  # those of the theme
    own = [
        File.generated(
            config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)
        )
        for path in paths
    ]
    for file in own:
        if file.src_uri in PLACES:
            file.dest_uri = PLACES[file.src_uri]
    return Files([*others, *own])


def is_shown(path: Path) -> bool:
    """Return whether a file belongs to the site."""
    is_example = (
        path.is_relative_to(ROOT / ANY_FILE) and "__pycache__" not in path.parts
    )
    return path.is_file() and (path.suffix in SUFFIXES or is_example)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave out the lines that start tables written by programs; Markdown would join them."""
    return re.sub(r"^(<!-- .*-->)$", r"\n\1\n", markdown, flags=re.MULTILINE)
