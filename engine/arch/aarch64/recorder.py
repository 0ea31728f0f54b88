"""The recorder of an AArch64 detour: code that writes a hit's row where the engine finds it.

x16 and x17 are free where a detour may be (`relocate.needs`): x16 is the base of the save area all
along, so that nothing is put on the stack. Flags are saved only where a filter compares; all else
is done by instructions that leave them alone. There are no checks for the end of the ring: behind
it nothing is mapped.
"""

import struct
from typing import Final

from engine.arch.aarch64.relocate import load_constant, word
from engine.arch.jump import (
    CURSOR,
    DetourPlaces,
    NotCompilableError,
    Part,
    Recorder,
    Recording,
)
from engine.arch.program import Compare, FetchArg, Kind, Operand, PredicateOp, RecordField, Source

_BASE, _VALUE = 16, 17
_OTHER, _ROW = 14, 15
_PIECE, _BITS, _END, _ONES, _START = 9, 10, 11, 12, 13
_ZERO: Final = 31
_SAVED: Final = {_OTHER: 8, _ROW: 16, _PIECE: 24, _BITS: 32, _END: 40, _ONES: 48, _START: 56}
_FLAGS: Final = CURSOR + 16
_STRING_PIECES: Final = 12
_ELEMENTS: Final = 128
_STRINGS: Final = 8
_UNSIGNED: Final = {
    Compare.EQ: 0,
    Compare.NE: 1,
    Compare.LT: 3,
    Compare.LE: 9,
    Compare.GT: 8,
    Compare.GE: 2,
    Compare.AND: 1,
}
_SIGNED: Final = {Compare.LT: 11, Compare.LE: 13, Compare.GT: 12, Compare.GE: 10}
_LOADS: Final = {1: 0x39400000, 2: 0x79400000, 4: 0xB9400000, 8: 0xF9400000}
_EXTEND: Final = {1: 0x93401C00, 2: 0x93403C00, 4: 0x93407C00}
_CUT: Final = {1: 0xD3401C00, 2: 0xD3403C00, 4: 0xD3407C00}


