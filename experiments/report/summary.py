"""The summary: what was reproduced, in a few sentences."""

from collections.abc import Sequence

from experiments.report.claims import CLAIM_TITLES, NOT_UPHELD, NOTE, UPHELD
from experiments.report.columns import TOLERANCE, verdict
from experiments.report.report import NOT_RUN, Entry, Part, Report, Table, text_table


def claims_report(rows: Sequence[Sequence[str]]) -> Report:
    """Return the table of verdicts on the paper's claims as a report."""
    key, *titles = CLAIM_TITLES
    table = text_table([key], titles, rows, {*titles} - {"unknown"})
    title = "Claims of the paper, checked"
    return Report("claims", title, NOTE, (Part("", "", table),), is_experiment=False)


def summary_sentences(headline: Table, claims: Sequence[Sequence[str]]) -> list[str]:
    """Return the main results in plain words.

    Args:
        headline: The filled headline table.
        claims: The rows of :func:`experiments.report.claims.claim_rows`.
    """
    columns = {
        title: [cells[place] for _, cells in headline.rows]
        for place, title in enumerate(headline.titles)
    }
    released, strict, rrea, dual = (
        columns[title] for title in ("EMEA released", "EMEA strict", "RREA", "em=dual")
    )
    judged = [verdict(entry.line) for entry in released if entry.line]
    sentences = [
        f"**EMEA is reproduced.** With the paper's protocol (`released`), our Hit@1 is within "
        f"{TOLERANCE} of the paper's number in {judged.count('within')} of {len(judged)} settings "
        f"on DBP15K, above it in {judged.count('above')} and below it in {judged.count('below')}.",
        "**Part of it comes from test links.** The paper's code lets test links influence "
        f"training. Without them (`strict`), Hit@1 of EMEA is {_range(released, strict)} lower, "
        f"but still {_range(strict, rrea)} higher than RREA without EM.",
        f"**`em=dual` is more accurate.** Also without test links, it is {_range(dual, strict)} "
        "above EMEA. Its settings were developed on zh, so its numbers on zh are in-sample.",
    ]
    counts = [
        _counts([row[place] for row in claims], CLAIM_TITLES[place]) for place in (2, 3)
    ]
    sentences.append(
        f"**{len(claims)} claims of the paper's text were checked.** {' '.join(counts)}"
    )
    return sentences


def _range(first: Sequence[Entry], second: Sequence[Entry]) -> str:
    gaps = [
        a.number - b.number
        for a, b in zip(first, second, strict=True)
        if a.number is not None and b.number is not None
    ]
    return f"{min(gaps):.3f} to {max(gaps):.3f}" if gaps else "(not run)"


def _counts(verdicts: Sequence[str], protocol: str) -> str:
    upheld, failed = (
        sum(one.startswith(word) for one in verdicts) for word in (UPHELD, NOT_UPHELD)
    )
    missing = verdicts.count(NOT_RUN)
    rest = f" and {missing} were not run" if missing else ""
    return (
        f"Under `{protocol}`, {upheld} hold in every case that was run, {failed} fail in at least "
        f"one case{rest}."
    )
