"""``emea align SOURCE TARGET --links FILE``: align two graph files with sensible defaults."""

import argparse
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from omegaconf import DictConfig

from emea.answer.merging import read_matches
from emea.answer.settings import EXPORT_FORMATS, VECTORS
from emea.answer.summary import continuing_lines, result_lines
from emea.cli.arguments import (
    EITHER,
    add_answer_arguments,
    add_author_argument,
    add_formats_argument,
    add_out_argument,
    check_output_folder,
    command_parser,
    data_settings,
    quoted,
)
from emea.config.command_line import check_overrides, unchecked
from emea.config.usual_settings import (
    AUTO,
    LITERALS,
    fitting_settings,
    of_one_encoder,
    with_own,
)
from emea.data.formats.triple_collector import OnlyLiteralsError
from emea.data.graph_pair import GraphPair
from emea.record.pair_file import load_pair
from emea.record.run_folder import ALIGNMENT_FILE, LOG_FILE
from emea.runtime.console import logged, say

if TYPE_CHECKING:
    from emea.run.result import RunResult

FILES = ("source", "target", "links", "test_links", "rejected")
"""Arguments that become settings of the data."""

CHOOSE_LITERALS = ("literals", "data.iri_names=true", "data.source_vectors=")
"""Beginnings of settings with which literals are used, however many links there are."""

DESCRIPTION = """Align two graphs: find the counterpart in TARGET of each entity of SOURCE. Further
graphs can follow; then all of them are aligned and get one clustering (docs/clusters.md).

Graphs are RDF files in any format, OWL ontologies, or TSV, CSV and Parquet tables. Links are pairs
of known counterparts: two columns, owl:sameAs triples, SSSOM or the Alignment format. They are
optional if the graphs have labels or other literals in common."""

EXAMPLES = """examples:
  emea align atlas.nt karte.ttl --links seeds.tsv
  emea align atlas.nt karte.ttl --links seeds.tsv --target-precision 0.95 --formats nt sssom
  emea align atlas.nt karte.ttl em.iterations=10 --links seeds.tsv --out result
  emea align books.csv library.csv 'data.id_column="id,isbn"'
  emea align books.csv library.csv shop.csv --out three
  emea align atlas.nt karte.ttl

On a GPU it uses three RREA and a LightEA, on a CPU three LightEA, with em=one_to_one; their
agreement makes probabilities reliable. With few links or none, labels and other literals are used,
too, and PARIS if the structure of the graphs does not help (docs/literals.md). Any setting of
`emea run` can follow TARGET as key=value. One encoder is used if you choose a model or a method,
for more than 100,000 entities, and on a CPU for graphs that have literals but few links."""


def main(arguments: Sequence[str]) -> int:
    """Align two files or more, print a summary and return the exit status."""
    options = _parser().parse_intermixed_args(arguments)
    if options.dictionary is not None:
        options.settings = [
            *options.settings,
            f"literals.dictionary={quoted(options.dictionary)}",
        ]
    further = [one for one in options.settings if _is_file(one)]
    if further:
        from emea.cli.align_several import Steps, align_several

        options.settings = [one for one in options.settings if one not in further]
        files = [options.source, options.target, *further]
        return align_several(options, files, Steps(read_pair, aligned))
    check_output_folder(options.out)
    result, reason = aligned(options)
    labels = result.decision.labels[:, 0].tolist()
    given = {result.pair.source.entity_name(entity) for entity in labels}
    matches = read_matches(options.out / ALIGNMENT_FILE)
    say(*result_lines(result.metrics, matches, given, result.pair))
    say(*continuing_lines(result.metrics, options.out))
    if reason is not None:
        say(f"{reason} See docs/literals.md.")
    if options.show:
        from emea.cli.show import show
        from emea.explain.explainer import Explainer

        show(Explainer(result), options.out)
    return 0


def _is_file(argument: str) -> bool:
    """Return whether an argument names a further graph, not a setting."""
    return "=" not in argument and Path(argument).expanduser().is_file()


def aligned(
    options: argparse.Namespace, pair: GraphPair | None = None
) -> tuple["RunResult", str | None]:
    """Align two graphs, and return the run and why its method was chosen.

    Args:
        options: The arguments of the command.
        pair: The graphs, if they were read before.
    """
    if pair is None:
        with logged():
            pair = read_pair(options)
    # torch is imported after the files were read, so that errors in them are reported quickly.
    import torch

    from emea.record.run_header import Launch
    from emea.run.job import run_job
    from emea.run.method_choice import is_open, suited

    look = partial(_unchecked_config, options)
    has_gpu = torch.cuda.is_available()
    options.out.mkdir(parents=True, exist_ok=True)
    with logged(options.out / LOG_FILE):
        settings, pair, reason = suited(look, pair, is_open(options.settings), has_gpu)
        config = _config(options, settings)
        result = run_job(config, options.out, Launch(is_checked=True), pair=pair)
    return result, reason


