"""Seeded pairs with the traits of DBpedia pairs, of any size up to a million entities a side.

A world of typed entities and facts is drawn first. Each side then knows some of its entities, some
of the facts between them, and has its own, coarser or finer, relations for them.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from emea.data.arrays import IntArray
from emea.data.formats.triple_collector import distinct_triples
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.errors import DataError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

MIN_ENTITIES, MAX_ENTITIES = 100, 1_000_000
# Spread of the number of facts an entity is the head of (log-normal).
OUT_DEGREE_SIGMA = 0.8
# One is Zipf's law. With 2.2 a hundredth of the relations holds 0.3 of the triples and a tenth of
# them 0.7; in DBP15K these are 0.33-0.42 and 0.80-0.88.
RELATION_SKEW = 2.2
# Draws for an entity that has no triple; each fails only if the tail is unknown to the side.
RESCUE_ROUNDS = 25


def synthetic_pair(
    num_entities: int = 500,
    triples_per_entity: float = 4.5,
    overlap: float = 0.75,
    keep_prob: float = 0.8,
    merged_share: float = 0.2,
    split_share: float = 0.2,
    num_relations: int | None = None,
    hub_skew: float = 2.5,
    seed: int = 0,
    name: str = "synthetic",
) -> GraphPair:
    """Draw two overlapping graphs.

    Args:
        num_entities: entities of each side, 100 to 1,000,000.
        triples_per_entity: triples of each side per entity, roughly.
        overlap: share of a side's entities that have a counterpart.
        keep_prob: probability that a side knows a fact between two of its entities.
        merged_share: share of the world's relations that a side does not tell from another one.
        split_share: share of the world's relations for which a side has two.
        num_relations: relations of the world; by default eight times the root of ``num_entities``.
        hub_skew: how strongly facts gather on few tails; 1 is uniform.
        seed: same seed, same pair.
        name: what results call the pair.

    Returns:
        The pair, without names and official parts.

    Raises:
        DataError: an argument is out of range.
    """
    _check_arguments(num_entities, triples_per_entity, num_relations, hub_skew)
    for what, share in (("overlap", overlap), ("keep_prob", keep_prob)):
        _check_share(what, share, zero_allowed=False)
    for what, share in (("merged_share", merged_share), ("split_share", split_share)):
        _check_share(what, share, zero_allowed=True)
    rng = np.random.default_rng(seed)
    num_shared = max(1, round(overlap * num_entities))
    num_world = 2 * num_entities - num_shared
    world = _draw_world(rng, num_world, num_relations or 8 * math.isqrt(num_entities), hub_skew)
    # A fact reaches a side if the side knows its tail and keeps it.
    facts_per_entity = triples_per_entity / (keep_prob * num_entities / num_world)
    facts = _draw_facts(rng, world, facts_per_entity)

    order = rng.permutation(num_world)
    known = order[:num_entities], order[num_world - num_entities :]
    sides = []
    for members in known:
        ids = _side_ids(rng, members, num_world)
        relation_of = _Granularity.draw(rng, world.num_relations, merged_share, split_share)
        sides.append((_side_graph(rng, world, facts, ids, keep_prob, relation_of), ids))
    (source, source_ids), (target, target_ids) = sides
    shared = order[num_world - num_entities : num_entities]
    links = np.stack([source_ids[shared], target_ids[shared]], axis=1)
    return GraphPair(name, source, target, links)


@dataclass(frozen=True, eq=False)
class _World:
    """Entity types are runs of entity ids, the relations of a type runs of relation ids."""

    type_starts: IntArray
    relation_starts: IntArray
    ranges: IntArray
    tail_skews: FloatArray

    @property
    def num_relations(self) -> int:
        return len(self.ranges)

    def draw_facts_of(self, rng: np.random.Generator, heads: IntArray) -> IntArray:
        """One fact for each given head."""
        types = np.searchsorted(self.type_starts, heads, side="right") - 1
        first, last = self.relation_starts[types], self.relation_starts[types + 1]
        # floor(n ** u) follows Zipf's law: value k has probability log((k + 1) / k) / log n. The
        # power of u steepens it to what DBpedia shows.
        steep = rng.random(len(heads)) ** RELATION_SKEW
        ranks = np.floor((last - first + 1) ** steep).astype(np.int64)
        relations = np.minimum(first + ranks, last) - 1
        ranges = self.ranges[relations]
        first, last = self.type_starts[ranges], self.type_starts[ranges + 1]
        position = rng.random(len(heads)) ** self.tail_skews[relations]
        tails = np.minimum(first + ((last - first) * position).astype(np.int64), last - 1)
        return np.stack([heads, relations, tails], axis=1)


@dataclass(frozen=True, eq=False)
class _Granularity:
    """A side's relations for those of the world."""

    coarse: IntArray
    is_split: BoolArray

    @classmethod
    def draw(
        cls, rng: np.random.Generator, num_relations: int, merged_share: float, split_share: float
    ) -> "_Granularity":
        coarse = np.arange(num_relations)
        # Neighbours mostly belong to the same type, so what is merged is alike.
        merged = np.flatnonzero(rng.random(num_relations) < merged_share)
        coarse[merged] = (merged + 1) % num_relations
        return cls(coarse, rng.random(num_relations) < split_share)

    def __call__(self, facts: IntArray) -> IntArray:
        """The side's relation of each fact; a split one depends on which tail it is."""
        coarse = self.coarse[facts[:, 1]]
        relations: IntArray = 2 * coarse + (self.is_split[coarse] & (facts[:, 2] % 2 == 1))
        return relations


