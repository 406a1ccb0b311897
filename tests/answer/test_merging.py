"""Two graphs as one."""

import io
import os
import shutil
from pathlib import Path

import numpy as np
import pyoxigraph
import pytest

from emea.answer.merging import (
    chosen_matches,
    identifiers,
    known_matches,
    merged_lines,
    read_matches,
)
from emea.cli.main import main
from emea.data.attributes import AttributeTriples, Kind
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.settings import Cardinality
from emea.errors import DataError

from ..finished_runs import Finished
from ..mutated_files import damaged, few_or_many, fuzz
from ..ontologies import write_ontologies

SAME = "<http://www.w3.org/2002/07/owl#sameAs>"


def graph(
    names: list[str], edges: list[tuple[int, int, int]], text: str
) -> KnowledgeGraph:
    kinds = [Kind(language="en"), Kind(datatype="http://x.org/t"), Kind()]
    triples = np.array([[0, 0, number] for number in range(3)])
    literals = AttributeTriples(
        triples, ["http://x.org/n"], [text, "1", "z"], np.arange(3), kinds
    )
    relations = ["http://x.org/r"]
    return KnowledgeGraph(np.array(edges), len(names), 1, names, relations, literals)


def test_matched_entities_have_one_identifier() -> None:
    source = graph(
        ["http://a/1", "http://a/2", "_:x"], [(0, 0, 1), (1, 0, 2)], 'A "\\\n'
    )
    target = graph(["http://b/1", "http://b/2", "_:x"], [(0, 0, 1), (1, 0, 2)], "B")
    pair = GraphPair("p", source, target, np.zeros((0, 2), dtype=np.int64))
    matches = [("http://a/1", "http://b/1", 0.9), ("http://a/2", "http://b/2", 0.8)]
    text = "".join(f"{line}\n" for line in merged_lines(pair, matches))
    quads = set(
        pyoxigraph.parse(io.BytesIO(text.encode()), pyoxigraph.RdfFormat.N_TRIPLES)
    )
    lines = {f"{quad.subject} {quad.predicate} {quad.object}" for quad in quads}
    r, n = "<http://x.org/r>", "<http://x.org/n>"
    literals = ['"A \\"\\\\\\n"@en', '"1"^^<http://x.org/t>', '"z"', '"B"@en']
    assert {line for line in lines if "_:" not in line} == {
        f"<http://a/1> {r} <http://a/2>",  # both graphs state it
        *(f"<http://a/1> {n} {text}" for text in literals),
        f"<http://a/1> {SAME} <http://b/1>",
        f"<http://a/2> {SAME} <http://b/2>",
    }
    assert (
        len({line for line in lines if "_:" in line}) == 2
    )  # their blank nodes stay apart
    assert text.count("\n") == len(quads)


def test_groups_have_the_identifier_of_their_most_probable_source() -> None:
    matches = [
        ("s1", "t1", 0.7),
        ("s2", "t1", 0.9),
        ("s3", "t3", 0.5),
        ("_:x", "t4", 1.0),
    ]
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
    assert (
        main(["align", *files, "method=paris", "literals=similar", "--out", str(run)])
        == 0
    )
    assert main(["merge", str(run), "--threshold", "0.5"]) == 0
    assert "Merged 9 matches" in capsys.readouterr().out
    quads = set(pyoxigraph.parse(path=str(run / "merged.nt")))
    text = "\n".join(f"{quad.subject} {quad.predicate} {quad.object}" for quad in quads)
    assert f"<http://a.org#hasAuthor> {SAME} <http://b.org#has_author>" in text
    # properties have one identifier as relations, too, and literals of the files are there
    assert "<http://a.org#emea2022> <http://a.org#hasAuthor> <http://a.org#liu>" in text
    assert (
        '<http://a.org> <http://www.w3.org/2000/01/rdf-schema#comment> "conferences"'
        in text
    )
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
    assert (
        capsys.readouterr().err
        == f"error: /proc/merged.nt cannot be written: {reason}\n"
    )


def test_names_made_from_iris_are_not_written(tmp_path: Path) -> None:
    files = []
    for side, names in enumerate((["New_York", "Old_Town"], ["Neu_York", "Old_Town"])):
        one, other = (f"<http://{side}.org/{name}>" for name in names)
        files.append(tmp_path / f"{side}.nt")
        files[-1].write_text(
            f'{one} <http://x.org/near> {other} .\n{other} <http://x.org/code> "77" .\n'
        )
    run = tmp_path / "run"
    given = [*map(str, files), "method=paris", "literals=similar", "--out", str(run)]
    assert main(["align", *given]) == 0
    for options in ([], ["--out", str(tmp_path / "stored.nt")]):
        if options:  # the graphs as the run read them have these names
            files[0].write_text(
                files[0].read_text() + files[0].read_text()[:-3] + "x ."
            )
        assert main(["merge", str(run), *options]) == 0
    for written in (run / "merged.nt", tmp_path / "stored.nt"):
        text = written.read_text()
        assert "iri_name" not in text and '"Old Town"' not in text
        assert text.count('"77"') >= 1


PAIR = GraphPair(
    "p",
    graph(["a", "b\tc"], [(0, 0, 1)], "x"),
    graph(["x", "y"], [(0, 0, 1)], "x"),
    np.zeros((0, 2), dtype=np.int64),
)
HEADER = "source\ttarget\tprobability\n"


