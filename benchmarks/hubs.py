"""Measures time and memory of reasoning with a matched pair of hubs, by their degree.

    python -m benchmarks hubs [DEGREE ...] [--json FILE]

Both graphs have one hub. The relation between the hub and its neighbours is functional elsewhere,
so that the hub's match looks like strong evidence for each pair of its neighbours. In AvoidConf,
the hub is a near neighbour of all entities. Each degree is measured in a separate process, after a
small graph for which loops are compiled: CPU seconds of the candidate table, of the join of
neighbours (evidence), of implied pairs (propagation), of AvoidConf without its search of near
neighbours, and of the explanation of the hubs' match, and the megabytes that the graphs and these
phases add to the process. ``growth`` is the exponent between two degrees; 1 is linear. Propagation
takes longest at a degree of 1,000: it implies all pairs of up to 1,000 neighbours by one relation,
and none of more.
"""

import math
import multiprocessing
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from unittest import mock

import numpy as np
import torch

from benchmarks.command import bench_parser, write_numbers
from emea.cli.arguments import AT_LEAST_ONE, number_in
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.em.propagation import Propagation
from emea.kernels import choice
from emea.matching.beliefs import Beliefs, Matching
from emea.matching.pair_table import PairTable, ScoredPairs, tabulate
from emea.matching.similarity import Cosine, Similarity
from emea.rules import avoid_conflict
from emea.rules.avoid_conflict import AvoidConflict
from emea.rules.directed_triples import DirectedTriples
from emea.rules.pair_evidence import EvidenceModel
from emea.rules.rule import RuleView
from emea.rules.settings import AvoidConflictSettings
from emea.rules.support import Grounds, support_of

DEGREES = (1_000, 10_000, 100_000)
WARM_UP = 50
"""Degree of the hubs of the small graph."""

NUM_CANDIDATES = 10

Numbers = dict[str, float]


def main(arguments: Sequence[str]) -> None:
    """Measure all degrees, print the numbers and write them to a file on request."""
    parser = bench_parser("hubs", __doc__)
    parser.add_argument(
        "degrees",
        nargs="*",
        type=number_in(AT_LEAST_ONE, int),
        default=list(DEGREES),
        metavar="DEGREE",
    )
    options = parser.parse_args(arguments)
    found: dict[int, Numbers] = {}
    context = multiprocessing.get_context("spawn")
    for degree in options.degrees:
        with context.Pool(1) as pool:
            found[degree] = pool.apply(measure, (degree,))
        print(
            degree,
            *(f"{name} {value:.2f}" for name, value in found[degree].items()),
            sep="  ",
        )
    for (small, before), (large, after) in zip(
        list(found.items())[:-1], list(found.items())[1:], strict=True
    ):
        exponents = growth(before, after, large / small)
        print(f"growth {small} -> {large}", *exponents, sep="  ")
    numbers_of = {str(degree): numbers for degree, numbers in found.items()}
    write_numbers(options.json, {"degrees": numbers_of})


def growth(before: Numbers, after: Numbers, factor: float) -> list[str]:
    """Return the exponent by which each number grows with the degree."""
    return [
        f"{name} {math.log(after[name] / before[name]) / math.log(factor):.2f}"
        for name in before
        if before[name] > 0 and after[name] > 0
    ]


def measure(degree: int) -> Numbers:
    """Return the CPU seconds of each phase and the megabytes that they add to the process."""
    torch.set_num_threads(1)
    with mock.patch.object(
        choice, "LEAST_OPERATIONS", 0
    ):  # the small graph compiles all loops
        _phases(hub_graph(WARM_UP))
        before = _peak_memory()
        numbers = _phases(hub_graph(degree))
    numbers["memory_mb"] = _peak_memory() - before
    return numbers


