"""Pseudo-terminals: two ends with a line discipline between them (drivers/tty/pty.c)."""

import errno
import struct
from collections.abc import Callable
from typing import Final

from engine.linux.clock import Clock
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs import termios as tio
from engine.linux.fs.discipline import LineDiscipline
from engine.linux.fs.terminal import REQUESTS, SIGTTIN, SIGTTOU, TIOCSPGRP, Jobs, Terminal
from engine.linux.fs.vfs import IoctlCaller, Node, OpenFile

_SET: Final = {
    tio.TCSETS: (False, False),
    tio.TCSETSW: (False, False),
    tio.TCSETSF: (False, True),
    tio.TCSETS2: (True, False),
    tio.TCSETSW2: (True, False),
    tio.TCSETSF2: (True, True),
}
"""(struct termios2, forgets the input) by request."""
_TTOU: Final = frozenset({*_SET, tio.TCFLSH, tio.TCXONC, tio.TCSBRK, tio.TCSBRKP})
"""Requests that only the foreground may make (tty_check_change)."""
_SIGWINCH: Final = 28
_KEYS: Final = (2, 3, 20)
"""SIGINT, SIGQUIT and SIGTSTP: what TIOCSIG sends."""
_TENTH: Final = 100_000_000
_FULL: Final = fl.READABLE | fl.WRITABLE | fl.POLLHUP | fl.POLLERR
_MAJOR: Final = 136


class Pty:
    """A pair of a master and a slave.

    Attributes:
        number: of /dev/pts/N.
        clock: the guest's time.
        node: the slave's.
        terminal: the slave as job control sees it.
        discipline: what stands between the ends.
        size: struct winsize.
        locked: the slave cannot be opened yet (unlockpt).
        slaves: open files of the slave.
        exclusive: the slave cannot be opened once more (TIOCEXCL on it).
        used: it has been opened.
        hung: the master is closed.
        gone: called when the master is closed.
        activity: counts what happened, for edge-triggered epoll.
        printed: the same of what came for the master.
        taken: the same of reads that made room for what it types.
    """

    def __init__(self, number: int, jobs: Jobs, clock: Clock, node: Node) -> None:
        self.number, self.clock, self.node = number, clock, node
        self.terminal = Terminal(jobs, lambda flags: SlaveFile(self, flags, self.node))
        self.terminal.device = _MAJOR << 8 | number
        self.discipline = LineDiscipline(self.signal)
        self.size = bytes(8)
        self.locked = True
        self.slaves = self.activity = self.printed = self.taken = 0
        self.exclusive = self.used = self.hung = False
        self.gone: Callable[[], object] = lambda: None

    def signal(self, number: int) -> None:
        """Send a signal to the foreground."""
        if self.terminal.group:
            self.terminal.jobs.signal(self.terminal.group, number)

    def open_slave(self, flags: int) -> "SlaveFile":
        """Open the slave; a session's leader without a terminal gets it as its own."""
        if self.locked or self.hung:
            raise LinuxError(errno.EIO)
        if self.exclusive:
            raise LinuxError(errno.EBUSY)
        file = SlaveFile(self, flags, self.node)
        readable = flags & fl.O_ACCMODE != fl.O_WRONLY
        if not flags & fl.O_NOCTTY and readable and not self.terminal.session:
            self.terminal.offer()
        return file

    def hang_up(self) -> None:
        """The master is closed: the session loses its terminal."""
        self.hung = True
        self.activity += 1
        self.gone()
        if self.terminal.session:
            self.terminal.jobs.hang_up(self.terminal)

    def ioctl(self, caller: IoctlCaller, request: int, argument: int) -> int:
        """Device control that is the same on both ends."""
        memory, order = caller.memory, caller.arch.byteorder
        discipline = self.discipline
        if request in (tio.TCGETS, tio.TCGETS2):
            speeds = request == tio.TCGETS2
            memory.write(argument, discipline.settings.pack(order, speeds=speeds))
        elif request in _SET:
            speeds, forget = _SET[request]
            raw = bytes(memory.read(argument, tio.Settings.size(speeds=speeds)))
            if forget:
                discipline.flush_input()
            before = None if speeds else discipline.settings
            discipline.change(tio.Settings.unpack(raw, order, before))
            self.activity += 1
        elif request == tio.TIOCGWINSZ:
            memory.write(argument, self.size)
        elif request == tio.TIOCSWINSZ:
            size = bytes(memory.read(argument, 8))
            if size != self.size:
                self.size = size
                self.signal(_SIGWINCH)
        elif request == tio.TIOCSETD:
            if _int(caller, argument):
                raise LinuxError(errno.EINVAL)
        elif request == tio.TIOCSTI:
            raise LinuxError(errno.EIO)
        elif request in (tio.TIOCOUTQ, tio.TIOCGETD):
            _put(caller, argument, 0)
        elif request == tio.TIOCGDEV:
            _put(caller, argument, _MAJOR << 8 | self.number)
        elif request not in (tio.TCSBRK, tio.TCSBRKP, tio.TIOCSBRK, tio.TIOCCBRK):
            raise LinuxError(errno.ENOTTY)
        return 0

    def flush(self, queue: int, *, master: bool) -> None:
        """TCFLSH: forget what has not been read (0), what is on its way (1), or both (2)."""
        if queue not in (0, 1, 2):
            raise LinuxError(errno.EINVAL)
        if master:
            if queue in (0, 2):
                self.discipline.output.clear()
            return
        if queue in (0, 2):
            self.discipline.flush_input()
        if queue in (1, 2):
            self.discipline.flush_output()
        self.activity += 1

    def hold(self, action: int) -> None:
        """TCXONC of the slave: hold the output, let it go on, or have the other end do so."""
        discipline = self.discipline
        if action == 0:
            discipline.held = True
            discipline.stop()
        elif action == 1:
            discipline.held = False
            discipline.start()
        elif action in (2, 3):
            key = discipline.settings.keys[tio.VSTOP if action == 2 else tio.VSTART]
            if key:
                discipline.output.append(key)
        else:
            raise LinuxError(errno.EINVAL)
        self.activity += 1


