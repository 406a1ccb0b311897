"""Estimates the time of the exact candidate searches of a run on a CPU."""

import logging
import time

import torch
from omegaconf import DictConfig

from emea.config.idle import uses_two_way
from emea.matching.search import MAX_EXACT_PAIRS, MAX_EXACT_PAIRS_GPU
from emea.runtime.console import duration

logger = logging.getLogger(__name__)

SHOWN_SECONDS = 60
"""Shorter searches are not announced."""

NUM_PASSES, NUM_PASSES_BACK = 5, 2
"""Passes over all pairs in one iteration, in units of the measured one: CSLS, candidates and ranks
of test links; in both directions with ``em=dual``."""

NUM_ROWS, NUM_COLUMNS, MAX_WIDTH = 256, 4096, 1024
"""Size of the measured block of scores; the time of wider embeddings is proportional."""


def announce_searches(
    config: DictConfig, num_source: int, num_target: int, width: int, device: torch.device
) -> None:
    """Log how long all searches of a run take, if they take long.

    Args:
        config: The configuration of the run.
        num_source: Number of source entities.
        num_target: Number of target entities.
        width: Width of the embeddings.
        device: The device to compute on.
    """
    num_pairs = num_source * num_target
    is_exact = search_name(config, num_pairs, device) == "exact"
    if device.type != "cpu" or not is_exact or num_pairs < NUM_ROWS * NUM_COLUMNS:
        return
    num_passes = NUM_PASSES + (NUM_PASSES_BACK if uses_two_way(config) else 0)
    num_iterations = 1 + config.em.iterations if "em" in config.method.uses else 1
    seconds = num_iterations * num_passes * seconds_per_pair(width) * num_pairs
    if seconds > SHOWN_SECONDS:
        logger.info(
            "Candidate searches and evaluations take about %s on this CPU. search=one_pass or "
            "search=kmeans take less.",
            duration(seconds),
        )


def search_name(config: DictConfig, num_pairs: int, device: torch.device) -> str:
    """Return the name of the search; that of ``search=auto`` depends on size and device.

    On a GPU, ``search=auto`` may also search a large pair exactly, which depends on the embeddings.
    """
    name = str(config.search.name)
    if name != "auto":
        return name
    if device.type == "cpu":
        most, approximate = config.search.get("max_exact_pairs", MAX_EXACT_PAIRS), "one_pass"
    else:
        most = config.search.get("max_exact_pairs_gpu", MAX_EXACT_PAIRS_GPU)
        approximate = "kmeans"
    return "exact" if num_pairs <= most else approximate


def seconds_per_pair(width: int) -> float:
    """Return the time to score and rank one pair of entities, measured on a small block."""
    generator = torch.Generator().manual_seed(0)  # the run's own generator must not change
    rows, columns = (
        torch.rand(size, min(width, MAX_WIDTH), generator=generator)
        for size in (NUM_ROWS, NUM_COLUMNS)
    )
    times = []
    for _ in range(2):
        start = time.perf_counter()
        scores = rows @ columns.T
        scores.topk(10, dim=1)
        scores.logsumexp(1)
        times.append(time.perf_counter() - start)
    return min(times) / scores.numel() * max(1, width / MAX_WIDTH)
