"""The progress line names its phase and does not promise what was never measured."""

import io
import logging
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from rich.console import Console

from emea.fit.step_block import Labels, StepBlock
from emea.runtime import progress
from emea.runtime.progress import StepProgress

PHASES = ("search", "reasoning", "evaluation")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A clock that only the test moves."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    return clock


def trained(shown: StepProgress, clock: Any, num_steps: int, seconds: float) -> None:
    clock.now += seconds
    block = StepBlock((Labels(torch.zeros(0, 2)),), num_steps)
    shown.on_train_batch_end(None, None, None, block, 0)  # type: ignore[arg-type]


def one_stage(shown: StepProgress, clock: Any, name: str) -> None:
    """Ten steps in two seconds, then 10, 20 and 5 seconds of the other phases."""
    shown.say(name)
    trained(shown, clock, 10, 2.0)
    for phase, seconds in zip(PHASES, (10.0, 20.0, 5.0), strict=True):
        shown.phase(phase)
        clock.now += seconds


def test_the_time_left_covers_all_phases(clock: Any) -> None:
    shown = StepProgress(30, 3, PHASES)
    assert shown.left() == (0.0, False)
    shown.say("first training")
    trained(shown, clock, 5, 1.0)
    assert shown.left() == (5.0, False)  # 25 steps, and phases that nobody has seen yet
    trained(shown, clock, 5, 1.0)
    for phase, seconds in zip(PHASES, (10.0, 20.0, 5.0), strict=True):
        shown.phase(phase)
        assert shown.left()[1] is False
        clock.now += seconds
    shown.say("EM iteration 1")
    assert shown.left() == (4.0 + 2 * 35.0, True)
    trained(shown, clock, 10, 2.0)
    assert shown.left() == (2.0 + 2 * 35.0, True)
    shown.phase("search")
    clock.now += 4.0
    assert shown.left() == (2.0 + 35.0 + 31.0, True)
    clock.now += 6.0
    shown.phase("reasoning")
    clock.now += 100.0  # longer than before: what comes after it is still to come
    assert shown.left() == (2.0 + 35.0 + 5.0, True)


def test_the_last_stage_ends_at_zero(clock: Any) -> None:
    shown = StepProgress(20, 2, PHASES)
    one_stage(shown, clock, "first training")
    one_stage(shown, clock, "EM iteration 1")
    assert shown.left() == (0.0, True)


def test_the_encoders_of_an_ensemble_are_one_stage(clock: Any) -> None:
    shown = StepProgress(40, 2, PHASES)
    labels = Labels(torch.zeros(0, 2))
    joint = StepBlock((labels, labels), 5)
    for stage, left in (("first training", 4.0 + 35.0), ("EM iteration 1", 0.0)):
        shown.say(f"{stage}, encoders 1 to 2")
        clock.now += 2.0
        shown.on_train_batch_end(None, None, None, joint, 0)  # type: ignore[arg-type]
        one_stage(shown, clock, f"{stage}, encoder 3")
        shown.say("next")
        assert shown.left() == (left, True)
    assert shown.share() == 1.0


def test_a_training_alone_has_no_other_phases(clock: Any) -> None:
    shown = StepProgress(20)
    trained(shown, clock, 10, 2.0)
    assert shown.left() == (2.0, True)
    shown.skip(10)
    assert shown.left() == (0.0, True)


def test_the_bar_covers_all_phases_and_never_falls(clock: Any) -> None:
    shown = StepProgress(30, 3, PHASES)
    shares = [shown.share()]
    shown.say("first training")
    trained(shown, clock, 10, 2.0)
    shares.append(shown.share())
    assert shares == [0.0, 0.0]  # nothing else was measured yet
    for phase, seconds in zip(PHASES, (10.0, 20.0, 5.0), strict=True):
        shown.phase(phase)
        shares.append(shown.share())
        clock.now += seconds
    assert shares[-1] == 3 / 4 / 3  # the fourth phase of the first of three stages
    shown.say("EM iteration 1")
    shares.append(shown.share())
    assert shares[-1] == pytest.approx(37 / (37 + 4 + 70))
    trained(shown, clock, 10, 200.0)  # slower than expected
    shares.append(shown.share())
    shown.phase("search")
    clock.now += 1000.0
    shares.append(shown.share())
    assert shares == sorted(shares) and shares[-1] < 1.0


def test_the_last_phase_ends_at_one(clock: Any) -> None:
    shown = StepProgress(10, 1, PHASES)
    one_stage(shown, clock, "first training")
    shown.say("done")
    assert shown.share() == 1.0


def terminal() -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, force_terminal=True, width=80, color_system=None), stream


def test_the_line_names_stage_and_phase(clock: Any) -> None:
    console, stream = terminal()
    with StepProgress(20, 2, PHASES, console) as shown:
        one_stage(shown, clock, "first training")
        shown._progress.refresh()
        assert "first training: evaluation" in stream.getvalue()
        assert " >0:00:32 left" in stream.getvalue()
        shown.say("EM iteration 1")
        shown._progress.refresh()
        assert "EM iteration 1: training" in stream.getvalue()
        assert " 0:00:37 left" in stream.getvalue()


def test_log_lines_are_written_above_the_progress_line(monkeypatch: pytest.MonkeyPatch) -> None:
    console, stream = terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    handler = logging.StreamHandler(stream)  # keeps the stream it began with
    logging.getLogger().addHandler(handler)
    try:
        with StepProgress(20, console=console) as shown:
            shown._progress.refresh()
            before = len(stream.getvalue())
            logging.getLogger("emea").warning("a line of the log")
            written = stream.getvalue()[before:]
        assert handler.stream is stream
    finally:
        logging.getLogger().removeHandler(handler)
    cleared, _, rest = written.partition("a line of the log")
    assert cleared.endswith("\r\x1b[2K") and rest.startswith("\n")
