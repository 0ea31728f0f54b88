"""The meaning of an expression's names in one frame of a standing guest."""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError, ImageError
from engine.guest.modules import Module
from engine.image import Symbol
from engine.image.callsites import CallSite, register_of
from engine.image.datatypes import MAX_DEPTH, TypeKind
from engine.image.dies import Unit
from engine.image.dietypes import DieType
from engine.image.expressions import OPTIMIZED_OUT, Term, VariableLocation, Where
from engine.image.functions import CPP
from engine.image.gotypes import dictionary_index, shape_of
from engine.image.names import GlobalNames, class_around
from engine.image.reader import DamagedError
from engine.image.scopes import DieVariable, FunctionBlock, Scope, Variable
from engine.language import value_types as ct
from engine.language.convenience_functions import FUNCTIONS, ConvenienceFunction
from engine.language.go_program import GO_MAIN, GoProgram
from engine.language.languages import GO, RUST, C, Language, language_of
from engine.language.user_printers import UserPrinters
from engine.language.user_types import bare_type
from engine.language.value_types import CType, MadeType
from engine.language.values import MemoryPlace, Order, Place, RegisterPlace, TypedValue
from engine.linux.space import AddressSpace
from engine.session.guest.calling import CallOutcome
from engine.session.guest.entering import CallArguments
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import LOOKED_AT, space_of
from engine.session.inspect.cpp_names import CppNames
from engine.session.inspect.entry_values import EntryValues, thread_local
from engine.session.inspect.frame_memory import FrameMemory, with_bits
from engine.session.inspect.frame_registers import FrameRegisters, Uses
from engine.session.inspect.frame_values import KnownFrame, found_value
from engine.session.inspect.function_results import FunctionResults
from engine.session.inspect.passed_arguments import passed_arguments
from engine.session.inspect.program_files import GO_TYPES, Files
from engine.session.inspect.stored_program import StoredProgram
from engine.session.inspect.thread_variables import library_variable
from engine.session.inspect.top_names import TopNames
from engine.session.inspect.variable_places import OPTIMIZED, VariablePlaces
from engine.session.protocol.frames import GuestFrame

_CPP_CODE: Final = ct.pointer_to(MadeType(TypeKind.FUNCTION, 1, "void", ct.VOID))
"""The type of the program counter in C++, where a function without parameters says so."""


_SPOKEN: Final[Mapping[str, Language]] = {"rust": RUST, "go": GO}


CallFunction = Callable[[int, CallArguments, tuple[str, ...], bool], CallOutcome]
"""Calls a function: its address, its arguments, the registers to tell of behind it, and whether
the memory that it changes is wanted."""


