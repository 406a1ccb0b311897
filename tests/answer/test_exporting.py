import os
from pathlib import Path

import pytest

from emea.answer.exporting import FORMATS, write_formats
from emea.config.settings.execution import EXPORT_FORMATS
from emea.data.arrays import NO_MATCH
from emea.data.formats.link_file import read_link_file
from emea.data.links import EntityFinder, LinkRegister, LinkResolver
from emea.data.names import Prefixes
from emea.record.run_folder import RUN_FILES

from .odd_alignments import alignment_of, named_graph

FILES = {file for files in FORMATS.values() for file in files}


def test_validation_knows_every_format() -> None:
    assert tuple(FORMATS) == EXPORT_FORMATS


def test_every_file_travels_to_the_tracking_store() -> None:
    assert set(RUN_FILES) >= FILES


@pytest.mark.parametrize("name", FORMATS)
def test_requested_formats_are_written_in_addition_to_tsv(name: str, tmp_path: Path) -> None:
    written = write_formats(tmp_path / "new", FORMATS, [name], alignment_of(["a"], ["x"], [0]))
    assert set(os.listdir(tmp_path / "new")) == {*FORMATS["tsv"], *FORMATS[name]}
    assert {path.name for path in written} == set(os.listdir(tmp_path / "new"))
    assert all(path.read_bytes().endswith(b"\n") for path in written if path.suffix != ".nt")


@pytest.mark.parametrize("name", FORMATS)
def test_a_failing_export_leaves_the_old_files(name: str, tmp_path: Path) -> None:
    write_formats(tmp_path, FORMATS, list(FORMATS), alignment_of(["a"], ["x"], [0]))
    before = {file: (tmp_path / file).read_bytes() for file in FILES}
    broken = alignment_of(["a", "b"], ["x"], [0, 1])  # there is no target 1
    with pytest.raises(IndexError):
        write_formats(tmp_path, FORMATS, [name], broken)
    assert {file: (tmp_path / file).read_bytes() for file in FILES} == before
    assert set(os.listdir(tmp_path)) == FILES


def read_again(path: Path, source: list[str], target: list[str]) -> tuple[list[list[int]], int]:
    """Return the links of a file between entities with these names, and how many are unknown."""
    resolver = LinkResolver(
        EntityFinder(named_graph(source), "source", "a"),
        EntityFinder(named_graph(target), "target", "b"),
        Prefixes(),
        "stop",
        LinkRegister(),
    )
    links, reading = resolver.resolve(read_link_file(path))
    return links.tolist(), reading.num_unknown


@pytest.mark.parametrize("file", ["alignment.sssom.tsv", "alignment.nt"])
def test_an_alignment_can_be_the_links_of_another_run(file: str, tmp_path: Path) -> None:
    source = ["http://a.org/x y", "Batman: Year One", "柏林", "alone", "100%"]
    target = ["Berlin", "http://b.org/柏:林", "Batman", "17"]
    alignment = alignment_of(source, target, [3, 2, 0, NO_MATCH, 1])
    write_formats(tmp_path, FORMATS, ["nt", "sssom"], alignment)
    links, num_unknown = read_again(tmp_path / file, source, target)
    assert sorted(links) == [[0, 3], [1, 2], [2, 0], [4, 1]]
    assert num_unknown == 0


@pytest.mark.parametrize("file", ["alignment.sssom.tsv", "alignment.nt"])
def test_names_that_are_partly_percent_encoded_are_found_again(file: str, tmp_path: Path) -> None:
    # in DBP15K, names contain %22 and %3F next to characters outside ASCII
    source = ["http://a.org/柏%3F", "http://a.org/x%2Fy z", "http://a.org/%22é", "http://a.org/é%"]
    target = [name.replace("a.org", "b.org") for name in source]
    write_formats(tmp_path, FORMATS, ["nt", "sssom"], alignment_of(source, target, [1, 0, 3, 2]))
    links, num_unknown = read_again(tmp_path / file, source, target)
    assert links == [[0, 1], [1, 0], [2, 3], [3, 2]]
    assert num_unknown == 0
