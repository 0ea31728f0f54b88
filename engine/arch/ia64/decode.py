"""Bundles to instructions."""

from functools import lru_cache

from msgspec import Struct

from engine.arch.ia64.bundle import SIZE, Bundle, unpack
from engine.arch.ia64.opcodes import Form, find
from engine.arch.ia64.operands import DISPLACEMENTS, IMMEDIATES, TARGETS, field

_MASK = 0xFFFFFFFFFFFFFFFF


class SlotInsn(Struct, frozen=True):
    """One instruction of a bundle.

    Attributes:
        form: its line of the table; None where the encoding is reserved.
        unit: kind of slot, "X" for both slots of a long one.
        word: the 41 bits (of the X slot).
        extra: the 41 bits of the L slot, else 0.
        slot: its number; 1 for a long one.
    """

    form: Form | None
    unit: str
    word: int
    extra: int
    slot: int

    @property
    def qp(self) -> int:
        """The qualifying predicate; 0 where the form has none."""
        if self.form is not None and not self.form.predicated:
            return 0
        return self.word & 63

    @property
    def format(self) -> str:
        """The format's name, "" for a reserved encoding."""
        return self.form.format if self.form is not None else ""

    def field(self, name: str) -> int:
        """A field of the word, unsigned."""
        return field(name, self.word)

    def immediate(self, name: str) -> int:
        """An immediate operand as the processor uses it."""
        return IMMEDIATES[name].read(self.word, self.extra)

    @property
    def displaced(self) -> str:
        """The operand that makes it IP-relative, "" if there is none; a hint's is not meant."""
        if self.form is None or self.form.format in ("B6", "B7"):
            return ""
        return next((name for name in TARGETS if name in self.form.operands), "")

    def target(self, address: int) -> int | None:
        """Target of an IP-relative branch or check, from the bundle's address."""
        name = self.displaced
        if not name:
            return None
        where = (address & ~15) + DISPLACEMENTS[name].read(self.word, self.extra)
        return where & _MASK


@lru_cache(maxsize=1 << 16)
def decode_slot(unit: str, word: int, extra: int = 0, slot: int = 0) -> SlotInsn:
    """The instruction in a slot's word."""
    return SlotInsn(find(unit, word), unit, word, extra, slot)


def decode_bundle(bundle: Bundle) -> tuple[SlotInsn, ...]:
    """The instructions of a bundle in order; none if its template is reserved."""
    units = bundle.units
    if not units:
        return ()
    first, second, third = bundle.slots
    if bundle.long:
        return (decode_slot("M", first), decode_slot("X", third, second, 1))
    return tuple(
        decode_slot(unit, word, 0, slot)
        for slot, (unit, word) in enumerate(zip(units, bundle.slots, strict=True))
    )


@lru_cache(maxsize=1 << 14)
def decode_raw(raw: bytes) -> tuple[Bundle, tuple[SlotInsn | None, ...]]:
    """The bundle in 16 bytes, and the instruction that begins in each slot, None for none."""
    bundle = unpack(raw)
    found = {insn.slot: insn for insn in decode_bundle(bundle)}
    return bundle, (found.get(0), found.get(1), found.get(2), None)


def decode_at(raw: bytes, slot: int) -> SlotInsn | None:
    """The instruction in one slot of 16 bytes; None where none begins."""
    return decode_raw(bytes(raw[:SIZE]))[1][slot]
