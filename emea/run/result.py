"""The numbers of a run that has just ended, its answer, and its files."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from omegaconf import DictConfig

from emea.answer.decision import Decision, decision_numbers
from emea.answer.schema import Schema
from emea.config.settings.execution import ExportSettings
from emea.config.settings.groups import OPTIONAL
from emea.data.arrays import are_among
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.data.split import Split
from emea.evaluation.calibration import answer_calibration, source_evaluation
from emea.evaluation.metrics import answer_metrics
from emea.evaluation.ranks import ranked_links
from emea.record import run_folder
from emea.record.checked_files import (
    BackgroundWriter,
    open_atomic,
    write_checked_arrays,
    write_checked_json,
    write_lines,
)
from emea.record.run_header import method_name
from emea.run.finished_run import FinishedRun
from emea.run.outcome import Numbers, Outcome
from emea.run.parts import decoder_name
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
        write_answer(folder, self, pair, self.decision, self.schema, self.export)
        writer.wait()
        write_checked_json(folder / run_folder.METRICS_FILE, self.metrics)


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
        logger.warning("This method has no embeddings, so export.formats=[vectors] writes nothing.")
        return
    for side, graph, vectors in zip(
        ("source", "target"), (pair.source, pair.target), found.embeddings, strict=True
    ):
        with open_atomic(folder / f"{side}_vectors.npy") as file:
            np.save(file, vectors.detach().float().cpu().numpy())
        names = (name.replace("\n", " ") for name in graph.all_entity_names)
        write_lines(folder / f"{side}_vectors.txt", names)


def run_metrics(
    config: DictConfig,
    graphs: GraphPair,
    split: Split,
    found: Outcome,
    decision: Decision,
    export: ExportSettings,
    measured: Numbers,
) -> Numbers:
    """Return all numbers of a run, which are the content of ``metrics.json``.

    Args:
        config: The configuration of the run.
        graphs: The graphs, with the literals that the run used.
        split: The split of the links.
        found: Beliefs and scores.
        decision: The answer.
        export: Settings of the answer.
        measured: Further sections, which belong to the process: time, memory and warnings.
    """
    judged, warnings = found.judged, measured.pop("warnings")
    known = np.concatenate([judged.supervision.train, judged.supervision.validation])
    answer = answer_metrics(
        decision.answer, known, judged.test, judged.num_missed, graphs.cardinality
    )
    literals = literal_numbers(graphs, judged)
    return {
        **found.scores,
        **_settings(config, graphs.name, split),
        "answer": {"decoder": decoder_name(config), **answer},
        "calibration": answer_calibration(decision.answer, judged.test, known),
        "sources": source_evaluation(
            decision.decoded or decision.answer,
            decision.beliefs,
            judged.test,
            judged.unmatched,
            judged.num_missed,
            known,
        ),
        "export": decision_numbers(decision, export, judged),
        **measured,
        **({} if literals is None else {"literals": literals}),
        "warnings": warnings,
    }


def _settings(config: DictConfig, data: str, split: Split) -> Numbers:
    """Return the method, the data and the main settings of a run.

    A config group that only some methods use is ``none`` if this one does not use it.
    """
    used = set(config.method.uses) - (set() if config.em.iterations else {"rule"})
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
        **{group: config[group].name if group in used else "none" for group in OPTIONAL},
        "protocol": config.protocol.name,
        "data": data,
        "method": method_name(config),
        "split": config.split.name,
        "ratio": config.ratio.value if config.split.name == "random" else None,
        "num_links": num_links,
        "seed": config.seed,
        "split_seed": config.split_seed,
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
    found, probs = pair.literals, pair.literals.anchor_probs
    test, num_test = judged.test, len(judged.test) + judged.num_missed
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
