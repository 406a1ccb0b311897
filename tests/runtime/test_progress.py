"""The progress line names its phase and counts steps."""

import io
import logging
import sys

import pytest
import torch
from rich.console import Console

from emea.fit.step_block import Labels, StepBlock
from emea.fit.training_loop import CountedBlocks
from emea.runtime.console import logged
from emea.runtime.progress import StepProgress


def terminal() -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(
        file=stream, force_terminal=True, width=80, color_system=None
    ), stream


def test_the_line_names_stage_phase_and_steps() -> None:
    console, stream = terminal()
    labels = Labels(torch.zeros(0, 2))
    with StepProgress(40, console) as shown:
        shown.say("EM iteration 1")
        CountedBlocks(shown).on_block_end(None, StepBlock((labels, labels), 5), False)  # type: ignore[arg-type]
        shown.count(20)
        shown._progress.refresh()
        assert "EM iteration 1: training" in stream.getvalue()
        assert " 30/40 " in stream.getvalue()
        shown.phase("evaluation")
        shown._progress.refresh()
        assert "EM iteration 1: evaluation" in stream.getvalue()


def test_a_line_of_the_log_says_how_far_it_is_and_what_is_left() -> None:
    labels = Labels(torch.zeros(0, 2))
    with StepProgress(40, Console(file=io.StringIO()), 1, ("search",)) as shown:
        shown.say("EM iteration 1")
        CountedBlocks(shown).on_block_end(None, StepBlock((labels, labels), 5), False)  # type: ignore[arg-type]
        # nothing says how long a search takes
        assert shown.described() == "EM iteration 1: training, 10 of 40 steps"
        shown.skip(30)
        shown.phase("search")
        shown.say("EM iteration 2")
        assert (
            shown.described()
            == "EM iteration 2: training, 40 of 40 steps, about 0 s left"
        )


def test_log_lines_are_written_above_the_progress_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console, stream = terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with logged(), StepProgress(20, console) as shown:
        shown._progress.refresh()
        before = len(stream.getvalue())
        logging.getLogger("emea").warning("a line of the log")
        written = stream.getvalue()[before:]
    cleared, _, rest = written.partition("WARNING a line of the log")
    assert "\r\x1b[2K" in cleared and rest.startswith("\n")