def _u32(argument: int) -> int:
    return argument & 0xFFFFFFFF


def _int(caller: IoctlCaller, address: int) -> int:
    order = "<" if caller.arch.byteorder == "little" else ">"
    (value,) = struct.unpack(order + "i", caller.memory.read(address, 4))
    return int(value)


def _put(caller: IoctlCaller, address: int, value: int) -> None:
    order = "<" if caller.arch.byteorder == "little" else ">"
    caller.memory.write(address, struct.pack(order + "i", value))


class SlaveFile(OpenFile):
    """/dev/pts/N."""

    is_terminal = True
    timed = True

    def __init__(self, pty: Pty, flags: int, node: Node) -> None:
        super().__init__(flags, node)
        self.pty = pty
        self.terminal = pty.terminal
        self.title = b"/dev/pts/%d" % pty.number
        self._gives_up: int | None = None
        self._seen = 0
        pty.slaves += 1
        pty.used = True

    def on_close(self) -> None:
        """The last descriptor is gone."""
        self.pty.slaves -= 1
        self.pty.activity += 1

    def start_reading(self) -> None:
        """A read begins: the time that VTIME gives it with it."""
        self._gives_up, self._seen = None, 0

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        pty = self.pty
        if pty.hung:
            return b""
        pty.terminal.check(SIGTTIN)
        discipline = pty.discipline
        settings = discipline.settings
        if settings.lflag & tio.ICANON:
            return self._took(discipline.take(count))
        least, patience = settings.keys[tio.VMIN], settings.keys[tio.VTIME] * _TENTH
        there = discipline.waiting()
        if there >= min(max(least, 1), count) or (there and self.nonblocking):
            return self._took(discipline.take(count))
        if self.nonblocking:
            return None if least or patience else b""
        if not patience:
            return None if least else b""
        if self._gives_up is None or there > self._seen:  # each byte has time of its own
            self._seen = there
            if there or not least:
                self._gives_up = pty.clock.monotonic() + patience
        if self._gives_up is not None and pty.clock.monotonic() >= self._gives_up:
            return self._took(discipline.take(count)) if there else b""
        return None

    def _took(self, data: bytes | None) -> bytes | None:
        if data is not None:
            self.pty.activity += 1
            self.pty.taken += 1
        return data

    def next_deadline(self) -> int | None:
        """Guest time (monotonic) at which a read may be over by itself."""
        return self._gives_up

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        pty = self.pty
        if pty.hung:
            raise LinuxError(errno.EIO)
        discipline = pty.discipline
        if discipline.settings.lflag & tio.TOSTOP:
            pty.terminal.check(SIGTTOU)
        pty.activity += 1
        pty.printed += 1
        return discipline.write(data)

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        pty = self.pty
        if pty.hung:
            return _FULL
        discipline = pty.discipline
        keys = discipline.settings.keys
        wanted = keys[tio.VMIN] if not keys[tio.VTIME] and keys[tio.VMIN] else 1
        mask = fl.READABLE if discipline.ready(wanted) else 0
        return mask | (fl.WRITABLE if discipline.room else 0)

    @property
    def activity(self) -> int:
        """Counts what happened to it, for edge-triggered epoll."""
        return self.pty.activity

    def ioctl(self, caller: IoctlCaller, request: int, argument: int) -> int:
        """Device control."""
        pty = self.pty
        if pty.hung:
            raise LinuxError(errno.ENOTTY if request == TIOCSPGRP else errno.EIO)
        if request in REQUESTS:
            pty.terminal.control(caller.memory, request, argument)
            return 0
        if request in _TTOU:
            pty.terminal.check(SIGTTOU)
        if request == tio.TIOCGPTPEER:
            raise LinuxError(errno.EIO)
        if request == tio.FIONREAD:
            _put(caller, argument, pty.discipline.waiting())
        elif request in (tio.TIOCEXCL, tio.TIOCNXCL):
            pty.exclusive = request == tio.TIOCEXCL
        elif request == tio.TIOCGEXCL:
            _put(caller, argument, pty.exclusive)
        elif request == tio.TCFLSH:
            pty.flush(_u32(argument), master=False)
        elif request == tio.TCXONC:
            pty.hold(_u32(argument))
        else:
            return pty.ioctl(caller, request, argument)
        return 0

    def reopen(self, flags: int) -> OpenFile:
        """A new description of the same object (opening /proc/self/fd/N)."""
        return self.pty.open_slave(flags)


