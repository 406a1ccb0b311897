"""The benchmark of the start, and recorded measurements next to new ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import emea
from benchmarks.command import print_earlier
from benchmarks.start_up import NUM_LABELS, with_this_package, write_pair
from emea.data.sources.own_files import read_own_files
from experiments.archive.measurements import MEASUREMENTS_FILE


def test_the_files_are_two_graphs_with_links(tmp_path: Path) -> None:
    source, target, _, links = write_pair(tmp_path)
    pair = read_own_files(source, target, links)
    assert len(pair.links) == NUM_LABELS
    assert min(pair.source.num_entities, pair.target.num_entities) >= 90
    assert pair.source.num_triples > 200


def test_processes_import_this_package(tmp_path: Path) -> None:
    code = "import emea; print(emea.__file__)"
    command, environment = [sys.executable, "-c", code], with_this_package()
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert Path(done.stdout.strip()) == Path(emea.__file__)


def test_recorded_numbers_are_printed_with_ratios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    origin = {"cpu_count": "2", "machine": "aarch64", "commit": "c" * 40}
    lines = [
        {"name": "start_up_a", "align_s": 4.0, **origin},
        {"name": "start_up_b", "import_s": 1.0, **origin},
        {"name": "overhead_a", "align_s": 9.0, **origin},
    ]
    (tmp_path / MEASUREMENTS_FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    print_earlier("start_up", "align_s", 6.0, tmp_path)
    printed = "  recorded 4.00 (2 aarch64 cores, commit cccccccccc): ratio 1.50\n"
    assert capsys.readouterr().out == printed
    print_earlier("start_up", "align_s", 6.0, tmp_path / "missing")
    assert not capsys.readouterr().out
