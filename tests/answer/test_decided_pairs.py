"""Files of decisions: what is read, and what is wrong with a line."""

import json
from pathlib import Path

import pytest

from emea.answer.curation import ACCEPTED, REJECTED, Curated
from emea.answer.decided_pairs import read_decided, write_decided
from emea.errors import DataError

from ..mutated_files import damaged, few_or_many, fuzz

DECISIONS = [
    Curated("a", "b\tc\\n", ACCEPTED, "Ada", "2026-01-02"),
    Curated("d", "é\u2028", REJECTED),
]


def test_a_written_file_is_read_again(tmp_path: Path) -> None:
    write_decided(tmp_path / "d.tsv", DECISIONS)
    found = read_decided(tmp_path / "d.tsv")
    assert found.decisions == DECISIONS and found.places == [2, 3]
    accepted = found.listing(ACCEPTED)
    assert accepted is not None and accepted.links == [("a", "b\tc\\n")]
    assert accepted.place(0) == "d.tsv, line 2"


def test_columns_may_have_another_order_and_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "d.tsv"
    path.write_text("decision\ttarget\tsource\r\naccepted\tB\tA\r\n\n\tC\tA\n")
    found = read_decided(path)
    assert found.decisions == [Curated("A", "B", ACCEPTED)] and found.num_open == 1
    assert found.listing(REJECTED) is None and found.cost is None


def answers(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_answers_are_decisions(tmp_path: Path) -> None:
    pair = {"source": "a", "question": "same?"}
    path = answers(
        tmp_path / "q.jsonl",
        {**pair, "target": "1", "answer": "Yes.", "author": "m", "cost": 0.25},
        {**pair, "target": "2", "answer": "no", "cost": 0.5},
        {**pair, "target": "3", "answer": "unsure"},
        {**pair, "target": "4", "answer": None, "cost": float("nan")},
        {**pair, "target": "5"},
    )
    found = read_decided(path)
    assert found.decisions == [
        Curated("a", "1", ACCEPTED, "m"),
        Curated("a", "2", REJECTED),
    ]
    assert (found.num_open, found.cost) == (3, 0.75)


def test_authors_and_dates_of_the_file_are_kept(tmp_path: Path) -> None:
    write_decided(tmp_path / "d.tsv", DECISIONS)
    found = read_decided(tmp_path / "d.tsv")
    others = [
        Curated(*DECISIONS[0].pair, ACCEPTED, "Bob", "2027-01-01"),
        Curated(*DECISIONS[1].pair, REJECTED, "Bob", "2027-01-01"),
        Curated("x", "y", ACCEPTED, "Bob", "2027-01-01"),
    ]
    assert [(one.author, one.date) for one in found.completed(others)] == [
        ("Ada", "2026-01-02"),
        ("Bob", "2027-01-01"),
        ("Bob", "2027-01-01"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("d.tsv", "a\tb\n", "must name the columns source, target, decision"),
        ("d.tsv", "source\ttarget\tdecision\na\tb\n", "line 2: there are 2 cells"),
        ("d.tsv", "source\ttarget\tdecision\na\tb\tmaybe\n", "accepted or rejected"),
        ("d.tsv", "source\ttarget\tdecision\n\tb\taccepted\n", "must be names"),
        (
            "d.tsv",
            "source\ttarget\tdecision\na\tb\taccepted\na\tb\trejected\n",
            "both accepted and rejected",
        ),
        (
            "d.tsv",
            "source\ttarget\tdecision\tdecision\na\tb\taccepted\trejected\n",
            "more than one column decision",
        ),
        (
            "q.jsonl",
            '{"source":"a","target":"b","anwser":"yes"}\n',
            "key 'anwser' must be 'answer'",
        ),
        (
            "q.jsonl",
            '{"source":"a","target":"b","answer":"yes","answer":"no"}\n',
            "the key 'answer' occurs twice",
        ),
        (
            "q.jsonl",
            f'{{"source":"a","target":"b","answer":"no","cost":{"9" * 400}}}\n',
            "line 1: cost is too large",
        ),
        ("q.jsonl", "[1]\n", "line 1: it contains no JSON object"),
        ("q.jsonl", '{"source": "a"\n', "line 1"),
        ("q.jsonl", '{"source":"a","target":"b","answer":"perhaps"}\n', "yes, no"),
        ("q.jsonl", '{"source":"a","target":3,"answer":"yes"}\n', "must be names"),
    ],
)
def test_mistakes_name_the_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read_decided(tmp_path / name)


FILES = {
    "d.tsv": b"source\ttarget\tdecision\tauthor\tdate\na\tb\taccepted\tme\t2026-01-01\n"
    b"c\td\\te\trejected\t\t\nf\tg\t\t\t\n",
    "q.jsonl": b'{"source": "a", "target": "b", "answer": "yes", "cost": 0.25}\n'
    b'{"source": "c", "target": "d", "answer": null, "author": "m", "question": "?"}\n'
    b'{"source": "e", "target": "f", "answer": "No.", "date": "2026-01-01"}\n',
}


@few_or_many(40, 3000)
@pytest.mark.parametrize("name", FILES)
def test_any_decisions_are_read_or_refused(
    tmp_path: Path, name: str, num_examples: int
) -> None:
    def read(content: bytes) -> None:
        (tmp_path / name).write_bytes(content)
        found = read_decided(tmp_path / name)
        assert {one.decision for one in found.decisions} <= {ACCEPTED, REJECTED}
        assert all(one.source and one.target for one in found.decisions)
        assert len(found.places) == len(found.decisions)
        write_decided(tmp_path / "again.tsv", found.decisions)
        again = read_decided(tmp_path / "again.tsv")
        assert list(again.decisions) == list(found.decisions)

    fuzz(damaged(FILES[name]), read, num_examples)