def read_pair(options: argparse.Namespace) -> GraphPair:
    """Read the graphs, and their literals if there are no links, or only few.

    The settings of the user are checked before, because reading can take minutes.
    """
    if Path(options.source).resolve() == Path(options.target).resolve():
        logging.getLogger(__name__).warning(
            "Both sides are the same file: %s", options.source
        )
    usual = fitting_settings(AUTO, AUTO, has_gpu=False)
    if options.links is not None and not _chooses_literals(options):
        # a table of entities has only literals, so that it cannot be read without them
        with suppress(OnlyLiteralsError):
            pair = load_pair(_config(options, usual))
            # torch is imported after the files were read
            from emea.run.method_choice import use_literals

            if not use_literals(pair):
                return pair
        # the settings of the user were checked
        return load_pair(_unchecked_config(options, [*of_one_encoder(usual), LITERALS]))
    # graphs with literals have one encoder on a CPU: its configuration is composed once
    return load_pair(_config(options, [*of_one_encoder(usual), LITERALS]))


def _chooses_literals(options: argparse.Namespace) -> bool:
    return any(one.startswith(CHOOSE_LITERALS) for one in options.settings)


def _config(options: argparse.Namespace, settings: Sequence[str]) -> DictConfig:
    """Check and compose the configuration; settings of the user override the defaults."""
    typed = _typed(options, settings)
    further = (
        [] if options.config_dir is None else [f"--config-dir={options.config_dir}"]
    )
    return check_overrides([*further, *typed.settings], defaults=typed.usual)


def _unchecked_config(
    options: argparse.Namespace, settings: Sequence[str]
) -> DictConfig:
    """Compose a configuration that decides what to do, and that no run uses.

    A configuration was checked before, so that the folder of ``--config-dir`` is searched.
    """
    return unchecked(_typed(options, settings).settings)


class Typed(NamedTuple):
    """All settings of the command, and the defaults among them, which may be without effect."""

    settings: list[str]
    usual: list[str]


def _typed(options: argparse.Namespace, settings: Sequence[str]) -> Typed:
    """Return the settings as they would be typed after ``emea run``."""
    given = {key: value for key, value in vars(options).items() if value is not None}
    usual = list(settings)
    if _chooses_literals(options) and LITERALS not in usual:
        usual.append(LITERALS)
    if (
        "em=none" in options.settings
    ):  # then the settings of EM and its rule have no effect
        usual = [*(one for one in usual if not one.startswith("em.")), "rule=none"]
    named = data_settings({key: given[key] for key in FILES if key in given})
    export = [f"export.formats=[{','.join(('tsv', *options.formats))}]"]
    export += [f"export.{key}={given[key]}" for key in EITHER if key in given]
    export += (
        [f"export.license={quoted(given['license'])}"] if "license" in given else []
    )
    export += [f"author={quoted(given['author'])}"] if "author" in given else []
    own = with_own([*usual, "tracking=none", *export], options.settings)
    return Typed(["data=files", *named, *own], usual)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("align", DESCRIPTION, EXAMPLES)
    for side in ("source", "target"):
        parser.add_argument(
            side, metavar=side.upper(), help=f"file of the {side} graph"
        )
    # without a default, argparse calls them required if another argument is missing
    parser.add_argument(
        "settings",
        nargs="*",
        default=[],
        metavar="key=value",
        help="settings of emea run, and files of further graphs",
    )
    for flag, help in {
        "--links": "known links to learn from",
        "--test-links": "links that measure the result and are not used otherwise",
        "--rejected": "pairs that are in no answer, such as rejected.tsv of emea show",
    }.items():
        parser.add_argument(flag, metavar="FILE", help=help)
    parser.add_argument(
        "--dictionary",
        metavar="NAME|FILE",
        help="dictionary that translates names in another script or language: zh-en, ja-en, or a "
        "file with two columns (docs/literals.md)",
    )
    add_out_argument(parser, "alignment", Path("alignment"))
    parser.add_argument(
        "--config-dir",
        type=Path,
        metavar="DIR",
        help="folder with your own options, such as model/my_encoder.yaml; also set trust=[MODULE]",
    )
    add_formats_argument(
        parser, [*(one for one in EXPORT_FORMATS if one != "tsv"), VECTORS], []
    )
    add_answer_arguments(parser, (*EITHER, "license"))
    add_author_argument(parser)
    parser.add_argument(
        "--show",
        action="store_true",
        help="also write the alignment as a page and open it",
    )
    return parser
