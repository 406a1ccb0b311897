"""The number of threads of small computations."""

import pytest
import torch

from emea.matching.threads import one_thread


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
