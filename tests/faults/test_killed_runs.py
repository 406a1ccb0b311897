"""A run that is killed before any of its file operations resumes to the same results."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from emea.cli.main import main as emea
from emea.data.sources.synthetic import synthetic_pair
from emea.record.checked_files import open_atomic

from ..cli.test_update import write_graph
from ..sweeping import environment
from .killed_runs import EM_SETTINGS, operation, places_to_kill

SAME = "resumed with the same result"


def killed_at_every_operation(
    folder: Path, arguments: list[str]
) -> list[dict[str, str]]:
    """Return operation and outcome of each kill."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.killed_runs", str(folder), *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_operations_have_the_same_name_in_each_run(tmp_path: Path) -> None:
    """Otherwise no run is killed: an operation is chosen by its name in an earlier run."""
    folder = str(tmp_path)
    named = set()
    for _ in range(2):
        with open_atomic(tmp_path / "run.json") as file:
            named.add(operation(tmp_path, "open", (file.name, "xb", os.O_CREAT)))
            named.add(
                operation(tmp_path, "os.rename", (file.name, f"{folder}/run.json", -1))
            )
    assert named == {"open .run.json.tmp", "os.rename .run.json.tmp"}
    assert (
        operation(tmp_path, "open", (f"{folder}/run.json", "rb", os.O_RDONLY)) is None
    )


def test_of_repeated_operations_some_are_chosen() -> None:
    names = ["open a", *["open series"] * 9, "os.rename a", "open a"]
    assert places_to_kill(names) == [
        ("open a", 0),
        *(("open series", number) for number in (0, 1, 4, 8)),
        ("os.rename a", 0),
        ("open a", 1),
    ]


@pytest.mark.parametrize(
    "em",
    [
        pytest.param("none", marks=pytest.mark.slow),
        # minutes each; they write the same files as em=none, with more state
        pytest.param("one_to_one", marks=pytest.mark.nightly),
        pytest.param("paper", marks=pytest.mark.nightly),
        pytest.param("dual", marks=pytest.mark.nightly),
    ],
)
def test_kills_at_every_file_operation(
    em: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    settings = [f"em={em}", *(() if em == "none" else EM_SETTINGS)]
    kills = killed_at_every_operation(tmp_path, settings)
    counts = Counter(kill["outcome"] for kill in kills)
    record_property(
        "faults", (f"kills of a run with em={em}", len(kills), dict(counts))
    )
    assert [kill for kill in kills if kill["outcome"] != SAME] == []
    names = " ".join(kill["operation"] for kill in kills)
    for file in (
        "config.yaml",
        "run.json",
        "checkpoint",
        "metrics.json",
        "alignment.tsv",
    ):
        assert f"os.rename .{file}" in names


@pytest.mark.slow
def test_kills_of_a_local_update(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """The same command continues an update that was killed while it wrote any of its files."""
    pair = synthetic_pair(num_entities=200, overlap=0.9, seed=3)
    for graph, prefix in ((pair.source, "s"), (pair.target, "t")):
        write_graph(tmp_path / f"{prefix}_old.tsv", prefix, graph.triples[:-3])
        write_graph(tmp_path / f"{prefix}_new.tsv", prefix, graph.triples)
    links = "".join(f"s{one}\tt{other}\n" for one, other in pair.links[::3].tolist())
    (tmp_path / "links.tsv").write_text(links)
    old, new = (
        [str(tmp_path / f"{prefix}_{version}.tsv") for prefix in "st"]
        for version in ("old", "new")
    )
    settings = [
        "ensemble=none",  # an ensemble is always computed again as a whole
        "em.iterations=1",
        "model.encoder.dim=32",
        "model.encoder.output_dim=32",
    ]
    run = str(tmp_path / "run")
    more = ["--links", str(tmp_path / "links.tsv"), "--out", run, "data.on_error=skip"]
    assert emea(["align", *old, *more, *settings]) == 0
    update = ["update", run, "--source", new[0], "--target", new[1]]
    kills = killed_at_every_operation(tmp_path, update)
    counts = Counter(kill["outcome"] for kill in kills)
    record_property("faults", ("kills of a local update", len(kills), dict(counts)))
    assert [kill for kill in kills if kill["outcome"] != SAME] == []
    said = json.loads((tmp_path / "whole" / "update.json").read_text())["recomputed"]
    assert said["kind"] == "local"
    names = " ".join(kill["operation"] for kill in kills)
    for file in ("config.yaml", "pair.npz", "run.json", "alignment.tsv", "changes.tsv"):
        assert f" .{file}" in names
