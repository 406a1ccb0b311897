"""Writes in a thread: their order, their errors and their end."""

import threading

import pytest

from emea.record.checked_files import BackgroundWriter


def test_a_write_runs_while_the_caller_continues() -> None:
    may_end, done = threading.Event(), []

    def work() -> None:
        assert may_end.wait(10)
        done.append("written")

    with BackgroundWriter() as writer:
        writer.write(work)
        assert not done
        may_end.set()
        writer.wait()
        assert done == ["written"]


def test_writes_do_not_overlap() -> None:
    lines: list[str] = []

    def work(name: str) -> None:
        lines.extend([f"{name} begins", f"{name} ends"])

    with BackgroundWriter() as writer:
        for name in "abc":
            writer.write(lambda name=name: work(name))  # type: ignore[misc]
    assert lines == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]


def fail() -> None:
    raise OSError("disk full")


def test_the_next_call_raises_the_error_of_a_write() -> None:
    with BackgroundWriter() as writer:
        writer.write(fail)
        with pytest.raises(OSError, match="disk full"):
            writer.write(lambda: None)
        writer.wait()  # it is raised once


def test_the_end_raises_the_error_of_the_last_write() -> None:
    with pytest.raises(OSError, match="disk full"), BackgroundWriter() as writer:
        writer.write(fail)


def test_an_error_of_the_caller_lets_the_last_write_end() -> None:
    may_end, done = threading.Event(), []

    def work() -> None:
        assert may_end.wait(10)
        done.append("written")

    with pytest.raises(KeyboardInterrupt), BackgroundWriter() as writer:
        writer.write(work)
        may_end.set()
        raise KeyboardInterrupt
    assert done == ["written"]


def test_an_error_of_the_caller_does_not_hide_that_of_the_last_write(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(KeyboardInterrupt), BackgroundWriter() as writer:
        writer.write(fail)
        raise KeyboardInterrupt
    assert "The last write failed, too: disk full" in caplog.text
