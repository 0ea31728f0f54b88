"""Words for what happens to the guest: catch, handle."""

import re
from typing import ClassVar, Final

from engine.errors import CommandError, GuestFaultError
from engine.escaping import escaped
from engine.guest.hooks import SignalAnswer
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.elsewhere import unknown
from engine.session.debugger.linespecs import WantedPlace
from engine.session.debugger.places import PlaceMissingError
from engine.session.debugger.rust_panics import ENTRIES, PanicMessages
from engine.session.debugger.signal_rules import (
    CRASHES,
    HEADING,
    OWN,
    SignalTable,
    signal_name,
    signal_number,
    signal_text,
)
from engine.session.debugger.stops import BreakLocation, Catchpoint, UserBreakpoint, UserStop

_EXCEPTIONS: Final = {
    "throw": ("__cxa_throw", "exception thrown"),
    "rethrow": ("__cxa_rethrow", "exception rethrown"),
    "catch": ("__cxa_begin_catch", "exception caught"),
}
_TYPE_INFO: Final = "typeinfo for "
_PANIC: Final = "rust-panic"
_KINDS: Final = ("syscall", "signal", "fork", "vfork", "exec", *_EXCEPTIONS, _PANIC)
_PANICS: Final = "Rust panic"
_ANY, _STANDARD = "<any signal>", "<standard signals>"


class ExceptionCatch(UserBreakpoint, kw_only=True):
    """A breakpoint in the C++ library's function that throws or catches.

    Attributes:
        catches: "throw", "rethrow" or "catch".
        matching: a regular expression for the exception's type; "" for all.
    """

    name: ClassVar[str] = "catchpoint"
    catches: str = "throw"
    matching: str = ""

    @property
    def kind(self) -> str:
        """The words of `info breakpoints` for it."""
        return "catchpoint"

    @property
    def what(self) -> str:
        """The last column of `info breakpoints`."""
        return f"exception {self.catches}"

    @property
    def detail(self) -> str:
        """The line below it in `info breakpoints`."""
        return f"matching: {self.matching}" if self.matching else ""


class PanicCatch(ExceptionCatch, kw_only=True):
    """A breakpoint in the functions of Rust's library that panics begin in."""

    @property
    def what(self) -> str:
        """The last column of `info breakpoints`."""
        return "Rust panic"

    @property
    def is_split(self) -> bool:
        """False: its locations are the library's own matter."""
        return False

    @property
    def hit_number(self) -> int:
        """The number of the only location that is shown."""
        return 1

    @property
    def label(self) -> str:
        """The words in front of the place where it stops."""
        kind = "Temporary catchpoint" if self.temporary else "Catchpoint"
        return f"{kind} {self.number} ({self.event}), "


