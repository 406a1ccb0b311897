"""Tables with one row for each entity."""

import logging
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from emea.data.formats.entity_table import LABEL
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.settings import GraphForm
from emea.data.graph import KnowledgeGraph
from emea.errors import DataError

from ..named_facts import Facts, named_edges, named_literals

TABLE = """id,title,authors,publisher
1,"Ask, and answer",Ann|Bob,p1
2,Graphs,Bob| Cid |,p2
3,,Ann,
"""


def facts(graph: KnowledgeGraph) -> tuple[Facts, Facts]:
    return named_edges(graph), named_literals(graph)


def read(path: Path, text: str | bytes, attributes: tuple[str, ...] = (), **form):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_graph_file(
        path, keep_literals=True, attributes=attributes, form=GraphForm(**form)
    )[0]


def test_every_cell_is_a_literal_of_its_row(tmp_path: Path) -> None:
    edges, literals = facts(read(tmp_path / "a.csv", TABLE))
    assert edges == set()
    assert literals == {
        ("1", "title", "Ask, and answer"),
        ("1", "authors", "Ann|Bob"),
        ("1", "publisher", "p1"),
        ("2", "title", "Graphs"),
        ("2", "authors", "Bob| Cid |"),
        ("2", "publisher", "p2"),
        ("3", "authors", "Ann"),
    }


def test_lists_are_split_and_references_are_edges(tmp_path: Path) -> None:
    graph = read(
        tmp_path / "a.csv",
        TABLE,
        lists={"authors": "|"},
        references=("publisher", "authors"),
    )
    edges, literals = facts(graph)
    assert edges == {
        *(("1", "authors", "Ann"), ("1", "authors", "Bob"), ("1", "publisher", "p1")),
        *(("2", "authors", "Bob"), ("2", "authors", "Cid"), ("2", "publisher", "p2")),
        ("3", "authors", "Ann"),
    }
    # authors are named by their cells; p1 is a code
    authors = {(name, LABEL, name) for name in ("Ann", "Bob", "Cid")}
    assert (
        literals
        == {("1", "title", "Ask, and answer"), ("2", "title", "Graphs")} | authors
    )


def test_attributes_choose_columns(tmp_path: Path) -> None:
    graph = read(tmp_path / "a.csv", TABLE, ("title",), references=("publisher",))
    edges, literals = facts(graph)
    assert {relation for _, relation, _ in edges} == {"publisher"}
    assert {name for _, name, _ in literals} == {"title"}


@pytest.mark.parametrize("name", ["ID", "uri", "Identifier"])
def test_the_id_column_is_recognised_in_any_place(tmp_path: Path, name: str) -> None:
    text = f"name\t{name}\tyear\nAnn\tx\t1999\n"
    _, literals = facts(read(tmp_path / "a.tsv", text))
    assert literals == {("x", "name", "Ann"), ("x", "year", "1999")}


@pytest.mark.parametrize("wanted", ["isbn", "isbn,ean", "ean, isbn"])
def test_the_id_column_can_be_named(tmp_path: Path, wanted: str) -> None:
    graph = read(tmp_path / "a.csv", "id,isbn,title\n1,x,T\n", id_column=wanted)
    assert facts(graph)[1] == {("x", "id", "1"), ("x", "title", "T")}


def test_a_missing_id_column(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"a\.csv has no column isbn\. Set .* columns: id, title"
    ):
        read(tmp_path / "a.csv", "id,title\n1,T\n", id_column="isbn")
    with pytest.raises(
        DataError, match=r"columns name, year, town, .* Set data\.id_column to"
    ):
        read(
            tmp_path / "b.csv",
            "name,year,town\n".replace("town", "town,x") + "Ann,1999,Ulm,\n",
        )


def test_a_table_of_triples_with_a_column_called_id(tmp_path: Path) -> None:
    text = "id,head,relation,tail\n1,a,r,b\n2,b,r,c\n"
    assert facts(read(tmp_path / "a.csv", text))[0] == {
        ("a", "r", "b"),
        ("b", "r", "c"),
    }


def test_latin_1_is_read_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "id,autor,größe\n1,José,1\n2,Zoë,2\n".encode("latin-1")
    with caplog.at_level(logging.WARNING):
        _, literals = facts(read(tmp_path / "a.csv", text))
    assert ("1", "autor", "José") in literals
    assert ("2", "größe", "2") in literals
    assert "a.csv, line 1 is not UTF-8" in caplog.text
    assert caplog.text.count("UTF-8. Such") == 1


def test_repeated_ids_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        _, literals = facts(read(tmp_path / "a.csv", "id,name\n1,a\n1,b\n"))
    assert literals == {("1", "name", "a"), ("1", "name", "b")}
    assert "1 rows repeat the id of another row" in caplog.text


