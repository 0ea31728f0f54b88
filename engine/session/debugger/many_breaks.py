"""Words for many breakpoints at once: rbreak, save breakpoints, dprintf; compare-sections."""

import re
from collections.abc import Callable
from pathlib import Path

from engine.errors import CommandError, GuestFaultError
from engine.image import headers
from engine.language.value_types import INT
from engine.language.values import made
from engine.session.debugger.breaking import Breaking
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.looking import Looking
from engine.session.debugger.output import TROUBLE, message
from engine.session.debugger.saving import recreated
from engine.session.debugger.searching import Searching
from engine.session.debugger.stops import BreakLocation, DynamicPrint
from engine.session.debugger.word_arguments import split_arguments

_MOST = 2000
"""Breakpoints that one word may place."""


class ManyBreaks:
    """Places and saves breakpoints by the dozen."""

    def __init__(
        self, debugger: Debugger, breaking: Breaking, searching: Searching, looking: Looking
    ) -> None:
        """Place them in a debugger's guest."""
        self._debugger, self._breaking = debugger, breaking
        self._searching, self._looking = searching, looking

    def rbreak(self, rest: str) -> None:
        """Stop at all functions whose names match: rbreak [FILE:]REGEXP."""
        debugger = self._debugger
        file, _, pattern = (
            rest.rpartition(":") if re.match(r"[^:]+\.\w+:", rest) else ("", "", rest)
        )
        debugged, others = self._searching.functions(pattern.strip(), file.strip())
        if len(debugged) + len(others) > _MOST:
            raise CommandError(
                f"{len(debugged) + len(others)} functions match, which are more than {_MOST}:"
                " rbreak FILE:REGEXP takes those of a file."
            )
        for path, name, text in debugged:
            debugger.output.breathe()
            self._one(f"{path}:{name}", text)
        for name in others:
            debugger.output.breathe()
            self._one(name, f"<function, no debug info> {name};")

    def _one(self, place: str, text: str) -> None:
        """Place one breakpoint; a function without code of its own is told of and passed by."""
        debugger = self._debugger
        try:
            self._breaking.break_(place)
        except TROUBLE as error:
            debugger.complain(message(error))
            return
        debugger.put(text)

    def save(self, rest: str) -> None:
        """Write breakpoints to a file that `source` reads: save breakpoints FILE."""
        word, _, path = rest.partition(" ")
        path = path.strip()
        if not word or not "breakpoints".startswith(word):
            raise CommandError('"save" must be followed by: breakpoints')
        if not path:
            raise CommandError("Argument required (file name in which to save)")
        debugger = self._debugger
        stops = [stop for stop in debugger.stops.all.values() if stop.number > 0]
        if not stops:
            debugger.complain("warning: Nothing to save.")
            return
        text = "".join(f"{line}\n" for stop in stops for line in recreated(stop))
        try:
            Path(path).expanduser().write_text(text, errors="surrogateescape")
        except OSError as error:
            raise CommandError(
                f"Unable to open file '{path}' for saving ({error.strerror})"
            ) from None
        if debugger.interactive:
            debugger.put(f"Saved to file '{path}'.")

    def dprintf(self, rest: str) -> None:
        """Print values each time a place is passed: dprintf PLACE,"FORMAT",EXPR..."""
        debugger = self._debugger
        parts = split_arguments(rest)
        if len(parts) < 2 or not parts[1].startswith('"'):
            raise CommandError("Format string required")
        text = rest.partition(parts[0])[2].lstrip().removeprefix(",").strip()
        wanted = debugger.wanted(parts[0])
        places = debugger.places_of(wanted)
        stop = DynamicPrint(
            wanted=wanted,
            text=text,
            locations=[BreakLocation(place) for place in places],
        )
        stop.at_hit = self._printing(text)
        debugger.stops.add(stop)
        debugger.kept.set("bpnum", made(INT, stop.number, "little"))
        first = places[0]
        where = f": file {first.written}, line {first.line}." if first.file else ""
        where = f" ({len(places)} locations)" if len(places) > 1 else where
        debugger.put(f"Dprintf {stop.number} at {first.address:#x}{where}")

    def _printing(self, text: str) -> Callable[[], bool]:
        def at_hit() -> bool:
            try:
                self._debugger.conditions.at_hit(lambda: self._looking.printf(text))
            except TROUBLE as error:
                self._debugger.complain(message(error))
            return False

        return at_hit

    # -- files against memory ---------------------------------------------------------------

    def compare_sections(self, rest: str) -> None:
        """Compare the sections of the program's file with memory: compare-sections [-r] [NAME]."""
        debugger = self._debugger
        words = rest.split()
        read_only = words[:1] == ["-r"]
        name = " ".join(words[read_only:])
        main = debugger.frames.seen.modules.main
        found = False
        mismatched = False
        for section in main.image.sections if main is not None else ():
            loaded = section.flags & headers.SHF_ALLOC and section.type != headers.SHT_NOBITS
            if main is None or not loaded or not section.size or (name and section.name != name):
                continue
            if read_only and section.flags & headers.SHF_WRITE:
                continue
            found = True
            low = section.addr + main.bias
            try:
                data = main.image.section_data(section)
                same = not debugger.started or debugger.scope.read(low, section.size) == data
            except GuestFaultError:
                raise CommandError(
                    "target memory fault, section "
                    f"{section.name}, range {low:#x} -- {low + section.size:#x}"
                ) from None
            mismatched = mismatched or not same
            verdict = "matched." if same else "MIS-MATCHED!"
            debugger.put(
                f"Section {section.name}, range {low:#x} -- {low + section.size:#x}: {verdict}"
            )
        if mismatched:
            debugger.complain("warning: One or more sections of the target image does not match")
            debugger.complain("the loaded file")
        if not found and name:
            debugger.put(f"No loaded section named '{name}'.")
