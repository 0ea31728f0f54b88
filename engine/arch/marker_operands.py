"""Operands of static probes (USDT): where an argument is, in the words of the assembler.

A note of sys/sdt.h has one text for all arguments: `-4@%edi 8@-16(%rbp) -4@$5` on x86,
`-4@w0 8@[sp, 12] -4@5` on AArch64, `-4@a0 8@-24(s0)` on RISC-V. In front of the `@` is the size
in bytes, negative for a signed number, with an `f` behind it for a floating one; without it the
argument is an unsigned word. The size decides, whatever the register is called (sys/sdt.h, the
comment on gdb's PR 24541).

What differs between architectures is a `MarkerSyntax`: names of registers and two patterns.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

MOST: Final = 12
"""Arguments of a static probe: sys/sdt.h has macros for no more."""

SIZES: Final = (1, 2, 4, 8)
_LONGEST: Final = 512
"""Characters of an operand that are read; names of C++ symbols may be long."""
_HEAD: Final = re.compile(r"(-?)(\d{1,3})(f?)@", re.ASCII)
_NUMBER: Final = r"[+-]?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,20})"
_TERMS: Final = r"(?:[+-](?:0[xX][0-9a-fA-F]{1,16}|\d{1,20}))*"
_PLACE: Final = re.compile(
    rf"(?:(?P<before>{_NUMBER}{_TERMS})\+(?=[A-Za-z_.$]))?"
    rf"(?P<symbol>[A-Za-z_.$][\w.$@]*)?(?P<after>(?:{_NUMBER})?{_TERMS})",
    re.ASCII,
)
"""A symbol with distances: gcc writes `4+box`, clang `box+4`."""
_EACH: Final = re.compile(_NUMBER, re.ASCII)

NamedRegister = tuple[str, int, int]
"""(the whole register, first byte in it, bytes) of a name."""


class MarkerSyntax(Struct, frozen=True):
    """An architecture's way to write operands.

    Attributes:
        registers: their names without a prefix.
        prefix: stands in front of them.
        zero: names of registers that are always 0.
        other: matches names of registers that hold no integers.
        constant: matches a constant; its group "number" is one.
        memory: matches an operand in memory. Groups: "place" is a symbol, a distance or both,
            "base" and "index" name registers, "scale" is a factor and "shift" a power of two.
        relative: name of a base that the place's symbol is relative to; "" where there is none.
    """

    registers: Mapping[str, NamedRegister]
    prefix: str
    zero: frozenset[str]
    other: re.Pattern[str]
    constant: re.Pattern[str]
    memory: re.Pattern[str]
    relative: str = ""


class MarkerOperand(Struct, frozen=True):
    """The place of an argument of a static probe.

    The argument is a constant, the register `base`, or memory at `base` plus `index` times
    `scale` plus `symbol` plus `number`.

    Attributes:
        text: as the note has it.
        size: in bytes.
        signed: whether the number is.
        real: it is a floating number.
        problem: why it cannot be read; "" where it can.
        memory: whether it is in memory.
        base: a register, "" for none.
        first: first byte in the register; only of an argument that is in one.
        held: bytes that the register's name stands for.
        index: a register, "" for none.
        scale: of the index.
        symbol: name of a symbol, "" for none.
        number: the constant, or the distance.
        relative: the symbol's address is where the file is loaded plus its link address: it is
            written relative to the program counter.
    """

    text: str
    size: int = 0
    signed: bool = False
    real: bool = False
    problem: str = ""
    memory: bool = False
    base: str = ""
    first: int = 0
    held: int = 0
    index: str = ""
    scale: int = 1
    symbol: str = ""
    number: int = 0
    relative: bool = False

    @property
    def constant(self) -> bool:
        """True if it is nothing but a number."""
        return not self.memory and not self.base


def operands(text: str, syntax: MarkerSyntax, word: int) -> tuple[MarkerOperand, ...]:
    """Read a note's text of arguments; those behind the twelfth are left out.

    Args:
        text: the text.
        syntax: the architecture's.
        word: bytes of an address.
    """
    found: list[MarkerOperand] = []
    for piece in _pieces(text):
        if len(found) == MOST:
            break
        found.append(_operand(piece, syntax, word))
    return tuple(found)


def _pieces(text: str) -> Iterator[str]:
    """The operands of a text: blanks within brackets belong to them."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        if letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == " " and depth <= 0:
            if at > start:
                yield text[start:at]
            start, depth = at + 1, 0
    if len(text) > start:
        yield text[start:]


def _operand(text: str, syntax: MarkerSyntax, word: int) -> MarkerOperand:
    if len(text) > _LONGEST:
        return MarkerOperand(text[:_LONGEST], problem=f"it has more than {_LONGEST} characters")
    head = _HEAD.match(text)
    size, signed, real = (
        (int(head[2]), bool(head[1]), bool(head[3])) if head else (word, False, False)
    )
    body = text[head.end() :] if head else text
    if size not in SIZES:
        return MarkerOperand(text, problem=f"{size} bytes are no size of a number")
    whole = MarkerOperand(text, size, signed, real)
    name = body.removeprefix(syntax.prefix) if body.startswith(syntax.prefix) else ""
    if name in syntax.zero:
        return whole
    if name in syntax.registers:
        base, first, held = syntax.registers[name]
        return replace(whole, base=base, first=first, held=held)
    if name and syntax.other.fullmatch(name):
        return replace(whole, problem=f"register {name} holds no integer")
    if found := syntax.constant.fullmatch(body):
        return replace(whole, number=_signed(found["number"]))
    found = syntax.memory.fullmatch(body)
    place = None if found is None else _PLACE.fullmatch((found["place"] or "").strip())
    if found is None or place is None:
        return replace(whole, problem="it is not understood")
    return _in_memory(whole, syntax, found, place)


def _in_memory(
    whole: MarkerOperand, syntax: MarkerSyntax, found: re.Match[str], place: re.Match[str]
) -> MarkerOperand:
    parts = found.groupdict()
    base, index = parts.get("base") or "", parts.get("index") or ""
    numbers = [*_EACH.findall(place["before"] or ""), *_EACH.findall(place["after"])]
    symbol, number = place["symbol"] or "", sum(_signed(each) for each in numbers)
    relative = bool(syntax.relative) and base == syntax.relative
    if not base and not index and not symbol and not numbers:
        return replace(whole, problem="it is not understood")
    if relative:
        if index or not symbol:
            return replace(whole, problem=f"nothing is known at {whole.text.partition('@')[2]}")
        base = ""
    names = []
    for name in (base, index):
        known = syntax.registers.get(name) if name else ("", 0, 0)
        if known is None or known[1]:
            return replace(whole, problem=f"register {name} is no address")
        if name and known[2] < max(each[2] for each in syntax.registers.values()):
            return replace(whole, problem=f"register {name} is only a part of an address")
        names.append(known[0])
    scale = int(parts.get("scale") or 1) << int(parts.get("shift") or 0)
    return replace(
        whole,
        memory=True,
        base=names[0],
        index=names[1],
        scale=scale,
        symbol=symbol,
        number=number,
        relative=relative,
    )


def _signed(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    return sign * _plain(text.lstrip("+-"))


def _plain(digits: str) -> int:
    return int(digits, 16) if digits[:2] in ("0x", "0X") else int(digits)
