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
    given = {key: folder / value for key, value in {**paths, **more.pop("files", {})}.items()}
    return read_own_files(**given, **more)


def named(pair, links) -> set[tuple[str, str]]:
    return {(pair.source.entity_name(s), pair.target.entity_name(t)) for s, t in links.tolist()}


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


@pytest.mark.parametrize(("name", "called"), [(2024, "2024"), ("", "-"), (None, "-")])
def test_a_name_is_always_text(write_files: WriteFiles, name: Any, called: str) -> None:
    pair = read(write_files({**GRAPHS, "seeds.tsv": "a\tx\n"}), name=name)
    assert called in pair.name


def test_no_overlap_is_reported(write_files: WriteFiles) -> None:
    folder = write_files({**GRAPHS, "seeds.tsv": "q\tx\nu\tv\n"})
    with pytest.raises(DataError, match=r"none of its 2 links joins an entity of a\.tsv"):
        read(folder)


def test_test_links_that_are_the_labels_are_reported(write_files: WriteFiles) -> None:
    folder = write_files({**GRAPHS, "seeds.tsv": "a\tx\nb\ty\n", "test.tsv": "a\tx\nb\tz\n"})
    with pytest.raises(DataError, match=r"test\.tsv: none of its 2 links can.*from the labels\."):
        read(folder, files={"test_links": "test.tsv"}, on_error="skip")


def test_a_link_to_an_entity_that_has_only_literals(
    write_files: WriteFiles, caplog: pytest.LogCaptureFixture
) -> None:
    source = '<http://a/1> <http://a/r> <http://a/2> .\n<http://a/3> <http://a/name> "C" .\n'
    files = {
        "a.nt": source,
        "b.csv": GRAPHS["b.csv"],
        "seeds.tsv": "http://a/1\tx\nhttp://a/3\ty\n",
    }
    folder = write_files(files)
    assert len(read(folder, files={"source": "a.nt"}).links) == 1
    assert "source entity http://a/3 of a.nt has only literals, which literals=none" in caplog.text
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
    assert "1 links; left out: 1 with an unknown entity, 1 contradicting others" in table
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
    folder = write_files({**GRAPHS, **links, "wrong.tsv": "a\ty\nc\tz\n", "label.tsv": "b\ty\n"})
    files = {"test_links": "test.tsv", "rejected": "wrong.tsv"}
    pair = read(folder, files=files)  # test links have no influence
    assert named(pair, pair.rejected) == {("a", "y"), ("c", "z")}
    with pytest.raises(DataError, match="b - y is both a known link and a rejected pair"):
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
