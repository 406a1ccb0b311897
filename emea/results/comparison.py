"""What differs between runs (settings, metrics and test links), as text and as an HTML page."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emea.data.arrays import FloatArray
from emea.data.protocol import seen_links
from emea.errors import DataError, UserError
from emea.evaluation.metric_table import RANKING_METRICS
from emea.evaluation.metrics import link_scores, paired_p
from emea.results.page import template_environment
from emea.results.recorded_run import RecordedRun, number_at

NO_EFFECT = (
    "tracking.",
    "skip_recorded",
    "study",
    "data.root",
    "trust",
    "initial_from",
)
"""Beginnings of settings that do not change results."""

PROVENANCE = (
    "commit",
    "dirty",
    "torch",
    "machine",
    "gpu",
    "cpu_count",
    "data_checksum",
)
"""Tags that are shown if they differ."""

METRICS = (
    *(
        f"{section}.{metric.name}"
        for section in ("initial", "final", "final.all_targets", "one_to_one")
        for metric in RANKING_METRICS
        if section in metric.compared
    ),
    *(f"answer.{name}" for name in ("precision", "recall", "f1")),
    "calibration.ece",
    "seconds.total",
    "peak_memory_mb",
)
"""Paths into ``metrics.json`` that are compared."""

TITLES = {metric.name: metric.title for metric in RANKING_METRICS if metric.is_tested}
"""Metrics whose difference is tested link by link."""

LOWER_IS_BETTER = (
    *(f".{metric.name}" for metric in RANKING_METRICS if not metric.higher_is_better),
    ".ece",
    ".total",
    "memory_mb",
)
"""Ends of the paths of metrics whose lowest value is the best."""

LEAST_CERTAIN = 0.05
"""A difference is significant if its p-value is smaller than this."""

CAUTION = (
    "The t-test treats test links as independent. Neighbouring entities are not, so do not rely on "
    "a p-value close to its threshold."
)


class Row(NamedTuple):
    """One value per run; ``None`` if a run does not have it."""

    name: str
    values: tuple[Any, ...]


class Example(NamedTuple):
    """A test link that one run ranks first and the other does not, with its rank in both runs."""

    source: str
    target: str
    before: float
    after: float


@dataclass(frozen=True)
class PairedTest:
    """A run against the first one, link by link.

    Args:
        label: The run that is compared with the first.
        problem: Why the runs cannot be paired; empty if they can.
        num_links: The number of test links, including those whose entities are not in the graphs.
        changes: By how much each metric is higher than in the first run, and the p-value of a
            paired two-tailed t-test.
        counts: The numbers of links that only this run (won), only the first run (lost), both and
            neither of them rank first.
        won: Examples of links that only this run ranks first, those with the largest change first.
        lost: Examples of links that only the first run ranks first.
        no_examples: Why examples have no names; empty if they have.
    """

    label: str
    problem: str = ""
    num_links: int = 0
    changes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    won: tuple[Example, ...] = ()
    lost: tuple[Example, ...] = ()
    no_examples: str = ""


@dataclass(frozen=True)
class Comparison:
    """Everything that a comparison shows.

    Args:
        labels: The names of the runs; the others are compared with the first.
        settings: Settings that differ.
        provenance: Code, machine and data, if they differ.
        metrics: Metrics that at least one run has.
        tests: One per run after the first.
        protocols: The protocol of each run, and whether it used test links.
    """

    labels: tuple[str, ...]
    settings: tuple[Row, ...]
    provenance: tuple[Row, ...]
    metrics: tuple[Row, ...]
    tests: tuple[PairedTest, ...]
    protocols: tuple[str, ...]


def compare(runs: Sequence[RecordedRun], num_examples: int = 0) -> Comparison:
    """Compare runs with the first of them.

    Args:
        runs: The runs.
        num_examples: Number of links won, and of links lost, to name; with 0 no data is read.

    Raises:
        DataError: If there are fewer than two runs.
    """
    if len(runs) < 2:
        raise DataError("A comparison needs at least two runs.")
    settings = [_effective(run.header["params"]) for run in runs]
    labels = tuple(run.name for run in runs)
    if len(set(labels)) < len(labels):
        labels = tuple(
            f"{label} ({number})" for number, label in enumerate(labels, start=1)
        )
    protocols = [str(run.metrics.get("protocol", "unknown")) for run in runs]
    metrics = [
        Row(path, tuple(number_at(one.metrics, path) for one in runs))
        for path in METRICS
    ]
    return Comparison(
        labels=labels,
        settings=_differing(settings, sorted({key for one in settings for key in one})),
        provenance=_differing([_short(run.header["tags"]) for run in runs], PROVENANCE),
        metrics=tuple(row for row in metrics if set(row.values) != {None}),
        tests=tuple(paired_test(runs[0], run, num_examples) for run in runs[1:]),
        protocols=tuple(f"{name} ({seen_links(name)})" for name in protocols),
    )


def _effective(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that may change results."""
    kept = (key for key in settings if not key.startswith(NO_EFFECT))
    return {key: settings[key] for key in kept if not key.endswith("_partial_")}


