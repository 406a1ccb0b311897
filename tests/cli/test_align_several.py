"""``emea align A B C``: all pairs, one clustering, and graphs that come later."""

import json
import os
from pathlib import Path

import pytest

from emea.cli.main import main as emea
from emea.clusters.writing import FILES

from ..clusters.measure_dbp15k import MeasuredDBP15K
from ..clusters.measure_several import Measured
from ..clusters.people import f1, people, write_table


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Small tables of the same people."""
    rows = people(12, 1)
    tables = (rows[:9], rows[3:], rows)
    return [
        str(write_table(tmp_path / f"{name}.csv", table))
        for name, table in zip("abc", tables, strict=True)
    ]


def test_three_graphs_have_one_clustering(files, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"

    assert emea(["align", *files, "--out", str(out)]) == 0

    shown = capsys.readouterr().out
    assert "Pair 2 of 3, a-c, about " in shown and " left." in shown
    assert "Found 12 clusters of 3 graphs: 6 with entities of 3 graphs" in shown
    assert {one.name for one in out.iterdir()} == {*FILES, "several.json", "pairs"}
    lines = (out / "clusters.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == ["cluster", "graph", "entity", "label"]
    assert len(lines) == 1 + 9 + 9 + 12


@pytest.mark.slow
def test_a_further_graph_does_not_repeat_finished_pairs(
    files, tmp_path: Path, capsys
) -> None:
    out = tmp_path / "out"
    records = [out / "pairs" / name / "run.json" for name in ("a-b", "a-c", "b-c")]
    command = ["align", *files, "--out", str(out)]
    assert emea(command) == 0
    before = [path.read_bytes() for path in records]
    further = write_table(tmp_path / "d.csv", people(12, 1)[2:8])

    assert emea(["align", *files, str(further), "--out", str(out)]) == 0

    assert [path.read_bytes() for path in records] == before
    assert capsys.readouterr().out.count("finished before") == 3
    record = json.loads((out / "several.json").read_text())
    assert record["graphs"] == ["a", "b", "c", "d"] and record["num_by_graphs"]["4"]
    # a changed graph and other settings are aligned again
    write_table(Path(files[2]), people(12, 2))
    assert emea(command) == 0
    assert capsys.readouterr().out.count("finished before") == 1
    assert emea([*command, "literals=equal"]) == 0
    assert "finished before" not in capsys.readouterr().out


@pytest.mark.slow
def test_test_links_of_one_pair_do_not_reach_the_clusters(
    files, tmp_path: Path
) -> None:
    """A pair that was aligned with test links gives the same clusters as without them."""
    contents = []
    for name in ("with", "without"):
        out = tmp_path / name
        own = out / "pairs" / "a-b"
        links = tmp_path / "links.tsv"
        links.write_text("row3\trow0\nrow4\trow1\n")
        test = tmp_path / "test.tsv"
        # what links to nothing in truth: a run that saw it would answer it
        test.write_text("row0\trow8\nrow1\trow7\n")
        command = ["align", *files[:2], "method=paris", "literals=similar"]
        command += ["--links", str(links), "--out", str(own)]
        command += ["--test-links", str(test)] if name == "with" else []
        assert emea(command) == 0
        assert emea(["align", *files, "--out", str(out)]) == 0
        contents.append([(out / file).read_bytes() for file in FILES])
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("further", "sentence"),
    [
        (["--links", "seeds.tsv"], "--links is for two graphs"),
        (["--show"], "--show is for two graphs"),
    ],
)
def test_arguments_of_two_graphs_are_errors(
    files, tmp_path: Path, capsys, further, sentence
) -> None:
    assert emea(["align", *files, *further, "--out", str(tmp_path / "out")]) == 1
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_graph_that_is_named_twice_is_an_error(files, tmp_path: Path, capsys) -> None:
    command = ["align", *files[:2], files[0], "--out", str(tmp_path / "out")]
    assert emea(command) == 1
    assert "A file is named twice" in capsys.readouterr().err


def test_two_graphs_with_a_misspelt_setting_have_the_old_error(
    files, tmp_path: Path, capsys
) -> None:
    command = ["align", *files[:2], "em.iterations", "--out", str(tmp_path / "out")]
    assert emea(command) == 1
    assert "em.iterations" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("num_graphs", [3, 5])
def test_one_clustering_is_better_than_pairs(num_graphs: int, tmp_path: Path) -> None:
    found = Measured(people(200, 1), num_graphs, 1, tmp_path, "heavy")

    alone, together = found.alone(), found.together()

    assert f1(together, found.true) > f1(alone, found.true)
    assert found.closed(alone) < found.closed(together) == 1.0


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("num_graphs", [3, pytest.param(5, marks=pytest.mark.nightly)])
def test_one_clustering_of_dbp15k_is_better_than_pairs(
    num_graphs: int, tmp_path: Path
) -> None:
    data = Path(os.environ.get("EMEA_DATA") or "data") / "dbp15k"
    if not data.is_dir():
        pytest.skip("no dbp15k in EMEA_DATA")
    found = MeasuredDBP15K(data, num_graphs, 1, tmp_path)

    alone, together = found.alone(), found.together()

    gain = f1(found.judged(together), found.true) - f1(found.judged(alone), found.true)
    assert gain > 0.03
    assert found.closed(alone) < found.closed(together) == 1.0
