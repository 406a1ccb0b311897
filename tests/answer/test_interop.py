"""Exports of a run, read with the libraries of others: `make test-interop` installs them."""

import csv
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from emea.cli.main import main as emea

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
FORMATS = ("nt", "sssom", "alignment")
Matches = dict[tuple[str, str], float]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interop") / "run"
    graphs = [str(EXAMPLES / name) for name in ("atlas.nt", "karte.ttl")]
    given = [
        "--links",
        str(EXAMPLES / "seeds.tsv"),
        "--formats",
        *FORMATS,
        "--out",
        str(folder),
    ]
    assert (
        emea(["align", *graphs, *given, "model.encoder.dim=32", "em.iterations=1"]) == 0
    )
    return folder


@pytest.fixture(scope="module")
def matches(run: Path) -> Matches:
    with (run / "alignment.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) > 40
    return {(row["source"], row["target"]): float(row["probability"]) for row in rows}


def parsed(path: Path, form: str) -> Any:
    return pytest.importorskip("rdflib").Graph().parse(path, format=form)


def test_rdflib_reads_the_links(run: Path, matches: Matches) -> None:
    same = "http://www.w3.org/2002/07/owl#sameAs"
    found = {
        (str(s), str(o))
        for s, p, o in parsed(run / "alignment.nt", "nt")
        if str(p) == same
    }
    assert found == set(matches)


def test_an_alignment_file_is_what_its_vocabulary_says(
    run: Path, matches: Matches
) -> None:
    graph = parsed(run / "alignment.rdf", "xml")
    cells = graph.query(
        "PREFIX a: <http://knowledgeweb.semanticweb.org/heterogeneity/alignment#>"
        "SELECT ?one ?two ?relation ?measure WHERE { ?all a a:Alignment ; a:map ?cell ."
        "?cell a a:Cell ; a:entity1 ?one ; a:entity2 ?two ;"
        "a:relation ?relation ; a:measure ?measure }"
    )
    found = {(str(one), str(two)): float(measure) for one, two, _, measure in cells}
    assert found == pytest.approx(matches, abs=1e-6)
    assert {str(relation) for _, _, relation, _ in cells} == {"="}


def test_sssom_py_reads_and_validates_the_mapping(run: Path, matches: Matches) -> None:
    parsers = pytest.importorskip("sssom.parsers")
    mapping = parsers.parse_sssom_table(str(run / "alignment.sssom.tsv"))
    rows = mapping.df[mapping.df["object_id"] != "sssom:NoTermFound"]
    expected = sum(matches.values()) / len(matches)
    # versions with an older schema leave this slot out
    confidence = mapping.metadata.get("mapping_set_confidence", expected)
    assert confidence == pytest.approx(expected, abs=1e-6)
    expand = mapping.converter.expand
    found = {
        tuple(
            unquote(expand(one, passthrough=True))
            for one in (row.subject_id, row.object_id)
        ): float(row.confidence)
        for row in rows.itertuples()
    }
    assert found == pytest.approx(matches, abs=1e-6)
