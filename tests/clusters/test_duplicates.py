"""Duplicates inside one graph: how many are found, and each step against a slow loop."""

import os
from pathlib import Path

import numpy as np
import pytest

from emea.clusters.duplicates import (
    LIKELY,
    draw_own_sample,
    find_duplicates,
    mutual_best,
    own_candidates,
)
from emea.clusters.noisy_copies import with_noisy_copies
from emea.clusters.own_records import (
    first_equal,
    kinds_of_entities,
    own_records,
    places_among,
    with_references,
)
from emea.data.sources.own_files import read_own_graph
from emea.data.sources.settings import OwnFilesSettings
from emea.errors import DataError

from . import person_graph
from .measure import persons
from .people import (
    f1,
    pairs_of,
    people,
    read_table,
    true_pairs,
    with_duplicates,
    write_table,
)


def table_of(folder, rows):
    return read_table(write_table(folder / "people.csv", rows))


def found_in(graph):
    return find_duplicates(own_records(graph, "people.csv"))


@pytest.mark.parametrize("seed", [1, 2])
def test_duplicates_of_people_are_found(tmp_path, seed: int) -> None:
    rows, who = with_duplicates(people(300, seed), seed, typos=0.15, missing=0.05)
    graph = table_of(tmp_path, rows)

    found = found_in(graph)

    assert f1(pairs_of(found.clusters), true_pairs(graph, who)) >= 0.95


def test_probabilities_of_duplicates_are_not_too_high(tmp_path) -> None:
    rows, who = with_duplicates(people(300, 3), 3, typos=0.5, missing=0.3)
    graph = table_of(tmp_path, rows)

    found = found_in(graph)

    true = true_pairs(graph, who)
    is_true = np.array([tuple(pair) in true for pair in found.pairs.tolist()])
    likely = found.probs >= LIKELY
    assert is_true[likely].mean() >= found.probs[likely].mean() - 0.05


@pytest.mark.parametrize("seed", [1, 2])
def test_table_without_duplicates_has_hardly_any_clusters(tmp_path, seed: int) -> None:
    graph = table_of(tmp_path, people(300, seed))

    found = found_in(graph)

    assert len(pairs_of(found.clusters)) <= 0.01 * graph.num_entities


def test_result_is_the_same_twice(tmp_path) -> None:
    graph = table_of(tmp_path, with_duplicates(people(100, 1), 1)[0])

    first, second = found_in(graph), found_in(graph)

    assert first.probs.tobytes() == second.probs.tobytes()


def test_equal_rows_are_one_cluster_without_a_pair_for_each_two(tmp_path) -> None:
    row = people(2, 5)[0]
    graph = table_of(tmp_path, [*people(60, 4), *[row] * 500])
    same = [
        entity
        for entity, name in enumerate(graph.all_entity_names)
        if int(name.removeprefix("row")) >= 60
    ]

    found = found_in(graph)

    assert len(set(found.clusters[same].tolist())) == 1
    assert len(found.pairs) < 20 * graph.num_entities


def test_only_equal_rows_are_one_cluster(tmp_path) -> None:
    found = found_in(table_of(tmp_path, [{"name": "Ada", "town": "X"}] * 30))

    assert set(found.clusters.tolist()) == {0}


def test_one_row_is_no_duplicate(tmp_path, caplog) -> None:
    found = found_in(table_of(tmp_path, [{"name": "Ada"}]))

    assert found.clusters.tolist() == [0] and not len(found.pairs)
    assert "Only 1 different entities" in caplog.text


def test_numbered_rows_are_not_compared_by_their_numbers(tmp_path) -> None:
    rows = [{**row, "number": str(n)} for n, row in enumerate(people(100, 1))]
    records = own_records(table_of(tmp_path, rows), "people.csv")[0].records

    assert [records.names[one] for one in records.left_out] == ["number"]


