"""A program to look around in while it runs elsewhere: code, names, verdicts, no guest.

It reads the files alone and belongs to the front end's thread; where they are in the guest's
memory it learns from views.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from engine.arch.plan import Mode, Rules
from engine.errors import ImageError, KprobeTuiError, ProbeError, ProbeSyntaxError
from engine.image import Symbol
from engine.session.browse.code_rows import CodeRow, FileCode, plain_rows
from engine.session.browse.completion import Completion, DefinitionCompleter
from engine.session.program.libraries import ProgramFile
from engine.session.program.opening import OpenedProgram
from engine.session.program.places import Place, PlaceError
from engine.session.program.verdicts import Placed, Verdicts
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.views import GuestView, ModuleView
from engine.trace import sched
from engine.trace.definition import Definition, Deletion, parse

_PAGE: Final = 4096
_ARGUMENTS: Final = 3
"""Arguments recorded where nothing says how many a function has."""
_CACHED: Final = 256
"""Pages of memory remembered for code outside of all files."""


@dataclass(frozen=True, slots=True)
class SymbolMatch:
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


@dataclass(frozen=True, slots=True)
class DefinitionVerdict:
    """The outcome that a definition would have.

    Attributes:
        ok: whether it would be accepted.
        text: why not, or what it would do.
        column: of the mistake in the line, None where it is not about a place in it.
        places: SYMBOL+OFF of where it would go.
    """

    ok: bool
    text: str
    column: int | None = None
    places: tuple[str, ...] = ()


class Browser:
    """Everything about a program that its files tell.

    Attributes:
        opened: the program's own file; a guest may be made of it, too.
        arch: its architecture.
        verdicts: places and verdicts.
    """

    def __init__(self, config: GuestConfig, mode: Mode = Mode.STRICT) -> None:
        """Open the program.

        Raises:
            ImageError: it is no ELF file, or for a machine that is not supported.
            CommandError: an option cannot be carried out.
        """
        self.opened = OpenedProgram.open(config)
        self.arch = self.opened.arch
        self._program = self.opened.inspected()
        self.verdicts = Verdicts(self.arch, self._program, mode)
        self._mode = mode
        self._completer = DefinitionCompleter(self.arch, self.verdicts, self._functions, mode)
        self._codes: dict[tuple[str, int], FileCode | None] = {}
        self._modules: tuple[ModuleView, ...] = ()
        self._pages: dict[int, bytes] = {}
        self._changed = -1
        self._names: list[tuple[str, Symbol, ProgramFile]] | None = None
        self.want: Callable[[int, int], object] = lambda address, size: None
        """Called for memory that no file holds: its answer comes to `remember`."""

    @property
    def build_id(self) -> str:
        """The build-id of the program, hex; a hash of the file where it has none."""
        return self._program.main.image.identity

    def kernel_names(self, group: str) -> list[str]:
        """Names of a group's events of the kernel's, those of system calls without their part."""
        if group == sched.GROUP:
            return list(sched.BY_NAME)
        return sorted(self.arch.linux.syscalls.values())

    # -- the guest's memory -----------------------------------------------------------------

    def update(self, view: GuestView) -> None:
        """Take note of where the files are now."""
        self._modules = view.modules
        if view.changed != self._changed:
            self._changed = view.changed
            self._pages.clear()

    def remember(self, pieces: tuple[tuple[int, bytes], ...]) -> None:
        """Bytes of the guest's memory that were asked for, whole pages."""
        for start, data in pieces:
            for at in range(start, start + len(data), _PAGE):
                self._pages[at] = data[at - start : at - start + _PAGE]
        while len(self._pages) > _CACHED:
            del self._pages[next(iter(self._pages))]

    def module_at(self, address: int) -> ModuleView | None:
        """The file that covers a guest address."""
        for module in self._modules:
            if module.start <= address < module.end:
                return module
        return None

    def main_bias(self) -> int:
        """The guest address minus the link address of the program itself."""
        return next((module.bias for module in self._modules if module.main), 0)

    def locate(self, address: int) -> str:
        """A guest address as SYMBOL+OFF, FILE+OFF, or "" outside of all files."""
        module = self.module_at(address)
        file = self._file(module)
        if module is None or file is None:
            return ""
        symbol = file.symbols.at(address - module.bias)
        if symbol is None:
            return f"{module.path.rsplit('/', 1)[-1]}+{address - module.bias:#x}"
        return f"{symbol.demangled}+{address - module.bias - symbol.address:#x}"

    def symbol_text(self, address: int) -> str:
        """An address as the kernel's `%pS` prints it."""
        module = self.module_at(address)
        file = self._file(module)
        symbol = file.symbols.at(address - module.bias) if module and file else None
        if module is None or symbol is None:
            return f"{address:#x}"
        return f"{symbol.name}+{address - module.bias - symbol.address:#x}/{symbol.size:#x}"

    def _file(self, module: ModuleView | None) -> ProgramFile | None:
        if module is None:
            return None
        if module.main:
            return self._program.main
        try:
            return self._program.at_path(module.path)
        except ImageError:
            return None

    # -- code --------------------------------------------------------------------------------

    def row_at(self, address: int) -> CodeRow | None:
        """The instruction that covers a guest address."""
        return next(self.forward(address), None)

    def forward(self, address: int) -> Iterator[CodeRow]:
        """Instructions from the one that covers a guest address on."""
        code = self._code(address)
        return self._plain(address) if code is None else code.forward(address)

    def backward(self, address: int) -> Iterator[CodeRow]:
        """Instructions in front of the one that covers a guest address, the nearest first."""
        code = self._code(address)
        return self._plain_before(address) if code is None else code.backward(address)

    def span(self, address: int) -> tuple[int, int] | None:
        """(start, end) of the code of the file around a guest address."""
        code = self._code(address)
        return None if code is None else (code.spans[0][0], code.spans[-1][1])

    def _code(self, address: int) -> FileCode | None:
        """The code around a guest address, None where no file holds it."""
        module = self.module_at(address)
        if module is None:
            return None
        key = module.path, module.bias
        if key not in self._codes:
            file = self._file(module)
            code = FileCode(self.arch, file, module.bias) if file is not None else None
            self._codes[key] = code if code is not None and code.spans else None
        code = self._codes[key]
        return None if code is None or code.row_at(address) is None else code

    def _plain(self, address: int) -> Iterator[CodeRow]:
        """Code in memory only: as much as has come so far."""
        at, data = address, b""
        while (page := self._pages.get(at & -_PAGE)) is not None and len(data) < 4 * _PAGE:
            data += page[at % _PAGE :]
            at = (at & -_PAGE) + len(page)
            if len(page) < _PAGE:
                break
        if not data:
            self.want(address & -_PAGE, 2 * _PAGE)
        return iter(plain_rows(self.arch, address, data))

    def _plain_before(self, address: int) -> Iterator[CodeRow]:
        """The same backwards: from where decoding falls into step with the address."""
        for back in range(64, self.arch.insn_max, -1):
            rows = list(islice(self._plain(address - back), back))
            ends = [number for number, row in enumerate(rows) if row.end == address]
            if ends:
                return reversed(rows[: ends[0] + 1])
        return iter(())

    # -- names ---------------------------------------------------------------------------------

    def complete(self, typed: str, limit: int = 200) -> list[SymbolMatch]:
        """Functions whose name fits: the exact one, then beginnings, then parts, short ones first.

        Names without a capital fit in any case, as in vim's smartcase.
        """
        fold = typed == typed.lower()
        exact: list[tuple[str, Symbol, ProgramFile]] = []
        begins: list[tuple[str, Symbol, ProgramFile]] = []
        holds: list[tuple[str, Symbol, ProgramFile]] = []
        for item in self._all_names():
            name = item[0].lower() if fold else item[0]
            if name == typed:
                exact.append(item)
            elif name.startswith(typed):
                begins.append(item)
            elif typed in name:
                holds.append(item)
        found = exact + sorted(begins, key=_by_length) + sorted(holds, key=_by_length)
        return [self._match(*item) for item in found[:limit]]

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

    def _all_names(self) -> list[tuple[str, Symbol, ProgramFile]]:
        if self._names is None:
            self._names = [
                (name, symbol, file)
                for file in self._program.files
                for symbol in file.symbols.functions()
                for name in dict.fromkeys((symbol.name, symbol.demangled))
            ]
        return self._names

    def _match(self, name: str, symbol: Symbol, file: ProgramFile) -> SymbolMatch:
        spelled = symbol.name
        if file is not self._program.main:
            spelled = f"{file.path.rsplit('/', 1)[-1]}:{symbol.name}"
        return SymbolMatch(spelled, symbol.demangled, symbol.size, file.path, symbol.address)

    def address_of(self, text: str) -> int:
        """The guest address of a place: ADDRESS (a guest's own), SYM[+OFF], LIB:SYM, FILE:LINE.

        Raises:
            ProbeError: there is none, or its file is not in memory.
        """
        if text.lower().startswith("0x") and self.module_at(int(text, 16)) is not None:
            return int(text, 16)
        try:
            place = self.verdicts.places.resolve(text)[0]
        except PlaceError as error:
            raise ProbeError(str(error)) from error
        for module in self._modules:
            if module.path in place.paths or module.path == place.path:
                return place.link + module.bias
        raise ProbeError(f"{text}: {place.path} is not in memory now")

    # -- verdicts ------------------------------------------------------------------------------

    def judge(self, address: int, *, probed: bool = False) -> Placed | None:
        """The verdict on a probe at a guest address; None outside of all files."""
        module = self.module_at(address)
        file = self._file(module)
        if module is None or file is None:
            return None
        try:
            place = self.verdicts.places.at(file, address - module.bias, Rules.KPROBE, "")
        except PlaceError:
            return None
        return self.verdicts.judge(place, probed=probed)

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
        if self.check(described).ok:  # debug information names the parameters
            return described
        return f"p {place} " + " ".join(f"arg{n}=$arg{n}" for n in range(1, _ARGUMENTS + 1))

    def _pad(self, place: Place) -> int:
        """Bytes of the landing pad of the function around a place."""
        if place.function is None:
            return 0
        front = place.image.read_vaddr(place.function[0], self.arch.insn_max)
        return self.arch.probes.landing_pad(front)

    def check(self, line: str) -> DefinitionVerdict:
        """Tell how a line of `kprobe_events` would fare."""
        try:
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


def _by_length(item: tuple[str, Symbol, ProgramFile]) -> tuple[int, str]:
    return len(item[0]), item[0]
