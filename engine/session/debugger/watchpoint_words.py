"""Words for watchpoints: the guest stops where the value of an expression changes, or is used.

gdb: gdb/breakpoint.c (watch_command_1, watchpoint_check, print_it_watchpoint). An expression is
watched by all that its value has been read from, pointers among it; where one of them changes,
other bytes are watched from then on. One that reads registers is looked at behind each
instruction.
"""

import re
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field

from engine.errors import CommandError, GuestFaultError
from engine.guest.watched import WatchedRange
from engine.image.datatypes import TypeKind
from engine.language.value_types import INT
from engine.language.values import TypedValue, made
from engine.session.debugger.breaking import OF_THREAD
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.output import TROUBLE
from engine.session.debugger.stops import (
    ACCESSES,
    CHANGES,
    READS,
    STEPPED,
    Sense,
    UserBreakpoint,
    UserWatchpoint,
)
from engine.session.guest.session import Session
from engine.session.guest.watchpoints import Watch, WatchEvent
from engine.session.inspect.frame_scope import FrameScope
from engine.session.inspect.watched_expressions import Dependence, dependence, location

if TYPE_CHECKING:
    from engine.session.control.past.search import WatchPlace

_UNREADABLE = "<unreadable>"


class _WatchState(Struct, eq=False):
    """The state of a watchpoint's expression.

    Attributes:
        stop: the watchpoint.
        text: the expression; "" for one place in memory, wherever the expression leads later.
        value: as it was last; None where it cannot be read.
        place: the thing in memory, where `text` is "" or it stays where it is.
        call: CFA and function of the call that it lives with; None for none.
        watch: its bytes, in a session.
        session: where they are watched; None while they are not.
        end: stops the guest behind the call's return.
    """

    stop: UserWatchpoint
    text: str
    value: TypedValue | None = None
    place: TypedValue | None = None
    call: tuple[int | None, str] | None = None
    watch: Watch = field(default_factory=lambda: Watch(lambda event: None))
    session: Session | None = None
    end: UserBreakpoint | None = None


