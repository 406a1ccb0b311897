"""Runs one job: checks the config, reads the data, runs the method and records the answer."""

import errno
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf

from emea.answer.decision import check_founded, decide
from emea.config.checks import check_config
from emea.config.instantiate import factory
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.data.statistics import statistics_table
from emea.encoders.fused_layers import read_halves
from emea.errors import UserError
from emea.fit.alignment_module import Loss
from emea.fit.fitting import quieten_lightning
from emea.record import run_folder
from emea.record.checked_files import BackgroundWriter
from emea.record.earlier_runs import refuse_recorded
from emea.record.pair_file import load_pair, pair_of_run, write_pair
from emea.record.run_header import Launch, make_header, without_secrets
from emea.record.run_record import RunHeader
from emea.record.tracker import Tracker
from emea.run.em_run import EMRun
from emea.run.judgement import (
    data_warnings,
    probability_warning,
    rejected_warning,
    structure_warning,
)
from emea.run.memory_estimate import check_memory
from emea.run.observer import flattened, hard_mapping
from emea.run.parts import build_answering, decoder_name, draw_split, export_settings, with_literals
from emea.run.reasoning_run import ReasoningRun
from emea.run.result import (
    AnswerScores,
    RunMetrics,
    RunResult,
    RunSettings,
    Seconds,
    literal_numbers,
    write_ranks_and_beliefs,
)
from emea.run.resuming import Start, forget_previous, locked_folder
from emea.run.run import Outcome, Run, RunInputs
from emea.run.schema_mapping import schema_mapping
from emea.run.warm_start import WarmStart
from emea.runtime.block_memory import is_out_of_memory, limit_blocks
from emea.runtime.device import (
    choose_device,
    deterministic_mode,
    forget_peak_memory,
    keep_freed_memory,
    peak_memory_mb,
)
from emea.runtime.kernels import use_kernels
from emea.runtime.signals import signals_as_interrupt, was_terminated
from emea.runtime.threads import SMALL_GRAPHS, one_thread

logger = logging.getLogger(__name__)


FULL_DISK = (
    "The disk is full. Earlier files are complete. Free some space, then resume the run with "
    "resume=FOLDER."
)

OUT_OF_MEMORY = (
    "Out of memory, and smaller blocks do not help. Use a smaller model.encoder.dim or "
    "model.objective.batch_size, or search=kmeans, or train in host memory with trainer=cpu."
)


