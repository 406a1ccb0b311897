"""The comparison of an alignment with its parts measures whole commands."""

import json
from pathlib import Path

import pytest

from benchmarks import in_parts
from emea.errors import UserError


@pytest.mark.slow
def test_the_whole_and_the_parts_are_measured(tmp_path: Path) -> None:
    data = ["data=synthetic", "data.num_entities=300"]
    method = ["--method", "model=lightea", "em=one_to_one", "em.iterations=1"]
    file = tmp_path / "numbers.json"
    folders = ["--folder", str(tmp_path / "runs"), "--json", str(file)]
    in_parts.main([*data, "--parts", "2", *method, *folders])
    numbers = json.loads(file.read_text())
    whole, parts = numbers["whole"], numbers["2 parts"]
    assert whole["hit@1"] > parts["hit@1"] > 0.1  # a random graph loses many triples
    assert parts["parts"]["cpu_seconds"] > parts["join"]["cpu_seconds"] > 0
    assert 100 < parts["parts"]["peak_memory_mb"] < 10_000
    assert 0 < parts["division"]["lost"] < 1


def test_a_command_that_fails_is_named() -> None:
    with pytest.raises(UserError, match=r"emea divide --parts 0 ended with status 2"):
        in_parts.measured("divide", "--parts", "0")
