import json
from pathlib import Path

from emea.reporting.speed import speed_tables

MEASUREMENTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


def test_a_row_per_measurement(tmp_path: Path) -> None:
    numbers = {"data": "pair", "device": "cpu", "ms_per_step": 12.34, "search_s": 1.0}
    numbers |= {"joint_s": 0.5, "peak_memory_mb": 99.6, "cpu_count": "2", "machine": "x86_64"}
    numbers |= {"commit": "c" * 40}
    (tmp_path / "run_parts_a.json").write_text(json.dumps(numbers))
    row = speed_tables(tmp_path).splitlines()[-1]
    assert row == "| pair | cpu | 12.3 | 1.00 | 0.50 | 100 | 2 x86_64 cores | cccccccccc |"


def test_what_is_shown_was_measured_on_committed_code() -> None:
    files = list(MEASUREMENTS.glob("*.json"))
    assert files
    for file in files:
        assert json.loads(file.read_text())["dirty"] == "false", file.name
