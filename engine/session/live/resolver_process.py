"""A process that calls resolvers of indirect functions on this machine's processor.

`engine.session.live.ifunc_choice` starts it with the descriptor of one ELF file, and it imports
nothing of this project. It gives up root's rights before it loads that file, whose constructors
run. Then a line of its input, a resolver's link address in hexadecimal, is answered by a line of
its output:
the file offset (hexadecimal) of the code that the resolver returns, a space, and the path of the
code's file, "" for the file itself; or "?" and what went wrong. Before all answers a line tells
whether the file could be loaded ("", or "?" and why not).

The arguments of a resolver are those of glibc, elf/dl-irel.h of each architecture.
"""

import ctypes
import os
import resource
import sys
from typing import TextIO

_NOBODY = 65534
_SECONDS = 5
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_AT_HWCAP, _AT_HWCAP2 = 16, 26
_WITH_SIZE = 1 << 62
"""_IFUNC_ARG_HWCAP: the second argument is a structure that begins with its size."""

Row = tuple[int, int, int, int, int, str]
"""A mapping: start, end, file offset, device, inode, path."""


def _rows() -> list[Row]:
    """The mappings of this process (proc_pid_maps(5))."""
    found = []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            addresses, _, offset, device, inode, *path = line.rstrip("\n").split(maxsplit=5)
            start, end = (int(text, 16) for text in addresses.split("-"))
            major, minor = (int(text, 16) for text in device.split(":"))
            number = os.makedev(major, minor)
            found.append((start, end, int(offset, 16), number, int(inode), "".join(path)))
    return found


def _give_up_rights() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # without, /proc/self/fd belongs to root still
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


class _Loaded:
    """A file that was loaded."""

    def __init__(self, descriptor: int, lowest: int) -> None:
        """Load it.

        Args:
            descriptor: of the file.
            lowest: link address of the byte at file offset 0.

        Raises:
            OSError: the loader refuses the file, or has another one of that name already.
        """
        self._status = os.fstat(descriptor)
        ctypes.CDLL(f"/proc/self/fd/{descriptor}", os.RTLD_LAZY | os.RTLD_LOCAL)
        starts = [row[0] for row in _rows() if row[2] == 0 and self._is_of(row)]
        if not starts:
            raise OSError("another file of that name is loaded")
        self._bias = starts[0] - lowest

    def _is_of(self, row: Row) -> bool:
        """True if a mapping is of the file; some file systems tell of another device there."""
        _, _, _, device, inode, path = row
        if inode != self._status.st_ino:
            return False
        if device == self._status.st_dev:
            return True
        try:
            return os.path.samestat(os.stat(path), self._status)
        except OSError:
            return False

    def answer(self, link: int) -> str:
        """Call a resolver; what is told of the code that it returns.

        Args:
            link: the resolver's link address.
        """
        auxiliary = ctypes.CDLL(None).getauxval
        auxiliary.restype = ctypes.c_ulong
        first, second = auxiliary(ctypes.c_ulong(_AT_HWCAP)), auxiliary(ctypes.c_ulong(_AT_HWCAP2))
        structure = (ctypes.c_uint64 * 3)(24, first, second)
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
        resolver = kind(self._bias + link)
        address = resolver(first | _WITH_SIZE, ctypes.addressof(structure)) or 0
        for row in _rows():
            start, end, offset, _, _, path = row
            if start <= address < end:
                return f"{address - start + offset:x} {'' if self._is_of(row) else path or '?'}"
        return f"?it returns {address:#x}"


def _own_streams() -> tuple[TextIO, TextIO]:
    """Input and output for ourselves; the file's constructors have /dev/null."""
    asked = os.fdopen(os.dup(0), encoding="ascii")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="surrogateescape")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    return asked, answers


def main() -> None:
    """Serve until the input ends."""
    descriptor, lowest = int(sys.argv[1]), int(sys.argv[2], 16)
    asked, answers = _own_streams()
    try:
        _give_up_rights()
        loaded = _Loaded(descriptor, lowest)
    except OSError as error:
        print(f"?{error}".replace("\n", " "), file=answers, flush=True)
        return
    print(file=answers, flush=True)
    for line in asked:
        print(loaded.answer(int(line, 16)), file=answers, flush=True)


if __name__ == "__main__":
    main()
