"""Terminals as job control sees them: a session's, with a foreground group (tty_jobctrl.c)."""

import errno
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from engine.guest.memory import Memory
from engine.linux.errno import ERESTARTSYS, LinuxError

if TYPE_CHECKING:
    from engine.linux.fs.vfs import OpenFile

TIOCSCTTY, TIOCGPGRP, TIOCSPGRP, TIOCNOTTY, TIOCGSID = 0x540E, 0x540F, 0x5410, 0x5422, 0x5429
REQUESTS: Final = frozenset({TIOCSCTTY, TIOCGPGRP, TIOCSPGRP, TIOCNOTTY, TIOCGSID})
"""Requests that `Terminal.control` carries out."""
SIGTTIN, SIGTTOU = 21, 22


class Jobs(Protocol):
    """The process that makes a call, and the groups and sessions that there are."""

    def own(self) -> tuple[int, int, int]:
        """(process id, process group, session) of the caller."""

    def terminal(self) -> "Terminal | None":
        """The caller's controlling terminal."""

    def may_take(self) -> bool:
        """True if a terminal that the caller opens becomes its own."""

    def attach(self, terminal: "Terminal") -> None:
        """Make a terminal the caller's."""

    def detach(self, terminal: "Terminal") -> None:
        """The caller gives its terminal up, and with a session's leader the whole session."""

    def hang_up(self, terminal: "Terminal") -> None:
        """A terminal is gone: its session loses it, and its leader is told."""

    def session_of(self, group: int) -> int | None:
        """The session of a process group, None if nobody is in it."""

    def shielded(self, number: int) -> bool:
        """True if the caller blocks or ignores a signal."""

    def orphaned(self, group: int) -> bool:
        """True if nobody outside a group would continue it (POSIX: orphaned)."""

    def signal(self, group: int, number: int) -> None:
        """Send a signal of the terminal's to a process group."""


class Terminal:
    """A terminal that may control a session.

    Attributes:
        jobs: who uses it.
        session: the session that it controls, 0 for none.
        group: the process group in the foreground.
        device: its number; that of /dev/pts/0 for one of the host's.
        opened: makes another open file of it (/dev/tty).
    """

    def __init__(self, jobs: Jobs, opened: "Callable[[int], OpenFile]") -> None:
        self.jobs = jobs
        self.session = self.group = 0
        self.device = 136 << 8
        self.opened = opened

    def check(self, number: int) -> None:
        """Let only the foreground on: others are stopped by SIGTTIN or SIGTTOU.

        Raises:
            LinuxError: EIO if the caller cannot be stopped, ERESTARTSYS if it will be.
        """
        _, group, _ = self.jobs.own()
        if self.jobs.terminal() is not self or group == self.group or not self.group:
            return
        if self.jobs.shielded(number):
            if number == SIGTTIN:
                raise LinuxError(errno.EIO)
            return
        if self.jobs.orphaned(group):
            raise LinuxError(errno.EIO)
        self.jobs.signal(group, number)
        raise LinuxError(ERESTARTSYS)

    def control(
        self, memory: Memory, request: int, argument: int, *, master: bool = False
    ) -> None:
        """One of `REQUESTS`.

        Args:
            memory: the caller's.
            request: which one.
            argument: an address or a number.
            master: it was made at the other end of a pseudo-terminal, which anybody may ask.
        """
        mine = self.jobs.terminal() is self
        if request == TIOCSCTTY:
            self.take()
        elif request == TIOCSPGRP:
            self._set_foreground(memory, argument, mine)
        elif not mine and (not master or request == TIOCNOTTY):
            raise LinuxError(errno.ENOTTY)
        elif request == TIOCGPGRP:
            memory.write(argument, struct.pack("<i", self.group))
        elif request == TIOCGSID:
            if not self.session:
                raise LinuxError(errno.ENOTTY)
            memory.write(argument, struct.pack("<i", self.session))
        else:
            self.jobs.detach(self)

    def offer(self) -> None:
        """Become the terminal of the caller's session if that is a leader's without one."""
        if self.jobs.may_take():
            self.take()

    def take(self) -> None:
        """Become the terminal of the caller's session (TIOCSCTTY)."""
        pid, group, session = self.jobs.own()
        leads = pid == session
        if leads and self.session == session:
            return
        if not leads or self.jobs.terminal() is not None or self.session:
            raise LinuxError(errno.EPERM)
        self.session, self.group = session, group
        self.jobs.attach(self)

    def _set_foreground(self, memory: Memory, argument: int, mine: bool) -> None:
        try:
            self.check(SIGTTOU)
        except LinuxError as error:
            raise LinuxError(errno.ENOTTY if error.code == errno.EIO else error.code) from None
        _, _, session = self.jobs.own()
        (group,) = struct.unpack("<i", memory.read(argument, 4))
        if group < 0:
            raise LinuxError(errno.EINVAL)
        if not mine or self.session != session:
            raise LinuxError(errno.ENOTTY)
        found = self.jobs.session_of(group)
        if found is None:
            raise LinuxError(errno.ESRCH)
        if found != session:
            raise LinuxError(errno.EPERM)
        self.group = group
