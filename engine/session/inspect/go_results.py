"""Results of functions of Go that have just returned.

They are where the compiler's own convention puts them (go/src/cmd/compile/abi-internal.md): as
many as fit in registers, the others on the stack behind the arguments that are there. Code in
assembler, and that of compilers before Go 1.17, has all of them on the stack.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.arch.abi import GoRegisters
from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.image.gotypes import GoKind
from engine.language.go_types import kind_of
from engine.language.value_types import CType
from engine.language.values import MemoryPlace, Order, TypedValue

_WORDS: Final = {
    GoKind.STRING: 2,
    GoKind.INTERFACE: 2,
    GoKind.SLICE: 3,
}


class _HeldPart(Struct, frozen=True):
    """A part of a value that a register holds: its first byte, its size, and which kind."""

    offset: int
    size: int
    is_real: bool = False


class GoResults:
    """Finds the results of one function."""

    def __init__(
        self,
        registers: GoRegisters | None,
        parameters: Sequence[CType],
        results: Sequence[CType],
        *,
        in_registers: bool,
    ) -> None:
        """Assign them.

        Args:
            registers: of the processor's architecture; None where Go does not run.
            parameters: types of the function's arguments, a method's receiver among them.
            results: types of its results.
            in_registers: the convention has registers.

        Raises:
            CommandError: Go does not run on the architecture.
        """
        if registers is None:
            raise CommandError("where functions of Go return values is not known here")
        banks = (registers.general, registers.real) if in_registers else ((), ())
        stack = registers.room
        for kind in self._on_stack(banks, parameters):
            stack = _aligned(stack, kind) + (kind.size or 0)
        stack = -(-stack // 8) * 8
        self._places: list[tuple[CType, tuple[tuple[str, _HeldPart], ...] | int]] = []
        left = [list(bank) for bank in banks]
        for kind in results:
            found = _assigned(left, kind)
            if found is None:
                stack = _aligned(stack, kind)
                self._places.append((kind, stack))
                stack += kind.size or 0
            else:
                self._places.append((kind, found))

    @staticmethod
    def _on_stack(banks: Sequence[Sequence[str]], kinds: Sequence[CType]) -> list[CType]:
        left = [list(bank) for bank in banks]
        return [kind for kind in kinds if _assigned(left, kind) is None]

    def values(
        self,
        register: Callable[[str], int],
        read: Callable[[int, int], bytes],
        stack: int,
        order: Order,
    ) -> list[TypedValue]:
        """The results, in their order.

        Args:
            register: a register by name, as it is behind the return.
            read: (address, size) to bytes.
            stack: the stack pointer behind the return.
            order: of bytes.
        """
        found: list[TypedValue] = []
        for kind, place in self._places:
            if isinstance(place, int):
                raw = read(stack + place, kind.size or 0)
                found.append(
                    TypedValue(kind, raw.__bytes__, MemoryPlace(stack + place), order=order)
                )
                continue
            data = bytearray(kind.size or 0)
            for name, part in place:
                cut = register(name) & (1 << 8 * part.size) - 1
                data[part.offset : part.offset + part.size] = cut.to_bytes(part.size, order)
            found.append(TypedValue(kind, bytes(data).__bytes__, order=order))
        return found


def _aligned(stack: int, kind: CType) -> int:
    """The next place for a value of a type."""
    step = _alignment(kind)
    return -(-stack // step) * step


def _alignment(kind: CType) -> int:
    bare = kind.resolved
    if kind_of(kind) == GoKind.ARRAY:
        return _alignment(bare.element)
    if kind_of(kind) == GoKind.STRUCT:
        return max((_alignment(member.type) for member in bare.members), default=1)
    if bare.kind is TypeKind.COMPLEX:
        return (kind.size or 2) // 2
    return min(max(kind.size or 1, 1), 8)


def _assigned(left: list[list[str]], kind: CType) -> tuple[tuple[str, _HeldPart], ...] | None:
    """The registers of a value, which are then taken; None if it does not fit in them."""
    parts = _parts(kind, 0)
    if parts is None:
        return None
    counts = [sum(part.is_real == real for part in parts) for real in (False, True)]
    if any(count > len(bank) for count, bank in zip(counts, left, strict=True)):
        return None
    if not any(left) and not parts:
        return None
    return tuple((left[part.is_real].pop(0), part) for part in parts)


def _parts(kind: CType, offset: int) -> list[_HeldPart] | None:
    """The parts of a value that registers hold; None for one that is in memory."""
    bare, size = kind.resolved, kind.size or 0
    match kind_of(kind):
        case GoKind.ARRAY:
            if bare.count == 1:
                return _parts(bare.element, offset)
            return None if bare.count else []
        case GoKind.STRUCT:
            found: list[_HeldPart] = []
            for member in bare.members:
                inner = _parts(member.type, offset + member.offset)
                if inner is None:
                    return None
                found += inner
            return found
        case GoKind.STRING | GoKind.INTERFACE | GoKind.SLICE as several:
            return [_HeldPart(offset + 8 * number, 8) for number in range(_WORDS[several])]
        case GoKind.COMPLEX64 | GoKind.COMPLEX128:
            half = size // 2
            return [_HeldPart(offset, half, True), _HeldPart(offset + half, half, True)]
        case GoKind.FLOAT32 | GoKind.FLOAT64:
            return [_HeldPart(offset, size, True)]
    return [_HeldPart(offset, size)]
