"""The values of parameters and local variables in the frames of a backtrace, as DWARF places them.

What a frame's registers were is the unwinder's knowledge: a variable that lives in a register
which no unwind rule has brought back is said to be unknown, never guessed.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from engine.arch.base import Arch
from engine.errors import GuestFaultError, ImageError
from engine.escaping import escaped
from engine.guest.modules import Module
from engine.image.datatypes import DataType, TypeKind
from engine.image.elf import ElfImage
from engine.image.expressions import Term, VariableLocation, Where
from engine.image.reader import DamagedError
from engine.image.scopes import Variable
from engine.image.variables import Variables
from engine.session.inspect.backtrace import NamedFrame
from engine.session.protocol.views import VariableView

FRAMES: Final = 8
"""Frames whose variables are read, the innermost ones: a deep recursion has the same in each."""
_MOST: Final = 64
"""Variables of a frame that are read."""
_TEXT: Final = 48
"""Bytes of a string that are shown."""
_CHARS: Final = frozenset((TypeKind.CHAR, TypeKind.UNSIGNED_CHAR))
_FLOATS: Final = {4: "f", 8: "d"}

Read = Callable[[int, int], bytes]
"""(address, size) to the guest's bytes.

Raises:
    GuestFaultError: they cannot be read.
"""


class _UnknownError(Exception):
    """A value cannot be told; the text says why."""


class FrameVariables:
    """Reads the variables of a guest's frames; keeps what was read of the debug information."""

    def __init__(self, arch: Arch, module_at: Callable[[int], Module | None], read: Read) -> None:
        """Nothing is read yet.

        Args:
            arch: of the guest.
            module_at: the file around a guest address.
            read: the guest's memory.
        """
        self._arch = arch
        self._module_at = module_at
        self._read = read
        self._order: Literal["little", "big"] = "little" if arch.byteorder == "little" else "big"
        self._names = {item.dwarf: item.name for item in arch.registers if item.dwarf is not None}
        self._known: dict[int, tuple[ElfImage, Variables]] = {}

    def of_frames(self, frames: Sequence[NamedFrame]) -> list[tuple[VariableView, ...]]:
        """The variables of each frame, parameters first; of an inlined one its own."""
        found: list[tuple[VariableView, ...]] = []
        exact = True
        for number, frame in enumerate(frames):
            if number >= FRAMES or frame.source == "syscall" or frame.signal:
                found.append(())
            else:
                innermost = not number or not frames[number - 1].inlined
                found.append(tuple(self._of(frame, exact, innermost)))
            # Where a call returns to, or a signal came, is another place than where it was made.
            exact = frame.signal or frame.source == "syscall" or (frame.inlined and exact)
        return found

    def _of(self, frame: NamedFrame, exact: bool, innermost: bool) -> Iterator[VariableView]:
        place = frame.pc if exact else frame.pc - 1
        module = self._module_at(place)
        if module is None:
            return
        try:
            scope = self._variables(module).scope(place - module.bias)
        except (ImageError, DamagedError):
            return
        if scope is None:
            return
        shown: Iterable[Variable]
        if frame.inlined:  # all that are inlined here are told together, in the innermost frame
            shown = [item for item in scope.visible if item.is_inlined] if innermost else []
        else:
            own = [item for item in scope.locals if not item.is_inlined]
            shown = dict.fromkeys((*scope.parameters, *own))
        for variable, _ in zip(shown, range(_MOST), strict=False):
            if variable.is_declaration:
                continue
            yield VariableView(
                variable.name,
                self._text(variable, frame.registers, module.bias),
                variable.type_text,
                variable.is_parameter,
            )

    def _variables(self, module: Module) -> Variables:
        known = self._known.get(id(module.image))
        if known is None:
            known = self._known[id(module.image)] = module.image, Variables(module.image)
        return known[1]

    def _text(self, variable: Variable, registers: Mapping[str, int], bias: int) -> str:
        """The value as people read it, or in <> why there is none."""
        try:
            return self._value(variable.type, variable.location, registers, bias)
        except _UnknownError as error:
            return f"<{error}>"
        except (ImageError, DamagedError):
            return "<the debug information is damaged>"
        except GuestFaultError as error:
            return f"<{error.address:#x} cannot be read>"

    def _value(
        self, kind: DataType, where: VariableLocation, registers: Mapping[str, int], bias: int
    ) -> str:
        if where.where is Where.NOWHERE:
            raise _UnknownError(where.why)
        size = kind.size
        if where.where is Where.MEMORY:
            address = self._term(where.term, registers, bias)
            if kind.kind is TypeKind.ARRAY and kind.element.kind in _CHARS:
                return self._string(address, min(size or _TEXT, _TEXT))
            if kind.kind in (TypeKind.RECORD, TypeKind.ARRAY) or not size or size > 8:
                return f"at {address:#x}"
            return self._scalar(kind, self._read(address, size))
        if not size or size > 8 or kind.kind in (TypeKind.RECORD, TypeKind.ARRAY):
            raise _UnknownError(f"in {'pieces' if where.pieces else 'registers'}")
        if where.where is Where.REGISTER:
            number = self._register(where.register, registers)
        elif where.where is Where.VALUE:
            number = self._term(where.term, registers, bias)
        else:
            raise _UnknownError("in pieces")
        number &= (1 << 64) - 1
        return self._scalar(kind, number.to_bytes(8, self._order)[:size])

    def _scalar(self, kind: DataType, raw: bytes) -> str:
        order = self._order
        number = int.from_bytes(raw, order, signed=kind.is_signed)
        match kind.kind:
            case TypeKind.POINTER | TypeKind.FUNCTION:
                text = ""
                if kind.kind is TypeKind.POINTER and number and kind.target.kind in _CHARS:
                    text = self._pointed(number)
                return f"{number:#x}{text}"
            case TypeKind.BOOL:
                return {0: "false", 1: "true"}.get(number, str(number))
            case TypeKind.CHAR | TypeKind.UNSIGNED_CHAR:
                return f"{number} {chr(number & 0xFF)!r}"
            case TypeKind.ENUM:
                names = {value: name for name, value in kind.enumerators}
                return names.get(number, str(number))
            case TypeKind.FLOAT if len(raw) in _FLOATS:
                mark = "<" if order == "little" else ">"
                return f"{struct.unpack(mark + _FLOATS[len(raw)], raw)[0]:g}"
        return str(number)

    def _pointed(self, address: int) -> str:
        try:
            return f" {self._string(address, _TEXT)}"
        except GuestFaultError:
            return ""

    def _string(self, address: int, most: int) -> str:
        """A string up to its NUL; it may end where the memory does."""
        raw = b""
        for at in range(address, address + most):
            try:
                byte = self._read(at, 1)
            except GuestFaultError:
                if not raw:
                    raise
                break
            if byte == b"\0":
                break
            raw += byte
        return '"' + escaped(raw, quoted=True) + '"' + ("..." if len(raw) == most else "")

    def _term(self, term: Term, registers: Mapping[str, int], bias: int) -> int:
        value = bias if term.is_link else 0
        if term.register is not None:
            value = self._register(term.register, registers)
        size = self._arch.bits // 8
        for offset in term.derefs:
            address = (value + offset) & (1 << self._arch.bits) - 1
            value = int.from_bytes(self._read(address, size), self._order)
        return (value + term.offset) & (1 << self._arch.bits) - 1

    def _register(self, number: int, registers: Mapping[str, int]) -> int:
        name = self._names.get(number)
        if name is None or name not in registers:
            raise _UnknownError(f"in {name or f'register {number}'}, not known in this frame")
        return registers[name]
