"""Call frame instructions to rows: DWARF 5, section 6.4.2, with the extensions of GNU and Arm.

The walk stops at damage: the rows before it are kept, the function's rest has none.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from engine.image.cfi import Fde
from engine.image.frames import FrameParser
from engine.image.reader import DamagedError, Reader
from engine.unwind.rows import (
    AtCfa,
    AtExpression,
    CfaExpression,
    CfaPlus,
    CfaRegister,
    CfiRow,
    InRegister,
    Rule,
    SameValue,
    Undefined,
    ValueOfExpression,
)

_ROWS: Final = 100_000
_NOWHERE: Final = CfaRegister("", 0)


class _RowState(Struct):
    """A row in the making."""

    cfa: CfaRegister | CfaExpression = _NOWHERE
    rules: dict[int, Rule] = field(default_factory=dict)
    signed: bool = False

    def copy(self) -> "_RowState":
        return _RowState(self.cfa, dict(self.rules), self.signed)


def rows(
    fde: Fde, names: Mapping[int, str], bits: int, order: str
) -> tuple[list[int], list[CfiRow | None]]:
    """All rows of a function.

    Args:
        fde: its entry.
        names: DWARF number to register name; other columns are left out.
        bits: of an address.
        order: "<" or ">".

    Returns:
        The link addresses where rows begin, ascending, and the rows; None behind damage.
    """
    walk = _InstructionWalk(fde, names, FrameParser(bits, order))
    try:
        walk.run(fde.cie.instructions, 0, initial=True)
        walk.initial = walk.state.copy()
        walk.run(fde.instructions, fde.instructions_address, initial=False)
    except DamagedError:
        walk.close(None)
    else:
        walk.close(walk.row())
    return walk.starts, walk.found


class _InstructionWalk:
    def __init__(self, fde: Fde, names: Mapping[int, str], parser: FrameParser) -> None:
        self.fde, self.names, self.parser = fde, names, parser
        self.state = _RowState()
        self.initial = _RowState()
        self.saved: list[_RowState] = []
        self.at = fde.start
        self.starts: list[int] = []
        self.found: list[CfiRow | None] = []
        self._cache: CfiRow | None = None

    def close(self, row: CfiRow | None) -> None:
        """End the row that began at the present address."""
        if self.starts and self.starts[-1] == self.at:
            self.found[-1] = row
        else:
            self.starts.append(self.at)
            self.found.append(row)
        if len(self.starts) > _ROWS:
            raise DamagedError("too many rows")

    def row(self) -> CfiRow:
        """The present state."""
        cie = self.fde.cie
        state = self.state
        return CfiRow(
            cfa=state.cfa,
            rules={
                self.names[number]: rule
                for number, rule in state.rules.items()
                if number in self.names
            },
            return_register=self.names.get(cie.return_register, ""),
            signed=state.signed,
            signal_frame=cie.signal_frame,
        )

    def advance(self, address: int) -> None:
        """Go on to the row that begins at an address."""
        if address > self.at:
            self.close(self.row())
            self.at = address

    def run(self, code: bytes, address: int, *, initial: bool) -> None:
        """Carry instructions out; `address` is their own, for pc-relative operands."""
        cie = self.fde.cie
        reader = Reader(code, 0, len(code), self.parser.order)
        while reader.place < reader.end:
            op = reader.u8()
            high, low = op & 0xC0, op & 0x3F
            if high == 0x40:
                self.advance(self.at + low * cie.code_alignment)
            elif high == 0x80:
                self.state.rules[low] = AtCfa(reader.uleb() * cie.data_alignment)
            elif high == 0xC0:
                self.restore(low, initial)
            elif op in (0x02, 0x03, 0x04):  # advance_loc1, 2, 4
                self.advance(self.at + reader.uint(1 << op - 2) * cie.code_alignment)
            elif op == 0x01:  # set_loc
                self.advance(self.parser.pointer(reader, cie.fde_encoding, address, None))
            elif op == 0x06:
                self.restore(reader.uleb(), initial)
            elif op == 0x0A:
                self.saved.append(self.state.copy())
            elif op == 0x0B:
                if not self.saved:
                    raise DamagedError("restore_state without a state")
                self.state = self.saved.pop()
            elif op in (0x2C, 0x2D):  # AARCH64_negate_ra_state_with_pc, .._state
                self.state.signed = not self.state.signed
            elif op == 0x2E:  # GNU_args_size
                reader.uleb()
            elif op:
                self.rule(op, reader, cie.data_alignment)

    def restore(self, number: int, initial: bool) -> None:
        """Go back to the CIE's rule."""
        rule = None if initial else self.initial.rules.get(number)
        if rule is None:
            self.state.rules.pop(number, None)
        else:
            self.state.rules[number] = rule

    def rule(self, op: int, reader: Reader, factor: int) -> None:
        """Instructions that define the CFA or a register's rule."""
        if 0x0C <= op <= 0x0F or op in (0x12, 0x13):
            self.state.cfa = self._cfa(op, reader, factor)
            return
        number = reader.uleb()
        rule: Rule
        if op == 0x05:  # offset_extended
            rule = AtCfa(reader.uleb() * factor)
        elif op == 0x07:
            rule = Undefined()
        elif op == 0x08:
            rule = SameValue()
        elif op == 0x09:
            rule = InRegister(self._name(reader.uleb()))
        elif op == 0x10:
            rule = AtExpression(reader.block(reader.uleb()))
        elif op == 0x11:  # offset_extended_sf
            rule = AtCfa(reader.sleb() * factor)
        elif op == 0x14:
            rule = CfaPlus(reader.uleb() * factor)
        elif op == 0x15:
            rule = CfaPlus(reader.sleb() * factor)
        elif op == 0x16:
            rule = ValueOfExpression(reader.block(reader.uleb()))
        elif op == 0x2F:  # GNU_negative_offset_extended
            rule = AtCfa(-reader.uleb() * factor)
        else:
            raise DamagedError(f"call frame instruction {op:#x}")
        self.state.rules[number] = rule

    def _cfa(self, op: int, reader: Reader, factor: int) -> CfaRegister | CfaExpression:
        if op == 0x0F:
            return CfaExpression(reader.block(reader.uleb()))
        if op in (0x0C, 0x12):  # def_cfa, def_cfa_sf
            name = self._name(reader.uleb())
            return CfaRegister(name, reader.uleb() if op == 0x0C else reader.sleb() * factor)
        before = self.state.cfa
        if not isinstance(before, CfaRegister):
            raise DamagedError("a change of a CFA that is an expression")
        if op == 0x0D:  # def_cfa_register
            return CfaRegister(self._name(reader.uleb()), before.offset)
        offset = reader.uleb() if op == 0x0E else reader.sleb() * factor
        return CfaRegister(before.register, offset)

    def _name(self, number: int) -> str:
        name = self.names.get(number)
        if name is None:
            raise DamagedError(f"register {number}")
        return name
