"""Lines that cannot be used stop the reading, or are counted."""

import pytest

from emea.data.formats.input_file import NUM_NAMED, BadLines
from emea.errors import ConfigError, DataError


def test_stop_names_file_line_and_reason() -> None:
    with pytest.raises(DataError, match=r"^a\.nt, line 7: too short \(use data\.on_error=skip"):
        BadLines("a.nt").add(7, "too short")


def test_skip_counts_and_names_the_first(caplog: pytest.LogCaptureFixture) -> None:
    bad = BadLines("a.nt", "skip", "row")
    for line in range(1, NUM_NAMED + 4):
        bad.add(line, "odd")
    bad.log_others()
    assert bad.num_lines == NUM_NAMED + 3
    assert f"a.nt, row {NUM_NAMED}: odd" in caplog.text
    assert f"row {NUM_NAMED + 1}:" not in caplog.text
    assert "3 more rows skipped" in caplog.text


def test_another_word_is_refused() -> None:
    with pytest.raises(ConfigError, match="stop or skip, got 'ignore'"):
        BadLines("a.nt", "ignore")
