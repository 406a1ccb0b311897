"""Estimates the peak memory of each phase of a run from sizes and settings.

The formulas count the large tensors of each phase. Their factors were fitted to the measured peaks
of runs with 500 to 240,000 entities on CPUs and GPUs. Tests compare the estimates with new runs.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from emea.config.run_config import ModelConfig, RunConfig, typed, uses_two_way
from emea.config.settings.em import TwoWaySettings
from emea.data.graph_pair import GraphPair
from emea.encoders.dual_amn import VALUES_PER_BLOCK
from emea.errors import ConfigError
from emea.fit.training_loop import MAX_JOINT_ENTITIES
from emea.matching.scanned_search import block_rows
from emea.matching.similarity import BLOCK_BYTES
from emea.runtime.block_memory import block_budget
from emea.runtime.device import available_memory, memory_in_use

logger = logging.getLogger(__name__)

DUAL_AMN = "emea.encoders.dual_amn.DualAMN"

MIB, GIB = 2**20, 2**30
FLOAT = 4

ACCURACY = 1.5
"""Estimates and measured peaks differ by at most this factor, so a run is refused only if its
estimate exceeds the available memory by more."""

LIBRARIES = 60 * MIB
"""Memory of modules that a run imports while it trains and evaluates."""

BYTES_PER_EDGE = 160
"""Scalars that the layers of an encoder hold for each edge."""

NUM_BLOCKS = 3
"""Blocks of scores in memory at a time: the scores, a temporary result and sorted values."""

NUM_COPIES = 3
"""Copies of the embeddings in memory during a search: as computed, detached and normalised."""

BYTES_PER_JOIN_ROW = {"paper": 450, "dual": 180}
"""Memory of the neighbour join of a rule, for each candidate of each pair of neighbours."""

BYTES_PER_TRIPLE = 1200
"""Memory of the PARIS baseline."""


class EncoderMemory(NamedTuple):
    """Holds the memory of one encoder in bytes.

    Args:
        width: Width of its embeddings.
        training: Peak of its training.
        kept: Weights and states that stay in memory after the training.
    """

    width: int
    training: float
    kept: float


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
    used, available = memory_in_use(device), available_memory(device)
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
    logger.warning("%s It may run out of memory. To reduce it, %s.", problem, peak.advice)


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
        return (Phase("reasoning", BYTES_PER_TRIPLE * num_triples, "use smaller graphs"),)
    models = []
    for model in settings.models:
        estimate = ENCODERS.get(str(model.encoder.get("_target_")))
        if estimate is None:
            return None
        models.append(estimate(model, num_entities, num_triples, device.type == "cpu"))
    return tuple(_phases(settings, pair, device, models))


def _phases(
    settings: RunConfig, pair: GraphPair, device: torch.device, models: list[EncoderMemory]
) -> Iterator[Phase]:
    num_source, num_target = pair.source.num_entities, pair.target.num_entities
    is_cpu, num_entities = device.type == "cpu", num_source + num_target
    kept = sum(model.kept for model in models)
    # on a GPU, members of an ensemble may train side by side
    num_joint = 1 if is_cpu else max(1, MAX_JOINT_ENTITIES // max(1, num_entities))
    added = sorted((model.training - model.kept for model in models), reverse=True)
    training = kept + sum(added[:num_joint])
    yield Phase("training", training + LIBRARIES, "use a smaller model.encoder.dim")
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
    yield Phase("search", before + blocks + LIBRARIES, "use a smaller model.encoder.dim")
    if not (settings.uses("em") and settings.uses("rule") and settings.em.iterations):
        return
    kind, key, most = "paper", "em.num_candidates", settings.em.num_candidates
    if uses_two_way(settings.nodes):
        kind, key = "dual", "em.two_way.max_candidates"
        most = typed(TwoWaySettings, settings.nodes.em.two_way).max_candidates
    # a triple has two ordered pairs of neighbours
    rows = 2 * pair.source.num_triples * min(most, num_target)
    reasoning = kept + (NUM_COPIES - 1) * embeddings + rows * BYTES_PER_JOIN_ROW[kind]
    if is_cpu:
        reasoning = max(reasoning, before) + block
    yield Phase("reasoning", reasoning + LIBRARIES, f"use a smaller {key}")


def _reflections(
    model: ModelConfig, num_entities: int, num_triples: int, is_cpu: bool
) -> EncoderMemory:
    """Return the memory of RREA or Dual-AMN: reflection layers and two channels."""
    num_copies, others = 7.0 if is_cpu else 4.0, 0
    if model.encoder.get("_target_") == DUAL_AMN:
        num_copies = 11.0 if is_cpu else 10.0
        batch = model.objective.get("batch_size", 1024)
        others = 2 * FLOAT * min(VALUES_PER_BLOCK, 2 * batch * num_entities)
    width = 2 * (model.encoder.depth + 1) * model.encoder.dim
    activations = num_copies * FLOAT * num_entities * width
    edges = 2 * BYTES_PER_EDGE * num_triples
    kept = 3 * FLOAT * num_entities * model.encoder.dim
    return EncoderMemory(width, activations + edges + others, kept)


def _light_ea(model: ModelConfig, num_entities: int, *_: object) -> EncoderMemory:
    dim, depth, width = model.encoder.dim, model.encoder.depth, model.encoder.output_dim
    layers = FLOAT * num_entities * ((depth + 5) * dim + 4 * width)
    projections = FLOAT * (2 * depth + 1) * dim * width
    return EncoderMemory(width, layers + 2 * projections, FLOAT * num_entities * width)


def _alinet(model: ModelConfig, num_entities: int, *_: object) -> EncoderMemory:
    width, per_column = sum(model.encoder.dims), FLOAT * num_entities
    return EncoderMemory(width, 14.5 * per_column * width, 4 * per_column * model.encoder.dims[0])


ENCODERS: dict[str, Callable[[Any, int, int, bool], EncoderMemory]] = {
    "emea.encoders.rrea.RREA": _reflections,
    DUAL_AMN: _reflections,
    "emea.encoders.light_ea.LightEA": _light_ea,
    "emea.encoders.alinet.AliNet": _alinet,
}
"""Estimates by the class of an encoder."""


def _shown(num_bytes: float) -> str:
    return f"{num_bytes / GIB:,.1f} GiB"
