"""The result of a run as typed values, and the function that writes its files."""

import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from omegaconf import DictConfig

from emea.answer.decision import Decision, ExportNumbers, decision_numbers
from emea.answer.exporting import origin_of, write_alignment
from emea.answer.schema import Schema, write_schema
from emea.config.settings.execution import ExportSettings
from emea.config.settings.groups import OPTIONAL
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.evaluation.calibration import answer_calibration
from emea.evaluation.metrics import answer_metrics, num_shared
from emea.evaluation.ranks import ranked_links
from emea.record import run_folder
from emea.record.checked_files import BackgroundWriter
from emea.record.run_header import method_name
from emea.record.run_record import RunHeader, now_ms
from emea.run.parts import decoder_name
from emea.run.run import Numbers, Outcome, RunScores


@dataclass(frozen=True)
class LinkCounts:
    """Holds the number of links in each part of the split.

    Args:
        train: Training links.
        validation: Validation links.
        test: Test links whose entities are in the graphs.
        missed: Further test links, which count as missed.
        ranked: Test links that have ranks.
    """

    train: int
    validation: int
    test: int
    missed: int
    ranked: int


@dataclass(frozen=True)
class RunSettings:
    """Holds the method, the data and the main settings of a run.

    Args:
        protocol: Name of the protocol.
        data: Name of the pair of graphs.
        groups: Option of each config group that only some methods use; ``none`` if it is not used.
        method: Name of a baseline, ``emea`` or ``neural``.
        split: Name of the split.
        ratio: Share of training links of a random split.
        num_links: Number of links in each part.
        seed: Seed of the model.
        split_seed: Seed of the split.
    """

    protocol: str
    data: str
    groups: dict[str, str]
    method: str
    split: str
    ratio: float | None
    num_links: LinkCounts
    seed: int
    split_seed: int

    @classmethod
    def of(cls, config: DictConfig, pair: GraphPair, split: Split) -> "RunSettings":
        """Return the settings of a config on a pair of graphs."""
        used = set(config.method.uses) - (set() if config.em.iterations else {"rule"})
        known = split.supervision
        return cls(
            protocol=config.protocol.name,
            data=pair.name,
            groups={group: config[group].name if group in used else "none" for group in OPTIONAL},
            method=method_name(config),
            split=config.split.name,
            ratio=config.ratio.value if config.split.name == "random" else None,
            num_links=LinkCounts(
                len(known.train),
                len(known.validation),
                len(split.test),
                split.num_missed,
                len(ranked_links(split.test)),
            ),
            seed=config.seed,
            split_seed=config.split_seed,
        )

    def as_dict(self) -> Numbers:
        """Return the settings by their names in ``metrics.json``, where groups are not nested."""
        settings = asdict(self)
        if not self.num_links.missed:
            del settings["num_links"]["missed"]
        if self.num_links.ranked == self.num_links.test:
            del settings["num_links"]["ranked"]
        return {**settings.pop("groups"), **settings}


@dataclass(frozen=True)
class Seconds:
    """Holds the duration of the parts of a run in seconds."""

    load: float
    train: float
    evaluate: float
    total: float

    @classmethod
    def until_now(
        cls, started: float, built: float, trained: float, history: list[Numbers]
    ) -> "Seconds":
        """Return the durations between these points in time and now.

        The training time of a resumed run includes its stages before the interruption, which are in
        the history.
        """
        in_stages = sum(sum(entry["seconds"].values()) for entry in history)
        load, train = built - started, max(trained - built, in_stages)
        evaluate = time.perf_counter() - trained
        return cls(load, train, evaluate, load + train + evaluate)