def run_job(
    config: DictConfig,
    folder: Path,
    launch: Launch | None = None,
    pair: GraphPair | None = None,
    resumes: bool = False,
    read_s: float = 0.0,
    is_checked: bool = False,
    start_from: WarmStart | None = None,
) -> RunResult:
    """Run one configuration and write its records into the folder.

    Args:
        config: A composed config.
        folder: The folder of the run; created if missing.
        launch: The command or the sweep that the run belongs to.
        pair: The graphs, if they are in memory; ``None`` means those that the config names.
        resumes: Resume the run of the folder or fail; otherwise a run with other settings, data or
            code is replaced.
        read_s: Seconds that the caller spent on reading the pair.
        is_checked: The caller has already checked the config.
        start_from: The state of an earlier run to start from; baselines do not use it.

    Raises:
        AlreadyRecordedError: If ``skip_recorded`` is set and the same run is recorded.
    """
    if not is_checked:
        check_config(config)
    started = time.perf_counter() - read_s
    device = _prepare_process(config)
    if pair is None:
        pair = pair_of_run(folder, config) if resumes else load_pair(config)
    split = draw_split(config, pair)
    export = export_settings(config)
    check_founded(export, split)
    visible = replace(factory(config.protocol)()(split), rejected=pair.rejected)
    # the run gets graphs without links, and only the visible links
    graphs = replace(pair, links=pair.links[:0], official=None, reading=None)
    graphs = with_literals(config, graphs)
    noticed = _log_data(config, pair, split)
    check_memory(config, graphs, device, len(split.supervision.train))
    tracker: Tracker = factory(config.tracking)()
    shown = without_secrets(config)
    header = make_header(shown, pair, visible.uses_test_links, launch)
    folder = _folder_of(config, folder, header, tracker, launch)
    with (
        _thread_limit(pair, device),
        _recorded(shown, pair, folder, header, tracker, resumes) as start,
        BackgroundWriter() as writer,
    ):
        run = make_run(
            RunInputs(config, graphs, visible, split, tracker.log, device, writer, start_from)
        )
        answering = build_answering(config)  # reports wrong settings before training
        built = time.perf_counter()
        run.train(folder, start.checkpoint)
        trained = time.perf_counter()
        found = run.outcome(pair)
        # waits for the last checkpoint: without it, the run writes no results
        writer.write(partial(write_ranks_and_beliefs, folder, split, found))
        validation = split.supervision.validation
        decision = decide(answering, found.beliefs, found.labels, export, validation)
        schema = schema_mapping(graphs, decision, export.least_inclusion)
        metrics = RunMetrics(
            found.scores,
            RunSettings.of(config, pair, split),
            AnswerScores.of(decision, export, found.judged, decoder_name(config)),
            Seconds.until_now(started, built, trained, found.scores.history),
            peak_memory_mb(device),
            literal_numbers(graphs, found.judged),
            [*noticed, *_judge(found, pair)],
        )
        hint = tracker.ui_hint
        result = RunResult(
            folder, start.header, shown, pair, split, metrics, found, decision, schema, export, hint
        )
        _log_curves(found.losses, metrics, tracker)
        result.write_answer(folder, writer)
    return result


def make_run(inputs: RunInputs) -> Run:
    """Return the run of the configured method: a baseline's, or that of EM with an encoder."""
    kind = EMRun if inputs.config.method.reasoner is None else ReasoningRun
    return kind(inputs)


def _prepare_process(config: DictConfig) -> torch.device:
    """Set up memory and logging of the process, and return the device to compute on."""
    keep_freed_memory()
    quieten_lightning()
    device = choose_device(config.trainer.accelerator)
    forget_peak_memory(device)
    limit_blocks(OmegaConf.select(config, "trainer.block_memory", default=1.0))
    use_kernels(OmegaConf.select(config, "trainer.kernels", default="auto"), device)
    read_halves(OmegaConf.select(config, "trainer.half_precision", default=False))
    return device


def _folder_of(
    config: DictConfig, folder: Path, header: RunHeader, tracker: Tracker, launch: Launch | None
) -> Path:
    """Return the folder, or that of an interrupted run to resume if ``skip_recorded`` is set."""
    if config.skip_recorded:
        # the other jobs of a sweep are in sibling folders
        in_sweep = launch is not None and launch.sweep is not None
        nearby = [folder.parent] if in_sweep else [folder]
        folder = refuse_recorded(header, tracker, nearby) or folder
    logger.info("Writing results to %s", folder)
    return folder


def _thread_limit(pair: GraphPair, device: torch.device) -> AbstractContextManager[None]:
    """Let torch use one thread for small graphs and on a GPU, where CPU tensors are small."""
    num_entities = pair.source.num_entities + pair.target.num_entities
    return one_thread(num_entities <= SMALL_GRAPHS or device.type == "cuda")


@contextmanager
def _recorded(
    config: DictConfig,
    pair: GraphPair,
    folder: Path,
    header: RunHeader,
    tracker: Tracker,
    resumes: bool,
) -> Iterator[Start]:
    """Lock the folder, start or resume the record of a run there, and close it at the end."""
    deterministic = OmegaConf.select(config, "trainer.deterministic", default=False)
    with locked_folder(folder):
        with (
            signals_as_interrupt(),
            _tracked(tracker, folder, config.get("trust") or ()),
            deterministic_mode(deterministic),
        ):
            start = Start.of(folder, header, resumes)
            run_folder.write_config(folder, config)
            if "_target_" not in config.data:  # these graphs are in no other file
                write_pair(folder / run_folder.PAIR_FILE, pair)
            tracker.start(start.header, folder)
            yield start
        # until the record says that the run is finished, a killed run needs it to resume
        forget_previous(folder)


