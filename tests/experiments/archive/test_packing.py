"""Finished run folders become runs of a study."""

from pathlib import Path

import numpy as np
import pytest

from emea.errors import DataError
from emea.record.run_folder import links_checksum, read_ranks
from emea.record.run_record import read_run_file
from experiments.archive.packing import checked_name, packed_runs, restore_run
from experiments.archive.study import add_runs, find_run, read_study

from ...written_runs import CONFIG, LINKS, write_run_folder


@pytest.mark.parametrize("title", ["2026-01-02_03-04-05", "0", "12-30-00"])
def test_a_time_or_number_is_not_a_name(tmp_path: Path, title: str) -> None:
    assert list(packed_runs(write_run_folder(tmp_path / title))) == [
        "emea-rrea-zh-5%-strict-s0"
    ]
    assert list(packed_runs(tmp_path / title, "mine")) == ["mine"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "/a", "..\\a", "a\nb", "_a", "x" * 201]
)
def test_a_name_must_be_that_of_a_folder(name: str) -> None:
    with pytest.raises(DataError, match="cannot be the name of a run"):
        checked_name(name)


@pytest.mark.parametrize("status", ["RUNNING", "FAILED", "KILLED"])
def test_only_finished_runs_are_recorded(tmp_path: Path, status: str) -> None:
    with pytest.raises(DataError, match="not a finished run"):
        packed_runs(write_run_folder(tmp_path / "a", status=status))


@pytest.mark.parametrize("name", ["config.yaml", "metrics.json", "ranks.npz"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    folder = write_run_folder(tmp_path / "a")
    (folder / name).write_bytes(b"\x00{")
    with pytest.raises(DataError, match=name):
        packed_runs(folder)


def test_a_study_is_added_to_another(tmp_path: Path) -> None:
    for name in "ab":
        add_runs(
            tmp_path / "one",
            packed_runs(write_run_folder(tmp_path / name, run_id=name * 32)),
        )
    assert add_runs(tmp_path / "two", packed_runs(tmp_path / "one")) == ["a", "b"]
    for name in ("runs.jsonl", "details.zip"):
        assert (tmp_path / "one" / name).read_bytes() == (
            tmp_path / "two" / name
        ).read_bytes()
    with pytest.raises(DataError, match="omit --name"):
        packed_runs(tmp_path / "one", "c")


def test_places_of_a_machine_are_left_out(tmp_path: Path) -> None:
    first = "/home/me/a b/zh-first/checkpoint.safetensors"
    config = CONFIG | {
        "data": {"name": "zh", "root": "/home/me/data"},
        "initial_from": first,
    }
    add_runs(
        tmp_path / "study", packed_runs(write_run_folder(tmp_path / "a", config=config))
    )
    [run] = read_study(tmp_path / "study")
    assert run.config["data"] == {"name": "zh", "root": "data"}
    assert run.config["initial_from"] == "zh-first/checkpoint.safetensors"
    assert run.header["params"]["data.root"] == "data"
    assert run.header["params"]["initial_from"] == "zh-first/checkpoint.safetensors"
    assert b"/home" not in (tmp_path / "study" / "runs.jsonl").read_bytes()


def test_parameters_that_are_not_the_configuration_are_kept(tmp_path: Path) -> None:
    folder = write_run_folder(tmp_path / "a", params={"older": "spelling"})
    add_runs(tmp_path / "study", packed_runs(folder))
    run = find_run(tmp_path / "study", "a")
    assert run.header["params"] == {"older": "spelling"}
    restore_run(run, tmp_path / "again")
    assert read_run_file(tmp_path / "again") == run.header


def test_a_run_is_restored_into_an_empty_folder_only(tmp_path: Path) -> None:
    add_runs(tmp_path / "study", packed_runs(write_run_folder(tmp_path / "a")))
    run = find_run(tmp_path / "study", "a")
    with pytest.raises(DataError, match="is not empty"):
        restore_run(run, tmp_path / "a")
    (tmp_path / "empty").mkdir()
    restore_run(run, tmp_path / "empty")
    assert (tmp_path / "empty" / "run.json").is_file()


def test_links_without_a_checksum_get_one(tmp_path: Path) -> None:
    """Runs of earlier versions keep their links only."""
    folder = write_run_folder(tmp_path / "a")
    np.savez(folder / "ranks.npz", links=LINKS, final_in_pool=np.ones(4))
    assert read_ranks(folder)[1] == links_checksum(LINKS)
    [packed] = packed_runs(folder).values()
    assert packed.entry["links"] == links_checksum(LINKS)
    assert "initial_in_pool.npy" not in packed.details


def test_links_that_were_changed_are_noticed(tmp_path: Path) -> None:
    folder = write_run_folder(tmp_path / "a")
    checksum = np.array(links_checksum(LINKS))
    np.savez(folder / "ranks.npz", links=LINKS[::-1], links_checksum=checksum)
    with pytest.raises(DataError, match="another checksum"):
        read_ranks(folder)
