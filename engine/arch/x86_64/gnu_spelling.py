"""Instructions as GNU's disassembler writes them, in Intel's and in AT&T's syntax.

Capstone's Intel text is taken apart and written anew, as objdump and gdb have it: sizes in
capitals, numbers in hexadecimal, displacements that the encoding has though they are 0; and for
AT&T's syntax operands in the other order, with a size in the mnemonic where no register tells it.

Model: binutils 2.40, opcodes/i386-dis.c; the tests compare with objdump.
"""

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.machine import Insn, SpelledInsn

_PREFIXES: Final = frozenset(
    ("lock", "rep", "repe", "repz", "repne", "repnz", "bnd", "notrack", "data16", "xacquire")
)
_SIZES: Final = {
    "byte": 1,
    "word": 2,
    "dword": 4,
    "qword": 8,
    "xword": 10,
    "xmmword": 16,
    "ymmword": 32,
    "zmmword": 64,
}
_CAPITALS: Final = {"xword": "TBYTE"}
_SUFFIX: Final = {1: "b", 2: "w", 4: "l", 8: "q"}
_LEGACY: Final = frozenset((0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3))
_OPERAND: Final = re.compile(
    r"(?:(?P<size>[a-z]+) ptr )?(?:(?P<segment>[c-gs]s):)?\[(?P<inside>[^]]*)\](?P<rest>.*)"
)
_TERM: Final = re.compile(r"([+-]?)\s*([a-z]\w*|\d\w*)(?:\*(\d))?\s*")
_REGISTER_8: Final = re.compile(r"[abcd][lh]|(?:sp|bp|si|di)l|r\d+b")
_REGISTER_16: Final = re.compile(r"[abcd]x|sp|bp|si|di|r\d+w")
_REGISTER_32: Final = re.compile(r"e[abcd]x|e(?:sp|bp|si|di|ip|iz)|r\d+d")
_REGISTER_64: Final = re.compile(r"r[abcd]x|r(?:sp|bp|si|di|ip|iz)|r\d+")
_NAMED: Final = {"cwde": "cwtl", "cdqe": "cltq", "cdq": "cltd", "cqo": "cqto", "cbw": "cbtw"}
_ATT_NAMES: Final = {**_NAMED, "cwd": "cwtd", "retf": "lret", "retfq": "lretq"}
_RENAMED: Final = {
    "fucompi": "fucomip",
    "fcompi": "fcomip",
    "wait": "fwait",
    "pushfq": "pushf",
    "popfq": "popf",
    "iretd": "iret",
}
_SCALARS: Final = {
    f"{begin}{letter}": size
    for begin in ("comis", "vcomis", "ucomis", "vucomis")
    for letter, size in (("d", ("qword", 8)), ("s", ("dword", 4)))
}
_WIDENING: Final = {"movzx": "movz", "movsx": "movs"}
_ALL: Final = (1 << 64) - 1
_STRINGS: Final = {
    f"{name}{letter}": name
    for name in ("movs", "stos", "lods", "cmps", "scas", "ins", "outs")
    for letter in "bwdq"
}
_PORTS: Final = {"insb": "b", "insw": "w", "insd": "l", "outsb": "b", "outsw": "w", "outsd": "l"}
_FLOAT_SIZES: Final = {4: "s", 8: "l", 10: "t"}
_INTEGER_SIZES: Final = {2: "s", 4: "l", 8: "ll"}
_FLOATS: Final = re.compile(r"f(ld|st|stp|add|sub|subr|mul|div|divr|com|comp)")
_INTEGERS: Final = re.compile(r"fi(ld|st|stp|stt?p|add|sub|subr|mul|div|divr|com|comp)")
_CONVERSIONS: Final = re.compile(r"v?cvtsi2s[sd]")
_JUMPS: Final = ("call", "jmp", "lcall", "ljmp", "xbegin")
_SHIFTS: Final = frozenset(("shl", "sal", "shr", "sar", "rol", "ror", "rcl", "rcr"))
_SIZED: Final = frozenset(
    (
        *("mov", "add", "adc", "sub", "sbb", "cmp", "and", "or", "xor", "test", "inc", "dec"),
        *("neg", "not", "mul", "imul", "div", "idiv", "shl", "sal", "shr", "sar", "rol", "ror"),
        *("rcl", "rcr", "bt", "bts", "btr", "btc", "nop"),
    )
)
"""Instructions whose size AT&T's syntax writes behind the mnemonic where no register tells it."""