@contextmanager
def _tracked(tracker: Tracker, folder: Path, trust: Sequence[str]) -> Iterator[None]:
    """Close the tracker's run with the status and the reason of its end.

    Args:
        tracker: The tracker.
        folder: The folder of the run.
        trust: Modules of the user, which have to be named again to resume the run.
    """
    try:
        yield
    except KeyboardInterrupt:
        how = "terminated" if was_terminated() else "interrupted"
        tracker.finish("KILLED", how)
        command = f"emea run resume={quote(str(folder))}"
        command += f" {quote('trust=[' + ','.join(trust) + ']')}" if trust else ""
        logger.warning("The run was %s. Continue with: %s", how, command)
        raise
    except BaseException as error:
        tracker.finish("FAILED", f"{type(error).__name__}: {error}")
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise UserError(FULL_DISK) from error
        if is_out_of_memory(error):
            raise UserError(OUT_OF_MEMORY) from error
        raise
    tracker.finish("FINISHED")


def _log_data(config: DictConfig, pair: GraphPair, split: Split) -> list[str]:
    """Log the size of the data and the number of links; log and return warnings."""
    if pair.reading is not None:
        logger.info("Contents of the files:\n%s", statistics_table(pair))
    source, target, known = pair.source, pair.target, split.supervision
    summary = (
        f"{pair.name}: {source.num_entities:,} + {target.num_entities:,} entities, "
        f"{source.num_triples:,} + {target.num_triples:,} triples; links: "
        f"{len(known.train):,} train, {len(known.validation):,} validation, "
        f"{len(split.test):,} test"
    )
    if split.num_missed:
        summary += (
            f", and {split.num_missed:,} test links whose source or target is not in its graph, "
            "which count as missed"
        )
    logger.info(summary)
    uses_literals = OmegaConf.select(config, "literals.name", default="none") != "none"
    if not uses_literals and pair.source.labels and pair.target.labels:
        logger.info(
            "Both graphs have labels, but the run does not use them. literals=similar uses them."
        )
    if not len(split.test):
        logger.info("There are no test links: the run predicts matches and evaluates nothing.")
    noticed = data_warnings(pair, split, config.em.num_candidates, uses_literals)
    # only EM and its encoders leave rejected pairs out
    if pair.rejected is not None and "em" not in config.method.uses:
        noticed.append(rejected_warning(len(pair.rejected), config.method.name))
    for text in noticed:
        logger.warning("%s", text)
    return noticed


def _judge(found: Outcome, pair: GraphPair) -> list[str]:
    """Log and return the warnings that follow from the result."""
    mapping = hard_mapping(found.beliefs)
    labelled = found.labels.cpu().numpy()
    mapping[labelled[:, 0]] = labelled[:, 1]
    probs = found.beliefs.probs.max(1).values.cpu().numpy()
    free = np.setdiff1d(np.flatnonzero(probs > 0), labelled[:, 0])
    others = [probability_warning(probs[free]), structure_warning(pair, mapping)]
    noticed = [*found.warnings, *(text for text in others if text is not None)]
    for text in noticed:
        logger.warning("%s", text)
    return noticed


CURVES = (
    *("initial", "final", "final_reverse", "mapping", "answer", "calibration"),
    *("compatibility", "export", "seconds", "peak_memory_mb"),
)
"""Sections of the metrics that trackers get."""


def _log_curves(losses: list[Loss], metrics: RunMetrics, tracker: Tracker) -> None:
    for loss in losses:
        tracker.log({loss.metric: loss.value}, loss.step)
    sections = metrics.as_dict()
    scalars = flattened({key: sections[key] for key in CURVES})
    tracker.log({f"run/{key}": value for key, value in scalars.items()}, 0)
