"""Figures as files."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emea.tracking.atomic import write_atomic

if TYPE_CHECKING:  # matplotlib loads only where something is drawn
    from matplotlib.figure import Figure

METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}}
"""By ending, what matplotlib would write of itself and of the day."""


def write_figure(figure: "Figure", base: Path) -> list[Path]:
    """The figure as PNG and SVG beside each other, the same bytes for the same numbers."""
    from matplotlib import rc_context

    stem = base.with_suffix("") if base.suffix[1:] in METADATA else base
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in METADATA]
    for path, (ending, metadata) in zip(paths, METADATA.items(), strict=True):
        buffer = io.BytesIO()
        # names inside an SVG do not differ between writes, and its words stay words
        with rc_context({"svg.hashsalt": "emea", "svg.fonttype": "none"}):
            figure.savefig(buffer, format=ending, dpi=200, metadata=metadata)
        write_atomic(path, buffer.getvalue())
    return paths
