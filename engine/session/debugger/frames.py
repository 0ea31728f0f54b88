"""The frames of a standing guest as gdb writes them (gdb/stack.c)."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError
from engine.image.datatypes import TypeKind
from engine.language.memory_texts import marked_error
from engine.language.printing import Printer
from engine.language.value_types import is_reference
from engine.language.values import TypedValue
from engine.linux import vdso
from engine.linux.space import AddressSpace
from engine.message_text import bare_name
from engine.session.control.control import Control
from engine.session.debugger.arguments import EntryRule, argument_texts
from engine.session.debugger.places import BlockKey
from engine.session.debugger.settings import SettingValues, SourceRules
from engine.session.inspect.backtrace import Backtraces, space_of
from engine.session.inspect.frame_scope import FrameScope
from engine.session.inspect.stored_program import StoredProgram
from engine.session.inspect.tail_calls import TAIL, TailCalls
from engine.session.inspect.value_lines import bare_pointer
from engine.session.protocol.frames import CALLED, GuestFrame

_MANY: Final = frozenset((TypeKind.RECORD, TypeKind.ARRAY))
_GIVEN_FUNCTION: Final = re.compile(r"[<,][^()]*[\w>*&] \((?![*&]|[\w:]+::\*|anonymous)")
_UNTRUE: Final = re.compile(r"^_Z|\.cold\b|\.constprop\b|\.isra\b|\.part\b")
"""Names that are not the source's: nobody could demangle them, or they are of a part or copy."""
_MAX_SOURCE: Final = 1 << 24
"""Bytes of a source file that is read."""


class Sources:
    """Lines of source files; a file that is not there is said once.

    Attributes:
        written: gives a source file as its compiler was given it.
    """

    def __init__(
        self, written: Callable[[str], str], rules: SourceRules, *, closed: bool = False
    ) -> None:
        """No file is read yet.

        Args:
            written: gives a source file as its compiler was given it.
            rules: where files are looked for.
            closed: read none: the paths are the guest's word, the files the host's.
        """
        self.written = written
        self._rules = rules
        self._closed = closed
        self._files: dict[str, list[str] | None] = {}
        self._missed = ""

    def forget(self) -> None:
        """Look for all files again, as the rules have changed."""
        self._files.clear()
        self._missed = ""

    def lines(self, path: str) -> list[str] | None:
        """All lines of a file; None if it cannot be read."""
        if self._closed:
            return None
        if path not in self._files:
            found = (_read(candidate) for candidate in self._rules.candidates(path))
            self._files[path] = next((lines for lines in found if lines is not None), None)
        return self._files[path]

    def line(self, path: str, number: int) -> str:
        """A line as a stop shows it, its number in front."""
        known, missed = self.lines(path), self._missed
        self._missed = "" if known is not None else path
        if known is None:
            if self._closed or path == missed:  # the trouble has just been told
                return f"{number}\tin {self.written(path)}"
            return f"{number}\t{self.written(path)}: No such file or directory."
        if not 1 <= number <= len(known):
            return f"{number}\tin {self.written(path)}"
        return f"{number}\t{known[number - 1]}"


