"""The line discipline of a terminal: editing, echo, signals, flow (drivers/tty/n_tty.c)."""

import re
from collections import deque
from collections.abc import Callable
from typing import Final

from engine.linux.fs import termios as tio

_SIGNALS: Final = {tio.VINTR: 2, tio.VQUIT: 3, tio.VSUSP: 20}
_LINE: Final = 4096
"""N_TTY_BUF_SIZE: bytes that wait for a reader, and echoes that wait for the output,"""
_TYPED: Final = 8192
"""and those in front of them (the limit of a pseudo-terminal's tty_buffer)."""
_OUTPUT: Final = _LINE + _TYPED
_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
_EDITING: Final = (
    tio.ISTRIP | tio.INLCR | tio.IGNCR | tio.ICRNL | tio.IUCLC | tio.IXON | tio.PARMRK
)

FLUSH_READ, FLUSH_WRITE, STOP, START, NO_STOP, DO_STOP, IOCTL = 1, 2, 4, 8, 16, 32, 64
"""TIOCPKT_*: what a master in packet mode is told."""


def _control(byte: int) -> bool:
    return byte < 32 or byte == 127


_CAPITALS: Final = bytes((*range(65, 91), *range(0xC0, 0xD7), *range(0xD8, 0xDF)))
_SMALL: Final = bytes((*range(97, 123), *range(0xDF, 0xF7), *range(0xF8, 0x100)))
"""Letters as the kernel has them (lib/ctype.c): those of Latin 1."""
_LOWER: Final = bytes.maketrans(_CAPITALS, bytes(each + 32 for each in _CAPITALS))
_UPPER: Final = bytes.maketrans(_SMALL, bytes(each - 32 for each in _SMALL))
_WORD: Final = frozenset(_CAPITALS + _SMALL + b"_0123456789")