class _MemoryOperand(Struct, frozen=True):
    """An operand in memory.

    Attributes:
        size: in bytes, 0 if not told.
        word: of the size, as Capstone has it.
        segment: its register, "" without one.
        base: a register, or "".
        index: a register, or "".
        scale: what the index is multiplied by.
        shift: the displacement; None without one.
        rest: what stands behind it: masks and broadcasts.
    """

    size: int
    word: str
    segment: str
    base: str
    index: str
    scale: int
    shift: int | None
    rest: str = ""


class _NumberOperand(Struct, frozen=True):
    value: int


class _NamedOperand(Struct, frozen=True):
    text: str


_Operand = _MemoryOperand | _NumberOperand | _NamedOperand


def spelled(insn: Insn, flavor: str) -> SpelledInsn:
    """An instruction as gdb writes it with `set disassembly-flavor`."""
    prefixes, name = _mnemonic(insn)
    operands = [_operand(text, insn) for text in _split(insn.operands)]
    operands = [_shown(one, name, operands) for one in operands]
    if name == "nop" and not operands and 0x66 in insn.raw and insn.raw[-1] == 0x90:
        name, operands = "xchg", [_NamedOperand("ax"), _NamedOperand("ax")]
    name = _RENAMED.get(name, name)
    name, operands = _float_form(name, operands, _opcode(insn.raw), flavor)
    once = name in _SHIFTS and _opcode(insn.raw) in (0xD0, 0xD1)
    refers = next(
        (
            insn.address + insn.size + (one.shift or 0) & _ALL
            for one in operands
            if isinstance(one, _MemoryOperand) and one.base in ("rip", "eip")
        ),
        None,
    )
    if name in _STRINGS and not (operands and all(isinstance(o, _NamedOperand) for o in operands)):
        operands = _string_operands(name, operands)
    if flavor == "intel":
        name = _STRINGS.get(name, name) if _is_string(name, operands) else name
        texts = [_intel(one, refers) for one in operands]
        texts = [*texts[:-1], "1"] if once else texts
    else:
        operands = operands[:-1] if once else operands
        name, operands = _att_form(name, operands)
        jumps = name in _JUMPS or name.startswith(("j", "loop"))
        texts = [_att(one, jumps=jumps) for one in _att_order(name, operands)]
    words = [*prefixes, name]
    if not texts:
        return SpelledInsn(" ".join(words), refers)
    first = " ".join(words)
    return SpelledInsn(f"{first:<6} {','.join(texts)}", refers)


def _mnemonic(insn: Insn) -> tuple[list[str], str]:
    """Prefixes and the name."""
    *prefixes, name = insn.mnemonic.split()
    written = {"repne": "repnz", "repe": "repz"}
    prefixes = [written.get(one, one) for one in prefixes if one in _PREFIXES]
    if insn.operands.startswith("notrack "):
        prefixes.append("notrack")
    if name == "nop" and insn.operands:
        shorts = 0
        for byte in insn.raw:
            if byte == 0x66:
                shorts += 1
            elif byte not in _LEGACY:
                break
        prefixes = ["data16"] * max(shorts - 1, 0)
        prefixes += ["cs"] if "cs:" in insn.operands else []
    return prefixes, name


def _split(text: str) -> list[str]:
    """Operands, apart."""
    if not text:
        return []
    found, depth, current = [], 0, ""
    for character in text.removeprefix("notrack "):
        depth += (character in "[{(") - (character in "]})")
        if character == "," and not depth:
            found.append(current.strip())
            current = ""
        else:
            current += character
    return [*found, current.strip()]


def _operand(text: str, insn: Insn) -> _Operand:
    number = re.fullmatch(r"-?(?:0x[0-9a-f]+|\d+)", text)
    if number is not None:
        return _NumberOperand(int(text, 0))
    match = _OPERAND.fullmatch(text)
    if match is None:
        return _NamedOperand(re.sub(r" (?=\{)", "", text))
    base, index, scale, shift = "", "", 1, None
    for sign, word, times in _TERM.findall(match["inside"]):
        if word[0].isdigit():
            shift = int(word, 0) * (-1 if sign == "-" else 1)
        elif times or (base and not index):
            index, scale = word, int(times or 1)
        else:
            base = word
    word = match["size"] or ""
    size = _SIZES.get(word, 0)
    segment = match["segment"] or ""
    if shift is None and base and _has_displacement(insn):
        shift = 0
    return _MemoryOperand(
        size, word, segment, base, index, scale, shift, match["rest"].replace(" ", "")
    )


