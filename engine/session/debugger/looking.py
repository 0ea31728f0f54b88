"""Words that look at a standing guest: values, memory, frames, source lines, types."""

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError
from engine.escaping import escaped
from engine.guest.modules import Module
from engine.image.datatypes import TypeKind
from engine.image.scopes import Variable
from engine.language import value_types as ct
from engine.language.evaluation import type_of
from engine.language.format_letters import printed
from engine.language.languages import C
from engine.language.memory_texts import marked_error
from engine.language.print_options import PrintOptions
from engine.language.tokens import characters
from engine.language.type_flags import split_flags
from engine.language.typetexts import behind_typedef, definition_of
from engine.language.user_types import user_type
from engine.language.value_types import CType
from engine.language.values import TypedValue, made
from engine.linux import vdso
from engine.session.debugger.assembly import Assembly
from engine.session.debugger.debugger import Debugger, Display
from engine.session.debugger.examining import (
    SIZES,
    FormatLetters,
    MemoryExamining,
    print_letter,
)
from engine.session.debugger.linespecs import WantedPlace
from engine.session.debugger.listing import SourceListing
from engine.session.debugger.places import CodePlace, PlaceMissingError
from engine.session.debugger.virtual_tables import VirtualTableWords
from engine.session.debugger.word_arguments import split_arguments, split_format

_NO_EXPRESSION: Final = "Argument required (expression to compute)."


