"""The numbers of a run that has just ended, its answer, and its files."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from emea.answer.curation import write_decisions
from emea.answer.decision import Decision, decision_numbers
from emea.answer.decoding import BalancedAnswer, SinkhornAnswer
from emea.answer.schema import Schema
from emea.answer.settings import ExportSettings
from emea.config.groups import OPTIONAL
from emea.config.run_config import RunConfig
from emea.data.arrays import are_among
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.data.settings import Cardinality
from emea.data.split import Split
from emea.evaluation.calibration import answer_calibration, source_evaluation
from emea.evaluation.metrics import answer_metrics
from emea.evaluation.one_to_one import one_to_one_metrics
from emea.evaluation.ranks import ranked_links
from emea.record import run_folder
from emea.record.checked_files import (
    BackgroundWriter,
    open_atomic,
    write_checked_arrays,
    write_checked_json,
    write_lines,
)
from emea.run.building import answerable, build_answering, decoder_name
from emea.run.decoy_run import decoy_numbers
from emea.run.finished_run import FinishedRun
from emea.run.outcome import Numbers, Outcome, RunInputs
from emea.run.predicting import write_answer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult(FinishedRun):
    """Holds everything that a run of this process has found.

    Args:
        decision: The answer.
        schema: The mapping of relations and classes.
        export: Settings of the answer and its files.
        ui_hint: The command that shows the runs; ``None`` if there is no such command.
        literals: The literals that the run used as evidence, if it did.
    """

    decision: Decision
    schema: Schema
    export: ExportSettings
    ui_hint: str | None = None
    literals: LiteralMatches | None = None

    def write_answer(self, folder: Path, writer: BackgroundWriter) -> None:
        """Write the answer, the mapping of relations and classes, and the metrics.

        Args:
            folder: The folder.
            writer: Writes ranks and beliefs. The metrics are written when it has finished.
        """
        pair = replace(self.pair, literals=self.literals)
        write_decisions(folder, self.decisions)
        write_answer(
            folder, self, pair, self.decision, schema=self.schema, settings=self.export
        )
        writer.wait()
        metrics = {
            **self.metrics,
            **run_folder.alignment_checksum(folder),
            **run_folder.file_checksums(folder),
        }
        write_checked_json(folder / run_folder.METRICS_FILE, metrics)


def write_ranks_and_beliefs(folder: Path, split: Split, found: Outcome) -> None:
    """Write the ranks and the beliefs of a run.

    They are compressed without Python's lock, so a thread can do it while the run decodes its
    answer. In the file of beliefs, ``targets`` are the candidates of q and q*, or only those of q*
    if q has other candidates.
    """
    run_folder.write_ranks(folder, ranked_links(split.test), found.ranks)
    arrays: dict[str, np.ndarray] = {"labels": found.labels.cpu().numpy()}
    arrays |= {} if found.votes is None else {"votes": found.votes.cpu().numpy()}
    for name, beliefs in (("joint", found.joint), ("neural", found.neural)):
        if beliefs is None:
            continue
        targets = beliefs.targets.cpu().numpy()
        same = np.array_equal(arrays.setdefault("targets", targets), targets)
        arrays |= {} if same else {f"{name}_targets": targets}
        arrays[f"{name}_probs"] = beliefs.probs.cpu().numpy()
    write_checked_arrays(folder / run_folder.BELIEFS_FILE, **arrays)


def write_embeddings(folder: Path, pair: GraphPair, found: Outcome) -> None:
    """Write the vectors of all entities as files that ``data.source_vectors`` can read."""
    if found.embeddings is None:
        logger.warning(
            "This method has no embeddings, so export.formats=[vectors] writes nothing."
        )
        return
    for side, graph, vectors in zip(
        ("source", "target"), (pair.source, pair.target), found.embeddings, strict=True
    ):
        with open_atomic(folder / f"{side}_vectors.npy") as file:
            np.save(file, vectors.detach().float().cpu().numpy())
        names = (name.replace("\n", " ") for name in graph.all_entity_names)
        write_lines(folder / f"{side}_vectors.txt", names)


def run_metrics(
    inputs: RunInputs, found: Outcome, decision: Decision, measured: Numbers
) -> Numbers:
    """Return all numbers of a run, which are the content of ``metrics.json``.

    Args:
        inputs: Settings, graphs and split of the run.
        found: Beliefs and scores.
        decision: The answer.
        measured: Further sections, which belong to the process: time, memory and warnings.
    """
    settings = inputs.settings
    graphs = inputs.graphs
    judged = found.judged
    warnings = measured.pop("warnings")
    known = np.concatenate([judged.supervision.train, judged.supervision.validation])
    answer = answer_metrics(
        decision.answer, known, judged.test, judged.num_missed, graphs.cardinality
    )
    literals = literal_numbers(graphs, judged)
    return {
        **found.scores,
        "one_to_one": one_to_one_numbers(settings, found, graphs.cardinality),
        **_settings(settings, graphs.name, inputs.split),
        "answer": {"decoder": decoder_name(settings), **answer},
        "calibration": answer_calibration(decision.answer, judged.test, known),
        "sources": source_evaluation(
            decision.decoded or decision.answer,
            decision.beliefs,
            judged.test,
            judged.unmatched,
            num_missed=judged.num_missed,
            given=known,
        ),
        "export": decision_numbers(decision, settings.own.export, judged),
        **measured,
        **({} if literals is None else {"literals": literals}),
        **({} if found.decoys is None else {"decoys": decoy_numbers(found.decoys)}),
        "warnings": warnings,
    }


def one_to_one_numbers(
    settings: RunConfig, found: Outcome, cardinality: Cardinality
) -> Numbers | None:
    """Return the metrics of the test links after one-to-one inference (``one_to_one_metrics``).

    The inference is the decoding of the run if it balances beliefs, and ``decoding=sinkhorn``
    otherwise. It sees the entities that the protocol lets the answer contain.

    Args:
        settings: The settings of the run.
        found: Beliefs and the split that evaluates them.
        cardinality: How many counterparts an entity may have.
    """
    if cardinality != Cardinality.ONE_TO_ONE:
        return None
    answering = build_answering(settings)
    inference: SinkhornAnswer | BalancedAnswer = SinkhornAnswer()
    if isinstance(answering, SinkhornAnswer | BalancedAnswer):
        inference = answering
    judged = found.judged
    free = answerable(settings, found.beliefs, judged).without(found.labels)
    num_links = len(judged.test) + judged.num_missed
    measured = one_to_one_metrics(
        inference.balanced,
        free,
        ranked_links(judged.test),
        judged.num_missed / max(1, num_links),
    )
    name = "balanced" if isinstance(inference, BalancedAnswer) else "sinkhorn"
    return None if measured is None else {"inference": name, **measured}


def _settings(settings: RunConfig, data: str, split: Split) -> Numbers:
    """Return the method, the data and the main settings of a run.

    A config group that only some methods use is ``none`` if this one does not use it.
    """
    used = set(settings.used_groups) - (set() if settings.em.iterations else {"rule"})
    is_random = settings.name("split") == "random"
    num_links: Numbers = {
        "train": len(split.supervision.train),
        "validation": len(split.supervision.validation),
        "test": len(split.test),
    }
    if split.supervision.is_crossed:  # training links are validation links, too
        num_links["crossed"] = True
    if split.num_missed:  # test links that no method can find
        num_links["missed"] = split.num_missed
    num_ranked = len(ranked_links(split.test))
    if num_ranked < len(split.test):
        num_links["ranked"] = num_ranked
    return {
        **{
            group: settings.name(group) if group in used else "none"
            for group in OPTIONAL
        },
        "protocol": settings.name("protocol"),
        "data": data,
        "method": settings.method_name,
        "split": settings.name("split"),
        "ratio": settings.setting("ratio", "value") if is_random else None,
        "num_links": num_links,
        "seed": settings.own.seed,
        "split_seed": settings.own.split_seed,
    }


def literal_numbers(pair: GraphPair, judged: Split) -> Numbers | None:
    """Return the contribution of literals: matched values, anchors and test links they find.

    Args:
        pair: The graphs, with the literals that the run used.
        judged: The split whose test links evaluate the anchors.

    Returns:
        The section of ``metrics.json``; ``None`` if the run did not use literals.
    """
    if pair.literals is None:
        return None
    found = pair.literals
    probs = pair.literals.anchor_probs
    test = judged.test
    num_test = len(judged.test) + judged.num_missed
    has_link = np.isin(found.anchors[:, 0], test[:, 0])
    right = int(are_among(found.anchors, test).sum())
    return {
        "num_matched_values": len(found.pairs),
        "num_anchors": len(found.anchors),
        "anchor_precision_estimate": float(probs.mean()) if len(probs) else None,
        "anchor_precision": right / int(has_link.sum()) if has_link.any() else None,
        "anchor_recall": right / num_test if len(test) else None,
        "anchor_kinds": {
            name: {"num": number, "precision_estimate": precision}
            for name, (number, precision) in found.anchor_kinds.items()
        },
        "num_confirming": found.num_confirming,
    }
