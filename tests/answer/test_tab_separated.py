from dataclasses import replace

from hypothesis import given

from emea.answer.alignment import Alignment
from emea.answer.exporting import cell, matched_lines, unmatched_lines

from .odd_alignments import alignment_of, alignments, answer


def unescaped(cell: str) -> str:
    return cell.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r")


def test_what_is_written() -> None:
    alignment = alignment_of(["a", "b", "c"], ["x", 'y "z"'], [1, -1, 0])
    assert list(matched_lines(alignment)) == [
        "source\ttarget\tprobability",
        'a\ty "z"\t1.000000',
        "c\tx\t0.333333",
    ]
    assert list(unmatched_lines(alignment)) == ["source\tcandidate\tprobability", "b\tx\t0.250000"]


def test_an_entity_without_candidates_is_marked() -> None:
    alignment = alignment_of(["a"], ["x"], [-1])
    alignment.candidate_probs[:] = 0
    assert list(unmatched_lines(alignment))[1:] == ["a\t\t0.000000"]


@given(alignments())
def test_every_entity_has_one_line_with_any_name(alignment: Alignment) -> None:
    expected = answer(alignment)
    matched, unmatched = (
        [line.split("\t") for line in list(lines(alignment))[1:]]
        for lines in (matched_lines, unmatched_lines)
    )
    assert all(len(row) == 3 and not set("\n\r") & set("".join(row)) for row in matched + unmatched)
    assert len(matched) + len(unmatched) == len(expected)
    if not any("\\" in name for name in [*expected, *map(str, expected.values())]):
        found = {unescaped(source): unescaped(target) for source, target, _ in matched}
        assert found == {source: target for source, target in expected.items() if target}
        assert {unescaped(row[0]) for row in unmatched} == set(expected) - set(found)


@given(alignments())
def test_lines_are_those_of_a_loop_over_rows(alignment: Alignment) -> None:
    alignment.candidate_probs[::2] = 0
    matched, unmatched = [], []
    for row in alignment.rows():
        candidate, prob = row.candidates[0] if row.candidates else ("", 0.0)
        if row.target is None:
            unmatched.append(f"{cell(row.source)}\t{cell(candidate)}\t{prob:.6f}")
        else:
            matched.append(f"{cell(row.source)}\t{cell(row.target)}\t{row.prob:.6f}")
    assert list(matched_lines(alignment))[1:] == matched
    assert list(unmatched_lines(alignment))[1:] == unmatched


def test_an_alignment_without_columns_of_candidates() -> None:
    alignment = alignment_of(["a", "b"], ["x"], [-1, 0])
    alignment = replace(
        alignment,
        candidates=alignment.candidates[:, :0],
        candidate_probs=alignment.candidate_probs[:, :0],
    )
    assert list(unmatched_lines(alignment))[1:] == ["a\t\t0.000000"]
    assert list(matched_lines(alignment))[1:] == ["b\tx\t0.500000"]