class Catching:
    """Places catchpoints, and says what is done with signals."""

    def __init__(self, debugger: Debugger) -> None:
        """Catch what happens to a debugger's guest."""
        self._debugger = debugger
        questions = debugger.control.questions
        questions.signal = self._signal
        questions.forked = self._forked
        questions.executed = lambda path: self._event("exec", f"exec'd {path}")

    # -- words ------------------------------------------------------------------------------

    def catch(self, rest: str) -> None:
        """Stop at an event: catch syscall|signal|fork|exec|throw|catch|rust-panic|... [NAMES]."""
        self._add(rest, temporary=False)

    def tcatch(self, rest: str) -> None:
        """Stop at an event once."""
        self._add(rest, temporary=True)

    def _add(self, rest: str, *, temporary: bool) -> None:
        rest, _, condition = rest.partition(" if ")
        kind, *names = rest.split() or [""]
        if not kind:
            raise CommandError(f"Catch what?  There are {', '.join(_KINDS)}.")
        if kind not in _KINDS:
            raise unknown(rest.strip(), _KINDS, "tcatch " if temporary else "catch ")
        debugger = self._debugger
        asked = UserStop()
        debugger.conditions.set(asked, condition.strip())
        stop: UserStop
        if kind in _EXCEPTIONS:
            stop, said = self._exceptions(kind, " ".join(names)), kind
        elif kind == _PANIC:
            stop, said = self._panics(), kind
        elif kind == "syscall":
            numbers = [self._call(name) for name in names]
            stop = Catchpoint(catches=kind, names=tuple(n for n, _ in numbers))
            said = " ".join(
                f"'{name}' [{number}]" if name != str(number) else name for name, number in numbers
            )
            said = f"syscall{'s' if len(names) > 1 else ''} {said}" if names else "any syscall"
        elif kind == "signal":
            stop, said = _signals(names)
        elif names:
            raise CommandError("Junk at end of arguments.")
        else:
            stop, said = Catchpoint(catches=kind), kind
        stop.temporary, stop.condition, stop.tree = temporary, asked.condition, asked.tree
        debugger.stops.numbered(stop)
        title = "Catchpoint"
        if temporary and isinstance(stop, ExceptionCatch):
            title = "Temporary catchpoint "  # with two spaces, as gdb has it
        debugger.put(f"{title} {stop.number} ({said})")
        questions = debugger.control.questions
        if kind == "syscall":
            questions.call, questions.returned = self._called, self._returned

    def _exceptions(self, kind: str, matching: str) -> ExceptionCatch:
        """A catchpoint in the C++ library; it waits for the library where that comes later.

        Args:
            kind: what the library does with the exception.
            matching: a regular expression for its type; "" for all.

        Raises:
            CommandError: that is none.
        """
        debugger = self._debugger
        try:
            pattern = re.compile(matching)
        except re.error as error:
            raise CommandError(f"invalid type-matching regexp: {error}") from None
        name, event = _EXCEPTIONS[kind]
        probe = "libstdcxx", kind
        wanted = WantedPlace(f"-function {name}", function=name, whole=True, probe=probe)
        locations = self._locations(wanted)
        stop = ExceptionCatch(
            wanted=wanted, locations=locations, catches=kind, event=event, matching=matching
        )

        def fits() -> bool:
            debugger.frames.moved()
            name = self._type_thrown()
            return not name or pattern.search(name) is not None

        stop.fits = fits if matching else None
        debugger.stops.arm(stop)
        return stop

    def _type_thrown(self) -> str:
        """The type of the exception that the library has in hand; "" where it does not tell."""
        debugger = self._debugger
        try:
            described = debugger.value("$_probe_arg1").number
        except (CommandError, GuestFaultError):
            return ""
        symbol = debugger.frames.seen.modules.locate(described).symbol
        name = "" if symbol is None else symbol.demangled
        return name.removeprefix(_TYPE_INFO) if name.startswith(_TYPE_INFO) else ""

    def _locations(self, wanted: WantedPlace) -> list[BreakLocation]:
        """The places in files that are there already."""
        try:
            places = self._debugger.places_of(wanted)
        except PlaceMissingError:
            places = ()
        return [BreakLocation(place) for place in places]

    def _panics(self) -> PanicCatch:
        """A catchpoint in Rust's library; it waits for the library where that comes later."""
        debugger = self._debugger
        wanted = WantedPlace(_PANIC, function=ENTRIES[0], entries=ENTRIES)
        locations = self._locations(wanted)
        stop = PanicCatch(wanted=wanted, locations=locations, catches=_PANIC, event=_PANICS)

        def told() -> bool:
            session = debugger.control.session
            names = PanicMessages(session, lambda at: debugger.places.at(at).function)
            message = escaped(names.message())
            stop.event = f"{_PANICS}: {message}" if message else _PANICS
            return True

        stop.at_hit = told
        debugger.stops.arm(stop)
        return stop

    def _call(self, word: str) -> tuple[str, int]:
        """A system call's name and number."""
        calls = self._debugger.control.session.arch.linux.syscalls
        if word.isdigit():
            return calls.get(int(word), word), int(word)
        for number, name in calls.items():
            if name == word:
                return name, number
        raise CommandError(f"Unknown syscall name '{word}'.")

    def handle(self, rest: str) -> None:
        """Say what is done with signals: handle SIGNAL... [no]stop [no]print [no]pass."""
        words = rest.split()
        if not words:
            raise CommandError("Argument required (signal to handle).")
        self._table.handle(words)

    def info_signals(self, rest: str) -> None:
        """The table of what is done with signals: info signals [SIGNAL]."""
        put = self._debugger.put
        put(HEADING)
        try:
            numbers = [signal_number(word) for word in rest.split()]
        except CommandError:
            self._debugger.value(rest)  # a number, or a name that means nothing
            raise
        if not numbers:
            put("")
        for line in self._table.lines(numbers):
            put(line)
        if not numbers:
            put("")
            put('Use the "handle" command to change these tables.')

    # -- what happens -----------------------------------------------------------------------

    @property
    def _table(self) -> SignalTable:
        return self._debugger.signals

    def _caught(self, kind: str) -> list[Catchpoint]:
        return [
            stop
            for stop in self._debugger.stops.all.values()
            if isinstance(stop, Catchpoint) and stop.on and stop.catches == kind
        ]

    def _stopped_by(self, stops: list[Catchpoint], event: str) -> str:
        """Let catchpoints say whether they want to stop; why, "" if none does."""
        wanted = [stop for stop in stops if self._debugger.stops.wants(stop)]
        for stop in wanted:
            stop.event = event
        self._debugger.stops.reached += wanted
        return f"catchpoint {wanted[0].number}: {event}" if wanted else ""

    def _event(self, kind: str, event: str) -> str:
        return self._stopped_by(self._caught(kind), event)

    def _forked(self, pid: int, call: str) -> str:
        kind = "vfork" if call == "vfork" else "fork"
        return self._event(kind, f"{kind}ed process {pid}")

    def _of_call(self, number: int, name: str) -> list[Catchpoint]:
        shown = name or str(number)
        return [s for s in self._caught("syscall") if not s.names or shown in s.names]

    def _called(self, number: int, name: str) -> str:
        return self._stopped_by(
            self._of_call(number, name), f"call to syscall {name or f'#{number}'}"
        )

    def _returned(self, number: int, name: str) -> str:
        return self._stopped_by(
            self._of_call(number, name), f"returned from syscall {name or f'#{number}'}"
        )

    def _signal(self, number: int) -> SignalAnswer:
        """A signal is about to be delivered to the guest."""
        debugger, rule = self._debugger, self._table[number]
        if not debugger.started:
            return SignalAnswer(stops=False, passes=True)
        name = signal_name(number)
        caught = [
            stop
            for stop in self._caught("signal")
            if name in stop.names
            or _ANY in stop.names
            or (_STANDARD in stop.names and number not in OWN)
        ]
        if caught and self._stopped_by(caught, f"signal {name}"):
            return SignalAnswer(stops=True, passes=rule.passed)
        # An interface lets signals pass, but for those that would end an expression's call.
        stops = rule.stop or (
            debugger.attached and debugger.calls.is_running and number in CRASHES
        )
        if stops:
            debugger.signal = number
        elif rule.told:
            debugger.put("")
            debugger.put(received_text(number))
        return SignalAnswer(stops=stops, passes=rule.passed)


def received_text(number: int, culprit: str = "") -> str:
    """The line that tells of a signal, and the thread that it was for where there are several."""
    return f"{culprit or 'Program'} received signal {signal_name(number)}, {signal_text(number)}."


def _signals(names: list[str]) -> tuple[Catchpoint, str]:
    """The catchpoint of `catch signal`, and how it is called."""
    if not names:
        return Catchpoint(catches="signal", names=(_STANDARD,)), "standard signals"
    if names == ["all"]:
        return Catchpoint(catches="signal", names=(_ANY,)), "any signal"
    if "all" in names:
        raise CommandError("'all' cannot be caught with other signals")
    found = tuple(signal_name(signal_number(name)) for name in names)
    many = "s" if len(found) > 1 else ""
    return Catchpoint(catches="signal", names=found), f"signal{many} {' '.join(found)}"
