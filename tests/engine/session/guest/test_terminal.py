"""A guest's terminal says when its output needs no trip through the host."""

import sys
import termios

from engine.session.guest.terminal import GuestTerminal


def test_output_is_only_translated_while_nobody_has_changed_the_modes() -> None:
    terminal = GuestTerminal()
    out = terminal.streams()[1]
    try:
        assert terminal.translates_only_ends
        assert not terminal.echoes
        usual = out.io.ioctl(out.fd, termios.TCGETS, bytes(36))
        output = int.from_bytes(usual[4:8], sys.byteorder) & ~termios.ONLCR  # c_oflag
        changed = usual[:4] + output.to_bytes(4, sys.byteorder) + usual[8:]
        out.io.ioctl(out.fd, termios.TCSETS, changed)  # as a guest does
        assert not terminal.translates_only_ends
        out.io.ioctl(out.fd, termios.TCSETS, usual)
        assert terminal.translates_only_ends
        terminal.write(b"typed")
        assert terminal.echoes
        assert terminal.translates_only_ends
        terminal.write(b"\x13")  # Ctrl-S
        assert not terminal.translates_only_ends
    finally:
        terminal.close()