@pytest.mark.parametrize("kind", ["file", "pipe", "link", "folder"])
def test_a_merge_replaces_no_file_of_the_user(
    kind: str, small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = tmp_path / "m_left_out.tsv"
    (tmp_path / "notes").write_text("mine")
    match kind:
        case "file":
            rest.write_text("mine")
        case "pipe":
            os.mkfifo(rest)
        case "link":
            rest.symlink_to(tmp_path / "notes")
        case "folder":
            rest.mkdir()
    before = rest.lstat()
    arguments = ["merge", str(small_run), "--out", str(tmp_path / "m.nt")]
    assert main(arguments) == 1
    assert "m_left_out.tsv" in capsys.readouterr().err
    assert rest.lstat() == before and not (tmp_path / "m.nt").exists()
    assert (tmp_path / "notes").read_text() == "mine"
    if kind == "file":
        assert main([*arguments, "--force"]) == 0
        assert main(arguments) == 0  # its own files are replaced


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("merged")
    files = [str(file) for file in write_ontologies(folder)]
    given = ["method=paris", "literals=similar", "--out", str(folder / "run")]
    assert main(["align", *files, *given]) == 0
    return folder / "run"


@pytest.mark.parametrize("text", ["0_1", "\uff10.5", "1e-400x"])
def test_a_probability_has_usual_digits(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(f"{HEADER}a\tx\t{text}\n")
    with pytest.raises(DataError, match=r"cannot be read as an alignment\.tsv"):
        read_matches(tmp_path / "a.tsv", is_own=False)


def test_matches_have_the_names_of_the_graphs(tmp_path: Path) -> None:
    path = tmp_path / "alignment.tsv"
    path.write_text(HEADER + "a\tx\t0.5\nb\\tc\ty\t1\n")
    found = known_matches(path, read_matches(path), PAIR)
    assert found == [("a", "x", 0.5), ("b\tc", "y", 1.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its columns are not source, target, probability"),
        ("target\tsource\tprobability\nx\ta\t0.5\n", "its columns are not"),
        ("a\tx\t0.5\n", "its columns are not"),
        (HEADER + "a\tx\n", "line 2 has 2 columns instead of 3"),
        (HEADER + "a\tx\t0.5\t1\n", "line 2 has 4 columns instead of 3"),
        (HEADER + "a\tx\t0.5\n\na\ty\t0.1\n", "line 3 has 1 columns"),
        (HEADER + "a\tx\tnan\n", "the probability in line 2 is nan"),
        (HEADER + "a\tx\t1.5\n", "the probability in line 2 is 1.5"),
        (HEADER + "a\tx\t-inf\n", "the probability in line 2 is -inf"),
        (HEADER + "x\ta\t0.5\n", "line 2: x is not an entity of the source graph"),
        (
            HEADER + "a\ty\t0.5\na\tz\t0.5\n",
            "line 3: z is not an entity of the target graph",
        ),
    ],
)
def test_other_matches_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "alignment.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        known_matches(path, read_matches(path, is_own=False), PAIR)


def test_a_cut_alignment_is_not_merged(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished("paris").folder, run)
    assert main(["predict", str(run)]) == 0
    assert main(["merge", str(run)]) == 0
    for place in (run / "alignment.tsv", run / "predictions" / "alignment.tsv"):
        lines = place.read_text().splitlines(keepends=True)
        place.write_text("".join(lines[: len(lines) // 2]))
        own = place.parent == run
        assert (
            main(["merge", str(run), *([] if own else ["--alignment", str(place)])])
            == 1
        )
        assert "has another checksum" in capsys.readouterr().err
    chosen = tmp_path / "chosen.tsv"
    chosen.write_text("".join(lines[:3]))
    assert main(["merge", str(run), "--alignment", str(chosen)]) == 0
    assert "Merged 2 matches" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "text", "- a", "data: x"])
def test_a_run_without_settings_is_not_merged(
    text: str, finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished("paris").folder, run)
    (run / "config.yaml").write_text(text)
    assert main(["merge", str(run)]) == 1
    assert "config.yaml is damaged" in capsys.readouterr().err
    assert not (run / "merged.nt").exists()


def test_a_graph_does_not_replace_the_settings_of_a_run(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished("paris").folder, run)
    before = (run / "config.yaml").read_bytes()
    assert main(["merge", str(run), "--out", str(run / "config.yaml"), "--force"]) == 1
    assert main(["predict", str(run), "--out", str(run)]) == 1
    assert capsys.readouterr().err.count("belongs to a run") == 2
    assert (run / "config.yaml").read_bytes() == before


def test_two_entities_of_one_graph_are_not_merged() -> None:
    matches = [
        ("s1", "t1", 0.7),
        ("s2", "t1", 0.9),
        ("s3", "t3", 0.3),
        ("s2", "t4", 0.8),
    ]
    chosen, left_out = chosen_matches(matches, 0.5, Cardinality.ONE_TO_ONE)
    assert chosen == [("s2", "t1", 0.9)]
    assert {(one.match[:2], one.reason) for one in left_out} == {
        (("s1", "t1"), "would join two entities of one graph"),
        (("s2", "t4"), "would join two entities of one graph"),
        (("s3", "t3"), "below the threshold"),
    }
    # a source entity may have several targets, but a target only one source
    chosen, _ = chosen_matches(matches, 0.5, Cardinality.ONE_TO_MANY)
    assert chosen == [("s2", "t1", 0.9), ("s2", "t4", 0.8)]
    chosen, _ = chosen_matches(matches, 0.0, Cardinality.MANY_TO_MANY)
    assert len(chosen) == len(matches)


@few_or_many(25, 2000)
def test_any_alignment_is_read_or_refused(tmp_path: Path, num_examples: int) -> None:
    path = tmp_path / "alignment.tsv"
    whole = (HEADER + "a\tx\t0.5\nb\\tc\ty\t1\n").encode()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        for source, target, prob in known_matches(
            path, read_matches(path, is_own=False), PAIR
        ):
            assert source in ("a", "b\tc") and target in ("x", "y") and 0 <= prob <= 1

    fuzz(damaged(whole), read, num_examples)
