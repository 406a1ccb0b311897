"""Estimates the time of the M- and E-steps of a run from sizes and settings.

A step joins the neighbours of each source entity with the neighbours of their candidates. Its time
is proportional to the rows of this join: the candidates of the ends of all triples, times the
degree of a target entity that a triple ends in. The degree of a hub counts up to a limit, because
steps bound their work for hubs. The two-way step joins in each round, and an exact search compares
all pairs once more; an approximate one keeps its lists of candidates. The factors were fitted to
runs on zh, contea_fr_en and a synthetic pair with 5,000 entities. They are CPU time, which does not
depend on other processes. On a GPU, the constant part dominates.
"""

import logging
from dataclasses import dataclass

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf

from emea.config.idle import candidates_key, has_joint_steps, uses_two_way
from emea.data.graph_pair import GraphPair
from emea.rules.implied_pairs import MAX_MEMBERS
from emea.run.search_time import search_name
from emea.runtime.console import duration

logger = logging.getLogger(__name__)

SHOWN_SECONDS = 60
"""Shorter reasoning is not announced."""

NUM_ROUNDS = 4.0
"""Usual number of rounds of a two-way step; rounds end when few matches change."""


@dataclass(frozen=True)
class StepCost:
    """Holds the factors of the time of one step on one type of device.

    Args:
        constant: Seconds of a step, independent of sizes.
        per_row: Seconds for each row of the join, in one round.
        per_pair: Seconds for each pair of entities that an exact search compares.
    """

    constant: float
    per_row: float
    per_pair: float


COSTS = {
    ("cpu", "paper"): StepCost(0.0, 2.9e-8, 0.0),
    ("cpu", "dual"): StepCost(0.0, 2.1e-8, 1.4e-8),
    ("cpu", "one_to_one"): StepCost(0.0, 3.0e-8, 4.0e-8),
    ("cuda", "paper"): StepCost(0.1, 2e-10, 0.0),
    ("cuda", "dual"): StepCost(0.1, 8e-10, 0.0),
    ("cuda", "one_to_one"): StepCost(2.0, 8e-10, 0.0),
}
"""Factors by type of device and step. Those of GPUs are from recorded runs that shared an H200."""


def estimate_reasoning(config: DictConfig, pair: GraphPair, device: torch.device) -> float | None:
    """Return the seconds of all M- and E-steps of a run; ``None`` if it has none.

    Args:
        config: The configuration of the run.
        pair: The graphs.
        device: The device to compute on.
    """
    if not has_joint_steps(config):
        return None
    source, target = pair.source, pair.target
    kind, rounds = "paper", 1.0
    if uses_two_way(config):
        is_one_to_one = OmegaConf.select(config, "em.two_way.one_to_one", default=False)
        kind = "one_to_one" if is_one_to_one else "dual"
        two_way = config.em.two_way
        rounds = min(NUM_ROUNDS, 1 + two_way.propagation) * min(1.0, two_way.sweeps / 2)
    cost = COSTS["cpu" if device.type == "cpu" else "cuda", kind]
    width = min(int(OmegaConf.select(config, candidates_key(config))), target.num_entities)
    degrees = target.degrees().astype(np.float64)
    degree = (degrees * degrees.clip(max=MAX_MEMBERS)).sum() / max(1.0, degrees.sum())
    rows = 2 * source.num_triples * width * degree
    num_pairs = source.num_entities * target.num_entities
    searched = num_pairs if search_name(config, num_pairs, device) == "exact" else 0
    step = cost.constant + rounds * rows * cost.per_row + searched * cost.per_pair
    members = OmegaConf.select(config, "ensemble.num_members", default=1)
    is_independent = OmegaConf.select(config, "ensemble.name") == "independent"
    return float((1 + config.em.iterations) * step * (members if is_independent else 1))


def announce_reasoning(config: DictConfig, pair: GraphPair, device: torch.device) -> None:
    """Log the estimated time of all M- and E-steps, if they take long."""
    seconds = estimate_reasoning(config, pair, device)
    if seconds is not None and seconds > SHOWN_SECONDS:
        logger.info(
            "Reasoning takes about %s of %s time. A smaller %s or em.iterations takes less.",
            duration(seconds),
            "CPU" if device.type == "cpu" else "GPU",
            candidates_key(config),
        )
