"""The number of threads of small computations."""

from threading import get_ident

import pytest
import torch

from emea.runtime import threads
from emea.runtime.threads import one_thread


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("wanted", "expected"), [(True, 1), (False, 2)])
def test_threads_change_within_the_context_only(wanted, expected):
    with one_thread(wanted):
        assert torch.get_num_threads() == expected
    assert torch.get_num_threads() == 2


def test_threads_are_restored_after_an_error():
    with pytest.raises(RuntimeError), one_thread():
        raise RuntimeError
    assert torch.get_num_threads() == 2


def test_a_decorated_function_may_be_called_repeatedly():
    counted = one_thread()(torch.get_num_threads)
    assert [counted(), counted(), torch.get_num_threads()] == [1, 1, 2]


@pytest.mark.parametrize(
    ("max_threads", "others"), [(1, False), (2, True), (None, True)]
)
def test_calls_use_at_most_the_given_threads(
    max_threads: int | None, others: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "available_threads", lambda: 3)
    calls = [(number,) for number in range(4)]
    found = threads.in_threads(lambda number: (number, get_ident()), calls, max_threads)
    assert [number for number, _ in found] == [0, 1, 2, 3]
    used = {thread for _, thread in found}
    assert get_ident() in used
    assert (len(used) > 1) == others
    assert len(used) <= (max_threads or 3)
