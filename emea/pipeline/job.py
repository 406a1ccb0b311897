"""One job: build, fit, evaluate, record."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig

from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.evaluation.degree_buckets import accuracy_by_degree
from emea.evaluation.mapping_metrics import mapping_metrics
from emea.evaluation.ranking_metrics import both_pools
from emea.evaluation.ranks import link_ranks
from emea.matching.candidates import mutual_best, top_candidates
from emea.pipeline import run_files
from emea.pipeline.building import maker
from emea.pipeline.checkpoint import load_weights, save_checkpoint
from emea.pipeline.estimate import duration, seconds_per_step
from emea.pipeline.fitting import fit, quieten_lightning
from emea.pipeline.machine import (
    choose_device,
    forget_peak_memory,
    keep_freed_memory,
    peak_memory_mb,
)
from emea.pipeline.observer import TestObserver, flattened
from emea.pipeline.parts import Parts, build_parts, draw_split, load_pair
from emea.pipeline.progress import StepProgress
from emea.pipeline.run_header import make_header, method_name, without_secrets
from emea.pipeline.validation import check_config
from emea.tracking.tracker import Tracker

logger = logging.getLogger(__name__)

LONG_RUN_SECONDS = 60
"""Runs expected to take longer say so before they start."""

FEW_LINKS = 10
"""Fewer labelled links than this deserve a warning."""


def run_job(config: DictConfig, folder: Path) -> dict[str, Any]:
    """Run one configuration and leave its records in the folder.

    Args:
        config: a composed config.
        folder: the run's folder, made if missing.

    Returns:
        What ``metrics.json`` holds.
    """
    check_config(config)
    keep_freed_memory()
    quieten_lightning()
    started = time.perf_counter()
    device = choose_device(config.trainer.accelerator)
    forget_peak_memory(device)
    pair = load_pair(config)
    split = draw_split(config, pair)
    visible = maker(config.protocol)()(split)
    logger.info(_what_is_trained(pair, split))
    _warn_of_little(config, pair, split)
    folder.mkdir(parents=True, exist_ok=True)
    shown = without_secrets(config)
    run_files.write_config(folder, shown)
    tracker: Tracker = maker(config.tracking)()
    with _tracked(tracker):
        tracker.start(make_header(shown, pair, visible.uses_test_links), folder)
        validation = split.supervision.validation
        observer = TestObserver(split.test, validation, config.protocol.name, tracker.log)
        # what is built gets graphs without links: only what is visible reaches it
        graphs = replace(pair, links=pair.links[:0], official=None)
        parts = build_parts(config, graphs, visible, observer, device)
        loaded = time.perf_counter()
        _train(config, parts, observer, device, folder)
        trained = time.perf_counter()
        metrics = _summary(config, pair, split, observer)
        metrics["seconds"] = {
            "load": loaded - started,
            "train": trained - loaded,
            "evaluate": time.perf_counter() - trained,
            "total": time.perf_counter() - started,
        }
        metrics["peak_memory_mb"] = peak_memory_mb(device)
        _log_curves(parts, metrics, tracker)
        _write_files(folder, pair, observer, metrics)
    metrics["ui_hint"] = tracker.ui_hint
    return metrics


@contextmanager
def _tracked(tracker: Tracker) -> Iterator[None]:
    """Close the tracker's run with how it ended."""
    try:
        yield
    except KeyboardInterrupt:
        tracker.finish("KILLED", "interrupted")
        raise
    except BaseException as error:
        tracker.finish("FAILED", f"{type(error).__name__}: {error}")
        raise
    tracker.finish("FINISHED")


def _train(
    config: DictConfig, parts: Parts, observer: TestObserver, device: torch.device, folder: Path
) -> None:
    """The first fit, then one fit per EM iteration; the callback acts between them."""
    first = 0 if config.initial_from else config.model.initial_steps
    steps = [first] + [config.model.steps_per_iteration] * config.em.iterations
    _announce(parts, sum(steps), device)
    with StepProgress(sum(steps)) as progress:
        for iteration, num_steps in enumerate(steps):
            progress.say("first training" if iteration == 0 else f"EM iteration {iteration}")
            start = time.perf_counter()
            if num_steps:
                fit(
                    parts.module,
                    parts.data,
                    num_steps,
                    "gpu" if device.type == "cuda" else "cpu",
                    [parts.em, progress],
                )
            else:
                _take_over(config.initial_from, parts, device)
            elsewhere = sum(observer.history[-1]["seconds"].values())
            observer.tell(time.perf_counter() - start - elsewhere)
            save_checkpoint(folder / run_files.CHECKPOINT_FILE, parts.module, parts.data, parts.em)
            if parts.em.converged:
                logger.info("converged: no better MRR on the validation links")
                break


