"""How much Hit@1 varies if a run is repeated, next to how much it varies over splits."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev, variance
from typing import Any

import pandas as pd

from emea.record.fingerprint import NO_MATTER
from experiments.origins import short_commit
from experiments.report.report import Part, Report, text_table
from experiments.report.studies.common import percent

KEYS = ("method", "protocol", "pair", "commit")
TITLES = ("ratio", "over repetitions", "runs", "over splits", "splits")

NOTE = (
    "Standard deviations of Hit@1. *Repetitions* are runs from the same commit with the same "
    "settings, seeds, data and split; training on a GPU is not deterministic. Their variances are "
    "averaged over the splits. *over splits* is the standard deviation of the means of these "
    "splits. It contains what is left of the variation of repetitions, and understates that of a "
    "single run where it is the smaller one. The difference between two single runs has 1.4 times "
    "the standard deviation over repetitions."
)

Place = tuple[str, str, str, str, float]
"""A method, its protocol, the data, the commit and the share of labels."""


def repetitions_report(table: pd.DataFrame) -> Report:
    """Return the table of standard deviations over repetitions and over splits."""
    places: dict[Place, list[list[float]]] = defaultdict(list)
    for (place, *_), values in repeated(table.to_dict("records")).items():
        places[place].append(values)
    rows = [
        [*place[:-1], *_numbers(place[-1], places[place])] for place in sorted(places)
    ]
    part = Part("", "", text_table(KEYS, TITLES, rows))
    return Report("repetitions", "Repetitions", NOTE, (part,), is_experiment=False)


def repeated(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], list[float]]:
    """Return Hit@1 of the runs that repeat each other, by place, split, data and settings."""
    found: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in rows:
        settings = row["settings"]
        chosen = {
            key: settings[key] for key in settings if key.split(".")[0] not in NO_MATTER
        }
        place = (_method(row), row["protocol"], row["data"], short_commit(row["tags"]))
        key = (*place, row["ratio"]), row["split_seed"]
        found[*key, row["tags"].get("data_checksum"), str(chosen)].append(
            row["values"]["final.hit@1"]
        )
    return {key: values for key, values in found.items() if len(values) > 1}


def _method(row: Mapping[str, Any]) -> str:
    parts = [row["model"], row["training"], row["em"], row["rule"]]
    parts += ["dense"] if row["settings"].get("em.evidence") == "dense" else []
    return " ".join(str(part) for part in parts if part not in (None, "none", "sup"))


def _numbers(ratio: float, splits: Sequence[Sequence[float]]) -> list[str]:
    within = math.sqrt(fmean(variance(values) for values in splits))
    between = f"{stdev(map(fmean, splits)):.4f}" if len(splits) > 1 else ""
    num_runs = sum(map(len, splits))
    return [percent(ratio), f"{within:.4f}", str(num_runs), between, str(len(splits))]