def _has_displacement(insn: Insn) -> bool:
    """True if the encoding has a displacement, which may be 0."""
    at = _modrm_at(insn.raw)
    return at is not None and insn.raw[at] >> 6 in (1, 2)


def _opcode_at(raw: bytes) -> int:
    """The place of the first byte behind the prefixes."""
    at = 0
    while at < len(raw) and raw[at] in _LEGACY:
        at += 1
    if at < len(raw) and raw[at] & 0xF0 == 0x40:
        at += 1
    return at


def _opcode(raw: bytes) -> int:
    """The first byte behind the prefixes; 0 without one."""
    return (raw[_opcode_at(raw) :] or b"\0")[0]


def _modrm_at(raw: bytes) -> int | None:
    """The place of the byte that names the operands; None for encodings that have none."""
    at = _opcode_at(raw)
    if at >= len(raw):
        return None
    first = raw[at]
    if first == 0xC5:
        at += 3
    elif first == 0xC4:
        at += 4
    elif first == 0x62:
        at += 5
    elif first == 0x0F and at + 1 < len(raw):
        at += 3 if raw[at + 1] in (0x38, 0x3A) else 2
    else:
        at += 1
    return at if at < len(raw) else None


def _register_size(name: str) -> int:
    """Bytes of a general register; 0 for others."""
    for size, pattern in (
        (1, _REGISTER_8),
        (2, _REGISTER_16),
        (4, _REGISTER_32),
        (8, _REGISTER_64),
    ):
        if pattern.fullmatch(name):
            return size
    return 0


def _size_of(one: _Operand) -> int:
    match one:
        case _MemoryOperand(size=size):
            return size
        case _NamedOperand(text=text):
            return _register_size(text)
    return 0


def _shown(one: _Operand, name: str, operands: list[_Operand]) -> _Operand:
    """An operand with what GNU writes of it."""
    if isinstance(one, _NumberOperand) and one.value < 0:
        size = next((s for s in map(_size_of, operands) if s), 8)
        size = {"enter": 2, "xabort": 1}.get(name, size)
        return _NumberOperand(one.value & ((1 << 8 * size) - 1))
    if isinstance(one, _MemoryOperand):
        if name in _SCALARS and one.size == 16:
            word, size = _SCALARS[name]
            return replace(one, word=word, size=size)
        if name == "lea":
            return replace(one, word="", size=0)
        if name == "nop" and one.segment == "cs":
            return replace(one, segment="")
    return one


def _is_string(name: str, operands: list[_Operand]) -> bool:
    return name in _STRINGS and not any(
        isinstance(one, _NamedOperand) and one.text.startswith("xmm") for one in operands
    )


def _float_form(
    name: str, operands: list[_Operand], opcode: int, flavor: str
) -> tuple[str, list[_Operand]]:
    """An instruction of the x87 between registers, with both of them."""
    first = operands[0] if operands else None
    if not isinstance(first, _NamedOperand) or not first.text.startswith("st("):
        return name, operands
    other, top = operands[-1], _NamedOperand("st")
    if len(operands) > 1 and isinstance(other, _NamedOperand) and other.text == "st(0)":
        other = first
    if opcode in (0xDC, 0xDE) and re.match(r"f(add|sub|mul|div)", name):
        if flavor == "att" and re.match(r"f(sub|div)", name):
            name = re.sub(r"^(f...)(r?)", lambda m: m[1] + ("" if m[2] else "r"), name)
        return name, [other, top]
    two = re.match(r"f(add|sub|mul|div|cmov|u?comi)", name)
    if two and opcode in (0xD8, 0xDA, 0xDB, 0xDF):
        return name, [top, other]
    return name, operands[:1]


def _string_operands(name: str, operands: list[_Operand]) -> list[_Operand]:
    """Operands of a string's instruction, with the segments that GNU writes."""
    if not _is_string(name, operands):
        return operands
    found: list[_Operand] = []
    for one in operands:
        if isinstance(one, _MemoryOperand):
            segment = "es" if one.base in ("rdi", "edi") else one.segment or "ds"
            found.append(replace(one, segment=segment))
        else:
            found.append(one)
    return found


def _number(value: int) -> str:
    return f"{value:#x}"


