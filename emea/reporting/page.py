"""One HTML page that opens from disk: its frame, links and pictures."""

import base64
import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from emea.errors import UserError
from emea.reporting.html_tables import dress_tables, plain_text


def html_document(title: str, body: str, style: str, script: str = "", kind: str = "") -> str:
    """A whole page.

    Names in it come from data: even one that slipped past the escaping could load and run nothing
    but the page's own style and script, which the browser knows by their hashes.

    Args:
        title: of the window.
        body: what the page shows.
        style: its CSS.
        script: its JavaScript; empty: it has none.
        kind: class of the body, for styles of its own.
    """
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'"
    )
    policy += f"; script-src '{_digest(script)}'" if script else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body{f' class="{kind}"' if kind else ""}>
{body}
{f"<script>{script}</script>" + chr(10) if script else ""}</body>
</html>
"""


def page_style() -> str:
    """The style that all pages share."""
    return page_resource("page.css")


def page_resource(name: str) -> str:
    """A file that belongs to the pages."""
    return resources.files("emea.reporting").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


MIME_TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
}


def data_uri(path: Path) -> str:
    """A picture as an address that holds it whole.

    Args:
        path: The picture's file; an SVG of the same name beside it is taken in its place, since
            lines stay sharp in it at any size.

    Raises:
        UserError: If there is no such file or it is no picture.
    """
    drawing = path.with_suffix(".svg")
    path = drawing if drawing.is_file() else path
    mime = MIME_TYPES.get(path.suffix.lower())
    if mime is None:
        raise UserError(f"{path} is no picture that a page can hold: {', '.join(MIME_TYPES)}.")
    if not path.is_file():
        raise UserError(f"A report shows {path}, which is not there.")
    return f"data:{mime};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"


class PageLinks:
    """Addresses of a report, seen from the page.

    Args:
        name: The report's name.
        folder: The folder it lies in.
        place: The folder the page lies in.
        names: The name of the part in each folder.
    """

    def __init__(self, name: str, folder: Path, place: Path, names: Mapping[Path, str]) -> None:
        self._name = name
        self._folder = folder
        self._names = names
        self._prefix = quote(Path(os.path.relpath(folder, place)).as_posix())

    def address(self, href: str) -> str:
        """Where a link leads: to another part of the page, to a file, or abroad."""
        link = urlsplit(href)
        if link.scheme or link.netloc or link.path.startswith("/"):
            return href
        part = self._part_at(link.path) if link.path else self._name
        if part is not None:
            return f"#{part}.{link.fragment}" if link.fragment else f"#{part}"
        path = posixpath.normpath(posixpath.join(self._prefix, link.path))
        return link._replace(path=path).geturl()

    def picture(self, source: str) -> str:
        """A picture's file as an address that holds it."""
        link = urlsplit(source)
        if link.scheme or link.netloc:
            raise UserError(f"{self._name} shows {source}; a page holds files only.")
        return data_uri(self._folder / unquote(link.path))

    def _part_at(self, path: str) -> str | None:
        """The part whose report the path names."""
        file = Path(os.path.abspath(self._folder / unquote(path)))
        return self._names.get(file.parent) if file.suffix == ".md" else None


@dataclass(frozen=True)
class HtmlPart:
    """A report to be shown on a page.

    Args:
        name: What addresses on the page begin with, e.g. `table1`.
        text: The report as Markdown.
        folder: Where the report lies; its relative links count from there.
    """

    name: str
    text: str
    folder: Path


@dataclass
class Section:
    """A report as HTML, and what leads to it.

    Args:
        title: The report's first heading, without marks.
        html: The section's content.
        headings: Address and text of the headings below the title.
    """

    title: str
    html: str = ""
    headings: list[tuple[str, str]] = field(default_factory=list)


def render_part(part: HtmlPart, place: Path, names: Mapping[Path, str]) -> Section:
    """The report as a section.

    Args:
        part: The report.
        place: The folder the page lies in.
        names: The name of the part in each folder, for links from one report to another.
    """
    # without "html", marks in a report are text and nothing of it can run
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(part.text)
    section = _address_headings(tokens, part.name)
    dress_tables(tokens, section.title)
    links = PageLinks(part.name, part.folder, place, names)
    for token in tokens:
        _walk(token, links)
    section.html = parser.renderer.render(tokens, parser.options, {})
    return section


def slug(text: str) -> str:
    """A heading as part of an address, as GitHub writes it."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip())


def _address_headings(tokens: list[Token], name: str) -> Section:
    """Give each heading an address; the page has its own title, so all go one level down."""
    section = Section(title="")
    used: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if token.type == "heading_close":
            token.tag = _lower(token.tag)
        if token.type != "heading_open":
            continue
        text = plain_text(tokens[index + 1])
        address = f"{name}.{slug(text)}"
        used[address] = used.get(address, 0) + 1
        if used[address] > 1:
            address += f"-{used[address] - 1}"
        token.attrSet("id", address)
        if token.tag == "h1" and not section.title:
            section.title = text
        elif token.tag in ("h1", "h2"):
            section.headings.append((address, text))
        token.tag = _lower(token.tag)
    section.title = section.title or name
    return section


def _lower(tag: str) -> str:
    return f"h{min(int(tag[1:]) + 1, 6)}"


def _walk(token: Token, links: PageLinks) -> None:
    """Hand every address below a token to whoever knows where it leads from the page."""
    rules: dict[str, tuple[str, Callable[[str], str]]] = {
        "link_open": ("href", links.address),
        "image": ("src", links.picture),
    }
    if token.type in rules:
        attribute, rewritten = rules[token.type]
        token.attrSet(attribute, rewritten(str(token.attrGet(attribute) or "")))
    for child in token.children or []:
        _walk(child, links)


__all__ = ["HtmlPart", "page"]


def page(title: str, reports: Sequence[HtmlPart], place: Path | None = None) -> str:
    """The reports as one page: pictures inside, no request to anywhere.

    The same reports give the same text, so that a page can be held to its records.

    Args:
        title: The page's heading.
        reports: What it shows, in this order.
        place: The folder the page will lie in; where none is given, the one that holds the
            folder of the first report.

    Raises:
        UserError: If a report shows a picture that is not there.
    """
    if place is None:
        place = reports[0].folder.parent if reports else Path()
    names = {Path(os.path.abspath(part.folder)): part.name for part in reports}
    sections = {part.name: render_part(part, place, names) for part in reports}
    content = "\n".join(
        f'<section id="{escape(name)}">\n{section.html}</section>'
        for name, section in sections.items()
    )
    return _document(title, _navigation(sections), content)


def _navigation(sections: dict[str, Section]) -> str:
    entries = []
    for name, section in sections.items():
        below = "".join(_entry(address, text) for address, text in section.headings)
        entries.append(_entry(name, section.title, f"<ul>{below}</ul>" if below else ""))
    return f"<ul>{''.join(entries)}</ul>"


def _entry(address: str, text: str, below: str = "") -> str:
    return f'<li><a href="#{escape(address)}">{escape(text)}</a>{below}</li>'


def _document(title: str, navigation: str, content: str) -> str:
    body = f"""<header><h1>{escape(title)}</h1></header>
<aside>
<div class="filter" hidden>
<label for="filter">Filter rows</label>
<input id="filter" type="search" placeholder="e.g. zh strict" autocomplete="off">
<output for="filter" aria-live="polite"></output>
</div>
<nav aria-label="Reports">{navigation}</nav>
</aside>
<main>
{content}
</main>"""
    return html_document(title, body, page_style(), page_resource("page.js"))
