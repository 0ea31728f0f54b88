"""Words for breakpoints: where the guest is to stop, and what is asked before it does."""

import re
from typing import Final

from engine.errors import CommandError
from engine.language.value_types import INT
from engine.language.values import made
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.places import PlaceMissingError
from engine.session.debugger.script import ScriptLine
from engine.session.debugger.stops import BreakLocation, UserBreakpoint, UserStop, placed_text

_MOST: Final = 10_000
"""Numbers of a range."""
OF_THREAD: Final = re.compile(r"(.*?)(?:^|\s+)thread\s+(\S+)\s*")
"""A place or an expression with the thread that a stop is for."""


class Breaking:
    """Places breakpoints, and changes them."""

    def __init__(self, debugger: Debugger) -> None:
        """Place them in a debugger's guest."""
        self._debugger = debugger

    def break_(self, rest: str) -> None:
        """Stop at a place: break [PLACE] [thread NUMBER] [if CONDITION]."""
        self._add(rest, UserBreakpoint())

    def tbreak(self, rest: str) -> None:
        """Stop at a place once."""
        self._add(rest, UserBreakpoint(temporary=True))

    def hbreak(self, rest: str) -> None:
        """Stop at a place, by a breakpoint of the processor's: here as good as any other."""
        self._add(rest, UserBreakpoint(hardware=True))

    def thbreak(self, rest: str) -> None:
        """Stop once, by a breakpoint of the processor's."""
        self._add(rest, UserBreakpoint(hardware=True, temporary=True))

    def _add(self, rest: str, stop: UserBreakpoint) -> None:
        match = re.match(r"(.*?)(?:^|\s+)if\b(?=[\s(])(.*)$", rest)
        text, condition = (match[1], match[2].strip()) if match else (rest, "")
        debugger = self._debugger
        if match := OF_THREAD.fullmatch(text):
            text, stop.thread = match[1], debugger.threads.named(match[2])
        stop.wanted = debugger.wanted(text)
        try:
            places = debugger.places_of(stop.wanted)
        except PlaceMissingError as error:
            if not self._waits(str(error), stop):
                return
            places = ()
            stop.extra = f"if {condition}" if condition else ""
        stop.locations = [BreakLocation(place) for place in places]
        if places:
            debugger.conditions.set(stop, condition)
        debugger.stops.add(stop)
        debugger.kept.set("bpnum", made(INT, stop.number, "little"))
        debugger.put(placed_text(stop, debugger.displacement))

    def _waits(self, why: str, stop: UserBreakpoint) -> bool:
        """A place is not there: True if the breakpoint is to wait for a file that has it.

        Raises:
            PlaceMissingError: it is not.
        """
        debugger = self._debugger
        if debugger.pending_breakpoints == "off" or (
            debugger.pending_breakpoints == "auto" and not debugger.confirm
        ):
            raise PlaceMissingError(why)
        debugger.complain(why)
        if debugger.pending_breakpoints == "on":
            return True
        kind = "hw breakpoint" if stop.hardware else "breakpoint"
        debugger.put(
            f"Make {kind} pending on future shared library load? (y or [n]) "
            "[answered N; input not from terminal]"
        )
        return False

    def delete(self, rest: str) -> None:
        """Take breakpoints out: delete [breakpoints] [NUMBER...]; all without numbers."""
        rest = re.sub(r"^(breakpoints|br)\b", "", rest).strip()
        if rest.startswith("display"):
            self.undisplay(rest.removeprefix("display").strip())
            return
        stops = self._debugger.stops
        for stop in self.stops(rest) if rest else list(stops.all.values()):
            stops.delete(stop)

    def clear(self, rest: str) -> None:
        """Take breakpoints at a place out."""
        debugger = self._debugger
        wanted = debugger.wanted(rest)
        places = debugger.places_of(wanted)
        lines = {(place.file, place.line) for place in places if wanted.line or not rest}
        addresses = {place.address for place in places} if not lines else set[int]()
        gone = [
            stop
            for stop in debugger.stops.all.values()
            if isinstance(stop, UserBreakpoint)
            and any(
                one.place.address in addresses or (one.place.file, one.place.line) in lines
                for one in stop.locations
            )
        ]
        if not gone:
            raise CommandError(f"No breakpoint at {rest}.")
        for stop in gone:
            debugger.stops.delete(stop)
        if len(gone) > 1 or debugger.interactive:
            many = "s" if len(gone) > 1 else ""
            numbers = " ".join(str(one.number) for one in gone)
            debugger.put(f"Deleted breakpoint{many} {numbers} ")

    def enable(self, rest: str) -> None:
        """Let breakpoints (or displays) be: enable [once|delete|count N] [NUMBER...]."""
        words = rest.split()
        rule = words[0] if words else ""
        if rule not in ("once", "delete", "count"):
            self._switch(rest, on=True)
            return
        words = words[1:]
        count = 1
        if rule == "count":
            if not words:
                raise CommandError("Argument required (hit count).")
            count = self._debugger.number(words.pop(0))
        stops = self.stops(" ".join(words)) if words else list(self._debugger.stops.all.values())
        for stop in stops:
            stop.temporary = rule == "delete"
            stop.disabling = rule != "delete"
            stop.lasting = count if stop.disabling else 0
            self._debugger.stops.switch(stop, on=True)

    def disable(self, rest: str) -> None:
        """Keep breakpoints (or displays) quiet."""
        self._switch(rest, on=False)

    def _switch(self, rest: str, *, on: bool) -> None:
        debugger = self._debugger
        words = rest.split()
        if words and words[0].startswith("disp"):
            for display in debugger.displays.values():
                if len(words) == 1 or str(display.number) in words[1:]:
                    display.on = on
            return
        if words and words[0].startswith("br"):
            words = words[1:]
        stops = debugger.stops
        if not words:
            for stop in list(stops.all.values()):
                stops.switch(stop, on=on)
        for word in words:
            whole, dot, part = word.partition(".")
            if dot:
                self._switch_locations(whole, part, on=on)
                continue
            for stop in self.stops(word):
                stops.switch(stop, on=on)

    def _switch_locations(self, whole: str, part: str, *, on: bool) -> None:
        """Let locations of a breakpoint be, or keep them quiet: 1.2, 1.2-4."""
        debugger = self._debugger
        (number,) = self.numbers(whole)
        if number not in debugger.stops.all:
            raise CommandError(f"No breakpoint number {number}.")
        stop = debugger.stops.all[number]
        locations = stop.locations if isinstance(stop, UserBreakpoint) else []
        if part.startswith("$"):
            part = str(debugger.value(part).number)
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        first = int(match[1]) if match is not None else 0
        last = int(match[2] or match[1]) if match is not None else 0
        if last < first:
            raise CommandError(f"Inverted breakpoint location range at '{first}-{last}'")
        for wrong in (first, last):
            if not 1 <= wrong <= len(locations):
                shown = part if match is None else str(wrong)
                raise CommandError(f"Bad breakpoint location number '{shown}'")
        assert isinstance(stop, UserBreakpoint)
        for one in locations[first - 1 : last]:
            one.on = on
        debugger.stops.settle(stop)

    def condition(self, rest: str) -> None:
        """Stop at a breakpoint only where an expression holds: condition NUMBER [EXPR]."""
        number, _, text = rest.partition(" ")
        if not number:
            raise CommandError("Argument required (breakpoint number).")
        if not re.fullmatch(r"[1-9]\d*|\$\w+", number):
            raise CommandError(f"Bad breakpoint argument: '{rest}'")
        stop = self._stop(number)
        self._debugger.conditions.set(stop, text.strip())
        if isinstance(stop, UserBreakpoint):
            self._debugger.stops.settle(stop)
        if not stop.condition and self._debugger.interactive:
            self._debugger.put(f"Breakpoint {stop.number} now unconditional.")

    def ignore(self, rest: str) -> None:
        """Pass a breakpoint by: ignore NUMBER COUNT."""
        words = rest.split()
        if not words:
            raise CommandError("Argument required (a breakpoint number).")
        if not re.fullmatch(r"[1-9]\d*|\$\w+", words[0]):
            raise CommandError(f"bad breakpoint number: '{words[0]}'")
        if len(words) < 2:
            raise CommandError("Second argument (specified ignore-count) is missing.")
        stop = self._stop(words[0])
        stop.ignore = max(self._debugger.value(" ".join(words[1:])).number, 0)
        if not self._debugger.interactive:
            return
        if not stop.ignore:
            text = f"Will stop next time breakpoint {stop.number} is reached."
        else:
            crossings = f"{stop.ignore} crossings" if stop.ignore > 1 else "crossing"
            text = f"Will ignore next {crossings} of breakpoint {stop.number}."
        self._debugger.put(text)

    def commands(self, rest: str, body: tuple[ScriptLine, ...]) -> None:
        """Have words carried out when breakpoints stop the guest.

        Args:
            rest: their numbers; "" for the newest.
            body: the words.

        Raises:
            CommandError: there is no such breakpoint.
        """
        every = self._debugger.stops.all
        if not every:
            raise CommandError("No breakpoints specified.")
        for stop in self.stops(rest) if rest else [every[max(every)]]:
            stop.commands = body

    def undisplay(self, rest: str) -> None:
        """Show expressions no longer: undisplay [NUMBER...]."""
        displays = self._debugger.displays
        for word in rest.split() or [str(number) for number in displays]:
            if not word.isdigit():
                raise CommandError("Arguments must be display numbers.")
            if displays.pop(int(word), None) is None:
                self._debugger.put(f"No display number {word}.")

    def _stop(self, text: str) -> UserStop:
        """The stop of one number.

        Raises:
            CommandError: there is none such.
        """
        (number,) = self.numbers(text)
        return self._debugger.stops.find(number)

    def stops(self, text: str) -> list[UserStop]:
        """The stops that numbers name: "1 3-5 $bpnum"; of those that are not there it is said.

        Raises:
            CommandError: a word is no number.
        """
        found: list[UserStop] = []
        for number in self.numbers(text):
            stop = self._debugger.stops.all.get(number)
            if stop is None:
                self._debugger.put(f"No breakpoint number {number}.")
            else:
                found.append(stop)
        return found

    def numbers(self, text: str) -> list[int]:
        """The numbers of stops that words name.

        Raises:
            CommandError: a word is no number.
        """
        found: list[int] = []
        for word in text.split():
            if word.startswith("$"):
                found.append(self._debugger.value(word).number)
                continue
            if re.fullmatch(r"-\d+", word):
                raise CommandError(f"Negative breakpoint number '{word}'")
            match = re.fullmatch(r"([1-9]\d*)(?:-(\d+))?", word)
            if match is None:
                raise CommandError(f"Bad breakpoint number '{word}'")
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first:
                raise CommandError("inverted range")
            if last - first > _MOST:
                raise CommandError(f"{word}: too many numbers")
            found += range(first, last + 1)
        return found
