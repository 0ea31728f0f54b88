"""Stops with all that words have asked of them, for another session of the same program."""

from collections.abc import Callable, Iterator

from engine.errors import CommandError
from engine.session.debugger.catching import ExceptionCatch
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.output import TROUBLE, message
from engine.session.debugger.script import ScriptLine, commands_of, lines_of
from engine.session.debugger.stops import (
    ACCESSES,
    READS,
    Catchpoint,
    DynamicPrint,
    UserBreakpoint,
    UserProbe,
    UserStop,
    UserStops,
    UserWatchpoint,
)
from engine.session.protocol.commands import SavedStop


def saved_stops(stops: UserStops) -> tuple[SavedStop, ...]:
    """All stops but plain rows of the list of probes, which has those itself."""
    passing = stops.passing_rows
    own = (SavedStop(tuple(passing), passing=True),) if passing else ()
    return (*_saved(stops), *own)


def _saved(stops: UserStops) -> Iterator[SavedStop]:
    for stop in stops.all.values():
        word, rows = _word(stop), tuple[int, ...]()
        if isinstance(stop, UserBreakpoint):
            rows = tuple(one.probe for one in stop.locations if one.probe)
        condition = stop.condition
        if stop.thread:  # a session that is taken up again has a condition in place of it
            condition = f"$_thread == {stop.thread[0]}{f' && ({condition})' if condition else ''}"
        asked = stop.temporary or condition or stop.ignore or stop.commands
        several = len(rows) > 1 and not isinstance(stop, UserProbe)
        if word or several or (rows and asked):
            yield SavedStop(
                rows,
                word,
                stop.temporary,
                stop.on,
                condition,
                stop.ignore,
                tuple(lines_of(stop.commands)),
            )


def _word(stop: UserStop) -> str:
    """The line that places a stop which is not in rows of the list; "" for one that is."""
    match stop:
        case UserWatchpoint(sense=sense, text=text):
            name = {READS: "rwatch", ACCESSES: "awatch"}.get(sense, "watch")
            return f"{name} {text}"
        case Catchpoint(catches=kind, names=names):
            return " ".join(("catch", kind, *(name for name in names if name[:1] != "<")))
        case ExceptionCatch(catches=kind):
            return f"catch {kind}"
        case DynamicPrint(wanted=wanted, text=text) if wanted is not None:
            return f"dprintf {wanted.text},{text}"
        case UserBreakpoint(locations=[], wanted=wanted, extra=extra) if wanted is not None:
            return f"break {wanted.text} {extra}".strip()
    return ""


def recreated(stop: UserStop) -> Iterator[str]:
    """The lines that place a stop again in another session (`save breakpoints`)."""
    word = _word(stop)
    if not word and isinstance(stop, UserBreakpoint):
        name = ("t" if stop.temporary else "") + ("hbreak" if stop.hardware else "break")
        wanted = stop.wanted
        where = f"*{stop.locations[0].place.address:#x}" if wanted is None else wanted.text
        word = f"{name} {where}{f' thread {stop.thread[0]}' if stop.thread else ''}"
    elif stop.temporary and word.startswith("catch"):
        word = f"t{word}"
    yield word
    if stop.condition:
        yield f"  condition $bpnum {stop.condition}"
    if stop.ignore:
        yield f"  ignore $bpnum {stop.ignore}"
    if stop.commands:
        yield "  commands"
        yield from lines_of(stop.commands, "    ")
        yield "  end"
    if not stop.on:
        yield "disable $bpnum"
    elif isinstance(stop, UserBreakpoint):
        for number, one in enumerate(stop.locations, 1):
            if not one.on:
                yield f"disable $bpnum.{number}"


def restore_stops(
    debugger: Debugger, carry_out: Callable[[ScriptLine], None], saved: tuple[SavedStop, ...]
) -> list[str]:
    """Ask again what was asked of stops; what cannot be done, in words.

    Args:
        debugger: has the rows of the list of probes as stops already.
        carry_out: carries a word out.
        saved: of the session before.
    """
    failures: list[str] = []
    waits, debugger.pending_breakpoints = debugger.pending_breakpoints, "on"
    try:
        for one in saved:
            failures += _restore(debugger, carry_out, one)
    finally:
        debugger.pending_breakpoints = waits
    return failures


def _restore(
    debugger: Debugger, carry_out: Callable[[ScriptLine], None], saved: SavedStop
) -> list[str]:
    """Ask again what was asked of one stop."""
    name = saved.word
    try:
        stop = _placed(debugger, carry_out, saved)
        if stop is None:
            return []  # its row could not be placed, of which has been told
        name = name or f"breakpoint {stop.number}"
        stop.temporary, stop.ignore = saved.temporary, saved.ignore
        stop.commands = tuple(commands_of(enumerate(saved.commands, 1)))
        if not saved.on:
            debugger.stops.switch(stop, on=False)
        if saved.condition:
            name = f"{name} if {saved.condition}"
            debugger.conditions.set(stop, saved.condition)
    except TROUBLE as error:
        return [f"{name}: {message(error)}"]
    return []


def _placed(
    debugger: Debugger, carry_out: Callable[[ScriptLine], None], saved: SavedStop
) -> UserStop | None:
    """The stop that something was asked of; None where none of its rows is there."""
    every = debugger.stops.all
    if not saved.word:
        return debugger.stops.joined(saved.rows)
    before = set(every)
    carry_out(ScriptLine(saved.word))
    fresh = [stop for number, stop in every.items() if number not in before]
    if not fresh:
        raise CommandError("it places nothing")
    return fresh[0]