def _draw_world(
    rng: np.random.Generator, num_entities: int, num_relations: int, hub_skew: float
) -> _World:
    num_types = min(max(4, round(math.sqrt(num_entities) / 6)), num_relations)
    weights = 1.0 / np.arange(1, num_types + 1) ** 0.8
    weights /= weights.sum()
    type_starts = np.concatenate([[0], np.round(np.cumsum(weights) * num_entities)])
    # Every type heads one relation at least, larger types head more.
    extra = rng.choice(num_types, size=num_relations - num_types, p=weights)
    relations_of_type = 1 + np.bincount(extra, minlength=num_types)
    return _World(
        type_starts=type_starts.astype(np.int64),
        relation_starts=np.concatenate([[0], np.cumsum(relations_of_type)]),
        ranges=rng.choice(num_types, size=num_relations, p=weights),
        # Some relations single their tails out, others gather on a few hubs.
        tail_skews=rng.uniform(1.0, 2.0 * hub_skew - 1.0, size=num_relations),
    )


def _draw_facts(rng: np.random.Generator, world: _World, facts_per_entity: float) -> IntArray:
    num_entities = int(world.type_starts[-1])
    excess = max(0.0, facts_per_entity - 1.0)
    spread = rng.lognormal(-(OUT_DEGREE_SIGMA**2) / 2, OUT_DEGREE_SIGMA, size=num_entities)
    counts = 1 + np.floor(excess * spread + rng.random(num_entities)).astype(np.int64)
    heads = np.repeat(np.arange(num_entities), counts)
    return distinct_triples(world.draw_facts_of(rng, heads))


def _side_ids(rng: np.random.Generator, members: IntArray, num_world: int) -> IntArray:
    """A random local id for each member, -1 for entities the side does not know."""
    ids = np.full(num_world, -1, dtype=np.int64)
    ids[members] = rng.permutation(len(members))
    return ids


def _side_graph(
    rng: np.random.Generator,
    world: _World,
    facts: IntArray,
    ids: IntArray,
    keep_prob: float,
    relation_of: _Granularity,
) -> KnowledgeGraph:
    kept = (ids[facts[:, 0]] >= 0) & (ids[facts[:, 2]] >= 0) & (rng.random(len(facts)) < keep_prob)
    facts = facts[kept]
    facts = np.concatenate([facts, _rescue_facts(rng, world, facts, ids)])
    relations, num_relations = _contiguous(rng, relation_of(facts))
    triples = np.stack([ids[facts[:, 0]], relations, ids[facts[:, 2]]], axis=1)
    return KnowledgeGraph(distinct_triples(triples), int((ids >= 0).sum()), num_relations)


def _rescue_facts(
    rng: np.random.Generator, world: _World, facts: IntArray, ids: IntArray
) -> IntArray:
    """A fact that only this side knows for each of its entities left without any."""
    alone = ids >= 0
    alone[facts[:, 0]] = False
    alone[facts[:, 2]] = False
    rescued = [facts[:0]]
    for _ in range(RESCUE_ROUNDS):
        drawn = world.draw_facts_of(rng, np.flatnonzero(alone))
        drawn = drawn[ids[drawn[:, 2]] >= 0]
        alone[drawn[:, 0]] = False
        rescued.append(drawn)
    return np.concatenate(rescued)


def _contiguous(rng: np.random.Generator, relations: IntArray) -> tuple[IntArray, int]:
    """Random contiguous ids for the relations in use: their order must not align the sides."""
    used = np.flatnonzero(np.bincount(relations))
    new_ids = np.zeros(relations.max() + 1, dtype=np.int64)
    new_ids[used] = rng.permutation(len(used))
    return new_ids[relations], len(used)


def _check_arguments(
    num_entities: int, triples_per_entity: float, num_relations: int | None, hub_skew: float
) -> None:
    if not MIN_ENTITIES <= num_entities <= MAX_ENTITIES:
        raise DataError(
            f"num_entities must lie between {MIN_ENTITIES} and {MAX_ENTITIES}, got {num_entities}"
        )
    if not triples_per_entity >= 1:
        raise DataError(f"triples_per_entity must be at least 1, got {triples_per_entity}")
    if num_relations is not None and num_relations < 1:
        raise DataError(f"num_relations must be at least 1, got {num_relations}")
    if not hub_skew >= 1:
        raise DataError(f"hub_skew must be at least 1, got {hub_skew}")


def _check_share(what: str, share: float, zero_allowed: bool) -> None:
    if not (0 < share <= 1 or (zero_allowed and share == 0)):
        low = "from 0" if zero_allowed else "above 0"
        raise DataError(f"{what} must lie {low} up to 1, got {share}")
