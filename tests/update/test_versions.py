"""Two versions of a graph, compared by name."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea import graph_of, read_graph
from emea.data.arrays import NO_MATCH
from emea.update.affected import GraphVersions

NAMES = st.sampled_from("abcde")
TRIPLES = st.lists(st.tuples(NAMES, st.sampled_from("rs"), NAMES), min_size=1, max_size=12)


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


LITERALS = ['"one"', '"eins"@de', '"1"^^<http://type>']


@pytest.mark.parametrize(
    ("values", "differs"),
    [
        (LITERALS, False),
        (LITERALS[::-1] + LITERALS, False),
        (LITERALS[:2], True),
        ([*LITERALS, '"two"'], True),
        ([*LITERALS[:1], '"eins"@nl', *LITERALS[2:]], True),
        ([*LITERALS[:2], '"1"'], True),
    ],
)
def test_literals_are_compared_by_value_and_kind(
    values: list[str], differs: bool, tmp_path: Path
) -> None:
    graphs = []
    for name, found in (("old", LITERALS), ("new", values)):
        rows = (f"<http://{end}> <http://name> {value} .\n" for end in "ab" for value in found)
        path = tmp_path / f"{name}.nt"
        path.write_text("<http://a> <http://knows> <http://b> .\n" + "".join(rows))
        graphs.append(read_graph(path, literals=True))
    renumbered = graphs[1].relabelled(np.array([1, 0]))
    assert GraphVersions.of(graphs[0], renumbered).has_new_literals() == differs
    assert not GraphVersions.of(renumbered, renumbered).has_new_literals()
