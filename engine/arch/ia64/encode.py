"""Instructions from their parts: what probes and their slots put into bundles."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from engine.arch.ia64.bundle import SIZE, SLOT_MASK, Bundle
from engine.arch.ia64.decode import SlotInsn, decode_slot
from engine.arch.ia64.opcodes import Form, forms
from engine.arch.ia64.operands import (
    COMPLETERS,
    DISPLACEMENTS,
    FIELDS,
    IMMEDIATES,
    REGISTER_OPERANDS,
)
from engine.arch.ia64.text import APPLICATION_REGISTERS, CONTROL_REGISTERS, PERMUTATIONS

_ADDRESS: Final = 0xFFFFFFFFFFFFFFFF
_TOKEN: Final = re.compile(r"[a-z]+[a-z0-9]*")
_UNITS: Final = {"M": 0x08, "I": 0x00, "F": 0x0C, "B": 0x16}


@cache
def nop(unit: str, immediate: int = 0) -> int:
    """The word of a nop for a slot of a unit."""
    return assemble(f"nop.{unit.lower()} {immediate:#x}", unit)[0]


def branch(displacement: int, qp: int = 0) -> int:
    """The word of br.cond by bytes from its bundle; ValueError beyond 16 MiB."""
    return DISPLACEMENTS["target25"].put(displacement, 4 << 37 | qp)[0]


def long_branch(displacement: int, qp: int = 0) -> tuple[int, int]:
    """(X slot, L slot) of brl.cond.sptk.many by bytes from its bundle; any distance."""
    distance = displacement & _ADDRESS
    if distance >> 63:
        distance -= 1 << 64
    return DISPLACEMENTS["target64"].put(distance, 0xC << 37 | 1 << 12 | qp)


def move_long(register: int, value: int, qp: int = 0) -> tuple[int, int]:
    """(X slot, L slot) of movl."""
    return IMMEDIATES["imm64"].put(value & _ADDRESS, 6 << 37 | register << 6 | qp)


def long_jump(place: int, target: int) -> bytes:
    """A bundle that goes to another: {nop.m; brl.cond.sptk.many} with a stop."""
    word, extra = long_branch((target & -SIZE) - (place & -SIZE))
    return Bundle(5, (nop("M"), extra, word)).pack()


def rebased(insn: SlotInsn, moved: int) -> tuple[int, int]:
    """(word, L slot) of an instruction that stands `moved` bytes further on.

    It goes where it went: IP-relative operands are put right.

    Raises:
        ValueError: it does not reach that far.
    """
    name = insn.displaced
    if not name:
        return insn.word, insn.extra
    field = DISPLACEMENTS[name]
    distance = field.read(insn.word, insn.extra) - moved
    if name == "target64":
        distance = (distance + (1 << 63) & _ADDRESS) - (1 << 63)
    return field.put(distance, insn.word, insn.extra)


# -- text to words ---------------------------------------------------------------------------


@cache
def _patterns() -> tuple[tuple[Form, re.Pattern[str]], ...]:
    return tuple((form, re.compile(_pattern(form))) for form in forms())


def _pattern(form: Form) -> str:
    mnemonic = re.escape(form.mnemonic)
    for name in form.completers:
        spellings = {spelling for spelling in COMPLETERS[name][1] if spelling is not None}
        choice = "|".join(re.escape(item) for item in sorted(spellings, key=len, reverse=True))
        mnemonic = mnemonic.replace(re.escape("{" + name + "}"), f"(?P<c_{name}>{choice})")
    operands = _TOKEN.sub(
        lambda found: _operand(found[0]), re.sub(r"([\[\].])", r"\\\1", form.operands)
    )
    return f"{mnemonic} {operands}" if operands else mnemonic


def _operand(name: str) -> str:
    if name in REGISTER_OPERANDS:
        return REGISTER_OPERANDS[name].format(f"(?P<{name}>\\d+)")
    if name == "ar3":
        return r"ar\.?(?P<ar3>\w+)"
    if name == "cr3":
        return r"cr\.?(?P<cr3>\w+)"
    if name == "dahrn":
        return r"dahr(?P<dahrn>\d)"
    if name in IMMEDIATES or name in DISPLACEMENTS:
        return rf"(?P<{name}>@?-?\w+)"
    return name


def _number(text: str, names: dict[str, int]) -> int:
    return names[text] if text in names else int(text, 0)


_APPLICATION: Final = {name: number for number, name in APPLICATION_REGISTERS.items()}
_CONTROL: Final = {name: number for number, name in CONTROL_REGISTERS.items()}
_PERMUTATION: Final = {name: number for number, name in PERMUTATIONS.items()}


def _insert(form: Form, found: re.Match[str], address: int) -> Iterator[tuple[int, int]]:
    """The words that a match stands for; more than one where a completer is ambiguous."""
    word, extra = form.value, 0
    for name, text in found.groupdict().items():
        if name.startswith("c_"):
            bits, spellings = COMPLETERS[name[2:]]
            value = spellings.index(text)
            for bit in reversed(bits):
                word |= (value & 1) << bit
                value >>= 1
        elif name in REGISTER_OPERANDS:
            low, width = FIELDS[name]
            if int(text) >> width:
                raise ValueError(f"no such register: {text}")
            word |= int(text) << low
        elif name in ("ar3", "cr3"):
            names = _APPLICATION if name == "ar3" else _CONTROL
            word |= _number(text, names) << FIELDS["r3"][0]
        elif name in DISPLACEMENTS:
            distance = int(text, 16) - (address & -SIZE) & _ADDRESS
            signed = distance - (1 << 64) if distance >> 63 else distance
            word, extra = DISPLACEMENTS[name].put(signed, word, extra)
        else:
            field = IMMEDIATES[name]
            number = _number(text, _PERMUTATION)
            if field.signed and number >= 1 << 63:
                number -= 1 << 64
            word, extra = field.put(number, word, extra)
    for low, other, width, differ in form.equal:
        mask = (1 << width) - 1
        if form.mask >> low & mask:
            continue
        known = word >> other & mask
        word = word & ~(mask << low) | (known ^ differ) << low
    yield word, extra


def assemble(text: str, unit: str, address: int = 0) -> tuple[int, int]:
    """(word, L slot) of one instruction as objdump prints it, without its stop.

    Args:
        text: such as "(p06) br.cond.dptk.few 0x4000".
        unit: kind of slot that it is for; "X" for a long one.
        address: of the bundle, for IP-relative operands.

    Raises:
        ValueError: it is no instruction of that unit, or an operand does not fit.
    """
    qp = 0
    predicate = re.match(r"\(p(\d+)\)\s*", text)
    if predicate:
        qp, text = int(predicate[1]), text[predicate.end() :]
    text = " ".join(text.split())
    why = f"{text}: not an instruction of the {unit} unit"
    for form, pattern in _patterns():
        if unit not in form.units or (qp and not form.predicated):
            continue
        found = pattern.fullmatch(text)
        if found is None:
            continue
        try:
            for word, extra in _insert(form, found, address):
                if not form.mask & 63:
                    word |= qp
                if decode_slot(unit, word & SLOT_MASK, extra).form is not None:
                    return word & SLOT_MASK, extra
        except ValueError as error:
            why = f"{text}: {error}"
    raise ValueError(why)
