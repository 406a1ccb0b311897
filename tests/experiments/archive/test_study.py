"""Recorded runs are read back completely, and damage is noticed."""

import random
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emea.errors import DataError
from emea.record.run_folder import read_metrics
from emea.record.run_record import read_run_file
from experiments.archive import study as study_module
from experiments.archive.packing import packed_runs, restore_run
from experiments.archive.study import (
    add_runs,
    check_study,
    find_run,
    read_study,
)
from experiments.archive.study_files import (
    DETAILS_FILE,
    RUNS_FILE,
    PackedRun,
    decoded_ranks,
    encoded_ranks,
    read_detail,
    write_details,
)

from ...written_runs import LINKS, write_run_folder

FILES = (RUNS_FILE, DETAILS_FILE)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of two runs."""
    packed: dict[str, PackedRun] = {}
    for name in ("b", "a"):
        packed |= packed_runs(
            write_run_folder(tmp_path / "runs" / name, run_id=name * 32)
        )
    folder = tmp_path / "study"
    assert add_runs(folder, packed) == ["a", "b"]
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def test_a_restored_run_equals_its_folder(study: Path, tmp_path: Path) -> None:
    for run in read_study(study):
        old, new = tmp_path / "runs" / run.name, tmp_path / "again" / run.name
        restore_run(run, new)
        assert {path.name for path in new.iterdir()} == {
            path.name for path in old.iterdir()
        }
        for name in ("config.yaml", "metrics.json", "run.json", "series.jsonl"):
            assert (new / name).read_bytes() == (old / name).read_bytes(), name
        with np.load(old / "ranks.npz") as before, np.load(new / "ranks.npz") as after:
            for name in ("initial_in_pool", "final_in_pool", "links_checksum"):
                assert np.array_equal(before[name], after[name]), name
            assert after["final_in_pool"].dtype == np.float32
        # what is restored can be recorded again, with the same bytes
        assert packed_runs(new)[run.name].signed() == run.entry


def test_values_of_a_run(study: Path, tmp_path: Path) -> None:
    run = find_run(study, "b")
    old = tmp_path / "runs" / "b"
    assert run.line == 2
    assert run.metrics == read_metrics(old)
    assert list(run.metrics) == list(read_metrics(old))
    assert "history" not in run.scores and run.scores["final"] == run.metrics["final"]
    assert run.header == read_run_file(old)
    final, initial = run.ranks(), run.ranks("initial")
    assert final is not None and final.tolist() == [1, 2.5, np.inf, 70000]
    assert initial is not None and initial.tolist() == [3, 1, 1, 2]
    assert run.ranks("other") is None
    from emea.record.run_folder import links_checksum

    assert run.links_checksum == links_checksum(LINKS)


def test_equal_runs_give_equal_bytes_in_any_order(study: Path, tmp_path: Path) -> None:
    for names in (("a", "b"), ("b", "a")):
        other = tmp_path / "-".join(names)
        for name in names:
            assert add_runs(other, packed_runs(tmp_path / "runs" / name)) == [name]
        assert content(other) == content(study)


def test_a_name_is_taken_only_on_request(study: Path, tmp_path: Path) -> None:
    other = write_run_folder(tmp_path / "other" / "a", run_id="c" * 32)
    with pytest.raises(DataError, match="already has another run named a"):
        add_runs(study, packed_runs(other))
    assert find_run(study, "a").header["run_id"] == "a" * 32
    assert add_runs(study, packed_runs(other), replace=True) == ["a"]
    assert find_run(study, "a").header["run_id"] == "c" * 32
    assert check_study(study) == 2


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_kill_leaves_a_study_that_can_be_read(
    study: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    replaced: bool,
    step: int,
) -> None:
    """Writing stops before its first, second or third file."""
    written = 0
    name = "a" if replaced else "c"
    new = packed_runs(write_run_folder(tmp_path / "other" / name, run_id="c" * 32))
    expected = {run.name: run.entry for run in read_study(study)}

    def dying(write: Any) -> Any:
        def call(*arguments: Any) -> None:
            nonlocal written
            if written == step:
                raise KeyboardInterrupt
            written += 1
            write(*arguments)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(study_module, "write_lines", dying(study_module.write_lines))
        patch.setattr(study_module, "write_details", dying(study_module.write_details))
        with suppress(KeyboardInterrupt):
            add_runs(study, new, replace=replaced)
    for run in read_study(study):
        assert run.metrics and run.ranks() is not None
        assert run.entry == expected.get(run.name) or run.name == name
    assert {"b"} <= {run.name for run in read_study(study)}
    add_runs(study, new, replace=replaced)
    assert check_study(study) == (2 if replaced else 3)


@pytest.mark.parametrize(
    "ranks", [[], [1.0], [0.5], [127.5], [128.0], [32767.5], [np.inf] * 3]
)
def test_ranks_survive_their_encoding(ranks: list[float]) -> None:
    values = np.array(ranks, dtype=np.float64)
    assert np.array_equal(decoded_ranks(encoded_ranks(values)), values)


@pytest.mark.parametrize("rank", [0.0, -1.0, 1.25, np.nan, -np.inf])
def test_what_is_not_a_rank_is_refused(rank: float) -> None:
    with pytest.raises(ValueError, match="not a positive multiple"):
        encoded_ranks(np.array([1.0, rank]))


@pytest.mark.parametrize("file", FILES)
def test_every_damage_is_noticed(study: Path, file: str) -> None:
    """One changed, missing or additional byte, anywhere that is not padding."""
    path = study / file
    whole = path.read_bytes()
    generator = random.Random(0)
    noticed = 0
    for _ in range(40):
        place = generator.randrange(len(whole))
        changed = bytes([whole[place] ^ (1 + generator.randrange(255))])
        path.write_bytes(whole[:place] + changed + whole[place + 1 :])
        try:
            check_study(study)
            entries = [run.entry for run in read_study(study)]
            assert all(run.metrics for run in read_study(study))
        except DataError as error:
            noticed += 1
            assert str(path) in str(error) and "\n" not in str(error)
        else:
            path.write_bytes(whole)
            assert entries == [
                run.entry for run in read_study(study)
            ]  # only a zip's own fields
    assert noticed == 40 if file == RUNS_FILE else noticed > 20
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="version control"):
        check_study(study)


def test_a_detail_without_a_run_is_reported(study: Path) -> None:
    with zipfile.ZipFile(study / DETAILS_FILE, "a") as file:
        file.writestr("c/history.jsonl", b"")
    with pytest.raises(DataError, match=r"c/history.jsonl, which belongs to no run"):
        check_study(study)


@pytest.mark.parametrize(
    "name", ["../../outside.json", "/tmp/outside.json", "a/../../b.json"]
)
def test_members_of_an_archive_are_not_extracted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_details(folder, {name: b"{}"})
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match="has another checksum"):
        read_detail(folder, name, "0" * 64)
    assert sorted(tmp_path.rglob("*")) == before
