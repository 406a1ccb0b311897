"""Estimates the peak memory of each phase of a run from sizes and settings.

The formulas count the large tensors of each phase. Their factors were fitted to the measured peaks
of runs with 500 to 240,000 entities on CPUs and GPUs. Tests compare the estimates with new runs.
"""

import logging
import sys
from collections.abc import Iterator
from typing import NamedTuple

import torch

from emea.config.run_config import RunConfig, typed
from emea.data.graph_pair import GraphPair
from emea.em.settings import TwoWaySettings
from emea.encoders.memory import FLOAT, EncoderMemory, RunSizes
from emea.errors import ConfigError
from emea.fit.training_loop import MAX_JOINT_ENTITIES
from emea.matching.scanned_search import block_rows
from emea.matching.similarity import BLOCK_BYTES
from emea.runtime.block_memory import block_budget
from emea.runtime.device import available_memory, memory_in_use

logger = logging.getLogger(__name__)

MIB, GIB = 2**20, 2**30

ACCURACY = 1.5
"""Estimates and measured peaks differ by at most this factor, so a run is refused only if its
estimate exceeds the available memory by more."""

LIBRARIES = 60 * MIB
"""Memory of modules that a run imports while it trains and evaluates."""

LIGHTNING = 230 * MIB
"""Memory of Lightning, which a run imports if it has weights to train."""

NUM_BLOCKS = 3
"""Blocks of scores in memory at a time: the scores, a temporary result and sorted values."""

NUM_COPIES = 3
"""Copies of the embeddings in memory during a search: as computed, detached and normalised."""

BYTES_PER_JOIN_ROW = {"paper": 450, "dual": 180}
"""Memory of the neighbour join of a rule, for each candidate of each pair of neighbours."""

BYTES_PER_TRIPLE = 1200
"""Memory of the PARIS baseline."""


class Phase(NamedTuple):
    """Holds the estimated peak of a phase in bytes, and the settings that reduce it."""

    name: str
    num_bytes: float
    advice: str


def check_memory(settings: RunConfig, pair: GraphPair, device: torch.device) -> None:
    """Log an estimate of a run's memory, and raise an error if it cannot fit.

    Raises:
        ConfigError: If a phase needs more memory than there is. The message names the setting to
            change. ``trainer.memory_check=false`` only warns.
    """
    phases = estimate_memory(settings, pair, device)
    if phases is None:
        return
    used = memory_in_use(device)
    available = available_memory(device)
    peak = largest(phases)
    parts = ", ".join(f"{one.name} {_shown(used + one.num_bytes)}" for one in phases)
    logger.info("Estimated peak memory: %s (%s)", _shown(used + peak.num_bytes), parts)
    if available is None or peak.num_bytes <= available:
        return
    problem = (
        f"The run needs about {_shown(used + peak.num_bytes)} of memory for {peak.name}, but "
        f"{_shown(used + available)} are available."
    )
    if peak.num_bytes > ACCURACY * available and settings.trainer.memory_check:
        raise ConfigError(
            f"{problem} To reduce it, {peak.advice}; to try anyway, set trainer.memory_check=false."
        )
    logger.warning(
        "%s It may run out of memory. To reduce it, %s.", problem, peak.advice
    )


def largest(phases: tuple[Phase, ...]) -> Phase:
    """Return the phase with the largest peak."""
    return max(phases, key=lambda phase: phase.num_bytes)


def estimate_memory(
    settings: RunConfig, pair: GraphPair, device: torch.device
) -> tuple[Phase, ...] | None:
    """Return the estimate of each phase, without the memory that is in use already.

    Returns:
        The phases of the run; ``None`` if it uses an encoder without an estimate.
    """
    num_entities = pair.source.num_entities + pair.target.num_entities
    num_triples = pair.source.num_triples + pair.target.num_triples
    if not settings.uses("model"):
        return (
            Phase("reasoning", BYTES_PER_TRIPLE * num_triples, "use smaller graphs"),
        )
    sizes = RunSizes(num_entities, num_triples, is_cpu=device.type == "cpu")
    models: list[EncoderMemory] = []
    for model in settings.models:
        estimate = getattr(model.encoder.named_class(), "estimated_memory", None)
        if estimate is None:
            return None
        models.append(estimate(model.encoder.values, model.objective.values, sizes))
    return tuple(_phases(settings, pair, device, models))


def _phases(
    settings: RunConfig,
    pair: GraphPair,
    device: torch.device,
    models: list[EncoderMemory],
) -> Iterator[Phase]:
    num_source = pair.source.num_entities
    num_target = pair.target.num_entities
    is_cpu = device.type == "cpu"
    num_entities = num_source + num_target
    kept = sum(model.kept for model in models)
    # on a GPU, members of an ensemble may train side by side
    num_joint = 1 if is_cpu else max(1, MAX_JOINT_ENTITIES // max(1, num_entities))
    added = sorted((model.training - model.kept for model in models), reverse=True)
    training = kept + sum(added[:num_joint])
    libraries = memory_of_libraries(settings)
    yield Phase("training", training + libraries, "use a smaller model.encoder.dim")
    embeddings = FLOAT * num_entities * sum(model.width for model in models)
    searching = kept + NUM_COPIES * embeddings
    # on a CPU, the allocator keeps what the training freed, and blocks rarely fit into its gaps
    before = max(searching, training) if is_cpu else searching
    scores = FLOAT * num_source * num_target
    block = min(block_budget(BLOCK_BYTES, device), scores)
    blocks = NUM_BLOCKS * block
    if not is_cpu:  # shortlists of approximate searches are small
        num_rows = min(block_budget(block_rows(num_target), device), num_source)
        blocks = max(blocks, FLOAT * num_rows * num_target)
    yield Phase(
        "search", before + blocks + libraries, "use a smaller model.encoder.dim"
    )
    if not (settings.uses("em") and settings.uses("rule") and settings.em.iterations):
        return
    kind = "paper"
    key = "em.num_candidates"
    most = settings.em.num_candidates
    if settings.two_way is not None and settings.uses_two_way:
        kind = "dual"
        key = "em.two_way.max_candidates"
        most = typed(TwoWaySettings, settings.two_way.values).max_candidates
    # a triple has two ordered pairs of neighbours
    rows = 2 * pair.source.num_triples * min(most, num_target)
    reasoning = kept + (NUM_COPIES - 1) * embeddings + rows * BYTES_PER_JOIN_ROW[kind]
    if is_cpu:
        reasoning = max(reasoning, before) + block
    yield Phase("reasoning", reasoning + libraries, f"use a smaller {key}")


def memory_of_libraries(settings: RunConfig) -> float:
    """Return the memory of modules that a run has not imported when it is estimated."""
    trains = any(model.optimizer is not None for model in settings.models)
    is_loaded = "pytorch_lightning" in sys.modules
    return LIBRARIES + (LIGHTNING if trains and not is_loaded else 0)


def _shown(num_bytes: float) -> str:
    return f"{num_bytes / GIB:,.1f} GiB"
