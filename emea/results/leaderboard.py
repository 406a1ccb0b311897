"""Rows of the leaderboard: what they contain, how they are made, and how they are verified."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from emea.answer.merging import Match, read_matches
from emea.config.composition import composed, option_names
from emea.config.instantiate import check_trusted
from emea.config.run_config import RunConfig
from emea.config.unknown_settings import without_unknown
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.errors import DataError
from emea.evaluation.calibration import expected_calibration_error, reliability_bins
from emea.record.checked_files import read_file, sha256
from emea.record.pair_file import load_pair, pair_of_run
from emea.record.run_folder import (
    ALIGNMENT_FILE,
    CONFIG_FILE,
    read_config,
    read_metrics,
    recorded_checksum,
)
from emea.record.run_record import check_finished, read_header
from emea.run.building import draw_split

Row = dict[str, Any]

SCHEMA_FILE = Path(__file__).with_name("leaderboard_schema.json")
TOLERANCE = 1e-6
"""Largest difference of a recorded and a recomputed number: rows have six digits."""

PRECISIONS = ("0.9", "0.95")
SPLITS = ("random", "official", "none")
SAME_DATA = ("root", "download", "archive", "fold", "keep_literals", "iri_names")
"""Settings of data that change neither the entities nor the links, or that a row names."""


@dataclass(frozen=True)
class Gold:
    """What an alignment is judged by.

    Args:
        links: The test links as names.
        without: Names of source entities without a counterpart.
        given: Links that the run was given; ``None`` if they are not known.
        num_missed: The number of further test links, whose entities are not in the graphs.
    """

    links: frozenset[tuple[str, str]]
    without: frozenset[str] = frozenset()
    given: frozenset[tuple[str, str]] | None = None
    num_missed: int = 0

    def facts(self) -> dict[str, Any]:
        """Return the digest and the counts that a row contains."""
        lines = sorted(f"{source}\t{target}" for source, target in self.links)
        lines += [*sorted(self.without), str(self.num_missed)]
        return {
            "sha256": sha256("\n".join(lines).encode()),
            "num_labels": None if self.given is None else len(self.given),
            "num_links": len(self.links) + self.num_missed,
            "num_without_counterpart": len(self.without),
        }


def scores(matches: Iterable[Match], gold: Gold) -> dict[str, Any]:
    """Return the numbers of a row.

    All source entities of test links and those without a counterpart are judged. A match of
    another entity, and a given link, counts neither as right nor as wrong.
    """
    judged = {source for source, _ in gold.links} | gold.without
    given = gold.given or frozenset()
    answers = sorted(
        (
            (prob, (source, target) in gold.links)
            for source, target, prob in matches
            if source in judged and (source, target) not in given
        ),
        reverse=True,
    )
    num_links = len(gold.links) + gold.num_missed
    right = sum(is_right for _, is_right in answers)
    precision = right / len(answers) if answers else 0.0
    recall = right / num_links
    total = precision + recall
    found = {
        "num_answers": len(answers),
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / total if total else 0.0,
        **{
            f"recall_at_{least}": _recall_at(answers, float(least), num_links)
            for least in PRECISIONS
        },
        "calibration_error": _calibration_error(answers),
    }
    return {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in found.items()
    }


def _recall_at(
    answers: Sequence[tuple[float, bool]], least: float, num_links: int
) -> float:
    """Return the largest recall over all thresholds at which the precision is high enough."""
    best = right = 0
    for number, (prob, is_right) in enumerate(answers, 1):
        right += is_right
        # equal probabilities are accepted together
        is_last = number == len(answers) or answers[number][0] < prob
        if is_last and right >= least * number:
            best = right
    return best / num_links


def _calibration_error(answers: Sequence[tuple[float, bool]]) -> float | None:
    if not answers:
        return None
    probs, right = (
        np.array(column, dtype=np.float64) for column in zip(*answers, strict=True)
    )
    return expected_calibration_error(reliability_bins(probs, right > 0))


def gold_of(pair: GraphPair, split: Split) -> Gold:
    """Return the test links of a split, and the links that it gives to a run."""
    known = split.supervision
    given = _named(pair, known.train) | _named(pair, known.validation)
    without = frozenset(map(pair.source.entity_name, split.unmatched.tolist()))
    return Gold(_named(pair, split.test), without, given, split.num_missed)


def _named(pair: GraphPair, links: Any) -> frozenset[tuple[str, str]]:
    return frozenset(
        (pair.source.entity_name(source), pair.target.entity_name(target))
        for source, target in links.tolist()
    )


def gold_of_row(row: Row) -> Gold:
    """Return the gold of a row, from the data set and the split that it names.

    Raises:
        DataError: The row names no data set of the package.
    """
    data = row["data"]
    if data["option"] not in option_names("data") or data["split"] is None:
        raise DataError(
            f"{data['name']} is not a data set that emea can find. Give its test links with --gold."
        )
    settings = [f"data={data['option']}", f"split={data['split']}", "tracking=none"]
    if data.get("ratio") is not None:
        settings.append(f"ratio.value={data['ratio']}")
    if data.get("seed") is not None:
        settings.append(f"split_seed={data['seed']}")
    if data.get("fold") is not None:
        settings.append(f"data.fold={data['fold']}")
    config = composed([*settings, *_reading(row)])
    pair = load_pair(config)
    return gold_of(pair, draw_split(RunConfig.of(config), pair))


def _reading(row: Row) -> list[str]:
    """Return the setting that reads literals; a pair without links to learn from needs them."""
    return [] if row["evidence"] == "structure" else ["literals=similar"]


def row_of_run(folder: Path, method: str, by: str) -> Row:
    """Return the row of a finished run.

    Args:
        folder: The folder of the run.
        method: The name of the method in the leaderboard.
        by: Who made the run.

    Raises:
        DataError: The run is unfinished, has no test links, or its alignment was changed.
    """
    check_finished(folder)
    config, metrics, header = (
        read_config(folder),
        read_metrics(folder),
        read_header(folder),
    )
    check_trusted(config)
    config = without_unknown(config, folder / CONFIG_FILE)
    pair = pair_of_run(folder, config)
    gold = gold_of(pair, draw_split(RunConfig.of(config), pair))
    if not gold.links:
        raise DataError(f"{folder} has no test links, so its answer cannot be judged.")
    path = folder / ALIGNMENT_FILE
    matches = read_matches(path, checksum=recorded_checksum(path))
    has_literals = metrics.get("literals") is not None
    tags = header.tags
    return {
        "version": 1,
        "method": method,
        "by": by,
        "date": f"{datetime.fromtimestamp(header.start_time / 1000, UTC):%Y-%m-%d}",
        "protocol": "strict" if metrics["protocol"] == "strict" else "uses test links",
        "evidence": "structure and literals" if has_literals else "structure",
        "commit": str(tags.get("commit", "unknown")),
        "machine": str(
            tags.get("gpu") or f"{tags.get('cpu_count')} {tags.get('machine')} cores"
        ),
        "seconds": round(float(metrics["seconds"]["total"]), 1),
        "alignment_sha256": sha256(read_file(path)),
        "data": _place(config, metrics),
        "gold": gold.facts(),
        "numbers": scores(matches, gold),
    }


def _place(config: Any, metrics: Mapping[str, Any]) -> Row:
    """Return the data set of a run and its split."""
    split = metrics["split"]
    option = _option(config)
    is_official = split == "official"
    return {
        "name": metrics["data"],
        "option": option,
        "split": split if split in SPLITS and option else None,
        "ratio": metrics.get("ratio"),
        "seed": None if split == "none" else config.split_seed,
        "fold": config.data.get("fold") if is_official else None,
    }


def _option(config: Any) -> str | None:
    """Return the option of the data of a run; ``None`` if the run changed a setting of it."""
    wanted = _compared(config)
    for name in option_names("data"):
        if _compared(composed([f"data={name}"])) == wanted:
            return name
    return None


def _compared(config: Any) -> Row:
    """Return the settings of the data that change entities or links."""
    return {
        str(key): config.data.get(key) for key in config.data if key not in SAME_DATA
    }


def read_row(path: Path) -> Row:
    """Return the row of a file.

    Raises:
        DataError: The file cannot be read, or does not fit the schema.
    """
    try:
        row = json.loads(read_file(path).decode())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a row of the leaderboard: {error}") from error
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    problems = list(schema_problems(row, schema, "row"))
    if problems:
        raise DataError(f"{path} does not fit the schema: {problems[0]}.")
    assert isinstance(row, dict)
    return row


KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "null": (type(None),),
}
"""Types of JSON Schema that the schema of rows uses."""


def schema_problems(value: Any, schema: Mapping[str, Any], place: str) -> Iterable[str]:
    """Return how a value differs from a schema, as far as the schema of rows needs it."""
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is {value!r} instead of one of {schema['enum']}"
        return
    kinds = schema.get("type", list(KINDS))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    allowed = tuple(kind for name in kinds for kind in KINDS[name])
    if not isinstance(value, allowed) or isinstance(value, bool):
        yield f"{place} is not of type {' or '.join(kinds)}"
        return
    if isinstance(value, str):
        yield from _text_problems(value, schema, place)
    elif isinstance(value, int | float):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{place} is out of range: {value}"
    elif isinstance(value, dict):
        yield from _object_problems(value, schema, place)


def _text_problems(value: str, schema: Mapping[str, Any], place: str) -> Iterable[str]:
    if (
        not schema.get("minLength", 0)
        <= len(value)
        <= schema.get("maxLength", len(value))
    ):
        yield f"{place} has {len(value)} characters"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{place} does not match {schema['pattern']}"


def _object_problems(
    value: Mapping[str, Any], schema: Mapping[str, Any], place: str
) -> Iterable[str]:
    for name in schema["required"]:
        if name not in value:
            yield f"{place} has no {name}"
    for name, inner in value.items():
        if name not in schema["properties"]:
            yield f"{place} has an unknown key {name}"
        else:
            yield from schema_problems(
                inner, schema["properties"][name], f"{place}.{name}"
            )


def differences(row: Row, alignment: Path, gold: Gold) -> list[str]:
    """Return in which numbers a row differs from its alignment and the gold; empty if in none."""
    found = []
    digest = sha256(read_file(alignment))
    if digest != row["alignment_sha256"]:
        found.append(
            f"alignment_sha256: {row['alignment_sha256']} in the row, {digest} found"
        )
    recomputed = {
        "gold": gold.facts(),
        "numbers": scores(read_matches(alignment, is_own=False), gold),
    }
    for section, values in recomputed.items():
        for name, value in values.items():
            recorded = row[section][name]
            if gold.given is None and name == "num_labels":
                continue
            if not _equal(recorded, value):
                found.append(f"{section}.{name}: {recorded} in the row, {value} found")
    return found


def _equal(recorded: Any, value: Any) -> bool:
    if isinstance(recorded, float | int) and isinstance(value, float | int):
        return abs(recorded - value) <= TOLERANCE
    return bool(recorded == value)