class FrameScope:
    """The surroundings of expressions in a frame; it implements `Surroundings`.

    Attributes:
        frame: the frame; None while the program has not begun or has ended.
        scope: the variables there, None without debug information.
        uses: where it is noted what values are read from; None for nowhere.
        pages: memory that is other than the program's, see `TypedValue.pages`.
    """

    def __init__(
        self,
        session: Session,
        files: Files,
        frame: GuestFrame | None,
        *,
        number: int,
        exact: bool,
        write_memory: Callable[[int, bytes], None],
        write_register: Callable[[str, int], None],
        convenience: dict[str, TypedValue],
        values: list[TypedValue],
        call: CallFunction | None = None,
        depth: int | None = None,
        functions: Mapping[str, ConvenienceFunction] = FUNCTIONS,
        computed: Mapping[str, Callable[[], TypedValue]] = MappingProxyType({}),
        caller: "Callable[[], FrameScope | None] | None" = None,
        called: "Callable[[str], FrameScope | None] | None" = None,
        expand: Callable[[str], str] | None = None,
        spoken: str = "",
        read_register: Callable[[str], int] | None = None,
        stored: StoredProgram | None = None,
    ) -> None:
        """Look at a frame.

        Args:
            session: the guest.
            files: its debug information.
            frame: the frame.
            number: of the frame, 0 for the innermost.
            exact: its pc is where it goes on, and not behind a call.
            write_memory: changes bytes.
            write_register: changes a register.
            convenience: the user's own variables by name, without the dollar.
            values: those printed before, `$1` first.
            call: calls a function of the program; None where none are called.
            depth: how many functions were inlined into each other down to the frame's; None to
                see the variables of all.
            functions: of the debugger's own, by name without the dollar.
            computed: variables of the debugger's own that are found anew each time, likewise.
            caller: gives the frame that the function was called from; None where nobody asks.
            called: gives the innermost call of a function, None for none; None where nobody asks.
            expand: expands macros in an expression; None where none are known.
            spoken: the language that the user has chosen, as gdb names it; "" for the code's.
            read_register: reads a register of the thread in sight; None where it is the one
                that the processor holds.
            stored: the program's files, in place of its memory; None while there is a program.
        """
        self._now = read_register or session.cpu.read_register
        self._expand, self._spoken, self._called = expand, spoken, called
        self._caller = caller
        self._functions, self._computed = functions, computed
        self._session = session
        self._files = files
        self._arch = session.arch
        self.frame = frame
        self._number = number
        self._registers = FrameRegisters(session, frame, number, self._note_register, self._now)
        self._write_memory, self._write_register = write_memory, write_register
        self._convenience, self._values = convenience, values
        self._call = call
        # Of a frame of another process nothing is changed and nothing called.
        self._elsewhere: AddressSpace | StoredProgram | None = stored
        if frame is not None:
            self._elsewhere = space_of(session, frame)
        self._memory = FrameMemory(session, self._elsewhere)
        if frame is not None and frame.thread:
            self._write_memory, self._call = _not_there, None
        self._places = self._made_places()
        self._module: Module | None = None
        self._place: int | None = None
        self._depth = depth
        self.pages: Mapping[int, bytes] = MappingProxyType({})
        self.uses: Uses | None = None
        self.scope: Scope | None = None
        if frame is not None:
            place = self._place = frame.pc if exact else frame.pc - 1
            self._module = (self._elsewhere or session.seen).modules.at(place)
            if self._module is not None:
                try:
                    link = place - self._module.bias
                    whole = files.scope(self._module, link)
                    if whole is not None and whole.language == GO.code:
                        line = self._module.line_at(place)
                        whole = whole if line is None else whole.declared_before(line[1])
                    self.scope = whole if whole is None or depth is None else whole.at_depth(depth)
                except (ImageError, DamagedError):
                    self.scope = None

    def _made_places(self) -> VariablePlaces:
        return VariablePlaces(
            self._arch, self._registers, lambda at, size: self.read(at, size), self._copy
        )

    @property
    def _space(self) -> AddressSpace | StoredProgram:
        """The address space of the frame's program, or its files."""
        return self._elsewhere or self._session.seen

    @property
    def order(self) -> Order:
        """The order of bytes."""
        return "little" if self._arch.byteorder == "little" else "big"

    @property
    def pointer(self) -> int:
        """Bytes of a pointer."""
        return self._arch.bits // 8

    @cached_property
    def language(self) -> Language:
        """The language of the frame's code, or the chosen one; without a frame, that of main."""
        if self._spoken:
            return _SPOKEN.get(self._spoken, C)
        if self.frame is None:
            main = self._space.modules.main
            return C if main is None else self._files.language(main)
        return C if self.scope is None else language_of(self.scope.language)

    @cached_property
    def go(self) -> GoProgram | None:
        """The types that a program of Go tells of; None for other programs."""
        module = self._module or self._space.modules.main
        types = self._files.go(module) if module is not None else None
        if module is None or types is None:
            return None
        start = next(iter(module.symbols.find_all(GO_TYPES)))
        function = self.scope.function if self.scope is not None else GO_MAIN
        return GoProgram(types, start.address + module.bias, function, self._goroutine)

    def _goroutine(self) -> int:
        """The address of the goroutine on whose stack the frame is; 0 for none.

        Raises:
            CommandError: the program does not tell of its goroutines.
        """
        from engine.session.inspect.goroutines import Goroutines  # few expressions ask for them

        if self.frame is None or isinstance(self._space, StoredProgram):
            return 0
        listed = Goroutines(self._session).listed(self._space)
        sp = self._registers.held(self._arch.roles.sp) or 0
        around = (one for one in listed.found if one.stack[0] <= sp < one.stack[1])
        return next((one.address for one in around), 0)

    @property
    def is_cpp(self) -> bool:
        """True if the frame's code is C++'s; where nothing tells, if any of the program is."""
        if self._spoken:
            return self._spoken == "c++"
        if self.scope is not None:
            return self.scope.language in CPP
        main = self._space.modules.main
        names = self._files.names(main) if main is not None else None
        return isinstance(names, GlobalNames) and any(map(names.has_language, CPP))

    @property
    def is_main(self) -> bool:
        """True if the frame's function is the one that the program begins with."""
        functions = self._functions_here()
        if self.language is GO:
            return bool(functions) and functions[-1].name == GO_MAIN
        return bool(functions) and functions[-1].is_main

    @property
    def source_function(self) -> str:
        """The function's name in the debug information; "" where the linker's is shown.

        A function of C may have several for the linker, and a copy of its own for some arguments
        (NAME.constprop.0); gdb calls it as its source does (find_frame_funname() of stack.c).
        """
        by_dwarf = self.language.is_named_by_dwarf or not self.is_cpp
        return self.debug_function if by_dwarf else ""

    @property
    def debug_function(self) -> str:
        """The function's name in the debug information; "" without any."""
        functions = self._functions_here()
        depth = len(functions) - 1 - (self._depth or 0)
        return functions[depth].name if 0 <= depth < len(functions) else ""

    def _functions_here(self) -> tuple[FunctionBlock, ...]:
        """The function around the frame's place and those inlined there, the innermost first."""
        if self._module is None or self._place is None:
            return ()
        block = self._files.variables(self._module).block_at(self._place - self._module.bias)
        return () if block is None else block.functions

    @property
    def _unit(self) -> Unit | None:
        return self.scope.unit if self.scope is not None else None

    # -- names ------------------------------------------------------------------------------

    def variable(self, name: str, scope: str = "") -> TypedValue | None:
        """A variable, function or enumerator; None where there is none."""
        if scope:
            return self._in_function(name, scope)
        if name.endswith((")", ") const")):
            described = self._by_signature(name)
            return None if described is None else described[0]
        return self.local(name) or self._top.find(name) or self._in_space(name)

    def local(self, name: str) -> TypedValue | None:
        """A variable of the function alone; None where there is none."""
        for variable in self.locals():
            if variable.name == name:
                if self.uses is not None and _lives_with_call(variable):
                    self.uses.this |= name == "this"
                    self.uses.local |= name != "this"
                return self.of_variable(variable)
        return None

    def _in_space(self, name: str) -> TypedValue | None:
        """A variable or function by a part of its path, or by another name of a namespace."""
        whole = self._cpp.whole_name(name) if self.is_cpp else ""
        return self._top.find(whole) if whole else None

    def functions(self, name: str, *, nearest: bool = True) -> list[TypedValue]:
        """Functions of a name; those with no more in front than was asked are preferred."""
        found = self._cpp.functions(name, nearest=nearest)
        return [self._top.fixed(kind, address) for kind, address in found]

    def is_namespace(self, name: str) -> bool:
        """True if a name is that of a namespace of C++."""
        return self.is_cpp and self._cpp.is_namespace(name)

    def linked(self, name: str) -> int | None:
        """The address of what the linker calls so, or its demangled name; None for none."""
        return self._cpp.linked(name)

    @property
    def _cpp(self) -> CppNames:
        """Names as C++ writes them."""
        modules = self._files.modules(self._module, self._space)
        pairs = [(module, self._files.names(module)) for module in modules]
        return CppNames(pairs, self._unit)

    def locals(self) -> tuple[Variable, ...]:
        """The variables of the function, the innermost block's first."""
        scope, frame = self.scope, self.frame
        if scope is None or frame is None:
            return ()
        return scope.visible

    def _in_function(self, name: str, function: str) -> TypedValue | None:
        """A variable that a function keeps between its calls, or one of a file."""
        is_known = False
        for module in self._files.modules(self._module, self._space):
            names = self._files.names(module)
            found = names.function(function, self._unit) if names is not None else None
            if found is None:
                continue
            is_known = True
            scope = self._files.variables(module).scope(found[1])
            for variable in scope.visible if scope is not None else ():
                if variable.name != name:
                    continue
                if _lives_with_call(variable) and self._called is not None:
                    around = self._called(function)
                    if self.frame is None:
                        raise CommandError("No frame selected.")
                    if around is None:
                        raise CommandError(f"No frame is currently executing in block {function}.")
                    return around.local(name)
                return self.of_variable(variable, module)
        described = self._by_signature(function) if "(" in function else None
        if described is not None:
            _, module, link = described
            scope = self._files.variables(module).scope(link)
            for variable in scope.visible if scope is not None else ():
                if variable.name == name and not _lives_with_call(variable):
                    return self.of_variable(variable, module)
            return None
        if is_known:
            return None
        if "." in function:
            return self._top.find(name)
        raise CommandError(f'No symbol "{function}" in current context.')

    def _by_signature(self, text: str) -> tuple[TypedValue, Module, int] | None:
        """A function of C++ by its name with its parameters: `work(int)`; None for none.

        Returns:
            The function, its file, and its address there.
        """
        wanted = text.replace(" ", "")
        for function in self.functions(text.partition("(")[0].strip(), nearest=False):
            location = self._space.modules.locate(function.address or 0)
            symbol, module = location.symbol, location.module
            if symbol is None or module is None or location.offset:
                continue
            if symbol.demangled.replace(" ", "") == wanted:
                return function, module, symbol.address
        return None

    @cached_property
    def _top(self) -> TopNames:
        """The names that files have at their top, those of the frame's file first."""
        return TopNames(
            *(self._files, self._space, self._module, self._unit),
            order=self.order,
            is_rust=lambda: self.language is RUST,
            read=self.read,
            placed=self.of_variable,
            sees=self._sees,
        )

    def symbol_size(self, name: str) -> int:
        """The size of a thing that a symbol table knows; 0 where none does."""
        return self._top.symbol_size(name)

    def type(self, words: tuple[str, ...]) -> CType | None:
        """A type by name."""
        word = words[0] if words[0] in ("struct", "union", "enum", "class") else ""
        name = " ".join(words[1:] if word else words)
        if not word and len(words) > 1:
            return None  # C's own
        for module in self._files.modules(self._module, self._space):
            names = self._files.names(module)
            found = names.type(name, word, self._unit) if names is not None else None
            if found is not None and ("::" in name or word or self._sees(found)):
                return found
        if "<" in name:
            return self._cpp.template(name)
        return self._cpp.type_within(name) if self.is_cpp and "::" in name and not word else None

    def _sees(self, kind: CType) -> bool:
        """True for what needs no class in front of its name: a method's own class is around it."""
        around = class_around(kind) if self.is_cpp else ""
        return not around or any(
            one == around or one.startswith(f"{around}::") for one in self._own_classes
        )

    @cached_property
    def _own_classes(self) -> tuple[str, ...]:
        """The class whose method runs, and those that it is derived from."""
        this = self.local("this")
        found: list[str] = []
        kinds = [] if this is None else [this.type.resolved.target]
        while kinds and len(found) < MAX_DEPTH:
            kind = kinds.pop()
            found.append(bare_type(kind.resolved.text))
            kinds += [one.type for one in kind.resolved.members if one.is_base]
        return tuple(found)

    def prefers_type(self, name: str) -> bool:
        """True if a name is that of a type in a nearer file than that of a variable."""
        if self.local(name) is not None:
            return False
        for module in self._files.modules(self._module, self._space):
            names = self._files.names(module)
            if names is None:
                continue
            near = self._unit if module is self._module else None
            if names.variable(name, near) or names.function(name, near):
                return False
            if names.type(name, "", near) is not None:
                return names.enumerator(name, near) is None
        return False

    def type_of_vtable(self, address: int) -> CType | None:
        """The type whose methods a table of Rust holds; None where nobody says."""
        module = self._space.modules.at(address)
        names = self._files.names(module) if module is not None else None
        if module is None or not isinstance(names, GlobalNames):
            return None
        return names.type_of_vtable(address - module.bias)

    # -- registers --------------------------------------------------------------------------

    def register(self, name: str) -> TypedValue | None:
        """A register of the frame; the processor's own in the innermost one."""
        found = self._registers.typed(name)
        if found is not None and isinstance(self._elsewhere, StoredProgram):
            raise CommandError("No registers.")
        is_code = found is not None and name in ("pc", self._arch.roles.pc) and self.is_cpp
        return replace(found, type=_CPP_CODE) if found is not None and is_code else found

    def registers(self) -> Mapping[str, TypedValue]:
        """General registers and flags, by name."""
        return self._registers.all()

    def _note_register(self, name: str) -> None:
        if self.uses is not None:
            self.uses.registers[name] = None

    # -- values -----------------------------------------------------------------------------

    def convenience(self, name: str) -> TypedValue | None:
        """A variable of the user's own, or of the debugger's."""
        found = self._convenience.get(name)
        if found is None and name in self._computed:
            return self._computed[name]()
        return found

    def function(self, name: str) -> ConvenienceFunction | None:
        """A function of the debugger's own."""
        return self._functions.get(name)

    def set_convenience(self, name: str, value: TypedValue) -> None:
        """Give one a value."""
        self._convenience[name] = value

    def history(self, number: int) -> TypedValue:
        """A value that was printed before."""
        values = self._values
        if number > 0:
            if number > len(values):
                raise CommandError(f"History has not yet reached ${number}.")
            return values[number - 1]
        if not values:
            return TypedValue(ct.VOID, lambda: b"", order=self.order)
        if -number >= len(values):
            return values[0] if not number else TypedValue(ct.VOID, lambda: b"", order=self.order)
        return values[number - 1]

    def of_variable(self, variable: Variable, module: Module | None = None) -> TypedValue:
        """A variable's value in this frame."""
        module = module or self._module
        bias = module.bias if module is not None else 0
        try:
            where = variable.location
            self._registers.outlive = self._is_kept_by_call(variable)
            if where.where is Where.NOWHERE and where is not OPTIMIZED_OUT:
                found = self._computed_value(variable, module)
                if found is not None:
                    return found
            return self._places.located(self._real_type(variable.type), where, bias)
        except (ImageError, DamagedError):
            return self._places.lost(variable.type, "<the debug information is damaged>")
        finally:
            self._registers.outlive = False

    def _real_type(self, kind: CType) -> CType:
        """The type of a variable; in a generic function of Go the one that it is called for."""
        if self.scope is None or self.scope.language != GO.code or not isinstance(kind, DieType):
            return kind
        index = dictionary_index(kind)
        if index is None:
            return kind
        return self._of_dictionary(index) or shape_of(kind)

    def _of_dictionary(self, index: int) -> CType | None:
        """A type by its place in the dictionary of a generic function; None for none."""
        hidden = self.scope.hidden if self.scope is not None else ()
        dictionary = self.of_variable(hidden[0]) if hidden else None
        if dictionary is None or dictionary.missing or self.go is None:
            return None
        try:
            raw = self.read(dictionary.number + index * self.pointer, self.pointer)
        except GuestFaultError:
            return None
        return self.go.dynamic(int.from_bytes(raw, self.order))

    def _is_kept_by_call(self, variable: Variable) -> bool:
        """True if a variable is where it was when the call that the frame has made returns.

        A compiler that knows the callee keeps variables in registers that the ABI lets it change
        (GCC's -fipa-ra). The location behind the call is then the one in front of it, or is
        computed from the same register.
        """
        if not self._number or not isinstance(variable, DieVariable):
            return False
        pc = variable.frame.pc
        here, behind = variable.expression_at(pc), variable.expression_at(pc + 1)
        if here is None or behind is None or here == behind:
            return here == behind
        register = register_of(here)
        return register is not None and behind[0] == 0x70 + register  # DW_OP_breg

    def _computed_value(self, variable: Variable, module: Module | None) -> TypedValue | None:
        """The value of a variable whose place or value an expression computes."""
        if not isinstance(variable, DieVariable) or module is None or self.frame is None:
            return None
        code, kind = variable.expression_at(variable.frame.pc), variable.type
        if not code:
            return None
        found = found_value(code, self._as_known(module), variable.entry.unit, variable.frame)
        size = kind.size or 0
        if found is None or (found.where is Where.VALUE and size > 8):
            return None
        term = Term(offset=found.number)
        register = found.number if found.where is Where.REGISTER else 0
        return self._places.located(kind, VariableLocation(found.where, term, register), 0)

    def _as_known(self, module: Module) -> KnownFrame:
        """The frame as expressions of a file ask it."""
        tls = self._arch.roles.tls

        def held(number: int) -> int | None:
            name = self._places.register_name(number)
            self._note_register(name)
            return self._registers.held(name) if name else None

        def of_thread(offset: int) -> int | None:
            pointer, abi = self._now(tls) if tls else None, self._arch.abi
            if module is self._space.modules.main:
                return thread_local(module, abi.thread_block, pointer, offset)
            if not pointer or abi.thread_vector is None:
                return None
            files = self._files.modules(there=self._space)
            return library_variable(module, files, pointer, abi.thread_vector, offset, self.read)

        entry = self._entry_values
        return KnownFrame(
            held,
            entry.register if entry is not None else lambda _: None,
            of_thread,
            self.read,
            module.bias,
            "<" if self.order == "little" else ">",
        )

    @cached_property
    def _entry_values(self) -> EntryValues | None:
        if self.scope is None or self._module is None or self._caller is None:
            return None
        return EntryValues(self.scope, self._module, self._caller)

    def entry_value(self, variable: Variable) -> TypedValue | None:
        """A parameter as it was at the function's first instruction; None if nobody tells."""
        entry = self._entry_values
        try:
            number = entry.of(variable) if entry is not None else None
            size = variable.type.size or 0
        except (ImageError, DamagedError):
            return None
        if number is None or size > 8:
            return None
        raw = (number & (1 << 64) - 1).to_bytes(8, self.order)
        cut = raw[:size] if self.order == "little" else raw[8 - size :]
        return TypedValue(variable.type, lambda: cut, order=self.order)

    def at_entry(self, name: str) -> TypedValue:
        """A parameter by name, likewise: `name@entry`."""
        for variable in self.locals():
            if variable.name == name and variable.is_parameter:
                found = self.entry_value(variable)
                if found is None and self.is_main:
                    at = (self.scope.start if self.scope else 0) + (
                        self._module.bias if self._module else 0
                    )
                    raise CommandError(
                        f"DW_OP_entry_value resolving requires caller of {at:#x} (main)"
                    )
                return found or self._places.lost(variable.type, OPTIMIZED)
        raise CommandError(f'@entry can be used only for function parameters, not for "{name}"')

    def call_site(self) -> CallSite | None:
        """The call that the frame has made, where a compiler tells of it."""
        module, frame = self._module, self.frame
        if module is None or frame is None:
            return None
        return self._files.variables(module).call_at(frame.pc - module.bias)

    def number_of(self, code: bytes, unit: Unit) -> int | None:
        """The number that an expression of a call computes in this frame."""
        if self._module is None or not code:
            return None
        known = self._as_known(self._module)
        context = next((one.frame for one in self._die_variables()), None)
        # A compiler describes a call by what outlives it.
        self._registers.outlive = self._number > 0
        try:
            found = found_value(code, known, unit, context)
            if found is None or found.where is not Where.REGISTER:
                return None if found is None else found.number
            return known.register(found.number)
        finally:
            self._registers.outlive = False

    def _die_variables(self) -> Iterator[DieVariable]:
        scope = self.scope
        found = (*scope.parameters, *scope.locals) if scope is not None else ()
        return (one for one in found if isinstance(one, DieVariable))

    def located(self, kind: CType, where: VariableLocation) -> TypedValue:
        """A value of a type at a place in this frame."""
        return self._places.located(
            kind, where, self._module.bias if self._module is not None else 0
        )

    # -- memory -----------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """Memory, as the program has it: without what is planted."""
        if self.uses is not None:
            self.uses.memory[address, size] = None
        return self._copy(address, size)

    @property
    def printers(self) -> UserPrinters | None:
        """Functions of the user's that print values; None for none."""
        return self._session.printers

    def expanded(self, text: str) -> str:
        """An expression with the macros of the code there expanded."""
        return text if self._expand is None else self._expand(text)

    def afterwards(self, pages: Mapping[int, bytes]) -> "FrameScope":
        """The same with other memory in some pages: what a called function has left."""
        if pages is self.pages:
            return self
        other = copy(self)
        other.pages = pages
        other._places = other._made_places()
        other.__dict__.pop("_top", None)  # it reads with these pages
        return other

    def _copy(self, address: int, size: int) -> bytes:
        return self._memory.read(address, size, self.pages)

    def store(self, place: Place, data: bytes) -> None:
        """Change memory or a register."""
        if isinstance(place, MemoryPlace):
            self._write_memory(place.address, with_bits(place, data, self.order, self.read))
        elif isinstance(place, RegisterPlace):
            if self.frame is not None and self.frame.parked:
                raise CommandError("No thread runs the goroutine: it has no registers to change.")
            if self._number:
                raise CommandError(f"${place.name} can be changed in frame 0 only")
            width = next(r.bits for r in self._arch.registers if r.name == place.name) // 8
            old = self._now(place.name).to_bytes(width, "little")
            part = data if self.order == "little" else data[::-1]
            start = place.offset
            fresh = old[:start] + part[: width - start] + old[start + len(part) :]
            self._write_register(place.name, int.from_bytes(fresh, "little"))
        else:
            raise CommandError("Left operand of assignment is not an lvalue.")

    def construct(self, address: int, kind: CType, arguments: list[TypedValue]) -> TypedValue:
        """Make an object by a constructor."""
        if self._call is None:
            raise CommandError("Functions of the program are not called here.")
        room = max(kind.size or 0, 1)
        language = self.language.code
        given = passed_arguments(self._arch, arguments, language, room, makes=True)
        return self._left(kind, self._call(address, given, (), True))

    def _left(self, kind: CType, outcome: CallOutcome) -> TypedValue:
        """A value that a function has left in the room that it was given."""
        around = self.afterwards(outcome.pages)
        found = TypedValue(
            kind,
            lambda: around.read(outcome.room, kind.size or 0),
            MemoryPlace(outcome.room),
            order=self.order,
        )
        _ = found.raw
        return replace(found, pages=outcome.pages, kept=True)

    def call(self, address: int, result: CType, arguments: list[TypedValue]) -> TypedValue:
        """Call a function of the program."""
        if self._call is None:
            raise CommandError("Functions of the program are not called here.")
        results, language = self.results, self.language.code
        if result.resolved.kind is TypeKind.VOID:
            self._call(address, passed_arguments(self._arch, arguments, language), (), False)
            return TypedValue(ct.VOID, lambda: b"", order=self.order)
        in_memory = results.is_in_memory(result, language)
        room = (result.size or 0) * in_memory
        given = passed_arguments(self._arch, arguments, language, room)
        keeps = result.resolved.kind in (TypeKind.RECORD, TypeKind.POINTER)
        names = () if in_memory else results.registers(result, language)
        outcome = self._call(address, given, names, keeps)
        if in_memory:
            return self._left(result, outcome)
        found = results.value(result, outcome.registers.__getitem__, language=language)
        assert found is not None, "registers hold it"
        return replace(found, pages=outcome.pages)

    # -- symbols ----------------------------------------------------------------------------

    def symbol(self, address: int) -> str:
        """An address as "main+4"; "" where no symbol covers it."""
        location = self._space.modules.locate(address)
        if location.symbol is None:
            return location.engine
        name, module = location.symbol.demangled, location.module
        if module is not None:
            name += module.symbols.version_behind(location.symbol)
        by_dwarf = self.language.is_named_by_dwarf
        if self.is_cpp and module is self._module:  # main has its parameters, too
            by_dwarf = True
        if by_dwarf and module is not None and location.symbol.is_function:
            block = self._files.variables(module).block_at(address - module.bias)
            name = name if block is None else block.functions[-1].name  # types and all
        elif self.language is C and not self.is_cpp and module is not None:
            name, start = self._described(module, location.symbol, name)
            return f"{name}+{address - start}" if address != start else name
        offset = f"+{location.offset}" if location.offset else ""
        return f"{name}{offset}"

    def _described(self, module: Module, symbol: Symbol, name: str) -> tuple[str, int]:
        """The name of what a symbol covers, and its address: as debug information calls it.

        A symbol that begins inside of what is described there stands for a part of it, and keeps
        its name (gdb/printcmd.c, build_address_symbolic).
        """
        start = symbol.address
        block = self._files.variables(module).block_at(start) if symbol.is_function else None
        outer = None if block is None else block.functions[-1]
        if outer is not None and outer.start == start:
            name = outer.name
        return name, start + module.bias

    @property
    def results(self) -> FunctionResults:
        """Finds what functions return."""
        return FunctionResults(self._arch, self.read)


def _lives_with_call(variable: Variable) -> bool:
    """True for a variable of a call: not one that a function keeps between them."""
    try:
        where = variable.location
    except (ImageError, DamagedError):
        return True
    return where.where is not Where.MEMORY or not where.term.is_link


def program_scope(
    session: Session, convenience: dict[str, TypedValue] | None = None
) -> FrameScope:
    """The meaning of a program's own names where no frame is; nothing can be changed.

    Args:
        session: the guest.
        convenience: variables besides, `$NAME`, without the dollar.
    """
    return FrameScope(
        session,
        Files(session),
        None,
        number=0,
        exact=True,
        write_memory=_refuse,
        write_register=_refuse,
        convenience=convenience or {},
        values=[],
    )


def _not_there(*change: object) -> None:
    raise CommandError(LOOKED_AT)


def _refuse(*change: object) -> None:
    raise CommandError("an expression changes nothing here")
