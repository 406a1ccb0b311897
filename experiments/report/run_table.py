"""The table of runs: one pandas row per recorded run, and the lookups that reports need."""

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, harmonic_mean, stdev
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from emea.results.recorded_run import RecordedRun
from experiments.origins import machine_of
from experiments.report.methods import (
    BENCHMARK,
    COMMON,
    DEFAULTS,
    Method,
    changed_setting,
    comparable_settings,
)
from experiments.report.records import official
from experiments.report.report import Cell

IDENTITY = (
    *("data", "ratio", "split_seed", "method", "model"),
    *("training", "em", "rule", "protocol"),
)
"""What was run, as ``metrics.json`` names it."""

SEPARATE = ("choice", "suite")
"""Studies whose runs serve no other study: all runs of one table are of one commit."""

SPLIT = ["data", "ratio", "split_seed"]
"""Columns that identify a split. At most one run per split represents a method."""


def run_table(records: Iterable[RecordedRun]) -> pd.DataFrame:
    """Return the table of runs.

    The column ``values`` holds every number of a run's ``metrics.json`` by its path, for instance
    ``final.all_targets.hit@1`` or ``history.3.neural.hit@1``. ``settings`` and ``tags`` hold the
    run's parameters and tags, and ``record`` gives access to the run's other files.
    """
    return pd.DataFrame([_row(record) for record in records])


def _row(record: RecordedRun) -> dict[str, Any]:
    metrics, header = record.metrics, record.header
    return {
        **{key: metrics.get(key) for key in IDENTITY},
        **_place(record),
        "run_id": record.run_id,
        "name": record.name,
        "study": record.study,
        "started": record.started,
        "machine": machine_of(header["tags"]),
        "iterations": len(metrics.get("history") or []) - 1,
        "change": changed_setting(record),
        "settings": comparable_settings(header["params"]),
        "tags": header["tags"],
        "values": dict(_flat(metrics)) | _derived(record),
        "record": record,
    }


def _place(record: RecordedRun) -> dict[str, Any]:
    """Return the pair, the ratio and the seed of the split of a run.

    The seed of an official split is its fold, its ratio is the share of training links, and its
    pair is named as such, because drawn splits of the same pair have other links. An official
    split without folds has seed 0, and its ratio is the share of all labels, since its validation
    links are drawn from them. If all links are test links, the ratio is 0. Runs of a benchmark
    state the ratio of their first run.
    """
    params, metrics = record.header["params"], record.metrics
    drawn = {key: metrics.get(key) for key in SPLIT}
    if (ratio := params.get("data.benchmark_ratio")) is not None:
        return {**drawn, "ratio": ratio}
    if metrics.get("split") == "none":
        return {**drawn, "ratio": 0.0}
    fold, counts = params.get("data.fold"), metrics.get("num_links")
    if metrics.get("split") != "official" or not counts:
        return drawn
    known = (
        counts["train"] if fold is not None else counts["train"] + counts["validation"]
    )
    ratio = round(known / sum(counts.values()), 4)
    seed = 0 if fold is None else int(fold)
    return {"data": official(metrics["data"]), "ratio": ratio, "split_seed": seed}


def _derived(record: RecordedRun) -> dict[str, Any]:
    """Return quantities that reports need and ``metrics.json`` does not have."""
    history = [one for one in record.metrics.get("history") or [] if "seconds" in one]
    seconds = [one["seconds"] for one in history]
    trained = record.header["params"].get("initial_from") is None
    derived: dict[str, Any] = {
        "seconds.first": [one["neural"] for one in seconds[:1] if trained],
        "seconds.neural": [one["neural"] for one in seconds[1:]],
        "seconds.joint": [one["search"] + one["joint"] for one in seconds[1:]],
    }
    tested = (record.metrics.get("export") or {}).get("test") or {}
    if tested.get("precision") and tested.get("recall"):
        derived["export.test.f1"] = harmonic_mean(
            [tested["precision"], tested["recall"]]
        )
    for part in ("neural", "joint"):
        entries = [one for one in record.metrics.get("history") or [] if one.get(part)]
        if entries:
            derived[f"history.last.{part}.hit@1"] = entries[-1][part]["hit@1"]
    return derived


