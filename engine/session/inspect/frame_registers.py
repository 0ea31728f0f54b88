"""The registers of a frame, with the types that gdb gives them."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from engine.arch.base import Register
from engine.errors import GuestFaultError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.register_types import mxcsr_text, number_of, vector_type
from engine.language.value_types import CType
from engine.language.values import Order, RegisterPlace, TypedValue
from engine.session.guest.session import Session
from engine.session.protocol.frames import GuestFrame

_IA64_EXTENDED: Final = 82
"""Bits of a floating-point register of IA-64."""
_CODE: Final = ct.pointer_to(ct.function_returning(ct.VOID))
_DATA: Final = ct.pointer_to(ct.VOID)


class Uses(Struct):
    """The pieces of memory and the registers that an expression has been read from.

    Attributes:
        memory: (address, size) of each piece, in the order of reading, each once.
        registers: by name; those that only say where something is are not among them.
        local: it depends on the frame: a variable of a function that lives with its call.
        this: it depends on the object that a method runs for.
    """

    memory: dict[tuple[int, int], None] = field(default_factory=dict)
    registers: dict[str, None] = field(default_factory=dict)
    local: bool = False
    this: bool = False


class FrameRegisters:
    """Finds the registers of one frame.

    Attributes:
        outlive: registers that a called function may change are taken to be as they are now.
        note: is told of each register that a value is read from.
    """

    def __init__(
        self,
        session: Session,
        frame: GuestFrame | None,
        number: int,
        note: Callable[[str], None],
        now: Callable[[str], int],
    ) -> None:
        """Take a frame.

        Args:
            session: the guest.
            frame: the frame; None for the processor's own registers.
            number: of the frame, 0 for the innermost.
            note: is told of each register that a value is read from.
            now: reads a register of the thread that the frame is of, as it is now.
        """
        self.outlive, self._now = False, now
        self._session, self._arch = session, session.arch
        self._frame, self._number, self.note = frame, number, note
        self._order: Order = "little" if session.arch.byteorder == "little" else "big"

    def typed(self, name: str) -> TypedValue | None:
        """A register, or a part of one, by gdb's names; None where there is none."""
        roles = self._arch.roles
        alias = {"pc": roles.pc, "sp": roles.sp, "fp": roles.fp}.get(name, name)
        for item in self._arch.registers:
            if item.name == alias or alias in item.aliases:
                return self._whole(item)
        part = self._arch.slices.get(name)
        return self._wide(name) if part is None else self._slice(*part)

    def all(self) -> Mapping[str, TypedValue]:
        """General registers and flags, by name."""
        found: dict[str, TypedValue] = {}
        for item in self._arch.registers:
            if item.group in ("general", "flags") or item.flags:
                try:
                    found[item.name] = self._whole(item)
                except GuestFaultError:
                    continue
        return found

    def held(self, name: str) -> int | None:
        """A register's value in this frame, None if nobody knows it."""
        frame = self._frame
        if frame is not None and name in frame.registers:
            return frame.registers[name]
        elsewhere = self._number or (frame is not None and frame.parked)
        kept = self.outlive or name in self._constant()
        if frame is not None and elsewhere and not kept:
            return None
        return self._now(name)

    def _constant(self) -> frozenset[str]:
        return frozenset(item.name for item in self._arch.registers if item.constant)

    def _slice(self, whole: str, start: int, size: int) -> TypedValue:
        """A part of a register: a number, as gdb has it, of one byte too."""
        number = self.held(whole)
        self.note(whole)
        kind = number_of(8 * size)
        if number is None:
            return TypedValue(kind, lambda: b"", missing="<not saved>")
        raw = (number >> 8 * start & (1 << 8 * size) - 1).to_bytes(size, self._order)
        return TypedValue(kind, lambda: raw, RegisterPlace(whole, start), order=self._order)

    def _wide(self, name: str) -> TypedValue | None:
        """A vector register that is kept in two halves: ymm0; None for no such register."""
        halves = [one for one in self._arch.registers if one.name in (f"x{name[1:]}", f"{name}h")]
        if name[:1] != "y" or len(halves) != 2:
            return None
        kind, numbers = vector_type(256), [self.held(one.name) for one in halves]
        for one in halves:
            self.note(one.name)
        low, high = numbers
        if low is None or high is None:
            return TypedValue(kind, lambda: b"", missing="<not saved>")
        raw = (low | high << 128).to_bytes(32, self._order)
        return TypedValue(kind, lambda: raw, order=self._order)

    def _whole(self, item: Register) -> TypedValue:
        size = -(-item.bits // 8)
        roles, number = self._arch.roles, self.held(item.name)
        self.note(item.name)
        kind: CType = number_of(item.bits)
        label = ""
        if item.name.startswith("xmm"):
            kind = vector_type(item.bits)
        elif item.bits == 80:
            kind, size = ct.number(TypeKind.FLOAT, 16, "builtin_type_i387_ext"), 16
        elif item.name == roles.pc:
            kind = _CODE
        elif item.name in (roles.sp, roles.fp):
            kind = _DATA
        if number is None:
            return TypedValue(kind, lambda: b"", missing="<not saved>")
        if item.bits == _IA64_EXTENDED and self._arch.abi.results is not None:
            kind = ct.number(TypeKind.FLOAT, 16, "builtin_type_ia64_ext")
            stored = self._arch.abi.results().decode(number, 16)
            return TypedValue(kind, lambda: stored, order=self._order)
        if item.flags:
            names = [name.upper() for bit, name in item.flags if number >> bit & 1]
            label = "[ " + "".join(f"{name} " for name in names) + "]"
            kind = ct.number(TypeKind.SIGNED, size, f"{self._register_set}_{item.name}")
        elif item.name == "mxcsr":
            kind = ct.number(TypeKind.SIGNED, size, f"{self._register_set}_{item.name}")
            label = mxcsr_text(number)
        raw = (number & (1 << item.bits) - 1).to_bytes(size, self._order)
        return TypedValue(
            kind, lambda: raw, RegisterPlace(item.name), order=self._order, label=label
        )

    @property
    def _register_set(self) -> str:
        """The architecture's name in those of gdb's types of flags."""
        return self._arch.flag_set or self._arch.name
