"""Small finished run folders, with every file that a study keeps."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from emea.record.checked_files import (
    write_checked_arrays,
    write_checked_json,
    write_checked_yaml,
)
from emea.record.run_folder import links_checksum
from emea.record.run_record import flat_params

FINGERPRINT = "f" * 64
LINKS = np.array([[0, 4], [1, 5], [2, 6], [3, 7]])
CONFIG = {
    "data": {"name": "zh", "root": "data"},
    "em": {"name": "dual", "features": ["x", "y"], "lr": 1e-7},
    "ratio": {"value": 0.05},
    "seed": 0,
    "initial_from": None,
}
METRICS = {
    "initial": {"hit@1": 0.5, "mrr": 0.7, "all_targets": {"hit@1": 0.5}},
    "final": {"hit@1": 0.25, "mrr": None, "all_targets": {"hit@1": 0.25}},
    "history": [
        {"iteration": 0, "validation": {"mrr": 0.125}},
        {"iteration": 1, "é": "ü"},
    ],
    "protocol": "strict",
    "data": "zh",
}
POINTS = [
    {"step": 0, "time": 5, "metrics": {"loss": 2.0, "hit@1": 0.5}},
    {"step": 1, "time": 6, "metrics": {"loss": 0.1}},
]


def write_run_folder(
    folder: Path,
    run_id: str = "a" * 32,
    config: dict[str, Any] = CONFIG,
    metrics: dict[str, Any] = METRICS,
    links: np.ndarray = LINKS,
    final: tuple[float, ...] = (1, 2.5, np.inf, 70000),
    **header: Any,
) -> Path:
    """A finished run; the ranks are those among test targets only."""
    folder.mkdir(parents=True)
    write_checked_yaml(
        folder / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(config))
    )
    tags = {
        "commit": "c" * 40,
        "dirty": "false",
        "fingerprint": FINGERPRINT,
        "data_checksum": "d",
    }
    content = {
        "run_id": run_id,
        "name": "emea-rrea-zh-5%-strict-s0",
        "experiment": "tests",
        "params": flat_params(config),
        "tags": tags,
        "start_time": 1_700_000_000_000,
        "status": "FINISHED",
        "end_time": 1_700_000_001_000,
        "reason": "",
        **header,
    }
    for name, value in (("metrics.json", metrics), ("run.json", content)):
        write_checked_json(folder / name, value)
    (folder / "series.jsonl").write_text(
        "".join(json.dumps(point) + "\n" for point in POINTS)
    )
    write_checked_arrays(
        folder / "ranks.npz",
        initial_in_pool=np.float32([3, 1, 1, 2]),
        final_in_pool=np.float32(final),
        links_checksum=np.array(links_checksum(links)),
    )
    return folder
