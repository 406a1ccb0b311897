"""A pair from the user's own files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from emea.data.sources.own_files import read_own_files
from emea.data.statistics import statistics_table
from emea.errors import ConfigError, DataError
from emea.record.pair_file import read_pair, write_pair

WriteFiles = Callable[[Mapping[str, str | bytes]], Path]


EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
GRAPHS = {
    "a.tsv": "a\tr\tb\nb\tr\tc\n",
    "b.csv": "x,q,y\ny,q,z\n",
}


def read(folder: Path, **more):
    paths = {"source": "a.tsv", "target": "b.csv", "links": "seeds.tsv"}
    given = {
        key: folder / value for key, value in {**paths, **more.pop("files", {})}.items()
    }
    return read_own_files(**given, **more)


def named(pair, links) -> set[tuple[str, str]]:
    return {
        (pair.source.entity_name(s), pair.target.entity_name(t))
        for s, t in links.tolist()
    }


def test_labels_and_test_links_are_parts(write_files: WriteFiles) -> None:
    folder = write_files({**GRAPHS, "seeds.tsv": "a\tx\nb\ty\n", "test.tsv": "c\tz\n"})
    pair = read(folder, files={"test_links": "test.tsv"})
    assert pair.name == "a-b"
    assert named(pair, pair.links) == {("a", "x"), ("b", "y"), ("c", "z")}
    assert named(pair, pair.official.train) == {("a", "x"), ("b", "y")}
    assert named(pair, pair.official.test) == {("c", "z")}
    assert len(pair.official.validation) == 0


def test_without_test_links(write_files: WriteFiles) -> None:
    pair = read(write_files({**GRAPHS, "seeds.tsv": "a\tx\n"}), name="mine")
    assert (pair.name, len(pair.official.test)) == ("mine", 0)
    assert pair.reading.test_links is None


@pytest.mark.parametrize(("name", "called"), [(2024, "2024"), (None, "-")])
def test_a_name_is_always_text(write_files: WriteFiles, name: Any, called: str) -> None:
    pair = read(write_files({**GRAPHS, "seeds.tsv": "a\tx\n"}), name=name)
    assert called in pair.name


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_refused(write_files: WriteFiles, name: str) -> None:
    with pytest.raises(ConfigError, match=r"data\.name must not be empty"):
        read(write_files({**GRAPHS, "seeds.tsv": "a\tx\n"}), name=name)


def test_no_overlap_is_reported(write_files: WriteFiles) -> None:
    folder = write_files({**GRAPHS, "seeds.tsv": "q\tx\nu\tv\n"})
    with pytest.raises(
        DataError, match=r"none of its 2 links joins an entity of a\.tsv"
    ):
        read(folder)


def test_test_links_that_are_the_labels_are_reported(write_files: WriteFiles) -> None:
    folder = write_files(
        {**GRAPHS, "seeds.tsv": "a\tx\nb\ty\n", "test.tsv": "a\tx\nb\tz\n"}
    )
    with pytest.raises(
        DataError, match=r"test\.tsv: none of its 2 links can.*from the labels\."
    ):
        read(folder, files={"test_links": "test.tsv"}, on_error="skip")


def test_a_link_to_an_entity_that_has_only_literals(
    write_files: WriteFiles, caplog: pytest.LogCaptureFixture
) -> None:
    source = (
        '<http://a/1> <http://a/r> <http://a/2> .\n<http://a/3> <http://a/name> "C" .\n'
    )
    files = {
        "a.nt": source,
        "b.csv": GRAPHS["b.csv"],
        "seeds.tsv": "http://a/1\tx\nhttp://a/3\ty\n",
    }
    folder = write_files(files)
    assert len(read(folder, files={"source": "a.nt"}).links) == 1
    assert (
        "source entity http://a/3 of a.nt has only literals, which literals=none"
        in caplog.text
    )
    assert len(read(folder, files={"source": "a.nt"}, keep_isolated=True).links) == 2


def test_no_link_at_all(write_files: WriteFiles) -> None:
    with pytest.raises(DataError, match=r"seeds\.tsv contains no links"):
        read(write_files({**GRAPHS, "seeds.tsv": "source\ttarget\n"}))


def test_files_must_be_named() -> None:
    with pytest.raises(ConfigError, match=r"data\.source must name a file"):
        read_own_files(None, "b.nt", None)
    with pytest.raises(ConfigError, match="There is nothing to start from"):
        read_own_files("a.nt", "b.nt", None)


def test_what_was_left_out_is_reported(write_files: WriteFiles) -> None:
    folder = write_files(
        {
            "a.nt": "<http://a/a> <http://a/r> <http://a/b> .\n" * 2
            + '<http://a/a> <http://a/r> "x" .\nwhat?\n',
            "b.csv": GRAPHS["b.csv"],
            "seeds.tsv": "a:a\tx\nhttp://a/q\ty\nhttp://a/a\tz\n",
        }
    )
    files = {"source": "a.nt"}
    pair = read(folder, files=files, on_error="skip", prefixes={"a": "http://a/"})
    source, links = pair.reading.source, pair.reading.links
    assert (source.num_literals, source.num_duplicates, source.num_bad) == (1, 1, 1)
    assert (links.num_links, links.num_unknown, links.num_contradicting) == (1, 1, 1)
    table = statistics_table(pair)
    assert (
        "1 links; left out: 1 with an unknown entity, 1 contradicting others" in table
    )
    assert "literals left out" in table


def test_the_examples_of_the_guide() -> None:
    pair = read_own_files(
        EXAMPLES / "atlas.nt",
        EXAMPLES / "karte.ttl",
        EXAMPLES / "seeds.tsv",
        test_links=EXAMPLES / "test.tsv",
    )
    assert (pair.source.num_entities, pair.target.num_entities) == (66, 64)
    assert (len(pair.official.train), len(pair.official.test)) == (20, 42)


def test_a_rejected_pair_is_not_a_label(write_files: WriteFiles) -> None:
    links = {"seeds.tsv": "a\tx\nb\ty\n", "test.tsv": "c\tz\n"}
    folder = write_files(
        {**GRAPHS, **links, "wrong.tsv": "a\ty\nc\tz\n", "label.tsv": "b\ty\n"}
    )
    files = {"test_links": "test.tsv", "rejected": "wrong.tsv"}
    pair = read(folder, files=files)  # test links have no influence
    assert named(pair, pair.rejected) == {("a", "y"), ("c", "z")}
    with pytest.raises(
        DataError, match="b - y is both a known link and a rejected pair"
    ):
        read(folder, files={**files, "rejected": "label.tsv"})


def test_entities_without_a_counterpart(
    write_files: WriteFiles, caplog: pytest.LogCaptureFixture
) -> None:
    files = {"seeds.tsv": "a\tx\n", "none.tsv": "c\tgone\nq\n\nc\n", "label.tsv": "a\n"}
    folder = write_files({**GRAPHS, **files, "other.tsv": "x\n"})
    pair = read(folder, unmatched=str(folder / "none.tsv"))
    assert [pair.source.entity_name(one) for one in pair.unmatched] == ["c"]
    assert "1 of 2 names are not in a.tsv and are left out, such as q" in caplog.text
    assert pair.checksum() != read(folder).checksum()
    with pytest.raises(DataError, match=r"a has a link, but data\.unmatched says"):
        read(folder, unmatched=str(folder / "label.tsv"))
    with pytest.raises(DataError, match=r"other\.tsv names no source entity of a\.tsv"):
        read(folder, unmatched=str(folder / "other.tsv"))
    (folder / "empty.tsv").write_text("")
    assert not len(read(folder, unmatched=str(folder / "empty.tsv")).unmatched)
    write_pair(folder / "pair.npz", pair)
    assert read_pair(folder / "pair.npz").unmatched.tolist() == pair.unmatched.tolist()


def test_attributes_that_no_graph_has_are_reported(
    write_files: WriteFiles, caplog: pytest.LogCaptureFixture
) -> None:
    source = "a\tr\tb\nb\tr\tc\na\tname\tAnna\n"
    folder = write_files({**GRAPHS, "a.tsv": source, "seeds.tsv": "a\tx\n"})
    read(folder, keep_literals=True, attributes=["name", "nmae"])
    assert [record.getMessage().split()[-1] for record in caplog.records] == ["nmae"]


TABLES = {
    "a.csv": "id,title,authors\n1,Red Sea,Ann;Bob\n2,Blue Moon,Cid\n",
    "b.csv": "id,name,writers\nx,Red Sea,Ann;Bob\ny,Blue Moon,Cid\n",
}

AS_TABLES = {"source": "a.csv", "target": "b.csv"}


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("references", ["autors"], "autors"),
        ("lists", {"authors": ";", "writer": ";"}, "writer"),
        ("label_column", "titel", "titel"),
    ],
)
@pytest.mark.parametrize("keep_literals", [True, False])
def test_misspelt_columns_are_refused(
    write_files: WriteFiles, key: str, value: Any, named: str, keep_literals: bool
) -> None:
    folder = write_files(TABLES | {"seeds.tsv": "1\tx\n"})
    with pytest.raises(DataError) as caught:
        # a reference makes edges, so that the table can be read without literals
        given = {"references": ["authors", "writers"]} | {key: value}
        if key == "references":
            given[key] = ["authors", "writers", *value]
        read(folder, files=AS_TABLES, keep_literals=keep_literals, **given)
    assert str(caught.value) == (
        f"data.{key}: no table has a column {named}. The columns are id, title, authors, name, "
        "writers."
    )


def test_links_may_name_ids_without_the_base(write_files: WriteFiles) -> None:
    folder = write_files(TABLES | {"seeds.tsv": "1\tx\n2\thttp://b.org/y\n"})
    bases = "http://a.org/, http://b.org/"
    pair = read(folder, files=AS_TABLES, keep_literals=True, base_iri=bases)
    found = {
        (pair.source.entity_name(one), pair.target.entity_name(other))
        for one, other in pair.links.tolist()
    }
    assert found == {
        ("http://a.org/1", "http://b.org/x"),
        ("http://a.org/2", "http://b.org/y"),
    }


@pytest.mark.parametrize(
    "base", ["museum", "", "http://a b/", "http://a/,http://b/,http://c/"]
)
def test_a_base_is_an_absolute_iri(write_files: WriteFiles, base: str) -> None:
    folder = write_files(TABLES | {"seeds.tsv": "1\tx\n"})
    with pytest.raises(ConfigError, match=r"data\.base_iri must be an absolute IRI"):
        read(folder, files=AS_TABLES, keep_literals=True, base_iri=base)


@pytest.mark.parametrize("header", ["", "title\tname\n", "source\ttarget\n"])
def test_links_may_name_values(
    write_files: WriteFiles, header: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_files(
        TABLES | {"seeds.tsv": header + "Red sea\tRed Sea\nBlue Moon\ty\n"}
    )
    pair = read(folder, files=AS_TABLES, keep_literals=True)
    assert named(pair, pair.links) == {
        ("2", "y")
    }  # a side that has ids is read by ids only
    assert "seeds.tsv names source entities by their values of title" in caplog.text
    folder = write_files(
        {"seeds.tsv": header + "Red sea\tRed Sea\nBlue  Moon\tBlue moon\n"}
    )
    pair = read(folder, files=AS_TABLES, keep_literals=True)
    assert named(pair, pair.links) == {("1", "x"), ("2", "y")}
    assert "seeds.tsv names target entities by their values of name" in caplog.text


def test_links_may_name_labels(write_files: WriteFiles) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    graphs = {
        f"{side}.nt": f"<http://{side}/1> <http://p> <http://{side}/2> .\n"
        + "".join(f'<http://{side}/{n}> {label} "thing {n}" .\n' for n in (1, 2))
        for side in "ab"
    }
    folder = write_files(
        graphs | {"seeds.tsv": "thing 1\tthing 1\nhttp://a/2\thttp://b/2\n"}
    )
    files = {"source": "a.nt", "target": "b.nt"}
    pair = read(folder, files=files)
    assert named(pair, pair.links) == {("http://a/2", "http://b/2")}
    write_files({"seeds.tsv": "thing 1\tthing 1\nthing 2\tthing 2\n"})
    pair = read(folder, files=files)
    assert len(pair.links) == 2


def test_ambiguous_values_are_no_links(write_files: WriteFiles) -> None:
    tables = {
        name: text.replace("Blue Moon", "Red Sea") for name, text in TABLES.items()
    }
    folder = write_files(tables | {"seeds.tsv": "Red Sea\tRed Sea\n"})
    with pytest.raises(DataError, match="none of its 1 links joins an entity"):
        read(folder, files=AS_TABLES, keep_literals=True)
