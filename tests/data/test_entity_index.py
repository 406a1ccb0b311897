import numpy as np
import pytest

from emea.data.graph import KnowledgeGraph
from emea.data.names import EntityIndex, local_name
from emea.errors import DataError

NAMES = ("http://a.org/Berlin", "http://a.org/Paris", "http://b.org/x#Paris", "Bern_(city)")


@pytest.fixture
def index() -> EntityIndex:
    return EntityIndex(KnowledgeGraph(np.empty((0, 3)), 4, 0, NAMES), "source entity")


def test_whole_names_and_unique_endings_are_found(index: EntityIndex) -> None:
    assert [index.find(name) for name in NAMES] == [0, 1, 2, 3]
    assert index.find("Berlin") == 0


def test_an_ending_of_several_is_refused(index: EntityIndex) -> None:
    with pytest.raises(DataError, match="more than one source entity") as error:
        index.find("Paris")
    assert NAMES[1] in str(error.value) and NAMES[2] in str(error.value)


def test_unique_labels_are_found() -> None:
    labels = ["capital", "town", "town", "Paris"]
    graph = KnowledgeGraph(np.empty((0, 3)), 4, 0, NAMES, labels=labels)
    index = EntityIndex(graph, "source entity")
    assert index.find("capital") == 0
    for several in ("town", "Paris"):  # names take precedence over labels
        with pytest.raises(DataError, match="more than one source entity: http:"):
            index.find(several)


def test_unknown_names_bring_the_nearest(index: EntityIndex) -> None:
    with pytest.raises(DataError, match=r"no source entity 'berlim'.*nearest names are.*Berlin"):
        index.find("berlim")
    with pytest.raises(DataError, match=r"no source entity 'http://c.org/Berlin'.*a.org/Berlin"):
        index.find("http://c.org/Berlin")
    with pytest.raises(DataError, match=r"no source entity 'zzzzzz'$"):
        index.find("zzzzzz")


def test_without_names_ids_are_names() -> None:
    index = EntityIndex(KnowledgeGraph(np.empty((0, 3)), 3, 0), "target entity")
    assert index.find("2") == 2
    with pytest.raises(DataError, match="no target entity '7'"):
        index.find("7")


@pytest.mark.parametrize(
    ("name", "local"),
    [
        ("http://x.org/y/Z_1", "Z_1"),
        ("http://x.org/y#Z", "Z"),
        ("http://x.org/", "x.org"),
        ("http://x.org/Caf%C3%A9", "Café"),
        ("AC/DC", "AC/DC"),
        ("", ""),
    ],
)
def test_local_names(name: str, local: str) -> None:
    assert local_name(name) == local
