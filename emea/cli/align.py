"""``emea align SOURCE TARGET --links FILE``: align two graph files with sensible defaults."""

import argparse
import logging
import math
import shlex
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from omegaconf import DictConfig

from emea.answer.merging import Match, read_matches
from emea.answer.settings import EXPORT_FORMATS, VECTORS
from emea.cli.arguments import (
    EITHER,
    add_answer_arguments,
    add_author_argument,
    add_formats_argument,
    add_out_argument,
    check_output_folder,
    command_parser,
    data_settings,
    labelled,
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
from emea.data.entity_kinds import is_blank
from emea.data.formats.triple_collector import OnlyLiteralsError
from emea.data.graph_pair import GraphPair
from emea.data.protocol import seen_links
from emea.record.pair_file import load_pair
from emea.record.run_folder import ALIGNMENT_FILE, LOG_FILE
from emea.runtime.console import logged, say

if TYPE_CHECKING:
    from emea.run.outcome import Numbers
    from emea.run.result import RunResult

FILES = ("source", "target", "links", "test_links", "rejected")
"""Arguments that become settings of the data."""

NUM_EXAMPLES = 3
"""Number of most and least probable matches in the summary."""

SURE, LIKELY = 0.95, 0.5
"""Probability or precision that selects sure matches, and probability that selects more."""

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
    say(summary(result.metrics, options.out, given, result.pair))
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


def summary(
    metrics: "Numbers", folder: Path, given: Collection[str], pair: GraphPair
) -> str:
    """Summarise the matches, their probabilities, and next steps.

    Args:
        metrics: The numbers of the run.
        folder: Its folder.
        given: The source entities of the training links.
        pair: The graphs, for the labels of the examples.
    """
    export = metrics["export"]
    links = metrics["num_links"]
    place = shlex.quote(str(folder))
    alignment = folder / ALIGNMENT_FILE
    lines = [
        *_counts(metrics),
        *_precisions(metrics),
        *_shares(metrics),
        *_examples(_shown_matches(alignment, given), pair),
        f"Alignment: {alignment}" + _others(alignment),
        f"Look at all matches:  emea show {place}",
        f"Why a match was made: emea explain {place} --entity NAME",
        _selection(export, links, f"emea predict {place}"),
    ]
    return "\n".join(lines)


def _counts(metrics: "Numbers") -> list[str]:
    """Say how many entities are matched, and what the matches are based on."""
    export = metrics["export"]
    num_train = metrics["num_links"]["train"]
    num_found = export["num_answered"]
    num_open = export["num_unmatched"]
    counts = ", ".join(
        f"{count:,} {name}" for name, count in export["num_by_prob"].items()
    )
    num_matches = sum(export["num_by_prob"].values())
    were = "link was" if num_train == 1 else "links were"
    several = f", with {num_matches:,} matches" if num_matches > num_found else ""
    lines = [
        f"Matched {num_found:,} of {num_found + num_open:,} source entities without a given link"
        f"{several} ({num_train:,} {were} given for training)."
    ]
    # decoys judge the pairs that literals suggest
    if "literals" in metrics and not (
        "decoys" in metrics and metrics["literals"]["num_anchors"]
    ):
        lines.append(_anchors(metrics["literals"]))
    lines.append(f"Probability of these matches: {counts}.")
    return lines


def _precisions(metrics: "Numbers") -> list[str]:
    """Say what links confirm: the precision, and whether it reaches the target."""
    export = metrics["export"]
    num_validation = metrics["num_links"]["validation"]
    lines = []
    for name, judged in (
        ("validation", export["validation"]),
        ("test", export["test"]),
    ):
        if judged["num_accepted"]:
            plural = "" if judged["num_links"] == 1 else "s"
            lines.append(
                f"Precision {judged['precision']:.3f} (95% confidence: above "
                f"{judged['precision_low']:.3f}) and recall {judged['recall']:.3f} on "
                f"{judged['num_links']:,} {name} link{plural}, {_seen(name, metrics)}."
            )
    wanted = export["target_precision"]
    if wanted is not None and not num_validation:
        lines.append(
            f"The precision of {wanted:g} is an estimate from decoys: no validation link confirms "
            "it."
        )
    elif export["reached"] is False and export["threshold"] is not None:
        lines.append(_not_confirmed(export, num_validation))
    return lines


def _not_confirmed(export: "Numbers", num_validation: int) -> str:
    """Say that links do not confirm a target precision, and what they confirm."""
    wanted = export["target_precision"]
    low = export["precision_low"]
    found = f"The target precision of {wanted:g} is expected, but not confirmed: "
    if low is None or math.isnan(low):
        return (
            f"{found}the share of entities with a counterpart is not estimated, so links do not "
            "show the precision over all source entities."
        )
    links = "validation link shows" if num_validation == 1 else "validation links show"
    return (
        f"{found}with 95% confidence, the {num_validation:,} {links} a precision above {low:.2f} "
        "over all source entities."
    )


def _shares(metrics: "Numbers") -> list[str]:
    """Say how many entities probably have a counterpart, if the run estimated it."""
    lines = []
    if "decoys" in metrics:
        lines.append(_decoys(metrics["decoys"], metrics["export"]))
    if "counterparts" in metrics:
        num_validation = metrics["num_links"]["validation"]
        lines.append(_counterparts(metrics["counterparts"]["source"], num_validation))
    return lines


def _examples(rows: Sequence[tuple[str, str, float]], pair: GraphPair) -> list[str]:
    """List the matches, or the surest and the least sure ones of many."""
    parts = {"Matches": rows}
    if len(rows) > 2 * NUM_EXAMPLES:
        parts = {
            "Surest matches": rows[:NUM_EXAMPLES],
            "Least sure matches": rows[-NUM_EXAMPLES:],
        }
    lines = []
    for title, shown in parts.items():
        lines += [f"{title}:"] if shown else []
        lines += [
            f"  {prob:.3f}  {labelled(pair.source, a)}  =  {labelled(pair.target, b)}"
            for a, b, prob in shown
        ]
    return lines


def _counterparts(share: "Numbers", num_validation: int) -> str:
    """Say how many source entities probably have a counterpart."""
    return (
        f"About {share['value']:.0%} of the entities without a given link have a counterpart (95% "
        f"interval {share['low']:.0%} to {share['high']:.0%}, from {num_validation} validation "
        "links)."
    )


def _decoys(decoys: "Numbers", export: "Numbers") -> str:
    """Say how many source entities probably have a counterpart, and what precision to expect."""
    found = (
        f"Estimated from decoys: about {decoys['share']:.0%} of the entities without a given link "
        f"have a counterpart (95% interval {decoys['share_low']:.0%} to {decoys['share_high']:.0%})"
    )
    if not export["num_answered"] or not math.isfinite(export["mean_prob"] or math.nan):
        return f"{found}."
    return f"{found}, and {export['mean_prob']:.0%} of these matches are right."


def _seen(name: str, metrics: "Numbers") -> str:
    """Return how the run used the links that judge it."""
    protocol = metrics["protocol"]
    is_crossed = metrics["num_links"].get("crossed")
    if name == "validation":
        return (
            "each held out from one encoder" if is_crossed else "held out from training"
        )
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
    is_usable = (
        links["validation"] >= FEW_VALIDATION and export["target_precision"] is None
    )
    choice = "--target-precision" if is_usable else "--threshold"
    return f"Only sure matches:    {command} {choice} {SURE}"


def _shown_matches(path: Path, given: Collection[str]) -> list[Match]:
    """Return the matches that are neither training links nor of blank nodes, surest first."""
    found = read_matches(path)
    shown = (
        row for row in found if row[0] not in given and not any(map(is_blank, row[:2]))
    )
    return sorted(shown, key=lambda row: -row[2])


def _others(path: Path) -> str:
    from emea.answer.schema import RELATIONS_FILE

    texts = {
        "unmatched.tsv": "entities without a match",
        RELATIONS_FILE: "relations that correspond",
    }
    others = sorted(one.name for one in path.parent.glob("alignment.*") if one != path)
    others += [
        f"{name} ({text})"
        for name, text in texts.items()
        if path.with_name(name).exists()
    ]
    return f"; also {', '.join(others)}" if others else ""


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
