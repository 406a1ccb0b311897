"""The summary of a run, in the Python API and on the command line."""

from pathlib import Path

import pytest

from emea import Aligner, graph_of
from emea.errors import UserError

FAMILY = [
    ("anna", "mother_of", "ben"),
    ("anna", "lives_in", "graz"),
    ("ben", "knows", "cleo"),
]
FAMILIE = [("Anna", "Mutter", "Ben"), ("Anna", "Wohnort", "Graz")]
FAMILIE += [("Ben", "kennt", "Cleo")]
LINKS = [("anna", "Anna"), ("cleo", "Cleo"), ("graz", "Graz")]


def test_an_aligner_summarises_its_run(tmp_path: Path) -> None:
    aligner = Aligner(
        model="lightea", em="dual", settings=["em.iterations=1"], folder=tmp_path
    )
    with pytest.raises(UserError, match="not fitted"):
        aligner.summary()
    lines = aligner.fit(graph_of(FAMILY), graph_of(FAMILIE), LINKS).summary()
    assert lines[0] == (
        "Matched 1 of 1 source entities without a given link (3 links were given for training)."
    )
    (match,) = aligner.predict()[1:2]
    assert f"  {match.probability:.3f}  ben  =  Ben" in lines
    assert f"Alignment: {tmp_path / 'alignment.tsv'}" in lines[-4]
    assert lines[-3] == f"Look at all matches:  emea show {tmp_path}"
    loaded = Aligner.load(tmp_path)
    assert loaded.summary() == lines


def test_a_run_without_a_folder_names_no_commands() -> None:
    aligner = Aligner(model="lightea", em="dual", settings=["em.iterations=1"])
    lines = aligner.fit(graph_of(FAMILY), graph_of(FAMILIE), LINKS).summary()
    assert lines[0].startswith("Matched 1 of 1") and "emea show" not in "\n".join(lines)
