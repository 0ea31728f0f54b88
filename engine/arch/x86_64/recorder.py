"""The recorder of an x86-64 detour: code that writes a hit's row where the engine finds it.

It touches neither the stack nor what is below it: rax is saved at an absolute address, and what
else is used beside it. Flags are saved (by lahf and seto, which costs less than pushf and needs no
stack) only where a filter, a bitfield or a string has to compute with them; all else is done by
`mov`, `lea` and `not`. There are no checks for the end of the ring: behind it nothing is mapped.

A store to the row or a load that faults is the engine's business: it finds the program's registers
in the save area, and goes on at `Recorder.again` or `Recorder.finish`.
"""

import struct
from typing import Final

from engine.arch.jump import CURSOR, DetourPlaces, NotCompilableError, Recorder, Recording
from engine.arch.program import Compare, FetchArg, Kind, Operand, PredicateOp, RecordField, Source
from engine.arch.x86_64.operations import NAMES

RAX, RCX, RDX, RSP, RSI, RDI = 0, 1, 2, 4, 6, 7
R8, R9, R10, R11 = 8, 9, 10, 11
_SAVED: Final = {RAX: 0, RCX: 8, RDX: 16, RSI: 24, RDI: 32, R8: 40, R9: 48, R10: 56}
_SAVED_R11: Final = CURSOR + 8
_FLAGS: Final = CURSOR + 16
_ONES: Final = 0x0101010101010101
_HIGHS: Final = 0x8080808080808080
_STRING_MAX: Final = 4096
_ELEMENTS: Final = 128
"""Most elements of the arrays of one probe: beyond, the code would be long."""
_STRINGS: Final = 8
_UNSIGNED: Final = {
    Compare.EQ: 0x4,
    Compare.NE: 0x5,
    Compare.LT: 0x2,
    Compare.LE: 0x6,
    Compare.GT: 0x7,
    Compare.GE: 0x3,
    Compare.AND: 0x5,
}
_SIGNED: Final = {Compare.LT: 0xC, Compare.LE: 0xE, Compare.GT: 0xF, Compare.GE: 0xD}


