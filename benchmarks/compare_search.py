"""Compare candidate searches with the exact one, and with the form that an earlier version used."""

import logging
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.data.graph_pair import GraphPair
from emea.encoders.joint_graph import join_graphs
from emea.encoders.light_ea import LightEA
from emea.encoders.settings import LightEASettings
from emea.matching import scanned_search
from emea.matching.candidates import search_recall, top_candidates
from emea.matching.csls import CSLS
from emea.matching.kmeans_search import KMeansSearch
from emea.matching.one_pass_search import OnePassSearch
from emea.matching.settings import (
    CSLSSettings,
    KMeansSearchSettings,
    OnePassSearchSettings,
)
from emea.matching.similarity import Cosine, Similarity

logger = logging.getLogger(__name__)

NUM_CANDIDATES = 10

SEARCHED = 2000
"""Source entities whose search is timed."""


def approximate_searches(source: Tensor, target: Tensor) -> dict[str, float]:
    """Measure the recall and the speed of approximate searches for the 10 nearest targets.

    A sample of source entities is searched among all targets. The time to build an index is
    measured separately because all source entities share the index.

    Args:
        source: ``[num_source, dim]`` embeddings.
        target: ``[num_target, dim]`` embeddings.
    """
    logger.info("Measuring the candidate search among %s targets", f"{len(target):,}")
    chosen = torch.randperm(len(source), generator=torch.Generator().manual_seed(0))[
        :SEARCHED
    ]
    source, target = normalize(source[chosen]), normalize(target)
    exact = Cosine()(source, target)
    exact_s, _ = _searched(exact)
    numbers = {f"exact search of {len(source)} entities, s": exact_s}
    builds: dict[str, Callable[[Tensor], Similarity]] = {
        "k-means": lambda some: Cosine(
            KMeansSearch(**asdict(KMeansSearchSettings(seed=0)))
        )(some, target),
        "one pass": lambda some: Cosine(OnePassSearch(OnePassSearchSettings.shortlist))(
            some, target
        ),
    }
    for name, build in builds.items():
        build(source[:1])  # loops are compiled
        start = time.perf_counter()
        build(source[:1])
        index_s = time.perf_counter() - start
        start = time.perf_counter()
        similarity = build(source)
        seconds, found = _searched(similarity)
        # the second index may be built faster than the first
        search_s = max(time.perf_counter() - start - index_s, seconds)
        numbers[f"{name} index, s"] = index_s
        numbers[f"{name} search, s"] = search_s
        numbers[f"{name} search: ratio to exact"] = exact_s / search_s
        numbers[f"{name} search: recall at {NUM_CANDIDATES}"] = search_recall(
            exact, found, 500
        )
    return numbers


def _searched(similarity: Similarity) -> tuple[float, Tensor]:
    start = time.perf_counter()
    found = top_candidates(similarity, NUM_CANDIDATES).targets
    return time.perf_counter() - start, found


def light_ea_embeddings(pair: GraphPair) -> tuple[Tensor, Tensor]:
    """Return LightEA's embeddings, which are hard to search: they form no clusters."""
    graph = join_graphs(pair)
    torch.manual_seed(0)
    model = LightEA(graph, **asdict(LightEASettings()))
    links = pair.links[: len(pair.links) // 5] + np.array([0, graph.num_source])
    model.propagate(torch.from_numpy(links))
    return model.embedding[: graph.num_source], model.embedding[graph.num_source :]


def scanned_search_ratio(
    pair: GraphPair, repeats: int, device: torch.device
) -> dict[str, float]:
    """Compare the search of a GPU with the former one, which sorts products of single precision."""
    works = {"search": partial(search_by_csls, pair, device, num_searched=None)}
    works["former search"] = partial(_without_scan, works["search"])
    for work in works.values():
        work()
    medians = {
        name: statistics.median(timed(work, device) for _ in range(repeats))
        for name, work in works.items()
    }
    numbers = {
        f"{name} of all entities, s": seconds for name, seconds in medians.items()
    }
    return numbers | {
        "search ratio to the former": medians["former search"] / medians["search"]
    }


def _without_scan(search: Callable[[], None]) -> None:
    with mock.patch.object(scanned_search, "usable", lambda *_: False):
        search()


def search_by_csls(
    pair: GraphPair, device: torch.device, num_searched: int | None = SEARCHED
) -> None:
    """Search the best candidates by CSLS, on 600-dimensional vectors.

    Args:
        pair: Graphs of the wanted sizes.
        device: The device to compute on.
        num_searched: Number of source entities; ``None`` means all.
    """
    num_source = pair.source.num_entities
    sizes = min(num_searched or num_source, num_source), pair.target.num_entities
    source, target = (torch.randn(size, 600, device=device) for size in sizes)
    top_candidates(CSLS(CSLSSettings.k)(source, target), NUM_CANDIDATES)


def timed(work: Callable[[], Any], device: torch.device) -> float:
    """Return the seconds that some work takes on a device."""
    _wait(device)
    start = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
