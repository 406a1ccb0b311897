"""The files of a run that are copied to MLflow."""

from pathlib import Path

RUN_FILES = (
    "config.yaml",
    "metrics.json",
    "run.json",
    "series.jsonl",
    "alignment.tsv",
    "alignment.nt",
    "alignment.sssom.tsv",
    "alignment.jsonl",
    "unmatched.tsv",
    "relations.tsv",
    "classes.tsv",
    "schema.nt",
    "schema.sssom.tsv",
    "ranks.npz",
    "beliefs.npz",
    "pair.npz",
    "checkpoint.safetensors",
    "run.log",
    ".hydra/*.yaml",
)
"""The files that a run writes."""


def run_files(folder: Path, max_mb: float) -> tuple[list[Path], list[Path]]:
    """Return the files of a run, sorted: those to copy, and those that are too large.

    Args:
        folder: The run's folder; other files in it are ignored.
        max_mb: Files larger than this many megabytes are not copied.
    """
    small: list[Path] = []
    large: list[Path] = []
    for path in sorted(_own_files(folder)):
        fits = path.stat().st_size <= max_mb * 1e6
        (small if fits else large).append(path)
    return small, large


def _own_files(folder: Path) -> list[Path]:
    # Selected by name, because the folder may also contain other files of the user.
    found = [path for pattern in RUN_FILES for path in folder.glob(pattern)]
    # A broken link, or a pipe, has nothing to copy. Other links may lead to files of the user.
    inside = folder.resolve()
    return [path for path in found if path.is_file() and path.resolve().is_relative_to(inside)]
