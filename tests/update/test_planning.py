"""The entities that a change of the graphs affects, compared with sets of names."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea import graph_of
from emea.data.arrays import NO_MATCH
from emea.data.graph import KnowledgeGraph
from emea.matching.beliefs import Beliefs
from emea.update.graph_versions import GraphVersions
from emea.update.planning import (
    FORMER_PROB,
    Affected,
    affected_entities,
    moved_beliefs,
)

Triples = set[tuple[str, str, str]]
Former = dict[str, dict[str, float]]


def graph(triples: Triples, rng: np.random.Generator) -> KnowledgeGraph:
    names = sorted({end for head, _, tail in triples for end in (head, tail)})
    names = [names[place] for place in rng.permutation(len(names))]
    relations = sorted({relation for _, relation, _ in triples})
    rows = [
        (names.index(head), relations.index(relation), names.index(tail))
        for head, relation, tail in sorted(triples)
    ]
    return KnowledgeGraph(
        np.array(rows),
        len(names),
        len(relations),
        entity_names=names,
        relation_names=relations,
    )


def drawn(rng: np.random.Generator, prefix: str, num: int = 30) -> Triples:
    ends = rng.integers(0, 25, size=(num, 2))
    return {(f"{prefix}{h}", f"r{h % 3}", f"{prefix}{t}") for h, t in ends.tolist()}


def neighbours(entities: set[str], triples: Triples) -> set[str]:
    found = set(entities)
    for head, _, tail in triples:
        if head in entities:
            found.add(tail)
        if tail in entities:
            found.add(head)
    return found


def reference(
    old: tuple[Triples, Triples],
    new: tuple[Triples, Triples],
    former: Former,
    pairs: list[tuple[str, str]],
) -> tuple[set[str], set[str]]:
    """The same by names, one entity at a time."""
    changed, exist = [], []
    for side in (0, 1):
        exist.append({end for head, _, tail in new[side] for end in (head, tail)})
        entities = neighbours({pair[side] for pair in pairs}, new[side])
        for head, _, tail in old[side] ^ new[side]:
            entities |= {head, tail} & exist[side]
        changed.append(entities)
    source, target = set(changed[0]), set(changed[1])
    for one, candidates in former.items():
        best = max(candidates, key=lambda name: candidates[name])
        for other, prob in candidates.items():
            if not prob or (prob < FORMER_PROB and other != best):
                continue
            if one in exist[0] and (other in changed[1] or other not in exist[1]):
                source.add(one)
            if other in exist[1] and (one in changed[0] or one not in exist[0]):
                target.add(other)
    return source, target


@pytest.mark.parametrize("seed", range(12))
def test_affected_entities_equal_the_slow_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    old = drawn(rng, "s"), drawn(rng, "t")
    new = tuple(
        {triple for triple in one if rng.random() < 0.95} | drawn(rng, prefix, seed % 4)
        for one, prefix in zip(old, "st", strict=True)
    )
    graphs = [[graph(one, rng) for one in version] for version in (old, new)]
    versions = tuple(GraphVersions.of(*both) for both in zip(*graphs, strict=True))
    first, second = graphs[0]
    targets = np.stack(
        [rng.permutation(second.num_entities)[:3] for _ in first.all_entity_names]
    )
    probs = rng.dirichlet([0.3, 0.3, 0.3], size=first.num_entities) * 0.9
    beliefs = Beliefs(torch.from_numpy(targets), torch.from_numpy(probs))
    former = {
        first.entity_name(row): {
            second.entity_name(target): prob
            for target, prob in zip(
                targets[row].tolist(), probs[row].tolist(), strict=True
            )
        }
        for row in range(first.num_entities)
    }
    pairs = rng.integers(0, 5, size=(seed % 3, 2))
    named = [
        (graphs[1][0].entity_name(s), graphs[1][1].entity_name(t))
        for s, t in pairs.tolist()
    ]
    found = affected_entities(versions, beliefs, pairs)  # type: ignore[arg-type]
    expected = reference(old, new, former, named)  # type: ignore[arg-type]
    for side, mask in enumerate((found.source, found.target)):
        names = {
            graphs[1][side].entity_name(one) for one in np.flatnonzero(mask).tolist()
        }
        assert names == expected[side]
    moved = moved_beliefs(beliefs, versions)  # type: ignore[arg-type]
    for row, name in enumerate(graphs[1][0].all_entity_names):
        held = {
            graphs[1][1].entity_name(target): prob
            for target, prob in zip(
                moved.targets[row].tolist(), moved.probs[row].tolist(), strict=True
            )
            if prob
        }
        known = former.get(name, {}).items()
        still = set(graphs[1][1].all_entity_names)
        assert held == {other: prob for other, prob in known if other in still and prob}


def test_equal_versions_affect_nothing() -> None:
    rng = np.random.default_rng(0)
    sides = [graph(drawn(rng, prefix), rng) for prefix in "st"]
    versions = tuple(GraphVersions.of(one, one) for one in sides)
    beliefs = Beliefs(
        torch.zeros(sides[0].num_entities, 1, dtype=torch.int64),
        torch.ones(sides[0].num_entities, 1),
    )
    nothing = np.zeros((0, 2), dtype=np.int64)
    found = affected_entities(versions, beliefs, nothing)  # type: ignore[arg-type]
    assert not found.share
    more = found.joined(np.array([[0, 1]]))
    assert (
        more.source[0]
        and more.target[1]
        and more.source.sum() == more.target.sum() == 1
    )
    assert Affected(np.ones(3, dtype=bool), np.zeros(1, dtype=bool)).share == 0.75


def test_candidates_that_are_gone_move_behind_the_others() -> None:
    rng = np.random.default_rng(1)
    source = graph({("a", "r", "b")}, rng)
    old, new = (graph({("x", "r", "y"), ("y", "r", z)}, rng) for z in ("z", "x"))
    place = {name: old.all_entity_names.index(name) for name in ("x", "y", "z")}
    beliefs = Beliefs(
        torch.tensor([[place["z"], place["x"], place["y"]]] * 2),
        torch.tensor([[0.05, 0.7, 0.2]] * 2),
    )
    versions = GraphVersions.of(source, source), GraphVersions.of(old, new)
    assert (versions[1].new_entities == NO_MATCH).sum() == 1
    moved = moved_beliefs(beliefs, versions)
    names = new.all_entity_names
    assert [names[target] for target in moved.targets[0, :2].tolist()] == ["x", "y"]
    assert moved.probs[0].tolist() == pytest.approx([0.7, 0.2, 0.0])


NAMES = st.sampled_from("abcde")
TRIPLES = st.lists(
    st.tuples(NAMES, st.sampled_from("rs"), NAMES), min_size=1, max_size=12
)


@given(TRIPLES, TRIPLES)
def test_versions_are_compared_by_name(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]]
) -> None:
    old, new = graph_of(before), graph_of(after)
    versions = GraphVersions.of(old, new)

    def named(graph: object, triples: np.ndarray) -> set[tuple[str, str, str]]:
        assert graph is old or graph is new
        one = old if graph is old else new
        return {
            (one.entity_name(h), one.relation_name(r), one.entity_name(t))
            for h, r, t in triples.tolist()
        }

    assert named(new, versions.added) == set(after) - set(before)
    assert named(old, versions.removed) == set(before) - set(after)
    for entity, earlier in enumerate(versions.old_entities.tolist()):
        name = new.entity_name(entity)
        known = list(old.all_entity_names)
        assert earlier == (known.index(name) if name in known else NO_MATCH)
    touched = {end for h, _, t in set(before) ^ set(after) for end in (h, t)}
    changed = {new.entity_name(int(e)) for e in np.flatnonzero(versions.is_changed())}
    assert changed == touched & set(new.all_entity_names)
