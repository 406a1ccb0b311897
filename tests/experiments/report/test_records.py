"""Reading recorded runs back."""

from pathlib import Path

import pytest

from emea.errors import DataError
from emea.results.recorded_run import load_record_folders
from experiments.report.records import load_committed, load_records, load_runs

from .fabricated import made, write_folder, write_run


def test_a_run_has_its_id_and_its_study(tmp_path: Path) -> None:
    written = write_run(tmp_path / "table1", "zh-0.01-s0", started=7)
    [run] = load_records(tmp_path / "table1")
    expected = made("zh-0.01-s0", started=7)
    assert run.metrics == written.metrics == expected.metrics
    assert {key: run.header[key] for key in expected.header} == expected.header
    assert run.run_id == "id-zh-0.01-s0"
    assert run.started == 7
    assert (run.study, run.name) == ("table1", "zh-0.01-s0")


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no recorded runs"):
        load_records(tmp_path)


@pytest.mark.parametrize(
    "tags", [{"dirty": "true"}, {"dirty": "unknown"}, {"commit": "unknown"}]
)
def test_runs_of_uncommitted_code_are_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, tags: dict[str, str]
) -> None:
    write_run(tmp_path, "a", tags=tags)
    with pytest.raises(DataError, match="committed code"):
        load_committed(tmp_path)
    write_run(tmp_path, "b")
    caplog.clear()
    assert [run.name for run in load_committed(tmp_path)] == ["b"]
    assert "ignoring runs made with uncommitted code: a" in caplog.text


def test_run_folders_are_found_at_any_depth(tmp_path: Path) -> None:
    write_folder(tmp_path / "sweep", "late", started=2, params={"study": "figure4"})
    write_folder(tmp_path / "sweep", "early", started=1)
    found = load_record_folders([tmp_path, tmp_path / "sweep" / "late"])
    assert [run.run_id for run in found] == ["id-early", "id-late"]
    assert [run.study for run in found] == ["", "figure4"]
    with pytest.raises(DataError, match="contains no finished run"):
        load_record_folders([tmp_path, tmp_path / "sweep" / "none"])


def test_a_run_in_a_study_and_in_a_folder_counts_once(tmp_path: Path) -> None:
    write_run(tmp_path / "mine", "a")
    write_folder(tmp_path / "sweep", "a")
    for folders in (["mine", "sweep"], ["sweep", "mine"]):
        found = load_runs([tmp_path / name for name in folders])
        assert [run.run_id for run in found] == ["id-a"]
