"""Estimates the peak memory of each phase of a run from sizes and settings.

The formulas count the large tensors of each phase. Their factors were fitted to the measured peaks
of runs with 500 to 240,000 entities on CPUs and GPUs. Tests compare the estimates with new runs.
"""

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from emea.config.idle import candidates_key, has_joint_steps, uses_two_way
from emea.data.graph_pair import GraphPair
from emea.errors import ConfigError
from emea.fit.stages import MAX_JOINT_ENTITIES
from emea.matching.scanned_search import block_rows
from emea.matching.similarity import BLOCK_BYTES
from emea.run.parts import member_models
from emea.run.reasoning_time import announce_reasoning
from emea.run.search_time import announce_searches, search_name
from emea.runtime.block_memory import block_budget
from emea.runtime.device import available_memory, memory_in_use

logger = logging.getLogger(__name__)

MIB, GIB = 2**20, 2**30
FLOAT, ID = 4, 8

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

IPTRANSE_JOIN = {"one": (0.3, 4.5), "more": (0.5, 8.5)}
"""The share of the neighbour join that candidates of IPTransE fill: without labels, and its growth
with the share of labelled entities, for one and for more EM iterations. With few labels, its
candidates share few neighbours; pseudo-labels let them share more."""

BYTES_PER_TRIPLE = 1200
"""Memory of the PARIS baseline."""

ASSIGNED_SCORES = 2**26
"""Scores that the k-means search holds while it assigns entities to cells."""


@dataclass(frozen=True)
class Sizes:
    """Holds the sizes on which memory depends.

    Args:
        num_source: Number of source entities.
        num_target: Number of target entities.
        source_triples: Number of source triples.
        target_triples: Number of target triples.
        device: The device that computes.
        num_labels: Number of training links; ``None`` if it is unknown.
        num_iterations: Number of EM iterations.
    """

    num_source: int
    num_target: int
    source_triples: int
    target_triples: int
    device: torch.device
    num_labels: int | None = None
    num_iterations: int = 0

    @property
    def num_entities(self) -> int:
        """Number of entities of both graphs."""
        return self.num_source + self.num_target

    @property
    def num_edges(self) -> int:
        """Largest possible number of ordered pairs of neighbours in both graphs."""
        return 2 * (self.source_triples + self.target_triples)

    @property
    def is_cpu(self) -> bool:
        """Whether the run computes in host memory."""
        return self.device.type == "cpu"

    @property
    def block(self) -> int:
        """Bytes of one block of scores."""
        return min(
            block_budget(BLOCK_BYTES, self.device), FLOAT * self.num_source * self.num_target
        )


@dataclass(frozen=True)
class EncoderMemory:
    """Holds the memory of one encoder in bytes.

    Args:
        width: Width of its embeddings.
        training: Peak of its training.
        kept: Weights and states that stay in memory after the training.
        join_share: The share of the neighbour join that its candidates fill.
    """

    width: int
    training: float
    kept: float
    join_share: float = 1.0


@dataclass(frozen=True)
class Phase:
    """Holds the estimate of a phase.

    Args:
        name: Name of the phase.
        num_bytes: Estimated peak memory.
        advice: The settings that reduce it.
    """

    name: str
    num_bytes: float
    advice: str


@dataclass(frozen=True)
class MemoryEstimate:
    """Holds the estimated peak of each phase, without the memory that is in use already.

    Args:
        phases: The phases of the run.
        width: Width of the embeddings; 0 if the run has none.
    """

    phases: tuple[Phase, ...]
    width: int = 0

    @property
    def peak(self) -> Phase:
        """The phase with the largest peak."""
        return max(self.phases, key=lambda phase: phase.num_bytes)


