"""``emea dedupe``: its files, its errors and files of strangers."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from emea.cli.dedupe import EXAMPLES
from emea.cli.main import main as emea
from emea.clusters.writing import CLUSTERS_FILE, FILES, MERGED_FILE, PAGE_FILE

from ..clusters.people import f1, joined, people, with_duplicates, write_table

HOSTILE = '<script>alert("x")</script>\x1b[31m‮'


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture
def table(tmp_path: Path) -> tuple[Path, list[int]]:
    rows, who = with_duplicates(people(150, 1), 1, typos=0.15, missing=0.05)
    return write_table(tmp_path / "people.csv", rows), who


def test_files_of_clusters_agree(table, tmp_path: Path, capsys) -> None:
    path, who = table
    out = tmp_path / "out"

    assert emea(["dedupe", str(path), "--out", str(out)]) == 0

    assert {one.name for one in out.iterdir()} == {*FILES, "dedupe.json"}
    members: dict[str, list[str]] = {}
    for row in rows_of(out / CLUSTERS_FILE):
        members.setdefault(row["cluster"], []).append(row["entity"])
    found = joined([sorted(one) for one in members.values()])
    people_of: dict[int, list[str]] = {}
    for number, person in enumerate(who):
        people_of.setdefault(person, []).append(f"row{number}")
    assert f1(found, joined(sorted(one) for one in people_of.values())) >= 0.95
    pairs = rows_of(out / "pairs.tsv")
    probs = [float(row["probability"]) for row in pairs]
    assert probs == sorted(probs, reverse=True)
    number_of = {entity: number for number, row in members.items() for entity in row}
    for row in pairs:
        both = [number_of.get(row[key], "none") for key in ("first", "second")]
        assert row["cluster"] == (both[0] if both[0] == both[1] != "none" else "")
    record = json.loads((out / "dedupe.json").read_text())
    assert record["num_entities"] == len(who)
    assert record["num_clusters"] == len(members)
    assert f"Found {len(members)} clusters" in capsys.readouterr().out
    merged = (out / MERGED_FILE).read_text(encoding="utf-8")
    num_replaced = sum(len(one) - 1 for one in members.values())
    assert merged.count("owl#sameAs") == num_replaced
    subjects = set(re.findall(r"^<([^>]*)> <urn:emea:[^>]*>", merged, re.MULTILINE))
    assert len(subjects) == len(who) - num_replaced
    sssom = (out / "clusters.sssom.tsv").read_text(encoding="utf-8").splitlines()
    body = [line for line in sssom if not line.startswith("#")]
    likely = [
        row for row in pairs if row["cluster"] and float(row["probability"]) >= 0.5
    ]
    assert len(body) == 1 + len(likely)
    assert "semapv:LexicalMatching" in body[1] and "owl:sameAs" in body[1]


def test_names_made_from_iris_are_shown_but_not_written(tmp_path: Path) -> None:
    path = tmp_path / "places.nt"
    words = [
        f"{one}_{other}"
        for one in ("Old", "New", "Far")
        for other in ["Ab", "Bo", "Cu"]
    ]
    names = [f"<http://x.org/{word}town>" for word in words]
    path.write_text(
        "".join(f"{name} <http://x.org/near> {names[0]} .\n" for name in names)
    )
    out = tmp_path / "out"
    assert emea(["dedupe", str(path), "--out", str(out)]) == 0
    assert "iri_name" not in (out / MERGED_FILE).read_text(encoding="utf-8")
    rows = rows_of(out / "pairs.tsv")
    assert all(" " in row["first_label"] for row in rows)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent.csv", "There is no file {0}. Check the path."),
        ("", "GRAPH must be a file, but {0} is a folder."),
    ],
)
def test_a_missing_file_is_named(
    name: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    assert emea(["dedupe", str(path), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == f"error: {reason.format(path)}\n"


def test_same_table_gives_the_same_files(table, tmp_path: Path) -> None:
    path, _ = table
    for name in ("one", "two"):
        assert emea(["dedupe", str(path), "--out", str(tmp_path / name)]) == 0
    for file in FILES:
        first, second = (tmp_path / name / file for name in ("one", "two"))
        assert first.read_bytes() == second.read_bytes()


def test_a_higher_threshold_makes_fewer_clusters(table, tmp_path: Path) -> None:
    path, _ = table
    counts = []
    for threshold in ("0.01", "0.5", "1"):
        out = tmp_path / threshold
        command = ["dedupe", str(path), "--threshold", threshold, "--out", str(out)]
        assert emea(command) == 0
        counts.append(len(rows_of(out / CLUSTERS_FILE)))
    assert counts[0] >= counts[1] > counts[2] == 0


def test_page_has_no_script_and_escapes_names(tmp_path: Path, capsys) -> None:
    rows = [{"name": f"{HOSTILE} {row['family']}", **row} for row in people(40, 1)]
    path = write_table(tmp_path / "people.csv", [*rows, *rows[:5]])

    assert emea(["dedupe", str(path), "--out", str(tmp_path / "out")]) == 0

    page = (tmp_path / "out" / PAGE_FILE).read_text(encoding="utf-8")
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "default-src &#39;none&#39;" in page and "script-src" not in page
    assert 'scope="row"' in page and 'scope="col"' in page
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "empty"),
        ("id,name\n", ""),
    ],
)
def test_empty_tables_are_errors(tmp_path: Path, capsys, content, sentence) -> None:
    path = tmp_path / "empty.csv"
    path.write_text(content)

    assert emea(["dedupe", str(path), "--out", str(tmp_path / "out")]) == 1

    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and sentence in shown
    assert not (tmp_path / "out").exists()


def test_files_of_a_user_are_not_replaced(table, tmp_path: Path, capsys) -> None:
    path, _ = table
    out = tmp_path / "out"
    out.mkdir()
    (out / CLUSTERS_FILE).write_text("mine")

    assert emea(["dedupe", str(path), "--out", str(out)]) == 1

    assert "was not written by emea" in capsys.readouterr().err
    assert (out / CLUSTERS_FILE).read_text() == "mine"
    assert emea(["dedupe", str(path), "--out", str(out), "--force"]) == 0
    assert emea(["dedupe", str(path), "--out", str(out)]) == 0


def test_settings_of_other_groups_are_errors(table, tmp_path: Path, capsys) -> None:
    path, _ = table

    assert emea(["dedupe", str(path), "em=dual", "--out", str(tmp_path / "out")]) == 1

    assert "has settings of the data only" in capsys.readouterr().err


def test_examples_of_the_help_work(tmp_path: Path, monkeypatch) -> None:
    rows = people(60, 1)
    write_table(tmp_path / "persons.csv", rows)
    books = [{"isbn": str(7 * n), **row} for n, row in enumerate(rows)]
    write_table(tmp_path / "books.csv", books)
    lines = [
        f'<http://x/{n}> <http://x/name> "{r["family"]}" .' for n, r in enumerate(rows)
    ]
    (tmp_path / "catalogue.nt").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^  emea (.*)$", EXAMPLES, re.MULTILINE)
    assert len(examples) == 3
    for line in examples:
        assert emea(shlex.split(line)) == 0, line


@pytest.mark.slow
def test_many_equal_rows_need_few_pairs(tmp_path: Path) -> None:
    rows = [{"name": "Springfield"}] * 100_000
    path = write_table(tmp_path / "people.csv", rows)

    assert emea(["dedupe", str(path), "--out", str(tmp_path / "out")]) == 0

    assert len(rows_of(tmp_path / "out" / CLUSTERS_FILE)) == 100_000
    assert len(rows_of(tmp_path / "out" / "pairs.tsv")) < 200_000
    assert (tmp_path / "out" / PAGE_FILE).stat().st_size < 2**20
