"""The machine and the code a number comes from."""

from collections.abc import Mapping
from typing import Any


def machine_of(tags: Mapping[str, Any]) -> str:
    """The GPU, or the cores where there was none; ``unknown`` where nobody wrote it down."""
    if tags.get("gpu"):
        return str(tags["gpu"])
    if "cpu_count" not in tags:
        return "unknown"
    return f"{tags['cpu_count']} {tags['machine']} cores"


def short_commit(tags: Mapping[str, Any]) -> str:
    """As many digits of the commit as tables show."""
    return str(tags["commit"])[:10]