def check_costs(
    config: DictConfig, pair: GraphPair, device: torch.device, num_labels: int | None = None
) -> None:
    """Log estimates of a run's memory and time, and raise an error if the memory cannot fit.

    Raises:
        ConfigError: If a phase needs more memory than there is. The message names the setting to
            change. ``trainer.memory_check=false`` only warns.
    """
    estimate = estimate_memory(config, pair, device, num_labels)
    if estimate is None:
        return
    used, available = memory_in_use(device), available_memory(device)
    peak = estimate.peak
    parts = ", ".join(f"{one.name} {_shown(used + one.num_bytes)}" for one in estimate.phases)
    logger.info("Estimated peak memory: %s (%s)", _shown(used + peak.num_bytes), parts)
    if available is not None and peak.num_bytes > available:
        problem = (
            f"The run needs about {_shown(used + peak.num_bytes)} of memory for {peak.name}, but "
            f"{_shown(used + available)} are available."
        )
        is_checked = OmegaConf.select(config, "trainer.memory_check", default=True)
        if peak.num_bytes > ACCURACY * available and is_checked:
            raise ConfigError(
                f"{problem} To reduce it, {peak.advice}; to try anyway, set "
                "trainer.memory_check=false."
            )
        logger.warning("%s It may run out of memory. To reduce it, %s.", problem, peak.advice)
    if estimate.width:
        sides = pair.source.num_entities, pair.target.num_entities
        announce_searches(config, *sides, estimate.width, device)
    announce_reasoning(config, pair, device)


def estimate_memory(
    config: DictConfig, pair: GraphPair, device: torch.device, num_labels: int | None = None
) -> MemoryEstimate | None:
    """Return the estimate of a run; ``None`` if it uses an encoder that is not from emea."""
    source, target = pair.source, pair.target
    sizes = Sizes(
        source.num_entities,
        target.num_entities,
        source.num_triples,
        target.num_triples,
        device,
        num_labels,
        OmegaConf.select(config, "em.iterations", default=0),
    )
    if "model" not in config.method.uses:
        needed = BYTES_PER_TRIPLE * (sizes.source_triples + sizes.target_triples)
        return MemoryEstimate((Phase("reasoning", needed, "use smaller graphs"),))
    models = [_encoder_memory(model, sizes) for model in member_models(config)]
    known = [model for model in models if model is not None]
    if len(known) < len(models):
        return None
    width = sum(model.width for model in known)
    return MemoryEstimate(tuple(_phases(config, sizes, known)), width)


