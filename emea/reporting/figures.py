"""Figures as files."""

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emea.record.atomic import write_atomic

if TYPE_CHECKING:  # matplotlib loads only where something is drawn
    from matplotlib.figure import Figure

METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}}
"""By ending, what matplotlib would write of itself and of the day."""


HASHED_ID = re.compile(rb'\bid="((?:image|[hmp]|C\w+_)?[0-9a-f]{10})"')
"""Names of clips, markers and hatches in an SVG: hashes of coordinates before they are rounded."""


def write_figure(figure: "Figure", base: Path) -> list[Path]:
    """Write the figure as PNG and SVG: the same bytes for the same numbers, on any machine."""
    from matplotlib import rc_context

    stem = base.with_suffix("") if base.suffix[1:] in METADATA else base
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in METADATA]
    for path, (ending, metadata) in zip(paths, METADATA.items(), strict=True):
        buffer = io.BytesIO()
        with rc_context({"svg.fonttype": "none"}):  # words stay words
            figure.savefig(buffer, format=ending, dpi=200, metadata=metadata)
        content = buffer.getvalue()
        write_atomic(path, _with_numbered_ids(content) if ending == "svg" else content)
    return paths


def _with_numbered_ids(svg: bytes) -> bytes:
    """Name by number, in order of appearance, what matplotlib names by a hash.

    The last bits of coordinates differ between machines, and with them every hash.
    """
    names = dict.fromkeys(HASHED_ID.findall(svg))
    numbers = {name: b"shared_%d" % number for number, name in enumerate(names, start=1)}
    return re.sub(rb"\w+", lambda word: numbers.get(word[0], word[0]), svg)
