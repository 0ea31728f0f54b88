"""Values at the places that debug information tells: memory, registers, several pieces."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from engine.arch.base import Arch
from engine.image.datatypes import TypeKind
from engine.image.expressions import Term, VariableLocation, Where
from engine.language import value_types as ct
from engine.language.value_types import CType
from engine.language.values import MemoryPlace, Order, RegisterPlace, TypedValue
from engine.session.inspect.frame_registers import FrameRegisters

OPTIMIZED: Final = "<optimized out>"
ReadBytes = Callable[[int, int], bytes]
"""Reads memory: an address and a size."""


class VariablePlaces:
    """Finds values in one frame by their places."""

    def __init__(
        self, arch: Arch, registers: FrameRegisters, read: ReadBytes, peek: ReadBytes
    ) -> None:
        """Take a frame.

        Args:
            arch: the processor's.
            registers: of the frame.
            read: reads memory that a value is in.
            peek: reads memory that says where a value is.
        """
        self._arch, self._registers, self._read, self._peek = arch, registers, read, peek
        self._order: Order = "little" if arch.byteorder == "little" else "big"
        self._names = {one.dwarf: one.name for one in arch.registers if one.dwarf is not None}
        calls, results = arch.abi.calls, arch.abi.results
        own_format = calls is not None and calls.own_format and results is not None
        self._decode = results().decode if own_format and results is not None else None

    def register_name(self, number: int) -> str:
        """A register by its DWARF number; "" for none."""
        return self._names.get(number, "")

    def _is_float(self, number: int) -> bool:
        one = next((one for one in self._arch.registers if one.dwarf == number), None)
        return one is not None and one.group == "float"

    def lost(self, kind: CType, why: str) -> TypedValue:
        """A value that is not there; `why` is shown in its place."""
        return TypedValue(kind, lambda: b"", missing=why, order=self._order)

    def located(self, kind: CType, where: VariableLocation, bias: int) -> TypedValue:
        """A value of a type at a place.

        Args:
            kind: its type.
            where: its place.
            bias: what is added to link addresses of its file.
        """
        size, order = kind.size or 0, self._order
        match where.where:
            case Where.MEMORY:
                address = self._term(where.term, bias)
                if address is None:
                    return self.lost(kind, OPTIMIZED)
                return TypedValue(
                    kind, lambda: self._read(address, size), MemoryPlace(address), order=order
                )
            case Where.REGISTER:
                name = self.register_name(where.register)
                number = self._registers.held(name) if name else None
                self._registers.note(name)
                if number is None:
                    return self.lost(kind, "<not saved>" if name else OPTIMIZED)
                if self._decode is not None and self._is_float(where.register):
                    if size not in (4, 8, 16):
                        return self.lost(kind, OPTIMIZED)
                    stored = self._decode(number, size)
                    return TypedValue(kind, lambda: stored, order=order)
                raw = number.to_bytes(max(size, 64), order)
                cut = raw[:size] if order == "little" else raw[-size:]
                return TypedValue(kind, lambda: cut, RegisterPlace(name), order=order)
            case Where.VALUE:
                number = self._term(where.term, bias)
                if number is None or size > 8:
                    return self.lost(kind, OPTIMIZED)
                raw = (number & (1 << 64) - 1).to_bytes(8, order)
                return TypedValue(kind, lambda: raw[:size], order=order)
            case Where.PIECES:
                return self._pieces(kind, where, bias)
        return self.lost(kind, OPTIMIZED)

    def _pieces(self, kind: CType, where: VariableLocation, bias: int) -> TypedValue:
        """A value whose parts are in several places."""
        found: list[tuple[int, bytes]] = []
        at = 0
        for size, piece in where.pieces:
            held = ct.UNSIGNED_LONG if size <= 8 else ct.number(TypeKind.UNSIGNED, size, "")
            part = self.located(held, piece, bias)
            if not part.missing:
                found.append((at, part.raw[:size].ljust(size, b"\0")))
            at += size
        if len(found) < len(where.pieces):
            return replace(self.lost(kind, OPTIMIZED), pieces=tuple(found))
        # Go's compiler (1.19) tells of more pieces than the value has bytes.
        raw = b"".join(piece for _, piece in found)[: kind.size]
        return TypedValue(kind, lambda: raw, order=self._order)

    def _term(self, term: Term, bias: int) -> int | None:
        value: int | None = bias if term.is_link else 0
        if term.register is not None:
            value = self._registers.held(self.register_name(term.register))
        mask = (1 << self._arch.bits) - 1
        for offset in term.derefs:
            if value is None:
                return None
            raw = self._peek((value + offset) & mask, self._arch.bits // 8)
            value = int.from_bytes(raw, self._order)
        return None if value is None else (value + term.offset) & mask
