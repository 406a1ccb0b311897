"""What the paper's text claims, checked on the recorded runs."""

from collections.abc import Sequence

from emea.reporting.claim import EVEN, SLIGHT, STABLE, Case
from emea.reporting.comparison import NOT_RUN, PROTOCOLS
from emea.reporting.figure_claims import OF_FIGURES
from emea.reporting.markdown import markdown_table
from emea.reporting.records import RecordedRun, seen_from
from emea.reporting.table_claims import OF_TABLES

FINDINGS = (*OF_TABLES, *OF_FIGURES)
REMARK = (
    "Claims of the paper's text, checked by code on the recorded runs under each protocol, by "
    "means over the splits that the tables name (where a row says so, on every split): in how many "
    "of the cells that were run it holds, and where it does not, with the difference of the two "
    "(*not known*: cells that lack runs, those of DWY100K among them, or ranks to compare). What "
    f"differs by less than {EVEN} is even, for repeated trainings may, and upholds no claim; Hit@1 "
    f"is *stable*, or about the same, within {STABLE}; a gain is *slight* up to {SLIGHT}. PARIS "
    "and PRASE are implementations of our own and stronger than those the paper ran; they answer "
    "among all targets, and the paper compares them with rankings among test targets, the rows "
    "beside such claims with rankings among all. Of Figures 4, 6 and 7 most runs are `strict`: "
    "what is not upheld there may hold with the paper's released code."
)
UPHELD, NOT_UPHELD = "upheld", "not upheld"
SHOWN = 8
"""Cells that are named; the others are counted."""


def findings(runs: Sequence[RecordedRun]) -> str:
    """The table and how to read it."""
    return f"{REMARK}\n\n{findings_table(runs)}"


def findings_table(runs: Sequence[RecordedRun], only_run: bool = False) -> str:
    """A row per claim, a verdict per protocol, and where it fails or is not known.

    Args:
        runs: recorded runs.
        only_run: leave out claims about which no run says anything; empty if none is left.
    """
    titles = ["claim", "paper", *PROTOCOLS, "not known", "where it does not hold"]
    rows = []
    for finding in FINDINGS:
        own = seen_from(runs, finding.study)
        by_protocol = {protocol: list(finding.cases(own, protocol)) for protocol in PROTOCOLS}
        verdicts = [verdict(cases) for cases in by_protocol.values()]
        untold = sum(holds is None for cases in by_protocol.values() for _, holds in cases)
        rest = [str(untold or ""), _failures(by_protocol)]
        if only_run and set(verdicts) == {NOT_RUN}:
            continue
        rows.append([finding.claim, finding.place, *verdicts, *rest])
    if not rows:
        return ""
    return markdown_table(titles, rows, num_left=2, text=[*PROTOCOLS, titles[-1]])


def verdict(cases: Sequence[Case]) -> str:
    """Upheld where it holds in every case that was run."""
    known = [holds for _, holds in cases if holds is not None]
    if not known:
        return NOT_RUN
    share = f"{sum(known)} of {len(known)}"
    return f"{UPHELD} ({share})" if all(known) else f"{NOT_UPHELD} ({share})"


def _failures(by_protocol: dict[str, list[Case]]) -> str:
    """Where it does not hold, under which protocol."""
    failed = {
        protocol: [name for name, holds in cases if holds is False]
        for protocol, cases in by_protocol.items()
    }
    first, *others = failed.values()
    if first and all(names == first for names in others):
        return f"both: {_some(first)}"
    return "; ".join(f"{protocol}: {_some(names)}" for protocol, names in failed.items() if names)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
