"""A record describes the graphs and links of a run."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from omegaconf import OmegaConf

from emea.data.graph_pair import GraphPair
from emea.data.split import Split, Supervision
from emea.record.data_parts import data_parts

MakePair = Callable[..., GraphPair]


@pytest.fixture
def split() -> Split:
    links = np.repeat(np.arange(9)[:, None], 2, axis=1)
    return Split(Supervision(links[:2], links[2:5]), links[5:])


def test_every_role_has_its_place_and_sizes(make_pair: MakePair, split: Split) -> None:
    files = {
        "source": "a.nt",
        "target": "b.ttl",
        "links": "seeds.tsv",
        "test_links": None,
    }
    parts = data_parts(OmegaConf.create({"data": files}), make_pair(), split)
    found = [(part.role, part.name, part.place) for part in parts]
    assert found == [
        ("source graph", "random source graph", "a.nt"),
        ("target graph", "random target graph", "b.ttl"),
        ("train links", "random train links", "seeds.tsv"),
        ("validation links", "random validation links", "seeds.tsv"),
        ("test links", "random test links", "seeds.tsv"),
    ]
    sizes: list[dict[str, Any]] = [part.sizes for part in parts]
    assert [one.get("num_links") for one in sizes] == [None, None, 2, 3, 4]
    assert [one.get("num_entities") for one in sizes[:2]] == [9, 10]


@pytest.mark.parametrize(
    ("data", "place"), [({"folder": "dbp15k/zh_en"}, "dbp15k/zh_en"), ({}, "random")]
)
def test_data_without_files_have_the_place_of_the_whole(
    data: dict[str, str], place: str, make_pair: MakePair, split: Split
) -> None:
    parts = data_parts(OmegaConf.create({"data": data}), make_pair(), split)
    assert {part.place for part in parts} == {place}


def test_a_digest_changes_with_its_part_only(make_pair: MakePair, split: Split) -> None:
    def digests(pair: GraphPair, division: Split) -> dict[str, str]:
        parts = data_parts(OmegaConf.create({"data": {}}), pair, division)
        return {part.role: part.digest for part in parts}

    pair = make_pair()
    before = digests(pair, split)
    assert len(set(before.values())) == 5
    other_target = digests(replace(pair, target=make_pair(seed=1).target), split)
    assert changed(before, other_target) == {"target graph"}
    other_test = digests(pair, replace(split, test=split.test[::-1]))
    assert changed(before, other_test) == {"test links"}


def test_missing_links_have_no_part(make_pair: MakePair, split: Split) -> None:
    predicting = replace(split, test=split.test[:0])
    parts = data_parts(OmegaConf.create({"data": {}}), make_pair(), predicting)
    assert "test links" not in {part.role for part in parts}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {role for role in before if before[role] != after[role]}
