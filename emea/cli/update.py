"""``emea update RUN --source NEW --target NEW`` aligns new versions of the graphs of a run."""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from emea.answer.curation import (
    ACCEPTED,
    DECISIONS_FILE,
    REJECTED,
    Curated,
    write_decisions,
)
from emea.answer.decided_pairs import DecidedPairs, read_decided
from emea.answer.summary import labelled
from emea.cli.arguments import (
    AT_LEAST_ONE,
    add_author_argument,
    add_out_argument,
    check_output_folder,
    number_in,
    run_options,
    run_parser,
)
from emea.config.run_config import typed
from emea.data.formats.limits import reading_limits
from emea.data.formats.link_file import read_link_file
from emea.data.formats.settings import ReadingLimits
from emea.data.graph_pair import GraphPair
from emea.data.links import EntityFinder, LinkRegister, LinkResolver
from emea.data.names import Prefixes
from emea.data.sources.own_files import NO_LINKS, read_own_graph, resolved_links
from emea.data.sources.settings import OwnFilesSettings
from emea.errors import UserError
from emea.record.run_folder import LOG_FILE, record_checksums
from emea.runtime.console import logged, say

if TYPE_CHECKING:
    from emea.run.finished_run import FinishedRun
    from emea.update.graph_versions import Answers
    from emea.update.planning import Plan
    from emea.update.updating import Update

DECIDED = ("links", "rejected", "take_back", "decisions")
"""Arguments with the decisions of a person."""

MOST_DECISIONS = 20
"""Decisions of each kind that are printed; decisions.tsv has all of them."""

DESCRIPTION = """Align new versions of the graphs of a finished run, or follow the decisions of a
person about its matches. The update starts from the matches and the encoder of the run. If few
entities are affected, only they and their surroundings are recomputed.

A link is in the answer of the update, and a rejected pair is not, for all methods. A later
update keeps both, unless --take-back names them."""

EXAMPLES = """examples:
  emea update RUN --source new.nt --target new.ttl
  emea update RUN --links links.tsv --rejected rejected.tsv --author "Ada Lovelace"
  emea update RUN --take-back wrong_decisions.tsv
  emea update RUN --decisions decisions.tsv
  emea update RUN --source new.nt --out updated

RUN is the folder of a finished run. A graph without a new version stays the same. Names identify
entities and relations in both versions."""


def main(arguments: Sequence[str]) -> int:
    """Update the run, print a summary and return the exit status."""
    options = run_options(_parser(), arguments)
    # the name of a run such as "." or "link/.." is that of the folder it leads to
    run = options.run if options.run.name not in ("", "..") else options.run.resolve()
    folder = options.out or run.with_name(f"{run.resolve().name}-updated")
    _check(options, folder)
    # torch is imported after the command line and the folder were checked.
    from emea.run.finished_run import load_run
    from emea.run.predicting import run_answers
    from emea.update.graph_versions import changes_between, counts, write_changes
    from emea.update.planning import plan_update
    from emea.update.updating import named_answers, named_pairs

    folder.mkdir(parents=True, exist_ok=True)
    with logged(folder / LOG_FILE):
        run = load_run(options.run, options.trust)
        given = _given(options.decisions)
        with reading_limits(typed(ReadingLimits, run.config.data.get("limits"))):
            update = _read(options, run, given)
        began = time.perf_counter()
        plan = plan_update(update, options.complete)
        before = named_answers(run.pair, run_answers(run))
        decisions = update.decisions(options.author or "", date.today().isoformat())
        decisions = decisions if given is None else given.completed(decisions)
        after, recomputed = _updated(
            update,
            plan,
            before,
            folder,
            iterations=options.iterations,
            decisions=decisions,
        )
        write_decisions(folder, decisions)
        record_checksums(folder)
    decided = (
        named_pairs(update.pair, one)
        for one in (update.pair.rejected, update.split.train)
    )
    changes = changes_between(before, after, update.versions, *decided)
    summary = {
        "updated_from": run.header.run_id,
        "seconds": round(time.perf_counter() - began, 1),
        "graphs": {
            side: one.size()
            for side, one in zip(("source", "target"), update.versions, strict=True)
        },
        "recomputed": plan.summary(recomputed),
        "matches": counts(before, changes),
        "decisions": decision_counts(update, given),
    }
    write_changes(folder, changes, summary)
    lines = [*decision_lines(update, before), *answer_lines(given)]
    say("\n".join([*lines, *_lines(summary, folder)]))
    return 0


