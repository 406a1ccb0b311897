"""Mutants of the critical code: what is changed, and what is left alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import mutants

ROOT = Path(__file__).resolve().parents[2]

MODULE = '''"""A module with 1 number."""

def count(values: list[int], most: int = 3) -> int:
    """Count 2 things."""
    if not values:
        raise ValueError(f"got {len(values) + 1} values")
    total = 0
    for ä in values:
        total += "ä" < "b" and 1 <= ä
    return total + values.max(most)
'''


def test_each_mutant_has_one_changed_expression() -> None:
    found = list(mutants.mutants_of("emea/em/count.py", MODULE))
    assert {(one.line, one.before, one.after) for one in found} == {
        (5, "not values", "values"),
        (7, "0", "1"),
        (9, "'ä' < 'b' and 1 <= ä", "'ä' < 'b' or 1 <= ä"),
        (9, "'ä' < 'b'", "'ä' <= 'b'"),
        (9, "1 <= ä", "1 < ä"),
        (9, "1", "2"),
        (10, "total + values.max(most)", "total - values.max(most)"),
        (10, "values.max", "values.min"),
    }
    for one in found:
        changed = one.text.splitlines()
        differing = [
            n for n, line in enumerate(MODULE.splitlines(), 1) if changed[n - 1] != line
        ]
        assert differing == [one.line]
        compile(one.text, one.path, "exec")


def test_a_mutant_has_the_same_name_in_another_layout() -> None:
    one = "def f(a, b):\n    return g(a, 1, strict=True)\n"
    other = one.replace(
        "(a, 1, strict=True)", "(\n        a, 1,  # why\n        strict=True)"
    )
    names = [one.name for one in mutants.mutants_of("emea/em/f.py", one)]
    assert names == ["emea/em/f.py: 1 -> 2 in return g(a, 1, strict=True)"]
    assert names == [one.name for one in mutants.mutants_of("emea/em/f.py", other)]


@pytest.mark.slow
def test_every_mutant_without_effect_exists() -> None:
    assert (
        mutants.equivalent_names() - {one.name for one in mutants.all_mutants()}
        == set()
    )


@pytest.mark.slow
def test_the_draw_covers_each_critical_module_but_no_equivalent_mutant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = mutants.drawn_mutants(100_000, seed=0)
    assert {mutants.place_of(one.path) for one in every} == set(mutants.CRITICAL)
    assert mutants.drawn_mutants(5, seed=3) == mutants.drawn_mutants(5, seed=3)
    names = {one.name for one in every}
    first = every[0]
    known = mutants.EQUIVALENT.read_text()
    (tmp_path / "listed.yaml").write_text(
        f'{known}"{first.name}": it only changes a message\n'
    )
    monkeypatch.setattr(mutants, "EQUIVALENT", tmp_path / "listed.yaml")
    assert {one.name for one in mutants.drawn_mutants(100_000, seed=0)} == names - {
        first.name
    }


@pytest.mark.nightly  # it runs the tests of a package twice, in copies of the repository
def test_a_mutant_of_the_protocol_is_killed() -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "mutants",
        "--count",
        "1",
        "--workers",
        "1",
    ]
    done = subprocess.run(
        [*command, "--only", "self_training"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert "of 1 mutants killed" in done.stdout, done.stderr
