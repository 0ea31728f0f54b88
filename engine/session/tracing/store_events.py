"""Stores to watched bytes as events of a session's trace."""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.arch.program import ROW_HEAD, FieldType, ValueKind
from engine.errors import CommandError, GuestFaultError, ImageError, ProbeError
from engine.fetch.evaluate import FetchContext, Recorder
from engine.guest.watched import WatchedRange
from engine.image.datatypes import TypeKind
from engine.session.guest.session import Session
from engine.session.guest.watchpoints import Watch, WatchEvent
from engine.session.protocol.report import Report
from engine.trace.rows import Column, EventInfo, pack_row
from engine.trace.staging import put_row

if TYPE_CHECKING:
    from engine.language.value_types import CType
    from engine.session.inspect.frame_scope import FrameScope

GROUP: Final = "watch"
_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9_]+")
_ADDRESS: Final = FieldType(ValueKind.HEX, 8)
_COUNT: Final = FieldType(ValueKind.UNSIGNED, 8)
_TEXT: Final = FieldType(ValueKind.STRING, 0)
_WORDS: Final = (1, 2, 4, 8)
_SHOWN: Final = 64
"""Bytes of a value without a type that are recorded."""


class WatchedEvent(Struct, eq=False):
    """A watched expression and its event.

    Attributes:
        text: of the expression.
        info: what its rows are.
        size: bytes that it has.
        type: of its value; None for bytes.
        number: its value is one.
        watch: where it is.
        hits: stores so far, recorded or not.
        begun: it is watched.
    """

    text: str
    info: EventInfo
    size: int
    type: "CType | None"
    number: bool
    watch: Watch
    hits: int = 0
    begun: bool = False