def test_entities_that_others_refer_to_count_as_values(tmp_path) -> None:
    path = tmp_path / "graph.nt"
    path.write_text(
        '<http://x/a> <http://x/name> "Ada" .\n'
        "<http://x/a> <http://x/home> <http://x/b> .\n"
        '<http://x/b> <http://x/street> "High Street" .\n'
        "<http://x/a> <http://x/type> <http://x/Person> .\n"
    )
    settings = OwnFilesSettings(keep_literals=True, keep_isolated=True)
    graph = read_own_graph(path, settings)[0]

    found = with_references(graph, "graph.nt")

    cells = {
        (graph.entity_name(entity), found.attribute_names[name], found.values[value])
        for entity, name, value in found.triples.tolist()
    }
    assert cells == {
        ("http://x/a", "http://x/name", "Ada"),
        ("http://x/a", "http://x/home", "High Street"),
        ("http://x/a", "http://x/type", "Person"),
        ("http://x/b", "http://x/street", "High Street"),
    }


RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def typed_graph(folder, types: dict[str, list[str]], values=()):
    """A graph of entities with types, and with further lines."""
    lines = [
        f"<http://x/{name}> {RDF_TYPE} <http://x/{one}> ."
        for name, own in types.items()
        for one in own
    ]
    lines += [f'<http://x/{name}> <http://x/name> "{text}" .' for name, text in values]
    path = folder / "graph.nt"
    path.write_text("\n".join(lines) + "\n")
    settings = OwnFilesSettings(keep_literals=True, keep_isolated=True)
    return read_own_graph(path, settings)[0]


def test_entities_of_one_kind_share_a_type(tmp_path) -> None:
    types = {f"person{n}": ["Person"] for n in range(30)}
    types |= {f"poet{n}": ["Person", "Poet"] for n in range(5)}
    types |= {f"late{n}": ["Poet"] for n in range(30)}
    types |= {f"town{n}": ["Town"] for n in range(60)}
    types |= {f"river{n}": ["River"] for n in range(10)}
    graph = typed_graph(tmp_path, types, [("thing", "A")])

    kinds, names = kinds_of_entities(graph)

    of_name = {
        name.removeprefix("http://x/"): names[kind]
        for name, kind in zip(graph.all_entity_names, kinds.tolist(), strict=True)
    }
    assert sorted(names) == ["", "Person Poet", "Town"]
    assert all(
        of_name[name]
        == {"town": "Town", "river": "", "thing": ""}[name.rstrip("0123456789")]
        for name in of_name
        if name.startswith(("town", "river", "thing"))
    )
    assert {of_name[name] for name in types if name[0] in "pl"} == {"Person Poet"}


def test_types_of_all_entities_make_no_kind(tmp_path) -> None:
    thing = "owl"
    types = {f"person{n}": ["Person", thing] for n in range(60)}
    types |= {f"town{n}": ["Town", thing] for n in range(60)}
    path = typed_graph(tmp_path, types)
    assert len(kinds_of_entities(path)[1]) == 2
    text = (tmp_path / "graph.nt").read_text()
    owl_thing = "http://www.w3.org/2002/07/owl#Thing"
    (tmp_path / "graph.nt").write_text(text.replace("http://x/owl", owl_thing))
    settings = OwnFilesSettings(keep_literals=True, keep_isolated=True)

    names = kinds_of_entities(read_own_graph(tmp_path / "graph.nt", settings)[0])[1]

    assert sorted(names) == ["", "Person", "Town"]


def test_blank_values_and_types_are_no_values(tmp_path) -> None:
    types = {"a": ["Town"], "b": ["Town"]}
    graph = typed_graph(tmp_path, types, [("a", " "), ("b", "Bern")])

    found = with_references(graph, "graph.nt")

    assert [found.values[value] for value in found.triples[:, 2].tolist()] == ["Bern"]


