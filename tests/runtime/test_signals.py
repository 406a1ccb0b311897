"""SIGTERM and SIGHUP end a run like Ctrl-C."""

import os
import signal

import pytest

from emea.runtime import signals
from emea.runtime.signals import exit_status, signals_as_interrupt, was_terminated


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.usefixtures("default_signals")
def test_a_signal_interrupts(
    number: signal.Signals, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "_received", [])
    before = signal.getsignal(number)
    assert exit_status() == 130 and not was_terminated()
    with pytest.raises(KeyboardInterrupt), signals_as_interrupt():
        os.kill(os.getpid(), number)
    assert exit_status() == status and was_terminated()
    assert signal.getsignal(number) == before


def test_a_signal_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_as_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
