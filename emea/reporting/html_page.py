"""Markdown reports as one HTML page that needs nothing but a browser."""

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

from emea.reporting.html_document import html_document, page_resource, page_style
from emea.reporting.html_part import HtmlPart, Section, render_part

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
