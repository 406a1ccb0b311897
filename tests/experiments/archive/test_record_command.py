"""``python -m experiments record``, as a person uses it."""

from pathlib import Path

import pytest

from experiments.__main__ import main

from ...written_runs import write_run_folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "experiments.archive.study.EXPERIMENTS", tmp_path / "experiments"
    )
    monkeypatch.setattr(
        "experiments.archive.record_command.EXPERIMENTS", tmp_path / "experiments"
    )


def test_add_list_check_and_restore(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        write_run_folder(tmp_path / name, run_id=name * 32)
    assert main(["record", "add", "mine", "a", "b"]) == 0
    assert "experiments/mine: 2 added, 0 already recorded" in capsys.readouterr().out
    assert main(["record", "add", "mine", "a"]) == 0
    assert "0 added, 1 already recorded" in capsys.readouterr().out
    assert main(["record", "list"]) == 0
    assert capsys.readouterr().out == "mine: 2 runs\n"
    assert main(["record", "list", "mine"]) == 0
    assert "  a  hit@1 0.2500  protocol strict\n" in capsys.readouterr().out
    assert main(["record", "check"]) == 0
    assert capsys.readouterr().out == "mine: 2 runs, all checksums match\n"
    assert main(["record", "restore", "mine", "b", "--out", "back"]) == 0
    assert (tmp_path / "back" / "run.json").read_text() == (
        tmp_path / "b/run.json"
    ).read_text()
    assert main(["record", "restore", "mine", "--out", "all"]) == 0
    assert (tmp_path / "all/b/run.json").read_text() == (
        tmp_path / "b/run.json"
    ).read_text()
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["a", "b"]


def test_a_sweep_is_added_as_a_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        write_run_folder(tmp_path / "sweep" / name, run_id=name * 32)
    (tmp_path / "sweep" / "skipped").mkdir()
    assert main(["record", "add", "mine", "sweep"]) == 0
    assert "experiments/mine: 2 added, 0 already recorded" in capsys.readouterr().out
    assert main(["record", "add", "mine", "sweep", "--name", "c"]) == 1
    assert "--name needs exactly one run" in capsys.readouterr().err


def test_a_name_and_a_replacement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        write_run_folder(tmp_path / name, run_id=name * 32)
    assert main(["record", "add", "x/mine", "a", "--name", "zh 5%"]) == 0
    assert main(["record", "add", "x/mine", "b", "--name", "zh 5%"]) == 1
    assert "already has another run named zh 5%" in capsys.readouterr().err
    assert main(["record", "add", "x/mine", "b", "--name", "zh 5%", "--replace"]) == 0
    assert main(["record", "add", "x/mine", "a", "b", "--name", "c"]) == 1
    assert "--name needs exactly one run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "mine", "nowhere"], "nowhere is not a run's folder"),
        (["restore", "mine", "a", "--out", "o"], "has no recorded runs"),
        (["list"], "has no recorded runs"),
        (["check", "mine"], "has no recorded runs"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1