def _given(file: Path | None) -> DecidedPairs | None:
    """Return the decisions of a file.

    Raises:
        UserError: It has neither decisions nor questions.
    """
    found = None if file is None else read_decided(file)
    if found is not None and not (found.decisions or found.num_open):
        raise UserError(
            f"{file} has no decisions. Add a line with a source, a target and a decision."
        )
    return found


def _updated(
    update: "Update",
    plan: "Plan",
    before: "Answers",
    folder: Path,
    *,
    iterations: int,
    decisions: Sequence[Curated],
) -> tuple["Answers", Mapping[str, float]]:
    """Run the update, and return the answers and the numbers of recomputed entities.

    If nothing changed, the folder gets a copy of the run.

    Args:
        update: The new versions of the graphs, and the new decisions.
        plan: What is recomputed.
        before: The answers of the run.
        folder: The folder to write.
        iterations: Largest number of EM iterations.
        decisions: All decisions that the update follows.
    """
    from emea.answer.exporting import answered_pairs
    from emea.run.job import run_job
    from emea.update.planning import LOCAL, NOTHING
    from emea.update.updating import copy_run, named_answers, update_config

    if plan.kind == NOTHING:
        copy_run(update.run, folder)
        return before, {"source": 0, "target": 0, "share": 0.0}
    config = update_config(update.run, iterations, plan.kind == LOCAL)
    result = run_job(
        config, folder, pair=update.pair, start_from=plan.start, decisions=decisions
    )
    numbers: Any = result.metrics.get("recomputed")
    sizes = update.pair.source.num_entities, update.pair.target.num_entities
    everything = {"source": sizes[0], "target": sizes[1], "share": 1.0}
    after = named_answers(result.pair, answered_pairs(result.decision))
    return after, numbers or everything


def _check(options: argparse.Namespace, folder: Path) -> None:
    """Check the files and the output folder.

    Raises:
        UserError: If a file is missing, nothing is new, or the folder cannot be used.
    """
    files = [
        options.source,
        options.target,
        *(getattr(options, name) for name in DECIDED),
    ]
    if not any(files):
        raise UserError(
            "There is nothing to update. Give --source, --target, --links, --rejected, "
            "--decisions or --take-back."
        )
    for path in filter(None, files):
        if not path.is_file():
            raise UserError(f"{path} is not a file. Check the name of the file.")
    if folder.resolve() == options.run.resolve():
        raise UserError(f"{folder} is the run itself. Choose another --out folder.")
    check_output_folder(folder)


def _read(
    options: argparse.Namespace, run: "FinishedRun", given: DecidedPairs | None
) -> "Update":
    """Read the new files with the settings of the run.

    Args:
        options: The arguments of the command.
        run: The finished run.
        given: The decisions of ``--decisions``.
    """
    from emea.update.updating import Update

    if (options.source or options.target) and run.pair.source.vectors:
        raise UserError(
            f"{options.run} uses vectors of entities, which emea update cannot read again. Align "
            "the new graphs with emea align."
        )
    settings = typed(OwnFilesSettings, run.config.data)
    source, target = (
        old
        if path is None
        else read_own_graph(
            path, replace(settings, keep_literals=old.attributes is not None)
        )[0]
        for path, old in (
            (options.source, run.pair.source),
            (options.target, run.pair.target),
        )
    )
    sides = {"source": source, "target": target}.items()
    left, right = (EntityFinder(graph, side, "its graph") for side, graph in sides)
    register: LinkRegister[str] = LinkRegister(run.pair.cardinality)
    resolver = LinkResolver(
        left, right, Prefixes(settings.prefixes), settings.on_error, register
    )
    links, rejected, taken_back = (
        None
        if path is None
        else read_link_file(path, settings.links_format, settings.on_error)
        for path in (options.links, options.rejected, options.take_back)
    )
    decided = {
        kind: None if given is None else given.listing(kind)
        for kind in (ACCEPTED, REJECTED)
    }
    known = np.concatenate(
        [resolved_links(resolver, one)[0] for one in (links, decided[ACCEPTED])]
    )
    # an entity may have several of these pairs
    wrong, also_wrong, gone = (
        NO_LINKS if one is None else resolver.pairs(one)
        for one in (rejected, decided[REJECTED], taken_back)
    )
    wrong = np.concatenate([wrong, also_wrong])
    return Update.of(run, source, target, known, wrong, taken_back=gone)


