"""The tables of what stops the guest: info breakpoints, info watchpoints."""

from collections.abc import Callable, Sequence
from typing import Final, TypeGuard

from engine.language.value_types import VOID, pointer_to
from engine.language.values import made
from engine.session.debugger.breaking import Breaking
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.script import lines_of as lines_of_script
from engine.session.debugger.stops import (
    STEPPED,
    DynamicPrint,
    UserBreakpoint,
    UserStop,
    place_text,
)

_DATA: Final = pointer_to(VOID)
_TYPE: Final = 14
"""Width of a column."""


class StopTables:
    """Shows them as gdb does (gdb/breakpoint.c, print_one_breakpoint_location)."""

    def __init__(
        self, debugger: Debugger, breaking: Breaking, examine_from: Callable[[int], None]
    ) -> None:
        """Show a debugger's.

        Args:
            debugger: the debugger.
            breaking: reads the numbers of some.
            examine_from: has the next `x` begin at an address, that of the last one shown.
        """
        self._debugger, self._breaking = debugger, breaking
        self._examine_from = examine_from

    def info_breakpoints(self, rest: str) -> None:
        """Breakpoints and watchpoints, how often they were hit, and their conditions."""
        self._table(list(self._debugger.stops.all.values()), "breakpoint or watchpoint", rest)

    def info_watchpoints(self, rest: str) -> None:
        """Watchpoints alone."""
        self._table(self._debugger.stops.watchpoints, "watchpoint", rest)

    def _table(self, stops: Sequence[UserStop], what: str, rest: str) -> None:
        """Show stops, those with the numbers in `rest` alone if there are any."""
        debugger = self._debugger
        if rest:
            wanted = set(self._breaking.numbers(rest))
            stops = [stop for stop in stops if stop.number in wanted]
        if not stops:
            some = " or ".join(f"{word}s" for word in what.split(" or "))
            debugger.put(f"No {what} matching '{rest}'." if rest else f"No {some}.")
            return
        put, digits = debugger.put, debugger.control.session.arch.bits // 4
        bare = STEPPED.kind, "catchpoint"
        placed = any(isinstance(one, UserBreakpoint) or one.kind not in bare for one in stops)
        there = any(isinstance(stop, UserBreakpoint) and stop.locations for stop in stops)
        waits = any(isinstance(stop, UserBreakpoint) and not stop.locations for stop in stops)
        if not placed or (waits and not there) or not (debugger.started or there):
            digits = 8  # gdb's width where nothing has an address
        wide = max(_TYPE, *(len(stop.kind) for stop in stops))
        put(f"Num     {'Type':<{wide}} Disp Enb {'Address':<{digits + 2}} What")
        for stop in stops:
            keeps = "del " if stop.temporary else "dis " if stop.disabling else "keep"
            on = "y" if stop.on else "n"
            where, what = _column(stop, digits, debugger.displacement)
            of_thread = f" thread {stop.thread[0]}" if stop.thread else ""
            put(f"{stop.number:<7} {stop.kind:<{wide}} {keeps} {on}   {where} {what}{of_thread}")
            if stop.detail:
                put(f"\t{stop.detail}")
            if stop.condition:
                put(f"\tstop only if {stop.condition}")
            if stop.thread:
                put(f"\tstop only in thread {stop.thread[0]}")
            if stop.hits:
                times = "time" if stop.hits == 1 else "times"
                put(f"\t{stop.name} already hit {stop.hits} {times}")
            if stop.ignore:
                put(f"\tignore next {stop.ignore} hits")
            if stop.lasting > 1:
                which = "additional" if stop.ignore else "next"
                put(f"\tdisable after {which} {stop.lasting} hits")
            if isinstance(stop, DynamicPrint):
                put(f"        printf {stop.text}")
            for line in lines_of_script(stop.commands, "        "):
                put(line)
            if not _is_listed(stop) or not stop.is_split:
                continue
            for number, one in enumerate(stop.locations, 1):
                on = "y" if one.on else "n"
                on = on if one.valid else "N*"
                at = one.place.address - debugger.displacement
                where = f"0x{at:0{digits}x} {place_text(one.place)}"
                put(f"{f'{stop.number}.{number}':<7} {'':<{wide}} {'':<4} {on:<3} {where}")
        listed = [stop for stop in stops if _is_listed(stop) and stop.locations]
        if listed:  # the first location of the last one, as in gdb
            at = listed[-1].locations[0].place.address - debugger.displacement
            debugger.kept.set("_", made(_DATA, at, debugger.scope.order))
            self._examine_from(at)
        if any(
            not one.valid
            for stop in stops
            if isinstance(stop, UserBreakpoint)
            for one in stop.locations
        ):
            put("(*): Breakpoint condition is invalid at this location.")


def _is_listed(stop: UserStop) -> TypeGuard[UserBreakpoint]:
    """True if `info breakpoints` shows the addresses of a stop."""
    return isinstance(stop, UserBreakpoint) and stop.kind in (
        *("breakpoint", "hw breakpoint", "dprintf"),
    )


def _column(stop: UserStop, digits: int, displacement: int) -> tuple[str, str]:
    """The address of a stop in `info breakpoints`, and what stands behind it."""
    if not _is_listed(stop):
        return " " * (digits + 2), stop.what
    if not stop.locations:
        return f"{'<PENDING>':<{digits + 2}}", stop.what
    if stop.is_split:
        return f"{'<MULTIPLE>':<{digits + 2}}", ""
    return f"0x{stop.locations[0].place.address - displacement:0{digits}x}", stop.what
