"""What differs between runs: settings, metrics and test links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from emea.data.arrays import FloatArray
from emea.data.protocol import seen_links
from emea.errors import DataError
from emea.evaluation.metrics import link_scores, paired_p
from emea.results.recorded_run import RecordedRun, number_at

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


class Row(NamedTuple):
    """One value per run; ``None`` if a run does not have it."""

    name: str
    values: tuple[Any, ...]


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
    """

    label: str
    problem: str = ""
    num_links: int = 0
    changes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


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


def compare(runs: Sequence[RecordedRun]) -> Comparison:
    """Compare runs with the first of them.

    Raises:
        DataError: If there are fewer than two runs.
    """
    if len(runs) < 2:
        raise DataError("A comparison needs at least two runs.")
    settings = [_effective(run.header["params"]) for run in runs]
    labels = tuple(run.name for run in runs)
    if len(set(labels)) < len(labels):
        labels = tuple(f"{label} ({number})" for number, label in enumerate(labels, start=1))
    protocols = [str(run.metrics.get("protocol", "unknown")) for run in runs]
    metrics = [Row(path, tuple(number_at(one.metrics, path) for one in runs)) for path in METRICS]
    return Comparison(
        labels=labels,
        settings=_differing(settings, sorted({key for one in settings for key in one})),
        provenance=_differing([_short(run.header["tags"]) for run in runs], PROVENANCE),
        metrics=tuple(row for row in metrics if set(row.values) != {None}),
        tests=tuple(paired_test(runs[0], run) for run in runs[1:]),
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


def _differing(values: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[Row, ...]:
    rows = [Row(name, tuple(one.get(name) for one in values)) for name in names]
    return tuple(row for row in rows if any(value != row.values[0] for value in row.values))


def paired_test(first: RecordedRun, other: RecordedRun) -> PairedTest:
    """Compare two runs link by link, if they ranked the same test links in the same order."""
    ranks = first.ranks(), other.ranks()
    problem = _pairing_problem((first, other), ranks)
    if problem:
        return PairedTest(other.name, problem)
    before, after = (_all_ranks(run, one) for run, one in zip((first, other), ranks, strict=True))
    changes = {}
    for name in ("hit@1", "mrr"):
        old, new = link_scores(before, name), link_scores(after, name)
        changes[name] = float((new - old).mean()), paired_p(new, old)
    was_right, is_right = before <= 1, after <= 1
    counts = {
        "won": int((is_right & ~was_right).sum()),
        "lost": int((was_right & ~is_right).sum()),
        "both": int((was_right & is_right).sum()),
        "neither": int((~was_right & ~is_right).sum()),
    }
    return PairedTest(other.name, "", len(before), changes, counts)


def _all_ranks(run: RecordedRun, ranks: FloatArray | None) -> FloatArray:
    """Return the ranks of all test links; those that no method can find are infinite and last."""
    assert ranks is not None, "only runs with ranks are paired"
    num_missed = number_at(run.metrics, "num_links.missed") or 0
    share = len(ranks) / (number_at(run.metrics, "num_links.test") or len(ranks))
    return np.append(ranks, np.full(round(share * num_missed), np.inf))


def _pairing_problem(
    runs: tuple[RecordedRun, RecordedRun], ranks: tuple[FloatArray | None, FloatArray | None]
) -> str:
    """Return why the links of two runs cannot be compared; empty if they can."""
    links = [run.tested_links() for run in runs]
    for run, found, tested in zip(runs, ranks, links, strict=True):
        if found is None or not len(found):
            return f"{run.name} has no ranks of test links"
        if tested is None:
            return f"the test links of {run.name} are unknown"
    if links[0] != links[1]:
        return "they were tested on different links (other data, ratio or split)"
    if len({len(found) for found in ranks if found is not None}) > 1:
        return "they have ranks for different numbers of test links"
    return ""
