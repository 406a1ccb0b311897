"""``emea merge RUN`` writes both graphs of a run as one graph."""

import argparse
import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from omegaconf import DictConfig

from emea.answer.merging import (
    BELOW_THRESHOLD,
    SAME_GRAPH,
    LeftOut,
    chosen_matches,
    known_matches,
    left_out_lines,
    merged_lines,
    read_matches,
)
from emea.cli.arguments import add_force_argument, number_in, run_options, run_parser
from emea.config.instantiate import check_trusted
from emea.config.paths import READER
from emea.config.run_config import typed
from emea.data.formats.limits import reading_limits
from emea.data.formats.settings import ReadingLimits
from emea.data.graph_pair import GraphPair
from emea.data.sources.own_files import NO_LINKS, read_own_graph
from emea.data.sources.settings import OwnFilesSettings
from emea.errors import UserError, writing
from emea.record import outputs
from emea.record.checked_files import write_lines
from emea.record.outputs import locked_file
from emea.record.pair_file import pair_of_run
from emea.record.run_folder import (
    ALIGNMENT_FILE,
    read_config,
    read_metrics,
    recorded_checksum,
)
from emea.runtime.console import say
from emea.setting import SHARE

log = logging.getLogger(__name__)

MARK = (
    "# Merged by emea: both graphs of a run, with one identifier for matched entities"
)
"""The first line, by which the command recognises its own files."""

LEAST_PROB = 0.5
"""Matches that are less probable are not merged, unless a threshold is given."""

LEFT_OUT = "_left_out.tsv"
"""End of the name of the file with the matches that are not merged."""

DESCRIPTION = """Write one graph in N-Triples that contains the triples of both graphs of a run.
Matched entities have one identifier, that of the source entity, and owl:sameAs triples lead to the
identifiers that it replaces.

Matches below the threshold are left out, and so are matches that would join two entities of one
graph, unless the cardinality of the run allows several counterparts."""

EXAMPLES = """examples:
  emea merge RUN
  emea merge RUN --threshold 0.9 --out merged.nt
  emea merge RUN --threshold 0
  emea merge RUN --alignment RUN/predictions/alignment.tsv

RUN is the folder of a finished run. Literals are written, also if the run did not use them."""


def main(arguments: Sequence[str]) -> int:
    """Write the merged graph and return the exit status."""
    parser = run_parser("merge", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--alignment",
        type=Path,
        metavar="FILE",
        help="alignment.tsv of emea predict (default: that of the run)",
    )
    parser.add_argument(
        "--threshold",
        type=number_in(SHARE, float),
        metavar="P",
        help=f"minimum probability of a match (default: that of the run, at least {LEAST_PROB})",
    )
    help = "file to write (default: RUN/merged.nt)"
    parser.add_argument("--out", type=Path, metavar="FILE", help=help)
    add_force_argument(parser)
    options = run_options(parser, arguments)
    file: Path = options.out or options.run / "merged.nt"
    is_default = options.out is None
    rest = file.with_name(f"{file.stem}{LEFT_OUT}")
    with (
        locked_file(file, options.force, is_default, kind=outputs.MERGED),
        locked_file(rest, options.force, is_default, kind=outputs.LEFT_OUT),
    ):
        _merge(options, file, rest)
    return 0


def _merge(options: argparse.Namespace, file: Path, rest: Path) -> None:
    """Write the merged graph, and print how many matches it contains."""
    alignment: Path = options.alignment or options.run / ALIGNMENT_FILE
    checksum = recorded_checksum(alignment)
    found = read_matches(alignment, is_own=not options.alignment, checksum=checksum)
    config = read_config(options.run)
    config.trust = list(options.trust)
    check_trusted(config)
    stored = pair_of_run(options.run, config)
    known = known_matches(alignment, found, stored)
    threshold = options.threshold
    if threshold is None:
        export = read_metrics(options.run, is_complete=True)["export"]
        threshold = max(LEAST_PROB, export["threshold"] or 0.0)
    pair = _whole(stored, config)
    matches, left_out = chosen_matches(known, threshold, stored.cardinality)
    with writing(file):
        write_lines(file, chain([MARK], merged_lines(pair, matches)))
    with writing(rest):
        # a list of an earlier time does not fit this file
        rest.unlink(missing_ok=True)
        if left_out:
            write_lines(rest, left_out_lines(pair, left_out))
    say(f"Merged {_counted(len(matches))} of {pair.name}.")
    if left_out:
        say(f"Left out {_reasons(left_out, threshold)}: {rest}")
    say(file)


def _counted(number: int) -> str:
    return "1 match" if number == 1 else f"{number:,} matches"


def _reasons(left_out: Sequence[LeftOut], threshold: float) -> str:
    """Count the matches that are left out by reason."""
    texts = {
        BELOW_THRESHOLD: f"with a probability below {threshold:.6g}",
        SAME_GRAPH: f"that {SAME_GRAPH}",
    }
    counts = Counter(one.reason for one in left_out)
    return ", ".join(
        f"{_counted(counts[reason])} {text}"
        for reason, text in texts.items()
        if counts[reason]
    )


def _whole(stored: GraphPair, config: DictConfig) -> GraphPair:
    """Return the graphs with all their triples and literals, if their files did not change."""
    if config.data.get("_target_") != READER:
        return stored
    settings = typed(OwnFilesSettings, config.data)
    source, target = (
        replace(one, vectors=()) for one in (stored.source, stored.target)
    )
    with (
        suppress(UserError),
        reading_limits(typed(ReadingLimits, config.data.get("limits"))),
    ):
        same = _read(settings, stored.name).shuffled().checksum()
        if same == GraphPair(stored.name, source, target, NO_LINKS).checksum():
            # the run may have left out some triples
            whole = replace(
                settings,
                keep_literals=True,
                keep_isolated=True,
                ontology=False,
                iri_names=False,
            )
            return _read(whole, stored.name)
    log.warning(
        "The files of the graphs were not found, or changed since the run. The graphs are written "
        "as the run read them, without the literals that it did not use."
    )
    return stored


def _read(settings: OwnFilesSettings, name: str) -> GraphPair:
    files = (
        Path(str(file)).expanduser() for file in (settings.source, settings.target)
    )
    source, target = (read_own_graph(file, settings)[0] for file in files)
    return GraphPair(name, source, target, NO_LINKS)
