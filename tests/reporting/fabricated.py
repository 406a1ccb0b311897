"""Small fabricated records, in the form in which runs leave them."""

import json
from pathlib import Path
from typing import Any

TAGS = {"commit": "c" * 40, "dirty": "false", "gpu": "some GPU", "torch": "2"}
PARAMS = {"em.iterations": 10, "em.num_candidates": 10, "training.epochs_per_turn": 100}


def write_run(
    study: Path,
    name: str,
    tags: dict[str, str] | None = None,
    params: dict[str, Any] | None = None,
    **changes: Any,
) -> None:
    """An EM run on zh at 1% that lifts Hit@1 from 0.1234 to 0.5, but for what is changed."""
    metrics: dict[str, Any] = {"data": "dbp15k_zh", "model": "rrea", "training": "sup"}
    metrics |= {"rule": "paris", "protocol": "strict", "method": "emea", "ratio": 0.01}
    metrics |= {"split_seed": 0, "initial": scores(0.1234), "final": scores(0.5)}
    folder = study / "records" / name
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text(json.dumps(metrics | changes))
    header = {"tags": TAGS | (tags or {}), "params": PARAMS | (params or {})}
    (folder / "run.json").write_text(json.dumps(header))


def scores(hit: float, others: bool = True) -> dict[str, Any]:
    """Metrics of one ranking; those of further ranks are missing where there are no others."""
    ranked = {"hit@1": hit, "mrr": hit if others else None, "mr": 10 * hit if others else None}
    return {**ranked, "all_targets": {**ranked, "hit@1": hit / 2}}
