"""What makes two runs the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from omegaconf import DictConfig, OmegaConf

from emea.data.attributes import AttributeTriples, Kind
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.errors import DataError
from emea.record import fingerprint as module
from emea.record.fingerprint import code_digest, fingerprint, trusted_code
from emea.record.pair_file import load_pair

Configs = Callable[..., DictConfig]


@pytest.fixture
def pair(tiny_config: Configs) -> GraphPair:
    return load_pair(tiny_config())


@pytest.mark.parametrize(
    "override",
    [
        "tracking=mlflow",
        "trainer=auto",
        "trainer.block_size=4",
        "study=other",
        "skip_recorded=true",
    ],
)
def test_what_changes_no_number_is_left_out(
    override: str, tiny_config: Configs, pair: GraphPair
) -> None:
    assert fingerprint(tiny_config(override), pair) == fingerprint(tiny_config(), pair)


@pytest.mark.parametrize(
    "override",
    [
        "seed=1",
        "split_seed=1",
        "ratio=0.3",
        "em.iterations=3",
        "em.num_candidates=11",
        "em=dual",
        "protocol=released",
        "model=lightea",
        "model.encoder.dim=50",
        "rule.markov_blanket=true",
        "split.num_validation=10",
        "decoding=mutual",
    ],
)
def test_a_setting_makes_another_run(
    override: str, tiny_config: Configs, pair: GraphPair
) -> None:
    assert fingerprint(tiny_config(override), pair) != fingerprint(tiny_config(), pair)


def test_data_counts_by_what_it_is(tiny_config: Configs, pair: GraphPair) -> None:
    config = tiny_config()
    same = replace(pair, name="called otherwise")
    assert fingerprint(config, same) == fingerprint(config, pair)
    assert fingerprint(tiny_config("+data.root=elsewhere"), pair) == fingerprint(
        config, pair
    )
    assert fingerprint(config, replace(pair, links=pair.links[1:])) != fingerprint(
        config, pair
    )
    assert fingerprint(config, pair.shuffled(1)) != fingerprint(config, pair)


def test_official_parts_count_where_they_are_used(
    tiny_config: Configs, pair: GraphPair
) -> None:
    folds = [
        replace(pair, official=OfficialSplit(links[:30], links[30:40], links[40:]))
        for links in (pair.links, pair.links[::-1])
    ]
    official, random = tiny_config("split=official"), tiny_config()
    assert fingerprint(official, folds[0]) != fingerprint(official, folds[1])
    assert fingerprint(random, folds[0]) == fingerprint(random, folds[1])


def test_test_links_that_cannot_be_found_count(
    tiny_config: Configs, pair: GraphPair
) -> None:
    official = OfficialSplit(pair.links[:10], pair.links[:0], pair.links[10:])
    both = (replace(official, num_absent=number) for number in (0, 1))
    config = tiny_config("split=official")
    known = {
        fingerprint(config, replace(pair, official=one, num_absent=1)) for one in both
    }
    assert len(known) == 2


def test_attributes_and_labels_count(tiny_config: Configs, pair: GraphPair) -> None:
    plain = AttributeTriples(np.array([[0, 0, 0]]), ["name"], ["007"], np.array([0]))
    given = [
        {},
        {"attributes": plain},
        {
            "attributes": replace(
                plain, kind_names=(Kind(datatype="http://x.org/integer"),)
            )
        },
        {"attributes": replace(plain, attribute_names=["code"])},
        {"attributes": plain, "labels": ["one"] * pair.source.num_entities},
    ]
    pairs = [replace(pair, source=replace(pair.source, **one)) for one in given]
    assert len({fingerprint(tiny_config(), one) for one in pairs}) == len(pairs)


def test_names_count(tiny_config: Configs, pair: GraphPair) -> None:
    graph = pair.source
    names = [f"http://a/{entity}" for entity in range(graph.num_entities)]
    others = [name.replace("http:", "https:") for name in names]
    relations = [f"r{relation}" for relation in range(graph.num_relations)]
    renamed = [
        replace(graph, entity_names=names),
        replace(graph, entity_names=others),
        replace(graph, entity_names=names, relation_names=relations),
    ]
    found = {fingerprint(tiny_config(), replace(pair, source=one)) for one in renamed}
    assert len(found | {fingerprint(tiny_config(), pair)}) == 4


def test_code_of_ones_own_counts(
    tiny_config: Configs,
    pair: GraphPair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").write_text("")

    def found(code: str, trusted: str, file: Path) -> str:
        file.write_text(code)
        return fingerprint(tiny_config(f"trust=[{trusted}]"), pair)

    for trusted, file in (
        ("own_module", tmp_path / "own_module.py"),
        ("own_package", package / "layer.py"),
    ):
        one, same, other = (
            found(code, trusted, file) for code in ("a = 1", "a = 1", "a = 2")
        )
        assert one == same != other


@pytest.mark.parametrize("module", ["nowhere", "nowhere.at_all", "math"])
def test_a_module_without_source_has_no_code_to_count(module: str) -> None:
    assert trusted_code(module) is None


def test_weights_count_by_their_contents(
    tiny_config: Configs, pair: GraphPair, tmp_path: Path
) -> None:
    for name, content in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / name).write_bytes(content)
    none = fingerprint(tiny_config(), pair)
    a, b, c = (
        fingerprint(tiny_config(f"initial_from={tmp_path / n}"), pair) for n in "abc"
    )
    assert a == b
    assert len({none, a, c}) == 3


def test_a_dictionary_counts_by_its_contents(
    tiny_config: Configs, pair: GraphPair, tmp_path: Path
) -> None:
    def digest(path: Path) -> str:
        name = f"literals.dictionary={path}"
        return fingerprint(tiny_config("literals=similar", name), pair)

    first = tmp_path / "words.tsv"
    first.write_text("Fluss\triver\n")
    copy = tmp_path / "copy.tsv"
    copy.write_text("Fluss\triver\n")
    other = tmp_path / "other.tsv"
    other.write_text("Fluss\tflow\n")
    assert digest(first) == digest(copy) != digest(other)
    none = fingerprint(
        tiny_config("literals=similar", "literals.dictionary=null"), pair
    )
    # graphs in Latin letters use no installed dictionary
    assert fingerprint(tiny_config("literals=similar"), pair) == none != digest(first)


def test_weights_that_are_missing_are_one_sentence(
    tiny_config: Configs, pair: GraphPair
) -> None:
    with pytest.raises(DataError, match="nowhere cannot be read"):
        fingerprint(tiny_config("initial_from=nowhere"), pair)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for room in ("em", "record", "results"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "code.py").write_text("x = 1\n")
    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("place", "source", "same"),
    [
        ("em/code.py", "x = 2\n", False),
        ("em/more.py", "x = 1\n", False),
        ("record/code.py", "x = 2\n", True),
        ("results/code.py", "x = 2\n", True),
        ("em/notes.md", "x = 2\n", True),
    ],
)
def test_code_that_computes_counts(
    place: str, source: str, same: bool, package: Path
) -> None:
    before = code_digest.__wrapped__()
    (package / place).write_text(source)
    assert (code_digest.__wrapped__() == before) is same


def test_the_version_of_python_does_not_count(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the expected digests are those of each version: ast.unparse writes this file in two ways
    (package / "em" / "code.py").write_text(
        "def f(a, *, b):\n    return f\"{a!r:>{b}} {'c'}\"\n"
    )
    monkeypatch.setattr(module, "code_digest", code_digest.__wrapped__)
    keys = {
        "split": {"name": "random"},
        "trust": [],
        "initial_from": None,
        "trainer": {},
    }
    config = OmegaConf.create(
        {**keys, "ratio": 0.1, "em": {"ridge": 1e-05, "iterations": 10}}
    )
    graph = KnowledgeGraph(
        np.array([[0, 0, 1], [1, 1, 2]]), 3, 2, entity_names=["a", "ä", "ß"]
    )
    pair = GraphPair("pair", graph, graph, links=np.array([[0, 1], [2, 2]]))
    assert (
        module.code_digest()
        == "75d7820521ffeff7b8cb8b8086eff07228a40287617a78d485cdc51f0bf4b840"
    )
    assert (
        fingerprint(config, pair)
        == "94fe962525404b5eeca23dde6ee5ef18ab897bc737e6db8d0a10ee71c984eca9"
    )


def test_other_code_makes_another_run(
    tiny_config: Configs, pair: GraphPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprint(tiny_config(), pair)
    monkeypatch.setattr(module, "code_digest", lambda: "other code")
    assert fingerprint(tiny_config(), pair) != before
