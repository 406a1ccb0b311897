"""One job: build, fit, evaluate, record."""

import errno
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf

from emea.answer.decision import (
    Answering,
    Decision,
    ExportSettings,
    answer_numbers,
    build_answering,
    check_founded,
    decide,
    decision_numbers,
    decoder_name,
    export_settings,
)
from emea.answer.exporting import write_alignment
from emea.config.checks import check_config
from emea.config.instantiate import load_pair, maker
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.data.statistics import statistics_table
from emea.errors import UserError
from emea.matching.block_memory import is_out_of_memory, limit_blocks
from emea.record import run_folder as run_files
from emea.record.earlier_runs import refuse_recorded
from emea.record.pair_file import pair_of_run, write_pair
from emea.record.run_header import make_header, without_secrets
from emea.record.tracker import Tracker
from emea.run.device import (
    choose_device,
    deterministic_mode,
    forget_peak_memory,
    keep_freed_memory,
    peak_memory_mb,
)
from emea.run.observer import EvaluationObserver, flattened
from emea.run.parts import Parts, build_parts, draw_split
from emea.run.reasoning_run import ReasoningRun
from emea.run.resuming import Start, forget_previous, locked_folder
from emea.run.signals import TERMINATED, exit_status, sigterm_as_interrupt
from emea.run.summary import summarise
from emea.run.training_loop import quieten_lightning, train

logger = logging.getLogger(__name__)


FULL_DISK = (
    "the disk is full; what was written before is whole: make room, then go on with resume=FOLDER"
)

OUT_OF_MEMORY = (
    "Out of memory, and smaller blocks cannot help here. Use a smaller model.encoder.dim or "
    "model.objective.batch_size, or search=cells, or train in host memory with trainer=cpu."
)

FEW_LINKS = 10
"""Fewer labelled links than this deserve a warning."""


def run_job(
    config: DictConfig,
    folder: Path,
    sweep: str | None = None,
    pair: GraphPair | None = None,
    resumes: bool = False,
    read_s: float = 0.0,
) -> dict[str, Any]:
    """Run one configuration and leave its records in the folder.

    Args:
        config: a composed config.
        folder: the run's folder, made if missing.
        sweep: name of the sweep the run belongs to, by which its runs are grouped.
        pair: the graphs, where they are at hand; ``None``: those the config names.
        resumes: go on with the folder's run or not at all; else a folder's run of other settings,
            data or code is replaced.
        read_s: seconds that it took to read the pair, where that was done before.

    Returns:
        What ``metrics.json`` holds, how to open the UI, and the folder the run is in: another
        than the given one where it went on with an earlier run.

    Raises:
        AlreadyRecordedError: where runs that are recorded are to be passed over, and this one is.
    """
    check_config(config)
    keep_freed_memory()
    quieten_lightning()
    started = time.perf_counter() - read_s
    device = choose_device(config.trainer.accelerator)
    forget_peak_memory(device)
    limit_blocks(OmegaConf.select(config, "trainer.block_memory", default=1.0))
    if pair is None:
        pair = pair_of_run(folder, config) if resumes else load_pair(config)
    if pair.reading is not None:
        logger.info("what was read:\n%s", statistics_table(pair))
    split = draw_split(config, pair)
    settings = export_settings(config)
    check_founded(settings, split)
    visible = maker(config.protocol)()(split)
    logger.info(_what_is_trained(pair, split))
    _warn_of_little(config, pair, split)
    shown = without_secrets(config)
    tracker: Tracker = maker(config.tracking)()
    header = make_header(shown, pair, visible.uses_test_links, sweep)
    if config.skip_recorded:
        # a sweep's jobs lie beside each other, wherever the user wants the sweep
        beside = [folder] if sweep is None else [folder.parent]
        folder = refuse_recorded(header, tracker, beside) or folder
    determinism = deterministic_mode(
        OmegaConf.select(config, "trainer.deterministic", default=False)
    )
    logger.info("Writing results to %s", folder)
    with locked_folder(folder), sigterm_as_interrupt(), _tracked(tracker, folder), determinism:
        start = Start.of(folder, header, resumes)
        run_files.write_config(folder, shown)
        if "_target_" not in config.data:  # no other file has these graphs
            write_pair(folder / run_files.PAIR_FILE, pair)
        tracker.start(start.header, folder)
        # what is built gets graphs without links: only what is visible reaches it
        graphs = replace(pair, links=pair.links[:0], official=None, reading=None)
        if config.method.reasoner is not None:
            judged = split
            run = ReasoningRun(config, graphs, visible, split, tracker.log, device)
            loaded = time.perf_counter()
            run.align()
            trained = time.perf_counter()
            decision = run.decision(settings)
            metrics = run.metrics(pair)
            losses = run.embedder.losses
            run.write_files(folder)
        else:
            validation = split.supervision.validation
            observer = EvaluationObserver(
                split.test,
                validation,
                config.protocol.name,
                tracker.log,
                config.observed_links,
                config.em.iterations,
            )
            parts = build_parts(config, graphs, visible, observer, device)
            answering = build_answering(config)  # settings it refuses are told before training
            loaded = time.perf_counter()
            checkpoint = folder / run_files.CHECKPOINT_FILE
            train(config, parts, observer, device, checkpoint, start.checkpoint)
            trained = time.perf_counter()
            observer.finish()
            observer.warn_if_worse()
            decision = _decision(answering, observer, parts, settings)
            judged = split.with_labels(parts.em.certain)
            metrics = summarise(config, pair, split, judged, observer, device)
            losses = parts.module.losses
            _write_files(folder, observer, decision)
        metrics |= answer_numbers(config, judged, decision.answer)
        metrics["export"] = decision_numbers(decision, settings, judged)
        write_alignment(folder, pair, start.header, decoder_name(config), decision, settings)
        metrics["seconds"] = _seconds(metrics["history"], started, loaded, trained)
        metrics["peak_memory_mb"] = peak_memory_mb(device)
        _log_curves(losses, metrics, tracker)
        run_files.write_metrics(folder, metrics)
        forget_previous(folder)
    metrics |= {"ui_hint": tracker.ui_hint, "folder": str(folder)}
    return metrics