class Watching:
    """Places watchpoints, and says whether they stop the guest."""

    def __init__(self, debugger: Debugger) -> None:
        """Watch a debugger's guest."""
        self._debugger = debugger
        self._expressions: dict[int, _WatchState] = {}  # by identity of the watchpoint
        self._told: dict[int, list[WatchEvent]] = {}
        debugger.watches = self._looks
        debugger.control.questions.watches = self._in_past

    # -- words ------------------------------------------------------------------------------

    def watch(self, rest: str) -> None:
        """Stop where the value changes: watch [-l] EXPR [if CONDITION] [thread NUMBER]."""
        self._add(rest, CHANGES)

    def rwatch(self, rest: str) -> None:
        """Stop where a value is read: rwatch [-l] EXPR [if CONDITION]."""
        self._add(rest, READS)

    def awatch(self, rest: str) -> None:
        """Stop where a value is read or written: awatch [-l] EXPR [if CONDITION]."""
        self._add(rest, ACCESSES)

    def _add(self, rest: str, sense: Sense) -> None:
        debugger = self._debugger
        thread: tuple[int, int] | None = None
        if of := OF_THREAD.fullmatch(rest):
            rest, thread = of[1], debugger.threads.named(of[2])
        fixed = re.match(r"-l(?:ocation)?(\s+|$)", rest)
        match = re.match(r"(.*?)\s+if\b(.*)$", rest[fixed.end() :] if fixed else rest)
        text, condition = (match[1], match[2].strip()) if match else (rest, "")
        if match is None and fixed:
            text = rest[fixed.end() :]
        text = text.strip()
        if condition and OF_THREAD.fullmatch(text):
            raise CommandError("Junk at end of command.")
        if not text:
            raise CommandError("Argument required (expression to compute).")
        shown = f"-location {text}" if fixed else text
        stop = UserWatchpoint(sense=sense, text=shown, arm=lambda on: None, thread=thread)
        one = _WatchState(stop, "" if fixed else text)
        stop.arm = partial(self._arm, one)
        self._examine(one, text, fixed=fixed is not None)
        debugger.conditions.set(stop, condition)
        self._arm(one, True)
        debugger.stops.numbered(stop)
        self._expressions[id(stop)] = one
        if one.call is not None:
            self._end_with_call(one)
        debugger.kept.set("bpnum", made(INT, stop.number, "little"))
        debugger.put(f"{stop.sense.title} {stop.number}: {shown}")

    def _examine(self, one: _WatchState, text: str, *, fixed: bool) -> None:
        """See what an expression depends on.

        Raises:
            CommandError: on nothing, or on what cannot be watched so.
        """
        debugger, stop = self._debugger, one.stop
        found = dependence(text, debugger.guest_scope)
        value = found.value
        code = value is not None and value.type.kind is TypeKind.FUNCTION
        if value is not None and value.address is not None and not value.type.size and not code:
            raise CommandError(f"'{text}' has unknown type; cast it to its declared type")
        uses = found.uses
        if (found.constant and not (uses.local or uses.this)) or code:
            raise CommandError(f"Cannot watch constant value `{text}'.")
        if fixed:
            one.place = location(text, debugger.guest_scope)
            return
        # A variable that is a constant here is elsewhere later, as nothing but its place tells.
        if uses.registers or found.constant:
            if not debugger.started:
                raise CommandError("No registers.")
            if stop.sense is not CHANGES:
                raise CommandError("Expression cannot be implemented with read/access watchpoint.")
            stop.sense = STEPPED
        elif value is not None:
            here = value.address, value.type.size
            pointers = 1 if uses.this and not uses.local else 0  # `this` itself
            if here in uses.memory and len(uses.memory) == 1 + pointers:
                one.place = value
        # As in gdb, a member of `this` is watched when the method has returned, too.
        stays = one.place is not None and uses.this
        frame = debugger.frame
        if (uses.local or uses.this) and not stays and frame is not None:
            one.call = frame.cfa, frame.function
            stop.local = True

    def _end_with_call(self, one: _WatchState) -> None:
        """The watchpoint goes where the call that its expression lives with has returned."""
        debugger = self._debugger
        caller = debugger.frames.caller(debugger.frames.selected)
        floor = one.call[0] or 0 if one.call is not None else 0
        if caller is None:
            return

        def left() -> bool:
            debugger.frames.moved()
            gone = (debugger.frames.innermost().cfa or 0) > floor
            if gone:
                self._over(one)
            return gone

        one.end = debugger.stops.add_own(debugger.places.at(caller.pc), left, one.stop)

    def _over(self, one: _WatchState) -> None:
        """Make this the watchpoint's last stop: the call of its variable has returned."""
        stop = one.stop
        stop.temporary = True
        stop.story = [
            "",
            f"Watchpoint {stop.number} deleted because the program has left the block in",
            "which its expression is valid.",
        ]

    # -- the guest --------------------------------------------------------------------------

    def _arm(self, one: _WatchState, on: bool) -> None:
        """Watch an expression, with the value that it has now; or no longer."""
        if one.session is not None:
            one.session.watchpoints.remove([one.watch])
            one.session = None
        stop = one.stop
        if on:
            session = self._debugger.control.session
            if not self._debugger.started:
                self._debugger.frames.moved()
            one.watch = Watch(partial(self._hit, one))
            one.value = self._follow(one, self._scope_of(one) or self._debugger.bare_scope)
            one.session = session
            session.watchpoints.add([one.watch])
        elif one.end is not None and stop.number:
            end, one.end = one.end, None
            self._debugger.stops.delete(end)
        self._debugger.control.look_at_each(
            on=any(
                other.sense is STEPPED and other.on and (other is not stop or on)
                for other in (*self._debugger.stops.watchpoints, *([stop] if on else []))
            )
        )

    def _hit(self, one: _WatchState, event: WatchEvent) -> None:
        """Watched bytes have been accessed: what that means is seen behind the instruction."""
        self._told.setdefault(id(one.stop), []).append(event)
        self._debugger.control.notice()

    def _follow(self, one: _WatchState, scope: FrameScope) -> TypedValue | None:
        """The value of now, kept; the bytes that it depends on are watched from here on."""
        if one.place is not None and one.place.address is not None:
            address, kind = one.place.address, one.place.type
            size = kind.size or 0
            pieces = [(address, size)]
            value: TypedValue | None = TypedValue(
                kind, partial(scope.read, address, size), one.place.place, order=scope.order
            )
        else:
            found: Dependence = dependence(one.text, scope)
            pieces, value = list(found.uses.memory), found.value
        sense, ranges = one.stop.sense, one.watch.ranges
        if pieces != [(each.start, each.size) for each in ranges]:
            fresh = [
                WatchedRange(start, size, sense.reads, sense.writes or number < len(pieces) - 1)
                for number, (start, size) in enumerate(pieces)
                if size
            ]
            if one.session is not None:
                one.session.watchpoints.move(one.watch, fresh)
            else:
                ranges[:] = fresh
        try:
            return value.remembered() if value is not None else None
        except GuestFaultError:
            return None

    def _scope_of(self, one: _WatchState) -> FrameScope | None:
        """The meaning of names where the expression belongs; None once that is gone."""
        debugger = self._debugger
        if one.call is None:
            return debugger.bare_scope
        if one.place is not None:
            return debugger.bare_scope
        number = debugger.frames.of_call(*one.call)
        return None if number is None else debugger.frames.scope(number)

    # -- stops ------------------------------------------------------------------------------

    def _looks(self) -> str:
        """Asked between two instructions: which watchpoints stop the guest, in words."""
        debugger = self._debugger
        told, self._told = self._told, {}
        if debugger.calls.is_running:
            return ""  # as in gdb, whose watchpoints wait until an expression has its value
        stops, reached = debugger.stops, []
        debugger.frames.moved()
        try:
            for stop in stops.watchpoints:
                events = told.get(id(stop), [])
                if stop.on and (events or stop.sense is STEPPED):
                    one = self._expressions[id(stop)]
                    if self._changes(one, events) and (stop.temporary or stops.wants(stop)):
                        reached.append(stop)
            if not reached:
                return ""
            stops.reached += reached
            session = debugger.control.session
            pc = session.cpu.read_register(session.arch.roles.pc)
            stops.reached += [stop for stop in stops.at(pc) if stops.wants(stop)]
        finally:
            debugger.frames.moved()
        return f"watchpoint {reached[0].number}: {reached[0].text}"

    def _in_past(self) -> "list[WatchPlace]":
        """The accesses of the past to stop at: those to the bytes that are watched now."""
        from engine.session.control.past.search import WatchPlace  # few go back

        return [
            WatchPlace(
                tuple(one.watch.ranges),
                partial(self._is_met, one.stop),
                f"watchpoint {one.stop.number}: {one.stop.text}",
                partial(self._went, one),
            )
            for one in self._expressions.values()
            if one.stop.on and one.stop.sense is not STEPPED and one.watch.ranges
        ]

    def _is_met(self, stop: UserWatchpoint, event: WatchEvent) -> bool:
        """True if an access of the past is one to stop at."""
        hit = event.hit
        if stop.sense is CHANGES and not hit.changed:
            return False
        if stop.sense is READS and not hit.read:
            return False
        self._debugger.frames.moved()
        return self._debugger.stops.wants(stop)

    def _went(self, one: _WatchState, event: WatchEvent, back: bool) -> None:
        """The guest has gone to an access; the story tells values in the order of the motion."""
        debugger, stop, hit = self._debugger, one.stop, event.hit
        debugger.frames.moved()
        scope = debugger.bare_scope
        title = ["", f"{stop.sense.title} {stop.number}: {stop.text}", ""]
        kind = one.value.type if one.value is not None else None

        def text(data: bytes) -> str:
            if kind is None or kind.size != len(data):
                return data.hex(" ")
            return self._text(TypedValue(kind, lambda: data, order=scope.order), scope)

        first, second = (hit.new, hit.old) if back else (hit.old, hit.new)
        if hit.changed and stop.sense is not READS:
            values = [f"Old value = {text(first)}", f"New value = {text(second)}"]
        else:
            values = [f"Value = {text(hit.new)}"]
        by = "Written" if hit.written else "Read"
        stop.story = [*title, *values, *([f"{by} by {event.by}"] if event.by else [])]
        debugger.stops.reached[:] = [stop]

    def _changes(self, one: _WatchState, events: list[WatchEvent]) -> bool:
        """True if what has happened is of the watchpoint's kind; its story is told then."""
        stop, before = one.stop, one.value
        try:
            scope = self._scope_of(one)
            if scope is None:
                self._over(one)
                return True
            now = one.value = self._follow(one, scope)
        except TROUBLE:
            scope, now = self._debugger.bare_scope, None
            one.value = None
        changed = _raw(before) != _raw(now)
        title = ["", f"{stop.sense.title} {stop.number}: {stop.text}", ""]
        if changed and stop.sense is not READS:
            values = [
                f"Old value = {self._text(before, scope)}",
                f"New value = {self._text(now, scope)}",
            ]
        elif stop.sense is ACCESSES or (
            stop.sense is READS and any(event.hit.read for event in events)
        ):
            values = [f"Value = {self._text(now, scope)}"]
        else:
            return False
        by = [
            f"{'Written' if event.hit.written else 'Read'} by {event.by}"
            for event in events
            if event.by
        ]
        stop.story = [*title, *values, *dict.fromkeys(by)]
        return True

    def _text(self, value: TypedValue | None, scope: FrameScope) -> str:
        if value is None:
            return _UNREADABLE
        try:
            return self._debugger.frames.printer(scope).text(value)
        except TROUBLE:
            return _UNREADABLE


def _raw(value: TypedValue | None) -> bytes | None:
    return None if value is None else value.raw
