"""Measured times and memory as a table."""

import json
from pathlib import Path
from typing import Any

from emea.reporting.markdown import markdown_table

COLUMNS = {
    "data": ("pair", "{}"),
    "device": ("device", "{}"),
    "ms_per_step": ("ms per step", "{:.1f}"),
    "search_s": ("candidate search, s", "{:.2f}"),
    "joint_s": ("M- and E-step, s", "{:.2f}"),
    "peak_memory_mb": ("peak memory, MB", "{:.0f}"),
}


def speed_tables(folder: Path) -> str:
    """What ``benchmarks.run_parts``, ``compare`` and ``default_run`` recorded."""
    parts = [_load(path) for path in sorted(folder.glob("run_parts_*.json"))]
    titles = [title for title, _ in COLUMNS.values()] + ["machine", "commit"]
    rows = [
        [*(form.format(part[key]) for key, (_, form) in COLUMNS.items()), *_origin(part)]
        for part in parts
    ]
    table = markdown_table(titles, rows, num_left=2)
    compared = [_compared(path) for path in sorted(folder.glob("compare_*.json"))]
    default = [_default_run(path) for path in sorted(folder.glob("default_run_*.json"))]
    return "\n\n".join([table, *compared, *default])


def _compared(path: Path) -> str:
    run = _load(path)
    machine, commit = _origin(run)
    return (
        f"On {machine} ({run['pair']}): a step is {run['step ratio']:.1f} times faster than the "
        f"edge-materialising form of the same layer, the PARIS rule {run['joint ratio']:.0f} times "
        f"faster than a loop over candidates; time grows with size to the power "
        f"{run['exponent of the step']:.2f} (step) and {run['exponent of the joint module']:.2f} "
        f"(rule), measured side by side by `benchmarks.compare`, commit {commit}."
    )


def _default_run(path: Path) -> str:
    run = _load(path)
    machine, commit = _origin(run)
    return (
        f"`make run` after the install: {run['seconds']:.0f} s on {machine}, Hit@1 "
        f"{run['initial']['hit@1']:.3f} (neural model) to {run['final']['hit@1']:.3f} (EMEA), "
        f"protocol {run['protocol']}, commit {commit}."
    )


def _origin(numbers: dict[str, Any]) -> tuple[str, str]:
    machine = numbers.get("gpu") or f"{numbers['cpu_count']} {numbers['machine']} cores"
    return machine, numbers["commit"][:10]


def _load(path: Path) -> dict[str, Any]:
    numbers: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return numbers
