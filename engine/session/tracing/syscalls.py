"""System calls of a session's guest as events of its trace."""

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from engine.errors import ProbeError
from engine.fetch.evaluate import FetchContext, Recorder
from engine.session.guest.session import Session
from engine.trace.rows import EventInfo, pack_row
from engine.trace.staging import put_row
from engine.trace.syscalls import (
    ENTER,
    EXIT,
    GROUP,
    Argument,
    arguments,
    enter_info,
    event_name,
    exit_info,
    pointed_to,
)

_WILD: Final = frozenset("*?[")

Chosen = tuple[EventInfo, str, tuple[Argument, ...] | None]
"""An event, the call, and its arguments for an enter event."""


class SyscallEvents:
    """The system-call events that are on.

    Attributes:
        making: the call whose event is being recorded, "" at other times.
    """

    def __init__(self, session: Session) -> None:
        """None is, yet."""
        self._session = session
        self._enter: dict[str, Recorder] = {}
        self._exit: dict[str, Recorder] = {}
        self._chosen: dict[int, Chosen] = {}
        self._records: dict[int, Recorder] = {}
        self._silent: frozenset[int] = frozenset()
        self._hooked = False
        self.making = ""
        self._numbers = {name: nr for nr, name in session.arch.linux.syscalls.items()}

    @property
    def infos(self) -> list[EventInfo]:
        """The events in the order they were chosen."""
        return [info for info, _, _ in self._chosen.values()]

    def choose(
        self, glob: str, number: Callable[[], int], known: Callable[[str], bool]
    ) -> list[EventInfo]:
        """Take all events whose name, or whose call's name, matches; the new ones.

        Args:
            glob: of names as `sys_enter_openat`; with nothing in front of a call's own name
                both its events are meant.
            number: the next free event id.
            known: whether an event of that name is there already.

        Raises:
            ProbeError: no event matches.
        """
        arch = self._session.arch
        found: list[EventInfo] = []
        matched = False
        for call in _meant(glob, arch.linux.syscalls.values()):
            fields = arguments(call, arch.linux.clone_backwards)
            if fields is None:
                continue
            name = event_name(call)
            for prefix in (ENTER, EXIT):
                if not _matches(glob, prefix, call):
                    continue
                matched = True
                if known(prefix + name):
                    continue
                enter = prefix == ENTER
                info = enter_info(number(), call, fields) if enter else exit_info(number(), call)
                self._chosen[info.id] = (info, call, fields if enter else None)
                found.append(info)
        if not matched:
            raise ProbeError(f"{GROUP}/{glob}: no system call matches")
        return found

    def name_of(self, number: int) -> str | None:
        """The kernel's name of a call by its number."""
        name = self._session.arch.linux.syscalls.get(number)
        return None if name is None else event_name(name)

    def make(self, info: EventInfo, context: FetchContext) -> Recorder:
        """Compiles the recorder of one of the events."""
        _, call, fields = self._chosen[info.id]
        number = self._numbers[call]
        if fields is None:
            return partial(self._record_exit, info, number, context)
        return partial(self._record_enter, info, number, fields, context)

    def is_mine(self, info: EventInfo) -> bool:
        """True if an event is one of these."""
        return info.id in self._chosen

    def install(self, info: EventInfo, record: Recorder) -> None:
        """Have an event recorded by a function of (thread, values, place)."""
        self._records[info.id] = record
        self._wire()
        if self._hooked:
            return
        self._hooked = True
        hooks, machine = self._session.hooks, self._session.machine
        before_enter, before_exit = hooks.syscall_enter, hooks.syscall_exit

        follows = self._session.config.follow

        def enter(number: int, name: str, values: tuple[int, ...]) -> None:
            before_enter(number, name, values)
            found = self._enter.get(name)
            if found is not None and (follows or machine.current.process is machine.first):
                self.making = name
                found(machine.current.tid, values)
                self.making = ""

        def leave(number: int, name: str, result: int) -> None:
            before_exit(number, name, result)
            found = self._exit.get(name)
            if found is not None and (follows or machine.current.process is machine.first):
                self.making = name
                found(machine.current.tid, (result,))
                self.making = ""

        hooks.syscall_enter, hooks.syscall_exit = enter, leave

    def record_only(self, globs: Sequence[str]) -> None:
        """Of the chosen events only those that match are recorded from now on."""
        self._silent = frozenset(
            info.id
            for info, call, fields in self._chosen.values()
            if not any(_matches(glob, EXIT if fields is None else ENTER, call) for glob in globs)
        )
        self._wire()

    def _wire(self) -> None:
        """Which recorder a call has, when it is made and when it returns."""
        self._enter.clear()
        self._exit.clear()
        for number, record in self._records.items():
            _, call, fields = self._chosen[number]
            if number not in self._silent:
                (self._exit if fields is None else self._enter)[call] = record

    @property
    def place(self) -> int:
        """The program's address behind the system call's instruction."""
        session = self._session
        return session.seen.hooks.original_pc(session.cpu.read_register(session.arch.roles.pc))

    def _record_exit(
        self,
        info: EventInfo,
        number: int,
        context: FetchContext,
        thread: int,
        values: Sequence[int],
    ) -> None:
        self._write(info, context, thread, [number & 0xFFFFFFFF, values[0]])

    def _record_enter(
        self,
        info: EventInfo,
        number: int,
        fields: tuple[Argument, ...],
        context: FetchContext,
        thread: int,
        values: Sequence[int],
    ) -> None:
        words = [number & 0xFFFFFFFF, *values[: len(fields)]]
        memory = self._session.seen.memory
        texts = [pointed_to(field, values, memory) for field in fields if field.is_read]
        self._write(info, context, thread, [*words, *texts])

    def _write(
        self, info: EventInfo, context: FetchContext, thread: int, values: list[int | bytes]
    ) -> None:
        row = pack_row(info, thread, context.cpu.now(), self.place, values)
        put_row(context.sink, row)


def _meant(glob: str, calls: Collection[str]) -> Collection[str]:
    """The calls that a pattern may mean: a name is not compared with those of all the others."""
    if not _WILD.isdisjoint(glob):
        return calls
    stems = {glob, glob.removeprefix(ENTER), glob.removeprefix(EXIT)}
    return [call for call in calls if call in stems or event_name(call) in stems]


def _matches(glob: str, prefix: str, call: str) -> bool:
    """True if a pattern means an event of a call: its name, or the call's own for both."""
    name = event_name(call)
    return any(fnmatchcase(one, glob) for one in (prefix + name, prefix + call, name, call))
