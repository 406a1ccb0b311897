from hypothesis import given
from hypothesis import strategies as st

from emea.explain.drawing import MOST, neighbourhood

from .fabricated import case, explanation, piece, silent, source, target


def test_neighbours_by_what_they_say() -> None:
    shown = neighbourhood(explanation().asked)
    assert [one.entity.id for one in shown.source] == [11, 12, 80, 81]
    assert [one.entity.id for one in shown.target] == [21, 22, 90]
    assert [one.is_label for one in shown.source] == [True, False, False, False]
    assert [one.supports for one in shown.target] == [True, True, False]
    ends = {(link.source, link.target): link.share for link in shown.links}
    assert ends == {(0, 0): 0.6, (0, 1): 0.3, (1, 1): 0.1}
    assert shown.num_more == (0, 0)


ends = st.tuples(st.integers(0, 30), st.integers(0, 30))


@given(st.lists(ends, max_size=60), st.integers(0, 30), st.integers(0, 30))
def test_a_side_has_no_more_than_fit_and_counts_the_rest(
    found: list[tuple[int, int]], num_source: int, num_target: int
) -> None:
    pieces = tuple(piece(n, n2, 1 / len(found)) for n, n2 in found)
    shown = neighbourhood(
        case(
            1,
            pieces,
            unmatched=tuple(silent(source(100 + number)) for number in range(num_source)),
            target_unmatched=tuple(silent(target(100 + number)) for number in range(num_target)),
        )
    )
    totals = (len({n for n, _ in found}) + num_source, len({n2 for _, n2 in found}) + num_target)
    for side, more, total in zip((shown.source, shown.target), shown.num_more, totals, strict=True):
        assert len(side) == min(MOST, total)
        assert len(side) + more == total
    drawn = {one.entity.id for one in shown.source}, {one.entity.id for one in shown.target}
    assert len(shown.links) == len({(n, m) for n, m in found if n in drawn[0] and m in drawn[1]})