def _flat(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            value = {str(index): one for index, one in enumerate(value)}
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


class SplitRun(NamedTuple):
    """The run that represents a method on one split.

    Args:
        row: Its row of the table of runs.
        stage: Which of its rankings counts, ``initial`` or ``final``.
    """

    row: Mapping[str, Any]
    stage: str

    @property
    def split_seed(self) -> int:
        """The seed of the split."""
        seed: int = self.row["split_seed"]
        return seed


class Runs:
    """The table of runs as one study sees it.

    If several runs of a split qualify for a method, the study's own run is used, because a
    study's runs share their code and their first trainings. Otherwise the latest run is used. The
    studies in ``SEPARATE`` repeat the usual settings for their own comparison; others leave them
    out.

    Args:
        table: The table of runs, see :func:`run_table`.
        study: The study whose runs are preferred.
    """

    def __init__(self, table: pd.DataFrame, study: str = "") -> None:
        if not table.empty:
            table = table.assign(is_own=table["study"] == study)
            table = table[table["is_own"] | ~table["study"].isin(SEPARATE)]
            table = table.sort_values(["is_own", "started"], kind="stable")
        self.table = table
        # arrays of Python objects are much faster to search than a data frame
        self._columns = {name: table[name].to_numpy(dtype=object) for name in table}
        rows = zip(*self._columns.values(), strict=True)
        self._rows = [dict(zip(self._columns, row, strict=True)) for row in rows]
        self._found: dict[
            tuple[Method, str], dict[tuple[str, float], list[SplitRun]]
        ] = {}

    def of(
        self, method: Method, protocol: str, data: str, ratio: float | None
    ) -> list[SplitRun]:
        """Return the runs that represent a method, one per split, ordered by split seed."""
        key = (method, protocol)
        if key not in self._found:
            groups: dict[tuple[str, float], list[SplitRun]] = {}
            for run in self._select(method, protocol):
                groups.setdefault((run.row["data"], run.row["ratio"]), []).append(run)
            self._found[key] = groups
        return [] if ratio is None else self._found[key].get((data, ratio), [])

    def shared_splits(
        self, places: Iterable[tuple[Method, str, str, float]]
    ) -> set[int]:
        """Return the splits that all places with runs share.

        Args:
            places: Arguments of :meth:`of`.
        """
        found = [self.of(*place) for place in places]
        seeds = [{run.split_seed for run in runs} for runs in found if runs] or [set()]
        return set.intersection(*seeds)

    def _select(self, method: Method, protocol: str) -> list[SplitRun]:
        if self.table.empty:
            return []
        # a model without EM never sees test links, so its runs count under every protocol
        columns = self._columns
        visible = (columns["method"] == "neural") | (columns["protocol"] == protocol)
        with_em = {**COMMON, **method.usual}
        chosen: dict[tuple[Any, ...], SplitRun] = {}
        for source in reversed(method.sources):
            here = visible.copy()
            for column, value in source.where.items():
                here &= columns[column] == value if column in columns else False
            for place in np.flatnonzero(here).tolist():
                row = self._rows[place]
                asked = COMMON if row["method"] == "neural" else with_em
                if _has(row["settings"], asked) and (
                    not method.needs or method.needs in row["values"]
                ):
                    chosen[tuple(row[name] for name in SPLIT)] = SplitRun(
                        row, source.stage
                    )
        return sorted(chosen.values(), key=_order)


def _order(run: SplitRun) -> float:
    """Return the split seed; runs on links without one come last."""
    return math.inf if pd.isna(run.split_seed) else run.split_seed


def _has(settings: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Return whether a run has a method's settings; a setting that it lacks has its default.

    Runs of a benchmark do not represent other methods.
    """
    if settings.get(BENCHMARK) != asked.get(BENCHMARK):
        return False
    return all(
        settings.get(key, DEFAULTS.get(key, value)) == value
        for key, value in asked.items()
    )


def on_splits(runs: Iterable[SplitRun], seeds: Container[int]) -> list[SplitRun]:
    """Return the runs whose split is one of the given."""
    return [run for run in runs if run.split_seed in seeds]


def values_at(runs: Iterable[SplitRun], path: str) -> list[float | None]:
    """Return a quantity of each run; ``{stage}`` in the path is the stage that counts.

    ``None`` means that the run does not have it. Lists, such as the seconds of all iterations,
    are concatenated.
    """
    found: list[float | None] = []
    for run in runs:
        value = run.row["values"].get(path.replace("{stage}", run.stage))
        found += value if isinstance(value, list) else [value]
    return found


def cell_of(runs: Sequence[SplitRun], path: str) -> Cell | None:
    """Return mean and standard deviation of a quantity; ``None`` without runs."""
    values = values_at(runs, path)
    if not values:
        return None
    names, run_ids = (tuple(run.row[key] for run in runs) for key in ("name", "run_id"))
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return Cell(None, 0.0, len(values), names, run_ids)
    spread = stdev(numbers) if len(numbers) > 1 else 0.0
    return Cell(fmean(numbers), spread, len(numbers), names, run_ids)
