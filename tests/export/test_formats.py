import os
from pathlib import Path

import pytest

from emea.export.formats import FORMATS, write_formats
from emea.pipeline.validation import EXPORT_FORMATS
from emea.tracking.artifacts import RUN_FILES

from .odd_alignments import alignment_of

FILES = {file for files in FORMATS.values() for file in files}


def test_validation_knows_every_format() -> None:
    assert tuple(FORMATS) == EXPORT_FORMATS


def test_every_file_travels_to_the_tracking_store() -> None:
    assert set(RUN_FILES) >= FILES


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_asked_for_is_written_beside_tsv(name: str, tmp_path: Path) -> None:
    written = write_formats(tmp_path / "new", alignment_of(["a"], ["x"], [0]), [name])
    assert set(os.listdir(tmp_path / "new")) == {*FORMATS["tsv"], *FORMATS[name]}
    assert {path.name for path in written} == set(os.listdir(tmp_path / "new"))
    assert all(path.read_bytes().endswith(b"\n") for path in written if path.suffix != ".nt")


@pytest.mark.parametrize("name", FORMATS)
def test_a_failing_export_leaves_the_old_files(name: str, tmp_path: Path) -> None:
    write_formats(tmp_path, alignment_of(["a"], ["x"], [0]), list(FORMATS))
    before = {file: (tmp_path / file).read_bytes() for file in FILES}
    broken = alignment_of(["a", "b"], ["x"], [0, 1])  # there is no target 1
    with pytest.raises(IndexError):
        write_formats(tmp_path, broken, [name])
    assert {file: (tmp_path / file).read_bytes() for file in FILES} == before
    assert set(os.listdir(tmp_path)) == FILES
