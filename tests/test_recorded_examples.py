"""Numbers in the guides are those of the runs whose records are stored with them."""

import json
from pathlib import Path
from typing import Any

import pytest

from emea.run.result_table import answered_line

DOCS = Path(__file__).resolve().parents[1] / "docs"


def record(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = DOCS / "examples" / "records" / name
    return tuple(
        json.loads((folder / file).read_text()) for file in ("metrics.json", "run.json")
    )


def text_of(guide: str) -> str:
    return " ".join((DOCS / guide).read_text().split())


@pytest.mark.parametrize(
    ("guide", "name"),
    [("explain.md", "openea"), ("worked_example.md", "worked_example")],
)
def test_a_guide_names_its_run(guide: str, name: str) -> None:
    metrics, run = record(name)
    text = text_of(guide)
    assert run["status"] == "FINISHED" and run["tags"]["dirty"] == "false"
    assert (
        f"{metrics['seconds']['total']:.0f} s, commit {run['tags']['commit'][:10]}"
        in text
    )
    assert f"Hit@1 {metrics['final']['hit@1']:.4f}" in text
    assert f"examples/records/{name}" in text


def test_the_worked_example_prints_what_its_run_printed() -> None:
    metrics, run = record("worked_example")
    text = text_of("worked_example.md")
    assert answered_line(metrics["export"]) in text
    num_pairs = metrics["export"]["num_answered"] + metrics["num_links"]["train"]
    assert f"{num_pairs:,} pairs" in text
    assert f"{metrics['export']['num_unmatched']:,} entities" in text
    for pool, found in (
        ("test", metrics["final"]),
        ("all", metrics["final"]["all_targets"]),
    ):
        numbers = f"Hit@1 {found['hit@1']:.4f} Hit@10 {found['hit@10']:.4f} MRR {found['mrr']:.4f}"
        assert f"{pool} targets final {numbers}" in text
    for iteration in (0, 1, 5):
        entry = metrics["history"][iteration]
        neural, joint = entry["neural"]["hit@1"], entry["joint"]["hit@1"]
        stage = f"EM {iteration}/5" if iteration else "First training"
        assert (
            f"{stage}: test Hit@1 {neural:.4f} (encoder), {joint:.4f} (joint)" in text
        )
    target = run["params"]["export.target_precision"]
    assert f"export.target_precision={target:g}" in text