class SelectedFrames:
    """The frames of now, and the one that is looked at.

    Attributes:
        selected: its number.
        skipped: inlined functions whose first instruction the guest stands at, and which it has
            not entered for the user: their caller is frame 0 (gdb/inline-frame.c).
        sources: of what is shown.
    """

    def __init__(
        self,
        control: Control,
        scope: Callable[[GuestFrame | None, int, bool, int | None], FrameScope],
        sources: Sources,
        begun_at: Callable[[int], list[BlockKey]],
        stopped_in: Callable[[], set[BlockKey]],
        settings: SettingValues,
        tail_calls: TailCalls,
        loaded_names: Callable[[AddressSpace], dict[str, str]],
        stored: Callable[[], StoredProgram | None],
        label: Callable[[int], str],
    ) -> None:
        """Look at nothing yet.

        Args:
            control: the guest.
            scope: gives what names mean in a frame.
            sources: lines of what is shown.
            begun_at: gives the inlined copies that begin at an address, the innermost first.
            stopped_in: gives those that the guest was stopped in, by a breakpoint.
            settings: say how values are printed.
            tail_calls: finds frames of functions that have ended in a jump.
            loaded_names: gives the names that a loader has for the libraries in memory.
            stored: gives the program's files while they are looked at in place of its memory.
            label: names an address as the linker does.
        """
        self._label = label
        self._settings = settings
        self._begun_at, self._stopped_in = begun_at, stopped_in
        self._control = control
        self._session = control.session
        self._backtraces = Backtraces(control.session)
        self._tail_calls = tail_calls
        self._scope = scope
        self._frames: tuple[GuestFrame, ...] | None = None
        self._place: tuple[int, int] | None = None
        self._entered = 0
        self._paths: dict[str, str] = {}
        self._paths_of: tuple[GuestFrame, ...] = ()
        self._loaded_names, self._stored = loaded_names, stored
        self._libraries: dict[str, str] = {}
        self._libraries_of: tuple[GuestFrame, ...] = ()
        self.selected = self.skipped = 0
        self.sources = sources

    def moved(self) -> None:
        """The guest has moved: frames are found anew when somebody asks."""
        self._frames = None
        self.selected = 0

    def renew(self) -> None:
        """A setting has changed: frames and source files are looked for anew."""
        self._frames = None
        self.sources.forget()

    def enter(self) -> bool:
        """Enter the inlined function that begins where the guest stands; False without one."""
        if not self.skipped:
            return False
        self._entered += 1
        self._frames = None
        return True

    @property
    def all(self) -> tuple[GuestFrame, ...]:
        """Innermost first; those outside of main are left out, as in gdb."""
        if self._frames is None:
            waiting_in = self._session.kernel.waiting_in
            ends = not self._settings["backtrace past-main"]

            def is_last(frame: GuestFrame) -> bool:
                number = frame.number - bool(waiting_in)  # the call's own frame is left out
                return ends and not frame.inlined and self._is_main(frame, number)

            with self._control.sight.visit():
                found = self._taken(waiting_in, is_last)
            kept: list[GuestFrame] = []
            for frame in found:
                if frame.source == "syscall":
                    continue
                kept.append(frame)
                if ends and not frame.inlined and self._is_main(frame, len(kept) - 1):
                    break
            kept = self._with_tail_calls(kept)[: self._settings.limit("backtrace limit")]
            self.skipped = self._skipped(kept)
            self._frames = tuple(kept[self.skipped :])
        return self._frames

    def _with_tail_calls(self, found: list[GuestFrame]) -> list[GuestFrame]:
        """The frames with those of functions that have ended in a jump."""
        if self._control.sight.here.focus.parked is not None:
            return found
        whole: list[GuestFrame] = []
        for number, frame in enumerate(found):
            whole.append(frame)
            outer = found[number + 1] if number + 1 < len(found) else None
            if outer is None or frame.inlined or frame.signal or outer.signal or frame.thread:
                continue
            whole += self._tail_calls.between(frame, outer)
        return whole

    def _taken(
        self, waiting_in: str = "", is_last: Callable[[GuestFrame], bool] | None = None
    ) -> tuple[GuestFrame, ...]:
        """Frames of what is in sight: a thread, or a goroutine that none runs."""
        parked = self._control.sight.here.focus.parked
        if parked is not None:
            return self._backtraces.parked(parked).frames
        return self._backtraces.take(syscall=waiting_in, is_last=is_last).frames

    def _is_main(self, frame: GuestFrame, number: int) -> bool:
        """True for the frame that the user's program begins with, whose name may have a scope."""
        if frame.function == "main":
            return True
        if frame.function.startswith("main.cold"):
            scope = self._scope(frame, number, not number, None)
            return bare_name(scope.debug_function) == "main"
        perhaps = frame.function.endswith(("::main", "main.main"))
        return perhaps and self._scope(frame, number, not number, None).is_main

    def _skipped(self, found: Sequence[GuestFrame]) -> int:
        if not found or not found[0].inlined:
            self._place, self._entered = None, 0
            return 0
        place = self._control.sight.moves, found[0].pc
        if place != self._place:
            self._place, self._entered = place, 0
        stopped, count = self._stopped_in(), 0
        for block, frame in zip(self._begun_at(found[0].pc), found, strict=False):
            if block in stopped or not frame.inlined:
                break
            count += 1
        return max(count - self._entered, 0)

    def innermost(self) -> GuestFrame:
        """The frame where the guest is, at a hit; the others are not looked for."""
        return self._backtraces.take(limit=1).frames[0]

    def caller(self, number: int) -> GuestFrame | None:
        """The frame that a call returns to, those outside of main among them; None for none."""
        frame = self.all[number]
        with self._control.sight.visit():
            found = self._taken()
        here = [one for one in found if one.thread == frame.thread]
        behind = [one for one in here if one.cfa is not None and one.cfa > (frame.cfa or 0)]
        return behind[0] if behind else None

    def scope_of_caller(self, frame: GuestFrame | None) -> FrameScope | None:
        """The meaning of names in the function that a frame was called from; None for none."""
        if frame is None or frame.signal:
            return None
        frames = self.all
        number = next((n for n, one in enumerate(frames) if one is frame), None)
        if number is None:  # a frame of its own making: that of the place
            same = [
                n for n, one in enumerate(frames) if one.cfa == frame.cfa and one.source != TAIL
            ]
            number = same[-1] if same and frame.cfa is not None else None
        if number is None:
            return None
        while number < len(frames) and frames[number].inlined:
            number += 1
        number += 1
        if number >= len(frames) or frames[number].signal:
            return None
        return self._scope(frames[number], number, False, None)

    def scope_of(self, function: str) -> FrameScope | None:
        """The meaning of names in the innermost call of a function; None while there is none."""
        for number, frame in enumerate(self.all):
            scope = self.scope(number)
            if function in (frame.function, scope.source_function):
                return scope
        return None

    def of_call(self, cfa: int | None, function: str) -> int | None:
        """The number of the frame of a call, while it has not returned."""
        for number, frame in enumerate(self.all):
            if frame.cfa == cfa and frame.function == function:
                return number
        return None

    def innermost_scope(self) -> FrameScope:
        """The meaning of names there; no frame is unwound for it."""
        registers = self._backtraces.registers()
        pc = registers[self._session.arch.roles.pc]
        return self._scope(GuestFrame(pc, "", registers=registers), 0, True, None)

    @property
    def frame(self) -> GuestFrame:
        """The one that is looked at.

        Raises:
            CommandError: there is none.
        """
        frames = self.all
        if not frames:
            raise CommandError("No stack.")
        return frames[min(self.selected, len(frames) - 1)]

    @property
    def seen(self) -> AddressSpace | StoredProgram:
        """The address space of the frame that is looked at; no frame is found for that.

        Without a process it is what the program's files hold.
        """
        stored, frames = self._stored(), self._frames
        if stored is not None:
            return stored
        if frames is None or not self.selected:
            return self._session.seen
        frame = frames[min(self.selected, len(frames) - 1)]
        return space_of(self._session, frame) or self._session.seen

    def select(self, number: int) -> None:
        """Look at another frame.

        Raises:
            CommandError: there is none.
        """
        if not 0 <= number < len(self.all):
            raise CommandError(f"No frame at level {number}.")
        self.selected = number

    def exact(self, number: int) -> bool:
        """True if a frame's pc is where it goes on, not behind a call."""
        frames = self.all
        while number and frames[number - 1].inlined and not frames[number - 1].signal:
            number -= 1
        return not number or frames[number - 1].signal

    def scope(self, number: int | None = None) -> FrameScope:
        """The meaning of names in a frame; in the one that is looked at."""
        frames = self.all
        at = self.selected if number is None else number
        if not frames:
            return self._scope(None, 0, True, None)
        at = min(at, len(frames) - 1)
        return self._scope(frames[at], at, self.exact(at), self.depth(at))

    def depth(self, number: int) -> int:
        """The number of functions inlined into each other from a frame's outwards."""
        frames, depth = self.all, 0
        if frames[number].source == TAIL:  # a jump leaves no frame of what was inlined there
            pc = frames[number].pc
            module = self._session.seen.modules.at(pc)
            return 0 if module is None else sum(1 for _ in module.inlined_at(pc - 1))
        while number + depth < len(frames) and frames[number + depth].inlined:
            depth += 1
        return depth

    def callee(self, number: int) -> GuestFrame | None:
        """The frame of the call that a frame has made, inlined functions aside; None for none."""
        frames = self.all
        cfa = frames[number].cfa
        inner = (frames[at] for at in range(number - 1, -1, -1))
        return next((one for one in inner if one.cfa != cfa), None)

    def interrupted(self, number: int) -> GuestFrame | None:
        """The frame within a frame that a call of the debugger has interrupted; None for none."""
        frames = self.all[: number + 1]
        found = [outer for inner, outer in pairwise(frames) if inner.source == CALLED]
        return found[-1] if found else None

    def printer(self, scope: FrameScope) -> Printer:
        """Prints values of a frame."""
        return Printer(scope, scope.symbol, self._settings.print_options, self._label)

    # -- texts ------------------------------------------------------------------------------

    def begins_line(self, number: int) -> bool:
        """True if a frame stands at the first instruction of a line."""
        frame = self.all[number]
        if not frame.line:
            return False
        if self.has_inlined(number):
            return True  # its line is that of a call, which has no address
        module = (space_of(self._session, frame) or self._session.seen).modules.at(frame.pc)
        if module is None or not self.exact(number):
            return False
        return module.lines.begins_statement(frame.pc - module.bias)

    def has_inlined(self, number: int) -> bool:
        """True if a function was inlined into that of a frame, where it stands."""
        return self.all[number - 1].inlined if number else self.skipped > 0

    def heading(self, number: int, *, with_number: bool = True, brief: bool = False) -> str:
        """A frame's line: "#1  0x0000000000401136 in main () at a.c:5"."""
        frame = self.all[number]
        mark = f"#{number:<2} " if with_number else ""
        if frame.signal:
            return f"{mark}{frame.title}"
        digits = self._session.arch.bits // 4
        at = "" if self.begins_line(number) or brief else f"0x{frame.pc:0{digits}x} in "
        scope = self.scope(number)
        name = frame.function
        if "{lambda(" in name and "<lambda(" in scope.debug_function:
            name = scope.debug_function
        name = (shown_function(name) if frame.file else name) or "??"
        name = scope.source_function or name
        if frame.inlined or _UNTRUE.search(name):
            name = bare_name(scope.debug_function) or name
        text = f"{mark}{at}{name} ({self.arguments(scope)})"
        if frame.file:
            return f"{text} at {self._written(frame.file)}:{frame.line}"
        main = self._session.seen.modules.main
        unsaid = vdso.NAME, None if main is None else main.name  # gdb knows no file of a vDSO
        if frame.module and frame.module not in unsaid:
            return f"{text} from {self._loaded_as(frame)}"
        return text

    def _loaded_as(self, frame: GuestFrame) -> str:
        """A frame's file as the program's loader calls it; asked once for all frames."""
        if self._libraries_of is not self.all:
            self._libraries_of = self.all
            self._libraries = self._loaded_names(
                space_of(self._session, frame) or self._session.seen
            )
        return self._libraries.get(frame.module, frame.module)

    def _written(self, file: str) -> str:
        """A source file as it is shown; asked once for all frames of a backtrace."""
        if self._paths_of is not self.all:
            self._paths_of, self._paths = self.all, {}
        if file not in self._paths:
            self._paths[file] = self.sources.written(file)
        return self._paths[file]

    def arguments(self, scope: FrameScope) -> str:
        """The arguments in a frame's line: "n=5, m=6"."""
        if scope.scope is None:
            return ""
        printer, shown = self.printer(scope), self._settings["print frame-arguments"]
        printer = replace(printer, options=replace(printer.options, pretty=False, array=False))
        if shown == "presence":
            return "..." if scope.scope.parameters else ""

        def text_of(value: TypedValue) -> str:
            kind = value.type.resolved
            kind = kind.target.resolved if is_reference(kind) else kind
            brief = kind.kind in _MANY and shown == "scalars"
            try:
                return bare_pointer(printer.summary(value) if brief else printer.brief(value))
            except (CommandError, GuestFaultError) as error:
                return marked_error(error)

        rule = EntryRule(str(self._settings["print entry-values"]))
        parts: list[str] = []
        for variable in scope.scope.parameters:
            if variable.is_result:
                continue  # it is none before the function returns
            if shown == "none":
                parts.append(f"{variable.name}=...")
            else:
                parts += argument_texts(rule, scope, variable, text_of)
        return ", ".join(parts)

    def source_line(self, number: int) -> str:
        """The source line of a frame; "" without debug information."""
        frame = self.all[number]
        if not frame.file:
            return ""
        return self.sources.line(frame.file, frame.line)


def shown_function(name: str) -> str:
    """A function's name as a frame shows it: without parameters, where gdb can take them off.

    Its parser of C++ names knows no lambda, no tag of an ABI, and no function's type as what a
    template is given: "std::function<long (long)>".
    """
    kept = "lambda(" in name or "[abi:" in name or _GIVEN_FUNCTION.search(name) is not None
    return name if kept else bare_name(name)


def _read(path: str) -> list[str] | None:
    """The lines of a file of the host; None where it cannot be read."""
    try:
        file = Path(path)
        if file.stat().st_size > _MAX_SOURCE or not file.is_file():
            return None
        return file.read_text(errors="replace").splitlines()
    except (OSError, ValueError):  # a path with a NUL in it
        return None


def window(first: int, count: int, lines: Sequence[str]) -> list[tuple[int, str]]:
    """Lines of a file with their numbers, from one on."""
    return [(n, lines[n - 1]) for n in range(max(first, 1), min(first + count, len(lines) + 1))]
