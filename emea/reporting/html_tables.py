"""Tables of a report in the form in which a page shows them."""

import re
from html import escape

from markdown_it.token import Token

VERDICTS = {
    "not upheld": "bad",
    "upheld": "good",
    "not run": "none",
    "within": "good",
    "above": "high",
    "below": "bad",
}
"""Words with which a cell begins that judges, and the look of their badge."""

LONG_CELL = 40
"""A cell with more characters holds sentences, which need some width."""

_RUNS = re.compile(r"\d+( \d+)+")
"""Links to runs, which stay on one line: a column of them would make rows tall."""

_VERDICT = re.compile(rf"({'|'.join(VERDICTS)})(?=$|\s*[(,;:])")


def dress_tables(tokens: list[Token], title: str) -> None:
    """Put tables in a frame that scrolls, name what is a number, make verdicts badges.

    Args:
        tokens: A parsed report, changed in place.
        title: What a table is called that has no heading above it.
    """
    label = title
    in_cell = False
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            label = plain_text(tokens[index + 1])
        elif token.type == "table_open":
            frame = f'<div class="table" role="region" tabindex="0" aria-label="{escape(label)}">'
            tokens[index] = Token("html_block", "", 0, content=f"{frame}<table>\n")
        elif token.type == "table_close":
            tokens[index] = Token("html_block", "", 0, content="</table></div>\n")
        elif token.type in ("th_open", "td_open"):
            _dress_cell(token, plain_text(tokens[index + 1]))
            in_cell = token.type == "td_open"
        elif token.type == "inline" and in_cell:
            _mark_verdict(token)
            in_cell = False


def _dress_cell(token: Token, content: str) -> None:
    # the page allows its own style sheet and no other style
    style = token.attrs.pop("style", None)
    if style == "text-align:right":
        token.attrSet("class", "number")
    elif _RUNS.fullmatch(content):
        token.attrSet("class", "runs")
    elif len(content) > LONG_CELL:
        token.attrSet("class", "prose")
    if token.type == "th_open":
        token.attrSet("scope", "col")


def _mark_verdict(token: Token) -> None:
    """Put a badge around the verdict that a cell begins with."""
    children = token.children or []
    # an empty text stands before what is bold
    first = next((index for index, child in enumerate(children) if child.content), 0)
    found = _VERDICT.match(children[first].content) if children else None
    if found is None or children[first].type != "text":
        return
    word = found[1]
    badge = f'<span class="badge {VERDICTS[word]}">{word}</span>'
    rest = children[first].content[len(word) :]
    new = [Token("html_inline", "", 0, content=badge), Token("text", "", 0, content=rest)]
    token.children = [*children[:first], *new, *children[first + 1 :]]


def plain_text(token: Token) -> str:
    """What stands in a line, without marks."""
    return "".join(child.content for child in token.children or [])
