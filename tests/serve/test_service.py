"""The service over HTTP: what OpenRefine and programs ask, and the form of the answers."""

import errno
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema  # nbclient needs it
import numpy as np
import pytest

from emea.answer.curation import Curated
from emea.answer.decided_pairs import read_decided
from emea.data.formats.graph_file import read_graph_file
from emea.explain.facts import Facts
from emea.run.finished_run import FinishedRun
from emea.serve import curator
from emea.serve.curator import Curator

from . import schemas
from .conftest import BASE, NUM_PLACES, Client, place_name


def valid(answer: object, schema: schemas.Schema) -> None:
    jsonschema.validate(answer, schema, jsonschema.Draft202012Validator)


def test_the_manifest(client: Client) -> None:
    found = client("/reconcile").json
    valid(found, schemas.MANIFEST)
    assert found["suggest"]["entity"]["service_url"].endswith(
        f":{client.port}/reconcile"
    )
    assert [one["name"] for one in found["defaultTypes"]] == ["Village", "Town"]


def test_a_batch_of_a_thousand_names(client: Client) -> None:
    queries = {
        f"q{number}": {"query": place_name(number).swapcase(), "limit": 3}
        for number in range(NUM_PLACES)
    }
    began = time.thread_time()
    found = client.form(queries=queries).json
    assert time.thread_time() - began < 5  # of the client only
    valid(found, schemas.RESULTS)
    assert list(found) == list(queries)
    for number in range(NUM_PLACES):
        first, *others = found[f"q{number}"]["result"]
        assert (first["id"], first["match"]) == (f"{BASE}{number}", True)
        assert first["score"] == 100 and not any(one["match"] for one in others)


def test_misspelt_names_are_found_without_a_match(client: Client) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.choice(NUM_PLACES, 50, replace=False).tolist()
    queries = {}
    for number in numbers:
        name = place_name(number)
        place = int(rng.integers(len(name) - 1))
        queries[str(number)] = {"query": name[:place] + name[place + 1 :]}
    found = client.form(queries=queries).json
    firsts = {key: answer["result"][0] for key, answer in found.items()}
    right = [firsts[str(one)]["id"] == f"{BASE}{one}" for one in numbers]
    assert np.mean(right) > 0.9
    assert not any(one["match"] for one in firsts.values())


RESTAURANTS = "".join(
    f"<http://x.org/r{number}> <http://x.org/food#{attribute}> {value} .\n"
    for number, name in enumerate(["patina", "arnie morton's of chicago", "spago"])
    for attribute, value in {
        "name": f'"{name}"',
        "title": '"Chef"',
        "is_near": f"<http://x.org/r{(number + 1) % 3}>",
    }.items()
)