def _short(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags, with the beginnings of the commit and the checksum."""
    shortened = ("commit", "data_checksum")
    return {name: tag[:10] if name in shortened else tag for name, tag in tags.items()}


def _differing(
    values: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> tuple[Row, ...]:
    rows = [Row(name, tuple(one.get(name) for one in values)) for name in names]
    return tuple(
        row for row in rows if any(value != row.values[0] for value in row.values)
    )


def paired_test(
    first: RecordedRun, other: RecordedRun, num_examples: int = 0
) -> PairedTest:
    """Compare two runs link by link, if they ranked the same test links in the same order."""
    ranks = first.ranks(), other.ranks()
    problem = _pairing_problem((first, other), ranks)
    if problem:
        return PairedTest(other.name, problem)
    before, after = (
        _all_ranks(run, one) for run, one in zip((first, other), ranks, strict=True)
    )
    changes = {}
    for name in TITLES:
        old = link_scores(before, name)
        new = link_scores(after, name)
        changes[name] = float((new - old).mean()), paired_p(new, old)
    was_right = before <= 1
    is_right = after <= 1
    counts = {
        "won": int((is_right & ~was_right).sum()),
        "lost": int((was_right & ~is_right).sum()),
        "both": int((was_right & is_right).sum()),
        "neither": int((~was_right & ~is_right).sum()),
    }
    test = PairedTest(other.name, "", len(before), changes, counts)
    if num_examples <= 0:
        return test
    try:
        names = first.read_names()
    except UserError as error:
        return replace(test, no_examples=str(error))
    won = _largest_changes(before, after, is_right & ~was_right)[:num_examples]
    lost = _largest_changes(before, after, was_right & ~is_right)[:num_examples]
    return replace(
        test,
        won=tuple(Example(*names[link], before[link], after[link]) for link in won),
        lost=tuple(Example(*names[link], before[link], after[link]) for link in lost),
    )


def _largest_changes(
    before: FloatArray, after: FloatArray, chosen: NDArray[np.bool_]
) -> list[int]:
    """Return the chosen links, those that the worse run ranks lowest first; ties by position."""
    places = np.flatnonzero(chosen)
    worse = np.maximum(before[places], after[places])
    order = np.argsort(-worse, kind="stable")
    return [int(place) for place in places[order]]


def _all_ranks(run: RecordedRun, ranks: FloatArray | None) -> FloatArray:
    """Return the ranks of all test links; those that no method can find are infinite and last."""
    assert ranks is not None, "only runs with ranks are paired"
    num_missed = number_at(run.metrics, "num_links.missed") or 0
    share = len(ranks) / (number_at(run.metrics, "num_links.test") or len(ranks))
    return np.append(ranks, np.full(round(share * num_missed), np.inf))


def _pairing_problem(
    runs: tuple[RecordedRun, RecordedRun],
    ranks: tuple[FloatArray | None, FloatArray | None],
) -> str:
    """Return why the links of two runs cannot be compared; empty if they can."""
    links = {run.tested_links() for run in runs}
    sizes = {0 if found is None else len(found) for found in ranks}
    if len(links) == len(sizes) == 1 and None not in links and 0 not in sizes:
        return ""
    return "they have no ranks of the same test links (other data, ratio or split)"


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
        parts.append(
            f"{title}\n{_aligned([head, *labels], table)}" if rows else f"{title}: none"
        )
    parts += [_test_text(test) for test in comparison.tests]
    return "\n\n".join(parts)


def verdicts(comparison: Comparison) -> list[str]:
    """Say for each run after the first whether it ranks the test links better."""
    first, *others = comparison.labels
    return [
        _verdict(first, label, test)
        for label, test in zip(others, comparison.tests, strict=True)
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
        "  links won {won}, lost {lost}, both right {both}, neither {neither}".format(
            **test.counts
        )
    )
    for kind, examples in (("won", test.won), ("lost", test.lost)):
        lines += [f"  {kind}: {example_text(one)}" for one in examples]
    if test.no_examples:
        lines.append(f"  no links are named: {test.no_examples}")
    return "\n".join([*lines, f"  {CAUTION}"])


def example_text(example: Example) -> str:
    """Return a link with its ranks in both runs."""
    ranks = f"rank {example.before:,.15g} -> {example.after:,.15g}"
    return f"{example.source} = {example.target} ({ranks})"


def as_csv(comparison: Comparison) -> str:
    """Return the comparison as CSV with the columns section, name, run and value."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("section", "name", "run", "value"))
    sections = {
        "protocol": (Row("protocol", comparison.protocols),),
        "setting": comparison.settings,
        "provenance": comparison.provenance,
        "metric": comparison.metrics,
    }
    for section, rows in sections.items():
        for row in rows:
            for label, value in zip(comparison.labels, row.values, strict=True):
                writer.writerow((section, row.name, label, value))
    for label, test in zip(comparison.labels[1:], comparison.tests, strict=True):
        for name, value in _test_values(test):
            writer.writerow(("test", name, label, value))
    return buffer.getvalue()


def _test_values(test: PairedTest) -> Iterator[tuple[str, str | float]]:
    """Yield the numbers of a test by name, and its examples."""
    if test.problem:
        yield "problem", test.problem
        return
    yield "links", test.num_links
    for metric, (change, p) in test.changes.items():
        yield f"{metric} change", change
        yield f"{metric} p", p
    yield from test.counts.items()
    yield from (("won link", example_text(one)) for one in test.won)
    yield from (("lost link", example_text(one)) for one in test.lost)


def as_html(comparison: Comparison) -> str:
    """Return the comparison as one HTML page without any other file."""
    environment = template_environment("emea.results")
    environment.filters |= {
        "value": shown_value,
        "example": example_text,
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
    best = (min if row.name.endswith(LOWER_IS_BETTER) else max)(shown.values())
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
