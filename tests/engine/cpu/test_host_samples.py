"""Samples of this process's own time lie in what it executes, and leave no trace behind."""

import os
import signal
import time

import pytest

from engine.cpu import native
from engine.cpu.host_samples import HostSamples


def spend(seconds: float) -> None:
    """Spend CPU time, so that some samples are taken."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(1000))


@pytest.mark.skipif(not native.possible(), reason="no host code on this machine")
def test_samples_are_addresses_of_code() -> None:
    samples = HostSamples()
    assert samples.start()
    spend(0.1)
    found = samples.stop()
    with open("/proc/self/maps") as lines:
        rows = [line.split() for line in lines]
    code = [tuple(int(word, 16) for word in row[0].split("-")) for row in rows if "x" in row[1]]
    assert found
    assert all(any(low <= address < high for low, high in code) for address in found)


@pytest.mark.skipif(not native.possible(), reason="no host code on this machine")
def test_the_signal_is_as_it_was_before() -> None:
    """A program of ours that was given SIGPROF has it again, and nothing ends the process."""
    heard: list[int] = []
    before = signal.signal(signal.SIGPROF, lambda number, frame: heard.append(number))
    try:
        samples = HostSamples()
        assert samples.start()
        spend(0.03)
        samples.stop()
        assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
        os.kill(os.getpid(), signal.SIGPROF)
        assert heard == [signal.SIGPROF]
    finally:
        signal.signal(signal.SIGPROF, before)


def test_without_host_code_nothing_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    samples = HostSamples()
    assert not samples.start()
    assert samples.stop() == []
