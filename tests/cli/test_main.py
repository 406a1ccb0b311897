"""The ``emea`` command: overview, unknown commands, quick answers."""

import errno
import os
import re
import signal
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest.mock import Mock

import pytest

from emea import __version__
from emea.cli import run
from emea.cli.main import COMMANDS, main

HEAVY = ("torch", "pytorch_lightning", "mlflow", "matplotlib", "pandas", "scipy")
EACH = """
import sys
from emea.cli.main import main
for line in sys.argv[1:]:
    sys.argv[0] = "emea"
    try:
        status = main(line.split())
    except SystemExit as stop:
        status = stop.code
    print("status", status, file=sys.stderr)
print("loaded", sorted(set(sys.modules) & set({heavy!r})))
"""


def called(*lines: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Several commands in one new process, which prints the heavy packages that it loaded."""
    return subprocess.run(
        [sys.executable, "-c", EACH.format(heavy=HEAVY), *lines],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in COMMANDS)
    assert main([]) == 2
    assert capsys.readouterr().out == shown
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"emea {__version__}\n"


def test_an_unknown_command_names_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["predcit"]) == 2
    assert "Did you mean emea predict?" in capsys.readouterr().err


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    done = called(*(f"{command} --help" for command in COMMANDS), cwd=tmp_path)
    assert done.stderr == "status 0\n" * len(COMMANDS)
    assert done.stdout.endswith("loaded []\n")
    for command in set(COMMANDS) - {"run"}:  # Hydra's help has no such line
        assert f"usage: emea {command}" in done.stdout


BAD_LINE = "<http://a/1> <http://a/r> <http://a/2>\n"  # without its full stop
GOOD_LINE = "<http://a/1> <http://a/r> <http://a/2> .\n"
MISTAKES = {
    "align bad.nt good.nt --links l.tsv": "bad.nt, line 1",
    "align good.nt none.nt --links l.tsv": "data.target: there is no file none.nt",
    "run modle=rrea": "There is no key modle (nearest: model",
    "run em.num_candidates=-3": "must be a whole number from 1 to 100,000, got -3",
    "run rule=none": "em=paper needs a rule to measure compatibility",
    "run data=files": "data.source must name a file",
    "run resume=nowhere": "nowhere is not a run's folder",
    "data files source=bad.nt target=good.nt links=l.tsv": "bad.nt, line 1",
    "predict nowhere": "nowhere is not a run's folder",
    "explain nowhere --entity a": "nowhere is not a run's folder",
    "sync nowhere": "nowhere is not a folder",
    "run data=files data.source=bad.nt data.target=good.nt data.links=l.tsv": "bad.nt, line 1",
}


def test_mistakes_are_reported_before_anything_heavy_loads(tmp_path: Path) -> None:
    (tmp_path / "bad.nt").write_text(BAD_LINE)
    (tmp_path / "good.nt").write_text(GOOD_LINE)
    (tmp_path / "l.tsv").write_text("http://a/1\thttp://a/1\n")
    done = called(*MISTAKES, cwd=tmp_path)
    answers = done.stderr.split("status 1\n")
    assert answers.pop() == ""
    for sentence, answer in zip(MISTAKES.values(), answers, strict=True):
        assert sentence in answer
        assert answer.count("\n") == 1, "one sentence"
    assert done.stdout == "loaded []\n"


def test_a_closed_pipe_ends_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", buffering=1) as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        monkeypatch.setattr("emea.cli.compare.main", lambda rest: print("much text"))
        assert main(["compare"]) == 141
        print("the rest of the buffer goes nowhere")


def test_names_are_escaped_where_the_encoding_lacks_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stdout = TextIOWrapper(BytesIO(), "ascii", write_through=True)
    monkeypatch.setattr("sys.stdout", stdout)
    monkeypatch.setattr("emea.cli.compare.main", lambda rest: print("Ärmelkanal") or 0)
    assert main(["compare"]) == 0
    assert stdout.buffer.getvalue() == b"\\xc4rmelkanal\n"  # type: ignore[attr-defined]


def test_a_place_without_permission_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    denied = Mock(
        side_effect=PermissionError(errno.EACCES, "Permission denied", "/secret/conf")
    )
    monkeypatch.setattr(run, "check_flags", denied)
    assert main(["run"]) == 1
    assert capsys.readouterr().err == (
        "error: /secret/conf cannot be accessed: Permission denied. Check the permissions of the "
        "file and its folders.\n"
    )
    denied.side_effect = OSError(errno.ENAMETOOLONG, "File name too long", "long")
    assert main(["run"]) == 1
    assert (
        "long cannot be accessed: File name too long. Choose a"
        in capsys.readouterr().err
    )
    denied.side_effect = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match="Input/output error"):
        main(["run"])


@pytest.mark.slow
def test_a_crash_of_native_code_prints_its_place() -> None:
    crash = (
        "import ctypes, emea.cli.compare\n"
        "from emea.cli.main import main\n"
        "emea.cli.compare.main = lambda _: ctypes.string_at(0)\n"
        "main(['compare'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", crash], stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == -signal.SIGSEGV
    assert "Segmentation fault" in done.stderr and "cli/main.py" in done.stderr


@pytest.mark.parametrize(("received", "status"), [([], 130), ([signal.SIGTERM], 143)])
def test_the_status_names_the_signal_that_interrupted_a_command(
    received: list[signal.Signals], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emea.runtime.signals._received", received)
    monkeypatch.setattr("emea.cli.align.main", Mock(side_effect=KeyboardInterrupt))
    assert main(["align"]) == status


def emea_process(shell: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command of a shell, in which ``emea`` is the command."""
    return subprocess.run(
        ["bash", "-c", shell.replace("emea", f"{sys.executable} -m emea")],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="the system has no full device"
)
@pytest.mark.parametrize("command", ["", "merge", "align"])
def test_a_full_output_is_one_sentence(command: str, tmp_path: Path) -> None:
    done = emea_process(f"emea {command} --help > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "error: Standard output cannot be written: No space left"
    )
    assert done.stderr.count("\n") == 1


def test_closed_streams_do_not_matter(tmp_path: Path) -> None:
    done = emea_process("emea --help >&-; emea --version <&- >&- 2>&-", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_deleted_folder_is_one_sentence(tmp_path: Path) -> None:
    done = emea_process("mkdir x; cd x; rmdir ../x; emea data synthetic", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: The current folder does not exist any more.")


def test_control_characters_of_names_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "http://a/\x1b]0;owned\x07\x9b2J\u202e\r"
    rows = [f"{name}\t{name}{one}\t{other}" for one, other in ((1, 2), (2, 3))]
    (tmp_path / "a.tsv").write_text("".join(f"{row}\n" for row in rows), newline="")
    (tmp_path / "\x1b[2Jl.tsv").write_text("2\t2\n3\t3\n")
    files = [f"source={tmp_path / 'a.tsv'}", f"target={tmp_path / 'a.tsv'}"]
    for on_error in ("skip", "stop"):
        links = f"links='{tmp_path}/\x1b[2Jl.tsv'"
        main(["data", "files", *files, links, f"on_error={on_error}"])
    shown = "".join(capsys.readouterr())
    assert shown and not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
