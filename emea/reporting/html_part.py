"""One Markdown report as a section of an HTML page."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from emea.reporting.html_tables import dress_tables, plain_text
from emea.reporting.page_links import PageLinks


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
