"""Terminals of machines: which keys are whose, and what is put back at the end."""

import os
import pty
import termios

from engine.cli.machine_run import typed_keys


def test_keys_come_as_they_are_typed_and_ctrl_c_is_the_commands() -> None:
    """No echo, no lines, signals as before; all of it is put back."""
    ours, theirs = pty.openpty()
    try:
        before = termios.tcgetattr(theirs)
        assert before[3] & termios.ECHO
        assert before[3] & termios.ICANON
        with typed_keys(theirs):
            flags = termios.tcgetattr(theirs)[3]
            assert not flags & (termios.ECHO | termios.ICANON)
            assert flags & termios.ISIG
        assert termios.tcgetattr(theirs) == before
    finally:
        os.close(ours)
        os.close(theirs)


def test_what_is_no_terminal_is_left_alone() -> None:
    reading, writing = os.pipe()
    with typed_keys(reading), typed_keys(None):
        pass
    os.close(reading)
    os.close(writing)
