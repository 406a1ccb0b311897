"""Two graphs as one."""

import io
from pathlib import Path

import numpy as np
import pyoxigraph
import pytest

from emea.answer.merging import identifiers, merged_lines
from emea.cli.main import main
from emea.data.attributes import AttributeTriples, Kind
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair

from ..ontologies import write_ontologies

SAME = "<http://www.w3.org/2002/07/owl#sameAs>"


def graph(names: list[str], edges: list[tuple[int, int, int]], text: str) -> KnowledgeGraph:
    kinds = [Kind(language="en"), Kind(datatype="http://x.org/t"), Kind()]
    triples = np.array([[0, 0, number] for number in range(3)])
    literals = AttributeTriples(triples, ["http://x.org/n"], [text, "1", "z"], np.arange(3), kinds)
    relations = ["http://x.org/r"]
    return KnowledgeGraph(np.array(edges), len(names), 1, names, relations, literals)


def test_matched_entities_have_one_identifier() -> None:
    source = graph(["http://a/1", "http://a/2", "_:x"], [(0, 0, 1), (1, 0, 2)], 'A "\\\n')
    target = graph(["http://b/1", "http://b/2", "_:x"], [(0, 0, 1), (1, 0, 2)], "B")
    pair = GraphPair("p", source, target, np.zeros((0, 2), dtype=np.int64))
    matches = [("http://a/1", "http://b/1", 0.9), ("http://a/2", "http://b/2", 0.8)]
    text = "".join(f"{line}\n" for line in merged_lines(pair, matches))
    quads = set(pyoxigraph.parse(io.BytesIO(text.encode()), pyoxigraph.RdfFormat.N_TRIPLES))
    lines = {f"{quad.subject} {quad.predicate} {quad.object}" for quad in quads}
    r, n = "<http://x.org/r>", "<http://x.org/n>"
    literals = ['"A \\"\\\\\\n"@en', '"1"^^<http://x.org/t>', '"z"', '"B"@en']
    assert {line for line in lines if "_:" not in line} == {
        f"<http://a/1> {r} <http://a/2>",  # both graphs state it
        *(f"<http://a/1> {n} {text}" for text in literals),
        f"<http://a/1> {SAME} <http://b/1>",
        f"<http://a/2> {SAME} <http://b/2>",
    }
    assert len({line for line in lines if "_:" in line}) == 2  # their blank nodes stay apart
    assert text.count("\n") == len(quads)


def test_groups_have_the_identifier_of_their_most_probable_source() -> None:
    matches = [("s1", "t1", 0.7), ("s2", "t1", 0.9), ("s3", "t3", 0.5), ("_:x", "t4", 1.0)]
    found = identifiers(matches)
    assert {name: kept[1] for (_, name), kept in found.items()} == {
        **dict.fromkeys(["s1", "s2", "t1"], "s2"),
        **dict.fromkeys(["s3", "t3"], "s3"),
    }


def test_the_graphs_of_a_run_become_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    files = [str(file) for file in write_ontologies(tmp_path)]
    run = tmp_path / "run"
    assert main(["align", *files, "method=paris", "literals=similar", "--out", str(run)]) == 0
    assert main(["merge", str(run), "--threshold", "0.5"]) == 0
    assert "Merged 9 matches" in capsys.readouterr().out
    quads = set(pyoxigraph.parse(path=str(run / "merged.nt")))
    text = "\n".join(f"{quad.subject} {quad.predicate} {quad.object}" for quad in quads)
    assert f"<http://a.org#hasAuthor> {SAME} <http://b.org#has_author>" in text
    # properties have one identifier as relations, too, and literals of the files are there
    assert "<http://a.org#emea2022> <http://a.org#hasAuthor> <http://a.org#liu>" in text
    assert '<http://a.org> <http://www.w3.org/2000/01/rdf-schema#comment> "conferences"' in text
    assert not [quad for quad in quads if str(quad.subject) == "<http://b.org#Author>"]
    Path(files[0]).write_text("<http://a.org#a> <http://a.org#r> <http://a.org#b> .")
    assert main(["merge", str(run), "--out", str(tmp_path / "stored.nt")]) == 0
    assert "changed since the run" in caplog.text
    text = (tmp_path / "stored.nt").read_text()
    assert "emea2022" in text and '"conferences"' not in text
    (run / "bad.tsv").write_text("source\ttarget\tprobability\na\tb\tmany\n")
    assert main(["merge", str(run), "--alignment", str(run / "bad.tsv")]) == 1
    assert "cannot be read as an alignment.tsv" in capsys.readouterr().err
    assert main(["merge", str(run), "--out", "/proc/merged.nt"]) == 1
    reason = "No such file or directory. Choose another place."
    assert capsys.readouterr().err == f"error: /proc/merged.nt cannot be written: {reason}\n"
