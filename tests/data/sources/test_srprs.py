"""The reader of SRPRS: a folder with ids, or an archive with names, both of made data."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from emea.data.graph_pair import GraphPair
from emea.data.sources.srprs import NUM_VALIDATION, read_srprs
from emea.data.split import official_split
from emea.errors import DataError

from ..named_facts import named_edges

NUM_LABELS = 150
NUM_LINKS = 400

ARCHIVED = {
    "rel_triples_1": "a\tr\tb\nb\ts\tc\n",
    "rel_triples_2": "C\tR\tA\nA\tR\tB\n",
    "ent_links": "a\tA\nb\tB\nc\tC\n",
    "721_5fold/1/train_links": "c\tC\n",
    "721_5fold/1/valid_links": "a\tA\n",
    "721_5fold/1/test_links": "b\tB\n",
}


def packed(path: Path, files: dict[str, str], member: str = "SR_X") -> Path:
    with tarfile.open(path, "w:xz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{member}/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def as_published(folder: Path) -> None:
    folder.mkdir(parents=True)
    ring = [(one, 0, (one + 1) % NUM_LINKS) for one in range(NUM_LINKS)]
    other = [(head + 1000, 5, tail + 1000) for head, _, tail in ring]
    links = [(one, one + 1000) for one in range(NUM_LINKS)]
    contents = {
        "triples_1": ring,
        "triples_2": other,
        "sup_ent_ids": links[:NUM_LABELS],
        "ref_ent_ids": links[NUM_LABELS:],
    }
    for name, rows in contents.items():
        lines = ["\t".join(map(str, row)) for row in rows]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(root: Path, **given: object) -> GraphPair:
    settings = {"root": root, "member": "SR_X", "name": "x", "download": None}
    return read_srprs("srprs/X", **(settings | given))


def names(pair: GraphPair, links: np.ndarray) -> set[tuple[str, str]]:
    return {
        (pair.source.entity_name(source), pair.target.entity_name(target))
        for source, target in links.tolist()
    }


def test_a_pair_of_the_archive(tmp_path: Path) -> None:
    packed(tmp_path / "srprs.tar.xz", ARCHIVED)
    pair = read(tmp_path)
    assert pair.name == "x"
    assert named_edges(pair.source) == {("a", "r", "b"), ("b", "s", "c")}
    split = official_split(pair)
    assert names(pair, split.supervision.train) == {("c", "C")}
    assert names(pair, split.supervision.validation) == {("a", "A")}
    assert names(pair, split.test) == {("b", "B")}
    assert [path.name for path in tmp_path.iterdir()] == ["srprs.tar.xz"]


def test_a_folder_comes_before_the_archive_and_labels_validate(tmp_path: Path) -> None:
    packed(tmp_path / "srprs.tar.xz", ARCHIVED)
    as_published(tmp_path / "srprs" / "X")
    pair = read(tmp_path)
    split = official_split(pair)
    train = names(pair, split.supervision.train)
    validation = names(pair, split.supervision.validation)
    assert len(train) == NUM_LABELS - NUM_VALIDATION
    assert len(validation) == NUM_VALIDATION
    labels = {(str(one), str(one + 1000)) for one in range(NUM_LABELS)}
    assert train | validation == labels
    others = {(str(one), str(one + 1000)) for one in range(NUM_LABELS, NUM_LINKS)}
    assert names(pair, split.test) == others
    again = official_split(read(tmp_path)).supervision
    assert np.array_equal(again.validation, split.supervision.validation)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no file SR_X/721_5fold/1/test_links. Copy it again"),
        (
            {name: text for name, text in ARCHIVED.items() if name != "ent_links"},
            "has no file SR_X/ent_links. Copy it again",
        ),
    ],
)
def test_an_incomplete_archive(
    files: dict[str, str], message: str, tmp_path: Path
) -> None:
    packed(tmp_path / "srprs.tar.xz", files or {"other": "a"})
    with pytest.raises(DataError, match=message):
        read(tmp_path)


def test_files_of_other_folders_are_not_taken(tmp_path: Path) -> None:
    packed(tmp_path / "srprs.tar.xz", ARCHIVED, member="SR_Y")
    with pytest.raises(DataError, match="has no file SR_X"):
        read(tmp_path)


def test_a_damaged_archive(tmp_path: Path) -> None:
    path = packed(tmp_path / "srprs.tar.xz", ARCHIVED)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="is not a tar archive that can be read"):
        read(tmp_path)


def test_a_file_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed(tmp_path / "srprs.tar.xz", ARCHIVED)
    monkeypatch.setattr("emea.data.sources.srprs.MOST_BYTES", 10)
    with pytest.raises(DataError, match=r"bytes, which no file of SRPRS has"):
        read(tmp_path)


def test_neither_folder_nor_archive(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"srprs/X does not exist\. Put triples_1"):
        read(tmp_path)
