"""Chapters about the guest's world, made by asking the guest's own kernel.

For each architecture a program of one page is loaded (it never runs) and its kernel is asked, see
`engine.linux.world`. What this returns is for `kprobe-tui help world`, and says nothing that the
kernel of a guest would not say itself.
"""

import os
import struct
import tempfile
from typing import Final

from msgspec import Struct

from engine import arch as architectures
from engine.arch.base import Arch
from engine.linux.ptrace import REQUESTS
from engine.linux.system import HOSTNAME, RELEASE
from engine.linux.uringcalls import KNOWN
from engine.linux.world import Answers, Questions, SortedCalls, entries_below, sort_calls
from engine.linux.world.names import URING
from engine.session.guest.loading import LoadedGuest
from engine.session.protocol.config import DEFAULT_MEMORY, GuestConfig

_HEADER, _PROGRAM_HEADER, _PAGE = 64, 56, 0x1000
_BASE: Final = 0x400000
_INFINITY: Final = (1 << 64) - 1


class WorldRow(Struct, frozen=True):
    """A row of the description.

    Attributes:
        label: what the words are.
        words: names, or sentences.
    """

    label: str
    words: tuple[str, ...]


class WorldChapter(Struct, frozen=True):
    """A chapter of the description.

    Attributes:
        title: what it is about.
        rows: what is there and what is not.
    """

    title: str
    rows: tuple[WorldRow, ...]


def describe_world() -> list[WorldChapter]:
    """Ask the guest's own kernel what there is; the chapters in the order in which they are shown.

    Raises:
        CommandError: there is no room for a temporary file.
    """
    guests: dict[str, LoadedGuest] = {}
    with tempfile.TemporaryDirectory(prefix="kprobe-tui-") as folder:
        for name in architectures.names():
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(_tiny_program(architectures.by_name(name)))
            guests[name] = LoadedGuest(GuestConfig(path, isolated=True, cwd="/"))
    calls = {name: sort_calls(guest.arch.linux) for name, guest in guests.items()}
    guest = guests[architectures.names()[0]]
    return [
        _machine(guest, list(guests.values())),
        *_system_calls(calls, guests),
        *_options(guest),
        _files(guest),
        _limits(guest),
    ]


def _tiny_program(arch: Arch) -> bytes:
    """An ELF file of one page of zeros for an architecture."""
    order = "<" if arch.byteorder == "little" else ">"
    ident = b"\x7fELF" + bytes((2, 1 if order == "<" else 2, 1)) + bytes(9)
    header = ident + struct.pack(
        order + "HHIQQQIHHHHHH",
        *(2, arch.elf_machine, 1, _BASE + _HEADER + _PROGRAM_HEADER, _HEADER, 0),
        *(_tiny_flags(arch), _HEADER, _PROGRAM_HEADER, 1, 64, 0, 0),
    )
    segment = struct.pack(
        order + "IIQQQQQQ", 1, 5, 0, _BASE, _BASE, _PAGE, _PAGE, max(_PAGE, 0x10000)
    )
    return (header + segment).ljust(_PAGE, b"\0")


def _tiny_flags(arch: Arch) -> int:
    """e_flags: EF_IA_64_ABI64 where there are programs of 32 bits under the same number."""
    return 0x10 if arch.linux.machine == "ia64" else 0


def _machine(guest: LoadedGuest, guests: list[LoadedGuest]) -> WorldChapter:
    config = guest.config
    ids = Questions(guest.thread)
    rows = [
        WorldRow("kernel", (f"Linux {RELEASE.decode()}, host name {HOSTNAME.decode()}",)),
        WorldRow(
            "user",
            (
                f"uid {ids.ask('getuid')}, gid {ids.ask('getgid')} for root, with --isolated and",
                "with --root; else the user who runs the tool; no capabilities",
            ),
        ),
        WorldRow("processors", (f"{config.cpus} (--cpus)",)),
        WorldRow("memory", (f"{DEFAULT_MEMORY >> 20} MiB that may be touched (--memory)",)),
    ]
    for each in guests:
        linux = each.arch.linux
        ways = []
        if linux.interrupt is not None:
            ways.append("system calls of 32-bit programs, by an interrupt")
        if linux.vsyscalls is not None:
            ways.append(f"a vsyscall page at {linux.vsyscalls[0]:#x}")
        if not linux.several:
            ways.append("one thread, no other process")
        hwcap = ", ".join(f"{word:#x}" for word in linux.hwcap)
        rows.append(WorldRow(each.arch.name, ("; ".join((f"AT_HWCAP {hwcap}", *ways)),)))
    return WorldChapter("The machine", tuple(rows))


