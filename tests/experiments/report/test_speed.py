import json
from pathlib import Path
from typing import Any

from experiments.archive.measurements import MEASUREMENTS_FILE, read_measurements
from experiments.archive.study import EXPERIMENTS
from experiments.report.report import as_markdown
from experiments.report.speed import speed_report

MEASUREMENTS = EXPERIMENTS / "speed"


def write_measurement(folder: Path, name: str, numbers: dict[str, Any]) -> None:
    line = json.dumps({"name": name, **numbers}) + "\n"
    (folder / MEASUREMENTS_FILE).write_text(line, encoding="utf-8")


def table(folder: Path, number: int) -> str:
    part = speed_report(folder).parts[number]
    assert part.table is not None
    return as_markdown(part.table)


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


def test_what_is_shown_was_measured_on_committed_code() -> None:
    found = read_measurements(MEASUREMENTS)
    assert len(found) >= 15
    for name, measurement in found.items():
        assert measurement["dirty"] == "false", name