class Code:
    """Machine code with labels."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self._labels: dict[str, int] = {}
        self._uses: list[tuple[int, str]] = []

    def label(self, name: str) -> int:
        """The next instruction has this name; its offset."""
        self._labels[name] = len(self.words) * 4
        return len(self.words) * 4

    def at(self, name: str) -> int:
        """Offset of a label."""
        return self._labels[name]

    def add(self, *words: int) -> None:
        """Instructions."""
        self.words += words

    def constant(self, register: int, value: int) -> None:
        """A constant into a register."""
        code = load_constant(register, value & (1 << 64) - 1)
        self.words += struct.unpack(f"<{len(code) // 4}I", code)

    def branch(self, opcode: int, name: str) -> None:
        """A branch to a label: `b`, or one with 19 bits of distance."""
        self._uses.append((len(self.words), name))
        self.words.append(opcode)

    def load(self, register: int, base: int, offset: int, size: int = 8) -> None:
        """From [base+offset]; the offset is a multiple of the size, or small."""
        if not offset % size and 0 <= offset < 4096 * size:
            self.add(_LOADS[size] | offset // size << 10 | base << 5 | register)
        elif -256 <= offset < 256:
            form = {1: 0x38400000, 2: 0x78400000, 4: 0xB8400000, 8: 0xF8400000}[size]
            self.add(form | (offset & 0x1FF) << 12 | base << 5 | register)
        else:
            self.constant(_OTHER, offset)
            self.add(0x8B000000 | _OTHER << 16 | base << 5 | _VALUE)
            self.load(register, _VALUE, 0, size)

    def store(self, register: int, base: int, offset: int) -> None:
        """To [base+offset], a multiple of 8 up to 32,760."""
        if not 0 <= offset < 4096 * 8:
            raise NotCompilableError("too long a row")
        self.add(0xF9000000 | offset // 8 << 10 | base << 5 | register)

    def pair(self, opcode: int, first: int, second: int, base: int, offset: int) -> None:
        """`stp` or `ldp`."""
        self.add(opcode | (offset // 8 & 0x7F) << 15 | second << 10 | base << 5 | first)

    def finished(self) -> bytes:
        """The code with its branches filled in."""
        for at, name in self._uses:
            distance = self._labels[name] // 4 - at
            if self.words[at] & 0x7C000000 == 0x14000000:
                self.words[at] |= distance & 0x3FFFFFF
            else:
                self.words[at] |= (distance & 0x7FFFF) << 5
        return b"".join(map(word, self.words))


_B, _CBNZ, _CBZ, _BCOND = 0x14000000, 0xB5000000, 0xB4000000, 0x54000000
_STP, _LDP = 0xA9000000, 0xA9400000


def record(
    recordings: tuple[Recording, ...], places: DetourPlaces, window: bytes = b""
) -> Recorder:
    """The recorder for a place; raises `NotCompilableError`."""
    del window
    return _Maker(recordings, places).make()


class _Maker:
    def __init__(self, recordings: tuple[Recording, ...], places: DetourPlaces) -> None:
        if len(recordings) != 1:
            raise NotCompilableError("several probes record there")
        self._one = recordings[0]
        self._places = places
        fields = [field for one in recordings for field in one.layout.fields]
        strings = sum(field.arg.type.is_string for field in fields)
        if strings > _STRINGS or sum(field.arg.type.count for field in fields) > _ELEMENTS:
            raise NotCompilableError("too many strings or elements of arrays")
        self._flags = bool(self._one.filter)
        self._slow = bool(strings)
        more = bool(strings) or any(field.arg.type.count for field in fields)
        self._saved = _SAVED if more else {_OTHER: 8, _ROW: 16}
        self._code = Code()

    def make(self) -> Recorder:
        code, one, places = self._code, self._one, self._places
        code.constant(_BASE, places.save)
        self._keep(_STP, 0xF9000000)
        if self._flags:
            code.add(0xD53B4200 | _VALUE)
            code.store(_VALUE, _BASE, _FLAGS)
        counter = one.counter - places.save
        base = _BASE
        if not 0 <= counter < 4096 * 8:
            code.constant(_ROW, one.counter)
            base, counter = _ROW, 0
        code.load(_VALUE, base, counter)
        code.add(0x91000400 | _VALUE << 5 | _VALUE)
        code.store(_VALUE, base, counter)
        self._filter()
        again = code.label("again")
        self._row()
        finish = code.label("finish")
        if self._flags:
            code.load(_VALUE, _BASE, _FLAGS)
            code.add(0xD51B4200 | _VALUE)
        self._keep(_LDP, 0xF9400000)
        slow = -1
        if self._slow:
            code.branch(_B, "end")
            slow = code.label("slow")
            code.add(0xD42000C0)  # brk #6
            code.label("end")
        saved = {f"x{register}": offset for register, offset in self._saved.items()}
        return Recorder(code.finished(), saved, (Part(0, again, finish, slow),), finish)

    def _keep(self, pair: int, single: int) -> None:
        """Save or restore what is used; pairs where two lie side by side."""
        rest = sorted(self._saved.items(), key=lambda item: item[1])
        while len(rest) > 1:
            (first, offset), (second, _), *rest = rest
            self._code.pair(pair, first, second, _BASE, offset)
        for register, offset in rest:
            self._code.add(single | offset // 8 << 10 | _BASE << 5 | register)

    # -- a row ----------------------------------------------------------------------------

    def _row(self) -> None:
        code, places, one = self._code, self._places, self._one
        time = places.time - places.save
        pages = places.ring - places.save >> 12
        if pages >= 4096 or places.ring & 0xFFF or places.save & 0xFFF:
            raise NotCompilableError("the ring is too far from the save area")
        code.load(_VALUE, _BASE, time)
        code.load(_OTHER, _BASE, time + 8)
        code.add(0xCB000000 | _OTHER << 16 | _VALUE << 5 | _OTHER)  # sub
        code.load(_ROW, _BASE, CURSOR)
        code.add(0x8B000000 | _ROW << 16 | _BASE << 5 | _ROW)
        code.add(0x91400000 | pages << 10 | _ROW << 5 | _ROW)
        code.constant(_VALUE, one.address)
        code.pair(_STP, _OTHER, _VALUE, _ROW, 8)
        strings = [field for field in one.layout.fields if field.arg.type.is_string]
        for field in one.layout.fields:
            if not field.arg.type.is_string:
                self._number(field)
        if not strings:
            code.load(_OTHER, _BASE, places.thread - places.save)
            code.constant(_VALUE, one.event | one.layout.words << 16)
            code.add(0xAA000000 | _OTHER << 16 | _VALUE << 5 | _VALUE)
            code.store(_VALUE, _ROW, 0)
            code.load(_VALUE, _BASE, CURSOR)
            self._plus(_VALUE, one.layout.words * 8)
            code.store(_VALUE, _BASE, CURSOR)
            return
        code.add(0xAA0003E0 | _ROW << 16 | _END)
        self._plus(_END, one.layout.words * 8)
        for number, field in enumerate(strings):
            self._string(field, number)
        code.add(0xCB000000 | _ROW << 16 | _END << 5 | _END)
        code.add(0x91001C00 | _END << 5 | _END)  # add 7
        code.add(0x927DF000 | _END << 5 | _END)  # and ~7
        code.load(_VALUE, _BASE, places.thread - places.save)
        code.constant(_OTHER, one.event)
        code.add(0xAA000000 | _OTHER << 16 | _VALUE << 5 | _VALUE)
        code.add(0xAA000000 | 13 << 10 | _END << 16 | _VALUE << 5 | _VALUE)  # orr, lsl 13
        code.store(_VALUE, _ROW, 0)
        code.load(_VALUE, _BASE, CURSOR)
        code.add(0x8B000000 | _END << 16 | _VALUE << 5 | _VALUE)
        code.store(_VALUE, _BASE, CURSOR)

    def _plus(self, register: int, value: int) -> None:
        if value >= 4096:
            raise NotCompilableError("too long a row")
        self._code.add(0x91000000 | value << 10 | register << 5 | register)

    def _number(self, field: RecordField) -> None:
        arg, code = field.arg, self._code
        if arg.type.count:
            self._address(arg)
            code.add(0xAA0003E0 | _VALUE << 16 | _START)
            for index in range(arg.type.count):
                code.load(_VALUE, _START, index * arg.type.size, arg.type.size)
                self._bits(arg)
                code.store(_VALUE, _ROW, (field.word + index) * 8)
            return
        register = self._direct(arg)
        if register is None:
            self._value(arg)
            register = _VALUE
        code.store(register, _ROW, field.word * 8)

    def _direct(self, arg: FetchArg) -> int | None:
        """A register that holds the value as it is."""
        if arg.derefs or arg.type.kind is Kind.BITFIELD:
            return None
        if arg.base.source is Source.RETVAL:
            return 0
        if arg.base.source is not Source.REGISTER or not arg.base.register.startswith("x"):
            return None
        number = int(arg.base.register[1:])
        return None if number in self._saved or number in (_BASE, _VALUE) else number

    def _value(self, arg: FetchArg) -> None:
        """The value of a number in x17."""
        if arg.derefs or arg.base.source in (Source.ADDRESS, Source.IMAGE):
            self._address(arg)
            self._code.load(_VALUE, _VALUE, 0, arg.type.size)
        else:
            self._base(arg)
        self._bits(arg)

    def _bits(self, arg: FetchArg) -> None:
        if arg.type.kind is not Kind.BITFIELD:
            return
        low, width = arg.type.offset, arg.type.width
        if low + width > 64:
            raise NotCompilableError("a bitfield of more than 64 bits")
        self._code.add(0xD3400000 | low << 16 | low + width - 1 << 10 | _VALUE << 5 | _VALUE)

    def _address(self, arg: FetchArg) -> None:
        """Where the element stands, in x17."""
        derefs = arg.derefs
        if arg.base.source in (Source.ADDRESS, Source.IMAGE):
            derefs = (0, *derefs)
        if not derefs:
            raise NotCompilableError(f"{arg.text}: nothing in memory")
        self._base(arg)
        code = self._code
        for offset in derefs[:-1]:
            code.load(_VALUE, _VALUE, offset)
        last = derefs[-1]
        if 0 < last < 4096:
            self._plus(_VALUE, last)
        elif last:
            code.constant(_OTHER, last)
            code.add(0x8B000000 | _OTHER << 16 | _VALUE << 5 | _VALUE)

    def _base(self, arg: FetchArg) -> None:
        base, code = arg.base, self._code
        if base.source in (Source.IMMEDIATE, Source.ADDRESS):
            code.constant(_VALUE, base.value)
        elif base.source is Source.IMAGE:
            code.constant(_VALUE, base.value + self._one.image_base)
        elif base.source is Source.STACK:
            code.load(_VALUE, _ZERO, base.value * 8)
        elif base.source is Source.STACK_POINTER:
            code.add(0x910003E0 | _VALUE)
        elif base.source is Source.RETVAL:
            code.add(0xAA0003E0 | _VALUE)
        elif base.source is Source.REGISTER:
            self._register(arg)
        else:
            raise NotCompilableError(f"{arg.text}: {base.source.value}")

    def _register(self, arg: FetchArg) -> None:
        name, code = arg.base.register, self._code
        if name == "pc":
            code.constant(_VALUE, self._one.pc)
        elif name == "sp":
            code.add(0x910003E0 | _VALUE)
        elif not name.startswith("x") or int(name[1:]) in (_BASE, _VALUE):
            raise NotCompilableError(f"{arg.text}: register {name}")
        elif (number := int(name[1:])) in self._saved:
            code.load(_VALUE, _BASE, self._saved[number])
        else:
            code.add(0xAA0003E0 | number << 16 | _VALUE)

    # -- strings --------------------------------------------------------------------------

    def _string(self, field: RecordField, number: int) -> None:
        """Eight bytes at a time; two copies of the loop, as on x86-64."""
        if field.arg.type.count or field.arg.type.kind is Kind.SYMSTR:
            raise NotCompilableError(f"{field.arg.text}: array of strings, or a symbol's name")
        code = self._code
        self._address(field.arg)
        code.add(0xAA0003E0 | _END << 16 | _START)
        code.constant(_ONES, 0x0101010101010101)
        first, found = f"a{number}", f"found{number}"
        for name in (first, f"b{number}"):
            code.label(name)
            code.load(_PIECE, _VALUE, 0)
            code.add(0xCB000000 | _ONES << 16 | _PIECE << 5 | _BITS)
            code.add(0x8A200000 | _PIECE << 16 | _BITS << 5 | _BITS)  # bic
            code.add(0x9201C000 | _BITS << 5 | _BITS)  # and 0x80 in each byte
            code.branch(_CBNZ | _BITS, found)
            code.store(_PIECE, _END, 0)
            self._plus(_VALUE, 8)
            self._plus(_END, 8)
        code.add(0xCB000000 | _START << 16 | _END << 5 | _BITS)
        code.add(0x91002000 | _BITS << 5 | _BITS)  # add 8
        code.add(0xD340FC00 | _STRING_PIECES << 16 | _BITS << 5 | _BITS)  # lsr 12
        code.branch(_CBZ | _BITS, first)
        code.branch(_B, "slow")
        code.label(found)
        code.add(0xDAC00000 | _BITS << 5 | _BITS, 0xDAC01000 | _BITS << 5 | _BITS)  # rbit, clz
        code.add(0xD343FC00 | _BITS << 5 | _BITS)  # lsr 3: bytes in front of the NUL
        code.add(0xD37DF000 | _BITS << 5 | _OTHER)  # lsl 3
        code.constant(_VALUE, 1)
        code.add(0x9AC02000 | _OTHER << 16 | _VALUE << 5 | _VALUE)  # lsl
        code.add(0xD1000400 | _VALUE << 5 | _VALUE)
        code.add(0x8A000000 | _VALUE << 16 | _PIECE << 5 | _PIECE)
        code.store(_PIECE, _END, 0)
        code.add(0x8B000000 | _BITS << 16 | _END << 5 | _END)
        self._plus(_END, 1)
        code.add(0xCB000000 | _START << 16 | _END << 5 | _BITS)
        code.add(0xCB000000 | _ROW << 16 | _START << 5 | _START)
        code.add(0xAA000000 | 32 << 10 | _BITS << 16 | _START << 5 | _START)  # orr, lsl 32
        code.store(_START, _ROW, field.word * 8)

    # -- filters --------------------------------------------------------------------------

    def _filter(self) -> None:
        """Before anything is stored: a row that does not pass must leave nothing behind."""
        ops, code = self._one.filter, self._code
        for index, op in enumerate(ops):
            code.label(f"op{index}")
            true = op.target if op.when else index + 1
            false = index + 1 if op.when else op.target
            self._test(op, self._to(true, len(ops)), self._to(false, len(ops)))
        code.label("passed")

    def _to(self, index: int, count: int) -> str:
        if index < count:
            return f"op{index}"
        return "passed" if index == count else "finish"

    def _test(self, op: PredicateOp, true: str, false: str) -> None:
        code = self._code
        if op.operand is Operand.FIXED:
            code.branch(_B, true if bool(op.value) is not op.negate else false)
            return
        fields = self._one.layout.fields
        field = next((f for f in fields if f.word * 8 == op.offset), None)
        if op.operand is not Operand.NUMBER or op.count != 1 or field is None or op.negate:
            raise NotCompilableError("a filter on something else than a number of the event")
        if field.arg.type.is_string or field.arg.type.count:
            raise NotCompilableError("a filter on a string or an array")
        self._value(field.arg)
        signed = op.signed and op.compare in _SIGNED
        extend = (_EXTEND if signed else _CUT).get(op.size)
        if extend is not None:
            code.add(extend | _VALUE << 5 | _VALUE)
        value = op.value & (1 << 8 * op.size) - 1
        if signed and value >> 8 * op.size - 1:
            value -= 1 << 8 * op.size
        code.constant(_OTHER, value)
        compare = 0xEA00001F if op.compare is Compare.AND else 0xEB00001F
        code.add(compare | _OTHER << 16 | _VALUE << 5)
        code.branch(_BCOND | (_SIGNED if signed else _UNSIGNED)[op.compare], true)
        code.branch(_B, false)
