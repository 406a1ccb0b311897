"""Graphs from SPARQL endpoints, read from a real one on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from emea.aligner import read_graph
from emea.config.settings.data import ReadingLimits
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.limits import reading_limits
from emea.data.graph import KnowledgeGraph
from emea.data.sources import sparql
from emea.data.sources.own_files import read_own_files
from emea.data.sources.sparql import endpoint_copy
from emea.errors import ConfigError, DataError, UserError

from .endpoint import Endpoint, serving

EX = "http://x.org/"
TRIPLES = "".join(
    [
        *(f"<{EX}e{n}> <{EX}next> <{EX}e{(n + 1) % 50}> .\n" for n in range(50)),
        f'<{EX}e1> <http://www.w3.org/2000/01/rdf-schema#label> "Ä \\"one\\"\\nline"@de .\n',
        f'<{EX}e2> <{EX}size> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
        f"<{EX}e3> <{EX}near> _:place .\n_:place <{EX}in> <{EX}中> .\n",
    ]
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "emea" / "sparql"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving(Endpoint(TRIPLES)) as found:
        yield found


def named_triples(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    """All triples by name, in which blank nodes have the same name."""

    def name(entity: int) -> str:
        found = graph.entity_name(entity)
        return "_:" if found.startswith("_:") else found

    edges = {(name(h), graph.relation_name(r), name(t)) for h, r, t in graph.triples.tolist()}
    if graph.attributes is None:
        return edges
    values = graph.attributes
    return edges | {
        (name(e), values.attribute_names[a], f"{values.values[v]} {values.kind(v)}")
        for e, a, v in values.triples.tolist()
    }


def of_file(tmp_path: Path, literals: bool = True) -> set[tuple[str, str, str]]:
    path = tmp_path / "same.nt"
    path.write_text(TRIPLES, encoding="utf-8")
    return named_triples(read_graph_file(path, keep_literals=literals)[0])


@pytest.mark.parametrize("query", [None, "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"])
def test_an_endpoint_gives_the_graph_of_the_same_file(
    query: str | None, endpoint: Endpoint, tmp_path: Path
) -> None:
    graph = read_graph(endpoint.url, literals=True, query=query)
    assert named_triples(graph) == of_file(tmp_path)
    assert graph.labels is not None and 'Ä "one" line' in graph.labels


@pytest.mark.parametrize("kind", ["SELECT ?s ?p ?o", "CONSTRUCT { ?s ?p ?o }"])
def test_pages_are_ordered_and_complete(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    query = f"{kind} WHERE {{ ?s ?p ?o FILTER(!isBlank(?s) && !isBlank(?o)) }}"
    path = endpoint_copy(endpoint.url, query, page_size=7)
    found = named_triples(read_graph_file(path, keep_literals=True)[0])
    assert found == {triple for triple in of_file(tmp_path) if "_:" not in triple}
    assert len(endpoint.queries) == 9  # 52 triples and an empty page
    assert all("ORDER BY ?s ?p ?o" in asked for asked in endpoint.queries)
    assert endpoint.queries[2].endswith("LIMIT 7\nOFFSET 14")


def test_a_server_that_returns_less_than_asked_for_loses_no_row(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.most_rows = 11
    assert named_triples(read_graph(endpoint.url, literals=True)) == of_file(tmp_path)
    assert len(endpoint.queries) == 6


@pytest.mark.parametrize(
    "template",
    [
        "?s ?p ?o",
        "?s ?p ?o .",
        f"?s ?p ?o . ?o <{EX}of> ?s",
        f"?s ?p ?o ; <{EX}to> ?o .",
        f"?s <{EX}is> ?p, ?o, ?s",
        f"?s <{EX}has> [ <{EX}is> ?o ]",
        f"?s <{EX}all> (?s ?o)",
    ],
)
def test_a_server_that_returns_less_of_a_construct_query_loses_no_row(
    template: str, endpoint: Endpoint
) -> None:
    query = f"CONSTRUCT {{ {template} }} WHERE {{ ?s ?p ?o . ?s <{EX}next> ?o }}"
    whole = named_triples(read_graph(endpoint.url, query=query))
    num_queries = len(endpoint.queries)
    endpoint.most_rows = 11
    assert named_triples(read_graph(endpoint.url, query=f"{query} ")) == whole
    assert num_queries <= 5 and 6 <= len(endpoint.queries) - num_queries <= 12


@pytest.mark.parametrize("kind", ["SELECT ?s ?p ?o", "CONSTRUCT { ?s ?p ?o }"])
@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"Content-Length": "1000000"}, "a response ends after .* of 1,000,000 bytes"),
        ({"X-SQL-State": "S1TAT", "X-SQL-Message": "Timeout"}, "only a part of a page: Timeout"),
    ],
)
def test_an_incomplete_answer_is_refused(
    kind: str, headers: dict[str, str], sentence: str, endpoint: Endpoint, cache: Path
) -> None:
    endpoint.headers = headers
    with pytest.raises(DataError, match=sentence):
        endpoint_copy(endpoint.url, f"{kind} WHERE {{ ?s ?p ?o }}")
    assert list(cache.iterdir()) == []


def test_a_query_with_its_own_limit_or_order_is_kept(endpoint: Endpoint) -> None:
    query = f"SELECT ?a ?b ?c WHERE {{ ?a ?b ?c . ?a <{EX}next> ?c }} # LIMIT"
    limited = query.replace("# LIMIT", "ORDER BY DESC(?a) LIMIT 5")
    assert read_graph(endpoint.url, query=limited).num_triples == 5
    assert endpoint.queries == [limited]
    assert read_graph(endpoint.url, query=f"{query}\n").num_triples == 50
    assert "ORDER BY ?a ?b ?c\nLIMIT 10000" in endpoint.queries[1]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s ?p ?o WHERE { ?s ?p ?o } ORDER BY ?s ?o LIMIT 40",
        "SELECT ?s ?p ?o WHERE { { SELECT ?s WHERE { ?s ?q ?x } ORDER BY ?s LIMIT 40 } ?s ?p ?o }",
    ],
)
def test_a_server_that_returns_less_than_a_limit_is_an_error(
    query: str, endpoint: Endpoint, cache: Path
) -> None:
    whole = read_graph(endpoint.url, literals=True, query=query)
    assert whole.num_triples >= 40 - 3 and len(endpoint.queries) <= 2
    endpoint.most_rows = 30
    with pytest.raises(DataError, match="returned only the first 30 rows"):
        endpoint_copy(endpoint.url, f"{query} ")
    assert len(list(cache.iterdir())) == 1


def test_a_copy_is_used_again_and_a_file_may_hold_the_query(
    endpoint: Endpoint, cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "some.rq"
    file.write_text(f"SELECT ?s ?p ?o WHERE {{ ?s ?p ?o . ?s <{EX}next> ?o }}")
    first = read_graph(endpoint.url, query=str(file))
    num_queries = len(endpoint.queries)
    caplog.set_level("INFO")
    second = read_graph(endpoint.url, query=str(file))
    assert len(endpoint.queries) == num_queries and "Delete" in caplog.text
    assert named_triples(first) == named_triples(second)
    read_graph(endpoint.url)
    assert len(list(cache.iterdir())) == 2


def test_a_pair_can_mix_an_endpoint_and_a_file(endpoint: Endpoint, tmp_path: Path) -> None:
    file, links = tmp_path / "other.nt", tmp_path / "links.tsv"
    file.write_text(TRIPLES.replace("x.org", "y.org"), encoding="utf-8")
    links.write_text("".join(f"{EX}e{n}\thttp://y.org/e{n}\n" for n in range(20)))
    pair = read_own_files(endpoint.url, file, links, page_size=20)
    assert pair.name == "127.0.0.1-other"
    assert len(pair.links) == 20 and pair.source.num_triples == pair.target.num_triples == 52
    with pytest.raises(ConfigError, match="Only the graph of a SPARQL endpoint can have a query"):
        read_own_files(endpoint.url, file, links, target_query="SELECT ?s ?p ?o {?s ?p ?o}")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((400, "text/plain", b"no\nsuch graph"), r"rejected the query \(HTTP 400\): no such graph"),
        ((404, "text/html", b""), r"rejected the query \(HTTP 404\)"),
        ((200, "text/html", b"<html>"), "not valid text/html: the answer of a SELECT"),
        ((200, "application/sparql-results+json", b'{"head"'), "returned a response that is not"),
        ((200, "application/sparql-results+json", b'{"head":{},"boolean":true}'), "three variabl"),
    ],
)
def test_a_bad_answer_is_one_sentence_and_leaves_no_copy(
    answer: tuple[int, str, bytes], sentence: str, endpoint: Endpoint, cache: Path
) -> None:
    endpoint.answers.append(answer)
    with pytest.raises(UserError, match=sentence) as caught:
        endpoint_copy(endpoint.url)
    assert "\n" not in str(caught.value)
    assert list(cache.iterdir()) == []


def test_a_construct_query_needs_triples(endpoint: Endpoint) -> None:
    endpoint.answers.append((200, "application/rdf+xml", b"<rdf/>"))
    with pytest.raises(DataError, match="must be N-Triples or Turtle"):
        endpoint_copy(endpoint.url, "CONSTRUCT WHERE { ?s ?p ?o }")
    endpoint.answers.append((200, "text/turtle", b"<http://a> " + b"<< " * 2000))
    with pytest.raises(DataError, match="quoted triples"):
        endpoint_copy(endpoint.url, "CONSTRUCT WHERE { ?s ?p ?o }")


def test_a_busy_server_is_asked_again(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sparql, "WAITS", (0.0, 0.0))
    endpoint.answers += [(503, "text/plain", b"busy"), (429, "text/plain", b"busy")]
    assert named_triples(read_graph(endpoint.url)) == of_file(tmp_path, literals=False)
    endpoint.answers += [(503, "text/plain", b"busy")] * 3
    with pytest.raises(DataError, match="HTTP 503"):
        read_graph(endpoint.url, query="SELECT ?s ?p ?o WHERE { ?s ?p ?o . }")


def test_answers_that_are_too_large_are_refused(
    endpoint: Endpoint, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = f'<{EX}a> <{EX}b> "{"x" * (1 << 20)}" .\n'.encode()
    monkeypatch.setattr(sparql, "PAGE_MIB", 1)
    endpoint.answers.append((200, "application/n-triples", long))
    with pytest.raises(DataError, match="exceeds 1 MiB"):
        endpoint_copy(endpoint.url, "CONSTRUCT WHERE { ?s ?p ?o }")
    monkeypatch.setattr(sparql, "PAGE_MIB", 100)
    endpoint.answers.append((200, "application/n-triples", long))
    with (
        reading_limits(ReadingLimits(size_mib=1)),
        pytest.raises(DataError, match=r"data\.limits\.size_mib"),
    ):
        endpoint_copy(endpoint.url, "CONSTRUCT WHERE { ?s ?p ?o }")
    assert list(cache.iterdir()) == []


def test_unreachable_endpoints_and_wrong_queries_are_one_sentence() -> None:
    with serving(Endpoint("")) as gone:
        pass
    with pytest.raises(DataError, match=r"cannot be read .*Check the address"):
        endpoint_copy(gone.url)
    with pytest.raises(ConfigError, match="must not contain a user name or password"):
        endpoint_copy("http://me:secret@127.0.0.1/sparql")
    with pytest.raises(ConfigError, match="SELECT or a CONSTRUCT"):
        endpoint_copy(gone.url, "ASK { ?s ?p ?o }")
    with pytest.raises(ConfigError, match=r"missing\.rq cannot be read"):
        endpoint_copy(gone.url, "missing.rq")
    with pytest.raises(DataError, match="Only a SPARQL endpoint can be read with a query"):
        read_graph("graph.nt", query="SELECT ?s ?p ?o {}")
