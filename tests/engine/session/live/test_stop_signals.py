"""Signals that end a recording."""

import os
import signal

from engine.session.live.stop_signals import noted


def test_a_signal_is_noted_and_nothing_else() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with noted() as ending:
        os.kill(os.getpid(), signal.SIGTERM)
        ending.wait(5, (), patient=False)
        assert ending.last == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGINT)
        ending.wait(5, (), patient=False)
        assert ending.last == signal.SIGTERM  # the first one counts
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_first_ctrl_c_is_the_programs() -> None:
    with noted() as ending:
        os.kill(os.getpid(), signal.SIGINT)
        ending.wait(5, (), patient=True)
        assert [ending.last] == [0]
        os.kill(os.getpid(), signal.SIGINT)
        ending.wait(5, (), patient=True)
        assert [ending.last] == [signal.SIGINT]


def test_it_waits_for_others_too() -> None:
    read, write = os.pipe()
    with noted() as ending:
        os.write(write, b"x")
        ending.wait(5, (read,), patient=False)
        assert not ending.last
        ending.wait(0, (), patient=False)
    os.close(read)
    os.close(write)


def test_other_signals_do_not_end_it() -> None:
    before = signal.signal(signal.SIGUSR2, lambda number, frame: None)
    try:
        with noted() as ending:
            os.kill(os.getpid(), signal.SIGUSR2)
            ending.wait(5, (), patient=False)
            assert not ending.last
    finally:
        signal.signal(signal.SIGUSR2, before)
