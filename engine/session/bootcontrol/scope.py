"""The surroundings of expressions where a booted kernel stands: its types, symbols and registers.

Types are those of the kernel's BTF, which knows no variables but those that each processor has of
its own. Parameters of a function are known at its first instruction, by the calling convention.
"""

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Final, NoReturn

from engine.errors import CommandError, GuestFaultError
from engine.image.callconv import entry_locations
from engine.image.datatypes import TypeKind
from engine.image.expressions import VariableLocation, Where
from engine.image.kernel.btftypes import BtfTypes
from engine.language import value_types as ct
from engine.language.convenience_functions import FUNCTIONS, ConvenienceFunction
from engine.language.evaluation import evaluate
from engine.language.languages import C, Language
from engine.language.register_types import number_of
from engine.language.surroundings import Surroundings
from engine.language.value_types import CType
from engine.language.values import MemoryPlace, Order, Place, RegisterPlace, TypedValue, made
from engine.session.bootcontrol.boot import ControlledBoot

_CURRENT = "lx_current"
_UNKNOWN_DATA = ct.MadeType(TypeKind.OTHER, 0, ct.UNKNOWN_DATA)
_C: Final = 0x0C  # DW_LANG_C99
_IN_FRONT: Final = (0, 4, 5, 9)
"""Offsets in front of a function's own code: of a landing pad, of ftrace's site, and behind."""
_KEYWORDS = ("struct", "union", "enum")