def _intel(one: _Operand, refers: int | None) -> str:
    match one:
        case _NumberOperand(value=value):
            return _number(value)
        case _NamedOperand(text=text):
            return text
    word = f"{_CAPITALS.get(one.word, one.word.upper())} PTR " if one.word else ""
    parts = one.base
    if one.index:
        parts += f"{'+' if parts else ''}{one.index}*{one.scale}"
    if not parts:
        where = f"{one.segment or 'ds'}:{_number((one.shift or 0) & 0xFFFFFFFFFFFFFFFF)}"
        return f"{word}{where}{one.rest}"
    shift = ""
    if one.shift is not None:
        value = one.shift
        if refers is not None and one.base == "rip":
            value &= 0xFFFFFFFFFFFFFFFF
        shift = f"{'-' if value < 0 else '+'}{_number(abs(value))}"
    elif not one.base:
        shift = "+0x0"
    segment = f"{one.segment}:" if one.segment else ""
    return f"{word}{segment}[{parts}{shift}]{one.rest}"


def _att(one: _Operand, *, jumps: bool) -> str:
    match one:
        case _NumberOperand(value=value):
            return _number(value) if jumps else f"${_number(value)}"
        case _NamedOperand(text="(dx)"):
            return "(%dx)"
        case _NamedOperand(text=text):
            register = re.sub(r"\b(?<!%)([a-z]\w*(?:\(\d\))?)(?!\})", r"%\1", text)
            register = re.sub(r"\{(k\d)\}", r"{%\1}", register)
            return f"*{register}" if jumps else register
    segment = f"%{one.segment}:" if one.segment else ""
    shift = ""
    if one.shift is not None:
        sign = "-" if one.shift < 0 else ""
        shift = f"{sign}{_number(abs(one.shift))}"
        if not one.base and not one.index:
            shift = _number(one.shift & 0xFFFFFFFFFFFFFFFF)
    elif not one.base and one.index:
        shift = "0x0"
    inside = f"%{one.base}" if one.base else ""
    if one.index:
        inside += f",%{one.index},{one.scale}"
    rest = re.sub(r"\{(k\d)\}", r"{%\1}", one.rest)
    text = f"{segment}{shift}{f'({inside})' if inside else ''}{rest}"
    return f"*{text}" if jumps else text


def _att_order(name: str, operands: list[_Operand]) -> list[_Operand]:
    if name in ("enter", "bound", "invlpga") or all(
        isinstance(o, _NumberOperand) for o in operands
    ):
        return operands
    return operands[::-1]


def _att_form(name: str, operands: list[_Operand]) -> tuple[str, list[_Operand]]:
    """The mnemonic of AT&T's syntax, and the operands that it has."""
    if not operands:
        return _ATT_NAMES.get(name, name), operands
    if name in ("in", "out", "ins", "outs", *_PORTS):
        operands = [
            _NamedOperand("(dx)") if one == _NamedOperand("dx") else one for one in operands
        ]
        if name in _PORTS:
            return name[:-1] + _PORTS[name], operands
    memory = next((one for one in operands if isinstance(one, _MemoryOperand)), None)
    if name in _WIDENING and len(operands) == 2:
        source, target = _SUFFIX[_size_of(operands[1])], _SUFFIX[_size_of(operands[0])]
        return f"{_WIDENING[name]}{source}{target}", operands
    if name == "movsxd":
        return "movslq", operands
    if _is_string(name, operands):
        sizes = [_size_of(one) for one in operands]
        told = any(isinstance(one, _NamedOperand) and one.text != "dx" for one in operands)
        base = _STRINGS[name]
        return (base if told else f"{base}{_SUFFIX[max(sizes)]}"), operands
    if memory is not None and _FLOATS.fullmatch(name):
        return f"{name}{_FLOAT_SIZES.get(memory.size, '')}", operands
    if memory is not None and _INTEGERS.fullmatch(name):
        return f"{name}{_INTEGER_SIZES.get(memory.size, '')}", operands
    if _CONVERSIONS.fullmatch(name) and memory is not None:
        return f"{name}{_SUFFIX.get(memory.size, '')}", operands
    if name in _SIZED and memory is not None:
        others = [one for one in operands if isinstance(one, _NamedOperand)]
        told = any(_register_size(one.text) and one.text != "cl" for one in others)
        if name in ("mov", "add", "adc", "sub", "sbb", "cmp", "and", "or", "xor", "test"):
            told = bool(others)
        if not told:
            return f"{name}{_SUFFIX.get(memory.size, '')}", operands
    return name, operands
