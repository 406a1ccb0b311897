"""Writes explanations as one self-contained HTML page."""

from collections.abc import Sequence
from html import escape
from importlib import resources

from emea.explain import wording
from emea.explain.drawing import drawing
from emea.explain.explanation import Contribution, Entity, Explanation, Unmatched
from emea.explain.text import run_card
from emea.reporting.page import html_document, page_style
from emea.run.finished_run import FinishedRun

MOST_ROWS = 30
"""Maximum number of listed pieces of evidence and neighbours per side; hubs have hundreds."""

TITLE = "Why entities match"
RIVAL_TITLES = {
    "runner-up": "runner-up",
    "ranked higher": "candidate ranked higher",
    "preferred": "preferred candidate",
}
CAPTION = (
    "Lines connect neighbours that are believed to match. Their width and number show the share of "
    "the evidence. Bold frames mark training links, dashed frames mark neighbours that do not "
    "support the pair. Arrows show the direction of a relation."
)


def explanation_page(run: FinishedRun, explanations: Sequence[Explanation]) -> str:
    """Write all explanations on one page without scripts or external resources."""
    pairs = list(map(wording.heading, explanations))
    sections = "\n".join(
        _section(explanation, f"pair{place}") for place, explanation in enumerate(explanations, 1)
    )
    card = ", ".join(f"{key} {value}" for key, value in run_card(run).items() if value is not None)
    return _document(wording.listed(pairs), card, _navigation(pairs), sections)


def _document(pairs: str, card: str, navigation: str, content: str) -> str:
    own = resources.files("emea.explain").joinpath("explanation.css").read_text(encoding="utf-8")
    body = f"""<header><h1>{TITLE}</h1><p>{escape(card)}</p></header>
{navigation}
<main>
{content}
</main>"""
    return html_document(pairs, body, page_style() + own, kind="explanation")


def _navigation(pairs: Sequence[str]) -> str:
    if len(pairs) == 1:
        return ""
    entries = "".join(
        f'<li><a href="#pair{place}">{escape(pair)}</a></li>' for place, pair in enumerate(pairs, 1)
    )
    return f'<nav aria-label="Pairs"><ul>{entries}</ul></nav>'


def _section(explanation: Explanation, name: str) -> str:
    asked = explanation.asked
    notes = f"{wording.truth(explanation)} {wording.grounds(explanation)}"
    parts = [
        _heading(explanation),
        f"<p>{escape(wording.verdict(explanation))}</p>",
        f'<p class="dim">{escape(notes)}</p>',
        _figure(drawing(explanation.source, asked, name)),
        "<h3>Evidence</h3>",
        _evidence(asked.contributions),
        _silent("source", asked.unmatched),
        _silent("target", asked.target_unmatched),
        f"<h3>Compared with the {RIVAL_TITLES[wording.rival_name(explanation)]}</h3>",
        _comparison(explanation),
        *(f"<p>{escape(line)}</p>" for line in _against(explanation)),
        _rival_figure(explanation, name),
    ]
    return f'<section id="{name}">\n' + "\n".join(filter(None, parts)) + "\n</section>"


def _heading(explanation: Explanation) -> str:
    kind, word = ("good", "matched") if explanation.is_matched else ("bad", "not matched")
    badge = f'<span class="badge {kind}">{word}</span>'
    return f"<h2>{escape(wording.heading(explanation))} {badge}</h2>"


def _figure(picture: str, caption: str = CAPTION) -> str:
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def _rival_figure(explanation: Explanation, name: str) -> str:
    if explanation.rival is None:
        return ""
    picture = drawing(explanation.source, explanation.rival, f"{name}-rival")
    role, target = wording.rival_name(explanation), wording.short(explanation.rival.target)
    summary = f"<summary>Neighbourhoods of the {RIVAL_TITLES[role]}, {escape(target)}</summary>"
    return f"<details>{summary}{_figure(picture)}</details>"


def _comparison(explanation: Explanation) -> str:
    heads = ["<th></th>", f"<th>this pair<br>{_name(explanation.asked.target)}</th>"]
    if explanation.rival is not None:
        role = wording.rival_name(explanation)
        heads.append(f"<th>{role}<br>{_name(explanation.rival.target)}</th>")
    rows = [
        "".join(f"<td>{escape(cell)}</td>" for cell in row[: len(heads)])
        for row in wording.comparison(explanation)
    ]
    note = wording.meanings(explanation)
    return _table("".join(heads), rows) + (f'<p class="dim">{escape(note)}</p>' if note else "")


def _against(explanation: Explanation) -> list[str]:
    sentences = [*wording.lacking(explanation), wording.conflicts(explanation.asked)]
    if explanation.rival is not None:
        sentences.append(wording.conflicts(explanation.rival))
    return sentences


def _evidence(pieces: Sequence[Contribution]) -> str:
    if not pieces:
        return "<p>No neighbour supports the pair.</p>"
    titles = ("share", "neighbours", "match", "r", "r'", "r⊆r'", "r'⊆r", "fun⁻¹(r)", "fun⁻¹(r')")
    numeric = [title not in ("neighbours", "r", "r'") for title in titles]
    heads = [
        f'<th class="number">{title}</th>' if is_number else f"<th>{title}</th>"
        for title, is_number in zip(titles, numeric, strict=True)
    ]
    rest = sum(piece.share for piece in pieces[MOST_ROWS:])
    more = _more(len(pieces), f", {wording.percent(rest)} of the evidence")
    table = _table("".join(heads), list(map(_piece, pieces[:MOST_ROWS])))
    return table + (f'<p class="dim">{more}</p>' if more else "")


def _piece(piece: Contribution) -> str:
    label = '<span class="dim">training link</span>' if piece.is_label else ""
    names = f"{_name(piece.neighbour)} = {_name(piece.counterpart)}"
    values = (
        piece.source_in_target,
        piece.target_in_source,
        piece.source_functionality,
        piece.target_functionality,
    )
    relations = (piece.relation, piece.target_relation)
    return (
        f'<td class="number">{wording.percent(piece.share)}</td><td>{names}{label}</td>'
        f'<td class="number">{wording.number(piece.neighbour_prob)}</td>'
        + "".join(
            f'<td title="{escape(one.name)}">{escape(wording.relation(one))}</td>'
            for one in relations
        )
        + "".join(f'<td class="number">{wording.number(value)}</td>' for value in values)
    )


def _silent(side: str, found: Sequence[Unmatched]) -> str:
    if not found:
        return ""
    lines = [wording.silent(one) for one in found[:MOST_ROWS]]
    lines += filter(None, [_more(len(found))])
    entries = "".join(f"<li>{escape(line)}</li>" for line in lines)
    title = f"Neighbours of the {side} that do not support it: {len(found)}"
    return f"<details><summary>{title}</summary><ul>{entries}</ul></details>"


def _more(num_all: int, remark: str = "") -> str:
    """Return how many rows are not shown, if any."""
    left = num_all - MOST_ROWS
    return f"and {left} more{remark} (see --json)" if left > 0 else ""


def _table(head: str, rows: Sequence[str]) -> str:
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _name(entity: Entity) -> str:
    return f'<span title="{escape(entity.name)}">{escape(wording.short(entity))}</span>'