class LineDiscipline:
    """A line discipline: between those who type and those who read.

    Positions count bytes from the first one that was ever there.

    Attributes:
        settings: how it works; changed by `change`.
        output: what the terminal shows and nobody has taken yet.
        stopped: the output stands still: by a key, or (`held`) by a call.
        held: see there.
        packet: events are noted in `status`, for a master that wants to hear of them.
        status: TIOCPKT_* bits.
    """

    def __init__(self, signal: Callable[[int], object]) -> None:
        """A terminal with the usual settings.

        Args:
            signal: called with the number of a signal that a key sends.
        """
        self.settings = tio.DEFAULTS
        self.output = bytearray()
        self.stopped = self.held = self.packet = False
        self.status = 0
        self._signal = signal
        self._typed = bytearray()
        self._buffer = bytearray()
        self._ends: deque[int] = deque()
        self._tail = self._canon = 0
        self._echoes = bytearray()
        self._column = self._canon_column = 0
        self._erasing = self._literal = False

    # -- output ------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """Bytes of output that it takes now."""
        return 0 if self.stopped else max(_OUTPUT - len(self.output), 0)

    def write(self, data: bytes) -> int | None:
        """Bytes of a program: their number, None if it has to wait."""
        self._release()
        room = self.room
        if not room:
            return None
        piece = data[:room]
        self.output += self._processed(piece) if self.settings.oflag & tio.OPOST else piece
        return len(piece)

    def _processed(self, data: bytes) -> bytes:
        """Output as it is shown (do_output_char); text between control characters at once."""
        out, start = bytearray(), 0
        for found in _CONTROL.finditer(data):
            at = found.start()
            out += self._text(data[start:at])
            out += self._controlled(data[at])
            start = at + 1
        return bytes(out + self._text(data[start:]))

    def _text(self, data: bytes) -> bytes:
        wide = len(data)
        if self.settings.iflag & tio.IUTF8:
            wide -= sum(byte & 0xC0 == 0x80 for byte in data)
        self._column += wide
        return data.translate(_UPPER) if self.settings.oflag & tio.OLCUC else data

    def _controlled(self, byte: int) -> bytes:
        oflag = self.settings.oflag
        if byte == 10:
            if oflag & (tio.ONLRET | tio.ONLCR):
                self._column = 0
            self._canon_column = self._column
            return b"\r\n" if oflag & tio.ONLCR else b"\n"
        if byte == 13:
            if oflag & tio.ONOCR and not self._column:
                return b""
            if oflag & tio.OCRNL:
                if oflag & tio.ONLRET:
                    self._canon_column = self._column = 0
                return b"\n"
            self._canon_column = self._column = 0
        elif byte == 9:
            spaces = 8 - self._column % 8
            self._column += spaces
            if oflag & tio.XTABS == tio.XTABS:
                return b" " * spaces
        elif byte == 8:
            self._column = max(self._column - 1, 0)
        return bytes((byte,))

    def stop(self) -> None:
        """The output stands still."""
        if not self.stopped:
            self.stopped = True
            self._note(STOP, START)

    def start(self) -> None:
        """Let output go on."""
        if self.stopped and not self.held:
            self.stopped = False
            self._note(START, STOP)
            self._release()

    def _note(self, event: int, undone: int = 0) -> None:
        if self.packet:
            self.status = self.status & ~undone | event

    def _release(self) -> None:
        if self._echoes and not self.stopped and len(self.output) < _OUTPUT:
            self.output += self._echoes
            self._echoes.clear()

    def _echo_raw(self, data: bytes) -> None:
        shown = data
        if data == b"\xff":  # it marks commands among the echoes and is never worked on
            self._column += 1
        elif self.settings.oflag & tio.OPOST:
            shown = self._processed(data)
        if len(self._echoes) < _LINE:
            self._echoes += shown
        self._release()

    def _echo(self, byte: int) -> None:
        if self.settings.lflag & tio.ECHOCTL and _control(byte) and byte != 9:
            self._echoes += bytes((94, byte ^ 64))
            self._column += 2
            self._release()
        else:
            self._echo_raw(bytes((byte,)))

    # -- input -------------------------------------------------------------------------------

    def type(self, data: bytes) -> int | None:
        """Bytes that are typed: how many of them, None if there is no room for any."""
        room = _TYPED - len(self._typed)
        if room <= 0:
            return None
        self._typed += data[:room]
        self.receive()
        return min(len(data), room)

    @property
    def typing_room(self) -> int:
        """Bytes that can be typed now."""
        return _TYPED - len(self._typed)

    def receive(self) -> None:
        """Take in what has been typed, as far as there is room (n_tty_receive_buf_common)."""
        typed, buffer = self._typed, self._buffer
        while typed:
            room = _LINE - 1 - len(buffer)
            iflag, lflag = self.settings.iflag, self.settings.lflag
            if not iflag & _EDITING and not lflag & (tio.ISIG | tio.ICANON | tio.ECHO):
                if room <= 0:
                    return
                buffer += typed[:room]
                del typed[:room]
                continue
            if room <= 0:
                if not lflag & tio.ICANON or self._canon != self._tail:
                    return
                if room < 0:  # a line that is too long keeps only its last byte up to date
                    buffer.pop()
            byte = typed.pop(0)
            if self._literal:
                self._literal = False
                self._plain(self._stripped(byte))
            else:
                self._typed_one(byte)

    @property
    def _head(self) -> int:
        return self._tail + len(self._buffer)

    def _plain(self, byte: int) -> None:
        """A byte without a meaning."""
        if self.stopped and self.settings.iflag & tio.IXON and self.settings.iflag & tio.IXANY:
            self.start()
        if self.settings.lflag & tio.ECHO:
            self._finish_erasing()
            if self._canon == self._head:
                self._canon_column = self._column
            self._echo(byte)
        self._put(byte)

    def _put(self, byte: int) -> None:
        if byte == 0xFF and self.settings.iflag & tio.PARMRK:
            self._buffer.append(byte)
        self._buffer.append(byte)

    def _stripped(self, byte: int) -> int:
        iflag = self.settings.iflag
        if iflag & tio.ISTRIP:
            byte &= 0x7F
        lower = iflag & tio.IUCLC and self.settings.lflag & tio.IEXTEN
        return _LOWER[byte] if lower else byte

    def _typed_one(self, byte: int) -> None:
        iflag, _, _, lflag, _, keys, _, _ = self.settings
        byte = self._stripped(byte)
        if lflag & tio.EXTPROC:
            self._buffer.append(byte)
            return
        if byte and iflag & tio.IXON and byte in (keys[tio.VSTART], keys[tio.VSTOP]):
            if byte == keys[tio.VSTART]:
                self.start()
            else:
                self.stop()
            return
        if byte and lflag & tio.ISIG:
            for key, number in _SIGNALS.items():
                if keys[key] == byte:
                    self._interrupt(byte, number)
                    return
        returned = byte == 13
        if returned:
            if iflag & tio.IGNCR:
                return
            byte = 10 if iflag & tio.ICRNL else byte
        elif byte == 10 and iflag & tio.INLCR:
            byte = 13
        if lflag & tio.ICANON and self._edited(byte):
            return
        if byte == 10 and returned and lflag & tio.ECHO:
            self._finish_erasing()
            self._echo_raw(b"\n")
            self._put(byte)
        else:
            self._plain(byte)

    def _interrupt(self, byte: int, number: int) -> None:
        self._signal(number)
        if not self.settings.lflag & tio.NOFLSH:
            self._echoes.clear()
            self.flush_output()
            self._reset()
            self._note(FLUSH_READ)
        if self.settings.iflag & tio.IXON:
            self.start()
        if self.settings.lflag & tio.ECHO:
            self._echo(byte)

    def _edited(self, byte: int) -> bool:
        """Do what a key does in a line; False if it is none."""
        lflag, keys = self.settings.lflag, self.settings.keys
        extended, echo = lflag & tio.IEXTEN, lflag & tio.ECHO
        if byte == 10:
            if lflag & (tio.ECHO | tio.ECHONL):
                self._echo_raw(b"\n")
            self._end_line(10)
        elif not byte:
            return False
        elif byte in (keys[tio.VERASE], keys[tio.VKILL]) or (
            extended and byte == keys[tio.VWERASE]
        ):
            self._erase(byte)
        elif extended and byte == keys[tio.VLNEXT]:
            self._literal = True
            if echo:
                self._finish_erasing()
                if lflag & tio.ECHOCTL:
                    self._echo_raw(b"^\b")
        elif extended and echo and byte == keys[tio.VREPRINT]:
            self._finish_erasing()
            self._echo(byte)
            self._echo_raw(b"\n")
            for each in self._buffer[self._canon - self._tail :]:
                self._echo(each)
        elif byte == keys[tio.VEOF]:
            self._end_line(0)
        elif byte == keys[tio.VEOL] or (extended and byte == keys[tio.VEOL2]):
            if echo:
                if self._canon == self._head:
                    self._canon_column = self._column
                self._echo(byte)
            self._end_line(byte)
        else:
            return False
        return True

    def _end_line(self, byte: int) -> None:
        self._ends.append(self._head)
        self._buffer.append(byte)
        self._canon = self._head

    def _finish_erasing(self) -> None:
        if self._erasing:
            self._erasing = False
            self._echo_raw(b"/")

    def _erase(self, key: int) -> None:
        """The keys that take back a byte, a word, the line (eraser)."""
        settings, buffer = self.settings, self._buffer
        lflag, keys, begin = settings.lflag, settings.keys, self._canon - self._tail
        if len(buffer) == begin:
            return
        one = key == keys[tio.VERASE]
        word = not one and key == keys[tio.VWERASE] and bool(lflag & tio.IEXTEN)
        if not one and not word:
            shown = tio.ECHOK | tio.ECHOKE | tio.ECHOE
            if not lflag & tio.ECHO or lflag & shown != shown:
                del buffer[begin:]
                if lflag & tio.ECHO:
                    self._finish_erasing()
                    self._echo(keys[tio.VKILL])
                    if lflag & tio.ECHOK:
                        self._echo_raw(b"\n")
                return
        seen = False
        while len(buffer) > begin:
            at = len(buffer) - 1
            while self._continues(buffer[at]) and at > begin:
                at -= 1
            byte = buffer[at]
            if self._continues(byte):
                break
            if word:
                if byte in _WORD:
                    seen = True
                elif seen:
                    break
            gone = bytes(buffer[at:])
            del buffer[at:]
            if lflag & tio.ECHO:
                self._show_erased(gone, one=one)
            if one:
                break
        if len(buffer) == begin and lflag & tio.ECHO:
            self._finish_erasing()

    def _continues(self, byte: int) -> bool:
        return bool(self.settings.iflag & tio.IUTF8) and byte & 0xC0 == 0x80

    def _show_erased(self, gone: bytes, *, one: bool) -> None:
        lflag, byte = self.settings.lflag, gone[0]
        if lflag & tio.ECHOPRT:
            if not self._erasing:
                self._echo_raw(b"\\")
                self._erasing = True
            self._echo(byte)
            self._echo_raw(gone[1:])
        elif one and not lflag & tio.ECHOE:
            self._echo(self.settings.keys[tio.VERASE])
        elif byte == 9:
            self._erase_tab()
        elif not _control(byte) or lflag & tio.ECHOCTL:
            self._echo_raw(b"\b \b" * (2 if _control(byte) else 1))

    def _erase_tab(self) -> None:
        count, after_tab = 0, False
        for byte in reversed(self._buffer[self._canon - self._tail :]):
            if byte == 9:
                after_tab = True
                break
            if _control(byte):
                count += 2 if self.settings.lflag & tio.ECHOCTL else 0
            elif not self._continues(byte):
                count += 1
        if not after_tab:
            count += self._canon_column
        back = 8 - count % 8
        self._column = max(self._column - back, 0)
        self._echoes += b"\b" * back
        self._release()

    # -- reading -----------------------------------------------------------------------------

    def waiting(self) -> int:
        """Bytes that can be read at once (FIONREAD)."""
        if not self.settings.lflag & tio.ICANON:
            return len(self._buffer)
        ends = sum(not self._buffer[end - self._tail] for end in self._ends)
        return self._canon - self._tail - ends

    def ready(self, wanted: int = 1) -> bool:
        """True if there is a line, or (without lines) so many bytes."""
        if self.settings.lflag & tio.ICANON:
            return self._canon != self._tail
        return len(self._buffer) >= wanted

    def take(self, count: int) -> bytes | None:
        """Up to `count` bytes for a reader, None if there is nothing."""
        if not self.ready():
            return None
        if self.settings.lflag & tio.ICANON:
            data = self._take_line(count)
        else:
            data = self._drop(min(count, len(self._buffer)))
            self._canon = self._tail
        self.receive()
        return data

    def _drop(self, count: int) -> bytes:
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        self._tail += count
        return data

    def _take_line(self, count: int) -> bytes:
        size = min(count, self._canon - self._tail)
        end = self._ends[0] - self._tail if self._ends else size
        if end < size:
            self._ends.popleft()
            data = self._drop(end + 1)
            return data if data[-1] else data[:-1]
        data = self._drop(size)
        if self._ends and self._ends[0] == self._tail and not self._buffer[0]:
            self._ends.popleft()  # the end of what was asked for is that of the file, too
            self._drop(1)
        return data

    # -- settings ----------------------------------------------------------------------------

    def change(self, new: tio.Settings) -> None:
        """Work by other settings (n_tty_set_termios, pty_set_termios)."""
        old, self.settings = self.settings, new.of_pty()
        if old.flow != new.flow:
            self._note(DO_STOP if new.flow else NO_STOP, DO_STOP | NO_STOP)
        if (old.lflag | new.lflag) & tio.EXTPROC:
            self._note(IOCTL)
        if (old.lflag ^ new.lflag) & (tio.ICANON | tio.EXTPROC):
            self._ends.clear()
            self._canon = self._tail
            if new.lflag & tio.ICANON and self._buffer:
                self._canon = self._head
                self._ends.append(self._canon - 1)
            self._erasing = self._literal = False
        if not new.iflag & tio.IXON and old.iflag & tio.IXON:
            self.start()
        self.receive()

    def flush_input(self) -> None:
        """Forget what has not been read (tcflush)."""
        self._reset()
        self._note(FLUSH_READ)
        self.receive()

    def flush_output(self) -> None:
        """Forget output that is still on its way: what a reader's own buffer has is not."""
        del self.output[_LINE - 1 :]
        self._note(FLUSH_WRITE)

    def _reset(self) -> None:
        self._buffer.clear()
        self._ends.clear()
        self._canon = self._tail
        self._erasing = self._literal = False