def decision_counts(
    update: "Update", given: DecidedPairs | None
) -> dict[str, float | None]:
    """Return how many decisions are applied, for ``update.json``.

    Args:
        update: The update.
        given: The decisions of ``--decisions``, with their number of open pairs and their cost.
    """
    return {
        "accepted": len(update.accepted),
        "rejected": len(update.rejected),
        "taken_back": len(update.taken_back),
        "open": 0 if given is None else given.num_open,
        "cost": None if given is None else given.cost,
    }


def answer_lines(given: DecidedPairs | None) -> list[str]:
    """Return what a file of decisions left open, and what its answers cost."""
    if given is None or not (given.num_open or given.cost is not None):
        return []
    cost = "" if given.cost is None else f"; cost: {given.cost:g}"
    pairs = "1 pair" if given.num_open == 1 else f"{given.num_open:,} pairs"
    return [f"{given.label}: {pairs} without a decision{cost}"]


def decision_lines(update: "Update", before: "Answers") -> list[str]:
    """Return one line for each decision of the update, and what the run had answered.

    Args:
        update: The update.
        before: The answers of the run.
    """
    decided = {
        "accepted": update.accepted,
        "rejected": update.rejected,
        "taken back": update.taken_back,
    }
    counts = ", ".join(
        f"{len(pairs):,} {name}" for name, pairs in decided.items() if pairs
    )
    lines = [f"Decisions: {counts}"] if counts else []
    for name, pairs in decided.items():
        for pair in pairs[:MOST_DECISIONS]:
            lines.append(
                f"  {name}: {_shown(update.pair, pair)} ({_earlier(pair, before)})"
            )
        if len(pairs) > MOST_DECISIONS:
            lines.append(
                f"  and {len(pairs) - MOST_DECISIONS:,} more {name}: {DECISIONS_FILE}"
            )
    return lines


def _shown(pair: GraphPair, names: tuple[str, str]) -> str:
    """Return a pair of entities, with labels where they say more than the names."""
    sides = zip((pair.source, pair.target), names, strict=True)
    return " = ".join(labelled(graph, name) for graph, name in sides)


def _earlier(pair: tuple[str, str], before: "Answers") -> str:
    """Return what the run had answered about the source entity of a pair."""
    source, target = pair
    if source not in before:
        return "was unmatched"
    earlier, prob = before[source]
    if earlier == target:
        return f"was matched with probability {prob:.3f}"
    return f"was matched to {earlier} with probability {prob:.3f}"


def _lines(summary: dict[str, Any], folder: Path) -> list[str]:
    matches = summary["matches"]
    lines = [
        f"{side}: {size['new_entities']:,} new and {size['gone_entities']:,} removed entities, "
        f"{size['added_triples']:,} new and {size['removed_triples']:,} removed triples"
        for side, size in summary["graphs"].items()
    ]
    counted = ", ".join(
        f"{matches[kind]:,} {kind}" for kind in ("kept", "new", "changed", "gone")
    )
    lines += [
        _recomputed(summary["recomputed"]),
        f"Matches: {counted}",
        f"Changes: {folder / 'changes.tsv'}",
        f"Alignment: {folder / 'alignment.tsv'}",
    ]
    return lines


def _recomputed(said: Mapping[str, Any]) -> str:
    """Describe which entities the update recomputed."""
    if said["kind"] == "nothing":
        return "Nothing changed. The folder contains a copy of the run."
    if said["kind"] == "complete":
        return f"Recomputed: all entities, because {said['reason']}"
    return (
        f"Recomputed: {said['source']:,} source and {said['target']:,} target entities "
        f"({said['share']:.1%})"
    )


def _parser() -> argparse.ArgumentParser:
    parser = run_parser("update", DESCRIPTION, EXAMPLES)
    for flag, help in {
        "--source": "new version of the source graph",
        "--target": "new version of the target graph",
        "--links": "further known links",
        "--rejected": "pairs that are not links",
        "--take-back": "links and rejected pairs of the run that no longer hold",
        "--decisions": "accepted and rejected pairs in one file: decisions.tsv of emea serve, or "
        "the answered questions.jsonl of emea suggest",
    }.items():
        parser.add_argument(flag, type=Path, metavar="FILE", help=help)
    add_author_argument(parser)
    parser.add_argument(
        "--iterations",
        type=number_in(AT_LEAST_ONE, int),
        default=1,
        metavar="N",
        help="EM iterations, after a first E-step if all entities are recomputed (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--complete",
        action="store_true",
        help="recompute all entities, not only those that the changes affect",
    )
    add_out_argument(parser, "RUN-updated")
    return parser
