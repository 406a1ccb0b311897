"""``emea merge RUN`` writes both graphs of a run as one graph."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from omegaconf import DictConfig

from emea.answer.merging import Match, merged_lines
from emea.cli.arguments import number_in, run_options, run_parser
from emea.config.instantiate import check_trusted
from emea.config.settings.setting import SHARE
from emea.data.formats.tab_file import read_lines
from emea.data.graph_pair import GraphPair
from emea.data.links import silent_links
from emea.errors import DataError, writing
from emea.record.checked_files import opened, write_lines
from emea.record.pair_file import load_pair, pair_of_run
from emea.record.run_folder import read_config

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
    matches = [
        match
        for match in read_matches(
            options.alignment or options.run / "alignment.tsv", is_own=not options.alignment
        )
        if match[2] >= options.threshold
    ]
    pair = _pair(options.run, options.trust)
    file = options.out or options.run / "merged.nt"
    with writing(file):
        write_lines(file, merged_lines(pair, matches))
    print(f"Merged {len(matches):,} matches of {pair.name}.")
    print(file)
    return 0


def _pair(folder: Path, trust: Sequence[str]) -> GraphPair:
    """Return the graphs with all their triples and literals, if they are in files."""
    config = read_config(folder)
    config.trust = list(trust)
    check_trusted(config)
    files = [config.data.get(side) for side in ("source", "target")]
    if not all(file is not None and Path(file).is_file() for file in files):
        return pair_of_run(folder, config)
    known: DictConfig = config.data
    # the files, because the run may have left out some of their triples
    for key, value in {"keep_literals": True, "keep_isolated": True, "ontology": False}.items():
        if key in known:
            known[key] = value
    with silent_links():
        return load_pair(config)


def read_matches(path: Path, is_own: bool = True) -> list[Match]:
    """Return the matches of an ``alignment.tsv``, which is the file of a run if ``is_own``."""
    try:
        with opened(path) if is_own else nullcontext():
            rows = (line.split("\t") for line in read_lines(path)[1:])
            return [(source, target, float(prob)) for source, target, prob, *_ in rows]
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read as an alignment.tsv of emea: {error}. Give such a file with "
            "--alignment."
        ) from error