@contextmanager
def _tracked(tracker: Tracker, folder: Path) -> Iterator[None]:
    """Close the tracker's run with how it ended."""
    try:
        yield
    except KeyboardInterrupt:
        how = "terminated" if exit_status() == TERMINATED else "interrupted"
        tracker.finish("KILLED", how)
        logger.warning("%s; continue with: python run.py resume=%s", how, quote(str(folder)))
        raise
    except BaseException as error:
        tracker.finish("FAILED", f"{type(error).__name__}: {error}")
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise UserError(FULL_DISK) from error
        if is_out_of_memory(error):
            raise UserError(OUT_OF_MEMORY) from error
        raise
    tracker.finish("FINISHED")


def _warn_of_little(config: DictConfig, pair: GraphPair, split: Split) -> None:
    num_train = len(split.supervision.train)
    if num_train < FEW_LINKS:
        logger.warning(
            "only %d labelled links: the first model will know little, and what EM builds on it "
            "varies much between splits",
            num_train,
        )
    if not len(split.test):
        logger.info("no test links: the run predicts, nothing is evaluated")
    if config.em.num_candidates > pair.target.num_entities:
        logger.warning(
            "em.num_candidates=%d is more than there are targets: all %d are candidates",
            config.em.num_candidates,
            pair.target.num_entities,
        )


def _what_is_trained(pair: GraphPair, split: Split) -> str:
    known = split.supervision
    return (
        f"{pair.name}: {pair.source.num_entities:,} + {pair.target.num_entities:,} entities, "
        f"{pair.source.num_triples:,} + {pair.target.num_triples:,} triples; links: "
        f"{len(known.train):,} train, {len(known.validation):,} validation, "
        f"{len(split.test):,} test"
    )


def _seconds(
    history: list[dict[str, Any]], started: float, loaded: float, trained: float
) -> dict[str, float]:
    """What the run took; of one that went on, what its stages took before is part of it."""
    of_stages = sum(sum(entry["seconds"].values()) for entry in history)
    seconds = {
        "load": loaded - started,
        "train": max(trained - loaded, of_stages),
        "evaluate": time.perf_counter() - trained,
    }
    return seconds | {"total": sum(seconds.values())}


def _log_curves(losses: list[tuple[int, float]], metrics: dict[str, Any], tracker: Tracker) -> None:
    for step, loss in losses:
        tracker.log({"loss": loss}, step)
    scalars = {key: metrics[key] for key in ("initial", "final", "final_reverse", "mapping")}
    scalars |= {key: metrics[key] for key in ("answer", "calibration", "compatibility", "export")}
    scalars |= {"seconds": metrics["seconds"], "peak_memory_mb": metrics["peak_memory_mb"]}
    tracker.log({f"run/{key}": value for key, value in flattened(scalars).items()}, 0)


def _decision(
    answering: Answering, observer: EvaluationObserver, parts: Parts, settings: ExportSettings
) -> Decision:
    """What the run answers, from the last beliefs and the links they are certain of."""
    assert observer.last is not None
    beliefs = observer.last.answer
    certain = torch.from_numpy(np.array(parts.em.certain)).to(beliefs.targets.device)
    return decide(answering, beliefs, certain, settings, observer.validation)


def _write_files(folder: Path, observer: EvaluationObserver, decision: Decision) -> None:
    report = observer.last
    assert report is not None and observer.initial_ranks and observer.final_ranks
    run_files.write_ranks(folder, observer.test, observer.initial_ranks, observer.final_ranks)
    joint = report.joint.beliefs if report.joint else None
    run_files.write_beliefs(folder, report.beliefs, joint, decision.labels)
