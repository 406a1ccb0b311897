"""The progress line names its phase and counts steps."""

import io
import logging
import sys

import pytest
import torch
from rich.console import Console

from emea.fit.step_block import Labels, StepBlock
from emea.runtime.console import logged
from emea.runtime.progress import StepProgress


def terminal() -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, force_terminal=True, width=80, color_system=None), stream


def test_the_line_names_stage_phase_and_steps() -> None:
    console, stream = terminal()
    labels = Labels(torch.zeros(0, 2))
    with StepProgress(40, console) as shown:
        shown.say("EM iteration 1")
        shown.on_train_batch_end(None, None, None, StepBlock((labels, labels), 5), 0)  # type: ignore[arg-type]
        shown.skip(20)
        shown._progress.refresh()
        assert "EM iteration 1: training" in stream.getvalue()
        assert " 30/40 " in stream.getvalue()
        shown.phase("evaluation")
        shown._progress.refresh()
        assert "EM iteration 1: evaluation" in stream.getvalue()


def test_log_lines_are_written_above_the_progress_line(monkeypatch: pytest.MonkeyPatch) -> None:
    console, stream = terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with logged(), StepProgress(20, console) as shown:
        shown._progress.refresh()
        before = len(stream.getvalue())
        logging.getLogger("emea").warning("a line of the log")
        written = stream.getvalue()[before:]
    cleared, _, rest = written.partition("WARNING a line of the log")
    assert "\r\x1b[2K" in cleared and rest.startswith("\n")
