"""The shortest command works for each kind of input, without links and with few or many."""

import csv
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from emea.cli.main import main

SIZE = 130
STEPS = (1, 5)
"""Each entity is near those that follow it in so many steps, in every kind of file."""

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
RDF_NS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
OWL_NS = "http://www.w3.org/2002/07/owl#"
SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"

SYLLABLES = (
    "ba",
    "dor",
    "el",
    "fin",
    "gu",
    "hal",
    "im",
    "jo",
    "kar",
    "lun",
    "mo",
    "nor",
)
NAMES = [
    f"{''.join(first)}a {''.join(last)}us"
    for first, last in zip(
        itertools.islice(itertools.permutations(SYLLABLES, 2), SIZE),
        itertools.islice(
            itertools.permutations(SYLLABLES[::-1], 3), 7, 7 + 9 * SIZE, 9
        ),
        strict=True,
    )
]

Facts = list[tuple[str, str, str]]


def place(side: str, number: int) -> str:
    """The IRI of an entity, whose number says nothing about its counterpart."""
    code = number if side == "a" else (number * 7 + 3) % SIZE
    return f"http://{side}.org/id{code}"


def edges(side: str) -> Facts:
    return [
        (
            place(side, number),
            f"http://{side}.org/near",
            place(side, (number + step) % SIZE),
        )
        for number in range(SIZE)
        for step in STEPS
    ]


def own_name(side: str, number: int) -> str:
    """The name of an entity where names take the place of IRIs."""
    return NAMES[number] if side == "a" else NAMES[number].upper()


def named_edges(side: str) -> Facts:
    return [
        (own_name(side, number), f"near {side}", own_name(side, (number + step) % SIZE))
        for number in range(SIZE)
        for step in STEPS
    ]


def labels(side: str) -> Facts:
    return [(place(side, number), LABEL, name) for number, name in enumerate(NAMES)]


def triples(side: str) -> str:
    lines = [f"<{h}> <{r}> <{t}> ." for h, r, t in edges(side)]
    lines += [f'<{h}> <{r}> "{t}" .' for h, r, t in labels(side)]
    return "\n".join(lines) + "\n"


def xml(side: str, is_ontology: bool = False) -> str:
    kind = f'<rdf:type rdf:resource="{OWL_NS}Class"/>' if is_ontology else ""
    tail = "x:near" if not is_ontology else "s:subClassOf"
    near = [
        "".join(
            f'<{tail} rdf:resource="{place(side, (n + step) % SIZE)}"/>'
            for step in STEPS
        )
        for n in range(SIZE)
    ]
    nodes = "".join(
        f'<rdf:Description rdf:about="{place(side, n)}">{kind}<s:label>{name}</s:label>'
        f"{near[n]}</rdf:Description>\n"
        for n, name in enumerate(NAMES)
    )
    spaces = f'xmlns:rdf="{RDF_NS}" xmlns:x="http://{side}.org/"'
    return (
        f'<rdf:RDF {spaces} xmlns:s="{LABEL.partition("label")[0]}">{nodes}</rdf:RDF>'
    )


def json(side: str) -> str:
    near = [
        ", ".join(f'{{"@id": "{place(side, (n + step) % SIZE)}"}}' for step in STEPS)
        for n in range(SIZE)
    ]
    nodes = ",\n".join(
        f'{{"@id": "{place(side, n)}", "{LABEL}": "{name}", "http://{side}.org/near": [{near[n]}]}}'
        for n, name in enumerate(NAMES)
    )
    return f"[{nodes}]"


def rows(side: str) -> list[list[str]]:
    header = {"a": ["id", "title", "year"], "b": ["name", "published", "shelf", "id"]}[
        side
    ]
    found = [header]
    for number, name in enumerate(NAMES):
        code, year = place(side, number).rpartition("/")[2], str(1900 + number % 90)
        found.append([code, name, year] if side == "a" else [name, year, "A", code])
    return found