def test_names_of_an_unknown_vocabulary_are_found(
    serve: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "restaurants.nt"
    path.write_text(RESTAURANTS)
    graph, _ = read_graph_file(path, keep_literals=True)
    with serve(others=Facts(graph)) as client:
        found = client.form(queries={"q": {"query": "Patina"}, "c": {"query": "chef"}})
    (first, *_), chefs = (found.json[key]["result"] for key in ("q", "c"))
    assert first["id"] == "http://x.org/r0" and first["match"]
    assert first["name"] == "patina"
    assert all(one["score"] < 100 for one in chefs)  # this title does not name anything


def test_two_entities_of_the_same_name_are_no_match(client: Client) -> None:
    found = client.form(queries={"q": {"query": "twin"}}).json["q"]["result"]
    assert [one["score"] for one in found[:2]] == [100, 100]
    assert not any(one["match"] for one in found)


def test_types_and_properties_narrow_a_query(client: Client) -> None:
    town = {"query": place_name(4), "type": f"{BASE}Town"}
    population = {"pid": "population", "v": 500}
    near = {"pid": f"{BASE}near", "v": {"id": f"{BASE}6", "name": "?"}}
    queries = {
        "all": {"query": place_name(4), "type": [f"{BASE}Village"]},
        "other type": town,
        "should": {**town, "type_strict": "should"},
        "both types": {**town, "type": [f"{BASE}Town", f"{BASE}Village"]},
        "strict": {
            **town,
            "type": [f"{BASE}Town", f"{BASE}Village"],
            "type_strict": "all",
        },
        "properties": {
            "query": place_name(4),
            "properties": [population, near],
            "limit": 100,
        },
    }
    found = client.form(queries=queries).json
    valid(found, schemas.RESULTS)
    first = {key: (answer["result"] or [None])[0] for key, answer in found.items()}
    assert (first["all"]["id"], first["all"]["match"]) == (f"{BASE}4", True)
    assert first["other type"]["id"] != f"{BASE}4"
    assert all(
        one["type"][0]["name"] == "Town" for one in found["other type"]["result"]
    )
    assert (first["should"]["id"], first["should"]["match"]) == (f"{BASE}4", False)
    assert first["both types"]["match"] and found["strict"]["result"] == []
    # place 4 has the name, and place 5 the population and the neighbour
    by_id = {one["id"]: one for one in found["properties"]["result"]}
    name, other = by_id[f"{BASE}4"], by_id[f"{BASE}5"]
    assert not name["match"] and name["score"] == pytest.approx(200 / 3, abs=1e-3)
    similarity, agreement = (one["value"] for one in other["features"])
    assert agreement == 1 and similarity < 1
    expected = 100 * (2 * similarity + 1) / 3
    assert other["score"] == pytest.approx(expected, abs=1e-3)


def test_a_query_may_be_an_id_or_have_no_name(client: Client) -> None:
    found = client.form(
        queries={"id": {"query": f"{BASE}7"}, "none": {"properties": []}}
    ).json
    assert found["id"]["result"][0]["name"] == place_name(7)
    assert found["none"]["result"] == []


def test_suggestions(client: Client) -> None:
    name = place_name(123)
    found = client.get("/reconcile/suggest/entity", prefix=name[:-3]).json
    valid(found, schemas.SUGGESTIONS)
    assert f"{BASE}123" in [one["id"] for one in found["result"]]
    types = client.get("/reconcile/suggest/type", prefix="vill").json
    assert types["result"] == [{"id": f"{BASE}Village", "name": "Village"}]
    properties = client.get("/reconcile/suggest/property", prefix="POP").json
    assert properties["result"] == [{"id": "population", "name": "population"}]
    assert client.get("/reconcile/suggest/flyout", prefix="a").status == 404


def test_values_extend_a_table(client: Client) -> None:
    proposed = client.get("/reconcile/extend/properties", type="", limit="2").json
    valid(proposed, schemas.PROPERTIES)
    assert len(proposed["properties"]) == 2
    wanted = [{"id": "population"}, {"id": f"{BASE}near", "settings": {}}]
    ids = [f"{BASE}3", "unknown"]
    found = client.form(extend={"ids": ids, "properties": wanted}).json
    valid(found, schemas.EXTENSION)
    assert found["rows"][f"{BASE}3"] == {
        "population": [{"str": "300"}],
        f"{BASE}near": [{"id": f"{BASE}4", "name": place_name(4)}],
    }
    assert found["rows"]["unknown"] == {"population": [], f"{BASE}near": []}


def test_a_preview_is_a_page_for_frames_of_this_machine(client: Client) -> None:
    found = client.get("/reconcile/preview", id=f"{BASE}3")
    assert found.status == 200 and place_name(3) in found.body
    assert "population: 300" in found.body
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors http://127" in policy


def test_matches_and_explanations(client: Client, run: FinishedRun) -> None:
    test = run.split.test.tolist()
    answers = {one: client.service.curator._answers.get(one) for one, _ in test}
    source, target = next(
        pair for pair in test if (answers[pair[0]] or [0])[0] == pair[1]
    )
    name = run.pair.source.entity_name(source)
    found = client.get("/api/match", entity=name).json
    assert found["match"]["id"] == run.pair.target.entity_name(target)
    assert found["candidates"][0]["id"] == found["match"]["id"]
    explained = client.get("/api/explain", source=name).json
    (explanation,) = explained["explanations"]
    assert explanation["is_matched"]
    # the pair is a test link, which nobody may learn here
    assert explanation["asked"]["link"] is None
    assert '"test"' not in client.get("/api/explain", source=name).body


@pytest.fixture
def pairs(client: Client, run: FinishedRun) -> list[tuple[str, str]]:
    """Pairs without a known link, and no decisions yet."""
    own = client.service.curator
    own._decisions = {}
    own.file.unlink(missing_ok=True)
    return [
        (run.pair.source.entity_name(a), run.pair.target.entity_name(b))
        for a, b in run.split.test[:4].tolist()
    ]


def decide(client: Client, kind: str, pair: tuple[str, str], **more: str) -> int:
    return client.post(f"/api/{kind}", source=pair[0], target=pair[1], **more).status


def written(client: Client) -> list[Curated]:
    file: Path = client.service.curator.file
    return list(read_decided(file).decisions)


def test_decisions_are_written(client: Client, pairs: list[tuple[str, str]]) -> None:
    assert decide(client, "accept", pairs[0], author="Ada\tL") == 200
    assert decide(client, "reject", pairs[1]) == 200
    first, second = written(client)
    assert (first.pair, first.decision, first.author) == (
        pairs[0],
        "accepted",
        "Ada\tL",
    )
    assert (second.pair, second.decision) == (pairs[1], "rejected")
    shown = client("/api/decisions").json["decisions"]
    assert [(one["source"], one["target"]) for one in shown] == pairs[:2]
    assert client.get("/api/match", entity=pairs[0][0]).json["decisions"]
    assert decide(client, "reject", pairs[0]) == 200  # the later decision counts
    assert decide(client, "withdraw", pairs[1]) == 200
    assert [one[:3] for one in written(client)] == [(*pairs[0], "rejected")]


def test_contradictions_are_refused(
    client: Client, pairs: list[tuple[str, str]], run: FinishedRun
) -> None:
    assert decide(client, "accept", pairs[0]) == 200
    assert decide(client, "accept", (pairs[0][0], pairs[1][1])) == 409
    assert decide(client, "accept", (pairs[1][0], pairs[0][1])) == 409
    a, b = run.split.supervision.train[0].tolist()
    link = run.pair.source.entity_name(a), run.pair.target.entity_name(b)
    assert decide(client, "reject", link) == 409
    assert decide(client, "accept", (link[0], pairs[1][1])) == 409
    assert [one.pair for one in written(client)] == [pairs[0]]


def test_a_decision_that_cannot_be_written_does_not_count(
    client: Client, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(curator, "write_decided", full)
    source, target = pairs[0]
    found = client.post("/api/accept", source=source, target=target)
    assert found.status == 500 and "No space left" in found.json["error"]
    assert client("/api/decisions").json == {"decisions": []}


def test_earlier_decisions_are_kept(
    client: Client, pairs: list[tuple[str, str]]
) -> None:
    assert decide(client, "accept", pairs[0]) == 200
    old = client.service.curator
    again = type(old)(old.run, (old.source, old.target), old.file)
    assert again.decisions() == old.decisions()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 404),
        ("/reconcile/preview?id=unknown", 404),
        ("/api/match?entity=unknown", 404),
        ("/api/explain?source=unknown", 404),
        ("/api/accept", 404),
    ],
)
def test_unknown_addresses_and_names(client: Client, path: str, status: int) -> None:
    found = client(path)
    assert found.status == status and found.json["error"]


def test_test_links_change_no_answer(run: FinishedRun, tmp_path: Path) -> None:
    wrong = run.split.test.copy()
    wrong[:, 1] = np.random.default_rng(1).permutation(wrong[:, 1])
    known = [run.split.supervision.train, run.split.supervision.validation]
    pair = replace(run.pair, links=np.concatenate([*known, wrong]))
    other = replace(run, pair=pair, split=replace(run.split, test=wrong))
    sides = Facts(run.pair.source), Facts(run.pair.target)
    first, second = (
        Curator(one, sides, tmp_path / "decisions.tsv") for one in (run, other)
    )
    for source in run.split.test[:5, 0].tolist():
        name = run.pair.source.entity_name(source)
        assert first.match(name) == second.match(name)
        assert first.explain(name) == second.explain(name)
