"""Places as gdb takes them: `main`, `file.c:12`, `12`, `*0x401136`, nothing for here.

A place may have several addresses: a line that the compiler has copied, a function that was
inlined, functions of one name in several classes, files or libraries (gdb/linespec.c).
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError, KprobeTuiError
from engine.guest.modules import Module
from engine.image import Symbol
from engine.image.functions import WantedFunction
from engine.image.gofunctions import has_go, without_types
from engine.image.scopes import CodeBlock, FunctionBlock
from engine.image.sdt import static_probes
from engine.language.value_types import INTEGERS
from engine.language.values import TypedValue
from engine.linux.space import AddressSpace
from engine.session.debugger.bodies import FunctionBodies
from engine.session.debugger.linespecs import LineSpecs, WantedMarker, WantedPlace
from engine.session.guest.session import Session
from engine.session.inspect.program_files import Files
from engine.session.inspect.stored_program import StoredProgram
from engine.session.program.places import RESOLVER
from engine.session.protocol.frames import GuestFrame

BlockKey = tuple[str, int, int]
"""Tells blocks of code apart: the file's path, its unit, the entry."""


class PlaceMissingError(CommandError):
    """No file of the program has such a place; one that comes later may."""


class CodePlace(Struct, frozen=True):
    """An address, and the line that it is of.

    Attributes:
        address: of an instruction.
        file: of the line, "" where none is known.
        line: its number.
        function: name of the function there, "" where none is known.
        written: the file as the compiler was given it.
        symbol: the address as "main+4".
        block: of the function there, an inlined copy's own; None where none is known.
        linkage: no more than a stub that leads to another file's function.
        module: guest path of the file.
        wanted: the text that it was asked for by, of a place that is shown by it.
        counter: offset in the file of a static probe's counter of those who listen; 0 for none.
    """

    address: int
    file: str = ""
    line: int = 0
    function: str = ""
    written: str = ""
    symbol: str = ""
    block: BlockKey | None = None
    linkage: bool = False
    module: str = ""
    wanted: str = ""
    counter: int = 0