def _phases(config: DictConfig, sizes: Sizes, models: list[EncoderMemory]) -> Iterator[Phase]:
    kept = sum(model.kept for model in models)
    # on a GPU, members of an ensemble may train side by side
    num_joint = 1 if sizes.is_cpu else max(1, MAX_JOINT_ENTITIES // max(1, sizes.num_entities))
    added = sorted((model.training - model.kept for model in models), reverse=True)
    training = kept + sum(added[:num_joint])
    yield Phase("training", training + LIBRARIES, "use a smaller model.encoder.dim")
    embeddings = FLOAT * sizes.num_entities * sum(model.width for model in models)
    search, advice = _search_memory(config, sizes)
    searching = kept + NUM_COPIES * embeddings
    # on a CPU, the allocator keeps what the training freed, and blocks rarely fit into its gaps
    before = max(searching, training) if sizes.is_cpu else searching
    yield Phase("search", before + search + LIBRARIES, f"use a smaller model.encoder.dim{advice}")
    if not has_joint_steps(config):
        return
    key = candidates_key(config)
    width = min(int(OmegaConf.select(config, key)), sizes.num_target)
    rows = 2 * sizes.source_triples * width * max(model.join_share for model in models)
    joined = rows * BYTES_PER_JOIN_ROW["dual" if uses_two_way(config) else "paper"]
    reasoning = kept + (NUM_COPIES - 1) * embeddings + joined
    if sizes.is_cpu:
        reasoning = max(reasoning, before) + sizes.block
    yield Phase("reasoning", reasoning + LIBRARIES, f"use a smaller {key}")


def _search_memory(config: DictConfig, sizes: Sizes) -> tuple[float, str]:
    """Return the memory of a candidate search without embeddings, and the setting to change."""
    name = search_name(config, sizes.num_source * sizes.num_target, sizes.device)
    blocks = NUM_BLOCKS * sizes.block
    if not sizes.is_cpu:
        num_rows = min(block_budget(block_rows(sizes.num_target), sizes.device), sizes.num_source)
        blocks = max(blocks, FLOAT * num_rows * sizes.num_target)
    if name in ("faiss", "one_pass"):
        length = min(OmegaConf.select(config, "search.shortlist", default=100), sizes.num_target)
        advice = " or search.shortlist" if "shortlist" in config.search else ""
        return blocks + sizes.num_entities * length * (ID + FLOAT), advice
    if name == "kmeans":
        num_cells = OmegaConf.select(config, "search.num_cells") or math.isqrt(sizes.num_target)
        assigned = min(ASSIGNED_SCORES, max(sizes.num_source, sizes.num_target) * num_cells)
        return blocks + FLOAT * assigned, ""
    return blocks, ""


def _encoder_memory(model: DictConfig, sizes: Sizes) -> EncoderMemory | None:
    target = OmegaConf.select(model, "encoder._target_")
    estimate = ENCODERS.get(str(target))
    return None if estimate is None else estimate(model, sizes)


def _rrea(model: DictConfig, sizes: Sizes) -> EncoderMemory:
    return _reflections(model, sizes, 7.0 if sizes.is_cpu else 4.0)


def _dual_amn(model: DictConfig, sizes: Sizes) -> EncoderMemory:
    from emea.encoders.hard_sample_objective import VALUES_PER_BLOCK

    batch = OmegaConf.select(model, "objective.batch_size", default=1024)
    distances = 2 * FLOAT * min(VALUES_PER_BLOCK, 2 * batch * sizes.num_entities)
    found = _reflections(model, sizes, 11.0 if sizes.is_cpu else 10.0)
    return EncoderMemory(found.width, found.training + distances, found.kept)


def _reflections(model: DictConfig, sizes: Sizes, num_copies: float) -> EncoderMemory:
    """Return the memory of an encoder with reflection layers and two channels."""
    dim, depth = model.encoder.dim, model.encoder.depth
    width = 2 * (depth + 1) * dim
    activations = num_copies * FLOAT * sizes.num_entities * width
    kept = 3 * FLOAT * sizes.num_entities * dim
    return EncoderMemory(width, activations + BYTES_PER_EDGE * sizes.num_edges, kept)


def _light_ea(model: DictConfig, sizes: Sizes) -> EncoderMemory:
    encoder = model.encoder
    layers = (encoder.depth + 5) * encoder.dim + 4 * encoder.output_dim
    projections = FLOAT * (2 * encoder.depth + 1) * encoder.dim * encoder.output_dim
    training = FLOAT * sizes.num_entities * layers + 2 * projections
    return EncoderMemory(
        encoder.output_dim, training, FLOAT * sizes.num_entities * encoder.output_dim
    )


def _alinet(model: DictConfig, sizes: Sizes) -> EncoderMemory:
    dims = model.encoder.dims
    width = sum(dims)
    return EncoderMemory(
        width,
        14.5 * FLOAT * sizes.num_entities * width,
        4 * FLOAT * sizes.num_entities * dims[0],
    )


def _iptranse(model: DictConfig, sizes: Sizes) -> EncoderMemory:
    dim, batch = model.encoder.dim, OmegaConf.select(model, "objective.batch_size", default=5000)
    batch = min(batch, sizes.num_edges)
    weights = 4 * FLOAT * sizes.num_entities * dim
    share = 1.0
    if sizes.num_labels is not None:
        labelled = sizes.num_labels / min(sizes.num_source, sizes.num_target)
        least, growth = IPTRANSE_JOIN["more" if sizes.num_iterations > 1 else "one"]
        share = min(1.0, least + growth * labelled)
    return EncoderMemory(dim, weights + 40 * FLOAT * batch * dim, weights, share)


ENCODERS: dict[str, Callable[[Any, Sizes], EncoderMemory]] = {
    "emea.encoders.rrea.RREA": _rrea,
    "emea.encoders.dual_amn.DualAMN": _dual_amn,
    "emea.encoders.light_ea.LightEA": _light_ea,
    "emea.encoders.alinet.AliNet": _alinet,
    "emea.encoders.iptranse.IPTransE": _iptranse,
}
"""Estimates by the class of an encoder."""


def _shown(num_bytes: float) -> str:
    return f"{num_bytes / GIB:,.1f} GiB"
