"""Generates random pairs that resemble DBpedia pairs, with up to five million entities per graph.

A world of typed entities and facts is drawn first. Each graph then gets a part of the entities and
a part of the facts between them. It has its own relations, some coarser and some finer than those
of the world.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from emea.data.arrays import NO_MATCH, FloatArray, IntArray
from emea.data.formats.triple_collector import distinct_triples
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.sources.settings import SyntheticSettings

# Standard deviation of the logarithm of the out-degree.
OUT_DEGREE_SIGMA = 0.8
# The value 1 gives Zipf's law. With 2.2, one percent of the relations have 0.3 of the triples and
# ten percent have 0.7. In DBP15K the shares are 0.33-0.42 and 0.80-0.88.
RELATION_SKEW = 2.2
# Attempts to draw a triple for an entity without one. An attempt fails if the graph lacks the tail.
RESCUE_ROUNDS = 25


def synthetic_pair(
    *,
    name: str = SyntheticSettings.name,
    num_entities: int = SyntheticSettings.num_entities,
    triples_per_entity: float = SyntheticSettings.triples_per_entity,
    overlap: float = SyntheticSettings.overlap,
    keep_prob: float = SyntheticSettings.keep_prob,
    merged_share: float = SyntheticSettings.merged_share,
    split_share: float = SyntheticSettings.split_share,
    num_relations: int | None = SyntheticSettings.num_relations,
    hub_skew: float = SyntheticSettings.hub_skew,
    seed: int = SyntheticSettings.seed,
) -> GraphPair:
    """Draw two overlapping graphs. The ranges of the arguments are not checked.

    Args:
        name: Name of the pair.
        num_entities: Entities of each graph.
        triples_per_entity: Triples per entity before sampling.
        overlap: Share of the entities with a counterpart.
        keep_prob: Probability that a graph keeps a common triple.
        merged_share: Share of the relations that the target graph merges.
        split_share: Share of the relations that the target graph splits.
        num_relations: Relations; ``None`` means eight times the square root of ``num_entities``.
        hub_skew: Skew of the degrees; 1 is uniform.
        seed: Seed of the graphs.
    """
    settings = SyntheticSettings(
        name=name,
        num_entities=num_entities,
        triples_per_entity=triples_per_entity,
        overlap=overlap,
        keep_prob=keep_prob,
        merged_share=merged_share,
        split_share=split_share,
        num_relations=num_relations,
        hub_skew=hub_skew,
        seed=seed,
    )
    return _drawn(settings)


def _drawn(settings: SyntheticSettings) -> GraphPair:
    """Return the graphs of these settings."""
    num_entities = settings.num_entities
    rng = np.random.default_rng(settings.seed)
    num_shared = max(1, round(settings.overlap * num_entities))
    num_world = 2 * num_entities - num_shared
    num_relations = settings.num_relations or 8 * math.isqrt(num_entities)
    world = _draw_world(rng, num_world, num_relations, settings.hub_skew)
    # A graph gets a fact if it has the tail and keeps the fact.
    facts_per_entity = settings.triples_per_entity / (
        settings.keep_prob * num_entities / num_world
    )
    facts = _draw_facts(rng, world, facts_per_entity)

    order = rng.permutation(num_world)
    known = order[:num_entities], order[num_world - num_entities :]
    shares = settings.merged_share, settings.split_share
    sides = []
    for members in known:
        ids = np.full(
            num_world, NO_MATCH, dtype=np.int64
        )  # of entities that the graph lacks
        ids[members] = rng.permutation(len(members))
        relation_of = _granularity(rng, world.num_relations, *shares)
        sides.append(
            (
                _side_graph(
                    rng,
                    world,
                    facts,
                    ids,
                    keep_prob=settings.keep_prob,
                    relation_of=relation_of,
                ),
                ids,
            )
        )
    (source, source_ids), (target, target_ids) = sides
    shared = order[num_world - num_entities : num_entities]
    links = np.stack([source_ids[shared], target_ids[shared]], axis=1)
    return GraphPair(settings.name, source, target, links)


@dataclass(frozen=True, eq=False)
class _World:
    """Types of entities and relations. A type has consecutive entity ids and relation ids."""

    type_starts: IntArray
    relation_starts: IntArray
    ranges: IntArray
    tail_skews: FloatArray

    @property
    def num_relations(self) -> int:
        return len(self.ranges)

    def draw_facts_of(self, rng: np.random.Generator, heads: IntArray) -> IntArray:
        """Draw one fact for each given head."""
        types = np.searchsorted(self.type_starts, heads, side="right") - 1
        first = self.relation_starts[types]
        last = self.relation_starts[types + 1]
        # floor(n ** u) follows Zipf's law: value k has probability log((k + 1) / k) / log n. The
        # power of u makes it as steep as in DBpedia.
        steep = rng.random(len(heads)) ** RELATION_SKEW
        ranks = np.floor((last - first + 1) ** steep).astype(np.int64)
        relations = np.minimum(first + ranks, last) - 1
        ranges = self.ranges[relations]
        first = self.type_starts[ranges]
        last = self.type_starts[ranges + 1]
        position = rng.random(len(heads)) ** self.tail_skews[relations]
        tails = np.minimum(
            first + ((last - first) * position).astype(np.int64), last - 1
        )
        return np.stack([heads, relations, tails], axis=1)


def _granularity(
    rng: np.random.Generator,
    num_relations: int,
    merged_share: float,
    split_share: float,
) -> Callable[[IntArray], IntArray]:
    """Return a function that maps the relations of facts of the world to those of a graph."""
    coarse = np.arange(num_relations)
    # Neighbouring relations mostly belong to the same type, so similar relations are merged.
    merged = np.flatnonzero(rng.random(num_relations) < merged_share)
    coarse[merged] = (merged + 1) % num_relations
    is_split = rng.random(num_relations) < split_share

    def relation_of(facts: IntArray) -> IntArray:
        merged_ids = coarse[facts[:, 1]]
        # the tail decides between the parts of a split
        relations: IntArray = 2 * merged_ids + (
            is_split[merged_ids] & (facts[:, 2] % 2 == 1)
        )
        return relations

    return relation_of


def _draw_world(
    rng: np.random.Generator, num_entities: int, num_relations: int, hub_skew: float
) -> _World:
    num_types = min(max(4, round(math.sqrt(num_entities) / 6)), num_relations)
    weights = 1.0 / np.arange(1, num_types + 1) ** 0.8
    weights /= weights.sum()
    type_starts = np.concatenate([[0], np.round(np.cumsum(weights) * num_entities)])
    # Every type is the domain of at least one relation. Larger types have more relations.
    extra = rng.choice(num_types, size=num_relations - num_types, p=weights)
    relations_of_type = 1 + np.bincount(extra, minlength=num_types)
    return _World(
        type_starts=type_starts.astype(np.int64),
        relation_starts=np.concatenate([[0], np.cumsum(relations_of_type)]),
        ranges=rng.choice(num_types, size=num_relations, p=weights),
        # Some relations have many different tails, others have few hubs.
        tail_skews=rng.uniform(1.0, 2.0 * hub_skew - 1.0, size=num_relations),
    )


def _draw_facts(
    rng: np.random.Generator, world: _World, facts_per_entity: float
) -> IntArray:
    num_entities = int(world.type_starts[-1])
    excess = max(0.0, facts_per_entity - 1.0)
    spread = rng.lognormal(
        -(OUT_DEGREE_SIGMA**2) / 2, OUT_DEGREE_SIGMA, size=num_entities
    )
    counts = 1 + np.floor(excess * spread + rng.random(num_entities)).astype(np.int64)
    heads = np.repeat(np.arange(num_entities), counts)
    return distinct_triples(world.draw_facts_of(rng, heads))


def _side_graph(
    rng: np.random.Generator,
    world: _World,
    facts: IntArray,
    ids: IntArray,
    *,
    keep_prob: float,
    relation_of: Callable[[IntArray], IntArray],
) -> KnowledgeGraph:
    """Return a graph of the facts that it keeps."""
    kept = (
        (ids[facts[:, 0]] >= 0)
        & (ids[facts[:, 2]] >= 0)
        & (rng.random(len(facts)) < keep_prob)
    )
    facts = facts[kept]
    facts = np.concatenate([facts, _rescue_facts(rng, world, facts, ids)])
    relations = _contiguous(rng, relation_of(facts))
    triples = np.stack([ids[facts[:, 0]], relations, ids[facts[:, 2]]], axis=1)
    num_relations = int(relations.max()) + 1
    return KnowledgeGraph(
        distinct_triples(triples), int((ids >= 0).sum()), num_relations
    )


def _rescue_facts(
    rng: np.random.Generator, world: _World, facts: IntArray, ids: IntArray
) -> IntArray:
    """Draw an additional fact of this graph for each of its entities without a fact."""
    isolated = ids >= 0
    isolated[facts[:, 0]] = False
    isolated[facts[:, 2]] = False
    rescued = [facts[:0]]
    for _ in range(RESCUE_ROUNDS):
        drawn = world.draw_facts_of(rng, np.flatnonzero(isolated))
        drawn = drawn[ids[drawn[:, 2]] >= 0]
        isolated[drawn[:, 0]] = False
        rescued.append(drawn)
    return np.concatenate(rescued)


def _contiguous(rng: np.random.Generator, relations: IntArray) -> IntArray:
    """Return random contiguous ids for the relations in use, so that their order leaks nothing."""
    used = np.flatnonzero(np.bincount(relations))
    new_ids = np.zeros(relations.max() + 1, dtype=np.int64)
    new_ids[used] = rng.permutation(len(used))
    contiguous: IntArray = new_ids[relations]
    return contiguous