def test_graph_without_values_is_an_error(tmp_path) -> None:
    path = tmp_path / "graph.nt"
    path.write_text("<http://x/a> <http://x/knows> <http://x/b> .\n")
    settings = OwnFilesSettings(keep_literals=True, keep_isolated=True, iri_names=False)
    graph = read_own_graph(path, settings)[0]

    with pytest.raises(DataError, match="has no values to compare"):
        own_records(graph, "graph.nt")


def test_copies_have_the_values_of_their_originals_or_changed_ones(tmp_path) -> None:
    graph = table_of(tmp_path, people(80, 1))
    assert graph.attributes is not None

    copied, originals = with_noisy_copies(
        graph.attributes, graph.num_entities, np.arange(80)
    )

    values = [set() for _ in range(graph.num_entities + len(originals))]
    for entity, name, value in copied.triples.tolist():
        values[entity].add((name, copied.values[value]))
    assert len(originals) == 40
    same = sum(len(values[80 + n] & values[one]) for n, one in enumerate(originals))
    kept = sum(len(values[80 + n]) for n in range(40))
    assert kept < 6 * 40 * 0.92
    assert 0.6 * kept < same < 0.85 * kept


def test_first_of_equal_entities(tmp_path) -> None:
    rows = people(3, 1)
    graph = table_of(tmp_path, [rows[0], rows[1], rows[0], rows[0], rows[2]])
    records = own_records(graph, "people.csv")[0].records

    first = first_equal(records)[:5]

    slow = [
        min(
            other
            for other in range(5)
            if cells_of(records, other) == cells_of(records, one)
        )
        for one in range(5)
    ]
    assert first.tolist() == slow
    assert sorted(places_among(first).tolist()) == [0, 0, 0, 1, 2]


def cells_of(records, entity: int) -> set[tuple[int, int]]:
    chosen = records.entities == entity
    return set(
        zip(
            records.attributes[chosen].tolist(),
            records.values[chosen].tolist(),
            strict=True,
        )
    )


@pytest.fixture
def sampled(tmp_path):
    """Candidates of a small table, a ranking without ties, and clusters of random pairs."""
    graph = table_of(tmp_path, with_duplicates(people(30, 2), 2)[0])
    (own,) = own_records(graph, "people.csv")
    candidates = own_candidates(own, np.ones(own.num_real, dtype=bool))
    rng = np.random.default_rng(0)
    ranks = rng.random(len(candidates.pairs))
    ranks = np.maximum(ranks, ranks[candidates.reverse])
    clusters = rng.integers(0, candidates.num_entities, candidates.num_entities)
    first = np.array([np.flatnonzero(clusters == one)[0] for one in clusters])
    return candidates, ranks, first


def test_margins_are_those_of_a_slow_loop(sampled) -> None:
    candidates, ranks, clusters = sampled
    pairs = candidates.pairs.tolist()

    margins = draw_own_sample(candidates, ranks, clusters).margins

    for place, (one, other) in enumerate(pairs):
        ignored = {clusters[one], clusters[other]}
        rivals = [
            ranks[further]
            for further, (first, second) in enumerate(pairs)
            if first == one and clusters[second] not in ignored
        ]
        assert margins[place] == pytest.approx(ranks[place] - max(rivals, default=0.0))


def test_best_pairs_and_decoys_are_those_of_a_slow_loop(sampled) -> None:
    candidates, ranks, clusters = sampled
    pairs = candidates.pairs.tolist()
    best: set[int] = set()
    decoys: set[int] = set()
    for entity in range(candidates.num_entities):
        own = [place for place, pair in enumerate(pairs) if pair[0] == entity]
        mates = [one for one in own if clusters[pairs[one][1]] == clusters[entity]]
        others = sorted(set(own) - set(mates), key=lambda one: -ranks[one])
        chosen = mates or others[:1]
        ignored = {clusters[entity], *(clusters[pairs[one][1]] for one in chosen)}
        outside = [one for one in others if clusters[pairs[one][1]] not in ignored]
        best |= set(chosen)
        decoys |= set(outside[:1])

    drawn = draw_own_sample(candidates, ranks, clusters).drawn

    assert set(drawn.best.tolist()) == best
    assert set(drawn.decoys.tolist()) == decoys
    assert len(drawn.decoys) == len(decoys) == drawn.has_decoy.sum()


