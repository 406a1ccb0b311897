"""Numbers on the command line."""

from argparse import ArgumentTypeError

import pytest

from emea.cli.arguments import AT_LEAST_ONE, data_settings, number_in
from emea.config.composition import composed
from emea.setting import SHARE, SHARE_ABOVE_ZERO, Range


@pytest.mark.parametrize(
    ("text", "allowed", "kind", "sentence"),
    [
        ("0", AT_LEAST_ONE, int, "must be a whole number of at least 1, got 0"),
        ("1.5", AT_LEAST_ONE, int, "must be a whole number of at least 1, got 1.5"),
        ("-1", Range(0), int, "must be a whole number of at least 0, got -1"),
        ("x", SHARE, float, "must be a number from 0 to 1, got x"),
        ("nan", SHARE, float, "must be a number from 0 to 1, got nan"),
        ("inf", Range(0), float, "must be a number of at least 0, got inf"),
        ("0", SHARE_ABOVE_ZERO, float, "must be a number above 0 and at most 1, got 0"),
    ],
)
def test_other_texts_are_refused(
    text: str, allowed: Range, kind: type, sentence: str
) -> None:
    with pytest.raises(ArgumentTypeError) as refused:
        number_in(allowed, kind)(text)
    assert str(refused.value) == sentence


def test_numbers_have_the_kind() -> None:
    assert repr(number_in(AT_LEAST_ONE, int)("7")) == "7"
    assert repr(number_in(SHARE, float)("1")) == "1.0"
    large = 2**53 + 1  # not a float
    assert number_in(AT_LEAST_ONE, int)(str(large)) == large


@pytest.mark.parametrize("name", ["it's.tsv", r"a\b", r"\'", "c\\", "a, b=[1]"])
def test_names_of_files_may_have_any_sign(name: str) -> None:
    assert composed(["data=files", *data_settings({"links": name})]).data.links == name
