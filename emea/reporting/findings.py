"""What the paper's text claims, checked on the recorded runs."""

from collections.abc import Sequence

from emea.reporting.claim import Case
from emea.reporting.comparison import NOT_RUN, PROTOCOLS
from emea.reporting.figure_claims import OF_FIGURES
from emea.reporting.markdown import markdown_table
from emea.reporting.records import RecordedRun
from emea.reporting.table_claims import OF_TABLES

FINDINGS = (*OF_TABLES, *OF_FIGURES)
UPHELD, NOT_UPHELD = "upheld", "not upheld"
SHOWN = 6
"""Cells that are named; the others are counted."""


def findings_table(runs: Sequence[RecordedRun]) -> str:
    """A row per claim, a verdict per protocol, and where it fails or is not known."""
    titles = ["claim", "paper", *PROTOCOLS, "untold", "where it does not hold"]
    rows = []
    for finding in FINDINGS:
        by_protocol = {protocol: list(finding.cases(runs, protocol)) for protocol in PROTOCOLS}
        verdicts = [verdict(cases) for cases in by_protocol.values()]
        untold = sum(holds is None for cases in by_protocol.values() for _, holds in cases)
        rest = [str(untold or ""), _failures(by_protocol)]
        rows.append([finding.claim, finding.place, *verdicts, *rest])
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
    return "; ".join(f"{protocol}: {_some(names)}" for protocol, names in failed.items() if names)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
