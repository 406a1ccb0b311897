import json
from pathlib import Path
from typing import Any

from emea.results.render import as_markdown
from experiments.archive.measurements import MEASUREMENTS_FILE, read_measurements
from experiments.archive.study import EXPERIMENTS
from experiments.report.speed import speed_report

MEASUREMENTS = EXPERIMENTS / "speed"


def write_measurement(folder: Path, name: str, numbers: dict[str, Any]) -> None:
    line = json.dumps({"name": name, **numbers}) + "\n"
    (folder / MEASUREMENTS_FILE).write_text(line, encoding="utf-8")


def table(folder: Path, number: int) -> str:
    part = speed_report(folder).parts[number]
    assert part.table is not None
    return as_markdown(part.table)


def test_a_row_per_measurement(tmp_path: Path) -> None:
    numbers = {"data": "pair", "device": "cpu", "ms_per_step": 12.34, "search_s": 1.0}
    numbers |= {"joint_s": 0.5, "peak_memory_mb": 99.6, "cpu_count": "2", "machine": "x86_64"}
    numbers |= {"commit": "c" * 40}
    write_measurement(tmp_path, "run_parts_a", numbers)
    row = table(tmp_path, 0).splitlines()[-1]
    assert row == "| pair | cpu | 12.3 | 1.00 | 0.50 | 100 | 2 x86_64 cores | cccccccccc |"


def test_a_whole_run_states_its_search_and_protocol(tmp_path: Path) -> None:
    numbers = {
        "overrides": "data=synthetic data.num_entities=2000 search.num_probes=4 em=dual",
        "data": "synthetic",
    }
    numbers |= {
        "model": "rrea",
        "em": "dual",
        "ratio": 0.05,
        "epochs": "3 + 1 x 2",
        "total_s": 9.87,
        "neural_s": 5.0,
        "search_s": 1.0,
    }
    numbers |= {"joint_s": 0.2, "peak_memory_mb": 2048, "search_recall": 0.9876, "gpu": "G"}
    numbers["search"] = "cells"
    numbers |= {"initial": {"hit@1": 0.25}, "final": {"hit@1": 0.5}, "protocol": "strict"}
    write_measurement(tmp_path, "whole_run_a", numbers | {"commit": "c" * 40})
    row = table(tmp_path, 1).splitlines()[-1]
    assert row == (
        "| synthetic 2,000 x 2 | 5% | rrea | dual | 3 + 1 x 2 | 9.9 | 5.0 "
        "| 1.0 (cells, recall 0.988) | 0.2 | 2.0 | 0.250, 0.500 (strict) "
        "| `search.num_probes=4` | G | cccccccccc |"
    )


ORIGIN = {"cpu_count": "2", "machine": "aarch64", "commit": "c" * 40}


def test_hubs_have_a_row_per_phase(tmp_path: Path) -> None:
    phases = ("table", "evidence", "propagation", "avoid_conflict", "explanation")
    numbers = {phase: place / 10 for place, phase in enumerate(phases)} | {"memory_mb": 12.3}
    write_measurement(tmp_path, "hubs_a", {"degrees": {"10": numbers, "1000": numbers}, **ORIGIN})
    rows = table(tmp_path, 1).splitlines()
    assert rows[0] == "| phase | 10 | 1,000 |"
    assert rows[3] == "| join of neighbours | 0.10 | 0.10 |"
    assert rows[-1] == "| memory, MB | 12 | 12 |"


def test_the_start_is_a_sentence(tmp_path: Path) -> None:
    numbers = {"align_s": 4.94, "first_align_s": 6.0, "import_s": 2.0}
    write_measurement(tmp_path, "start_up_a", numbers | ORIGIN)
    note = speed_report(tmp_path).parts[-1].note
    assert note.startswith("`emea align` takes 4.9 s for two graphs with 100 entities, and 6.0 s")
    assert "`import emea.aligner` takes 2.0 s (2 aarch64 cores, commit cccccccccc)" in note


def test_what_is_shown_was_measured_on_committed_code() -> None:
    found = read_measurements(MEASUREMENTS)
    assert len(found) >= 15
    for name, measurement in found.items():
        assert measurement["dirty"] == "false", name
