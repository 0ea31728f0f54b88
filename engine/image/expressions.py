"""Places of variables: location expressions and lists, evaluated with names for values.

Nothing runs, so registers have no values: the machine of DWARF 5, 2.5 works on terms "value
of a register, read through memory so often, plus an offset". That is all that a probe can
fetch; whatever else an expression computes is answered with the reason in words.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.image.dies import Die, Unit
from engine.image.loclists import entry_at
from engine.image.reader import DamagedError, Reader

_MAX_STACK: Final = 256
_WORD: Final = 1 << 64
_LARGEST: Final = 8
"""Bytes of the longest number that a term is."""


class Term(Struct, frozen=True):
    """A value that is known up to a register.

    Attributes:
        register: DWARF number of the register it begins with; None for a constant.
        derefs: offsets; for each the value becomes the word that is stored there.
        offset: added in the end.
        is_link: the value begins with a link address: the file's bias is to be added.
    """

    register: int | None = None
    derefs: tuple[int, ...] = ()
    offset: int = 0
    is_link: bool = False

    @property
    def is_constant(self) -> bool:
        """True if it is a plain number."""
        return self.register is None and not self.derefs and not self.is_link

    def plus(self, offset: int) -> "Term":
        """The sum of the term and a number."""
        return replace(self, offset=self.offset + offset)

    def loaded(self) -> "Term":
        """The word that is stored there."""
        return replace(self, derefs=(*self.derefs, self.offset), offset=0)

    def text(self, name: Callable[[int], str]) -> str:
        """For people: "%di+8", "*(%bp-24)+16", "0x4010"."""
        start = "" if self.register is None else f"%{name(self.register)}"
        for offset in self.derefs:
            start = f"*({_sum(start, offset)})"
        return _sum(start, self.offset)


def _sum(start: str, offset: int) -> str:
    if not start:
        return f"{offset:#x}"
    return f"{start}{offset:+d}" if offset else start


class Where(Enum):
    """The kind of a location."""

    REGISTER = "register"
    MEMORY = "memory"
    VALUE = "value"
    PIECES = "pieces"
    NOWHERE = "nowhere"


class VariableLocation(Struct, frozen=True):
    """The place of a variable at one instruction.

    Attributes:
        where: which kind.
        term: the address (MEMORY) or the value itself (VALUE).
        register: DWARF number (REGISTER).
        pieces: (bytes, location) of the parts (PIECES).
        why: why there is nothing to read (NOWHERE).
    """

    where: Where
    term: Term = Term()
    register: int = 0
    pieces: "tuple[tuple[int, VariableLocation], ...]" = ()
    why: str = ""

    def text(self, name: Callable[[int], str]) -> str:
        """For people: "%di", "memory at %sp+12", "the value 5"."""
        match self.where:
            case Where.REGISTER:
                return f"%{name(self.register)}"
            case Where.MEMORY:
                return f"memory at {self.term.text(name)}"
            case Where.VALUE:
                return f"the value {self.term.text(name)}"
            case Where.PIECES:
                parts = (f"{size} bytes: {part.text(name)}" for size, part in self.pieces)
                return "pieces: " + "; ".join(parts)
            case Where.NOWHERE:
                return self.why


def nowhere(why: str) -> VariableLocation:
    """No location, for a reason."""
    return VariableLocation(Where.NOWHERE, why=why)


OPTIMIZED_OUT: Final = nowhere("is optimized out here")


class _UnsupportedError(Exception):
    """The expression says something that a probe cannot fetch."""


class FrameContext(Struct, frozen=True):
    """The surroundings that an expression may refer to.

    Attributes:
        pc: link address.
        entry: whether it is the function's first instruction.
        cfa: (register, offset) of the frame address there; None if unknown.
        base: the frame base's location, asked for when an expression needs it.
    """

    pc: int
    entry: bool
    cfa: tuple[int, int] | None
    base: "Callable[[], VariableLocation]"


def location_of(die: Die, attribute: int, frame: FrameContext) -> VariableLocation | None:
    """The location that an attribute gives at `frame.pc`; None without the attribute.

    Raises:
        DamagedError: the expression or list is damaged.
    """
    value = die.get(attribute)
    if value is None:
        return None
    if isinstance(value, int):
        found = entry_at(die, attribute, value, frame.pc)
        if found is None:
            return OPTIMIZED_OUT
        value = found
    return evaluate(value, die.unit, frame)


def constant(raw: bytes, unit: Unit) -> VariableLocation:
    """The location of a value that the debug information has itself, byte by byte."""
    is_little = unit.info.order == "<"
    if len(raw) <= _LARGEST:
        number = int.from_bytes(raw, "little" if is_little else "big")
        return VariableLocation(Where.VALUE, Term(offset=number))
    step = _LARGEST // 2 if is_little else _LARGEST  # a processor of 32 bits has no longer values
    pieces: list[tuple[int, VariableLocation]] = []
    for at in range(0, len(raw), step):
        part = raw[at : at + step]
        number = int.from_bytes(part.ljust(_LARGEST, b"\0"), "little" if is_little else "big")
        pieces.append((len(part), VariableLocation(Where.VALUE, Term(offset=number))))
    return VariableLocation(Where.PIECES, pieces=tuple(pieces))


def evaluate(code: bytes, unit: Unit, frame: FrameContext) -> VariableLocation:
    """The location that an expression means."""
    if not code:
        return OPTIMIZED_OUT
    try:
        return _LocationMachine(code, unit, frame).run()
    except _UnsupportedError as error:
        return nowhere(str(error))


class _LocationMachine:
    """Runs one expression. Every operation consumes a byte and none jumps back."""

    def __init__(self, code: bytes, unit: Unit, frame: FrameContext) -> None:
        self._reader = Reader(code, 0, len(code), unit.info.order)
        self._unit = unit
        self._frame = frame
        self._stack: list[Term] = []
        self._result: VariableLocation | None = None

    def run(self) -> VariableLocation:
        """The location; DamagedError for a damaged expression."""
        reader = self._reader
        pieces: list[tuple[int, VariableLocation]] = []
        while reader.place < reader.end:
            op = reader.u8()
            if op == 0x93:  # DW_OP_piece
                size = reader.uleb()
                pieces.append((size, self._take() if self._started else OPTIMIZED_OUT))
                continue
            if op == 0x9D:
                raise _UnsupportedError("lies in pieces of single bits")
            self._step(op)
            if len(self._stack) > _MAX_STACK:
                raise DamagedError("an expression with an endless stack")
        if pieces:
            return VariableLocation(Where.PIECES, pieces=tuple(pieces))
        return self._take()

    @property
    def _started(self) -> bool:
        return bool(self._stack) or self._result is not None

    def _take(self) -> VariableLocation:
        found = self._result
        if found is None:
            found = VariableLocation(Where.MEMORY, self._pop())
        self._result, self._stack = None, []
        return found

    def _pop(self) -> Term:
        if not self._stack:
            raise DamagedError("an expression takes more than it has")
        return self._stack.pop()

    def _push(self, term: Term) -> None:
        self._stack.append(term)

    def _step(self, op: int) -> None:
        reader, push = self._reader, self._push
        if 0x30 <= op <= 0x4F:  # DW_OP_lit
            push(Term(offset=op - 0x30))
        elif 0x50 <= op <= 0x6F:  # DW_OP_reg
            self._result = VariableLocation(Where.REGISTER, register=op - 0x50)
        elif 0x70 <= op <= 0x8F:  # DW_OP_breg
            push(Term(op - 0x70, offset=reader.sleb()))
        elif op in _CONSTANTS:
            size, is_signed = _CONSTANTS[op]
            if size:
                push(Term(offset=reader.sint(size) if is_signed else reader.uint(size)))
            else:
                push(Term(offset=reader.sleb() if is_signed else reader.uleb()))
        elif op in _SPECIAL:
            _SPECIAL[op](self)
        elif op in _BINARY:
            self._binary(op)
        else:
            raise _UnsupportedError(f"is computed by DWARF operation {op:#x}")

    def _binary(self, op: int) -> None:
        right, left = self._pop(), self._pop()
        if op == 0x22 and (right.is_constant or left.is_constant):  # DW_OP_plus
            base, number = (left, right) if right.is_constant else (right, left)
            self._push(base.plus(number.offset))
        elif op == 0x1C and right.is_constant:  # DW_OP_minus
            self._push(left.plus(-right.offset))
        elif left.is_constant and right.is_constant:
            value = _BINARY[op](left.offset, right.offset)
            self._push(Term(offset=_signed(value)))
        else:
            raise _UnsupportedError("is computed from registers")

    # -- operations ----------------------------------------------------------------

    def _address(self) -> None:
        self._push(Term(offset=self._reader.uint(self._unit.widths.address), is_link=True))

    def _address_index(self) -> None:
        self._push(Term(offset=self._unit.address(self._reader.uleb()), is_link=True))

    def _constant_index(self) -> None:
        self._push(Term(offset=self._unit.address(self._reader.uleb())))

    def _deref(self) -> None:
        self._push(self._pop().loaded())

    def _deref_size(self) -> None:
        if self._reader.u8() != self._unit.widths.address:
            raise _UnsupportedError("is computed from a part of a word")
        self._deref()

    def _dup(self) -> None:
        term = self._pop()
        self._push(term)
        self._push(term)

    def _drop(self) -> None:
        self._pop()

    def _swap(self) -> None:
        top, second = self._pop(), self._pop()
        self._push(top)
        self._push(second)

    def _pick(self, back: int | None = None) -> None:
        index = self._reader.u8() if back is None else back
        if index >= len(self._stack):
            raise DamagedError("an expression takes more than it has")
        self._push(self._stack[-1 - index])

    def _plus_uconst(self) -> None:
        self._push(self._pop().plus(self._reader.uleb()))

    def _neg(self) -> None:
        term = self._pop()
        if not term.is_constant:
            raise _UnsupportedError("is computed from registers")
        self._push(Term(offset=-term.offset))

    def _bregx(self) -> None:
        self._push(Term(self._reader.uleb(), offset=self._reader.sleb()))

    def _regx(self) -> None:
        self._result = VariableLocation(Where.REGISTER, register=self._reader.uleb())

    def _fbreg(self) -> None:
        offset = self._reader.sleb()
        base = self._frame.base()
        if base.where is Where.REGISTER:
            self._push(Term(base.register, offset=offset))
        elif base.where in (Where.MEMORY, Where.VALUE):
            self._push(base.term.plus(offset))
        else:
            raise _UnsupportedError(f"is in the frame, and the frame {base.why}")

    def _cfa(self) -> None:
        if self._frame.cfa is None:
            raise _UnsupportedError("has no frame address: the unwind tables do not tell it")
        self._push(Term(self._frame.cfa[0], offset=self._frame.cfa[1]))

    def _stack_value(self) -> None:
        self._result = VariableLocation(Where.VALUE, self._pop())

    def _implicit_value(self) -> None:
        raw = self._reader.block(self._reader.uleb())
        self._result = constant(raw, self._unit)

    def _entry_value(self) -> None:
        code = self._reader.block(self._reader.uleb())
        if not self._frame.entry:
            raise _UnsupportedError("had its value at the function's entry only")
        found = evaluate(code, self._unit, self._frame)
        if found.where is Where.REGISTER:
            self._push(Term(found.register))
        elif found.where is Where.MEMORY:
            self._push(found.term.loaded())
        else:
            raise _UnsupportedError(found.why or "is computed")

    def _implicit_pointer(self) -> None:
        raise _UnsupportedError("points to a variable that was optimized away")

    def _thread_local(self) -> None:
        raise _UnsupportedError("is thread-local")

    def _nothing(self) -> None:
        return


def _signed(value: int) -> int:
    value %= _WORD
    return value - _WORD if value >> 63 else value


_CONSTANTS: Final = {
    0x08: (1, False),
    0x09: (1, True),
    0x0A: (2, False),
    0x0B: (2, True),
    0x0C: (4, False),
    0x0D: (4, True),
    0x0E: (8, False),
    0x0F: (8, True),
    0x10: (0, False),
    0x11: (0, True),
}
_BINARY: Final[dict[int, Callable[[int, int], int]]] = {
    0x1A: lambda a, b: a & b,
    0x1C: lambda a, b: a - b,
    0x1E: lambda a, b: a * b,
    0x21: lambda a, b: a | b,
    0x22: lambda a, b: a + b,
    0x24: lambda a, b: a << (b & 63),
    0x25: lambda a, b: (a % _WORD) >> (b & 63),
    0x26: lambda a, b: a >> (b & 63),
    0x27: lambda a, b: a ^ b,
}
_SPECIAL: Final[dict[int, Callable[[_LocationMachine], None]]] = {
    0x03: _LocationMachine._address,
    0x06: _LocationMachine._deref,
    0x12: _LocationMachine._dup,
    0x13: _LocationMachine._drop,
    0x14: lambda machine: machine._pick(1),
    0x15: _LocationMachine._pick,
    0x16: _LocationMachine._swap,
    0x1F: _LocationMachine._neg,
    0x23: _LocationMachine._plus_uconst,
    0x90: _LocationMachine._regx,
    0x91: _LocationMachine._fbreg,
    0x92: _LocationMachine._bregx,
    0x94: _LocationMachine._deref_size,
    0x96: _LocationMachine._nothing,
    0x9B: _LocationMachine._thread_local,
    0x9C: _LocationMachine._cfa,
    0x9E: _LocationMachine._implicit_value,
    0x9F: _LocationMachine._stack_value,
    0xA0: _LocationMachine._implicit_pointer,
    0xA1: _LocationMachine._address_index,
    0xA2: _LocationMachine._constant_index,
    0xA3: _LocationMachine._entry_value,
    0xE0: _LocationMachine._thread_local,
    0xF2: _LocationMachine._implicit_pointer,
    0xF3: _LocationMachine._entry_value,
    0xFB: _LocationMachine._address_index,
    0xFC: _LocationMachine._constant_index,
}
