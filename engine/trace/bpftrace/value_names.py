"""Names, moments and places as a session knows them, for showing values of scripts."""

import time
from collections.abc import Callable, Sequence

from msgspec import Struct


class SymbolName(Struct, frozen=True):
    """The function or object at an address.

    Attributes:
        name: of the function or the object.
        offset: bytes from its start; None for a function that is inlined there.
        module: the path of its file, "" if that is not known.
        place: the file and the line of the source, "/home/me/a.c:12"; "" if that is not known or
            not wanted (`show_debug_info`).
    """

    name: str
    offset: int | None = 0
    module: str = ""
    place: str = ""

    def text(self, *, offset: bool, perf: bool = False, kernel: bool = False) -> str:
        """The name as it is shown (stringify_sym in bpftrace's src/usyms.cpp, src/ksyms.cpp).

        Args:
            offset: with the offset behind it.
            perf: as perf shows it, with the file behind it.
            kernel: of the kernel, for which no file is shown.
        """
        inlined = self.offset is None
        behind = f"+{self.offset}" if offset and not inlined else ""
        if perf:
            module = "inlined" if inlined else "" if kernel else self.module or "[unknown]"
            return f"{self.name}{behind} ({module})" if module else f"{self.name}{behind}"
        place = f"@{self.place}" if self.place else ""
        return f"{'[inlined] ' if inlined else ''}{self.name}{behind}{place}"


class ValueNames(Struct, frozen=True):
    """Names of things, as functions of the session.

    Attributes:
        user_symbols: what is at an address of a process (its number): innermost inlined function
            first, the function itself last; nothing if it is not known.
        kernel_symbols: the same for the kernel.
        username: a user's name by number, "" if there is none.
        cgroup_path: the paths of a control group (its number) below hierarchies that match.
        localtime: the parts of a moment, from seconds since 1970.
        booted_at: nanoseconds since 1970 at which the clock "boot" was 0.
        strings_cut: what is put behind a string that was too long (`str_trunc_trailer`).
        longest_time: bytes that strftime may give (`max_strlen`).
        little_endian: how numbers in structures are read.
    """

    user_symbols: Callable[[int, int], Sequence[SymbolName]] = lambda address, process: ()
    kernel_symbols: Callable[[int], Sequence[SymbolName]] = lambda address: ()
    username: Callable[[int], str] = lambda user: ""
    cgroup_path: Callable[[int, bytes], str] = lambda group, pattern: ""
    localtime: Callable[[int], time.struct_time] = time.localtime
    booted_at: int = 0
    strings_cut: bytes = b".."
    longest_time: int = 1024
    little_endian: bool = True


def timestamp_text(
    nanoseconds: int, form: bytes, names: ValueNames, *, utc: bool = False
) -> bytes:
    """A moment as strftime(3) shows it, with `%f`, `%k`, `%l` for parts of the second.

    Source: format_timestamp in bpftrace's src/bpftrace.cpp, in whose order they are replaced.

    Args:
        nanoseconds: since 1970.
        form: the format.
        names: for the local time.
        utc: the time of Greenwich.
    """
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    if not seconds:
        return b"(?)"
    form = form.replace(b"%f", b"%06d" % (rest // 1000))
    form = form.replace(b"%k", b"%09d" % rest).replace(b"%l", b"%03d" % (rest // 1_000_000))
    text = clock_text(seconds, form, names, utc=utc)
    return text if 0 < len(text) < names.longest_time else b"(?)"


def clock_text(seconds: int, form: bytes, names: ValueNames, *, utc: bool = False) -> bytes:
    """A second as strftime(3) shows it: `time()`."""
    try:
        parts = time.gmtime(seconds) if utc else names.localtime(seconds)
    except (OverflowError, ValueError, OSError):  # so far that it has no year
        return b"(?)"
    # NUL would end the format; a text of bytes keeps what is no UTF-8.
    shown = time.strftime(form.split(b"\0")[0].decode("utf-8", "surrogateescape"), parts)
    return shown.encode("utf-8", "surrogateescape")
