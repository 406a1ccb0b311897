"""The files an alignment can be written as."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from emea.export.alignment import Alignment
from emea.export.json_lines import json_lines
from emea.export.ntriples import sameas_triples
from emea.export.sssom import sssom_lines
from emea.export.tab_separated import matched_lines, unmatched_lines
from emea.tracking.atomic import write_lines

Lines = Callable[[Alignment], Iterator[str]]

ALIGNMENT_FILE = "alignment.tsv"
"""The answer of every run, whatever else was asked for."""

FORMATS: dict[str, dict[str, Lines]] = {
    "tsv": {ALIGNMENT_FILE: matched_lines, "unmatched.tsv": unmatched_lines},
    "nt": {"alignment.nt": sameas_triples},
    "sssom": {"alignment.sssom.tsv": sssom_lines},
    "jsonl": {"alignment.jsonl": json_lines},
}
"""What each format writes, by the file's name."""

ALIGNMENT_FILES = frozenset(file for files in FORMATS.values() for file in files)
"""All of them."""

ALWAYS = "tsv"
"""Written whatever else is."""


def write_formats(folder: Path, alignment: Alignment, formats: Collection[str]) -> list[Path]:
    """Write an alignment in some formats, each file at once or not at all.

    Args:
        folder: where to; made if missing.
        alignment: what to write.
        formats: keys of ``FORMATS``; ``tsv`` need not be among them.

    Returns:
        The files.
    """
    written = []
    for name, files in FORMATS.items():
        if name == ALWAYS or name in formats:
            for file, lines in files.items():
                write_lines(folder / file, lines(alignment))
                written.append(folder / file)
    return written
