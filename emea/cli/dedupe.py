"""``emea dedupe GRAPH`` finds entities of one graph that are the same."""

import argparse
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

from emea import __version__
from emea.answer.alignment import Origin
from emea.cli.arguments import (
    add_force_argument,
    add_out_argument,
    command_parser,
    data_settings,
    number_in,
)
from emea.config.command_line import check_overrides
from emea.config.run_config import typed
from emea.config.usual_settings import LITERALS
from emea.data.formats.limits import reading_limits
from emea.data.formats.settings import ReadingLimits
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import graph_checksum
from emea.data.sources.own_files import read_own_graph
from emea.data.sources.settings import OwnFilesSettings
from emea.errors import ConfigError, writing
from emea.record.checked_files import write_json
from emea.record.outputs import locked_results
from emea.runtime.console import logged, say
from emea.runtime.regular_file import check_local
from emea.setting import SHARE

if TYPE_CHECKING:
    from emea.clusters.clustered import Clustered

RECORD_FILE = "dedupe.json"

LIKELY = 0.5

DESCRIPTION = """Find entities of one graph or table that are the same, and put them into clusters.
The literals of the entities are compared; no known links are needed."""

EXAMPLES = """examples:
  emea dedupe persons.csv
  emea dedupe catalogue.nt --threshold 0.9 --out catalogue_clusters
  emea dedupe books.csv data.id_column=isbn

GRAPH is an RDF file in any format, or a TSV, CSV or Parquet table. Settings of the data of `emea
run` can follow it. The folder gets clusters.tsv, pairs.tsv with probabilities, clusters.sssom.tsv,
merged.nt, and clusters.html to look at (docs/clusters.md)."""


def main(arguments: Sequence[str]) -> int:
    """Write the clusters and return the exit status."""
    options = _parser().parse_intermixed_args(arguments)
    from emea.clusters.writing import FILES

    with locked_results(options.out, RECORD_FILE, {*FILES, RECORD_FILE}, options.force):
        _dedupe(options)
    return 0


def _dedupe(options: argparse.Namespace) -> None:
    """Read the graph, find its duplicates and write them."""
    from emea.clusters.clustered import Clustered
    from emea.clusters.duplicates import find_duplicates
    from emea.clusters.own_records import own_records
    from emea.clusters.writing import write_clusters

    name = Path(options.graph).name
    with logged():
        graph = _read(options)
        duplicates = find_duplicates(own_records(graph, name), options.threshold)
    found = Clustered(
        name=name,
        graphs={"graph": graph},
        pairs=duplicates.pairs,
        probs=duplicates.probs,
        clusters=duplicates.clusters,
        threshold=options.threshold,
    )
    checksum = graph_checksum(graph)
    folder: Path = options.out
    with writing(folder):
        write_clusters(folder, found, origin(name, checksum, options.threshold))
        record = {
            "emea_version": __version__,
            "graph": name,
            "checksum": checksum,
            "threshold": options.threshold,
            "num_entities": graph.num_entities,
            "num_clusters": len(found.rows),
            "num_members": len(found.numbers),
            "num_decoys": duplicates.num_decoys,
            "weights": duplicates.weights,
        }
        write_json(folder / RECORD_FILE, record)
    say(_summary(found, folder))


def _read(options: argparse.Namespace) -> KnowledgeGraph:
    """Read the graph with its literals."""
    other = [one for one in options.settings if not one.startswith("data.")]
    if other:
        raise ConfigError(
            f"emea dedupe has settings of the data only, such as data.id_column=isbn; got "
            f"{other[0]}."
        )
    check_local(options.graph, "GRAPH")
    path = Path(options.graph).expanduser()
    if not path.exists():
        raise ConfigError(f"There is no file {options.graph}. Check the path.")
    if path.is_dir():
        raise ConfigError(f"GRAPH must be a file, but {options.graph} is a folder.")
    files = data_settings({"source": options.graph, "target": options.graph})
    usual = ["data=files", *files, LITERALS, "data.keep_isolated=true"]
    config = check_overrides([*usual, *options.settings])
    settings = typed(OwnFilesSettings, config.data)
    with reading_limits(typed(ReadingLimits, config.data.get("limits"))):
        return read_own_graph(path, settings)[0]


def origin(name: str, checksum: str, threshold: float) -> Origin:
    """Return the provenance of clusters; the same data give the same identity."""
    identity = uuid5(NAMESPACE_URL, f"{checksum} {threshold}")
    return Origin(
        run_id=identity.hex,
        run_name=f"clusters of {name}",
        date=datetime.date.today().isoformat(),
        tool_version=__version__,
        settings=f"threshold {threshold:g}",
    )


def _summary(found: "Clustered", folder: Path) -> str:
    """Say how many entities are duplicates, and where the results are."""
    num_entities = len(found.clusters)
    counts = f"No two of {num_entities:,} entities are probably the same."
    if found.rows:
        clusters = "cluster" if len(found.rows) == 1 else "clusters"
        counts = (
            f"Found {len(found.rows):,} {clusters} with {len(found.numbers):,} of "
            f"{num_entities:,} entities."
        )
    return "\n".join([counts, *places(folder)])


def places(folder: Path) -> list[str]:
    """Say where the files of clusters are."""
    from emea.clusters.writing import CLUSTERS_FILE, FILES, PAGE_FILE

    others = ", ".join(sorted({*FILES} - {CLUSTERS_FILE, PAGE_FILE}))
    return [
        f"Clusters: {folder / CLUSTERS_FILE}; also {others}",
        f"Look at them in a browser: {folder / PAGE_FILE}",
    ]


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("dedupe", DESCRIPTION, EXAMPLES)
    parser.add_argument("graph", metavar="GRAPH", help="file of the graph or table")
    parser.add_argument(
        "settings",
        nargs="*",
        default=[],
        metavar="data.key=value",
        help="settings of the data",
    )
    parser.add_argument(
        "--threshold",
        type=number_in(SHARE, float),
        default=LIKELY,
        metavar="P",
        help="minimum probability of the pairs that make a cluster (default: %(default)s)",
    )
    add_out_argument(parser, "duplicates", Path("duplicates"))
    add_force_argument(parser)
    return parser
