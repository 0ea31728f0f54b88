"""The owners of open files: who gets SIGIO (fs/fcntl.c)."""

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from engine.linux import signals as sig
from engine.linux.context import Context, s32
from engine.linux.errno import LinuxError
from engine.linux.fs.signalled import BANDS, TO_GROUP, TO_PROCESS, TO_THREAD, FileOwner
from engine.linux.fs.vfs import OpenFile
from engine.linux.signals import PendingSignal

if TYPE_CHECKING:
    from engine.linux.machine import Machine
    from engine.linux.process import Process
    from engine.linux.thread import Thread

ESRCH, EINVAL = 3, 22
_SETOWN, _GETOWN, _SETSIG, _GETSIG, _SETOWN_EX, _GETOWN_EX = 8, 9, 10, 11, 15, 16
_SI_SIGIO: Final = -5
_WITH_CODES: Final = frozenset({sig.SIGILL, sig.SIGTRAP, sig.SIGBUS, sig.SIGFPE, sig.SIGSEGV})
"""Signals whose si_code means something else already, with SIGCHLD and SIGSYS."""


def _own(ctx: Context, file: OpenFile, kind: int, number: int) -> int:
    proc = ctx.fs.proc
    if kind == TO_GROUP:
        known = proc.jobs.session_of(number) is not None
    else:
        known = proc.process(number) is not None
    if number and not known:
        raise LinuxError(ESRCH)
    owner = ctx.fs.signalled.owner(file)
    owner.kind, owner.number = kind, number
    return 0


def _there(ctx: Context, owner: FileOwner) -> int:
    """The owner's id, 0 once it is gone."""
    proc, number = ctx.fs.proc, owner.number
    if owner.kind == TO_GROUP:
        return number if number and proc.jobs.session_of(number) is not None else 0
    process = proc.process(number) if number else None
    there = process is not None and (owner.kind == TO_THREAD or process.pid == number)
    return number if there else 0


def _set_owner(ctx: Context, file: OpenFile, argument: int) -> int:
    number = s32(argument)
    if number == -0x80000000:
        raise LinuxError(EINVAL)
    return _own(ctx, file, TO_GROUP if number < 0 else TO_PROCESS, abs(number))


def _get_owner(ctx: Context, file: OpenFile, argument: int) -> int:
    owner = ctx.fs.signalled.owner(file)
    number = _there(ctx, owner)
    return -number if owner.kind == TO_GROUP else number


def _set_owner_by_kind(ctx: Context, file: OpenFile, argument: int) -> int:
    kind, number = struct.unpack("<ii", ctx.memory.read(argument, 8))
    if kind not in (TO_THREAD, TO_PROCESS, TO_GROUP):
        raise LinuxError(EINVAL)
    return _own(ctx, file, kind, number)


def _get_owner_by_kind(ctx: Context, file: OpenFile, argument: int) -> int:
    owner = ctx.fs.signalled.owner(file)
    ctx.memory.write(argument, struct.pack("<ii", owner.kind, _there(ctx, owner)))
    return 0


def _set_signal(ctx: Context, file: OpenFile, argument: int) -> int:
    if not 0 <= argument <= 64:
        raise LinuxError(EINVAL)
    ctx.fs.signalled.owner(file).signal = argument
    return 0


def _get_signal(ctx: Context, file: OpenFile, argument: int) -> int:
    return ctx.fs.signalled.owner(file).signal


COMMANDS: Final[dict[int, Callable[[Context, OpenFile, int], int]]] = {
    _SETOWN: _set_owner,
    _GETOWN: _get_owner,
    _SETSIG: _set_signal,
    _GETSIG: _get_signal,
    _SETOWN_EX: _set_owner_by_kind,
    _GETOWN_EX: _get_owner_by_kind,
}
"""The commands of fcntl that are about owners."""


def _item(owner: FileOwner, code: int) -> PendingSignal:
    number = owner.signal
    if not number:
        return PendingSignal(sig.SIGIO, sig.info_kill(sig.SIGIO, sig.SI_KERNEL, 0, 0))
    told = _SI_SIGIO if number in (*_WITH_CODES, sig.SIGCHLD, sig.SIGSYS) else code
    info = struct.pack("<iiiiqi", number, 0, told, 0, BANDS[code], owner.fd)
    return PendingSignal(number, info)


def tell(machine: "Machine") -> None:
    """Send the signals of files to which something has come."""
    for owner, code in machine.fs.signalled.news():
        item = _item(owner, code)
        for target in _targets(machine, owner):
            if not target.post(item) and item.number != sig.SIGIO:  # no room for a siginfo
                target.post(_item(FileOwner(), code))


def _targets(machine: "Machine", owner: FileOwner) -> "Sequence[Thread | Process]":
    number = owner.number
    if owner.kind == TO_THREAD:
        thread = machine.threads.get(number)
        return [] if thread is None else [thread]
    processes = machine.processes.values()
    if owner.kind == TO_GROUP:
        return [each for each in processes if each.group == number]
    return [each for each in processes if each.pid == number]