def write(folder: Path, kind: str, side: str) -> Path:
    path = folder / f"{side}.{kind.partition(' ')[0]}"
    texts: dict[str, Callable[[], str]] = {
        "nt": lambda: triples(side),
        "ttl": lambda: "@prefix x: <http://x.org/> .\n" + triples(side),
        "rdf": lambda: xml(side),
        "owl": lambda: xml(side, is_ontology=True),
        "jsonld": lambda: json(side),
        "tsv": lambda: "".join("\t".join(one) + "\n" for one in named_edges(side)),
    }
    if kind in texts:
        path.write_text(texts[kind]())
    elif kind == "parquet":
        columns = zip(*rows(side), strict=True)
        pyarrow.parquet.write_table(
            pyarrow.table({one[0]: one[1:] for one in columns}), path
        )
    else:
        table = rows(side)
        if kind == "csv without id":
            table[0] = [cell.replace("id", "item_id") for cell in table[0]]
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(table)
    return path


KINDS = ["nt", "ttl", "rdf", "jsonld", "owl", "csv", "csv without id", "parquet", "tsv"]

QUICK = (("nt", 0), ("owl", 0), ("tsv", 0), ("csv", 20))
"""Cases that every test run checks. The others only differ in their reader or take longer."""


def cases() -> list[Any]:
    found = []
    for kind, num_links in itertools.product(KINDS, (0, 20, 100)):
        is_quick = (kind, num_links) in QUICK
        marks = [] if is_quick else [pytest.mark.slow]
        found.append(
            pytest.param(kind, num_links, marks=marks, id=f"{kind}-{num_links}")
        )
    return found


@pytest.mark.parametrize(("kind", "num_links"), cases())
def test_the_shortest_command(kind: str, num_links: int, tmp_path: Path) -> None:
    files = [str(write(tmp_path, kind, side)) for side in "ab"]
    is_table = kind.startswith(("csv", "parquet"))
    name_of = own_name if kind == "tsv" else place
    ids = [tuple(name_of(side, n) for side in "ab") for n in range(SIZE)]
    if is_table:
        ids = [tuple(name.rpartition("/")[2] for name in pair) for pair in ids]
    given = []
    if num_links:
        (tmp_path / "links.tsv").write_text(
            "".join(f"{a}\t{b}\n" for a, b in ids[:num_links])
        )
        given = ["--links", str(tmp_path / "links.tsv")]
    out = tmp_path / "out"
    # the settings only make the encoders small
    quick = (
        ["model=lightea", "em.iterations=1"]
        if num_links >= 100 and not is_table
        else []
    )
    assert main(["align", *files, *given, *quick, "--out", str(out)]) == 0
    rows = (out / "alignment.tsv").read_text().splitlines()[1:]
    found = {tuple(row.split("\t")[:2]) for row in rows}
    right = found & set(ids)
    assert len(right) >= 0.9 * SIZE
    assert len(right) >= 0.9 * len(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nt", "csv"])
def test_links_cost_no_matches(kind: str, tmp_path: Path) -> None:
    files = [str(write(tmp_path, kind, side)) for side in "ab"]
    ids = [tuple(place(side, n) for side in "ab") for n in range(SIZE)]
    if kind == "csv":
        ids = [tuple(name.rpartition("/")[2] for name in pair) for pair in ids]
    num_right = []
    for num_links in (0, 20, 100):
        links = tmp_path / f"{num_links}.tsv"
        links.write_text("".join(f"{a}\t{b}\n" for a, b in ids[:num_links]))
        given = ["--links", str(links)] if num_links else []
        out = tmp_path / f"out {num_links}"
        assert main(["align", *files, *given, "--out", str(out)]) == 0
        rows = (out / "alignment.tsv").read_text().splitlines()[1:]
        found = {tuple(row.split("\t")[:2]) for row in rows}
        assert len(found) == len(found & set(ids))
        num_right.append(len(found))
    assert num_right[0] <= num_right[1] <= num_right[2]
    assert num_right[2] == SIZE


@pytest.mark.parametrize("num_links", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_links_by_value(num_links: int, tmp_path: Path) -> None:
    files = [str(write(tmp_path, "csv", side)) for side in "ab"]
    links = tmp_path / "links.csv"
    links.write_text("".join(f"{name},{name.upper()}\n" for name in NAMES[:num_links]))
    out = tmp_path / "out"
    assert main(["align", *files, "--links", str(links), "--out", str(out)]) == 0
    rows = (out / "alignment.tsv").read_text().splitlines()[1:]
    assert len(rows) >= 0.9 * SIZE
    assert {row.split("\t")[0][:2] for row in rows} == {"id"}
