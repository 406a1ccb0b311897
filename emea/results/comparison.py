"""What differs between runs: settings, metrics and test links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from emea.data.arrays import FloatArray
from emea.data.protocol import seen_links
from emea.errors import DataError, UserError
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


class Example(NamedTuple):
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
        changes: By how much each metric is higher than in the first run, and the p-value of a
            paired two-tailed t-test.
        counts: The numbers of links that only this run (won), only the first run (lost), both and
            neither of them rank first.
        examples: Examples of links won and lost, those with the largest change first.
        no_examples: Why there are no names of examples; empty if there are.
    """

    label: str
    problem: str = ""
    num_links: int = 0
    changes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, Sequence[Example]] = field(default_factory=dict)
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


def compare(runs: Sequence[RecordedRun], num_examples: int = 5) -> Comparison:
    """Compare runs with the first of them.

    Args:
        runs: At least two runs.
        num_examples: How many links won and lost to name; with 0 the data is not read.

    Raises:
        DataError: If there are fewer than two runs.
    """
    if len(runs) < 2:
        raise DataError("A comparison needs at least two runs.")
    settings = [_effective(run.header["params"]) for run in runs]
    return Comparison(
        labels=_distinct([run.name for run in runs]),
        settings=_differing(settings, sorted({key for one in settings for key in one})),
        provenance=_differing([_short(run.header["tags"]) for run in runs], PROVENANCE),
        metrics=_metrics([run.metrics for run in runs]),
        tests=tuple(paired_test(runs[0], run, num_examples) for run in runs[1:]),
        protocols=tuple(_protocol(run) for run in runs),
    )


def _protocol(run: RecordedRun) -> str:
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


def paired_test(first: RecordedRun, other: RecordedRun, num_examples: int = 5) -> PairedTest:
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
    kinds = {
        "won": is_right & ~was_right,
        "lost": was_right & ~is_right,
        "both": was_right & is_right,
        "neither": ~was_right & ~is_right,
    }
    examples, reason = {}, ""
    if num_examples:
        try:
            names = first.read_names()
            for kind in ("won", "lost"):
                chosen = _largest_changes(before, after, kinds[kind])[:num_examples]
                examples[kind] = [
                    Example(names[0][link], names[1][link], (before[link], after[link]))
                    for link in chosen
                ]
        except (UserError, OSError) as error:
            reason = str(error)
    counts = {kind: int(links.sum()) for kind, links in kinds.items()}
    return PairedTest(other.name, "", len(before), changes, counts, examples, reason)


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


def _largest_changes(before: FloatArray, after: FloatArray, chosen: np.ndarray) -> list[int]:
    """Return the chosen links, those that the worse run ranks lowest first; ties by position."""
    places = np.flatnonzero(chosen)
    worse = np.maximum(before[places], after[places])
    return [int(place) for place in places[np.argsort(-worse, kind="stable")]]
