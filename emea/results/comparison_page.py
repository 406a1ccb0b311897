"""Comparisons as text and an HTML page."""

from collections.abc import Sequence
from typing import Any

from emea.results.comparison import Comparison, PairedTest, Row
from emea.results.page import template_environment

TITLES = {"hit@1": "Hit@1", "mrr": "MRR"}
LEAST_CERTAIN = 0.05
"""A difference is significant if its p-value is smaller than this."""

CAUTION = (
    "The t-test treats test links as independent. Neighbouring entities are not, so do not rely on "
    "a p-value close to its threshold."
)


def as_text(comparison: Comparison) -> str:
    """Return the comparison for a terminal."""
    labels = comparison.labels
    parts = [f"Compared with {labels[0]}", "\n".join(verdicts(comparison))]
    parts.append(f"Protocol: {protocols_text(comparison)}")
    sections = (
        ("Settings that differ", "setting", comparison.settings, shown_value),
        ("Provenance that differs", "tag", comparison.provenance, shown_value),
        ("Metrics", "metric", comparison.metrics, shown_number),
    )
    for title, head, rows, show in sections:
        table = [[row.name, *map(show, row.values)] for row in rows]
        parts.append(f"{title}\n{_aligned([head, *labels], table)}" if rows else f"{title}: none")
    parts += [_test_text(test) for test in comparison.tests]
    return "\n\n".join(parts)


def verdicts(comparison: Comparison) -> list[str]:
    """Say for each run after the first whether it ranks the test links better."""
    first, *others = comparison.labels
    return [
        _verdict(first, label, test) for label, test in zip(others, comparison.tests, strict=True)
    ]


def _verdict(first: str, label: str, test: PairedTest) -> str:
    if test.problem:
        return f"{label} is not paired with {first}, because {test.problem}."
    change, p = test.changes["hit@1"]
    on = f"Hit@1 {change:+.4f} on {test.num_links:,} test links ({shown_p(p)})"
    if not p < LEAST_CERTAIN:
        return f"{label} does not differ significantly from {first}: {on}."
    return f"{label} is {'better' if change > 0 else 'worse'} than {first}: {on}."


def protocols_text(comparison: Comparison) -> str:
    """Return the protocol of the runs; each run is named if they differ."""
    found = comparison.protocols
    if len(set(found)) == 1:
        return found[0]
    named = zip(comparison.labels, found, strict=True)
    shown = "; ".join(f"{label} {protocol}" for label, protocol in named)
    return f"{shown}. Do not compare metrics of different protocols."


def _test_text(test: PairedTest) -> str:
    if test.problem:
        return f"{test.label}: not paired with the first run, because {test.problem}"
    lines = [f"{test.label}: {test.num_links} test links, paired"]
    for metric, (change, p) in test.changes.items():
        lines.append(f"  {TITLES[metric]} {change:+.4f}, {shown_p(p)}")
    lines.append(
        "  links won {won}, lost {lost}, both right {both}, neither {neither}".format(**test.counts)
    )
    return "\n".join([*lines, f"  {CAUTION}"])


def as_html(comparison: Comparison) -> str:
    """Return the comparison as one HTML page without any other file."""
    environment = template_environment("emea.results")
    environment.filters |= {
        "value": shown_value,
        "number": shown_number,
        "p": shown_p,
    }
    page = environment.get_template("comparison.html")
    shown = page.render(
        comparison=comparison,
        best=best_columns,
        caution=CAUTION,
        titles=TITLES,
        protocols=protocols_text(comparison),
        verdicts=verdicts(comparison),
    )
    return shown + "\n"


def best_columns(row: Row) -> set[int]:
    """Return the runs with the best value of a metric; empty if all look the same."""
    shown = {
        index: float(shown_number(value))
        for index, value in enumerate(row.values)
        if value is not None
    }
    if len(set(shown.values())) < 2:
        return set()
    is_lower_better = row.name.endswith((".mr", ".ece", ".total", "memory_mb"))
    best = (min if is_lower_better else max)(shown.values())
    return {index for index, value in shown.items() if value == best}


def shown_value(value: Any) -> str:
    """Return a setting as text; a setting that a run does not have is a dash."""
    return "-" if value is None else str(value)


def shown_number(value: float | None) -> str:
    """Return a metric as text."""
    if value is None:
        return "-"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"


def shown_p(p: float) -> str:
    """Return a p-value as text."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(head))]
    return "\n".join(
        "  "
        + "  ".join(
            cell.ljust(width) if not index else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