class Looking:
    """Words that look; the program changes only where an expression assigns or calls.

    Attributes:
        listing: shows lines of source files.
        memory: carries `x` out.
    """

    def __init__(self, debugger: Debugger, assembly: Assembly) -> None:
        """Look at a debugger's guest; `assembly` shows instructions below source lines."""
        self._debugger, self._assembly = debugger, assembly
        self._letters = FormatLetters()
        self.memory = MemoryExamining(debugger, assembly, self._letters)
        self._displaying = False
        self.listing = SourceListing(debugger)

    # -- values -----------------------------------------------------------------------------

    def print(self, rest: str) -> None:
        """Print an expression: print [-OPTION... --] [/FMT] EXPR."""
        debugger = self._debugger
        options, rest = debugger.settings.split_options(rest, debugger.number)
        form, text = split_format(rest)
        letter = self._letters.of_value(form)
        value = debugger.value(text) if text else self._newest()
        if value.type.text == ct.UNKNOWN_DATA:
            name = debugger.scope.symbol(value.address or 0) or text.strip()
            raise CommandError(f"'{name}' has unknown type; cast it to its declared type")
        if "r" in form and value.type.resolved.kind is TypeKind.RECORD:
            letter = "r"  # its parts one by one, whatever format was used last
        number = debugger.kept.remember(value)
        try:
            shown = self._text(value, letter, options)
        except CommandError:
            debugger.write(f"${number} = ")  # as gdb, which begins before it fails
            raise
        debugger.put_value(f"${number} = {shown}")

    def output(self, rest: str) -> None:
        """Print a value without a number and without a newline."""
        form, text = split_format(rest)
        if not text:
            raise CommandError(_NO_EXPRESSION)
        shown = self._text(self._debugger.value(text), print_letter(form))
        self._debugger.write(escaped(shown, keep="\n\t"))

    def echo(self, rest: str) -> None:
        """Print a text; C's escapes stand for what they do there."""
        text = rest.removesuffix("\\")
        self._debugger.write(characters(f'"{text}"').decode(errors="replace"))

    def printf(self, rest: str) -> None:
        """Print values as C does: printf "FORMAT", EXPR..."""
        match = re.match(r'\s*("(?:[^"\\]|\\.)*")\s*(?:,|$)', rest)
        if match is None:
            raise CommandError(_printf_trouble(rest.strip()))
        values = iter(split_arguments(rest[match.end() :]))
        printer = self._debugger.frames.printer(self._debugger.scope)

        def one(spec: re.Match[str]) -> str:
            flags, letter = spec[1], spec[2]
            if letter == "%":
                return "%"
            if letter == "n":
                raise CommandError("Format specifier `n' not supported in printf")
            if letter not in "diouxXcsfFgGeEp":
                raise CommandError(f"Unrecognized format specifier '{letter}' in printf")
            text = next(values, None)
            if text is None:
                raise CommandError("Wrong number of arguments for specified format-string")
            value = printer.reach.used(self._debugger.value(text))
            return printed(printer, value, flags, letter, wide=spec[0][-2:-1] in ("l", "w"))

        form = characters(match[1]).decode(errors="replace")
        shown = re.sub(r"%([-+ #0\d.]*)(?:h|ll|l|z|t|L)?([a-zA-Z%])", one, form)
        if next(values, None) is not None:
            raise CommandError("Wrong number of arguments for specified format-string")
        self._debugger.write(shown)

    def call(self, rest: str) -> None:
        """Print an expression, unless it has no value."""
        form, text = split_format(rest)
        letter = self._letters.of_value(form)
        value = self._debugger.value(text) if text else self._newest()
        if value.type.kind is not TypeKind.VOID:
            number = self._debugger.kept.remember(value)
            self._debugger.put_value(f"${number} = {self._text(value, letter)}")

    def _newest(self) -> TypedValue:
        """The newest value of the history; raises `CommandError` if there is none."""
        value = self._debugger.scope.history(0)
        if value.type.kind is TypeKind.VOID:
            raise CommandError("The history is empty.")
        return value

    def _text(self, value: TypedValue, letter: str, options: PrintOptions | None = None) -> str:
        printer = self._debugger.frames.printer(self._debugger.scope)
        if options is not None:
            printer = replace(printer, options=options)
        return printer.text(value, letter)

    def show_displays(self) -> None:
        """Show what the user wants to see at each stop."""
        if self._displaying:
            return  # a function of a display has stopped: its stop shows none, or it had no end
        self._displaying = True
        try:
            for display in self._debugger.displays.values():
                if display.on:
                    self.show_display(display)
        finally:
            self._displaying = False

    def show_display(self, display: Display) -> None:
        """Show one of them; one whose names mean nothing here is left out."""
        debugger = self._debugger
        scope = debugger.scope.scope
        if display.function and (scope is None or scope.function != display.function):
            return
        form, text = display.form, display.text
        try:
            debugger.check_names(text)
        except CommandError:
            return
        if re.search(r"[is\d]", form):
            match = re.match(r"\d+", form)
            alone = "i" not in form and (match is None or int(match[0]) == 1)
            debugger.write(escaped(f"{display.number}: x/{form} {text}"))
            debugger.write("  " if alone else "\n")
            try:
                self.memory.show(f"/{form} {text}")
            except (CommandError, GuestFaultError) as error:
                debugger.put(marked_error(error))
            return
        try:
            shown = self._text(debugger.value(text), print_letter(form))
        except (CommandError, GuestFaultError) as error:
            shown = marked_error(error)
        debugger.put_value(f"{display.number}: {f'/{form} ' if form else ''}{text} = {shown}")

    def display(self, rest: str) -> None:
        """Show an expression now and at each stop."""
        if not rest:
            self.show_displays()
            return
        form, text = split_format(rest)
        if not text:
            raise CommandError(_NO_EXPRESSION)
        debugger = self._debugger
        debugger.check_names(text)
        display = debugger.display(text, form)
        if debugger.attached:  # gdb shows it at once to a user, and to no script
            self.show_display(display)

    # -- types ------------------------------------------------------------------------------

    def whatis(self, rest: str) -> None:
        """The type of an expression; of a type's name what it stands for."""
        _, rest = split_flags(rest, whole=False)
        if not rest:
            raise CommandError("The history is empty.")
        try:
            kind, named = type_of(rest, self._debugger.scope)
        except CommandError:
            if not self._debugger.scope.is_namespace(rest):
                raise
            self._debugger.put(f"type = {rest}")
            return
        language = self._debugger.scope.language
        if language is not C:
            self._debugger.put(f"type = {language.type_text(kind)}")
            held = None if named else language.held_type(rest, self._debugger.scope)
            if held is not None:
                self._debugger.put(f"Concrete type: {held}")
            return
        text = re.sub(r"^\?(?= \()", "void", behind_typedef(kind).text if named else kind.text)
        first = self._real_type(rest, named=named)
        if first:
            self._debugger.put(f"type = {first}")
        self._debugger.put(("" if first else "type = ") + user_type(text))

    def ptype(self, rest: str) -> None:
        """A type with all that it is made of: ptype[/FLAGS] TYPE or EXPRESSION."""
        scope = self._debugger.scope
        flags, rest = split_flags(rest, whole=True)
        if not rest:
            raise CommandError("The history is empty.")
        found = scope.type((rest.strip(),)) if "<" in rest else None  # "Box<int>"
        try:
            kind, named = (found, True) if found is not None else type_of(rest, scope)
        except CommandError:
            if not scope.is_namespace(rest):
                raise
            self._debugger.put(f"type = namespace {rest}")
            return
        own = scope.language.definition(kind)
        if own is not None:
            for line in own.splitlines():
                self._debugger.put(line)
            return
        text = definition_of(kind, flags)
        first = self._real_type(rest, named=named)
        if first:
            self._debugger.put(f"type = {first}")
            text = text.removeprefix("type = ")
        for line in text.splitlines():
            self._debugger.put(line)

    def _real_type(self, text: str, *, named: bool) -> str:
        """A comment in front of an expression's type: the class of the object as it is."""
        debugger = self._debugger
        real = ""
        if debugger.settings.print_options.object and not named:
            real = VirtualTableWords(debugger).real_type(text)
        return f"/* real type = {real} */" if real else ""

    # -- frames -----------------------------------------------------------------------------

    def backtrace(self, rest: str) -> None:
        """All frames: bt [full] [N|-N]."""
        debugger, frames = self._debugger, self._debugger.frames
        if not debugger.started:
            raise CommandError("No stack.")
        full = False
        while (
            match := re.match(r"(-?full|hide|no-filters|-hide|-no-filters)(\s+|$)", rest)
        ) is not None:
            full |= match[1].endswith("full")
            rest = rest[match.end() :]
        numbers = list(range(len(frames.all)))
        if rest:
            limit = debugger.number(rest)
            numbers = numbers[:limit] if limit >= 0 else numbers[limit:]
        for number in numbers:
            debugger.output.breathe()
            debugger.put(frames.heading(number))
            if full:
                self._locals(number, "        ")
        if debugger.interactive and numbers and numbers[-1] < len(frames.all) - 1:
            debugger.put("(More stack frames follow...)")

    def show_frame(self, *, source_only: bool = False) -> None:
        """The frame that is looked at, and its source line."""
        debugger, frames = self._debugger, self._debugger.frames
        number = frames.selected
        if not source_only:
            debugger.put(frames.heading(number))
        self.show_source(number)

    def show_source(self, number: int, *, alone: bool = False) -> None:
        """A frame's source line; `alone`: no line above it says the address."""
        frames = self._debugger.frames
        line = frames.source_line(number)
        if line:
            frame = frames.all[number]
            middle = alone and not frames.begins_line(number)
            self._debugger.put(f"{frame.pc:#018x}\t{line}" if middle else line)
            self.listing.about(frame.file, frame.line)
        self._assembly.next_line(number)

    def frame(self, rest: str) -> None:
        """Look at a frame by number; without one say which is looked at."""
        if rest and not self._debugger.started:
            raise CommandError("No registers.")
        self._need_stack()
        if rest:
            self._debugger.frames.select(self._debugger.value(rest).number)
        self.show_frame()

    def up(self, rest: str) -> None:
        """Look at the caller."""
        self._by(self._count(rest), bounded=not rest)

    def down(self, rest: str) -> None:
        """Look at the frame that is called."""
        self._by(-self._count(rest), bounded=not rest)

    def _count(self, rest: str) -> int:
        return self._debugger.value(rest).number if rest else 1

    def _by(self, count: int, *, bounded: bool) -> None:
        """Look at a frame that is so many further out; `bounded`: where there is one."""
        self._need_stack()
        frames = self._debugger.frames
        wanted = frames.selected + count
        if bounded and count > 0 and frames.selected == len(frames.all) - 1:
            raise CommandError("Initial frame selected; you cannot go up.")
        if bounded and count < 0 and frames.selected == 0:
            raise CommandError("Bottom (innermost) frame selected; you cannot go down.")
        frames.select(min(max(wanted, 0), len(frames.all) - 1))
        self.show_frame()

    def _need_stack(self) -> None:
        if not self._debugger.started or not self._debugger.frames.all:
            raise CommandError("No stack.")

    # -- info -------------------------------------------------------------------------------

    def info_locals(self, rest: str) -> None:
        """Local variables of the frame: info locals [-q] [-t TYPEREGEXP] [NAMEREGEXP]."""
        self._need_frame()
        self._locals(self._debugger.frames.selected, "", _ChosenNames.parse(rest))

    def _locals(self, number: int, indent: str, chosen: "_ChosenNames | None" = None) -> None:
        debugger = self._debugger
        scope = debugger.frames.scope(number)
        if scope.scope is None:
            text = "No symbol table info available."
            debugger.put(text)
            return
        chosen = chosen or _ChosenNames()
        found = [one for one in scope.scope.locals if chosen.has(one)]
        if not found and not chosen.quiet:
            debugger.put("No matching locals." if chosen.asks else "No locals.")
        printer = debugger.frames.printer(scope)
        for variable in found:
            if variable.is_declaration:
                continue
            value = scope.of_variable(variable)
            try:
                text = printer.brief(value)
            except (CommandError, GuestFaultError) as error:
                text = marked_error(error)
            debugger.put_value(f"{indent}{escaped(variable.name)} = {_plain(text, value.type)}")

    def info_args(self, rest: str) -> None:
        """Arguments of the frame's function: info args [-q] [-t TYPEREGEXP] [NAMEREGEXP]."""
        self._need_frame()
        chosen = _ChosenNames.parse(rest)
        debugger = self._debugger
        scope = debugger.frames.scope()
        if scope.scope is None:
            debugger.put("No symbol table info available.")
            return
        found = [one for one in scope.scope.parameters if chosen.has(one)]
        if not found and not chosen.quiet:
            debugger.put("No matching arguments." if chosen.asks else "No arguments.")
        printer = debugger.frames.printer(scope)
        for variable in found:
            value = scope.of_variable(variable)
            text = _plain(printer.brief(value), value.type)
            debugger.put_value(f"{escaped(variable.name)} = {text}")

    def _need_frame(self) -> None:
        if not self._debugger.started or not self._debugger.frames.all:
            raise CommandError("No frame selected.")

    def info_registers(self, rest: str) -> None:
        """Registers: info registers [NAME...]."""
        debugger = self._debugger
        if not debugger.started:
            raise CommandError("The program has no registers now.")
        scope = debugger.frames.scope()
        names = rest.replace("$", " ").split()
        values = scope.registers()
        chosen = names or list(values)
        printer = debugger.frames.printer(scope)
        for name in chosen:
            value = values.get(name) or scope.register(name)
            if value is None:
                raise CommandError(f"Invalid register `{name}'")
            if value.missing:
                debugger.put(f"{name:<14} {value.missing}")
            elif value.type.kind is TypeKind.RECORD:
                debugger.put_value(f"{name:<14} {printer.text(value, 'x')}")
            elif value.type.kind is TypeKind.FLOAT:
                raw = int.from_bytes(value.raw[:10], scope.order)
                debugger.put(f"{name:<14} {printer.text(value):<19} (raw 0x{raw:020x})")
            else:
                raw = int.from_bytes(value.raw, scope.order)
                debugger.put(f"{name:<14} {raw:<#19x} {self._natural(value, raw)}")

    def _natural(self, value: TypedValue, raw: int) -> str:
        """A register as what it is: a number, an address, a place in the code, flags."""
        printer = self._debugger.frames.printer(self._debugger.scope)
        if value.type.kind is not TypeKind.POINTER:
            return printer.text(value)
        if value.type.target.kind is TypeKind.FUNCTION:
            return printer.address(raw)
        return f"{raw:#x}"

    def info_line(self, rest: str) -> None:
        """The addresses of a source line, or of the first lines of functions."""
        debugger = self._debugger
        again = self.listing.last_shown
        if not rest.strip() and again is not None:
            rest = f"{again[0]}:{again[1]}"
        wanted = debugger.wanted(rest)
        try:
            places = debugger.places.beginnings(wanted)
        except PlaceMissingError:
            modules = debugger.files.modules()
            file, line = debugger.files.written(wanted.file), wanted.line
            if not wanted.is_line or not any(
                module.lines.has_file(wanted.file) for module in modules
            ):
                raise
            raise CommandError(f'Line number {line} is out of range for "{file}".') from None
        for place in places:
            debugger.put(self._line_written(wanted, place))
            if place.file:  # the same word once more tells of the next line, `x/i` shows this one
                self.listing.told(place.file, (wanted.line or place.line) + 1)
                self.memory.begin_at(place.address)
                pointer = ct.pointer_to(ct.VOID, debugger.control.session.arch.bits // 8)
                here = made(pointer, place.address, debugger.scope.order)
                debugger.kept.set("_", here)

    def _line_written(self, wanted: WantedPlace, place: CodePlace) -> str:
        """The place of a line's code as gdb writes it (gdb/source.c, info_line_command)."""
        finder = self._debugger.places

        def written(address: int) -> str:
            label = finder.label(address)
            return f"{address:#x} <{label}>" if label else f"{address:#x}"

        if not place.file:
            return f"No line number information available for address {written(place.address)}"
        if wanted.line and place.line != wanted.line:
            return (
                f'Line {wanted.line} of "{place.written}" is at address '
                f"{written(place.address)} but contains no code."
            )
        start, end = map(written, finder.span(place.address))
        what = f'Line {place.line} of "{place.written}"'
        return f"{what} starts at address {start} and ends at {end}."

    def info_symbol(self, rest: str) -> None:
        """The symbol at an address."""
        debugger = self._debugger
        address = debugger.value(rest).as_address
        location = debugger.frames.seen.modules.locate(address)
        if location.symbol is None:
            debugger.put(f"No symbol matches {rest}.")
            return
        offset = f" + {location.offset}" if location.offset else ""
        module = location.module
        section = _section(module, address)
        several = len(debugger.files.modules()) > 1
        of = f" of {module.name}" if module is not None and several else ""
        name = location.symbol.demangled
        name += module.symbols.version_behind(location.symbol) if module is not None else ""
        debugger.put(f"{name}{offset} in section {section}{of}")

    def info_display(self, rest: str) -> None:
        """Expressions that are shown at each stop."""
        debugger = self._debugger
        if not debugger.displays:
            debugger.put("There are no auto-display expressions now.")
            return
        debugger.put("Auto-display expressions now in effect:")
        debugger.put("Num Enb Expression")
        for one in debugger.displays.values():
            form = f"/{_shown_form(one.form)} " if one.form else ""
            debugger.put(f"{one.number}:   {'y' if one.on else 'n'}  {form}{one.text}")

    def info_sharedlibrary(self, rest: str) -> None:
        """The libraries in memory."""
        debugger = self._debugger
        session = debugger.control.session
        main = debugger.frames.seen.modules.main
        rows: list[str] = []
        lacking = False
        wide = session.arch.bits // 4 + 2
        loaded = debugger.files.loaded_names(session.seen)
        loader = main.image.interpreter if main is not None else None
        # gdb knows the loader before the loader has listed the rest.
        listed = [name for name, called in loaded.items() if called == loader]
        listed += [name for name in loaded if name not in listed]
        turns = {name: turn for turn, name in enumerate(listed)}
        for module in sorted(
            debugger.files.modules(), key=lambda one: turns.get(one.name, len(turns))
        ):
            if module is main or module.name == vdso.NAME:
                continue  # gdb lists no library without a file
            code = next((one for one in module.image.sections if one.name == ".text"), None)
            ends = (0, 0) if code is None else (code.addr, code.addr + code.size)
            spots = "  ".join(f"{end + module.bias:#0{wide}x}" for end in ends)
            read = "Yes" if debugger.files.names(module) is not None else "Yes (*)"
            lacking = lacking or read != "Yes"
            rows.append(f"{spots}  {read:<11} {loaded.get(module.name, module.name)}")
        if not rows:
            debugger.put("No shared libraries loaded at this time.")
            return
        debugger.put(f"{'From':<{wide}}  {'To':<{wide}}  Syms Read   Shared Object Library")
        for row in rows:
            debugger.put(row)
        if lacking:
            debugger.put("(*): Shared library is missing debugging information.")


class _ChosenNames(Struct, frozen=True):
    """The variables that `info locals` and `info args` are asked for.

    Attributes:
        name: a regular expression that the name has a match of; None for any.
        type: the same for the type.
        quiet: say nothing where there is none.
    """

    name: re.Pattern[str] | None = None
    type: re.Pattern[str] | None = None
    quiet: bool = False

    @classmethod
    def parse(cls, rest: str) -> "_ChosenNames":
        """Read the words behind `info locals`.

        Raises:
            CommandError: an expression is none.
        """
        words, quiet, kind = rest.strip(), False, ""
        while match := re.match(r"-(?:(q)|t)(?=\s|$)\s*", words):
            words = words[match.end() :]
            if match[1]:
                quiet = True
                continue
            kind, _, words = words.partition(" ")
            words = words.lstrip()
            if not kind:
                raise CommandError("-t requires an argument")
        try:
            return cls(
                re.compile(words) if words else None, re.compile(kind) if kind else None, quiet
            )
        except re.error as error:
            raise CommandError(f"Invalid regexp: {error}") from None

    @property
    def asks(self) -> bool:
        """True if not all variables are asked for."""
        return self.name is not None or self.type is not None

    def has(self, variable: Variable) -> bool:
        """True for a variable that is asked for."""
        if self.name is not None and not self.name.search(variable.name):
            return False
        return self.type is None or self.type.search(variable.type.text) is not None


def _shown_form(form: str) -> str:
    """The letters of a display as `info display` has them: those of memory with all parts."""
    match = re.fullmatch(r"(\d*)([a-z]*)", form)
    letters = match[2] if match is not None else ""
    size = next((one for one in letters if one in SIZES), "")
    letter = next((one for one in letters if one not in SIZES), "x")
    if match is None or not (match[1] or size or letter in "is"):
        return form
    return f"{match[1] or 1}{size or ('b' if letter in 'is' else 'w')}{letter}"


def _printf_trouble(rest: str) -> str:
    """Why a text is no format string with what follows it."""
    if not rest:
        return "Argument required (format-control string and values to print)."
    if not rest.startswith('"'):
        return "Bad format string, missing '\"'."
    closed = re.match(r'"(?:[^"\\]|\\.)*"', rest)
    return (
        "Bad format string, non-terminated '\"'." if closed is None else "Invalid argument syntax"
    )


def _section(module: Module | None, address: int) -> str:
    """Name of the section around a guest address."""
    link = address - module.bias if module is not None else 0
    for section in module.image.sections if module is not None else ():
        if section.holds(link):
            return section.name
    return ""


def _plain(text: str, kind: CType) -> str:
    """A variable's value as lists show it: pointers without their types."""
    if kind.resolved.kind is not TypeKind.POINTER or not text.startswith("("):
        return text
    start = text.find(") 0x")
    if start < 0:
        start = text.find(") @0x")
    return text[start + 2 :] if start >= 0 else text
