"""``emea align SOURCE TARGET --links FILE``: align two graph files with sensible defaults."""

import argparse
import logging
import shlex
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from emea.answer.merging import Match, read_matches
from emea.cli.arguments import (
    EITHER,
    add_answer_arguments,
    add_formats_argument,
    add_out_argument,
    check_output_folder,
    command_parser,
    data_settings,
)
from emea.config.command_line import check_overrides
from emea.config.composition import composed
from emea.config.settings.execution import (
    AUTO,
    EXPORT_FORMATS,
    LITERALS,
    VECTORS,
    fitting_settings,
    with_own,
)
from emea.data.entity_kinds import is_blank
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.protocol import seen_links
from emea.record.pair_file import load_pair
from emea.record.run_folder import LOG_FILE
from emea.runtime.console import logged

if TYPE_CHECKING:
    from emea.run.outcome import Numbers

FILES = ("source", "target", "links", "test_links", "rejected")
"""Arguments that become settings of the data."""

NUM_EXAMPLES = 3
"""Number of most and least probable matches in the summary."""

SURE, LIKELY = 0.95, 0.5
"""Probability or precision that selects sure matches, and probability that selects more."""

CHOOSE_LITERALS = ("literals", "data.iri_names=true", "data.source_vectors=")
"""Beginnings of settings with which literals are used, however many links there are."""

DESCRIPTION = """Align two graphs: find the counterpart in TARGET of each entity of SOURCE.

Graphs are RDF files in any format, OWL ontologies, or TSV, CSV and Parquet tables. Links are pairs
of known counterparts: two columns, owl:sameAs triples, SSSOM or the Alignment format. They are
optional if the graphs have labels or other literals in common."""

EXAMPLES = """examples:
  emea align atlas.nt karte.ttl --links seeds.tsv
  emea align atlas.nt karte.ttl --links seeds.tsv --target-precision 0.95 --formats nt sssom
  emea align atlas.nt karte.ttl em.iterations=10 --links seeds.tsv --out result
  emea align atlas.nt karte.ttl

On a GPU it uses three RREA and a LightEA, on a CPU three LightEA, with em=one_to_one; their
agreement makes probabilities reliable. With few links or none, labels and other literals are used,
too, and PARIS if the structure of the graphs does not help (docs/literals.md). Any setting of
`emea run` can follow TARGET as key=value. One encoder is used if you choose a model or a method,
for more than 100,000 entities, and on a CPU for graphs that have literals but few links."""


def main(arguments: Sequence[str]) -> int:
    """Align two files, print a summary and return the exit status."""
    options = _parser().parse_intermixed_args(arguments)
    check_output_folder(options.out)
    with logged():
        pair = _read(options)
    # torch is imported after the files were read, so that errors in them are reported quickly.
    import torch

    from emea.run.job import run_job
    from emea.run.method_choice import is_open, suited

    compose = partial(_config, options)
    has_gpu = torch.cuda.is_available()
    options.out.mkdir(parents=True, exist_ok=True)
    with logged(options.out / LOG_FILE):
        config, pair, reason = suited(compose, pair, is_open(options.settings), has_gpu)
        result = run_job(config, options.out, pair=pair)
    labels = result.decision.labels[:, 0].tolist()
    given = {result.pair.source.entity_name(entity) for entity in labels}
    print(summary(result.metrics, options.out, given, result.pair))
    if reason is not None:
        print(f"{reason} See docs/literals.md.")
    if options.show:
        from emea.cli.show import show
        from emea.explain.explainer import Explainer

        show(Explainer(result), options.out)
    return 0


def _read(options: argparse.Namespace) -> GraphPair:
    """Read the graphs, and their literals if there are no links, or only few."""
    if Path(options.source).resolve() == Path(options.target).resolve():
        logging.getLogger(__name__).warning("Both sides are the same file: %s", options.source)
    usual = fitting_settings(AUTO, AUTO, has_gpu=False)
    if options.links is not None and not _chooses_literals(options):
        pair = load_pair(_config(options, usual))
        # torch is imported after the files were read
        from emea.run.method_choice import use_literals

        if not use_literals(pair):
            return pair
    return load_pair(_config(options, [*usual, LITERALS]))


