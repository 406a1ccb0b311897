"""``emea data`` and the options in ``conf/data``."""

import re
import runpy
import sys
from collections.abc import Sequence

import pytest

from emea.cli.main import main as emea
from emea.config.composition import composed, option_names


def main(arguments: Sequence[str]) -> int:
    return emea(["data", *arguments])


def test_root_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMEA_DATA", raising=False)
    assert composed(["data=zh"]).data.root == "data"
    monkeypatch.setenv("EMEA_DATA", "/elsewhere")
    assert composed(["data=zh"]).data.root == "/elsewhere"


def test_prints_statistics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synthetic", "num_entities=150", "name=mine"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("mine ")
    assert re.search(r"^entities +150 +150$", output, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dbp15k_z"], r"data has no option dbp15k_z \(nearest: dbp15k_zh, "),
        (["synthetic", "sed=1"], r"There is no key data\.sed \(nearest: data\.seed"),
        (
            ["synthetic", "data.num_entities=5"],
            "data.num_entities must be a whole number",
        ),
        (
            ["synthetic", "seed"],
            "'data.seed' is not a setting: settings have the form key=value",
        ),
        (
            ["synthetic", "seed=[1"],
            "The command line cannot be read: no viable alternative",
        ),
        (["zh", "folder=${nokey}"], r".*nokey"),
        (
            ["synthetic", "num_entities=7"],
            r"data.num_entities must be a whole number from 100 to .*, got 7$",
        ),
        (
            ["contea_fr_en", "root=/nowhere"],
            r"The folder /nowhere/contea_fr_en does not exist\. Put ",
        ),
    ],
)
def test_errors(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert re.match(f"error: {message}", captured.err)


def test_help_describes_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(f"\n  {option} " in output for option in option_names("data"))
    assert main([]) == 2


def test_as_a_module(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["emea", "data", "synthetic", "num_entities=5"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("emea", run_name="__main__")  # python -m emea
    assert ended.value.code == 1
    assert (
        capsys.readouterr().err
        == "error: data.num_entities must be a whole number from 100 to 5,000,000, got 5\n"
    )
