"""Normal forms of literals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.data.attributes import Kind
from emea.literals.value_nodes import XSD, normalised_value

INTEGER, DOUBLE, DATE = (
    Kind("", XSD + "integer"),
    Kind("", XSD + "double"),
    Kind("", XSD + "date"),
)
PLAIN = Kind()


@pytest.mark.parametrize(
    ("spellings", "value"),
    [
        (["Café", "CAFE\u0301", " café\t"], "café"),
        (["Straße", "STRASSE"], "strasse"),
        (["\uff34okyo", "Tokyo"], "tokyo"),
        (["new  york", "New\u00a0York", "new\nyork", "New-York"], "new york"),
        (["St. John's", "st johns", "St John\u2019s"], "st johns"),
        (["1.50", "+1.5", "1.5", "1.5E0"], "1.5"),
        (["100", "1e2", "100.0"], "100"),
        (["0", "-0", "0.0"], "0"),
        (
            ["213/467-1108", "213-467-1108", "(213) 467 1108", "213.467.1108"],
            "2134671108",
        ),
        (["1987-02-11", "1987-02-11T09:00:00Z", "1987-02-11Z"], "1987-02-11"),
    ],
)
def test_spellings_of_one_value_are_equal(spellings: list[str], value: str) -> None:
    assert {normalised_value(text) for text in spellings} == {value}


def test_different_values_stay_different() -> None:
    texts = [
        "C++",
        "C#",
        "C",
        "007",
        "7",
        "2373",
        "02373",
        "12-34",
        "1987-13-11",
        "1.2.3",
    ]
    assert len({normalised_value(text) for text in texts}) == len(texts)


def test_the_datatype_decides_about_leading_zeros() -> None:
    assert normalised_value("007", INTEGER) == normalised_value("7", INTEGER) == "7"
    assert normalised_value(".50", DOUBLE) == "0.5"
    assert normalised_value("007") == "007"
    assert normalised_value("2001-05-06", DATE) == "2001-05-06"


@given(st.text(), st.sampled_from([PLAIN, INTEGER, DATE, Kind("en")]))
def test_a_normal_form_is_its_own_normal_form(text: str, kind: Kind) -> None:
    once = normalised_value(text, kind)
    assert normalised_value(once) == once
    assert once == once.strip()


@given(st.integers(-(10**6), 10**6))
def test_numbers_are_themselves(number: int) -> None:
    assert normalised_value(f"{number}.000") == str(number)