def _chooses_literals(options: argparse.Namespace) -> bool:
    return any(one.startswith(CHOOSE_LITERALS) for one in options.settings)


def _config(options: argparse.Namespace, settings: Sequence[str]) -> DictConfig:
    """Compose the configuration; settings of the user override the defaults."""
    given = {key: value for key, value in vars(options).items() if value is not None}
    usual = list(settings)
    if _chooses_literals(options) and LITERALS not in usual:
        usual.append(LITERALS)
    if "em=none" in options.settings:  # then the settings of EM and its rule have no effect
        usual = [*(one for one in usual if not one.startswith("em.")), "rule=none"]
    named = data_settings({key: given[key] for key in FILES if key in given})
    export = [f"export.formats=[{','.join(('tsv', *options.formats))}]"]
    export += [f"export.{key}={given[key]}" for key in EITHER if key in given]
    own = with_own([*usual, "tracking=none", *export], options.settings)
    chosen = ["data=files", *named, *own]
    further = [] if options.config_dir is None else [f"--config-dir={options.config_dir}"]
    check_overrides([*further, *chosen], defaults=usual)
    return composed(chosen)


def summary(metrics: "Numbers", folder: Path, given: Collection[str], pair: GraphPair) -> str:
    """Summarise the matches, their probabilities, and next steps.

    Args:
        metrics: The numbers of the run.
        folder: Its folder.
        given: The source entities of the training links.
        pair: The graphs, for the labels of the examples.
    """
    from emea.answer.exporting import ALIGNMENT_FILE

    export, links = metrics["export"], metrics["num_links"]
    num_found, num_open = export["num_answered"], export["num_unmatched"]
    counts = ", ".join(f"{count:,} {name}" for name, count in export["num_by_prob"].items())
    num_matches = sum(export["num_by_prob"].values())
    were = "link was" if links["train"] == 1 else "links were"
    several = f", with {num_matches:,} matches" if num_matches > num_found else ""
    lines = [
        f"Matched {num_found:,} of {num_found + num_open:,} source entities without a given link"
        f"{several} ({links['train']:,} {were} given for training).",
        f"Probability of these matches: {counts}.",
    ]
    if "literals" in metrics:
        lines.insert(1, _anchors(metrics["literals"]))
    for name, judged in (("validation", export["validation"]), ("test", export["test"])):
        if judged["num_accepted"]:
            plural = "" if judged["num_links"] == 1 else "s"
            lines.append(
                f"Precision {judged['precision']:.3f} (95% confidence: above "
                f"{judged['precision_low']:.3f}) and recall {judged['recall']:.3f} on "
                f"{judged['num_links']:,} {name} link{plural}, {_seen(name, metrics)}."
            )
    if export["reached"] is False and export["threshold"] is not None:
        wanted, most = export["target_precision"], export["confirmable"]
        at_most = f": they can confirm at most {most:.2f}" if most < wanted else ""
        lines.append(
            f"A precision of {wanted:g} is expected, but the {links['validation']:,} validation "
            f"links do not confirm it{at_most}."
        )
    if "counterparts" in metrics:
        lines.append(_counterparts(metrics["counterparts"]["source"], links["validation"]))
    place, alignment = shlex.quote(str(folder)), folder / ALIGNMENT_FILE
    rows = _shown_matches(alignment, given)
    parts = {"Surest matches": rows[:NUM_EXAMPLES], "Least sure matches": rows[-NUM_EXAMPLES:]}
    for title, shown in (parts if len(rows) > 2 * NUM_EXAMPLES else {"Matches": rows}).items():
        lines += [f"{title}:"] if shown else []
        lines += [
            f"  {prob:.3f}  {_labelled(pair.source, a)}  =  {_labelled(pair.target, b)}"
            for a, b, prob in shown
        ]
    lines += [
        f"Alignment: {alignment}" + _others(alignment),
        f"Look at all matches:  emea show {place}",
        f"Why a match was made: emea explain {place} --entity NAME",
        _selection(export, links, f"emea predict {place}"),
    ]
    return "\n".join(lines)


def _counterparts(share: "Numbers", num_validation: int) -> str:
    """Say how many source entities probably have a counterpart."""
    return (
        f"About {share['value']:.0%} of the entities without a given link have a counterpart (95% "
        f"interval {share['low']:.0%} to {share['high']:.0%}, from {num_validation} validation "
        "links)."
    )


