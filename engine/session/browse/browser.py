"""A program to look around in while it runs elsewhere: code, names, verdicts, no guest.

It reads the files alone and belongs to the front end's thread; where they are in the guest's
memory it learns from views.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode, Rules
from engine.errors import ImageError, KprobeTuiError, ProbeError, ProbeSyntaxError
from engine.fetch.variables import VariableError
from engine.guest.modules import Module
from engine.image import Symbol
from engine.image.datatypes import TypeKind
from engine.image.elf import ElfImage
from engine.image.pointers import pointer_text
from engine.probes.site import InMemory
from engine.session.browse.code_rows import (
    Code,
    CodeRow,
    FileSource,
    MappingSource,
    Reading,
)
from engine.session.browse.completion import Completion, DefinitionCompleter
from engine.session.browse.function_names import NameSearch
from engine.session.browse.memory_pages import MemoryPages
from engine.session.program.libraries import ProgramFile
from engine.session.program.opening import OpenedProgram
from engine.session.program.places import Place, PlaceError
from engine.session.program.verdicts import Placed, Verdicts
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.views import GuestView, MappingView, ModuleView
from engine.trace import sched
from engine.trace.definition import Definition, Deletion, parse
from engine.trace.formats.base import MappedFile
from engine.trace.formats.mapped import mapped_file
from engine.trace.tracepoints import Selection, selection

if TYPE_CHECKING:
    from engine.session.browse.functions import FunctionList
    from engine.session.browse.kernel_view import KernelBrowser
    from engine.session.kernel.opened import OpenedKernel

_ARGUMENTS: Final = 3
"""Arguments recorded where nothing says how many a function has."""
_WHOLE: Final = (
    TypeKind.SIGNED,
    TypeKind.UNSIGNED,
    TypeKind.CHAR,
    TypeKind.UNSIGNED_CHAR,
    TypeKind.BOOL,
    TypeKind.ENUM,
)
"""Kinds of types whose values are whole numbers."""
_GONE_TO: Final = 16
"""Places remembered at which an instruction begins because the user has gone there."""


class SymbolMatch(Struct, frozen=True):
    """A symbol that fits what was typed.

    Attributes:
        name: as a definition spells it (LIB:SYM outside the program's own file).
        shown: demangled.
        size: bytes, 0 where not known.
        path: of its file.
        link: its link address.
    """

    name: str
    shown: str
    size: int
    path: str
    link: int


class DefinitionVerdict(Struct, frozen=True):
    """The outcome that a definition would have.

    Attributes:
        ok: whether it would be accepted.
        text: why not, or what it would do.
        column: of the mistake in the line, None where it is not about a place in it.
        places: SYMBOL+OFF of where it would go.
        warns: the image's own kernel refuses it, though it is accepted here.
    """

    ok: bool
    text: str
    column: int | None = None
    places: tuple[str, ...] = ()
    warns: bool = False


class Browser:
    """Everything about a program that its files tell.

    Attributes:
        opened: the program's own file; a guest may be made of it, too.
        arch: its architecture.
        verdicts: places and verdicts.
        pages: the guest's memory, as far as it was told.
        kernel: of a kernel image: what its own kernel says; None for a program.
    """

    def __init__(self, config: GuestConfig, mode: Mode = Mode.STRICT) -> None:
        """Open the program.

        Raises:
            ImageError: it is no ELF file, or for a machine that is not supported.
            CommandError: an option cannot be carried out.
        """
        self.opened = OpenedProgram.open(config)
        self.arch = self.opened.arch
        opened = self.opened.kernel
        self.kernel = None if opened is None else _kernel_browser(opened)
        self._program = self.opened.inspected()
        self.verdicts = Verdicts(self.arch, self._program, mode, config.technique, self._in_memory)
        self._mode = mode
        self._completer = DefinitionCompleter(self.arch, self.verdicts, self._functions, mode)
        self.pages = MemoryPages()
        self._reading = Reading(self.arch, self.pages)
        self._codes: dict[tuple[str, int, bool], Code | None] = {}
        self._carried: dict[str, ProgramFile] = {}
        self._plain: dict[MappingView, Code] = {}
        self._view = GuestView()
        self._gone_to: dict[int, None] = {}

    @property
    def build_id(self) -> str:
        """The build-id of the program, hex; a hash of the file where it has none."""
        return self._program.main.image.identity

    @property
    def is_booted(self) -> bool:
        """True if the guest is a kernel image that a machine boots."""
        return self.opened.config.boot is not None

    def kernel_names(self, group: str) -> list[str]:
        """Names of a group's events of the kernel's, those of system calls without their part."""
        if group == sched.GROUP:
            return list(sched.BY_NAME)
        return sorted(self.arch.linux.syscalls.values())

    # -- the guest's memory -----------------------------------------------------------------

    def update(self, view: GuestView) -> None:
        """Take note of where the files are now, and of what may have changed in memory."""
        old, self._view = self._view, view
        process = view.pids.get(view.thread), view.modules
        if process != (old.pids.get(old.thread), old.modules):
            self.pages.forget()
        elif view.registers is not old.registers or view.changed != old.changed:
            self.pages.age()
        if view.mappings is not old.mappings:
            there = set(view.mappings)
            self._plain = {key: code for key, code in self._plain.items() if key in there}
        self._mark()
        if view.planted is not self._reading.planted:
            self._reading.planted = view.planted
            self._reading.changes += 1

    def carry(self, path: str, data: bytes) -> None:
        """Take the content of a file that only a kernel has in its memory which is the guest."""
        try:
            image = ElfImage.from_bytes(data, path)
        except ImageError:
            return
        self._carried[path] = ProgramFile(path, image, frozenset((path,)))
        self._codes = {key: code for key, code in self._codes.items() if key[0] != path}

    def _mark(self) -> None:
        """Instructions begin at pc, and where the user has gone."""
        marks = tuple(dict.fromkeys((*self._gone_to, self._view.raw_pc, self._view.pc)))
        if marks != self._reading.marks:
            self._reading.marks = marks
            self._reading.changes += 1

    def go_to(self, address: int) -> None:
        """The user wants to see an address: an instruction begins there."""
        self._gone_to[address] = None
        while len(self._gone_to) > _GONE_TO:
            del self._gone_to[next(iter(self._gone_to))]
        self._mark()

    @property
    def executed(self) -> bool:
        """Code is shown as the processor finds it, planted bytes and all; else as written."""
        return self._reading.executed

    @executed.setter
    def executed(self, on: bool) -> None:
        self._reading.executed = on
        self._reading.changes += 1

    def rests(self, pc: int) -> bool:
        """True if no function of a kernel image is called: pc is nowhere."""
        return self.kernel is not None and self.kernel.rests(pc)

    @property
    def first_code(self) -> int:
        """The address of the program's first code."""
        return self.kernel.first if self.kernel is not None else self.opened.image.entry

    def mapping_at(self, address: int) -> MappingView | None:
        """The line of the memory map that covers a guest address."""
        mappings = self._view.mappings
        index = bisect_right(mappings, address, key=lambda mapping: mapping.start) - 1
        return mappings[index] if index >= 0 and address < mappings[index].end else None

    def is_code(self, address: int) -> bool:
        """True if a guest address can be executed, as far as is known."""
        mapping = self.mapping_at(address)
        return (
            "x" in mapping.perms if mapping is not None else self._file_code(address) is not None
        )

    def module_at(self, address: int) -> ModuleView | None:
        """The file that covers a guest address."""
        return _covering(address, self._view.modules)

    def main_bias(self) -> int:
        """The guest address minus the link address of the program itself."""
        return next((module.bias for module in self._view.modules if module.main), 0)

    def locate(self, address: int) -> str:
        """A guest address in words, "" outside of all files: see `pointer_text`."""
        module = self.module_at(address)
        file = self._file(module)
        if module is None or file is None:
            return ""
        return pointer_text(file.symbols, module.path, address - module.bias)

    def symbol_text(self, address: int, modules: Sequence[ModuleView]) -> str:
        """An address as the kernel's `%pS` prints it, where these files are in memory."""
        module = _covering(address, modules)
        file = self._file(module)
        symbol = file.symbols.at(address - module.bias) if module and file else None
        if module is None or symbol is None:
            return f"{address:#x}"
        return f"{symbol.name}+{address - module.bias - symbol.address:#x}/{symbol.size:#x}"

    def mapped_file(self, address: int, modules: Sequence[ModuleView]) -> MappedFile | None:
        """The file whose code is at an address, where these files are in memory."""
        module = self._module(address, modules)
        return None if module is None else mapped_file(module, address)

    def source_line(self, address: int, modules: Sequence[ModuleView]) -> tuple[str, int] | None:
        """Source file and line of an address, likewise."""
        module = self._module(address, modules)
        return None if module is None else module.line_at(address)

    def _module(self, address: int, modules: Sequence[ModuleView]) -> Module | None:
        view = _covering(address, modules)
        file = self._file(view)
        return None if view is None or file is None else Module(view.path, file.image, view.bias)

    def _file(self, module: ModuleView | None) -> ProgramFile | None:
        if module is None:
            return None
        if module.main:
            return self._program.main
        if module.carried and module.path in self._carried:
            return self._carried[module.path]
        try:
            return self._program.at_path(module.path)
        except ImageError:
            return None

    # -- code --------------------------------------------------------------------------------

    def row_at(self, address: int) -> CodeRow | None:
        """The instruction that covers a guest address."""
        code = self._code(address)
        return None if code is None else code.row_at(address)

    def forward(self, address: int, *, asks: bool = True) -> Iterator[CodeRow]:
        """Instructions from the one that covers a guest address on.

        Args:
            address: in the guest.
            asks: have memory told that is looked at and may have changed.
        """
        code = self._code(address)
        return iter(()) if code is None else code.forward(address, asks=asks)

    def backward(self, address: int, *, asks: bool = True) -> Iterator[CodeRow]:
        """Instructions in front of the one that covers a guest address, the nearest first."""
        code = self._code(address)
        return iter(()) if code is None else code.backward(address, asks=asks)

    def source_addresses(self, address: int, path: str) -> dict[int, int]:
        """Line to guest address of the code of a source file.

        Args:
            address: in the program or library that the file belongs to.
            path: of the source file, as rows have it.
        """
        module = self.module_at(address)
        file = self._file(module)
        if module is None or file is None:
            return {}
        statements = file.lines.statements_of(path)
        return {line: at + module.bias for line, at in statements.items()}

    def span(self, address: int) -> tuple[int, int] | None:
        """(start, end) of the code of the file around a guest address, or of the mapping."""
        code = self._code(address)
        return None if code is None else (code.spans[0][0], code.spans[-1][1])

    def _code(self, address: int) -> Code | None:
        """The code around a guest address, None where nothing is mapped."""
        code = self._file_code(address)
        return self._mapped_code(address) if code is None else code

    def _file_code(self, address: int) -> Code | None:
        """The code of a file around a guest address, None where no file holds it."""
        module = self.module_at(address)
        if module is None:
            return None
        key = module.path, module.bias, module.carried
        if key not in self._codes:
            file = self._file(module)
            before = self.kernel.before_boot if self.kernel is not None else None
            source = FileSource(file, module.bias, before) if file is not None else None
            self._codes[key] = Code(source, self._reading) if source and source.areas else None
        code = self._codes[key]
        return code if code is not None and code.covers(address) else None

    def _mapped_code(self, address: int) -> Code | None:
        """Code in memory only."""
        mapping = self.mapping_at(address)
        if mapping is None:
            return None
        code = self._plain.get(mapping)
        if code is None:
            source = MappingSource(mapping, self.pages, self.locate)
            code = self._plain[mapping] = Code(source, self._reading)
        return code

    @cached_property
    def functions(self) -> "FunctionList":
        """The functions of the program's own file; of a module its kernel's, too."""
        from engine.session.browse.functions import FunctionList

        opened = self.opened.kernel
        if opened is not None:
            return FunctionList.of_kernel(opened)
        return FunctionList.of_file(self._program.main, self._own_markers())

    def _own_markers(self) -> dict[int, str]:
        """The static probes (USDT) of the program's own file, as a definition names them."""
        if self._mode is Mode.KERNEL:
            return {}
        main, found = self._program.main, dict[int, str]()
        for marker in self.verdicts.markers.all():
            if marker.file is not main:
                break  # those of libraries come behind
            if not marker.problem:
                found.setdefault(marker.probe.address, marker.event)
        return found

    def probed_text(self, address: int) -> str:
        """A guest address as the PLACE that a probe there is likeliest meant for.

        Of an instruction that is a static probe it is that probe, with its arguments.
        """
        functions = self.functions
        module = self.module_at(address)
        if module is not None and self._file(module) is self._program.main:
            marker = functions.markers.get(address - module.bias)
            if marker is not None:
                return f"%{marker}"
        return self.place_text(address)

    # -- names ---------------------------------------------------------------------------------

    def complete(self, typed: str, limit: int = 200) -> list[SymbolMatch]:
        """Functions whose name fits: the exact one, then beginnings, then parts, short ones first.

        Names without a capital fit in any case, as in vim's smartcase. LIB:NAME is one of a file.
        Symbols that are spelled alike, such as two versions of one name, are one.
        """
        found: dict[str, SymbolMatch] = {}
        for item in self._function_names.find(typed, 2 * limit):
            match = self._match(*item)
            found.setdefault(match.name, match)
        return list(found.values())[:limit]

    def complete_definition(
        self, line: str, column: int, groups: Sequence[str] = ()
    ) -> Completion:
        """Words that fit at a column of a definition that is being typed.

        Args:
            line: as far as it is typed.
            column: of the cursor.
            groups: of the events there are.
        """
        return self._completer.complete(line, column, groups)

    def _functions(self, typed: str, limit: int) -> list[str]:
        fits = (match.name for match in self.complete(typed, limit))
        return [name for name in fits if name.rpartition(":")[2].startswith(typed)]

    @cached_property
    def _function_names(self) -> NameSearch:
        return NameSearch(
            (name, symbol, file)
            for file in self._program.files
            for symbol in file.symbols.functions()
            for name in dict.fromkeys((symbol.name, symbol.demangled))
        )

    def _match(self, name: str, symbol: Symbol, file: ProgramFile) -> SymbolMatch:
        spelled = symbol.name
        if file is not self._program.main:
            spelled = f"{file.path.rsplit('/', 1)[-1]}:{symbol.name}"
        return SymbolMatch(spelled, symbol.demangled, symbol.size, file.path, symbol.address)

    def address_of(self, text: str) -> int:
        """The guest address of a place.

        ADDRESS (a guest's own), SYM[+OFF], LIB:SYM, PATH:SYM or FILE:LINE.

        Raises:
            ProbeError: there is none, or its file is not in memory.
        """
        address = _number(text)
        if address is not None and (self.module_at(address) or self.mapping_at(address)):
            return address
        try:
            place = self.verdicts.places.resolve(text)[0]
        except PlaceError as error:
            raise ProbeError(
                str(error) if address is None else f"nothing is mapped at {address:#x}"
            ) from error
        for module in self._view.modules:
            if module.path in place.paths or module.path == place.path:
                return place.link + module.bias
        raise ProbeError(f"{text}: {place.path} is not in memory now")

    # -- verdicts ------------------------------------------------------------------------------

    def judge(self, address: int, *, probed: bool = False, brief: bool = False) -> Placed | None:
        """The verdict on a probe at a guest address; None outside of all files.

        Its addresses are the guest's, too; see `Verdicts.judge`.
        """
        module = self.module_at(address)
        file = self._file(module)
        if module is None or file is None:
            return None
        try:
            place = self.verdicts.places.at(file, address - module.bias, Rules.KPROBE, "")
        except PlaceError:
            return None
        return self.verdicts.judge(place, probed=probed, brief=brief, bias=module.bias)

    def kind_at(self, address: int) -> str:
        """The kind of a probe at an address: "ftrace", "jump", "breakpoint"; "" for none.

        Of a kernel image it is the one that its own kernel would make.
        """
        if self.kernel is not None:
            return self.kernel.kind(address)
        placed = self.judge(address, brief=True)
        return placed.technique if placed is not None and placed.judgement.ok else ""

    def _in_memory(self, place: Place) -> InMemory | None:
        """The code of a place's file as far as memory was told of."""
        for module in self._view.modules:
            if module.path in place.paths or module.path == place.path:
                bias = module.bias
                return lambda link, written: self.pages.over(link + bias, written)
        return None

    def place_text(self, address: int) -> str:
        """A guest address as the PLACE of a definition that means it."""
        module = self.module_at(address)
        file = self._file(module)
        if module is None or file is None:
            return f"{address:#x}"
        link = address - module.bias
        symbol = file.symbols.at(link)
        own = file is self._program.main
        if symbol is not None:
            offset = f"+{link - symbol.address:#x}" if link > symbol.address else ""
            name = symbol.name + offset
            prefix = "" if own else f"{module.path.rsplit('/', 1)[-1]}:"
            try:
                if self.verdicts.places.resolve(prefix + name)[0].link == link:
                    return prefix + name
            except (PlaceError, ImageError):
                pass
        if own:
            return f"{link:#x}"
        return f"{module.path}:{file.image.file_offset(link) or 0:#x}"

    def default_definition(self, place: str) -> str:
        """A definition that records what a user wants first: the arguments of a function's entry.

        Args:
            place: a PLACE.
        """
        try:
            found = self.verdicts.places.resolve(place)[0]
        except (PlaceError, ImageError):
            return f"p {place}"
        if found.function is None or found.offset not in (0, self._pad(found)):
            return f"p {place}"
        described = f"p {place} $arg*"
        verdict = self.check(described)
        if verdict.ok and not verdict.warns:  # debug information names the parameters
            return described
        return f"p {place} " + " ".join(f"arg{n}=$arg{n}" for n in range(1, _ARGUMENTS + 1))

    def default_result(self, place: str) -> str:
        """The argument of a return probe that records what a function returns, by its type.

        Args:
            place: a PLACE.

        Returns:
            `ret=$retval:s32`, say; "" for a function of which it is known that it returns nothing.
        """
        try:
            found = self.verdicts.places.resolve(place)[0]
            kind, _ = self.verdicts.lookup.scope_at(found).result()
        except (PlaceError, ImageError, VariableError):
            return "ret=$retval"
        if kind.kind is TypeKind.VOID:
            return ""
        if kind.resolved.kind not in _WHOLE or kind.size not in (1, 2, 4, 8):
            return "ret=$retval"
        return f"ret=$retval:{'s' if kind.is_signed else 'u'}{8 * kind.size}"

    def _pad(self, place: Place) -> int:
        """Bytes of the landing pad of the function around a place."""
        if place.function is None:
            return 0
        front = place.image.read_vaddr(place.function[0], self.arch.insn_max)
        return self.arch.probes.landing_pad(front)

    def check(self, line: str) -> DefinitionVerdict:
        """Tell how a line of `kprobe_events` would fare; an image's own kernel is asked, too."""
        here = self._check(line)
        row = self.kernel.defined(line) if self.kernel is not None and line.strip() else None
        if self.kernel is None or row is None:
            return here
        version = self.kernel.version
        if row.ok:
            return replace(
                here, text=f"{version}: {row.technique}, {row.reason}; here: {here.text}"
            )
        said = f"{version} refuses it ({row.errno}): {row.error or row.reason}"
        column = here.column if row.column is None else row.column
        text = f"{said}; here: {here.text}"
        return replace(here, text=text, column=column, warns=here.ok)

    def _check(self, line: str) -> DefinitionVerdict:
        try:
            lines, _ = self.verdicts.spelled_out(line)
        except KprobeTuiError as error:
            return DefinitionVerdict(False, str(error))
        if len(lines) > 1:
            return self._check_each(lines)
        return self._check_one(*lines)

    def _check_each(self, lines: Sequence[str]) -> DefinitionVerdict:
        """The verdict on several lines; the first one that is refused decides."""
        found = [self._check_one(each) for each in lines]
        bad = next((one for one in found if not one.ok), None)
        if bad is not None:
            return DefinitionVerdict(False, bad.text)
        text = f"{len(lines)} uprobes: " + "; ".join(dict.fromkeys(one.text for one in found))
        return DefinitionVerdict(True, text, None, tuple(n for one in found for n in one.places))

    def _check_placeless(self, selected: Selection) -> DefinitionVerdict:
        """The verdict on an event without a place: of the kernel's, synthetic, an event probe."""
        from engine.session.program.placeless_lines import PlacelessLines  # few lines are these

        events = PlacelessLines(self.arch, self._mode)
        for probe in self._view.probes:
            with suppress(KprobeTuiError):
                events.placed_line(probe.row.line, self.verdicts.lookup)
        listing = events.take(selected).replace("\t", " ")
        return DefinitionVerdict(True, f"{listing}: an event without a place")

    def _check_one(self, line: str) -> DefinitionVerdict:
        try:
            if (selected := selection(line)) is not None:
                return self._check_placeless(selected)
            parsed = parse(line, self.arch, mode=self._mode, lookup=self.verdicts.lookup)
        except ProbeSyntaxError as error:
            column = error.column - (len(error.command) - len(error.command.lstrip()))
            return DefinitionVerdict(False, error.why or error.text, max(column, 0))
        except KprobeTuiError as error:
            return DefinitionVerdict(False, str(error))
        if parsed is None:
            return DefinitionVerdict(True, "nothing: a comment or an empty line")
        if isinstance(parsed, Deletion):
            return DefinitionVerdict(True, "deletes events")
        return self._check_places(parsed)

    def _check_places(self, definition: Definition) -> DefinitionVerdict:
        try:
            placed = self.verdicts.of_definition(definition)
        except PlaceError as error:
            return DefinitionVerdict(False, str(error), definition.error(error.code).column)
        except ImageError as error:
            return DefinitionVerdict(False, str(error))
        if not placed:
            return DefinitionVerdict(True, self.verdicts.unhit(definition))
        names = tuple(item.place.name for item in placed)
        for item in placed:
            if not item.judgement.ok:
                text = f"{item.place.name}: {item.judgement.reason}"
                column = definition.error("FAIL_REG_PROBE").column
                return DefinitionVerdict(False, text, column, names)
        how = ", ".join(dict.fromkeys(f"{p.technique}, {p.judgement.how}" for p in placed))
        text = f"{definition.group}/{definition.event}: {how}"
        return DefinitionVerdict(True, text, None, names)


def _kernel_browser(opened: "OpenedKernel") -> "KernelBrowser":
    from engine.session.browse.kernel_view import KernelBrowser  # few guests are kernels

    return KernelBrowser(opened)


def _covering(address: int, modules: Sequence[ModuleView]) -> ModuleView | None:
    """The first of some files that covers an address."""
    return next((each for each in modules if each.start <= address < each.end), None)


def _number(text: str) -> int | None:
    """A number in C's hexadecimal; None for anything else."""
    try:
        return int(text, 16) if text.lower().startswith("0x") else None
    except ValueError:
        return None
