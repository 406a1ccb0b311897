"""Which format a file has, by its name."""

from collections.abc import Collection
from pathlib import Path

from emea.data.byte_stream import is_gzipped
from emea.errors import ConfigError, DataError

SUFFIXES = {
    ".nt": "ntriples",
    ".ttl": "turtle",
    ".rdf": "rdfxml",
    ".owl": "rdfxml",
    ".xml": "rdfxml",
    ".tsv": "tsv",
    ".csv": "csv",
    ".parquet": "parquet",
}
"""Format by the end of a file's name, before ``.gz`` where it is packed."""

GRAPH_FORMATS = ("ntriples", "turtle", "rdfxml", "tsv", "csv", "parquet")
LINK_FORMATS = ("ntriples", "turtle", "rdfxml", "tsv", "csv")
UNPACKED_FORMATS = ("parquet",)


def file_format(path: Path, given: str | None, allowed: Collection[str], key: str) -> str:
    """The format of a file.

    Args:
        path: the file; its name tells the format.
        given: the format where the user says it.
        allowed: formats that can be read here.
        key: the setting by which the user says it.

    Raises:
        ConfigError: the given format does not exist.
        DataError: the name tells no format.
    """
    if given is not None and given not in allowed:
        raise ConfigError(f"{key} must be null or one of {', '.join(allowed)}, got {given!r}")
    found = given or SUFFIXES.get(_unpacked(path).suffix.lower())
    if found is None or found not in allowed:
        known = ", ".join(suffix for suffix, name in SUFFIXES.items() if name in allowed)
        raise DataError(
            f"{path.name}: the file name tells no format; known endings are {known} "
            f"(most of them also with .gz), or say it with {key}={'|'.join(allowed)}"
        )
    if found in UNPACKED_FORMATS and is_gzipped(path):
        raise DataError(f"{path.name}: {found} packs itself, it cannot be read from .gz")
    return found


def _unpacked(path: Path) -> Path:
    return path.with_suffix("") if is_gzipped(path) else path
