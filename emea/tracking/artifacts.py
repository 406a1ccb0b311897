"""Which files of a run's folder travel to the tracking store."""

import os
from pathlib import Path

from emea.tracking.run_record import RUN_FILE


def run_files(folder: Path, max_mb: float) -> tuple[list[Path], list[Path]]:
    """The run's own files, sorted, as those to copy and those that are too large.

    Args:
        folder: The run's folder; other runs' folders inside it are left out.
        max_mb: Files larger than this many megabytes stay behind.
    """
    small: list[Path] = []
    large: list[Path] = []
    for path in sorted(_own_files(folder)):
        fits = path.stat().st_size <= max_mb * 1e6
        (small if fits else large).append(path)
    return small, large


def _own_files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, children, names in os.walk(folder):
        # Pruned in place: that is how os.walk is told not to descend.
        children[:] = [name for name in children if not (Path(parent) / name / RUN_FILE).exists()]
        found += [Path(parent) / name for name in names]
    # A broken link, or a pipe, has nothing to copy.
    return [path for path in found if path.is_file()]