class PlaceFinder:
    """Finds places in a guest's program and libraries."""

    def __init__(
        self,
        session: Session,
        files: Files,
        seen: Callable[[], AddressSpace | StoredProgram],
        listed: Callable[[], list[Module]],
    ) -> None:
        """Nothing is looked up yet.

        Args:
            session: the guest.
            files: its debug information.
            seen: gives the address space of the frame in sight, or the program's files.
            listed: gives the files that names are looked up in, the program first.
        """
        self._session = session
        self._seen, self._listed = seen, listed
        self._files = files
        unwind = session.arch.unwind
        frame_made = unwind.frame_made if unwind is not None else None
        self._bodies = FunctionBodies(frame_made, files.variables, self._block)

    # -- addresses --------------------------------------------------------------------------

    def at(self, address: int) -> CodePlace:
        """The place of an address."""
        module = self._seen().modules.at(address)
        line = module.line_at(address) if module is not None else None
        location = self._seen().modules.locate(address)
        symbol = location.symbol
        name = symbol.demangled if symbol is not None else ""
        offset = f"+{location.offset}" if location.offset else ""
        shown = f"{name}{offset}" if symbol is not None else ""
        if line is None or module is None:
            path = module.name if module is not None else ""
            return CodePlace(address, function=name, symbol=shown, module=path)
        written = module.lines.written(line[0]) or self._files.written(line[0])
        block = self._function(module, address - module.bias)
        key = (module.name, *block.key) if block is not None else None
        name = block.name if block is not None else name
        return CodePlace(address, *line, name, written, shown, key, module=module.name)

    def _function(self, module: Module, link: int) -> FunctionBlock | None:
        block = self._block(module, link)
        return block.functions[0] if block is not None else None

    def _block(self, module: Module, link: int) -> CodeBlock | None:
        return self._files.variables(module).block_at(link)

    def begun_at(self, address: int) -> list[BlockKey]:
        """The inlined copies around an address that begin there, the innermost first.

        Each of their ranges is a begin (gdb/inline-frame.c, block_starting_point_at).
        """
        module = self._seen().modules.at(address)
        block = self._block(module, address - module.bias) if module is not None else None
        if module is None or block is None or not block.functions[0].inlined:
            return []
        link = address - module.bias
        before = self._block(module, link - 1)
        around = {one.key for one in before.functions} if before is not None else set()
        found: list[BlockKey] = []
        for one in block.functions:
            if not one.inlined or (one.start != link and one.key in around):
                break
            found.append((module.name, *one.key))
        return found

    def body_at(self, address: int) -> int:
        """Return where a function's body begins; the address itself inside of a function."""
        module = self._seen().modules.at(address)
        if module is None:
            return address
        return self._behind_prologue(module, address - module.bias) + module.bias

    def code_of(self, address: int) -> tuple[list[range], str]:
        """The pieces of the function around an address, and its name; [] without one in DWARF."""
        module = self._seen().modules.at(address)
        block = self._block(module, address - module.bias) if module is not None else None
        if module is None or block is None:
            return [], ""
        outer = block.functions[-1]
        found = [
            range(low + module.bias, high + module.bias)
            for low, high in self._files.variables(module).pieces(outer)
        ]
        return found, outer.name

    def label(self, address: int) -> str:
        """An address as the linker would call it, as gdb has it beside code: "_ZN3geo1fEi+4".

        What has no name of its own for the linker is called as in the source.
        """
        location = self._seen().modules.locate(address)
        symbol, module = location.symbol, location.module
        if symbol is None or module is None:
            return ""
        block = self._block(module, address - module.bias)
        offset, outer = location.offset, block.functions[-1] if block is not None else None
        part = symbol.name + module.symbols.version_behind(symbol)
        if (
            outer is None
            or symbol.address > outer.start
            or (symbol.address != outer.start and not offset)
        ):
            name = part  # nothing that debug information tells of, or a part of a function
        else:
            name = outer.linkage or outer.name
            offset = address - module.bias - outer.start
        return f"{name}{offset:+}" if offset else name

    def begins_no_statement(self, address: int) -> bool:
        """True if a row of lines begins at an address, but no statement."""
        module = self._seen().modules.at(address)
        return module is not None and module.lines.begins_no_statement(address - module.bias)

    def function_span(self, address: int) -> range | None:
        """The addresses of the function around one, by its symbol; None where none has a size."""
        module = self._seen().modules.at(address)
        symbol = module.symbol_at(address) if module is not None else None
        if module is None or symbol is None or not symbol.size:
            return None
        start = symbol.address + module.bias
        return range(start, start + symbol.size)

    def span(self, address: int) -> tuple[int, int]:
        """First address and end of the row of lines around an address; of itself without."""
        module = self._seen().modules.at(address)
        found = module.lines.span_at(address - module.bias) if module is not None else None
        if module is None or found is None:
            return address, address
        return found[0] + module.bias, found[1] + module.bias

    # -- texts ------------------------------------------------------------------------------

    def wanted(
        self, text: str, frame: GuestFrame | None, evaluate: Callable[[str], TypedValue]
    ) -> WantedPlace:
        """The place that a text asks for.

        Args:
            text: the place as it was typed.
            frame: that is looked at: lines are its file's.
            evaluate: an expression's value, for `*ADDRESS`.

        Raises:
            CommandError: it asks for nothing.
        """
        text = text.strip()
        if not text:
            if frame is None:
                raise CommandError("No default breakpoint address now.")
            place = self.at(frame.pc)
            return WantedPlace(f"{place.file}:{place.line}", address=frame.pc)

        def here() -> tuple[str, int]:
            if frame is not None and frame.file:
                return frame.file, frame.line
            try:
                main = self.function("main")
            except CommandError:
                why = 'No symbol table is loaded.  Use the "file" command.'
                raise CommandError(why) from None
            return main.file, main.line

        def number(name: str) -> int | None:
            value = evaluate(name)
            return value.number if value.type.kind in INTEGERS and value.place is None else None

        specs = LineSpecs(
            here,
            lambda: frame.function if frame is not None else "",
            lambda expression: evaluate(expression).as_address,
            number,
            lambda name: any(module.lines.has_file(name) for module in self._listed()),
        )
        wanted = specs.read(text)
        name = wanted.function
        if not name or frame is None or wanted.file or wanted.label:
            return wanted
        if name not in self._labels_around(frame.pc):
            return wanted
        return WantedPlace(f"{frame.function}:{name}", function=frame.function, label=name)

    def _labels_around(self, address: int) -> dict[str, tuple[int, int]]:
        """The labels of the function around an address."""
        module = self._seen().modules.at(address)
        block = self._block(module, address - module.bias) if module is not None else None
        if module is None or block is None:
            return {}
        return self._files.variables(module).labels(block.functions[0])

    def find(self, wanted: WantedPlace) -> tuple[CodePlace, ...]:
        """All addresses of a place, functions' prologues left behind, by address.

        Raises:
            CommandError: there is none.
        """
        if wanted.address is not None:
            return (self.at(wanted.address),)
        found = [] if wanted.probe is None else list(self._of_probe(*wanted.probe))
        if wanted.marker is not None:
            found = list(self._of_marker(wanted.marker, wanted.text))
        elif wanted.entries:
            found = [self.at(address) for name in wanted.entries for address in self._linked(name)]
        elif wanted.is_line:
            found = list(self._of_line(wanted.file, wanted.line)) if wanted.line > 0 else []
        elif wanted.label:
            found = list(self._of_label(wanted))
        elif not found:
            found = list(self._of_function(wanted))
        by_address: dict[int, CodePlace] = {}
        for place in found:
            by_address.setdefault(place.address, place)
        if not by_address:
            raise PlaceMissingError(self._why_not(wanted))
        real = [place for place in by_address.values() if not place.linkage]
        return tuple(sorted(real or by_address.values(), key=lambda place: place.address))

    def again(self, wanted: WantedPlace, before: Sequence[CodePlace]) -> tuple[CodePlace, ...]:
        """The addresses of a place when files have come or gone; those before that are there yet.

        Args:
            wanted: the place.
            before: its addresses so far.
        """
        if wanted.address is not None:
            return tuple(before)
        try:
            found = self.find(wanted)
        except PlaceMissingError:
            found = ()
        stays = [
            place
            for place in before
            if not self._is_gone(place)
            and not (place.linkage and found)
            and all(place.address != other.address for other in found)
        ]
        return tuple(sorted((*found, *stays), key=lambda place: place.address))

    def _is_gone(self, place: CodePlace) -> bool:
        """True if the file of a place is not in the first process any more."""
        space = self._session.seen
        if space is not self._session.machine.first.space:
            return False  # another program's files say nothing of it
        module = space.modules.at(place.address)
        mapped = space.memory.find(place.address)
        return module is None or mapped is None or module.name != place.module

    def _why_not(self, wanted: WantedPlace) -> str:
        """Why a place has no address."""
        if wanted.marker is not None:
            return wanted.marker.why_not
        known = not wanted.file or any(
            module.lines.has_file(wanted.file) for module in self._listed()
        )
        if not known:
            return f"No source file named {wanted.file}."
        if wanted.is_line:
            if not wanted.current:
                return f'No line {wanted.line} in file "{wanted.file}".'
            return f"No line {wanted.line} in the current file."
        if wanted.label:
            if wanted.file or next(self._starts(wanted), None) is not None:
                return f'No label "{wanted.label}" defined in function "{wanted.function}".'
            return f"No source file named {wanted.function}."
        if wanted.function.startswith("$"):
            return f'Undefined convenience variable or function "{wanted.function}" not defined.'
        within = f' in "{wanted.file}"' if wanted.file else ""
        return f'Function "{wanted.function}" not defined{within}.'

    # -- lines ------------------------------------------------------------------------------

    def _of_line(self, file: str, line: int) -> Iterator[CodePlace]:
        """The places of a line: one in each block of code that has statements of it."""
        found: list[tuple[int, Module, list[int]]] = []
        for module in self._listed():
            at, addresses = module.lines.statements_at(file, line)
            if at:
                found.append((at, module, addresses))
        best = min((at for at, _, _ in found), default=0)
        for at, module, addresses in found:
            if at == best:
                yield from self._of_statements(module, addresses, at)

    def _of_statements(
        self, module: Module, addresses: list[int], line: int
    ) -> Iterator[CodePlace]:
        seen = set[tuple[int, int]]()
        for link in addresses:
            block = self._block(module, link)
            if block is not None and block.key in seen:
                continue
            if block is not None:
                seen.add(block.key)
            body = self._behind_prologue(module, link)
            place = self.at(body + module.bias)
            if body == link:
                place = replace(place, line=line)
            if block is not None:
                own = block.functions[0]
                place = replace(place, function=own.name, block=(module.name, *own.key))
            yield place

    def _behind_prologue(self, module: Module, link: int) -> int:
        """A line's address; of a function's first line the place behind its prologue."""
        symbol = module.symbols.at(link)
        if symbol is None or symbol.address != link or not symbol.is_function:
            return link
        return self._bodies.of(module, link)

    # -- functions --------------------------------------------------------------------------

    def _of_function(self, wanted: WantedPlace) -> Iterator[CodePlace]:
        """The places of a function's name, in all files."""
        for module in self._listed():
            for block in self._named(module, wanted):
                body = self._bodies.of(module, block.start)
                place = self.at(body + module.bias)
                yield replace(place, function=block.name, block=(module.name, *block.key))
            if not wanted.file:
                for owner, link in self._symbols(module, wanted.function):
                    yield self.at(self._bodies.of(owner, link) + owner.bias)
        for address in self._stubs(wanted):
            yield replace(self.at(address), linkage=True)

    def _of_label(self, wanted: WantedPlace) -> Iterator[CodePlace]:
        """The places of a label in a function's code; gdb shows them by what was asked for."""
        for module in self._listed():
            for block in self._called(module, wanted):
                at = self._files.variables(module).labels(block).get(wanted.label)
                if at is not None:
                    place = self.at(at[0] + module.bias)
                    yield replace(place, wanted=wanted.text, line=at[1] or place.line)

    def _stubs(self, wanted: WantedPlace) -> Iterator[int]:
        """The linkage stubs of a function, which stand for it while its library is not there."""
        for module in self._listed() if not wanted.file else ():
            for symbol in module.symbols.find_all(f"{wanted.function}@plt"):
                yield symbol.address + module.bias

    def _of_probe(self, provider: str, name: str) -> Iterator[CodePlace]:
        """The places of a static probe, in all files."""
        for module in self._listed():
            for probe in static_probes(module.image):
                if (probe.provider, probe.name) == (provider, name):
                    yield self.at(probe.address + module.bias)

    def _of_marker(self, wanted: WantedMarker, text: str) -> Iterator[CodePlace]:
        """The places of static probes; gdb shows them by what was asked for."""
        for module in self._listed():
            for probe in static_probes(module.image) if wanted.is_in(module.name) else ():
                if probe.name == wanted.name and wanted.provider in ("", probe.provider):
                    at = self.at(probe.address + module.bias)
                    counter = (probe.semaphore and module.image.file_offset(probe.semaphore)) or 0
                    at = replace(at, wanted=text, counter=counter)
                    yield replace(at, file="", line=0, written="")

    def _named(self, module: Module, wanted: WantedPlace) -> Iterator[FunctionBlock]:
        """The functions that the debug information has of a name, generic ones of Go as well."""
        found = False
        for block in self._called(module, wanted):
            found = True
            yield block
        for name in () if found else self._instances(module, wanted.function):
            yield from self._called(module, replace(wanted, function=name))

    @staticmethod
    def _instances(module: Module, name: str) -> tuple[str, ...]:
        """The names of a generic function of Go in a file, one for each set of types."""
        if "." not in name or not has_go(module.image):
            return ()
        bare = without_types(name)
        names = (symbol.name for symbol in module.symbols if symbol.is_function)
        generic = (one for one in names if "[" in one and without_types(one) == bare)
        return tuple(dict.fromkeys(generic))

    def _called(self, module: Module, wanted: WantedPlace) -> Iterator[FunctionBlock]:
        functions = self._files.functions(module)
        if functions is None:
            return
        image = module.image
        for block in functions.find(wanted.function, whole=wanted.whole):
            if not max(image.low, 1) <= block.start < image.high:
                continue  # discarded by the linker
            if wanted.file:
                if block.inlined:
                    continue  # gdb looks for them in all files only
                line = module.lines.line_at(block.start)
                if line is None or not (
                    line[0] == wanted.file or line[0].endswith("/" + wanted.file)
                ):
                    continue
            yield block

    def _symbols(self, module: Module, name: str) -> list[tuple[Module, int]]:
        """Addresses that only the symbol table calls so, with their files: its best ones."""
        resolver = name.endswith(RESOLVER)
        name = name.removesuffix(RESOLVER)
        found = module.symbols.find_all(name)
        if not found and "(" in name:
            wanted = WantedFunction(name)
            alike = module.symbols.find_all(wanted.path)
            found = [one for one in alike if wanted.fits_parameters(one.demangled)]
        if not found:
            instances = self._instances(module, name)
            found = [symbol for one in instances for symbol in module.symbols.find_all(one)]
        found = [symbol for symbol in found if symbol.is_function]
        if resolver:
            return [(module, symbol.address) for symbol in found if symbol.kind == "ifunc"]
        return [self._meant(module, symbol) for symbol in found]

    def _meant(self, module: Module, symbol: Symbol) -> tuple[Module, int]:
        """A function's file and link address; of an indirect one those of its implementation."""
        if symbol.kind != "ifunc":
            return module, symbol.address
        try:
            path, link = self._session.probes().picked.of(module.name, symbol)
        except KprobeTuiError:
            return module, symbol.address
        there = (one for one in self._listed() if one.name == path)
        owner = module if path == module.name else next(there, None)
        return (module, symbol.address) if owner is None else (owner, link)

    def function(self, name: str) -> CodePlace:
        """A function's first instruction behind its prologue.

        Raises:
            CommandError: there is none.
        """
        return self.find(WantedPlace(name, function=name))[0]

    def beginnings(self, wanted: WantedPlace) -> tuple[CodePlace, ...]:
        """The first instructions of a place, prologues and all.

        They are every function's of a name, and one of a line; a line without code has that of
        the next one.

        Raises:
            CommandError: there is none.
        """
        if wanted.address is not None:
            return (self.at(wanted.address),)
        if wanted.marker is not None:
            found = tuple(self._of_marker(wanted.marker, wanted.text))
        elif wanted.label:
            found = tuple(self._of_label(wanted))
        elif not wanted.is_line:
            starts = dict.fromkeys(self._starts(wanted)) or dict.fromkeys(self._stubs(wanted))
            found = tuple(self.at(address) for address in starts)
        else:
            lines = [
                (at, addresses[0] + module.bias)
                for module in (self._listed() if wanted.line > 0 else ())
                for at, addresses in [module.lines.statements_at(wanted.file, wanted.line)]
                if at
            ]
            found = tuple(replace(self.at(at), line=line) for line, at in sorted(lines)[:1])
        if not found:
            raise PlaceMissingError(self._why_not(wanted))
        return found

    def _linked(self, name: str) -> Iterator[int]:
        """The first instructions of the functions that symbol tables have under a name."""
        for module in self._listed():
            for owner, link in self._symbols(module, name):
                yield link + owner.bias

    def _starts(self, wanted: WantedPlace) -> Iterator[int]:
        for module in self._listed():
            for block in self._named(module, wanted):
                yield block.start + module.bias
            for owner, link in self._symbols(module, wanted.function) if not wanted.file else ():
                yield link + owner.bias

    def entry(self, name: str) -> CodePlace:
        """A function's first instruction.

        Raises:
            CommandError: there is none.
        """
        for module in self._listed():
            found = self._entry(module, name)
            if found is not None:
                return self.at(found[1] + found[0].bias)
        raise CommandError(f'Function "{name}" not defined.')

    def _entry(self, module: Module, name: str) -> tuple[Module, int] | None:
        for block in self._named(module, WantedPlace(name, function=name)):
            return module, block.start
        return next(iter(self._symbols(module, name)), None)
