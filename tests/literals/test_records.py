"""Records of two tables: running numbers, levels of agreement, and answers of whole runs."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from emea.cli.align import main
from emea.literals.agreement import Agreement, as_number, code_column, neighbour_column
from emea.literals.match_literals import EqualLiterals
from emea.literals.records import Records, both_records
from tests.literals.pairs_with_values import Facts, graph_with_values, pair_with_values


def records_of(facts: Facts, num_entities: int) -> Records:
    graph = graph_with_values(num_entities, facts)
    both = pair_with_values(graph, graph)
    found = EqualLiterals()(both)
    return Records(graph, found.source, found.texts[0])


def test_running_numbers_are_dense_and_distinct() -> None:
    facts = [(row, 0, str(row)) for row in range(60)]
    facts += [(row, 1, str(1950 + row % 40)) for row in range(60)]
    facts += [(row, 2, str(row * 37)) for row in range(60)]
    facts += [(row, 3, f"item {row}") for row in range(60)]

    assert records_of(facts, 60).running_numbers() == [0, 3]


def test_running_numbers_of_one_side_are_compared() -> None:
    numbered = graph_with_values(30, [(row, 0, str(row)) for row in range(30)])
    codes = graph_with_values(30, [(row, 0, str(row * row)) for row in range(30)])
    pair = pair_with_values(numbered, codes)
    found = EqualLiterals()(pair)
    pair = type(pair)(pair.name, pair.source, pair.target, pair.links, literals=found)

    source, _ = both_records(pair)

    assert not len(source.left_out)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.5", 1.5), ("-3", -3.0), ("1999-01-01", 1999.0), ("1999-07-01", 1999.5)],
)
def test_dates_are_years(text: str, number: float) -> None:
    assert as_number(text) == pytest.approx(number)
    assert math.isnan(as_number(f"{text} pages"))


def test_attributes_are_compared_by_their_most_similar_values() -> None:
    rng = random.Random(1)
    names = [
        f"{rng.choice('bdkmt')}{number}o{rng.randrange(9**6)}" for number in range(40)
    ]
    facts = [(row, 0, name) for row, name in enumerate(names)]
    facts += [(row, 1, str(row % 7)) for row in range(40)]
    records = records_of(facts, 40)
    right = np.stack([np.arange(40), np.arange(40)], axis=1)
    wrong = np.stack([np.arange(40), (np.arange(40) + 1) % 40], axis=1)
    pairs = np.concatenate([right, wrong])

    columns = list(
        Agreement(records, records).columns(pairs, np.arange(40), np.arange(40, 80))
    )

    levels = {column.name: column.levels for column in columns}
    assert (levels["a0"][:40] == 8).all() and (levels["a0"][40:] < 8).all()
    assert (levels["a1"][:40] == 5).all() and (levels["a1"][40:] < 5).all()


def test_codes_conflict_or_are_shared() -> None:
    first = ["lamp x200", "lamp x200 12v", "lamp", "lamp x200 5v"]
    second = ["lamp x300", "x200 lamp", "lamp x200", "lamp x200 9v"]
    pairs = np.stack([np.arange(4), np.arange(4)], axis=1)

    assert code_column(first, second, pairs).levels.tolist() == [1, 3, 0, 2]


def test_pairs_without_evidence_of_compared_neighbours_have_the_lowest_level() -> None:
    log_odds = np.array([-np.inf, -np.inf, -5.0, 20.0])

    column = neighbour_column(log_odds, np.array([False, True, True, True]))

    assert column.levels.tolist() == [0, 1, 2, column.num_levels]


def write_table(path: Path, rows: list[dict[str, str]]) -> Path:
    names = list(rows[0])
    lines = [",".join(names)] + [",".join(row[name] for name in names) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_two_running_numbers_match_nothing_and_a_sentence_says_why(
    tmp_path: Path,
) -> None:
    tables = [
        write_table(
            tmp_path / f"{side}.csv",
            [
                {"id": f"{side}{7 * row % 150}", "number": str(row)}
                for row in range(150)
            ],
        )
        for side in "ab"
    ]

    assert main([*map(str, tables), "--out", str(tmp_path / "out")]) == 0

    rows = (tmp_path / "out" / "alignment.tsv").read_text().splitlines()
    assert len(rows) == 1
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert any("Nothing is matched" in text for text in metrics["warnings"])


def test_a_target_precision_without_links_is_an_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(2)
    words = [
        "".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(3))
        for _ in range(400)
    ]
    people = [
        {
            "name": f"{rng.choice(words)} {rng.choice(words)}",
            "born": str(rng.randrange(1900, 2000)),
            "town": rng.choice(words),
        }
        for _ in range(300)
    ]
    # a hundred people of each table are not in the other one
    parts = people[:200], people[100:]
    tables = [
        write_table(
            tmp_path / f"{side}.csv",
            [{"id": f"{side}{people.index(one)}", **one} for one in part],
        )
        for side, part in zip("ab", parts, strict=True)
    ]
    out = tmp_path / "out"

    status = main([*map(str, tables), "--out", str(out), "--target-precision", "0.9"])

    assert status == 0
    printed = capsys.readouterr().out
    assert (
        "estimate from decoys" in printed and "Estimated from decoys: about" in printed
    )
    rows = [
        line.split("\t")
        for line in (out / "alignment.tsv").read_text().splitlines()[1:]
    ]
    right = [source[1:] == target[1:] for source, target, *_ in rows]
    assert sum(right) >= 95 and sum(right) >= 0.85 * len(right)
    share = json.loads((out / "metrics.json").read_text())["decoys"]["share"]
    assert share == pytest.approx(0.5, abs=0.1)