def test_mutual_best_pairs_are_those_of_a_slow_loop(sampled) -> None:
    candidates, ranks, _ = sampled
    pairs = candidates.pairs.tolist()

    def best(entity: int) -> int:
        own = [place for place, pair in enumerate(pairs) if pair[0] == entity]
        return pairs[max(own, key=lambda one: (ranks[one], -one))][1]

    found = mutual_best(candidates.pairs, ranks, candidates.num_entities)

    slow = [best(one) == other and best(other) == one for one, other in pairs]
    assert found.tolist() == slow


@pytest.mark.data
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_duplicates_of_public_data_are_found(tmp_path, seed: int) -> None:
    rows, who = with_duplicates(persons(data_folder() / "source.nt"), seed)
    graph = table_of(tmp_path, rows)

    assert f1(pairs_of(found_in(graph).clusters), true_pairs(graph, who)) >= 0.95


@pytest.mark.data
def test_public_data_without_duplicates_has_no_clusters(tmp_path) -> None:
    graph = table_of(tmp_path, persons(data_folder() / "source.nt"))

    found = pairs_of(found_in(graph).clusters)

    assert len(found) <= 0.01 * graph.num_entities


@pytest.mark.data
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kinds_of_public_data_are_told_apart(tmp_path, seed: int) -> None:
    source = data_folder() / "source.nt"
    graph = person_graph.with_copies(source, tmp_path / "graph.nt", 200, seed)

    found = pairs_of(found_in(graph).clusters)

    true = person_graph.true_pairs(graph)
    people, same = (person_graph.of_kind(graph, one, "Person") for one in (found, true))
    assert len(same) == 200 and f1(people, same) >= 0.95
    assert len(found - true) <= 0.01 * min(len(true), graph.num_entities)


@pytest.mark.data
def test_kinds_of_public_data_without_copies_have_no_false_clusters(tmp_path) -> None:
    source = data_folder() / "source.nt"
    graph = person_graph.with_copies(source, tmp_path / "graph.nt", 0, 1)

    found = pairs_of(found_in(graph).clusters)

    false = found - person_graph.true_pairs(graph)
    assert len(false) <= 0.01 * graph.num_entities


def data_folder() -> Path:
    folder = Path(os.environ.get("EMEA_DATA") or "data") / "oaei2010" / "persons1"
    if not folder.is_dir():
        pytest.skip("no oaei2010 in EMEA_DATA")
    return folder


def alike(seed: int, num_rows: int, num_copies: int) -> list[list[str]]:
    """Rows whose few values are much alike, and exact copies of the first ones."""
    rng = np.random.default_rng(seed)
    firsts, lasts = ["Ema", "Emma", "Emmo", "Emmy"], ["Lux", "Luxa", "Luxo", "Luxi"]
    rows = [
        [f"{rng.choice(firsts)} {rng.choice(lasts)}", str(rng.choice(["Bern", "Brno"]))]
        for _ in range(num_rows)
    ]
    return rows + rows[:num_copies]


def test_rows_that_are_too_much_alike_are_clusters_only_if_equal(
    tmp_path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = alike(1, 30, 10)
    lines = [f"row{place},{','.join(row)}" for place, row in enumerate(rows)]
    path = tmp_path / "alike.csv"
    path.write_text("id,name,city\n" + "\n".join(lines) + "\n")

    graph = read_table(path)

    found = find_duplicates(own_records(graph, "alike.csv"))

    equal = [rows.index(row) for row in rows]
    assert found.num_decoys == 0
    assert pairs_of(found.clusters) == true_pairs(graph, equal)
    assert "Only entities with exactly the same values are in clusters" in caplog.text
    assert "of 40 entities are in clusters" in caplog.text
