"""Signals, C++ exceptions, forks and system calls as a front end's "exceptions"."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Final

from engine.errors import CommandError
from engine.linux import signals as sig
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.interpreter import Interpreter
from engine.session.debugger.linespecs import WantedPlace
from engine.session.debugger.output import TROUBLE, message
from engine.session.debugger.places import PlaceMissingError
from engine.session.debugger.signal_rules import signal_number
from engine.session.debugger.stops import BreakLocation, UserBreakpoint, UserStop
from engine.session.serve.dap.bodies import DapBreakpoint, ExceptionFilter

_FATAL: Final = (
    *(sig.SIGSEGV, sig.SIGBUS, sig.SIGILL, sig.SIGFPE, sig.SIGABRT, sig.SIGSYS, sig.SIGTRAP),
    *(signal_number("SIGXCPU"), signal_number("SIGXFSZ")),
)
_ALL: Final = range(1, 65)
_FUNCTIONS: Final = {"throw": "__cxa_throw", "catch": "__cxa_begin_catch"}
FILTERS: Final = (
    ExceptionFilter(
        filter="fatal",
        label="Fatal signals",
        description="Stop at signals that end the program: SIGSEGV, SIGABRT and the like.",
        default=True,
    ),
    ExceptionFilter(
        filter="signals",
        label="Signals",
        description="Stop at signals, all of them or those named by the condition.",
        supports_condition=True,
        condition_description="SIGUSR1 SIGALRM",
    ),
    ExceptionFilter(
        filter="throw",
        label="C++ exceptions thrown",
        description="Stop where the program throws a C++ exception.",
    ),
    ExceptionFilter(
        filter="catch",
        label="C++ exceptions caught",
        description="Stop where the program catches a C++ exception.",
    ),
    ExceptionFilter(
        filter="rust-panic",
        label="Rust panics",
        description="Stop where a panic of Rust begins.",
    ),
    ExceptionFilter(
        filter="fork", label="Forks", description="Stop where the program makes a process."
    ),
    ExceptionFilter(
        filter="exec", label="Execs", description="Stop where the program becomes another one."
    ),
    ExceptionFilter(
        filter="syscall",
        label="System calls",
        description="Stop at system calls, all of them or those named by the condition.",
        supports_condition=True,
        condition_description="openat close",
    ),
)


class ExceptionFilters:
    """The filters that are on."""

    def __init__(self, debugger: Debugger, interpreter: Interpreter) -> None:
        """Turn on the default filters; a signal never ends at the debugger."""
        self._debugger, self._interpreter = debugger, interpreter
        self._stops: dict[tuple[str, str], UserStop] = {}
        self._signals(_FATAL)

    def is_own(self, stop: UserStop) -> bool:
        """True for a stop that a filter has placed."""
        return any(one is stop for one in self._stops.values())

    def choose(self, chosen: Mapping[str, str], *, runs: bool) -> list[DapBreakpoint]:
        """Have these filters on, and no others.

        Args:
            chosen: filters to their conditions.
            runs: the guest is running meanwhile.
        """
        stops = self._debugger.stops
        told: dict[str, DapBreakpoint] = {}
        signals: set[int] = set()
        with stops.while_running() if runs else nullcontext():
            for key, stop in list(self._stops.items()):
                stands = stops.all.get(stop.number) is stop
                if stands and chosen.get(key[0]) == key[1]:
                    continue
                del self._stops[key]
                if stands:  # else a word has deleted it
                    stops.delete(stop)
            for name, condition in chosen.items():
                try:
                    told[name] = self._turn_on(name, condition, signals)
                except TROUBLE as error:
                    told[name] = DapBreakpoint(
                        verified=False, message=message(error), reason="failed"
                    )
        self._signals(signals)
        return list(told.values())

    def _turn_on(self, name: str, condition: str, signals: set[int]) -> DapBreakpoint:
        if name == "fatal":
            signals.update(_FATAL)
        elif name == "signals":
            named = condition.replace(",", " ").split()
            signals.update(map(signal_number, named) if named else _ALL)
        elif name in _FUNCTIONS:
            stop = self._stops.get((name, condition)) or self._function(name)
            self._stops[name, condition] = stop
            assert isinstance(stop, UserBreakpoint)
            if not stop.locations:
                text = "the program has no C++ exceptions (yet)"
                return DapBreakpoint(verified=False, message=text, reason="pending")
        elif name in ("rust-panic", "fork", "exec", "syscall"):
            if (name, condition) not in self._stops:
                self._stops[name, condition] = self._catchpoint(name, condition)
        else:
            raise CommandError(f"{name[:40]}: there is no such filter")
        return DapBreakpoint(verified=True)

    def _signals(self, numbers: "set[int] | tuple[int, ...]") -> None:
        """Stop at these signals; the program gets all of them."""
        for number in _ALL:
            rule = self._debugger.signals[number]
            rule.stop, rule.passed = number in numbers, True

    def _function(self, name: str) -> UserBreakpoint:
        wanted = WantedPlace(_FUNCTIONS[name], function=_FUNCTIONS[name])
        try:
            places = self._debugger.places_of(wanted)
        except PlaceMissingError:
            places = ()
        stop = UserBreakpoint(wanted=wanted, locations=[BreakLocation(one) for one in places])
        stop.event = "exception thrown" if name == "throw" else "exception caught"
        return self._debugger.stops.add(stop)

    def _catchpoint(self, name: str, condition: str) -> UserStop:
        stops = self._debugger.stops
        before = set(stops.all)
        words = condition.replace(",", " ") if name == "syscall" else ""
        self._interpreter.line(f"catch {name} {words}".strip())
        number = next(number for number in stops.all if number not in before)
        return stops.all[number]