def _system_calls(
    calls: dict[str, SortedCalls], guests: dict[str, LoadedGuest]
) -> list[WorldChapter]:
    families: dict[str, list[str]] = {}
    for name, each in calls.items():
        for family, names in each.served.items():
            known = families.setdefault(family, [])
            known += [call for call in names if call not in known and family != "own"]
            if family == "own" and names:
                families[f"only {name}"] = names
    served = [
        WorldRow(family.partition(".")[0], tuple(sorted(names)))
        for family, names in families.items()
        if names
    ]
    counts = ", ".join(
        f"{name} {sum(map(len, each.served.values()))}" for name, each in calls.items()
    )
    never: dict[str, set[str]] = {}
    for name, each in calls.items():
        questions = Questions(guests[name].thread)
        for call in each.never:
            answer = questions.refusal(call)
            never.setdefault(answer, set()).add(call)
    return [
        WorldChapter(f"System calls that are carried out ({counts})", tuple(served)),
        WorldChapter(
            "System calls that never succeed, as for a user without privileges",
            tuple(WorldRow(code, tuple(sorted(names))) for code, names in never.items()),
        ),
        WorldChapter(
            "System calls that are missing (ENOSYS)",
            tuple(WorldRow(name, tuple(each.missing)) for name, each in calls.items()),
        ),
    ]


def _options(guest: LoadedGuest) -> list[WorldChapter]:
    ask = Questions(guest.thread)
    requests = tuple(sorted({"TRACEME", "ATTACH", "SEIZE", *REQUESTS}))
    rings = Answers(
        [name for number, name in enumerate(URING) if number in KNOWN],
        {"EINVAL": [name for number, name in enumerate(URING) if number not in KNOWN]},
    )
    subjects = {
        "prctl": ask.prctl(),
        "futex": ask.futex(),
        "madvise": ask.madvise(),
        "fcntl": ask.fcntl(),
        "clocks": ask.clocks(),
        "io_uring": rings,
        "decisions of seccomp filters": ask.seccomp(),
        "namespaces of unshare": ask.namespaces(),
        "families of sockets": ask.families(),
        "options of sockets": ask.socket_options(),
        "options of TCP sockets": ask.tcp_options(),
    }
    return [
        *(_chapter(title, answers) for title, answers in subjects.items()),
        WorldChapter("ptrace", (WorldRow("there", requests),)),
        WorldChapter(
            "ioctl (everything else is ENOTTY)",
            tuple(WorldRow(kind, tuple(names)) for kind, names in ask.ioctl().items()),
        ),
    ]


def _chapter(title: str, answers: Answers) -> WorldChapter:
    rows = [WorldRow("there", tuple(answers.there))]
    rows += [WorldRow(code, tuple(names)) for code, names in answers.refused.items()]
    return WorldChapter(title, tuple(row for row in rows if row.words))


def _files(guest: LoadedGuest) -> WorldChapter:
    def below(path: str, numbered: str = "N") -> tuple[str, ...]:
        return tuple(entries_below(guest.fs, path.encode(), numbered))

    pid = guest.process.pid
    top = tuple(name for name in below("/proc", "PID") if not name.startswith("sys/"))
    return WorldChapter(
        "Files that are always the guest's own",
        (
            WorldRow("/proc", top),
            WorldRow("/proc/PID", below(f"/proc/{pid}")),
            WorldRow("/proc/sys", below("/proc/sys")),
            WorldRow("/sys", below("/sys")),
            WorldRow("/dev", below("/dev")),
        ),
    )


def _limits(guest: LoadedGuest) -> WorldChapter:
    def shown(value: int) -> str:
        return "unlimited" if value >= _INFINITY else str(value)

    limits = Questions(guest.thread).limits()
    return WorldChapter(
        "Limits (RLIMIT_*: soft, hard)",
        tuple(
            WorldRow(name, (f"{shown(soft)}, {shown(hard)}",))
            for name, (soft, hard) in limits.items()
        ),
    )
