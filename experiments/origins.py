"""The code and the machine of a recorded run, as reports show them."""

from collections.abc import Mapping
from typing import Any

from emea.record.provenance import UNKNOWN


def is_of_committed_code(tags: Mapping[str, str]) -> bool:
    """Return whether a run used committed code without changes. Reports only show such runs."""
    return tags["commit"] != UNKNOWN and tags["dirty"] == "false"


def machine_of(tags: Mapping[str, Any]) -> str:
    """Return the GPU, or the number of CPU cores, or ``unknown`` if it was not recorded."""
    if tags.get("gpu"):
        return str(tags["gpu"])
    if "cpu_count" not in tags:
        return "unknown"
    return f"{tags['cpu_count']} {tags['machine']} cores"


def short_commit(tags: Mapping[str, Any]) -> str:
    """Return the first ten digits of the commit."""
    return str(tags["commit"])[:10]
