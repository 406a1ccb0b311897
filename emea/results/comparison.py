"""What differs between runs: settings, metrics and test links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emea.data.arrays import FloatArray
from emea.data.protocol import seen_links
from emea.errors import DataError
from emea.evaluation.metrics import link_scores, paired_p
from emea.results.compared_run import ComparedRun, names_or_reason
from emea.results.recorded_run import number_at

NO_EFFECT = ("tracking.", "skip_recorded", "study", "data.root", "trust", "initial_from")
"""Beginnings of settings that do not change results."""

PROVENANCE = ("commit", "dirty", "torch", "machine", "gpu", "cpu_count", "data_checksum")
"""Tags that are shown if they differ."""

SCORES = ("hit@1", "hit@5", "hit@10", "mrr", "mr")
METRICS = (
    *(f"initial.{name}" for name in SCORES),
    *(f"final.{name}" for name in SCORES),
    *(f"final.all_targets.{name}" for name in SCORES),
    *(f"answer.{name}" for name in ("precision", "recall", "f1")),
    "calibration.ece",
    "seconds.total",
    "peak_memory_mb",
)
"""Paths into ``metrics.json`` that are compared."""


@dataclass(frozen=True)
class Row:
    """One value per run; ``None`` if a run does not have it."""

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Example:
    """A test link that only one of two runs ranks first.

    Args:
        source: Name of the source entity.
        target: Name of its counterpart.
        ranks: The rank of the counterpart in the first and the other run.
    """

    source: str
    target: str
    ranks: tuple[float, float]


@dataclass(frozen=True)
class PairedTest:
    """A run against the first one, link by link.

    Args:
        label: The run that is compared with the first.
        problem: Why the runs cannot be paired; empty if they can.
        num_links: The number of test links, including those whose entities are not in the graphs.
        differences: By how much each metric is higher than in the first run.
        p_values: Of a paired two-tailed t-test, by metric.
        num_won: Links that only this run ranks first.
        num_lost: Links that only the first run ranks first.
        num_both: Links that both rank first.
        num_neither: Links that neither ranks first.
        won: Examples of links won, those with the largest change first.
        lost: Examples of links lost.
        no_examples: Why there are no names of examples; empty if there are.
    """

    label: str
    problem: str = ""
    num_links: int = 0
    differences: Mapping[str, float] | None = None
    p_values: Mapping[str, float] | None = None
    num_won: int = 0
    num_lost: int = 0
    num_both: int = 0
    num_neither: int = 0
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


def compare(runs: Sequence[ComparedRun], num_examples: int = 5) -> Comparison:
    """Compare runs with the first of them.

    Args:
        runs: At least two runs.
        num_examples: How many links won and lost to name; with 0 the data is not read.

    Raises:
        DataError: If there are fewer than two runs.
    """
    if len(runs) < 2:
        raise DataError("A comparison needs at least two runs.")
    settings = [_effective(run.settings) for run in runs]
    return Comparison(
        labels=_distinct([run.label for run in runs]),
        settings=_differing(settings, sorted({key for one in settings for key in one})),
        provenance=_differing([_short(run.tags) for run in runs], PROVENANCE),
        metrics=_metrics([run.metrics for run in runs]),
        tests=tuple(paired_test(runs[0], run, num_examples) for run in runs[1:]),
        protocols=tuple(_protocol(run) for run in runs),
    )


def _protocol(run: ComparedRun) -> str:
    """Return the protocol of a run, and whether it used test links."""
    name = str(run.metrics.get("protocol", "unknown"))
    return f"{name} ({seen_links(name)})"


def _distinct(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels, with a number where several runs have the same."""
    if len(set(labels)) == len(labels):
        return tuple(labels)
    return tuple(f"{label} ({number})" for number, label in enumerate(labels, start=1))


def _effective(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that may change results."""
    kept = (key for key in settings if not key.startswith(NO_EFFECT))
    return {key: settings[key] for key in kept if not key.endswith("_partial_")}


def _short(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags, with the beginnings of the commit and the checksum."""
    shortened = ("commit", "data_checksum")
    return {name: tag[:10] if name in shortened else tag for name, tag in tags.items()}


def _differing(values: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[Row, ...]:
    rows = [Row(name, tuple(one.get(name) for one in values)) for name in names]
    return tuple(row for row in rows if any(value != row.values[0] for value in row.values))


def _metrics(metrics: Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
    rows = [Row(path, tuple(number_at(one, path) for one in metrics)) for path in METRICS]
    return tuple(row for row in rows if any(value is not None for value in row.values))


def paired_test(first: ComparedRun, other: ComparedRun, num_examples: int = 5) -> PairedTest:
    """Compare two runs link by link, if they ranked the same test links in the same order."""
    problem = _pairing_problem(first, other)
    if problem:
        return PairedTest(other.label, problem)
    before, after = (_all_ranks(run) for run in (first, other))
    scores = {
        name: [link_scores(one, name) for one in (before, after)] for name in ("hit@1", "mrr")
    }
    was_right, is_right = before <= 1, after <= 1
    won, lost = is_right & ~was_right, was_right & ~is_right
    examples: dict[str, Any] = {}
    if num_examples:
        names, reason = names_or_reason(first)
        examples["no_examples"] = reason
        if names is not None:
            for kind, chosen in (("won", won), ("lost", lost)):
                examples[kind] = tuple(
                    Example(names.source[one], names.target[one], (before[one], after[one]))
                    for one in _largest_changes(before, after, chosen)[:num_examples]
                )
    return PairedTest(
        label=other.label,
        num_links=len(before),
        differences={name: float((new - old).mean()) for name, (old, new) in scores.items()},
        p_values={name: paired_p(new, old) for name, (old, new) in scores.items()},
        num_won=int(won.sum()),
        num_lost=int(lost.sum()),
        num_both=int((was_right & is_right).sum()),
        num_neither=int((~was_right & ~is_right).sum()),
        **examples,
    )


def _all_ranks(run: ComparedRun) -> FloatArray:
    """Return the ranks of all test links; those that no method can find are infinite and last."""
    ranks, num_missed = run.ranks["final"], number_at(run.metrics, "num_links.missed") or 0
    share = len(ranks) / (number_at(run.metrics, "num_links.test") or len(ranks))
    return np.append(ranks, np.full(round(share * num_missed), np.inf))


def _pairing_problem(first: ComparedRun, other: ComparedRun) -> str:
    for run in (first, other):
        if "final" not in run.ranks:
            return f"{run.label} has no ranks of test links"
        if run.links_checksum is None:
            return f"the test links of {run.label} are unknown"
    same_data = first.tags.get("data_checksum") == other.tags.get("data_checksum")
    if first.links_checksum != other.links_checksum or not same_data:
        return "they were tested on different links (other data, ratio or split)"
    if len(first.ranks["final"]) != len(other.ranks["final"]):
        return "they have ranks for different numbers of test links"
    return ""


def _largest_changes(before: FloatArray, after: FloatArray, chosen: Any) -> list[int]:
    """Return the chosen links, those that the worse run ranks lowest first; ties by position."""
    places = np.flatnonzero(chosen)
    worse = np.maximum(before[places], after[places])
    return [int(place) for place in places[np.argsort(-worse, kind="stable")]]