def _take_over(checkpoint: str, parts: Parts, device: torch.device) -> None:
    """Start from another run's weights instead of a first fit."""
    load_weights(Path(checkpoint), parts.module, parts.data)
    parts.module.to(device)
    parts.em.between_fits(parts.module, parts.data)


def _announce(parts: Parts, num_steps: int, device: torch.device) -> None:
    if device.type == "cpu":
        expected = num_steps * seconds_per_step(parts.module, parts.data)
        if expected > LONG_RUN_SECONDS:
            logger.info(
                "about %s of training on this CPU for %d steps (a GPU takes seconds)",
                duration(expected),
                num_steps,
            )


def _warn_of_little(config: DictConfig, pair: GraphPair, split: Split) -> None:
    num_train = len(split.supervision.train)
    if num_train < FEW_LINKS:
        logger.warning(
            "only %d labelled links: the first model will know little, and what EM builds on it "
            "varies much between splits",
            num_train,
        )
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


def _summary(
    config: DictConfig, pair: GraphPair, split: Split, observer: TestObserver
) -> dict[str, Any]:
    """All numbers of the run, each with the protocol that made it."""
    report, ranks = observer.last, observer.final_ranks
    assert report is not None and ranks is not None
    reverse = link_ranks(report.similarity.reversed(), split.test[:, ::-1].copy())
    return {
        "initial": observer.history[0]["neural"],
        "final": observer.history[-1]["neural"],
        "final_reverse": both_pools(reverse),
        "mapping": _mapping(split, observer),
        "by_degree": accuracy_by_degree(ranks.in_pool, pair.source.degrees()[split.test[:, 0]]),
        "history": observer.history,
        "protocol": config.protocol.name,
        "data": pair.name,
        "model": config.model.name,
        "training": config.training.name,
        "rule": config.rule.name if config.em.iterations else "none",
        "em": config.em.name,
        "method": method_name(config),
        "decoding": config.decoding.name,
        "split": config.split.name,
        "ratio": None if config.split.name == "official" else config.ratio.value,
        "num_links": {
            "train": len(split.supervision.train),
            "validation": len(split.supervision.validation),
            "test": len(split.test),
        },
        "seed": config.seed,
        "split_seed": config.split_seed,
    }


def _mapping(split: Split, observer: TestObserver) -> dict[str, Any]:
    """Precision, recall and F1 over all unlabelled source entities, and of mutual pairs alone."""
    assert observer.last is not None
    similarity = observer.last.similarity
    best = observer.last.beliefs.best_targets()
    back = top_candidates(similarity.reversed(), 1)
    forward = top_candidates(similarity, 1)
    mutual = mutual_best(forward, back).cpu().numpy()
    known = np.concatenate([split.supervision.train, split.supervision.validation])[:, 0]
    sources = np.setdiff1d(np.arange(len(mutual)), known)
    pairs = np.stack([sources, best.cpu().numpy()[sources]], axis=1)
    return {
        "all": mapping_metrics(pairs, split.test),
        "mutual": mapping_metrics(pairs[mutual[sources]], split.test),
    }


def _log_curves(parts: Parts, metrics: dict[str, Any], tracker: Tracker) -> None:
    for step, loss in parts.module.losses:
        tracker.log({"loss": loss}, step)
    scalars = {key: metrics[key] for key in ("initial", "final", "final_reverse", "mapping")}
    scalars |= {"seconds": metrics["seconds"], "peak_memory_mb": metrics["peak_memory_mb"]}
    tracker.log({f"run/{key}": value for key, value in flattened(scalars).items()}, 0)


def _write_files(
    folder: Path, pair: GraphPair, observer: TestObserver, metrics: dict[str, Any]
) -> None:
    report = observer.last
    assert report is not None and observer.initial_ranks and observer.final_ranks
    run_files.write_alignment(folder, pair, report.beliefs)
    run_files.write_ranks(folder, observer.test, observer.initial_ranks, observer.final_ranks)
    joint = report.joint.beliefs if report.joint else None
    run_files.write_beliefs(folder, report.beliefs, joint)
    run_files.write_metrics(folder, metrics)