def test_parquet_gives_the_same_graph_as_csv(tmp_path: Path) -> None:
    columns = {"id": [1, 2], "title ": ["Ask", None], "year": [1999, 2001]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    expected = read(tmp_path / "a.csv", "id,title,year\n1,Ask,1999\n2,,2001\n")
    graph, _ = read_graph_file(tmp_path / "a.parquet", keep_literals=True)
    assert facts(graph) == facts(expected)


def column_order(order: str) -> str:
    triples = [
        {"h": f"e{number}", "r": f"r{number % 3}", "t": f"e{(number * 7) % 40}"}
        for number in range(40)
    ]
    return "".join("\t".join(triple[one] for one in order) + "\n" for triple in triples)


@pytest.mark.parametrize(("order", "column"), [("rht", "first"), ("htr", "third")])
def test_an_unusual_order_of_the_columns_is_refused(
    tmp_path: Path, order: str, column: str
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(column_order(order))
    with pytest.raises(
        DataError, match=f"the {column} has 3, as if it contained relations"
    ):
        read_graph_file(path)
    names = {"h": "head", "r": "relation", "t": "tail"}
    path.write_text("\t".join(names[one] for one in order) + "\n" + column_order(order))
    named, _ = read_graph_file(path)
    path.write_text(column_order("hrt"))
    usual, _ = read_graph_file(path)
    assert facts(named) == facts(usual)


def test_a_relation_named_like_an_id_column(tmp_path: Path) -> None:
    graph = read(tmp_path / "a.csv", "a,identifier,b\nb,identifier,c\n")
    assert named_edges(graph) == {("a", "identifier", "b"), ("b", "identifier", "c")}


MUSEUM = """id,Artist,Work,Year
A-1,Rembrandt,Night Watch,1642
A-2,Gustav Klimt,The Kiss,1908
A-3,Gustav Klimt,Judith,1901
"""


def labels(graph: KnowledgeGraph) -> dict[str, str | None]:
    names = graph.all_entity_names
    return {name: graph.entity_label(entity) for entity, name in enumerate(names)}


def test_a_row_is_named_by_a_column_with_words(tmp_path: Path) -> None:
    works = {"A-1": "Night Watch", "A-2": "The Kiss", "A-3": "Judith"}
    assert (
        labels(read(tmp_path / "a.csv", MUSEUM)) == works
    )  # two rows have the same artist
    titled = MUSEUM.replace("Artist", "Title")
    assert labels(read(tmp_path / "a.csv", titled))["A-1"] == "Rembrandt"
    chosen = read(tmp_path / "a.csv", MUSEUM, label_column="painter, Artist")
    assert labels(chosen)["A-2"] == "Gustav Klimt"
    # literals are not needed for labels
    (tmp_path / "b.csv").write_text(MUSEUM)
    form = GraphForm(references=("Artist",))
    assert (
        labels(read_graph_file(tmp_path / "b.csv", form=form)[0])["A-1"]
        == "Night Watch"
    )


def test_codes_do_not_name_a_row(tmp_path: Path) -> None:
    text = "id,key,year\n1,b000jz,1999\n2,q42,2001\n3,x17,2002\n"
    assert set(labels(read(tmp_path / "a.csv", text)).values()) == {None}


def test_references_keep_the_text_of_their_cells(tmp_path: Path) -> None:
    graph = read(tmp_path / "a.csv", MUSEUM, references=("Artist",))
    assert labels(graph)["Rembrandt"] == "Rembrandt"
    # ids of other rows are no names
    rows = "id,name,friend\nanna,Anna Lee,bert\nbert,Bert Ray,anna\n"
    assert labels(read(tmp_path / "b.csv", rows, references=("friend",))) == {
        "anna": "Anna Lee",
        "bert": "Bert Ray",
    }


def test_ids_become_iris(tmp_path: Path) -> None:
    graph = read(
        tmp_path / "a.csv",
        MUSEUM,
        references=("Artist",),
        base_iri="http://museum.org/item/",
    )
    assert labels(graph) == {
        "http://museum.org/item/A-1": "Night Watch",
        "http://museum.org/item/A-2": "The Kiss",
        "http://museum.org/item/A-3": "Judith",
        "http://museum.org/item/Gustav%20Klimt": "Gustav Klimt",
        "http://museum.org/item/Rembrandt": "Rembrandt",
    }


def test_a_table_without_an_id_column(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "town,isbn,name,year\nUlm,x1,Ann,1999\nUlm,x2,Bob,1999\nBonn,x3,Ann,2001\n"
    _, literals = facts(read(tmp_path / "a.csv", text))
    assert ("x1", "town", "Ulm") in literals
    assert (
        "a.csv has no column called id. Its column isbn identifies the entities"
        in caplog.text
    )
    pyarrow.parquet.write_table(
        pyarrow.table({"town": ["Ulm", "Ulm"], "key": ["x1", "x2"]}),
        tmp_path / "a.parquet",
    )
    graph, _ = read_graph_file(tmp_path / "a.parquet", keep_literals=True)
    assert graph.all_entity_names == ["x1", "x2"]
    repeated = text.replace("x3", "x2").replace("2001", "1999")
    with pytest.raises(DataError, match="none of them is an id column"):
        read(tmp_path / "b.csv", repeated)


def test_three_columns_are_triples_unless_the_second_is_no_relation(
    tmp_path: Path,
) -> None:
    books = "".join(f"title {n},author {n % 9},19{n:02}\n" for n in range(12))
    literals = facts(read(tmp_path / "a.csv", "title,author,year\n" + books))[1]
    assert ("title 3", "author", "author 3") in literals
    triples = "".join(f"a{n},r{n % 2},b{n}\n" for n in range(12))
    assert len(named_edges(read(tmp_path / "b.csv", triples))) == 12


def test_references_with_line_breaks_are_names_on_one_line(tmp_path: Path) -> None:
    rows = 'id,title,author\na,First,"Ann\nBell"\nb,Second,"Ann\tBell"\nc,Third,"\t"\n'
    graph = read(tmp_path / "a.csv", rows, references=("author",))
    assert set(graph.entity_names or ()) == {"a", "b", "c", "Ann Bell"}
    assert graph.num_triples == 2