def _phases(graph: KnowledgeGraph) -> Numbers:
    """Return the CPU seconds of each phase."""
    source, target = DirectedTriples(graph), DirectedTriples(graph)
    evidence = EvidenceModel(source, target)
    propagation = Propagation(source, target)
    similarity = random_similarity(graph.num_entities)
    numbers: Numbers = {}

    start = time.process_time()
    table, probs = candidates(similarity)
    numbers["table"] = time.process_time() - start

    start = time.process_time()
    included = evidence(table, probs).subsumption
    numbers["evidence"] = time.process_time() - start

    start = time.process_time()
    entities = torch.arange(graph.num_entities)
    everyone = torch.stack([entities, entities], dim=1)
    matching = Matching.of_links(everyone, graph.num_entities, graph.num_entities)
    propagation(matching, included, similarity)
    numbers["propagation"] = time.process_time() - start

    beliefs = Beliefs(table.targets, probs)
    rule = avoid_conflict_rule(graph, beliefs)
    start = time.process_time()
    rule(beliefs)
    numbers["avoid_conflict"] = time.process_time() - start

    start = time.process_time()
    carriers = evidence.carriers(beliefs)
    support_of(Grounds(source, target, carriers, included), 0, 0)
    numbers["explanation"] = time.process_time() - start
    return numbers


def hub_graph(degree: int) -> KnowledgeGraph:
    """Return a graph in which entity 0 has ``degree`` neighbours by a relation.

    The same relation links twice as many other entities one to one, which makes it functional.
    A second relation links all entities at random.
    """
    members = np.arange(1, degree + 1)
    others = np.arange(degree + 1, 3 * degree + 1)
    num_entities = 3 * degree + 1
    rng = np.random.default_rng(0)
    ends = rng.integers(0, num_entities, (2, num_entities))
    columns = [
        (members, np.zeros_like(members), np.zeros_like(members)),
        (
            others[: len(others) // 2],
            0 * others[: len(others) // 2],
            others[len(others) // 2 :],
        ),
        (ends[0], np.ones_like(ends[0]), ends[1]),
    ]
    triples = np.concatenate([np.stack(column, axis=1) for column in columns])
    return KnowledgeGraph(np.unique(triples, axis=0), num_entities, 2)


def random_similarity(num_entities: int) -> Similarity:
    """Return the similarity of random embeddings, equal on both sides."""
    vectors = torch.randn(num_entities, 16, generator=torch.Generator().manual_seed(0))
    return Cosine()(vectors, vectors)


def avoid_conflict_rule(graph: KnowledgeGraph, beliefs: Beliefs) -> AvoidConflict:
    """Return the rule with random near neighbours; the hub is a neighbour of each entity."""
    pair = GraphPair("hubs", graph, graph, np.zeros((0, 2), np.int64))
    rule = AvoidConflict(pair, **asdict(AvoidConflictSettings()))
    size = graph.num_entities, rule.num_neighbours
    near = torch.randint(
        graph.num_entities, size, generator=torch.Generator().manual_seed(2)
    )
    near[:, 0] = 0
    with mock.patch.object(avoid_conflict, "nearest_neighbours", lambda *_: near):
        rule.prepare(RuleView(beliefs, torch.zeros(0)))
    return rule


def candidates(similarity: Similarity) -> tuple[PairTable, torch.Tensor]:
    """Return a table of each entity's counterpart and random rivals, and beliefs in them."""
    size = similarity.num_source
    entities = torch.arange(size)
    generator = torch.Generator().manual_seed(1)
    rivals = torch.randint(size, (size * (NUM_CANDIDATES - 1),), generator=generator)
    sources = torch.cat([entities, entities.repeat_interleave(NUM_CANDIDATES - 1)])
    targets = torch.cat([entities, rivals])
    pairs = ScoredPairs(sources, targets, similarity.of_pairs(sources, targets))
    table = tabulate(pairs, torch.zeros_like(sources), size, size, NUM_CANDIDATES)
    right = table.marked(torch.stack([entities, entities], dim=1))
    return table, torch.where(right, 0.8, 0.02) * table.filled


def _peak_memory() -> float:
    """Return the peak memory of this process in megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
