"""``emea merge RUN`` writes both graphs of a run as one graph."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from emea.answer.merging import merged_lines, read_matches
from emea.cli.arguments import number_in, run_options, run_parser
from emea.config.instantiate import check_trusted
from emea.config.paths import READER
from emea.config.run_config import typed
from emea.config.settings.data import OwnFilesSettings, ReadingLimits
from emea.config.settings.setting import SHARE
from emea.data.formats.limits import reading_limits
from emea.data.graph_pair import GraphPair
from emea.data.sources.own_files import NO_LINKS, read_own_graph
from emea.errors import UserError, writing
from emea.record.checked_files import write_lines
from emea.record.pair_file import pair_of_run
from emea.record.run_folder import read_config

log = logging.getLogger(__name__)

DESCRIPTION = """Write one graph in N-Triples that contains the triples of both graphs of a run.
Matched entities have one identifier, that of the source entity, and owl:sameAs triples lead to the
identifiers that it replaces."""

EXAMPLES = """examples:
  emea merge RUN
  emea merge RUN --threshold 0.9 --out merged.nt
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
        default=0.0,
        metavar="P",
        help="minimum probability of a match",
    )
    help = "file to write (default: RUN/merged.nt)"
    parser.add_argument("--out", type=Path, metavar="FILE", help=help)
    options = run_options(parser, arguments)
    found = read_matches(options.alignment or options.run / "alignment.tsv", not options.alignment)
    matches = [match for match in found if match[2] >= options.threshold]
    pair = _pair(options.run, options.trust)
    file = options.out or options.run / "merged.nt"
    with writing(file):
        write_lines(file, merged_lines(pair, matches))
    print(f"Merged {len(matches):,} matches of {pair.name}.")
    print(file)
    return 0


def _pair(folder: Path, trust: Sequence[str]) -> GraphPair:
    """Return the graphs with all their triples and literals, if their files did not change."""
    config = read_config(folder)
    config.trust = list(trust)
    check_trusted(config)
    stored = pair_of_run(folder, config)
    if config.data.get("_target_") != READER:
        return stored
    settings = typed(OwnFilesSettings, config.data)
    source, target = (replace(one, vectors=()) for one in (stored.source, stored.target))
    with suppress(UserError), reading_limits(typed(ReadingLimits, config.data.get("limits"))):
        same = _read(settings, stored.name).shuffled().checksum()
        if same == GraphPair(stored.name, source, target, NO_LINKS).checksum():
            # the run may have left out some triples
            whole = replace(settings, keep_literals=True, keep_isolated=True, ontology=False)
            return _read(whole, stored.name)
    log.warning(
        "The files of the graphs were not found, or changed since the run. The graphs are written "
        "as the run read them, without the literals that it did not use."
    )
    return stored


def _read(settings: OwnFilesSettings, name: str) -> GraphPair:
    files = (Path(str(file)).expanduser() for file in (settings.source, settings.target))
    source, target = (read_own_graph(file, settings)[0] for file in files)
    return GraphPair(name, source, target, NO_LINKS)