class KernelScope:
    """The names at the place where a machine stands; a `Surroundings`.

    Attributes:
        values: those that were printed, `$1` first.
    """

    order: Order = "little"
    pointer = 8
    is_cpp = False
    printers = None
    pages: Mapping[int, bytes] = MappingProxyType({})

    def __init__(self, boot: ControlledBoot) -> None:
        """Look at a boot, at whatever moment it stands."""
        self.values: list[TypedValue] = []
        self._boot = boot
        self._own: dict[str, TypedValue] = {}

    @cached_property
    def _types(self) -> BtfTypes | None:
        btf = self._boot.opened.image.btf
        return None if btf is None else BtfTypes(btf)

    @property
    def language(self) -> Language:
        """A kernel's code is C's."""
        return C

    @property
    def go(self) -> None:
        """A kernel is not written in Go."""

    # -- names ------------------------------------------------------------------------------

    def variable(self, name: str, scope: str = "") -> TypedValue | None:
        """A parameter, a function, a constant, or a symbol whose type is not known."""
        if scope:
            return None
        if (found := self.local(name)) is not None:
            return found
        types = self._types
        address = self._boot.opened.image.names.find(name)
        if types is not None and address is not None:
            function = types.function(name)
            if function is not None:
                return self._at(function.type, address)
        if types is not None and (constant := types.enumerator(name)) is not None:
            return made(constant[0], constant[1], self.order)
        address = self.linked(name)
        if address is None:
            return None
        return TypedValue(_UNKNOWN_DATA, lambda: b"", MemoryPlace(address))

    def local(self, name: str) -> TypedValue | None:
        """A parameter of the function at whose first instruction the machine stands."""
        types, boot = self._types, self._boot
        pc = boot.machine.pc
        bounds = boot.opened.names.bounds(pc)
        if types is None or bounds is None:
            return None
        function = types.function(bounds[0])
        names = [one.name for one in function.parameters] if function is not None else []
        if function is None or name not in names:
            return None
        at = names.index(name)
        kind = function.parameters[at].type
        convention = boot.opened.arch.abi.calls
        if convention is None or pc - bounds[1] not in _IN_FRONT:
            return self._lost(kind)
        kinds = [one.type for one in function.parameters]
        where = entry_locations(convention, kinds, function.returns, _C)[at]
        return self._located(kind, where)

    def _located(self, kind: CType, where: VariableLocation) -> TypedValue:
        """A parameter at its place at a function's entry."""
        size = kind.size or 0
        if where.where is Where.REGISTER:
            raw = self._held(where.register)[:size]
            return TypedValue(kind, lambda: raw)
        if where.where is Where.MEMORY and where.term.register is not None:
            begin = int.from_bytes(self._held(where.term.register), "little")
            if not where.term.derefs:
                return self._at(kind, begin + where.term.offset)
        parts = [one for _, one in where.pieces]
        if where.where is Where.PIECES and all(one.where is Where.REGISTER for one in parts):
            pieces = [self._held(one.register)[:count] for count, one in where.pieces]
            return TypedValue(kind, lambda: b"".join(pieces)[:size])
        return self._lost(kind)

    def _held(self, number: int) -> bytes:
        """The bytes of a register by its DWARF number."""
        registers = self._boot.opened.arch.registers
        one = next(one for one in registers if one.dwarf == number)
        value = self._boot.machine.register(one.name) & (1 << one.bits) - 1
        return value.to_bytes(one.bits // 8, "little")

    def _lost(self, kind: CType) -> TypedValue:
        return TypedValue(kind, lambda: b"", missing="<optimized out>")

    def _at(self, kind: CType, address: int) -> TypedValue:
        size = kind.size or 0
        return TypedValue(kind, lambda: self.read(address, size), MemoryPlace(address))

    def returned(self, function: str) -> TypedValue | None:
        """The value that a function has just returned; None for none, and where it is not known.

        Args:
            function: its name.
        """
        found = self._types.function(function) if self._types is not None else None
        kind = found.returns if found is not None else None
        if kind is None or kind.kind in (TypeKind.VOID, TypeKind.RECORD, TypeKind.FLOAT):
            return None
        size = kind.size or 0
        if not 0 < size <= self.pointer:
            return None
        register = self._boot.opened.arch.probes.retval
        raw = self._boot.machine.register(register).to_bytes(self.pointer, "little")[:size]
        return TypedValue(kind, lambda: raw)

    def functions(self, name: str, *, nearest: bool = True) -> list[TypedValue]:
        """The function of a name."""
        found = self.variable(name)
        return [] if found is None else [found]

    def is_namespace(self, name: str) -> bool:
        """Return False: C has none."""
        return False

    def linked(self, name: str) -> int | None:
        """The address of a symbol of the kernel or of a module."""
        found = self._boot.opened.image.names.find(name)
        modules = self._boot.machine.modules
        if found is None and modules is not None:
            functions = (module.find(name) for module in modules.loaded.values())
            found = next((one.start for one in functions if one is not None), None)
        return found

    def type(self, words: tuple[str, ...]) -> CType | None:
        """A type of the kernel's by name."""
        if self._types is None:
            return None
        if len(words) == 2 and words[0] in _KEYWORDS:
            return self._types.named(words[1], words[0])
        return self._types.named(" ".join(words))

    def symbol(self, address: int) -> str:
        """An address as "vfs_read+4"; "" where no symbol covers it."""
        bounds = self._boot.opened.names.bounds(address)
        if bounds is None:
            return ""
        offset = address - bounds[1]
        return f"{bounds[0]}+{offset}" if offset else bounds[0]

    def register(self, name: str) -> TypedValue | None:
        """A register of the processor."""
        boot = self._boot
        arch, machine = boot.opened.arch, boot.machine
        name = {"pc": arch.roles.pc, "sp": arch.roles.sp, "fp": "rbp"}.get(name, name)
        if not machine.has_register(name):
            return None
        bits = next((one.bits for one in arch.registers if one.name == name), 64)
        value = machine.register(name) & (1 << bits) - 1
        if name == arch.roles.pc:
            kind: CType = ct.pointer_to(ct.function_returning(ct.VOID), self.pointer)
        elif name in (arch.roles.sp, "rbp"):
            kind = ct.pointer_to(ct.VOID, self.pointer)
        else:
            kind = number_of(bits)
        raw = value.to_bytes(bits // 8, "little")
        return TypedValue(kind, lambda: raw, RegisterPlace(name))

    # -- the debugger's own -----------------------------------------------------------------

    def convenience(self, name: str) -> TypedValue | None:
        """A variable of the user's own."""
        return self._own.get(name)

    def set_convenience(self, name: str, value: TypedValue) -> None:
        """Give one a value."""
        self._own[name] = value

    def function(self, name: str) -> ConvenienceFunction | None:
        """A function of the debugger's own; `$lx_current()` is the task that runs.

        Source: scripts/gdb/linux/cpus.py of Linux.
        """
        return self._current if name == _CURRENT else FUNCTIONS.get(name)

    def _current(self, around: Surroundings, given: list[TypedValue]) -> TypedValue:
        kind = self.type(("struct", "task_struct"))
        address = self._boot.machine.task_address()
        if kind is None or not address:
            raise CommandError("the task that runs is not known")
        return self._at(kind, address)

    def history(self, number: int) -> TypedValue:
        """A value that was printed before."""
        at = number - 1 if number > 0 else len(self.values) - 1 + number
        if not 0 <= at < len(self.values):
            raise CommandError(f"History has not yet reached ${number}.")
        return self.values[at]

    def known(self, text: str) -> TypedValue:
        """The value of an expression whose type is known.

        Raises:
            CommandError: it means nothing, or BTF does not tell the type of a variable.
            GuestFaultError: memory cannot be read.
        """
        value = evaluate(text, self)
        if value.type.text == ct.UNKNOWN_DATA:
            raise CommandError(f"'{text.strip()}' has unknown type; cast it to its declared type")
        return value

    # -- memory -----------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """Memory."""
        found = self._boot.machine.read(address, size)
        if len(found) < size:
            raise GuestFaultError(address + len(found), "read")
        return found

    def store(self, place: Place, data: bytes) -> None:
        """Change memory or a register."""
        machine = self._boot.machine
        self._boot.need_changeable()
        match place:
            case MemoryPlace(address, 0, 0):
                try:
                    machine.write(address, data)
                except GuestFaultError:
                    raise CommandError(f"Cannot access memory at address {address:#x}") from None
            case RegisterPlace(name, 0):
                machine.set_register(name, int.from_bytes(data, "little"))
            case _:
                raise CommandError("Left operand of assignment is not an lvalue.")

    # -- what C alone, or a kernel, has not ---------------------------------------------------

    def expanded(self, text: str) -> str:
        """Return the expression: a kernel image tells no macros."""
        return text

    def afterwards(self, pages: Mapping[int, bytes]) -> "KernelScope":
        """Return these surroundings: nothing is called."""
        return self

    def at_entry(self, name: str) -> TypedValue:
        """A parameter at the function's first instruction, where the machine stands there."""
        found = self.local(name)
        if found is None:
            raise CommandError(f'No symbol "{name}" in current context.')
        return found

    def prefers_type(self, name: str) -> bool:
        """Return False: there is one file."""
        return False

    def type_of_vtable(self, address: int) -> CType | None:
        """Return None: tables of Rust are not looked for."""
        return None

    def construct(self, address: int, kind: CType, arguments: list[TypedValue]) -> NoReturn:
        """Refuse: C has no constructors."""
        raise CommandError("nothing is called in a booted kernel")

    def call(self, address: int, result: CType, arguments: list[TypedValue]) -> NoReturn:
        """Refuse to call a function: the kernel that runs would have to go on with it."""
        raise CommandError(
            "no function is called in a kernel that runs; without --boot functions are called"
        )