@dataclass(frozen=True, eq=False)
class AnswerScores:
    """Holds the sections of ``metrics.json`` about the answer.

    Args:
        decoder: Name of the decoder.
        answer: Precision, recall and F1.
        calibration: Expected calibration error and its bins.
        export: The threshold, and the number of accepted matches.
    """

    decoder: str
    answer: dict[str, float]
    calibration: Numbers
    export: ExportNumbers

    @classmethod
    def of(
        cls, decision: Decision, settings: ExportSettings, judged: Split, decoder: str
    ) -> "AnswerScores":
        """Measure an answer on the test and validation links of a split."""
        known = np.concatenate([judged.supervision.train, judged.supervision.validation])[:, 0]
        return cls(
            decoder,
            answer_metrics(decision.answer, known, judged.test, judged.num_missed),
            answer_calibration(decision.answer, judged.test),
            decision_numbers(decision, settings, judged),
        )


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
    right = num_shared(found.anchors, test)
    return {
        "num_matched_values": len(found.pairs),
        "num_anchors": len(found.anchors),
        "anchor_precision_estimate": float(probs.mean()) if len(probs) else None,
        "anchor_precision": right / int(has_link.sum()) if has_link.any() else None,
        "anchor_recall": right / num_test if len(test) else None,
    }


@dataclass(frozen=True, eq=False)
class RunMetrics:
    """Holds all numbers of a run, which are the content of ``metrics.json``."""

    scores: RunScores
    settings: RunSettings
    answer: AnswerScores
    seconds: Seconds
    peak_memory_mb: float
    literals: Numbers | None = None
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> Numbers:
        """Return the sections by their names in ``metrics.json``."""
        scores, answer = self.scores, self.answer
        return {
            "initial": scores.initial,
            "final": scores.final,
            "final_reverse": scores.final_reverse,
            "mapping": scores.mapping,
            "compatibility": scores.compatibility,
            "by_degree": scores.by_degree,
            **scores.extra,
            "history": scores.history,
            **self.settings.as_dict(),
            "answer": {"decoder": answer.decoder, **answer.answer},
            "calibration": answer.calibration,
            "export": answer.export,
            "seconds": asdict(self.seconds),
            "peak_memory_mb": self.peak_memory_mb,
            **({} if self.literals is None else {"literals": self.literals}),
            "warnings": self.warnings,
        }


@dataclass(frozen=True, eq=False)
class RunResult:
    """Holds everything that a run has found.

    Args:
        folder: The folder of the run, which differs from the given one if another run was resumed.
        header: Name, parameters and tags of the run.
        config: Its configuration, without secrets.
        pair: The graphs and all their links.
        split: The split of the links.
        metrics: All numbers.
        outcome: Beliefs, labels and ranks.
        decision: The answer.
        schema: The mapping of relations and classes.
        export: Settings of the answer and its files.
        ui_hint: The command that shows the runs; ``None`` if there is no such command.
        end_time: The end of the run in milliseconds since the epoch.
    """

    folder: Path
    header: RunHeader
    config: DictConfig
    pair: GraphPair
    split: Split
    metrics: RunMetrics
    outcome: Outcome
    decision: Decision
    schema: Schema
    export: ExportSettings
    ui_hint: str | None = None
    end_time: int = field(default_factory=now_ms)

    def write(self, folder: Path) -> None:
        """Write all files of the result; ``metrics.json`` comes last."""
        with BackgroundWriter() as writer:
            writer.write(partial(write_ranks_and_beliefs, folder, self.split, self.outcome))
            self.write_answer(folder, writer)

    def write_answer(self, folder: Path, writer: BackgroundWriter) -> None:
        """Write the answer, the mapping of relations and classes, and the metrics.

        Args:
            folder: The folder.
            writer: Writes ranks and beliefs. The metrics are written when it has finished.
        """
        decoder = decoder_name(self.config)
        write_alignment(folder, self.pair, self.header, decoder, self.decision, self.export)
        origin = origin_of(self.header, decoder, self.decision.threshold)
        write_schema(folder, self.schema, origin, self.export.formats)
        writer.wait()
        run_folder.write_metrics(folder, self.metrics.as_dict())


def write_ranks_and_beliefs(folder: Path, split: Split, found: Outcome) -> None:
    """Write the ranks and the beliefs of a run.

    They are compressed without Python's lock, so a thread can do it while the run decodes its
    answer.
    """
    ranks, links = found.ranks, ranked_links(split.test)
    run_folder.write_ranks(folder, links, ranks.initial, ranks.final, ranks.embedding)
    run_folder.write_beliefs(folder, found.neural, found.joint, found.labels)