class MasterFile(OpenFile):
    """The end that a terminal emulator has (/dev/ptmx)."""

    is_terminal = True

    def __init__(self, pty: Pty, flags: int, node: Node) -> None:
        super().__init__(flags, node)
        self.pty = pty
        self.exclusive = False  # asked for and told; nobody can open this end once more

    def on_close(self) -> None:
        """The last descriptor is gone."""
        self.pty.hang_up()

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        pty, discipline = self.pty, self.pty.discipline
        if discipline.packet and discipline.status:
            status, discipline.status = discipline.status, 0
            return bytes((status,))
        if discipline.output:
            head = b"\0" if discipline.packet else b""
            size = min(count - len(head), 4095)
            data = head + discipline.output[:size]
            del discipline.output[:size]
            pty.activity += 1
            return bytes(data)
        if pty.used and not pty.slaves:
            raise LinuxError(errno.EIO)
        return None

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        discipline = self.pty.discipline
        self.pty.activity += 1
        before = len(discipline.output)
        taken = discipline.type(data)
        self.pty.printed += len(discipline.output) != before  # what it echoes
        return taken

    def came(self) -> tuple[int, int] | None:
        """Counts of what came to read, and of room to write; see `OpenFile`."""
        return self.pty.printed, self.pty.taken

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        pty, discipline = self.pty, self.pty.discipline
        mask = fl.POLLHUP if pty.used and not pty.slaves else 0
        if discipline.packet and discipline.status:
            mask |= fl.READABLE | fl.POLLPRI
        if discipline.output:
            mask |= fl.READABLE
        return mask | (fl.WRITABLE if discipline.typing_room > 0 else 0)

    @property
    def activity(self) -> int:
        """Counts what happened to it, for edge-triggered epoll."""
        return self.pty.activity

    def ioctl(self, caller: IoctlCaller, request: int, argument: int) -> int:
        """Device control; TIOCGPTPEER, which makes a descriptor, is the caller's."""
        pty = self.pty
        discipline = pty.discipline
        if request == tio.TIOCGPTN:
            _put(caller, argument, pty.number)
        elif request == tio.TIOCSPTLCK:
            pty.locked = bool(_int(caller, argument))
        elif request == tio.TIOCGPTLCK:
            _put(caller, argument, pty.locked)
        elif request == tio.TIOCPKT:
            on = bool(_int(caller, argument))
            if on and not discipline.packet:
                discipline.status = 0
            discipline.packet = on
        elif request == tio.TIOCGPKT:
            _put(caller, argument, discipline.packet)
        elif request in (tio.TIOCEXCL, tio.TIOCNXCL):
            self.exclusive = request == tio.TIOCEXCL
        elif request == tio.TIOCGEXCL:
            _put(caller, argument, self.exclusive)
        elif request == tio.TIOCSIG:
            if _u32(argument) not in _KEYS:
                raise LinuxError(errno.EINVAL)
            pty.signal(_u32(argument))
        elif request == tio.FIONREAD:
            _put(caller, argument, min(len(discipline.output), 4095))
        elif request == tio.TCFLSH:
            pty.flush(_u32(argument), master=True)
        elif request == tio.TCXONC:
            if not 0 <= _u32(argument) <= 3:
                raise LinuxError(errno.EINVAL)
        elif request in REQUESTS:
            pty.terminal.control(caller.memory, request, argument, master=True)
        else:
            if request in _TTOU:
                pty.terminal.check(SIGTTOU)
            return pty.ioctl(caller, request, argument)
        return 0

    def reopen(self, flags: int) -> OpenFile:
        """A new description of the same object (opening /proc/self/fd/N): another master."""
        assert self.node is not None
        return self.node.open(flags)
