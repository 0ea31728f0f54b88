"""Arguments of a call in the registers and on the stack, by the processor's ABI."""

from collections.abc import Sequence
from typing import cast

from engine.arch.abivalues import Bank
from engine.arch.base import Arch
from engine.errors import CommandError
from engine.image.datatypes import DataType, TypeKind
from engine.image.rust_passing import RUST, rust_parts
from engine.image.valueshapes import UnknownShapeError, shape_of
from engine.language.values import Order, TypedValue
from engine.session.guest.entering import CallArguments, CopiedObject


def passed_arguments(
    arch: Arch,
    values: Sequence[TypedValue],
    language: int = 0,
    room: int = 0,
    *,
    makes: bool = False,
) -> CallArguments:
    """The arguments of a call.

    Args:
        arch: the processor.
        values: each in the type that the function takes; an array without a place is put into
            memory, and its address is passed.
        language: DW_LANG_* of the code that calls.
        room: bytes that the caller gives for the result; 0 for none.
        makes: the result is the object that a constructor makes.

    Raises:
        CommandError: one is not passed here.
    """
    passed = _Passed(arch, is_rust=language == RUST)
    for value in values:
        passed.add(value)
    whole, real, stack = tuple(passed.whole), tuple(passed.real), tuple(passed.stack)
    return CallArguments(whole, real, stack, room, makes)


class _Passed:
    """Arguments so far."""

    def __init__(self, arch: Arch, *, is_rust: bool) -> None:
        self._arch, self._is_rust = arch, is_rust
        self.whole: list[int | bytes | CopiedObject] = []
        self.real: list[int] = []
        self.stack: list[bytes] = []

    def add(self, value: TypedValue) -> None:
        """Pass one more."""
        kind = value.type.resolved
        if kind.kind is TypeKind.ARRAY:
            self.whole.append(value.raw)
        elif kind.kind is TypeKind.FLOAT and kind.size in (4, 8):
            self._add_real(value.raw)
        elif kind.kind in (TypeKind.RECORD, TypeKind.COMPLEX):
            self._add_record(value)
        elif kind.kind is TypeKind.FLOAT:
            raise CommandError(f"A value of type {value.type.text} is not passed to functions.")
        else:
            self.whole.append(value.number)

    def _add_real(self, raw: bytes) -> None:
        order: Order = "little" if self._arch.byteorder == "little" else "big"
        bits = int.from_bytes(raw, order)
        # A shorter number is the low half of one that is none (RISC-V, NaN boxing).
        self.real.append(bits if len(raw) > 4 else bits | 0xFFFFFFFF << 32)

    def _add_record(self, value: TypedValue) -> None:
        calls, divide = self._arch.abi.calls, self._arch.abi.divide
        refusal = f"A value of type {value.type.text} is not passed to functions."
        if calls is None or divide is None or self._arch.byteorder != "little":
            raise CommandError(refusal)
        try:
            shape = shape_of(value.type)
            of_rust = rust_parts(cast("DataType", value.type.resolved)) if self._is_rust else None
        except UnknownShapeError as error:
            raise CommandError(str(error)) from error
        raw = value.raw
        whole: int | bytes | CopiedObject = raw
        if value.address is not None and not value.pages:
            whole = value.address
            if value.copier:
                whole = CopiedObject(value.address, len(raw), *value.copier)
        by_reference = shape.by_reference or calls.by_reference or self._is_rust
        parts = of_rust if self._is_rust else None if shape.by_reference else divide(shape)
        if parts is None:
            if by_reference:
                self.whole.append(whole)
            else:
                self.stack.append(raw)
            return
        vectors = sum(part.bank is Bank.FLOAT for part in parts)
        taken = len(self.whole) + len(parts) - vectors
        if taken > len(calls.general) or len(self.real) + vectors > len(calls.vectors):
            raise CommandError(refusal)  # none is passed half in registers
        for part in parts:
            piece = raw[part.offset : part.offset + part.size]
            if part.bank is Bank.FLOAT:
                self._add_real(piece)
            elif part.bank is Bank.GENERAL:
                self.whole.append(int.from_bytes(piece, "little"))
            else:
                raise CommandError(refusal)
