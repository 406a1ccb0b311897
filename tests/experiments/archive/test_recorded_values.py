"""Every value that was recorded can still be read from the tables.

``recorded_values.txt`` has a digest of run folders: of the bytes of their text files and of the
values of their arrays, without the settings, whose names change. Replace the line of a run if you
replace that run.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from experiments.archive.packing import restore_run
from experiments.archive.study import (
    EXPERIMENTS,
    StudyRun,
    check_study,
    find_studies,
    read_study,
)

from ...unsigned_files import unsigned

TEXTS = ("metrics.json", "series.jsonl")


def expected() -> dict[tuple[str, str], str]:
    lines = (Path(__file__).parent / "recorded_values.txt").read_text().splitlines()
    return {(study, run_id): digest for study, run_id, digest in map(str.split, lines)}


def digest_of(folder: Path) -> str:
    parts = {
        name: hashlib.sha256(unsigned(folder / name)).hexdigest() for name in TEXTS
    }
    header = json.loads(unsigned(folder / "run.json"))
    del header["params"]
    parts["run.json"] = hashlib.sha256(json.dumps(header).encode()).hexdigest()
    with np.load(folder / "ranks.npz") as arrays:
        for name in set(arrays.files) - {"links_checksum"}:
            assert arrays[name].dtype == np.float32
            values = arrays[name].astype("<f4").tobytes()
            parts[name] = hashlib.sha256(values).hexdigest()
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def restored_digest(run: StudyRun, folder: Path) -> str:
    restore_run(run, folder)
    return digest_of(folder)


def runs_of(study: str) -> dict[tuple[str, str], StudyRun]:
    return {
        (study, run.header["run_id"]): run for run in read_study(EXPERIMENTS / study)
    }


STUDIES = sorted({study for study, _ in expected()})


def test_nothing_is_missing() -> None:
    found = {key for study in STUDIES for key in runs_of(study)}
    assert len(expected()) >= 700
    assert expected().keys() <= found


@pytest.mark.parametrize("study", STUDIES)
def test_a_run_is_restored_completely(study: str, tmp_path: Path) -> None:
    runs = {key: run for key, run in runs_of(study).items() if key in expected()}
    key = sorted(runs)[len(runs) // 2]
    assert restored_digest(runs[key], tmp_path / "run") == expected()[key]


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_every_run_is_restored_completely(study: str, tmp_path: Path) -> None:
    for key, run in runs_of(study).items():
        if key in expected():
            assert restored_digest(run, tmp_path / run.name) == expected()[key], key


@pytest.mark.parametrize(
    "study", [folder.name for folder in find_studies([EXPERIMENTS])]
)
def test_all_checksums_match_and_all_links_are_known(study: str) -> None:
    assert check_study(EXPERIMENTS / study) >= 5
    assert all(run.links_checksum for run in read_study(EXPERIMENTS / study))


def test_runs_of_one_split_have_the_same_links() -> None:
    """Ranks can be paired exactly where data, ratio and split are the same."""
    by_split: dict[tuple[object, ...], set[object]] = {}
    for folder in find_studies([EXPERIMENTS]):
        for run in read_study(folder):
            scores = run.scores
            split = tuple(
                scores[key] for key in ("data", "ratio", "split", "split_seed")
            )
            split += (
                scores["num_links"]["test"],
                run.entry["config"]["data"].get("fold"),
            )
            by_split.setdefault(split, set()).add(run.links_checksum)
            ranks = run.ranks()
            assert ranks is not None and len(ranks) == scores["num_links"]["test"]
    assert all(len(links) == 1 for links in by_split.values())
    # a pair of which nothing was deleted has the links of the original pair
    own = {
        split: links
        for split, links in by_split.items()
        if not str(split[0]).endswith("_0")
    }
    assert len({min(map(str, links)) for links in own.values()}) == len(own)
