"""Estimates of the time left, on a clock that only moves when it is told to."""

import pytest

from emea.runtime.time_left import TRAINING, TimeLeft, in_words


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_all_phases_count() -> None:
    clock = Clock()
    left = TimeLeft(
        num_steps=30, num_stages=3, phases=("search", "evaluation"), clock=clock
    )
    assert left.seconds() is None  # nothing was measured
    left.start(TRAINING)
    clock.now = 5
    left.trained(10)  # half a second per step
    assert left.seconds() is None  # the other phases were not measured
    left.start("search")
    clock.now = 7
    left.start("evaluation")
    clock.now = 8
    left.start(TRAINING)
    # two stages: 20 steps of .5 s, two searches of 2 s, two evaluations of 1 s
    assert left.seconds() == pytest.approx(10 + 4 + 2)
    clock.now = 10
    left.trained(4)
    assert left.seconds() == pytest.approx(16 * 7 / 14 + 4 + 2)
    left.skip(6)  # the training ended early
    left.start("search")
    clock.now = 11
    # one second of this search, one search, two evaluations, and ten steps
    assert left.seconds() == pytest.approx(1 + 2 + 2 + 5)


def test_the_end_has_no_time_left() -> None:
    clock = Clock()
    left = TimeLeft(4, clock=clock)
    clock.now = 1
    left.trained(4)
    assert left.seconds() == 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (119, "119 s"),
        (150, "2 min"),
        (7000, "117 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
