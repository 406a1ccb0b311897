"""The summary of a run: counts, precisions, examples, and commands to continue with."""

import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from emea.answer.merging import Match
from emea.answer.schema import RELATIONS_FILE
from emea.data.entity_kinds import is_blank
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.protocol import seen_links
from emea.record.file_names import ALIGNMENT_FILE

Numbers = Mapping[str, Any]
"""Numbers of ``metrics.json``, or of one of its sections, by name."""

NUM_EXAMPLES = 3
"""Number of most and least probable matches in the summary."""

SURE, LIKELY = 0.95, 0.5
"""Probability or precision that selects sure matches, and probability that selects more."""

NOT_CALIBRATED = (
    "These probabilities are not calibrated: there are no validation links, and decoys do not "
    "judge this kind of data. Check some matches before you rely on them."
)

FEW_VALIDATION = 20
"""Fewer validation links than this are too few, unless there are none at all."""


def result_lines(
    metrics: Numbers,
    matches: Sequence[Match],
    given: Collection[str],
    pair: GraphPair,
) -> list[str]:
    """Summarise the matches and their probabilities.

    Args:
        metrics: The numbers of the run.
        matches: Its matches; those of blank nodes are not shown as examples.
        given: The source entities of the training links, which are not shown, either.
        pair: The graphs, for the labels of the examples.
    """
    return [
        *_counts(metrics),
        *_precisions(metrics),
        *_shares(metrics),
        *_examples(_shown_matches(matches, given), pair),
    ]


def continuing_lines(metrics: Numbers, folder: Path) -> list[str]:
    """Name the files of the answer, and the commands to continue with.

    Args:
        metrics: The numbers of the run.
        folder: Its folder.
    """
    place = shlex.quote(str(folder))
    alignment = folder / ALIGNMENT_FILE
    return [
        f"Alignment: {alignment}" + _others(alignment),
        f"Look at all matches:  emea show {place}",
        f"Why a match was made: emea explain {place} --entity NAME",
        next_selection(
            metrics["export"], metrics["num_links"], f"emea predict {place}"
        ),
    ]


def labelled(graph: KnowledgeGraph, name: str) -> str:
    """Return a name, with the label of the entity if the name does not contain it."""
    names = graph.all_entity_names
    label = graph.entity_label(names.index(name)) if name in names else None
    is_known = label is None or label.replace(" ", "_").casefold() in name.casefold()
    return name if is_known else f"{name} ({label})"


def _counts(metrics: Numbers) -> list[str]:
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


def _precisions(metrics: Numbers) -> list[str]:
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


def _not_confirmed(export: Numbers, num_validation: int) -> str:
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


def _shares(metrics: Numbers) -> list[str]:
    """Say how many entities probably have a counterpart, if the run estimated it."""
    lines = []
    if "decoys" in metrics:
        lines.append(_decoys(metrics["decoys"], metrics["export"]))
    elif not metrics["num_links"]["validation"]:
        lines.append(NOT_CALIBRATED)
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


def _counterparts(share: Numbers, num_validation: int) -> str:
    """Say how many source entities probably have a counterpart."""
    return (
        f"About {share['value']:.0%} of the entities without a given link have a counterpart (95% "
        f"interval {share['low']:.0%} to {share['high']:.0%}, from {num_validation} validation "
        "links)."
    )


def _decoys(decoys: Numbers, export: Numbers) -> str:
    """Say how many source entities probably have a counterpart, and what precision to expect."""
    found = (
        f"Estimated from decoys: about {decoys['share']:.0%} of the entities without a given link "
        f"have a counterpart (95% interval {decoys['share_low']:.0%} to {decoys['share_high']:.0%})"
    )
    if not export["num_answered"] or not math.isfinite(export["mean_prob"] or math.nan):
        return f"{found}."
    return f"{found}, and {export['mean_prob']:.0%} of these matches are right."


def _seen(name: str, metrics: Numbers) -> str:
    """Return how the run used the links that judge it."""
    protocol = metrics["protocol"]
    is_crossed = metrics["num_links"].get("crossed")
    if name == "validation":
        return (
            "each held out from one encoder" if is_crossed else "held out from training"
        )
    used = f"but protocol={protocol} {seen_links(protocol)}"
    return "not used for training" if protocol == "strict" else used


def _anchors(literals: Numbers) -> str:
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


def next_selection(export: Numbers, links: Numbers, command: str) -> str:
    """Return the command that selects sure matches or more than these, or what is missing."""
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


def _shown_matches(matches: Sequence[Match], given: Collection[str]) -> list[Match]:
    """Return the matches that are neither training links nor of blank nodes, surest first."""
    shown = (
        row
        for row in matches
        if row[0] not in given and not any(map(is_blank, row[:2]))
    )
    return sorted(shown, key=lambda row: -row[2])


def _others(path: Path) -> str:
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
