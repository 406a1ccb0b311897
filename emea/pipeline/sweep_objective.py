"""What a sweeper that searches may maximise."""

import math
from typing import Any


def sweep_objective(metrics: dict[str, Any]) -> float:
    """MRR of the validation links by the last model; never a number of test links.

    A search that chose by test links would report what it was fitted to. Reasoning methods rank
    no validation links: theirs is NaN.
    """
    last = metrics["history"][-1] if metrics.get("history") else {}
    found = (last.get("validation") or {}).get("mrr")
    return math.nan if found is None else float(found)
