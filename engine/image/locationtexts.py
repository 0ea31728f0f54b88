"""Places of variables in words, as `info scope` and `info address` of gdb write them.

gdb: gdb/dwarf2/loc.c, locexpr_describe_location_1. What is no single register or address is
written as its operations.
"""

from collections.abc import Callable, Iterator
from typing import Final

from engine.image import dies
from engine.image.dies import Die
from engine.image.loclists import entries_of, entry_at
from engine.image.reader import Reader

_ADDRESS: Final = 0x03
_PLAIN: Final[dict[int, str]] = {
    0x06: "deref",
    0x12: "dup",
    0x13: "drop",
    0x14: "over",
    0x16: "swap",
    0x17: "rot",
    0x19: "abs",
    0x1A: "and",
    0x1B: "div",
    0x1C: "minus",
    0x1D: "mod",
    0x1E: "mul",
    0x1F: "neg",
    0x20: "not",
    0x21: "or",
    0x22: "plus",
    0x24: "shl",
    0x25: "shr",
    0x26: "shra",
    0x27: "xor",
    0x29: "eq",
    0x2A: "ge",
    0x2B: "gt",
    0x2C: "le",
    0x2D: "lt",
    0x2E: "ne",
    0x96: "nop",
    0x97: "push_object_address",
    0x9B: "form_tls_address",
    0x9C: "call_frame_cfa",
    0x9F: "stack_value",
    0xE0: "GNU_push_tls_address",
}
_NUMBERS: Final[dict[int, tuple[str, int, bool]]] = {
    0x08: ("const1u", 1, False),
    0x09: ("const1s", 1, True),
    0x0A: ("const2u", 2, False),
    0x0B: ("const2s", 2, True),
    0x0C: ("const4u", 4, False),
    0x0D: ("const4s", 4, True),
    0x0E: ("const8u", 8, False),
    0x0F: ("const8s", 8, True),
    0x10: ("constu", 0, False),
    0x11: ("consts", 0, True),
    0x15: ("pick", 1, False),
    0x23: ("plus_uconst", 0, False),
    0x91: ("fbreg", 0, True),
    0x94: ("deref_size", 1, False),
}
"""Operations with a number behind them: its bytes, 0 for LEB128; True if it is signed."""


def described(die: Die, pc: int, bias: int, name: Callable[[int], str]) -> str:
    """The place of a variable in words: "a variable in $rdi".

    Args:
        die: its entry.
        pc: link address of the instruction that it is seen from.
        bias: added to the file's addresses.
        name: of a register by its DWARF number.

    Raises:
        DamagedError: the debug information is damaged.
    """
    value = die.get(dies.AT_LOCATION)
    if value is None:
        constant = die.get(dies.AT_CONST_VALUE)
        return f"constant {constant}" if isinstance(constant, int) else "optimized out"
    if isinstance(value, int):
        value = entry_at(die, dies.AT_LOCATION, value, pc)
    if not isinstance(value, bytes) or not value:
        return "optimized out"
    return _of_expression(die, value, bias, name)


def all_described(die: Die, bias: int, name: Callable[[int], str]) -> str | None:
    """List the places of a variable that moves about, a line each; None for one that stays.

    Args:
        die: its entry.
        bias: added to the file's addresses.
        name: of a register by its DWARF number.

    Raises:
        DamagedError: the debug information is damaged.
    """
    value = die.get(dies.AT_LOCATION)
    if not isinstance(value, int):
        return None
    text = "multi-location:\n"
    bases: list[int] = []
    for low, high, code in entries_of(die, dies.AT_LOCATION, value, bases):
        for base in bases:
            text += f"  Base address {base + bias:#x}"
        bases.clear()
        place = _of_expression(die, code, bias, name) if code else "optimized out"
        text += f"  Range {low + bias:#x}-{high + bias:#x}: {place}\n"
    return text


def _of_expression(die: Die, code: bytes, bias: int, name: Callable[[int], str]) -> str:
    width = die.unit.widths.address
    reader = Reader(code, 0, len(code), die.unit.info.order)
    op = reader.u8()
    if op == _ADDRESS and len(code) == 1 + width:
        return f"static storage at address {reader.uint(width) + bias:#x}"
    if 0x30 <= op <= 0x4F and code[1:] == b"\x9f":
        return f"the constant {op - 0x30}"
    if 0x50 <= op <= 0x6F and len(code) == 1:
        return f"a variable in ${name(op - 0x50)}"
    if 0x70 <= op <= 0x8F:
        offset = reader.sleb()
        if reader.place == reader.end:
            return f"a variable at offset {offset} from base reg ${name(op - 0x70)}"
    if code[-1] in (0x9B, 0xE0) and op in (_ADDRESS, 0x0E, 0x0C):
        reader = Reader(code, 1, len(code), die.unit.info.order)
        offset = reader.uint(4 if op == 0x0C else width)
        return (
            f"a thread-local variable at offset {offset:#x} in the thread-local storage for"
            f" `{die.unit.info.name}'"
        )
    lines = "".join(f"{line}\n" for line in _operations(die, code, name))
    return f"a complex DWARF expression:\n{lines}"


def _operations(die: Die, code: bytes, name: Callable[[int], str]) -> Iterator[str]:
    """The operations of an expression, each with its offset; an unknown one ends them."""
    reader = Reader(code, 0, len(code), die.unit.info.order)
    while reader.place < reader.end:
        at, op = reader.place, reader.u8()
        text = _operation(reader, op, die.unit.widths.address, name)
        yield f"{at:6}: {text}"
        if not text.startswith("DW_OP_"):
            return


def _operation(reader: Reader, op: int, width: int, name: Callable[[int], str]) -> str:
    if op == _ADDRESS:
        return f"DW_OP_addr {reader.uint(width):#x}"
    if 0x30 <= op <= 0x4F:
        return f"DW_OP_lit{op - 0x30}"
    if 0x50 <= op <= 0x6F:
        return f"DW_OP_reg{op - 0x50} [${name(op - 0x50)}]"
    if 0x70 <= op <= 0x8F:
        return f"DW_OP_breg{op - 0x70} {reader.sleb()} [${name(op - 0x70)}]"
    if op in _PLAIN:
        return f"DW_OP_{_PLAIN[op]}"
    if op in _NUMBERS:
        word, size, signed = _NUMBERS[op]
        if size:
            number = reader.sint(size) if signed else reader.uint(size)
        else:
            number = reader.sleb() if signed else reader.uleb()
        return f"DW_OP_{word} {number}"
    if op == 0x93:
        return f"DW_OP_piece {reader.uleb()} (bytes)"
    if op == 0x9E:
        value = reader.block(reader.uleb())
        return f"DW_OP_implicit_value {len(value)}"
    if op in (0xA3, 0xF3):
        code = reader.block(reader.uleb())
        inner = Reader(code, 0, len(code), reader.order)
        first = inner.u8() if code else 0
        if first in (0xA3, 0xF3):  # nested without an end
            return f"operation {op:#x}"
        return f"DW_OP_entry_value\n       2: {_operation(inner, first, width, name)}"
    return f"operation {op:#x}"
