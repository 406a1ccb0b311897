"""Runs one job: checks the config, reads the data, runs the method and records the answer."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from omegaconf import DictConfig

from emea.answer.curation import ACCEPTED, REJECTED, Curated, curated_pairs
from emea.answer.decision import Answering, Decision, check_founded, decide
from emea.answer.exporting import start_date
from emea.answer.settings import VECTORS
from emea.config.checks import check_cardinality, check_config
from emea.config.run_config import RunConfig
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.evaluation.calibration import judged_sources
from emea.fit.settings import TrainerSettings
from emea.kernels.choice import use_kernels
from emea.record.checked_files import BackgroundWriter
from emea.record.earlier_runs import refuse_recorded
from emea.record.pair_file import load_pair, pair_of_run
from emea.record.run_folder import finite
from emea.record.run_header import Launch, make_header, without_secrets
from emea.record.run_record import RunHeader
from emea.record.tracker import Tracker
from emea.run.building import (
    accepted_links,
    answerable,
    build_answering,
    draw_split,
    with_literals,
)
from emea.run.decoy_run import decoy_numbers, least_share
from emea.run.em_run import EMRun
from emea.run.judgement import judge, log_data
from emea.run.memory_estimate import check_memory
from emea.run.method_choice import is_judged_by_decoys
from emea.run.observer import flattened
from emea.run.outcome import Numbers, Outcome, RunInputs
from emea.run.reasoning_run import ReasoningRun
from emea.run.result import (
    RunResult,
    run_metrics,
    write_embeddings,
    write_ranks_and_beliefs,
)
from emea.run.resuming import recorded
from emea.run.schema_mapping import schema_mapping
from emea.run.warm_start import WarmStart
from emea.runtime.block_memory import limit_blocks
from emea.runtime.device import (
    choose_device,
    forget_peak_memory,
    keep_freed_memory,
    peak_memory_mb,
)
from emea.runtime.heartbeat import HEARTBEAT
from emea.runtime.threads import SMALL_GRAPHS, one_thread

logger = logging.getLogger(__name__)

CURVES = (
    *("initial", "final", "final_reverse", "one_to_one", "mapping", "answer"),
    "calibration",
    *(
        "compatibility",
        "export",
        "sources",
        "counterparts",
        "seconds",
        "peak_memory_mb",
    ),
)
"""Sections of the metrics that trackers get."""

THRESHOLD_STEP = 5
"""Distance of the thresholds of the curves of precision and recall, in percent."""


class Times(NamedTuple):
    """When a job started, when its objects were built, and when they were trained."""

    started: float
    built: float
    trained: float


class RunStart(NamedTuple):
    """Where a run writes, and what its record begins with.

    Args:
        folder: The folder of the run.
        shown: The configuration without secrets.
        header: The header of the record.
    """

    folder: Path
    shown: DictConfig
    header: RunHeader


@dataclass(frozen=True, eq=False)
class Job:
    """Holds what is known about a run before it starts.

    Args:
        inputs: What the method may use.
        pair: The graphs and all their links.
        tracker: Records the metrics.
        answering: Selects the matches from the beliefs.
        warnings: Warnings about the data.
    """

    inputs: RunInputs
    pair: GraphPair
    tracker: Tracker
    answering: Answering
    warnings: list[str]


class TrainedRun(Protocol):
    """Finds the beliefs of a run; its training may take long and may be interrupted."""

    def train(
        self, folder: Path, resume_from: Path | None, writer: BackgroundWriter
    ) -> None:
        """Compute the beliefs, from a checkpoint if there is one."""

    def outcome(self, pair: GraphPair) -> Outcome:
        """Return the beliefs, measured on the test links."""


@HEARTBEAT.beating()
def run_job(
    config: DictConfig,
    folder: Path,
    launch: Launch | None = None,
    *,
    pair: GraphPair | None = None,
    resumes: bool = False,
    start_from: WarmStart | None = None,
    made: Callable[[RunInputs], TrainedRun] | None = None,
    decisions: Sequence[Curated] | None = None,
) -> RunResult:
    """Run one configuration and write its records into the folder.

    Args:
        config: A composed config.
        folder: The folder of the run; created if missing. With ``skip_recorded``, an interrupted
            run with the same fingerprint is continued in its own folder instead.
        launch: The command or the sweep that the run belongs to.
        pair: The graphs, if they are in memory; ``None`` means those that the config names.
        resumes: Resume the run of the folder or fail; otherwise a run with other settings, data or
            code is replaced.
        start_from: The state of an earlier run to start from; baselines do not use it.
        made: Makes a run that does not train; ``None`` means the run of the configured method.
        decisions: The decisions of a person that the run follows; ``None`` means the rejected
            pairs, and the known links if the configuration names their author.

    Raises:
        AlreadyRecordedError: If ``skip_recorded`` is set and the same run is recorded.
    """
    launch = launch or Launch()
    started = time.perf_counter() - launch.read_s
    job = prepare(config, folder, pair, resumes, launch.is_checked)
    shown = without_secrets(config)
    inputs = job.inputs
    uses_test_links = inputs.visible.uses_test_links
    header = make_header(shown, job.pair, inputs.split, uses_test_links, launch)
    made = made or _configured_run(inputs, start_from)
    folder = _folder_to_use(job, header, folder, launch)
    logger.info("Writing results to %s", folder)
    record = recorded(
        shown, job.pair, folder, header=header, tracker=job.tracker, resumes=resumes
    )
    limit = _thread_limit(job.pair, inputs.device)
    with limit, record as (header, checkpoint), BackgroundWriter() as writer:
        run = made(inputs)
        built = time.perf_counter()
        run.train(folder, checkpoint, writer)
        times = Times(started, built, trained=time.perf_counter())
        found = run.outcome(job.pair)
        # waits for the last checkpoint: without it, the run writes no results
        writer.write(partial(write_ranks_and_beliefs, folder, inputs.split, found))
        if decisions is None:
            decisions = own_decisions(job, header)
        result = _answered(job, found, RunStart(folder, shown, header), times)
        result = replace(result, decisions=decisions)
        if VECTORS in result.export.formats:
            write_embeddings(folder, result.pair, found)
        result.write_answer(folder, writer)
    return result


def _configured_run(
    inputs: RunInputs, start_from: WarmStart | None
) -> Callable[[RunInputs], TrainedRun]:
    """Return what makes the run of the configured method, if the memory is enough for it."""
    check_memory(inputs.settings, inputs.graphs, inputs.device)
    if inputs.settings.reasoner is not None:
        return ReasoningRun
    return partial(EMRun, start=start_from)


def _folder_to_use(job: Job, header: RunHeader, folder: Path, launch: Launch) -> Path:
    """Return the folder of the run, or that of an interrupted run that it continues.

    Raises:
        AlreadyRecordedError: If ``skip_recorded`` is set and the same run is recorded.
    """
    if not job.inputs.settings.own.skip_recorded:
        return folder
    # the other jobs of a sweep are in sibling folders
    nearby = folder if launch.sweep is None else folder.parent
    return refuse_recorded(header, folder, job.tracker, [nearby]) or folder


def own_decisions(job: Job, header: RunHeader) -> list[Curated]:
    """Return the rejected pairs, and the known links if the configuration names their author."""
    author = job.inputs.settings.own.author or ""
    date = start_date(header) if author else ""
    found = curated_pairs(job.pair, job.pair.rejected, REJECTED, author, date)
    if author and job.inputs.settings.name("split") == "known":
        known = job.inputs.split.supervision
        links = np.unique(np.concatenate([known.train, known.validation]), axis=0)
        found += curated_pairs(job.pair, links, ACCEPTED, author, date)
    return found


def prepare(
    config: DictConfig,
    folder: Path,
    pair: GraphPair | None,
    resumes: bool,
    is_checked: bool = False,
) -> Job:
    """Check the config unless it was, set up the process, and read the data unless it is given."""
    if not is_checked:
        check_config(config)
    settings = RunConfig.of(config)
    device = _prepare_process(settings.trainer)
    if pair is None:
        pair = pair_of_run(folder, config, resumes) if resumes else load_pair(config)
    split = draw_split(settings, pair)
    check_cardinality(settings.name("method"), pair.cardinality)
    visible = settings.option("protocol")()(split).rejecting(pair.rejected)
    # the run gets graphs without links, and only the visible links
    graphs = replace(
        pair, links=pair.links[:0], official=None, reading=None, unmatched=None
    )
    graphs = with_literals(settings, graphs)
    is_estimated = settings.reasoner is not None and is_judged_by_decoys(
        graphs, len(visible.train)
    )
    check_founded(settings.own.export, split, is_estimated)
    warnings = log_data(settings, pair, split)
    tracker: Tracker = settings.option("tracking")()
    inputs = RunInputs(settings, graphs, visible, split, tracker.log, device)
    return Job(inputs, pair, tracker, build_answering(settings), warnings)


def _prepare_process(settings: TrainerSettings) -> torch.device:
    """Set up memory and logging of the process, and return the device to compute on."""
    keep_freed_memory()
    device = choose_device(settings.accelerator)
    forget_peak_memory(device)
    limit_blocks(settings.block_memory)
    use_kernels(settings.kernels, device)
    return device


def _thread_limit(
    pair: GraphPair, device: torch.device
) -> AbstractContextManager[None]:
    """Let torch use one thread for small graphs and on a GPU, where CPU tensors are small."""
    num_entities = pair.source.num_entities + pair.target.num_entities
    return one_thread(num_entities <= SMALL_GRAPHS or device.type == "cuda")


def _answered(
    job: Job,
    found: Outcome,
    start: RunStart,
    times: Times,
) -> RunResult:
    """Decode the answer, measure and judge it, and log all numbers."""
    inputs = job.inputs
    split = job.inputs.split
    export = inputs.settings.own.export
    validation = split.supervision.validation
    # decoys may turn out to be too few only after reasoning
    check_founded(export, split, is_estimated=found.decoys is not None)
    decoys = {} if found.decoys is None else {"decoys": decoy_numbers(found.decoys)}
    decision = decide(
        job.answering,
        answerable(inputs.settings, found.beliefs, split),
        accepted_links(inputs.settings, found.labels, split),
        export,
        validation,
        votes=found.votes,
        cardinality=inputs.graphs.cardinality,
        rejected=inputs.graphs.rejected,
        is_estimated=found.decoys is not None,
        least_share=least_share(
            {**found.scores, **decoys}, split.supervision, job.pair.source.num_entities
        ),
    )
    schema = schema_mapping(inputs.graphs, decision, export.least_inclusion)
    measured = {
        "seconds": _seconds(times, found.scores["history"]),
        "peak_memory_mb": peak_memory_mb(inputs.device),
        "warnings": [*job.warnings, *judge(found, job.pair)],
    }
    metrics = run_metrics(inputs, found, decision, measured)
    _log_curves(found, metrics, job.tracker)
    _log_thresholds(decision, split, job.tracker)
    return RunResult(
        folder=start.folder,
        header=start.header,
        config=start.shown,
        metrics=finite(metrics),
        pair=job.pair,
        split=split,
        neural=found.neural and found.neural.to("cpu"),
        joint=found.joint and found.joint.to("cpu"),
        labels=found.labels.cpu(),
        decision=decision,
        votes=None if found.votes is None else found.votes.cpu(),
        schema=schema,
        export=export,
        run_config=inputs.settings,
        ui_hint=job.tracker.ui_hint,
        literals=inputs.graphs.literals,
    )


def _seconds(times: Times, history: list[Numbers]) -> dict[str, float]:
    """Return the duration of each part of the run.

    The training time of a resumed run includes its stages before the interruption, which are in
    the history.
    """
    in_stages = sum(sum(entry["seconds"].values()) for entry in history)
    load = times.built - times.started
    train = max(times.trained - times.built, in_stages)
    evaluate = time.perf_counter() - times.trained
    total = load + train + evaluate
    return {"load": load, "train": train, "evaluate": evaluate, "total": total}


def _log_thresholds(decision: Decision, split: Split, tracker: Tracker) -> None:
    """Log precision and recall by threshold, in percent as the step of the curves."""
    is_tested = len(split.test) > 0
    known = split.supervision
    judged = decision.on_validation(known)
    if is_tested:
        given = np.concatenate([known.train, known.validation])
        tested = split.test, split.unmatched, split.num_missed
        judged = judged_sources(decision.answer, *tested, given)
    for percent in range(0, 100, THRESHOLD_STEP):
        found = judged.at(percent / 100)
        if found.num_accepted:
            values = {"precision": found.precision, "recall": found.recall}
            tracker.log(
                {f"threshold/{name}": value for name, value in values.items()}, percent
            )


def _log_curves(found: Outcome, metrics: Numbers, tracker: Tracker) -> None:
    """Log losses, results, and accuracy by probability and precision by recall in percent."""
    for loss in found.losses:
        tracker.log({loss.metric: loss.value}, loss.step)
    scalars = flattened({key: metrics[key] for key in CURVES if key in metrics})
    tracker.log({f"run/{key}": value for key, value in scalars.items()}, 0)
    for section, x, y in (
        ("bins", "mean_prob", "accuracy"),
        ("curve", "recall", "precision"),
    ):
        for row in metrics["sources"][section]:
            tracker.log({f"by_{x}/{y}": row[y]}, round(100 * row[x]))
