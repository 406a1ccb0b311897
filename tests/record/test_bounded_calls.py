"""No caller waits longer than the limit."""

import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest

from emea.record.mlflow_tracker import BoundedCalls

HANGS = """
import time
from emea.record.mlflow_tracker import BoundedCalls
try:
    BoundedCalls(0.1).do(lambda: time.sleep(3600))
except TimeoutError as error:
    print(error)
"""


def fail() -> None:
    raise TimeoutError("of its own")


def test_results_and_errors_come_back() -> None:
    calls = BoundedCalls(60.0)
    assert calls.do(lambda: 3) == 3
    assert calls.is_idle()
    with pytest.raises(TimeoutError, match="of its own"):
        calls.do(fail)
    with pytest.raises(TimeoutError, match="of its own"):
        calls.is_idle()


def test_the_time_is_for_all_calls_together() -> None:
    calls = BoundedCalls(0.3)
    calls.do(lambda: time.sleep(0.2))
    with pytest.raises(TimeoutError, match=r"kept the run waiting for 0\.3 s"):
        calls.do(lambda: time.sleep(0.2))


def test_a_call_that_does_not_wait_loses_no_time() -> None:
    calls, is_over = BoundedCalls(0.1), Event()
    calls.begin(is_over.wait)
    assert not calls.is_idle()
    time.sleep(0.2)
    with pytest.raises(TimeoutError, match="waiting"):
        calls.is_idle()
    is_over.set()
    assert calls.do(lambda: "there was time left") == "there was time left"


def test_a_call_waits_for_the_one_before() -> None:
    calls, done = BoundedCalls(60.0), list[int]()
    calls.begin(lambda: (time.sleep(0.1), done.append(1)))
    calls.do(lambda: done.append(2))
    assert done == [1, 2]


def test_a_call_that_hangs_does_not_keep_the_process_alive() -> None:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", HANGS]
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "it kept the run waiting for 0.1 s\n")