class Code:
    """Machine code with labels; jumps are near ones."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self._labels: dict[str, int] = {}
        self._uses: list[tuple[int, str]] = []

    def label(self, name: str) -> int:
        """The next instruction has this name."""
        self._labels[name] = len(self.bytes)
        return len(self.bytes)

    def raw(self, text: str) -> None:
        """Bytes in hexadecimal."""
        self.bytes += bytes.fromhex(text)

    def jump(self, name: str, condition: int | None = None) -> None:
        """`jmp` or `jcc` to a label."""
        self.bytes += b"\xe9" if condition is None else bytes((0x0F, 0x80 | condition))
        self._uses.append((len(self.bytes), name))
        self.bytes += bytes(4)

    def finished(self) -> bytes:
        """The code with its jumps filled in."""
        for at, name in self._uses:
            struct.pack_into("<i", self.bytes, at, self._labels[name] - at - 4)
        return bytes(self.bytes)

    def at(self, name: str) -> int:
        """Offset of a label."""
        return self._labels[name]

    def memory(self, opcode: str, register: int, base: int, offset: int) -> None:
        """An instruction of 64 bits with a register and `[base+offset]`."""
        self._operand(bytes.fromhex(opcode), register, base, None, offset, 8)

    def indexed(self, opcode: str, register: int, base: int, index: int, offset: int) -> None:
        """The same with `[base+index+offset]`."""
        self._operand(bytes.fromhex(opcode), register, base, index, offset, 8)

    def narrow(self, opcode: str, register: int, base: int, offset: int) -> None:
        """The same as `memory` with operands of 32 bits."""
        self._operand(bytes.fromhex(opcode), register, base, None, offset, 0)

    def _operand(
        self, opcode: bytes, register: int, base: int, index: int | None, offset: int, wide: int
    ) -> None:
        if not -(1 << 31) <= offset < 1 << 31:
            raise NotCompilableError(f"offset {offset:#x} has more than 32 bits")
        rex = wide | (register >> 3) << 2 | ((index or 0) >> 3) << 1 | base >> 3
        short = -128 <= offset < 128
        mod = 0x40 if short else 0x80
        if index is None and base & 7 != RSP:
            form = bytes([mod | (register & 7) << 3 | base & 7])
        else:
            sib = (RSP if index is None else index & 7) << 3 | base & 7
            form = bytes([mod | (register & 7) << 3 | 4, sib])
        self.bytes += (bytes([0x40 | rex]) if rex else b"") + opcode + form
        self.bytes += struct.pack("<b" if short else "<i", offset)

    def constant(self, register: int, value: int) -> None:
        """`mov` of a constant, in its shortest form."""
        value &= (1 << 64) - 1
        rex = 0x40 | register >> 3
        if value < 1 << 32:
            prefix = bytes([rex]) if register > 7 else b""
            self.bytes += prefix + bytes([0xB8 | register & 7]) + struct.pack("<I", value)
        else:
            self.bytes += bytes([rex | 8, 0xB8 | register & 7]) + struct.pack("<Q", value)

    def two(self, opcode: int, register: int, other: int) -> None:
        """A 64-bit instruction on two registers, `other` being ModRM.rm."""
        rex = 0x48 | (register >> 3) << 2 | other >> 3
        self.bytes += bytes([rex, opcode, 0xC0 | (register & 7) << 3 | other & 7])

    def shift(self, extension: int, register: int, count: int) -> None:
        """`shl` (4), `shr` (5)."""
        self.bytes += bytes(
            [0x48 | register >> 3, 0xC1, 0xC0 | extension << 3 | register & 7, count]
        )


_MOV_TO, _MOV_FROM, _LEA = "89", "8b", "8d"
_LOADS: Final[dict[int, tuple[bool, str]]] = {
    1: (False, "0fb6"),
    2: (False, "0fb7"),
    4: (False, "8b"),
    8: (True, "8b"),
}


def record(recordings: tuple[Recording, ...], places: DetourPlaces) -> Recorder:
    """The recorder for a place; raises `NotCompilableError`."""
    return _Maker(recordings, places).make()


class _Maker:
    def __init__(self, recordings: tuple[Recording, ...], places: DetourPlaces) -> None:
        self._recordings = recordings
        self._places = places
        self._ring = places.ring - places.save
        fields = [field for one in recordings for field in one.layout.fields]
        strings = sum(field.arg.type.is_string for field in fields)
        arrays = sum(field.arg.type.count for field in fields)
        bits = any(field.arg.type.kind is Kind.BITFIELD for field in fields)
        if strings > _STRINGS or arrays > _ELEMENTS:
            raise NotCompilableError("too many strings or elements of arrays")
        self._flags = bool(strings) or bits or any(one.filter for one in recordings)
        used = [RAX, RCX, RDX]
        if strings or arrays:
            used.append(RSI)
        if strings:
            used += [RDI, R8, R9, R10, R11]
        self._saved = {each: _SAVED.get(each, _SAVED_R11) for each in used}
        self._slow = bool(strings)
        self._code = Code()

    def make(self) -> Recorder:
        code, save = self._code, self._places.save
        self._absolute(0xA3, save)
        if self._flags:
            code.raw("9f 0f90c0")  # lahf; seto al
            self._absolute(0xA3, save + _FLAGS)
        code.constant(RAX, save)
        for register, offset in self._saved.items():
            if register != RAX:
                code.memory(_MOV_TO, register, RAX, offset)
        again = -1
        if len(self._recordings) != 1:
            raise NotCompilableError("several probes record there")
        for one in self._recordings:
            counter = one.counter - save
            code.memory(_MOV_FROM, RDX, RAX, counter)
            code.memory(_LEA, RDX, RDX, 1)
            code.memory(_MOV_TO, RDX, RAX, counter)
            self._filter(one)
            again = code.label("again")
            self._row(one)
        code.label("finish")
        code.constant(RAX, save)
        for register, offset in self._saved.items():
            if register != RAX:
                code.memory(_MOV_FROM, register, RAX, offset)
        if self._flags:
            self._absolute(0xA1, save + _FLAGS)
            code.raw("047f 9e")  # add al, 127: sets OF if it was set; sahf
        self._absolute(0xA1, save)
        end = "end"
        slow = -1
        if self._slow:
            code.jump(end)
            slow = code.label("slow")
            code.raw("cc")
            code.label(end)
        text = code.finished()
        saved = {NAMES[register]: offset for register, offset in self._saved.items()}
        return Recorder(text, saved, again, code.at("finish"), slow)

    def _absolute(self, opcode: int, address: int) -> None:
        """`mov` between rax and an absolute address."""
        self._code.bytes += bytes([0x48, opcode]) + struct.pack("<Q", address)

    # -- a row ----------------------------------------------------------------------------

    def _row(self, one: Recording) -> None:
        code, save, places = self._code, self._places.save, self._places
        time = places.time - save
        code.memory(_MOV_FROM, RCX, RAX, time + 8)
        code.raw("48f7d1")  # not rcx
        code.memory(_MOV_FROM, RDX, RAX, time)
        code.indexed(_LEA, RDX, RDX, RCX, 1)
        code.memory(_MOV_FROM, RCX, RAX, CURSOR)
        self._store(RDX, 1)
        code.constant(RDX, one.address)
        self._store(RDX, 2)
        strings = [field for field in one.layout.fields if field.arg.type.is_string]
        for field in one.layout.fields:
            if not field.arg.type.is_string:
                self._number(field, one)
        if not strings:
            code.memory(_MOV_FROM, RDX, RAX, places.thread - save)
            code.memory(_LEA, RDX, RDX, one.event | one.layout.words << 16)
            self._store(RDX, 0)
            code.memory(_LEA, RCX, RCX, one.layout.words * 8)
            code.memory(_MOV_TO, RCX, RAX, CURSOR)
            return
        code.indexed(_LEA, RDI, RAX, RCX, self._ring + one.layout.words * 8)
        for number, field in enumerate(strings):
            self._string(field, one, number)
        code.indexed(_LEA, R10, RAX, RCX, self._ring)
        code.two(0x29, R10, RDI)  # sub rdi, r10
        code.raw("4883c707 4883e7f8")  # add rdi, 7; and rdi, -8
        code.two(0x89, RDI, RDX)
        code.shift(4, RDX, 13)
        code.memory("03", RDX, RAX, places.thread - save)
        code.memory(_LEA, RDX, RDX, one.event)
        self._store(RDX, 0)
        code.two(0x01, RDI, RCX)
        code.memory(_MOV_TO, RCX, RAX, CURSOR)

    def _store(self, register: int, word: int) -> None:
        self._code.indexed(_MOV_TO, register, RAX, RCX, self._ring + word * 8)

    def _number(self, field: RecordField, one: Recording) -> None:
        arg, code = field.arg, self._code
        if arg.type.count:
            self._address(arg, one)
            wide, opcode = _LOADS[arg.type.size]
            for index in range(arg.type.count):
                load = code.memory if wide else code.narrow
                load(opcode, RSI, RDX, index * arg.type.size)
                self._bits(arg, RSI)
                self._store(RSI, field.word + index)
            return
        register = self._direct(arg)
        if register is None:
            self._value(arg, one)
            register = RDX
        self._store(register, field.word)

    def _direct(self, arg: FetchArg) -> int | None:
        """A register that holds the value as it is."""
        if arg.derefs or arg.type.kind is Kind.BITFIELD:
            return None
        if arg.base.source not in (Source.REGISTER, Source.RETVAL):
            return None
        name = arg.base.register if arg.base.source is Source.REGISTER else "rax"
        number = NAMES.index(name) if name in NAMES else RAX
        return None if number in self._saved or name not in NAMES or number == RSP else number

    def _value(self, arg: FetchArg, one: Recording) -> None:
        """The value of a number in rdx."""
        if arg.derefs or arg.base.source in (Source.ADDRESS, Source.IMAGE):
            self._address(arg, one)
            self._load(arg.type.size)
        else:
            self._base(arg, one)
        self._bits(arg, RDX)

    def _load(self, size: int) -> None:
        wide, opcode = _LOADS[size]
        (self._code.memory if wide else self._code.narrow)(opcode, RDX, RDX, 0)

    def _bits(self, arg: FetchArg, register: int) -> None:
        if arg.type.kind is not Kind.BITFIELD:
            return
        left = 64 - arg.type.offset - arg.type.width
        if left < 0:
            raise NotCompilableError("a bitfield of more than 64 bits")
        self._code.shift(4, register, left)
        self._code.shift(5, register, 64 - arg.type.width)

    def _address(self, arg: FetchArg, one: Recording) -> None:
        """Where the element stands, in rdx."""
        derefs = arg.derefs
        if arg.base.source in (Source.ADDRESS, Source.IMAGE):
            derefs = (0, *derefs)
        self._base(arg, one)
        for offset in derefs[:-1]:
            self._code.memory(_MOV_FROM, RDX, RDX, offset)
        if not derefs:
            raise NotCompilableError(f"{arg.text}: nothing in memory")
        if derefs[-1]:
            self._code.memory(_LEA, RDX, RDX, derefs[-1])

    def _base(self, arg: FetchArg, one: Recording) -> None:
        base, code = arg.base, self._code
        if base.source is Source.IMMEDIATE or base.source is Source.ADDRESS:
            code.constant(RDX, base.value)
        elif base.source is Source.IMAGE:
            code.constant(RDX, base.value + one.image_base)
        elif base.source is Source.STACK:
            code.memory(_MOV_FROM, RDX, RSP, base.value * 8)
        elif base.source is Source.STACK_POINTER:
            code.two(0x89, RSP, RDX)
        elif base.source in (Source.REGISTER, Source.RETVAL):
            name = base.register if base.source is Source.REGISTER else "rax"
            if name == "rip":
                code.constant(RDX, one.pc)
            elif name not in NAMES:
                raise NotCompilableError(f"{arg.text}: register {name}")
            elif (number := NAMES.index(name)) in self._saved:
                code.memory(_MOV_FROM, RDX, RAX, self._saved[number])
            else:
                code.two(0x89, number, RDX)
        else:
            raise NotCompilableError(f"{arg.text}: {base.source.value}")

    # -- strings --------------------------------------------------------------------------

    def _string(self, field: RecordField, one: Recording, number: int) -> None:
        """Eight bytes at a time up to one with a NUL; long ones are the engine's business.

        Two copies of the loop take turns: the clock would take a block that follows itself for
        a repeated instruction.
        """
        if field.arg.type.count or field.arg.type.kind is Kind.SYMSTR:
            raise NotCompilableError(f"{field.arg.text}: array of strings, or a symbol's name")
        code = self._code
        self._address(field.arg, one)
        code.two(0x89, RDI, R8)
        code.constant(R9, _ONES)
        code.constant(R11, _HIGHS)
        first, second, found = f"a{number}", f"b{number}", f"found{number}"
        for name in (first, second):
            code.label(name)
            code.memory(_MOV_FROM, RSI, RDX, 0)
            code.two(0x89, RSI, R10)
            code.two(0x29, R9, R10)
            code.raw("48f7d6")  # not rsi
            code.two(0x21, RSI, R10)
            code.raw("48f7d6")
            code.two(0x21, R11, R10)
            code.jump(found, 5)
            code.memory(_MOV_TO, RSI, RDI, 0)
            code.raw("4883c208 4883c708")  # add rdx, 8; add rdi, 8
        code.two(0x89, RDI, R10)
        code.two(0x29, R8, R10)
        code.raw("4981fa" + struct.pack("<I", _STRING_MAX - 8).hex())  # cmp r10, 4088
        code.jump(first, 2)
        code.jump("slow")
        code.label(found)
        code.two(0x89, R10, R9)
        code.raw("49f7d9")  # neg r9
        code.two(0x21, R10, R9)  # the lowest of the bits
        code.raw("4d0fbcd1")  # bsf r10, r9
        code.shift(5, R10, 3)
        code.shift(5, R9, 7)
        code.raw("49ffc9")  # dec r9
        code.two(0x21, R9, RSI)
        code.memory(_MOV_TO, RSI, RDI, 0)
        code.indexed(_LEA, RDI, RDI, R10, 1)
        code.two(0x89, RDI, R9)
        code.two(0x29, R8, R9)
        code.shift(4, R9, 32)
        code.indexed(_LEA, R10, RAX, RCX, self._ring)
        code.two(0x29, R10, R8)
        code.two(0x09, R8, R9)
        self._store(R9, field.word)

    # -- filters --------------------------------------------------------------------------

    def _filter(self, one: Recording) -> None:
        """Before anything is stored: a row that does not pass must leave nothing behind."""
        ops, code = one.filter, self._code
        for index, op in enumerate(ops):
            code.label(f"op{index}")
            true, false = index + 1, index + 1
            if op.when:
                true = op.target
            else:
                false = op.target
            self._test(op, one, self._to(true, len(ops)), self._to(false, len(ops)))
        code.label("passed")

    def _to(self, index: int, count: int) -> str:
        if index < count:
            return f"op{index}"
        return "passed" if index == count else "finish"

    def _test(self, op: PredicateOp, one: Recording, true: str, false: str) -> None:
        code = self._code
        if op.operand is Operand.FIXED:
            code.jump(true if bool(op.value) is not op.negate else false)
            return
        field = next((f for f in one.layout.fields if f.word * 8 == op.offset), None)
        if op.operand is not Operand.NUMBER or op.count != 1 or field is None or op.negate:
            raise NotCompilableError("a filter on something else than a number of the event")
        if field.arg.type.is_string or field.arg.type.count:
            raise NotCompilableError("a filter on a string or an array")
        self._value(field.arg, one)
        signed = op.signed and op.compare in _SIGNED
        extend: dict[int, str] = {1: "480fbed2", 2: "480fbfd2", 4: "4863d2"}
        cut: dict[int, str] = {1: "0fb6d2", 2: "0fb7d2", 4: "89d2"}
        code.raw((extend if signed else cut).get(op.size, ""))
        value = op.value & (1 << 8 * op.size) - 1
        if signed and value >> 8 * op.size - 1:
            value -= 1 << 8 * op.size
        code.constant(RCX, value)
        code.two(0x85 if op.compare is Compare.AND else 0x39, RCX, RDX)
        code.jump(true, (_SIGNED if signed else _UNSIGNED)[op.compare])
        code.jump(false)
