"""Forms of x86-64 instructions of all opcode maps, as encodings put together from their parts.

Each has a register, memory at rbx and memory relative to rip for its operand, or an opcode alone;
what follows it in a program is its immediate. Many are no instruction: that is of interest, too.
"""

from collections.abc import Iterator

_OPERANDS = ("d1", "13", "1550505000")
_LEADING = frozenset({0x0F, 0x26, 0x2E, 0x36, 0x3E, *range(0x40, 0x50), 0x62, *range(0x64, 0x68)})
_SKIPPED = _LEADING | {0xC4, 0xC5, 0xD5, 0xF0, 0xF2, 0xF3}
_PREFIXES = (
    *("", "66", "f2", "f3", "48", "49", "4c", "6648", "f248", "f348", "40", "41"),
    *("64", "65", "67", "f0", "2e", "36", "3e", "26", "f266"),
)
_NO_SUCH = frozenset({0x34, 0x38, 0x3A})  # sysenter would not come back


def legacy() -> Iterator[str]:
    """Opcodes of one byte, of 0f, 0f 38 and 0f 3a behind prefixes."""
    for opcode in range(256):
        for prefix in _PREFIXES:
            if opcode not in _SKIPPED:
                yield f"{prefix}{opcode:02x}"
                for operand in _OPERANDS:
                    yield f"{prefix}{opcode:02x}{operand}"
            for escape in ("0f", "0f38", "0f3a"):
                if escape == "0f" and opcode in _NO_SUCH:
                    continue
                for operand in _OPERANDS:
                    yield f"{prefix}{escape}{opcode:02x}{operand}"


def vex() -> Iterator[str]:
    """The maps of VEX, in three bytes, and XOP's; with prefixes in front of the usual map."""
    for opcode in range(256):
        for number in (1, 2, 3):
            for last in range(32):
                wide, unused, long, prefix = last >> 4, last >> 3 & 1, last >> 2 & 1, last & 3
                third = wide << 7 | (15 if unused else 14) << 3 | long << 2 | prefix
                for operand in _OPERANDS:
                    yield f"c4{0xE0 | number:02x}{third:02x}{opcode:02x}{operand}"
        for number in (8, 9, 10):
            yield f"8f{0xE0 | number:02x}78{opcode:02x}d1"
        for leading in _PREFIXES[1:]:
            yield f"{leading}c5f1{opcode:02x}d1"


def evex() -> Iterator[str]:
    """The maps of EVEX, with and without a mask, in two lengths; and REX2."""
    for opcode in range(256):
        for number in (1, 2, 3, 5, 6):
            for last in range(64):
                wide, unused, prefix = last & 1, last >> 1 & 1, last >> 2 & 3
                mask, long = last >> 4 & 1, last >> 5
                third = wide << 7 | (15 if unused else 14) << 3 | 4 | prefix
                fourth = (2 * long) << 5 | 8 | mask
                for operand in _OPERANDS:
                    yield f"62{0xF0 | number:02x}{third:02x}{fourth:02x}{opcode:02x}{operand}"
        for payload in ("00", "08", "80", "88", "11"):
            yield f"d5{payload}{opcode:02x}d1"


def every_form() -> list[str]:
    """All of them, each once."""
    return [*dict.fromkeys((*legacy(), *vex(), *evex()))]
