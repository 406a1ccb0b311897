"""The order of the lines of a file changes no graph, no link and no split."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from emea.data.attributes import AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.sources.id_format import read_id_format
from emea.data.sources.oaei import read_oaei
from emea.data.sources.openea_format import read_openea_format
from emea.data.sources.own_files import read_own_files
from emea.data.split import known_split, official_split, random_split

Files = Mapping[str, list[str]]
SIZE = 12
RNG = np.random.default_rng(5)
EDGES = {tuple(row) for row in RNG.integers(0, (SIZE, 3, SIZE), (40, 3)).tolist()}
EDGES |= {(number, 0, (number + 1) % SIZE) for number in range(SIZE)}
LINKS = list(enumerate(RNG.permutation(SIZE).tolist()))


def written(folder: Path, files: Files) -> Path:
    for name, lines in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def permuted(files: Files, headers: Mapping[str, int], fixed: tuple[str, ...]) -> Files:
    """The same files with their lines in another order, below their headers."""
    changed = {}
    for name, lines in files.items():
        cut = len(lines) if name in fixed else headers.get(name, 0)
        order = np.random.default_rng(len(name)).permutation(len(lines) - cut)
        changed[name] = [*lines[:cut], *(lines[cut:][index] for index in order)]
        assert name in fixed or len(lines) - cut < 2 or changed[name] != lines
    return changed


def literals(attributes: AttributeTriples | None) -> object:
    if attributes is None:
        return None
    kinds = [attributes.kind(number) for number in range(len(attributes.values))]
    return (
        attributes.triples.tolist(),
        attributes.attribute_names,
        attributes.values,
        kinds,
    )


def content(graph: KnowledgeGraph) -> object:
    # models and rules sort the triples, so that their order is not part of the content
    names = (graph.entity_names, graph.relation_names, graph.labels)
    return (
        sorted(graph.triples.tolist()),
        *map(list, filter(None, names)),
        literals(graph.attributes),
    )


def splits(pair: GraphPair) -> object:
    drawn = [random_split(pair, 0.5, 3, 2)]
    if pair.official is not None and len(pair.official.test):
        drawn.append(official_split(pair, 3, 1))
    drawn.append(known_split(pair, 3))
    return [
        (
            s.supervision.train.tolist(),
            s.supervision.validation.tolist(),
            s.test.tolist(),
        )
        for s in drawn
    ]


def everything(pair: GraphPair) -> object:
    counts = None if pair.reading is None else asdict(pair.reading)
    return (
        content(pair.source),
        content(pair.target),
        pair.links.tolist(),
        splits(pair),
        counts,
    )


def id_files() -> Files:
    rows = {side: [f"{h}\t{r}\t{t}" for h, r, t in sorted(EDGES)] for side in (1, 2)}
    links = [f"{source}\t{target}" for source, target in LINKS]
    return {
        **{f"triples_{side}": rows[side] for side in (1, 2)},
        **{f"rel_ids_{side}": [f"{r}\tr{r}" for r in range(3)] for side in (1, 2)},
        "sup_ent_ids": links[:6],
        "ref_ent_ids": links[6:],
    }


def listed_id_files() -> Files:
    names = {f"ent_ids_{side}": [f"{e}\te{e}" for e in range(SIZE)] for side in (1, 2)}
    return {**id_files(), **names}


def openea_files() -> Files:
    links = [f"a{source}\tb{target}" for source, target in LINKS]
    files = {
        **{
            f"rel_triples_{side}": [
                f"{x}{h}\tr{r}\t{x}{t}" for h, r, t in sorted(EDGES)
            ]
            for side, x in ((1, "a"), (2, "b"))
        },
        **{
            f"attr_triples_{side}": [f"{x}{e}\tname\tname {e % 5}" for e in range(SIZE)]
            for side, x in ((1, "a"), (2, "b"))
        },
        "ent_links": [*links, "a98\tb98", "a99\tb0x"],
        "721_5fold/1/train_links": links[:4],
        "721_5fold/1/valid_links": links[4:6],
        "721_5fold/1/test_links": [*links[6:], "a98\tb98"],
    }
    return files


def iri(side: str, number: int) -> str:
    return f"http://{side}.org/{number}"


def rdf_lines(side: str) -> list[str]:
    lines = [
        f"<{iri(side, h)}> <http://r/{r}> <{iri(side, t)}> ."
        for h, r, t in sorted(EDGES)
    ]
    lines += [
        f'<{iri(side, e)}> <http://r/name> "name {e % 5}"@en .' for e in range(SIZE)
    ]
    return [*lines, f"<{iri(side, 1)}> <http://r/0> _:x .", lines[0]]


def oaei_files() -> Files:
    links = [f"{iri('a', s)}\t{iri('b', t)}" for s, t in LINKS]
    return {
        "source.nt": rdf_lines("a"),
        "target.nt": rdf_lines("b"),
        "links.tsv": links,
    }


def rows(side: str, mark: str) -> list[str]:
    lines = [
        mark.join((iri(side, h), f"r{r}", iri(side, t))) for h, r, t in sorted(EDGES)
    ]
    return [
        *lines,
        lines[3],
        mark.join((iri(side, 2), "name", "Zwei")),
        "only one cell",
    ]


def own_files(suffix: str, link_suffix: str) -> Files:
    mark = {"tsv": "\t", "csv": ","}
    graphs = {
        f"{side}.{suffix}": rdf_lines(side)
        if suffix in ("nt", "ttl")
        else rows(side, mark[suffix])
        for side in ("a", "b")
    }
    if suffix == "nt":
        graphs["a.nt"].append(
            "not a statement"
        )  # in Turtle it would also hide its neighbour
    pairs = [(iri("a", s), iri("b", t)) for s, t in LINKS]
    # a repeated, a contradictory and an unknown link
    pairs += [pairs[0], (pairs[0][0], pairs[1][1]), (pairs[1][0], "http://b.org/none")]
    if link_suffix == "nt":
        lines = [
            f"<{s}> <http://www.w3.org/2002/07/owl#sameAs> <{t}> ." for s, t in pairs
        ]
    elif link_suffix == "sssom.tsv":
        lines = ["# curie_map: {}", "subject_id\tpredicate_id\tobject_id"]
        lines += [f"{s}\tskos:exactMatch\t{t}" for s, t in pairs]
    else:
        lines = ["source,target", *(f"{s},{t}" for s, t in pairs)]
    cut = len(lines) - len(pairs) + 7
    head = lines[: len(lines) - len(pairs)]
    return {
        **graphs,
        f"links.{link_suffix}": [*lines[:cut], *lines[-3:]],
        f"test.{link_suffix}": [*head, *lines[cut:-3]],
    }


HEADERS = {"links.csv": 1, "test.csv": 1, "links.sssom.tsv": 2, "test.sssom.tsv": 2}


def read_own(folder: Path) -> GraphPair:
    files = {path.name.split(".")[0]: path for path in folder.iterdir()}
    return read_own_files(
        *(files[name] for name in ("a", "b", "links", "test")),
        on_error="skip",
        keep_literals=True,
        attributes=["name"],
        iri_names=True,
    )


CASES: dict[str, tuple[Files, Callable[[Path], GraphPair], tuple[str, ...]]] = {
    "ids": (id_files(), read_id_format, ()),
    # the listing of entities defines their ids, so that its order is part of the data
    "listed ids": (
        listed_id_files(),
        read_id_format,
        ("ent_ids_1", "ent_ids_2"),
    ),
    "openea": (openea_files(), read_openea_format, ()),
    "openea with literals": (
        openea_files(),
        lambda folder: read_openea_format(folder, keep_literals=True, iri_names=True),
        (),
    ),
    "oaei": (
        oaei_files(),
        lambda folder: read_oaei(folder, keep_literals=True),
        (),
    ),
    **{
        f"{graph} and {link}": (own_files(graph, link), read_own, ())
        for graph, link in (
            ("nt", "nt"),
            ("ttl", "csv"),
            ("tsv", "sssom.tsv"),
            ("csv", "csv"),
        )
    },
}


@pytest.mark.parametrize("case", CASES)
def test_the_order_of_lines_changes_nothing(case: str, tmp_path: Path) -> None:
    files, read, fixed = CASES[case]
    expected = everything(read(written(tmp_path / "one" / "pair", files)))
    other = permuted(files, HEADERS, fixed)
    assert everything(read(written(tmp_path / "two" / "pair", other))) == expected


@pytest.mark.parametrize("keep_literals", [False, True])
def test_openea_test_links_change_no_graph_and_no_label(
    keep_literals: bool, tmp_path: Path
) -> None:
    files = dict(openea_files())

    def seen(folder: Path) -> tuple[object, int]:
        pair = read_openea_format(folder, keep_literals=keep_literals)
        split = official_split(pair, 0)
        labels = split.supervision.train.tolist(), split.supervision.validation.tolist()
        return (content(pair.source), content(pair.target), labels), split.num_missed

    expected, num_missed = seen(written(tmp_path / "one" / "pair", files))
    assert num_missed == 1
    test = files["721_5fold/1/test_links"]
    sources, targets = zip(*(line.split("\t") for line in test), strict=True)
    moved = [
        "\t".join(link)
        for link in zip(sources, (*targets[1:], targets[0]), strict=True)
    ]
    for name, kept in (("two", test[:2]), ("three", moved)):
        known = [link for link in files["ent_links"] if link not in test]
        changed = {
            **files,
            "ent_links": [*known, *kept],
            "721_5fold/1/test_links": kept,
        }
        assert seen(written(tmp_path / name / "pair", changed))[0] == expected
