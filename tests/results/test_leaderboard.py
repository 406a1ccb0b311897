"""Rows of the leaderboard: numbers by hand, verification of true and false rows, the schema."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from emea.cli.main import main as emea
from emea.config.composition import composed
from emea.errors import DataError
from emea.results.leaderboard import (
    SCHEMA_FILE,
    Gold,
    gold_of_row,
    read_row,
    row_of_run,
    scores,
)
from emea.run.job import run_job
from experiments.leaderboard_command import PAGE, ROWS, page, read_rows

SHORT = ("tracking=none", "trainer=cpu", "model=lightea", "em=none", "rule=none")
ROW_FILES = sorted(ROWS.glob("*.json"))

GOLD = Gold(
    frozenset({("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")}),
    without=frozenset({"e"}),
    given=frozenset({("x", "X")}),
    num_missed=1,
)
MATCHES = [
    ("a", "A", 0.9),
    ("b", "C", 0.8),
    ("c", "C", 0.8),
    ("e", "E", 0.4),
    ("x", "X", 1.0),  # given
    ("y", "Y", 1.0),  # neither linked nor known to have no counterpart
]


def test_numbers_of_four_answers() -> None:
    assert (
        scores(MATCHES, GOLD)
        == {
            "num_answers": 4,
            "precision": 0.5,
            "recall": 0.4,  # of four links and one whose entities are not in the graphs
            "f1": 0.444444,
            "recall_at_0.9": 0.2,  # only the first answer; the next two have the same probability
            "recall_at_0.95": 0.2,
            # bins .9: |.9 - 1|, .8: |.8 - .5| twice, .4: |.4 - 0|
            "calibration_error": pytest.approx((0.1 + 2 * 0.3 + 0.4) / 4),
        }
    )


def test_no_answer_has_no_calibration() -> None:
    found = scores([("y", "Y", 1.0)], GOLD)
    assert (found["num_answers"], found["precision"], found["f1"]) == (0, 0.0, 0.0)
    assert found["calibration_error"] is None


def test_the_digest_depends_on_links_and_entities_without_counterpart() -> None:
    others = [
        Gold(GOLD.links, GOLD.without, None, 1),
        Gold(GOLD.links, frozenset(), None, 1),
        Gold(GOLD.links, GOLD.without, None, 0),
        Gold(GOLD.links - {("a", "A")}, GOLD.without, None, 1),
    ]
    same, *different = [one.facts()["sha256"] for one in others]
    assert same == GOLD.facts()["sha256"]
    assert len({same, *different}) == 4
    assert GOLD.facts()["num_links"] == 5


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board") / "run"
    run_job(composed(["data=synthetic", "ratio=0.3", "split_seed=2", *SHORT]), folder)
    return folder


@pytest.mark.slow
def test_a_row_of_a_run_agrees_with_its_metrics(run: Path) -> None:
    row = row_of_run(run, "LightEA", "me")
    metrics = json.loads((run / "metrics.json").read_text())
    for name in ("precision", "recall", "f1"):
        assert row["numbers"][name] == pytest.approx(metrics["sources"][name], abs=1e-6)
    at = metrics["sources"]["recall_at_precision"]
    assert row["numbers"]["recall_at_0.9"] == pytest.approx(at["0.9"], abs=1e-6)
    assert row["numbers"]["calibration_error"] == pytest.approx(
        metrics["sources"]["ece"], abs=1e-5
    )
    assert row["data"] == {
        "name": "synthetic",
        "option": "synthetic",
        "split": "random",
        "ratio": 0.3,
        "seed": 2,
        "fold": None,
    }
    counts = metrics["num_links"]
    assert row["gold"]["num_links"] == counts["test"]
    assert row["gold"]["num_labels"] == counts["train"] + counts["validation"]
    assert gold_of_row(row).facts() == row["gold"]


def test_a_true_row_is_verified_and_false_ones_are_not(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "row.json"
    made = ["verify", str(path), "--run", str(run), "--method", "LightEA", "--by", "me"]
    assert emea(made) == 0
    check = ["verify", str(path), "--alignment", str(run / "alignment.tsv")]
    assert emea(check) == 0
    assert "11 numbers verified" in capsys.readouterr().out
    row = json.loads(path.read_text())
    changes: list[tuple[str, str, Any]] = [
        ("numbers", "f1", row["numbers"]["f1"] + 0.00001),
        ("numbers", "num_answers", row["numbers"]["num_answers"] + 1),
        ("gold", "num_labels", row["gold"]["num_labels"] - 1),
        ("data", "seed", 1),  # other links are tested
    ]
    for section, name, value in changes:
        changed = {**row, section: {**row[section], name: value}}
        path.write_text(json.dumps(changed))
        assert emea(check) == 1, name
        assert "DIFFERS" in capsys.readouterr().out
    path.write_text(json.dumps(row))
    lines = (run / "alignment.tsv").read_text().splitlines()
    shorter = tmp_path / "alignment.tsv"
    shorter.write_text("\n".join(lines[:-1]) + "\n")
    assert emea([*check[:3], str(shorter)]) == 1
    assert "alignment_sha256" in capsys.readouterr().out


def test_gold_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{source}\t{target}\t{prob}" for source, target, prob in MATCHES[:4]]
    alignment = tmp_path / "alignment.tsv"
    alignment.write_text("\n".join(["source\ttarget\tprobability", *lines]) + "\n")
    links = tmp_path / "test.tsv"
    links.write_text("".join(f"{one}\t{other}\n" for one, other in sorted(GOLD.links)))
    (tmp_path / "without.tsv").write_text("e\n")
    gold = Gold(GOLD.links, GOLD.without)
    row = sample_row() | {
        "data": {"name": "mine", "option": None, "split": None},
        "gold": gold.facts(),
        "numbers": scores(MATCHES[:4], gold),
        "alignment_sha256": _sha256(alignment),
    }
    path = tmp_path / "row.json"
    path.write_text(json.dumps(row))
    check = ["verify", str(path), "--alignment", str(alignment)]
    files = ["--gold", str(links), "--unmatched", str(tmp_path / "without.tsv")]
    assert emea([*check, *files]) == 0
    assert emea([*check, *files[:2]]) == 1
    capsys.readouterr()
    assert emea(check) == 1
    assert "Give its test links with --gold" in capsys.readouterr().err


def _sha256(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def sample_row() -> dict[str, Any]:
    return {
        "version": 1,
        "method": "m",
        "by": "me",
        "date": "2026-01-31",
        "protocol": "strict",
        "evidence": "structure",
        "data": {"name": "zh", "option": "zh", "split": "random", "ratio": 0.3},
        "gold": Gold(GOLD.links).facts(),
        "numbers": scores(MATCHES, GOLD),
        "alignment_sha256": "0" * 64,
    }


WRONG: dict[str, tuple[Any, str]] = {
    "version": (2, "row.version is 2 instead of one of"),
    "method": ("", "row.method has 0 characters"),
    "date": ("31.1.2026", "row.date does not match"),
    "protocol": ("fair", "row.protocol is 'fair' instead of one of"),
    "seconds": (-1, "row.seconds is out of range"),
    "machine": (True, "row.machine is not of type string"),
    "alignment_sha256": ("x", "row.alignment_sha256 does not match"),
    "own": (1, "row has an unknown key own"),
    "data": (
        {"name": "zh", "option": "../zh", "split": None},
        "row.data.option does not match",
    ),
    "gold": ({}, "row.gold has no sha256"),
    "numbers": ([], "row.numbers is not of type object"),
}


@pytest.mark.parametrize("key", WRONG)
def test_the_schema_finds_wrong_values(key: str, tmp_path: Path) -> None:
    value, message = WRONG[key]
    path = tmp_path / "row.json"
    path.write_text(json.dumps(sample_row()))
    read_row(path)
    path.write_text(json.dumps(sample_row() | {key: value}))
    with pytest.raises(DataError, match=message):
        read_row(path)
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA_FILE.read_text())
    jsonschema.validate(sample_row(), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(sample_row() | {key: value}, schema)


def test_a_row_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "row.json").write_text("{")
    with pytest.raises(DataError, match="is not a row of the leaderboard"):
        read_row(tmp_path / "row.json")


def test_the_page_is_what_the_rows_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_rows(ROWS))


def test_strict_rows_come_first_and_the_best_leads() -> None:
    rows = [sample_row() | {"method": name} for name in ("low", "high", "leak")]
    for row, f1 in zip(rows, (0.1, 0.2, 0.9), strict=True):
        row["numbers"] = row["numbers"] | {"f1": f1}
    rows[2]["protocol"] = "uses test links"
    text = page(rows)
    assert text.index("| high |") < text.index("| low |") < text.index("| leak |")


@pytest.mark.data
@pytest.mark.parametrize("path", ROW_FILES, ids=lambda path: path.stem)
def test_every_row_with_an_alignment_is_verified(path: Path) -> None:
    alignment = path.with_suffix(".tsv")
    if not alignment.is_file():
        pytest.skip("its alignment is elsewhere")
    if not Path(os.environ.get("EMEA_DATA") or "data").is_dir():
        pytest.skip("no EMEA_DATA")
    assert emea(["verify", str(path), "--alignment", str(alignment)]) == 0