class WatchEvents:
    """The watched expressions of a trace; a `KernelEvents`."""

    def __init__(self, session: Session) -> None:
        """Nothing is watched, yet."""
        self._session = session
        self.watched: dict[int, WatchedEvent] = {}
        self._silent: frozenset[int] = frozenset()
        self._scope: FrameScope | None = None

    @property
    def infos(self) -> list[EventInfo]:
        """The events in the order they were chosen."""
        return [one.info for one in self.watched.values()]

    def choose(
        self, glob: str, number: Callable[[], int], known: Callable[[str], bool]
    ) -> list[EventInfo]:
        """Watch what an expression names; its event.

        Args:
            glob: the expression, as of `watched_expressions.stretch`.
            number: the next free event id.
            known: whether an event of that name is there already.

        Raises:
            ProbeError: it names no bytes of memory.
        """
        # The C language is 10 ms of a trace's start, which most traces do without.
        from engine.session.inspect.watched_expressions import stretch

        try:
            address, size, value = stretch(glob, self._names)
        except GuestFaultError as error:
            why = f"cannot read memory at {error.address:#x}"
            raise ProbeError(f"--watch {glob}: {why}") from error
        except (CommandError, ImageError) as error:
            raise ProbeError(f"--watch {glob}: {error}") from error
        name = _name(glob, known)
        kind = None if value is None else value.type
        is_number = kind is not None and _is_number(kind)
        info = _info(number(), name, kind, is_number=is_number)
        watch = Watch(lambda event: None, [WatchedRange(address, size)])
        self.watched[info.id] = WatchedEvent(glob, info, size, kind, is_number, watch)
        return [info]

    @property
    def _names(self) -> "FrameScope":
        """The program's own names, before it runs: no frame's."""
        if self._scope is None:
            from engine.session.inspect.frame_scope import program_scope  # as in `choose`

            self._scope = program_scope(self._session)
        return self._scope

    def is_mine(self, info: EventInfo) -> bool:
        """True if an event is one of these."""
        return info.id in self.watched

    def make(self, info: EventInfo, context: FetchContext) -> Recorder:
        """Compile the recorder of one of the events."""
        return partial(self._write, self.watched[info.id], context)

    def install(self, info: EventInfo, record: Recorder) -> None:
        """Have an event recorded by a function of (thread, event, place)."""
        one = self.watched[info.id]

        def told(event: WatchEvent) -> None:
            one.hits += 1
            if info.id not in self._silent:
                record(event.thread.tid, event, event.pc)

        one.watch.told = told
        if not one.begun:
            one.begun = True
            points = self._session.watchpoints
            points.lost = self._lost
            points.add([one.watch])

    def _lost(self, watches: Sequence[Watch]) -> None:
        """The program that was watched has begun another one."""
        texts = [one.text for one in self.watched.values() if one.watch in watches]
        if texts:
            head = "the guest began another program; watched until then:"
            self._session.remarks.append(Report((head, *texts)))

    def record_only(self, globs: Sequence[str]) -> None:
        """Of the chosen events only those that match are recorded from now on."""
        self._silent = frozenset(
            info.id for info in self.infos if not any(fnmatchcase(info.name, one) for one in globs)
        )

    def listed(self) -> list[str]:
        """The watches as comments of a listing: no tool reads them from one."""
        return [f"# {GROUP}/{one.info.name}: --watch {one.text}" for one in self.watched.values()]

    def profile(self) -> list[str]:
        """Stores to what is watched, a line each, as `output.profile_lines` has hits."""
        return [f"  {one.info.name:<44} {one.hits:>15} {0:>15}" for one in self.watched.values()]

    def remarks(self) -> list[Report]:
        """The remark at the end about watches that nothing was stored to."""
        quiet = [one.text for one in self.watched.values() if not one.hits]
        return [Report(("nothing was stored to what is watched:", *quiet))] if quiet else []

    # -- rows -----------------------------------------------------------------------------

    def _write(
        self, one: WatchedEvent, context: FetchContext, thread: int, event: WatchEvent, place: int
    ) -> None:
        hit = event.hit
        address, size = hit.written or (hit.range.start, 0)
        values = [self._value(one, hit.old), self._value(one, hit.new)]
        by = event.by.encode(errors="surrogateescape") + b"\0"
        row = pack_row(one.info, thread, context.cpu.now(), place, [address, size, *values, by])
        put_row(context.sink, row)

    def _value(self, one: WatchedEvent, raw: bytes) -> int | bytes:
        kind, order = one.type, self._names.order
        if kind is not None and one.number:
            return int.from_bytes(raw, order, signed=kind.is_signed)
        if kind is None:
            more = "..." if len(raw) > _SHOWN else ""
            return f"{raw[:_SHOWN].hex()}{more}".encode() + b"\0"
        scope = self._names
        from engine.language.printing import Printer  # as in `choose`
        from engine.language.values import TypedValue

        printer = Printer(scope, scope.symbol)
        text = printer.text(TypedValue(kind, lambda: raw, order=order))
        return text.encode(errors="surrogateescape") + b"\0"


def _is_number(kind: "CType") -> bool:
    wanted = kind.resolved.kind
    from engine.language.value_types import INTEGERS  # as in `choose`

    return (wanted in INTEGERS or wanted is TypeKind.POINTER) and kind.size in _WORDS


def _info(number: int, name: str, kind: "CType | None", *, is_number: bool) -> EventInfo:
    value = _TEXT
    if kind is not None and is_number:
        shown = ValueKind.SIGNED if kind.is_signed else ValueKind.UNSIGNED
        if kind.resolved.kind is TypeKind.POINTER:
            shown = ValueKind.HEX
        value = FieldType(shown, kind.size or 8)
    columns = (
        ("address", _ADDRESS),
        ("size", _COUNT),
        ("old", value),
        ("new", value),
        ("by", _TEXT),
    )
    made = tuple(Column(each, type_, ROW_HEAD + at) for at, (each, type_) in enumerate(columns))
    return EventInfo(number, GROUP, name, made, ROW_HEAD + len(made), symbolic=True)


def _name(text: str, known: Callable[[str], bool]) -> str:
    """A name for the event of an expression that no other has."""
    plain = _UNNAMEABLE.sub("_", text).strip("_") or "bytes"
    if plain[0].isdigit():
        plain = f"at_{plain}"
    name, number = plain, 1
    while known(name):
        number += 1
        name = f"{plain}_{number}"
    return name
