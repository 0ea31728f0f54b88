"""Asks a guest's kernel for everything that `names` names, by its own system calls.

The handlers are called as the dispatcher calls them, for a thread whose program never runs: what
they change is thrown away with the machine. An answer is the call's result or -errno.
"""

import errno
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from engine.errors import GuestFaultError
from engine.linux.errno import LinuxError
from engine.linux.table import CallTable
from engine.linux.thread import Thread
from engine.linux.wait import Wait
from engine.linux.world import names

_WORD: Final = (1 << 64) - 1
_ROOM: Final = 1 << 16
_PRIVATE, _SHARED = 0x22, 0x21
_READ_WRITE: Final = 3
_O_RDWR: Final = 2
_CWD: Final = -100
_SOL_SOCKET, _IPPROTO_TCP = 1, 6
_ACTION_AVAIL: Final = 2
_DENIALS: Final = frozenset({-errno.EPERM, -errno.EACCES, -errno.EOPNOTSUPP})
"""Answers that say that something is known, and not for this user."""


class Answers(NamedTuple):
    """Names by the answer to them.

    Attributes:
        there: names that are carried out.
        refused: names by errno: what is known, and refused whatever it is asked with.
    """

    there: list[str]
    refused: dict[str, list[str]]


class Questions:
    """Asks the kernel of a thread.

    Attributes:
        room: address of 64 KiB of zeros in the thread's memory.
    """

    def __init__(self, thread: Thread) -> None:
        """Ask for a thread, whose program must not have begun to run."""
        self._thread = thread
        self._table = CallTable(thread.arch.linux)
        self.room = self.ask("mmap", 0, _ROOM, _READ_WRITE, _PRIVATE, -1, 0)

    def ask(self, name: str, *arguments: int) -> int:
        """The result of a system call, or -errno; 0 where it would wait."""
        call = self._table[name]
        if call is None:
            return -errno.ENOSYS
        words = [each & _WORD for each in (*arguments, 0, 0, 0, 0, 0, 0)[: call.arity]]
        try:
            result = call.handler(self._thread, *words)
        except LinuxError as error:
            return -error.code
        except GuestFaultError:
            return -errno.EFAULT
        return 0 if isinstance(result, Wait) else result

    def refusal(self, name: str) -> str:
        """The errno of a call that never succeeds, asked with 0 or a path that there is."""
        answer = self.ask(name)
        return _name_of(self.ask(name, self._path(b"/")) if answer == -errno.EFAULT else answer)

    def prctl(self) -> Answers:
        """Options of prctl."""
        firsts = (0, 1, 2, self.room)
        return self._sorted(
            names.PRCTL,
            lambda number: (self.ask("prctl", number, first) for first in firsts),
            (errno.EINVAL,),
        )

    def futex(self) -> Answers:
        """Operations of futex."""
        there, missing = list[str](), list[str]()
        for name, number in names.FUTEX.items():
            answer = self.ask("futex", self.room, number, 1, 0, self.room + 8, 0)
            (missing if answer == -errno.ENOSYS else there).append(name)
        return Answers(there, {"ENOSYS": missing} if missing else {})

    def madvise(self) -> Answers:
        """Advice about private and shared memory."""
        shared = self.ask("mmap", 0, _ROOM, _READ_WRITE, _SHARED, -1, 0)
        private = self.ask("mmap", 0, _ROOM, _READ_WRITE, _PRIVATE, -1, 0)
        return self._sorted(
            names.MADVISE,
            lambda number: (self.ask("madvise", at, _ROOM, number) for at in (private, shared)),
            (errno.EINVAL,),
        )

    def fcntl(self) -> Answers:
        """Commands of fcntl, about regular files, files in memory and pipes."""
        files = (self._pipe(), self._memory_file(), self._open(b"/dev/null"))
        return self._sorted(
            names.FCNTL,
            lambda number: (
                self.ask("fcntl", fd, number, argument)
                for fd in files
                for argument in (0, self.room + 512)
            ),
            (errno.EINVAL, errno.EBADF, errno.ENOTTY),
        )

    def ioctl(self) -> dict[str, list[str]]:
        """Requests of ioctl that are not ENOTTY, by kind of file."""
        master = self._open(b"/dev/ptmx")
        argument = self.room + 1024
        self.ask("ioctl", master, names.IOCTL["TIOCSPTLCK"], argument)  # of zero: unlocked
        self.ask("ioctl", master, names.IOCTL["TIOCGPTN"], argument)
        number = int.from_bytes(self._thread.memory.read(argument, 4), "little")
        slave = self._open(b"/dev/pts/%d" % number)
        files = {
            "terminals": slave,
            "masters of them": master,
            "pipes": self._pipe(),
            "sockets of AF_INET": self.ask("socket", names.FAMILIES["AF_INET"], 1, 0),
            "sockets of AF_UNIX": self.ask("socket", names.FAMILIES["AF_UNIX"], 1, 0),
            "files": self._memory_file(),
            "inotify": self.ask("inotify_init1", 0),
        }
        return {
            kind: [
                name
                for name, number in names.IOCTL.items()
                if self.ask("ioctl", fd, number, argument) != -errno.ENOTTY
            ]
            for kind, fd in files.items()
        }

    def families(self) -> Answers:
        """Families of sockets, each with the kinds that can be made."""
        there, refused = [], dict[str, list[str]]()
        for name, number in names.FAMILIES.items():
            answers = {
                kind: self.ask("socket", number, value, 0) for kind, value in names.SOCKETS.items()
            }
            kinds = [kind.removeprefix("SOCK_") for kind, fd in answers.items() if fd >= 0]
            if kinds:
                there.append(f"{name} ({' '.join(kinds)})")
            else:
                refused.setdefault(_name_of(max(answers.values())), []).append(name)
        return Answers(there, refused)

    def socket_options(self) -> Answers:
        """Options of every socket."""
        return self._options(names.SOCKET_OPTIONS, _SOL_SOCKET)

    def tcp_options(self) -> Answers:
        """Options of TCP sockets."""
        return self._options(names.TCP_OPTIONS, _IPPROTO_TCP)

    def seccomp(self) -> Answers:
        """Decisions of a seccomp filter."""

        def asked(number: int) -> Iterable[int]:
            self._thread.memory.write(self.room, number.to_bytes(4, "little"))
            return [self.ask("seccomp", _ACTION_AVAIL, 0, self.room)]

        return self._sorted(names.SECCOMP_ACTIONS, asked, ())

    def clocks(self) -> Answers:
        """Clocks that can be read."""
        return self._sorted(
            names.CLOCKS,
            lambda number: [self.ask("clock_gettime", number, self.room)],
            (errno.EINVAL,),
        )

    def namespaces(self) -> Answers:
        """Kinds of namespaces that unshare makes."""
        return self._sorted(names.NAMESPACES, lambda number: [self.ask("unshare", number)], ())

    def limits(self) -> dict[str, tuple[int, int]]:
        """Soft and hard limit of each resource by name, as a program begins with."""
        return dict(self._thread.process.limits)

    def _options(self, options: dict[str, int], level: int) -> Answers:
        sockets = [
            self.ask("socket", names.FAMILIES[family], 1, 0) for family in ("AF_INET", "AF_UNIX")
        ]
        length, value = self.room + 2048, self.room + 2056

        def asked(number: int) -> Iterable[int]:
            for fd in sockets:
                self._thread.memory.write(length, (64).to_bytes(4, "little"))
                yield self.ask("getsockopt", fd, level, number, value, length)
                yield self.ask("setsockopt", fd, level, number, value, 16)

        return self._sorted(options, asked, (errno.ENOPROTOOPT, errno.EOPNOTSUPP))

    def _sorted(
        self,
        subjects: dict[str, int],
        asked: Callable[[int], Iterable[int]],
        unknown: tuple[int, ...],
    ) -> Answers:
        """Sort names by the best of the answers to each.

        Args:
            subjects: numbers by name.
            asked: gives the answers to a number, asked in several ways.
            unknown: errnos that say that there is no such thing, if nothing else is answered.
        """
        there, refused = [], dict[str, list[str]]()
        absent = {-code for code in unknown}
        for name, number in subjects.items():
            answers = list(asked(number))
            known = [answer for answer in answers if answer not in absent]
            if known and not set(known) <= _DENIALS:
                there.append(name)
            else:
                refused.setdefault(_name_of((known or answers)[0]), []).append(name)
        return Answers(there, refused)

    def _path(self, path: bytes) -> int:
        at = self.room + _ROOM - 256
        self._thread.memory.write(at, path + b"\0")
        return at

    def _open(self, path: bytes) -> int:
        return self.ask("openat", _CWD, self._path(path), _O_RDWR)

    def _memory_file(self) -> int:
        return self.ask("memfd_create", self._path(b"x"), 2)

    def _pipe(self) -> int:
        self.ask("pipe2", self.room, 0)
        fd = int.from_bytes(self._thread.memory.read(self.room, 4), "little")
        self._thread.memory.write(self.room, bytes(8))
        return fd


def _name_of(answer: int) -> str:
    """The name of a negative answer's errno."""
    return "EOPNOTSUPP" if answer == -errno.EOPNOTSUPP else errno.errorcode[-answer]
