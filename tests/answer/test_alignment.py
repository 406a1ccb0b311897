from .odd_alignments import alignment_of


def test_rows_name_what_the_arrays_number() -> None:
    first, second, third = alignment_of(["a", "b", "c"], ["x", "y"], [1, -1, 0]).rows()
    assert first[:5] == ("a", "y", 1.0, True, [("y", 0.25), ("x", 0.125)])
    assert second[:5] == ("b", None, 0.0, False, [("x", 0.25), ("x", 0.125)])
    assert first[5:] == second[5:] == (None, None)  # the graphs have no labels
    assert third[:4] == ("c", "x", 1 / 3, False)


def test_fewer_candidates_on_demand_and_none_without_a_chance() -> None:
    alignment = alignment_of(["a"], ["x", "y"], [1])
    assert next(alignment.rows(1)).candidates == [("y", 0.25)]
    alignment.candidate_probs[0, 1] = 0
    assert next(alignment.rows()).candidates == [("y", 0.25)]
