"""Files that would exhaust memory or time end in one sentence that names the limit."""

import gzip
import os
import socket
from pathlib import Path

import pytest

from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.limits import MIB, reading_limits
from emea.data.formats.link_file import read_link_file
from emea.data.formats.settings import ReadingLimits
from emea.data.formats.tab_file import read_table
from emea.data.sources.own_files import read_own_files
from emea.errors import DataError

ROOT = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://a.org/">'
    '<rdf:Description rdf:about="http://a.org/a"><e:knows rdf:resource="http://a.org/b"/>'
)
END = "</rdf:Description></rdf:RDF>"


def rdfxml(folder: Path, definitions: str, name: str = "x") -> Path:
    path = folder / "a.rdf"
    text = f"<!DOCTYPE r [{definitions}]>{ROOT}<e:name>{name}</e:name>{END}"
    path.write_text(text, encoding="utf-8")
    return path


def laughs(depth: int) -> str:
    """Entities that each refer ten times to the one before."""
    lines = ['<!ENTITY e0 "lol">']
    lines += [
        f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, depth)
    ]
    return "".join(lines)


@pytest.mark.parametrize(
    ("definitions", "use", "message"),
    [
        (
            laughs(10),
            "&e9;",
            "line 1: the definition of entity e1 refers to other entities",
        ),
        (
            '<!ENTITY a "&#38;b;"><!ENTITY b "x">',
            "&a;",
            "entity a refers to other entities",
        ),
        ('<!ENTITY % a "x">', "x", "entity a refers to other entities"),
        (
            '<!ENTITY a SYSTEM "file:///etc/hostname">',
            "&a;",
            "entity a refers to other entities",
        ),
        (
            f'<!ENTITY a "{"x" * 5000}">',
            "&a;" * 9,
            "entity a exceeds data.limits.entity_length",
        ),
    ],
)
def test_entities_that_grow_are_refused(
    tmp_path: Path, definitions: str, use: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_graph_file(rdfxml(tmp_path, definitions, use))


def test_entities_in_attributes_and_other_encodings_are_refused(tmp_path: Path) -> None:
    path = rdfxml(tmp_path, laughs(10))
    path.write_text(path.read_text().replace("a.org/b", "&e9;"), encoding="utf-8")
    with pytest.raises(DataError, match="refers to other entities"):
        read_graph_file(path)
    path.write_text(path.read_text(), encoding="utf-16-le")
    with pytest.raises(DataError, match="refers to other entities"):
        read_graph_file(path)


def test_deep_xml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.rdf"
    path.write_text(ROOT + "<e:x>" * 100_000)
    with pytest.raises(
        DataError, match=r"a\.rdf: the nesting depth .* data\.limits\.depth=256"
    ):
        read_graph_file(path)


def test_broken_xml_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.rdf"
    path.write_text(f"{ROOT}\n<e:x></e:y>")
    with pytest.raises(
        DataError, match=r"a\.rdf, line 2: the XML is not well-formed: mismatched"
    ):
        read_graph_file(path)


def with_prefix(folder: Path, name: str, length: int, num_triples: int) -> Path:
    """Write a file of short names whose prefix or base has the given length."""
    start = f"http://a.org/{'x' * length}/"
    beginnings = {
        "prefix.ttl": f"@prefix p: <{start}> .\n",
        "base.ttl": f"BASE <{start}>\n",
        "prefix.rdf": ROOT.replace("<e:knows", f'<e:x xmlns:p="{start}"/><e:knows'),
        "base.rdf": ROOT.replace("<rdf:RDF", f'<rdf:RDF xml:base="{start}"'),
        "links.tsv": f"# curie_map:\n#   p: {start}\nsubject_id\tobject_id\n",
    }
    rows = {"prefix.ttl": "p:{0} p:p p:{0}b .\n", "base.ttl": "<{0}> <p> <{0}b> .\n"}
    row = rows.get(name, "" if name.endswith(".rdf") else "p:{0}\tp:{0}b\n")
    lines = "".join(row.format(number) for number in range(num_triples))
    (folder / name).write_text(
        beginnings[name] + lines + (END if name.endswith(".rdf") else "")
    )
    return folder / name


@pytest.mark.parametrize(
    "name", ["prefix.ttl", "base.ttl", "prefix.rdf", "base.rdf", "links.tsv"]
)
def test_a_prefix_of_a_megabyte_is_refused(tmp_path: Path, name: str) -> None:
    # 1.3 MB of Turtle, which would be 40 GB with all names in full
    path = with_prefix(tmp_path, name, 100_000 if name == "links.tsv" else MIB, 20_000)
    read = read_link_file if name == "links.tsv" else read_graph_file
    with pytest.raises(
        DataError, match=rf"{name}: the length of an IRI exceeds .*iri_length=10000"
    ):
        read(path)


@pytest.mark.parametrize("name", ["prefix.ttl", "base.ttl"])
def test_prefixes_may_not_multiply_the_size_of_a_file(
    tmp_path: Path, name: str
) -> None:
    path = with_prefix(tmp_path, name, 9_000, 1000)
    with pytest.raises(
        DataError, match=rf"{name}: the length of all names.*data\.limits\.ratio=300"
    ):
        read_graph_file(path)
    assert (
        read_graph_file(with_prefix(tmp_path, name, 9_000, 100))[0].num_triples == 100
    )


@pytest.mark.parametrize(
    "name", ["a.nt.gz", "a.tsv.gz", "a.csv.gz", "a.ttl.gz", "a.rdf.gz"]
)
def test_a_small_file_that_decompresses_to_a_large_one_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emea.data.formats.limits.RATIO_FROM", MIB)
    (tmp_path / name).write_bytes(gzip.compress(b"\n" * 2 * MIB))
    with pytest.raises(DataError, match=r"data\.limits\.ratio=300"):
        read_graph_file(tmp_path / name)


@pytest.mark.parametrize("name", ["a.nt", "a.tsv", "a.csv"])
def test_endless_lines_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\n\n" + b"a" * (MIB + 9))
    message = rf"{name}, line 3: .* exceeds data\.limits\.line_mib=1"
    with (
        reading_limits(ReadingLimits(line_mib=1)),
        pytest.raises(DataError, match=message),
    ):
        read_graph_file(tmp_path / name)


@pytest.mark.parametrize("separator", ["\t", ","])
def test_many_columns_are_refused(tmp_path: Path, separator: str) -> None:
    path = tmp_path / ("a.tsv" if separator == "\t" else "a.csv")
    path.write_text(separator.join(["a"] * 20_000))
    with pytest.raises(
        DataError, match=r"columns in line 1 exceeds data\.limits\.columns=10000"
    ):
        read_graph_file(path)


def test_a_parquet_file_of_equal_rows_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    cells = pyarrow.array(["a"]).take(pyarrow.array([0] * 1000))
    chunks = pyarrow.chunked_array([cells] * 1200)
    names = ("head", "relation", "tail")
    parquet.write_table(
        pyarrow.table(dict.fromkeys(names, chunks)), tmp_path / "a.parquet"
    )
    assert (tmp_path / "a.parquet").stat().st_size < MIB
    with (
        reading_limits(ReadingLimits(size_mib=1)),
        pytest.raises(DataError, match=r"a\.parquet: .*data\.limits\.size_mib=1"),
    ):
        read_graph_file(tmp_path / "a.parquet")


def test_pipes_sockets_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.nt")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "b.nt"))
        for path in (tmp_path / "a.nt", tmp_path / "b.nt", Path("/dev/zero")):
            for read in (
                lambda path: read_graph_file(path, "ntriples"),
                lambda path: read_link_file(path, "tsv"),
                lambda path: read_table(path, 3),
            ):
                with pytest.raises(DataError, match="pipe, socket or device"):
                    read(path)


def test_the_user_raises_a_limit(tmp_path: Path) -> None:
    path = rdfxml(tmp_path, f'<!ENTITY a "{"x" * 1500}">', "&a;")
    links = tmp_path / "links.tsv"
    links.write_text("http://a.org/a\thttp://a.org/a\n")
    with pytest.raises(DataError, match="entity_length=1000"):
        read_own_files(path, path, links)
    pair = read_own_files(path, path, links, limits={"entity_length": 2000})
    assert pair.source.num_triples == 1
    with pytest.raises(DataError, match="entity_length=1000"):  # for one reading only
        read_graph_file(path)


QUOTED = "<http://a/a> <http://a/p> "


@pytest.mark.parametrize("name", ["a.ttl", "a.nt"])
@pytest.mark.parametrize("is_raised", [False, True])
def test_deep_quoted_triples_are_refused(
    tmp_path: Path, name: str, is_raised: bool
) -> None:
    # without the check, the parser exhausts the stack and the process ends
    text = f"{QUOTED}{f'<<( {QUOTED}' * 30_000}<http://a/o>{' )>>' * 30_000} .\n"
    (tmp_path / name).write_text(f"{QUOTED}<http://a/o> .\n{text}")
    limits = ReadingLimits(depth=1_000_000) if is_raised else ReadingLimits()
    message = (
        "nested more than 1000 levels"
        if is_raised
        else r"exceeds data\.limits\.depth=256"
    )
    with reading_limits(limits), pytest.raises(DataError, match=message):
        read_graph_file(tmp_path / name)


def test_comments_do_not_hide_deep_quoted_triples(tmp_path: Path) -> None:
    level = f"<<( {QUOTED}# <<( .\n"
    text = f"{QUOTED}{level * 300}<http://a/o>{' )>>' * 300} .\n"
    (tmp_path / "a.ttl").write_text(text)
    with pytest.raises(DataError, match=r"exceeds data\.limits\.depth=256"):
        read_graph_file(tmp_path / "a.ttl")


def test_brackets_in_strings_and_flat_quoted_triples_are_read(tmp_path: Path) -> None:
    code = '"""cout << a\n << "b" << c;""" , "a << b << c" , \'<< <<\''
    lines = [
        f"<http://a/{number}> <http://a/p> {code} ; <http://a/q> <http://a/{number + 1}> ;\n"
        f" <http://a/r> <<( {QUOTED}<<( {QUOTED}<http://a/o#x> )>> )>> . # <<\n"
        for number in range(600)
    ]
    (tmp_path / "a.ttl").write_text("".join(lines))
    graph, reading = read_graph_file(tmp_path / "a.ttl", keep_literals=True)
    assert (graph.num_triples, reading.num_literals) == (600, 2400)


class PanicException(BaseException):
    """Stands in for the exception of the same name that pyo3 raises."""


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (MemoryError(), r"^a\.nt: there is not enough memory to read this file"),
        (
            PanicException("index out of bounds"),
            r"^a\.nt: the parser failed: index out of bounds",
        ),
    ],
)
def test_failures_of_a_parser_name_the_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    message: str,
) -> None:
    def fail(*_: object) -> None:
        raise failure

    (tmp_path / "a.nt").write_text("_:a <http://a/p> _:b .\n")
    monkeypatch.setattr("emea.data.formats.ntriples.pyoxigraph.parse", fail)
    for read in (read_graph_file, read_link_file):
        with pytest.raises(DataError, match=message):
            read(tmp_path / "a.nt")


def test_a_string_beyond_the_buffer_of_the_parser_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(f'{QUOTED}"""' + "x" * 17_000_000)
    with pytest.raises(
        DataError, match=r"^a\.ttl: a string or name is longer than 16 MiB"
    ):
        read_graph_file(tmp_path / "a.ttl")


def test_aliases_in_sssom_headers_do_not_expand(tmp_path: Path) -> None:
    levels = "\n".join(
        f"# a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]"
        for level in range(1, 30)
    )
    text = f"# a0: &a0 [x]\n{levels}\n# curie_map: *a29\nsubject_id\tobject_id\na\tx\n"
    (tmp_path / "links.tsv").write_text(text)
    assert read_link_file(tmp_path / "links.tsv").links == [("a", "x")]