def _seen(name: str, metrics: "Numbers") -> str:
    """Return how the run used the links that judge it."""
    protocol, is_crossed = metrics["protocol"], metrics["num_links"].get("crossed")
    if name == "validation":
        return "each held out from one encoder" if is_crossed else "held out from training"
    used = f"but protocol={protocol} {seen_links(protocol)}"
    return "not used for training" if protocol == "strict" else used


def _anchors(literals: "Numbers") -> str:
    """Summarise the pairs of entities that unambiguous literals suggest."""
    if not literals["num_anchors"]:
        return (
            "No literal suggests a pair: none is equal or similar and unambiguous in both graphs. "
            "If the graphs have no literals, but names in IRIs, try data.iri_names=true."
        )
    kinds = [
        f"{kind['num']:,} {name} (estimated precision {kind['precision_estimate']:.2f})"
        for name, kind in literals["anchor_kinds"].items()
    ]
    pairs = "pair is" if literals["num_anchors"] == 1 else "pairs are"
    found = f"{literals['num_anchors']:,} {pairs} suggested by unambiguous literals"
    return f"{found}: {', '.join(kinds)}."


def _selection(export: "Numbers", links: "Numbers", command: str) -> str:
    """Return the command that selects sure matches or more than these, or what is missing."""
    from emea.run.judgement import FEW_VALIDATION

    none_fits = export["reached"] is False and export["threshold"] is None
    if none_fits or (export["threshold"] or 0) > LIKELY:
        return f"More matches:         {command} --threshold {LIKELY}"
    if not export["num_answered"]:
        amount = "more" if links["train"] else "a few"
        return f"Nothing was matched. Give {amount} known links (--links FILE)."
    # a precision needs enough validation links
    is_usable = links["validation"] >= FEW_VALIDATION and export["target_precision"] is None
    choice = "--target-precision" if is_usable else "--threshold"
    return f"Only sure matches:    {command} {choice} {SURE}"


def _labelled(graph: KnowledgeGraph, name: str) -> str:
    """Return a name, with the label of the entity if the name does not contain it."""
    names = graph.all_entity_names
    label = graph.entity_label(names.index(name)) if name in names else None
    is_known = label is None or label.replace(" ", "_").casefold() in name.casefold()
    return name if is_known else f"{name} ({label})"


def _shown_matches(path: Path, given: Collection[str]) -> list[Match]:
    """Return the matches that are neither training links nor of blank nodes, surest first."""
    found = read_matches(path)
    shown = (row for row in found if row[0] not in given and not any(map(is_blank, row[:2])))
    return sorted(shown, key=lambda row: -row[2])


def _others(path: Path) -> str:
    from emea.answer.schema import RELATIONS_FILE

    texts = {
        "unmatched.tsv": "entities without a match",
        RELATIONS_FILE: "relations that correspond",
    }
    others = sorted(one.name for one in path.parent.glob("alignment.*") if one != path)
    others += [f"{name} ({text})" for name, text in texts.items() if path.with_name(name).exists()]
    return f"; also {', '.join(others)}" if others else ""


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("align", DESCRIPTION, EXAMPLES)
    for side in ("source", "target"):
        parser.add_argument(side, metavar=side.upper(), help=f"file of the {side} graph")
    # without a default, argparse calls them required if another argument is missing
    parser.add_argument(
        "settings", nargs="*", default=[], metavar="key=value", help="settings of emea run"
    )
    for flag, help in {
        "--links": "known links to learn from",
        "--test-links": "links that measure the result and are not used otherwise",
        "--rejected": "pairs that are not links, such as rejected.tsv of emea suggest",
    }.items():
        parser.add_argument(flag, metavar="FILE", help=help)
    add_out_argument(parser, "alignment", Path("alignment"))
    parser.add_argument(
        "--config-dir",
        type=Path,
        metavar="DIR",
        help="folder with your own options, such as model/my_encoder.yaml; also set trust=[MODULE]",
    )
    add_formats_argument(parser, [*(one for one in EXPORT_FORMATS if one != "tsv"), VECTORS], [])
    add_answer_arguments(parser)
    parser.add_argument(
        "--show", action="store_true", help="also write the alignment as a page and open it"
    )
    return parser
