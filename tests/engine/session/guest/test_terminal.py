"""A guest's terminal says when its output needs no trip through the host."""

import termios

from engine.session.guest.terminal import GuestTerminal


def test_output_is_only_translated_while_nobody_has_changed_the_modes() -> None:
    terminal = GuestTerminal()
    out = terminal.streams()[1]
    try:
        assert terminal.translates_only_ends
        assert not terminal.echoes
        modes = termios.tcgetattr(out.fd)
        usual = list(modes)
        modes[1] &= ~termios.ONLCR
        termios.tcsetattr(out.fd, termios.TCSANOW, modes)
        assert not terminal.translates_only_ends
        termios.tcsetattr(out.fd, termios.TCSANOW, usual)
        assert terminal.translates_only_ends
        terminal.write(b"typed")
        assert terminal.echoes
        assert terminal.translates_only_ends
        terminal.write(b"\x13")  # Ctrl-S
        assert not terminal.translates_only_ends
    finally:
        terminal.close()
