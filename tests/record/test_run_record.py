"""What is written to a run's folder reads back."""

import json
import logging
import math
import string
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emea.errors import UserError
from emea.record.run_record import (
    RUN_FILE,
    SERIES_FILE,
    RunClosing,
    RunHeader,
    close_record,
    is_run_folder,
    log_point,
    read_closing,
    read_header,
    read_series,
    start_record,
)

from ..unsigned_files import unsigned

MakeHeader = Callable[..., RunHeader]


@settings(deadline=None)  # writes to the disk, however slow it is
@given(
    params=st.dictionaries(
        st.text(string.ascii_letters + ".é"),
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.floats(allow_nan=False),
    )
)
def test_header_round_trip(params: dict[str, str | int | float | bool | None]) -> None:
    header = RunHeader("f" * 32, "näme-1%", "tests", params, {"commit": "abc"}, 17)
    with tempfile.TemporaryDirectory() as folder:
        start_record(Path(folder), header)
        assert read_header(folder) == header
        assert read_closing(folder) is None
        assert read_series(folder) == []


def test_closing_keeps_the_header(tmp_path: Path, make_header: MakeHeader) -> None:
    start_record(tmp_path, make_header())
    closing = close_record(tmp_path, "FAILED", "out of memory")
    assert read_closing(tmp_path) == closing
    assert (closing.status, closing.reason) == ("FAILED", "out of memory")
    assert read_header(tmp_path) == make_header()


def test_unknown_status_is_refused(tmp_path: Path, make_header: MakeHeader) -> None:
    start_record(tmp_path, make_header())
    with pytest.raises(ValueError, match="FINISHED"):
        close_record(tmp_path, "DONE")


def test_series_is_on_disk_after_each_call(
    tmp_path: Path, make_header: MakeHeader
) -> None:
    start_record(tmp_path, make_header())
    first = log_point(tmp_path, {"hit@1": 0.5, "loss": math.inf}, step=3)
    assert read_series(tmp_path) == [first]
    second = log_point(tmp_path, {"hit@1": 1}, step=4)
    assert read_series(tmp_path) == [first, second]
    assert first.metrics == {"hit@1": 0.5, "loss": math.inf}
    assert [first.step, second.step] == [3, 4]


@pytest.mark.parametrize("keep", [1, 20, -2])
def test_torn_last_line_is_dropped_with_a_warning(
    tmp_path: Path, make_header: MakeHeader, caplog: pytest.LogCaptureFixture, keep: int
) -> None:
    start_record(tmp_path, make_header())
    first = log_point(tmp_path, {"loss": 1.0}, step=0)
    whole = (tmp_path / SERIES_FILE).read_bytes()
    log_point(tmp_path, {"loss": 2.0}, step=1)
    torn = (tmp_path / SERIES_FILE).read_bytes()[len(whole) :][:keep]
    (tmp_path / SERIES_FILE).write_bytes(whole + torn)
    with caplog.at_level(logging.WARNING):
        assert read_series(tmp_path) == [first]
    assert "incomplete last line 2" in caplog.text


def test_damage_inside_the_series_is_reported(
    tmp_path: Path, make_header: MakeHeader
) -> None:
    start_record(tmp_path, make_header())
    with open(tmp_path / SERIES_FILE, "a") as file:
        file.write('{"step": 1\n')
    log_point(tmp_path, {"loss": 1.0}, step=0)
    with pytest.raises(UserError, match="line 1"):
        read_series(tmp_path)


def test_a_resumed_run_keeps_its_points(
    tmp_path: Path, make_header: MakeHeader
) -> None:
    start_record(tmp_path, make_header())
    first = log_point(tmp_path, {"loss": 1.0}, step=0)
    with open(tmp_path / SERIES_FILE, "a") as file:
        file.write('{"step": 1, "ti')
    start_record(tmp_path, make_header())
    second = log_point(tmp_path, {"loss": 2.0}, step=1)
    assert read_series(tmp_path) == [first, second]


def test_another_run_in_the_folder_starts_from_scratch(
    tmp_path: Path, make_header: MakeHeader
) -> None:
    start_record(tmp_path, make_header("a" * 32))
    log_point(tmp_path, {"loss": 1.0}, step=0)
    close_record(tmp_path, "FINISHED")
    start_record(tmp_path, make_header("b" * 32))
    assert read_series(tmp_path) == []
    assert read_closing(tmp_path) is None


def test_folder_without_records_is_a_user_error(tmp_path: Path) -> None:
    assert not is_run_folder(tmp_path)
    with pytest.raises(UserError, match="not a run's folder"):
        read_header(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ("{}", "lacks 'run_id'"),
        ("[" * 100_000, "damaged: it is nested too deeply"),
        ('{"run_id": "\\ud800"}', "damaged: .*surrogates not allowed"),
    ],
)
def test_unusable_run_file_is_a_user_error(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / RUN_FILE).write_text(content)
    with pytest.raises(UserError, match=message):
        read_header(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", None),
        ("params", {"a": [1]}),
        ("tags", {"a": 1}),
        ("start_time", "today"),
        ("start_time", 2**62),
    ],
)
def test_header_with_an_unusable_field(
    tmp_path: Path, make_header: MakeHeader, name: str, value: object
) -> None:
    start_record(tmp_path, make_header())
    content = json.loads(unsigned(tmp_path / RUN_FILE)) | {name: value}
    (tmp_path / RUN_FILE).write_text(json.dumps(content))
    with pytest.raises(
        UserError, match=rf"run\.json is damaged: its '{name}' cannot be used"
    ):
        read_header(tmp_path)


@pytest.mark.parametrize("end_time", [None, "x", -1])
def test_closing_without_a_time(
    tmp_path: Path, make_header: MakeHeader, end_time: object
) -> None:
    start_record(tmp_path, make_header())
    content = json.loads(unsigned(tmp_path / RUN_FILE))
    content |= {"status": "FINISHED", "end_time": end_time}
    (tmp_path / RUN_FILE).write_text(json.dumps(content))
    with pytest.raises(UserError, match="is damaged: its 'end_time' cannot be used"):
        read_closing(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"step": "x", "time": 1, "metrics": {}}',
        '{"step": 1, "time": 1, "metrics": {"loss": null}}',
        '{"step": 99999999999999999999, "time": 1, "metrics": {}}',
    ],
)
def test_point_with_an_unusable_field(tmp_path: Path, line: str) -> None:
    good = '{"step": 1, "time": 1, "metrics": {"loss": 1}}'
    (tmp_path / SERIES_FILE).write_text(f"{good}\n{line}\n{good}\n")
    with pytest.raises(UserError, match="line 2 is damaged"):
        read_series(tmp_path)


def test_series_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / SERIES_FILE).mkdir()
    with pytest.raises(UserError, match=r"series\.jsonl cannot be read"):
        read_series(tmp_path)


def test_later_fields_do_not_disturb(tmp_path: Path, make_header: MakeHeader) -> None:
    start_record(tmp_path, make_header())
    content = json.loads(unsigned(tmp_path / RUN_FILE))
    content |= {"later": 1, "status": "KILLED", "end_time": 5, "reason": "r"}
    (tmp_path / RUN_FILE).write_text(json.dumps(content))
    assert read_header(tmp_path) == make_header()
    assert read_closing(tmp_path) == RunClosing("KILLED", 5, "r")
