"""Writes rules for frames as a .debug_frame section, for debuggers that read no other tables.

Source: DWARF 5, section 6.4. One CIE holds what most frames have in common; an FDE covers what
reaches from one place to another, and says each time the rules change.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.unwind.expression import signed, unsigned
from engine.unwind.rows import (
    AtCfa,
    AtRegister,
    CfaExpression,
    CfaRegister,
    CfiRow,
    Rule,
    SameValue,
    Undefined,
)

_CIE_ID: Final = 0xFFFFFFFF
_VERSION: Final = 4
_ADDRESS_SIZE: Final = 8
_ADVANCE_1, _ADVANCE_2, _ADVANCE_4 = 0x02, 0x03, 0x04
_UNDEFINED, _SAME_VALUE, _DEF_CFA_SF = 0x07, 0x08, 0x12
_DEF_CFA_EXPRESSION, _EXPRESSION, _OFFSET_SF = 0x0F, 0x10, 0x11
_BREG: Final = 0x70

Numbers = Mapping[str, int]
"""DWARF's numbers of registers."""


class FrameSection:
    """A .debug_frame section that grows."""

    def __init__(self, numbers: Numbers, return_address: str) -> None:
        """Begin with the CIEs: of usual frames, and of interrupted ones.

        Args:
            numbers: of the registers in rules.
            return_address: the register that holds the caller's place.
        """
        self._numbers = numbers
        self._data = bytearray()
        self._cies = {signal: self._cie(return_address, signal=signal) for signal in (False, True)}
        self._encoded: dict[tuple[int, int], tuple[bytes, CfiRow, CfiRow | None]] = {}

    def _cie(self, return_address: str, *, signal: bool) -> int:
        place = len(self._data)
        body = struct.pack("<IB", _CIE_ID, _VERSION) + (b"zS\0" if signal else b"\0")
        body += bytes((_ADDRESS_SIZE, 0, 1, 1))  # no segments; offsets and steps are bytes
        body += unsigned(self._numbers[return_address])
        body += unsigned(0) if signal else b""  # bytes of the augmentation
        self._put(body)
        return place

    def _put(self, body: bytes) -> None:
        body += bytes(-(len(body) + 4) % _ADDRESS_SIZE)
        self._data += struct.pack("<I", len(body)) + body

    def add(self, rows: Iterable[tuple[int, CfiRow | None]], end: int) -> None:
        """Add the rules of a stretch of code.

        Args:
            rows: address from which each row holds, ascending; None where nothing is known.
            end: of the last one.
        """
        for signal, start, stop, parts in _stretches(rows, end):
            program, at, before = bytearray(), start, None
            for address, row in parts:
                program += _advance(address - at) + self._rules(row, before)
                at, before = address, row
            body = struct.pack("<IQQ", self._cies[signal], start, stop - start)
            self._put(body + (unsigned(0) if signal else b"") + program)

    def _rules(self, row: CfiRow, before: CfiRow | None) -> bytes:
        """The instructions that make the rules of one row of those of the one before."""
        key = id(row), id(before)
        if key not in self._encoded:
            known = dict(before.rules) if before is not None else {}
            rules = {name: rule for name, rule in row.rules.items() if name in self._numbers}
            code = bytearray()
            if before is None or before.cfa != row.cfa:
                code += self._cfa(row.cfa)
            for name, rule in rules.items():
                if known.pop(name, None) != rule:
                    code += self._rule(name, rule)
            for name in known.keys() & self._numbers.keys():
                code += bytes((_SAME_VALUE,)) + unsigned(self._numbers[name])
            self._encoded[key] = bytes(code), row, before  # their ids are theirs alone
        return self._encoded[key][0]

    def _cfa(self, cfa: object) -> bytes:
        if isinstance(cfa, CfaRegister):
            number = unsigned(self._numbers[cfa.register])
            return bytes((_DEF_CFA_SF,)) + number + signed(cfa.offset)
        assert isinstance(cfa, CfaExpression), "tables of kernels have no other"
        return bytes((_DEF_CFA_EXPRESSION,)) + unsigned(len(cfa.code)) + cfa.code

    def _rule(self, name: str, rule: Rule) -> bytes:
        number = unsigned(self._numbers[name])
        match rule:
            case Undefined():
                return bytes((_UNDEFINED,)) + number
            case SameValue():
                return bytes((_SAME_VALUE,)) + number
            case AtCfa():
                return bytes((_OFFSET_SF,)) + number + signed(rule.offset)
            case AtRegister():
                code = bytes((_BREG + self._numbers[rule.register],)) + signed(rule.offset)
                return bytes((_EXPRESSION,)) + number + unsigned(len(code)) + code
        raise AssertionError("tables of kernels have no other rules")

    def data(self) -> bytes:
        """The section so far."""
        return bytes(self._data)


def _stretches(
    rows: Iterable[tuple[int, CfiRow | None]], end: int
) -> Iterator[tuple[bool, int, int, list[tuple[int, CfiRow]]]]:
    """Rows that one FDE can hold: without a gap, and all of interrupted frames or none."""
    parts: list[tuple[int, CfiRow]] = []
    for address, row in rows:
        if parts and (row is None or row.signal_frame != parts[0][1].signal_frame):
            yield parts[0][1].signal_frame, parts[0][0], address, parts
            parts = []
        if row is not None and not (parts and parts[-1][1] == row):
            parts.append((address, row))
    if parts:
        yield parts[0][1].signal_frame, parts[0][0], end, parts


def _advance(distance: int) -> bytes:
    if not distance:
        return b""
    if distance < 1 << 6:
        return bytes((0x40 | distance,))
    for code, size in ((_ADVANCE_1, 1), (_ADVANCE_2, 2), (_ADVANCE_4, 4)):
        if distance < 1 << 8 * size:
            return bytes((code,)) + distance.to_bytes(size, "little")
    raise AssertionError("code has less than 4 GB")
