"""Machine code against generated Python: random code, registers, memory and clock.

KPROBE_TUI_IA64_PROGRAMS=2000 has so many programs executed in all ways; KPROBE_TUI_IA64_SEED names
the first.
"""

import os
import random
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ia64kit import CODE, DATA, STACK, BareIa64, code

from engine.arch.ia64.bundle import TEMPLATES, Bundle
from engine.arch.ia64.decode import SlotInsn, decode_slot
from engine.arch.ia64.opcodes import Form, forms
from engine.arch.ia64.operands import FIELDS
from engine.cpu.base import Stop, StopKind
from engine.cpu.ia64.jit import available
from engine.cpu.ram import PAGE

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")

_TEMPLATES: Final = ("MII", "MMI", "MFI", "MIB", "MMF", "MFB", "MMB", "BBB", "MLX")
_STOPPING: Final = frozenset(
    (
        *("M37", "I19", "F15", "B9", "X1", "B8", "M25", "M32", "M33", "M35", "M38", "M39", "M40"),
        *("M41", "M42", "M43", "M44", "M45", "M46", "M47"),
    )
)
_OFTEN: Final = frozenset(
    (
        *("A1", "A4", "A6", "A8", "I11", "I15", "I16", "M1", "M3", "M4", "M5", "F1", "M18", "M19"),
        *("M7", "M8", "M9", "M10", "B1", "B2", "I23", "I26", "I28", "F4", "F10", "F11", "F2"),
    )
)
_BY_FORMAT: Final[dict[str, dict[str, list[Form]]]] = {unit: {} for unit in "MIFBX"}
for _form in forms():
    for _unit in _form.units:
        if _form.format not in _STOPPING:
            _BY_FORMAT[_unit].setdefault(_form.format, []).append(_form)
_BASES: Final = (2, 3, 31, 45)
_GENERAL: Final = (1, 8, 9, 10, 14, 15, 20, *range(32, 44))
_NAMES: Final = (
    *(f"r{at}" for at in range(128)),
    *(f"nat{at}" for at in range(128)),
    *(f"f{at}" for at in range(128)),
    *(f"b{at}" for at in range(8)),
    *("ip", "pr", "cfm", "bsp", "bspstore", "rnat", "pfs", "lc", "ec", "unat", "fpsr", "ccv"),
    *("psr", "csd"),
)
_BUNDLES: Final = 10
PROGRAMS: Final = int(os.environ.get("KPROBE_TUI_IA64_PROGRAMS", "24"))
SEED: Final = int(os.environ.get("KPROBE_TUI_IA64_SEED", "64"))
_PARTS: Final = 4
_NOP: Final = 1 << 27
_NOP_B: Final = 2 << 37


def _set(word: int, name: str, value: int) -> int:
    low, width = FIELDS[name]
    mask = (1 << width) - 1
    return word & ~(mask << low) | (value & mask) << low


def _word(source: random.Random, form: Form, at: int, forward: bool) -> int:
    """A word of a form with operands that let it do something, most of the time."""
    pick = source.choice
    word = source.getrandbits(41)
    for name, choices in (("r1", _GENERAL), ("r2", _GENERAL), ("p1", range(64))):
        word = _set(word, name, pick(choices))
    word = _set(word, "p2", pick(range(64))) if form.format[0] in "AIF" else word
    if form.format[0] == "M" and form.format not in ("M18", "M29", "M30", "M31", "M34"):
        word = _set(word, "r3", pick(_BASES))
        if form.format in ("M3", "M5", "M8", "M10", "M15") and source.random() < 0.8:
            word &= ~(15 << (6 if form.format in ("M5", "M10") else 13))
    elif form.format[0] in "AI" and form.format not in ("I26", "I27", "I28"):
        word = _set(word, "r3", pick(_GENERAL) if form.format != "A5" else pick(range(4)))
    elif form.format in ("I26", "I27", "I28", "M29", "M30", "M31"):
        word = _set(word, "r3", pick((25, 32, 36, 40, 64, 65, 66)))
    if form.format in ("B1", "B2", "B3"):
        target = source.randrange(at + 1 if forward else 0, _BUNDLES + 1)
        by = target - at
        word = word & ~(0xFFFFF << 13 | 1 << 36) | (by & 0xFFFFF) << 13 | (by >> 20 & 1) << 36
    if form.format == "A7":
        word = _set(word, "r2", 0)
    if form.format == "M34":
        sol = source.randrange(14)
        sof = sol + source.randrange(14, 40)
        word = word & ~(0x3FFFF << 13) | sof << 13 | sol << 20 | pick((0, 0, 1)) << 27
    word = word & ~form.mask | form.value
    no_predicate = form.format in ("B2", "M34", "M25") or not form.predicated
    return word & ~63 | (0 if no_predicate else pick((0, 0, 0, 6, 7, 16, 63)))


def _executes(insn: SlotInsn, source: random.Random) -> bool:
    """Whether an instruction is not illegal for what it is; a few that are may stay."""
    if source.random() < 0.01:
        return True
    if insn.form is None or insn.format in _STOPPING:
        return False
    if insn.format in ("M2", "M7", "M14") and source.random() < 0.7:
        return False  # makes the base register point anywhere
    if insn.format in ("A6", "A7", "A8", "I16", "I17", "I30", "F4", "F5"):
        return insn.field("p1") != insn.field("p2")
    if insn.format in ("B1", "B2") and insn.field("btype"):
        return insn.slot == 2
    return insn.format != "B4" or insn.field("btype") != 1


_TEMPLATE_OF: Final = {"M": "MMI", "I": "MII", "F": "MFI", "B": "BBB", "X": "MLX"}


def _program(source: random.Random, forward: bool, only: str = "", kind: str = "") -> bytes:
    """Bundles of any forms, or of a format that stands in a kind of slot, and no-operations."""
    out = b""
    for at in range(_BUNDLES):
        units = _TEMPLATE_OF[kind] if only else source.choice(_TEMPLATES)
        words: list[int] = []
        for unit in units.replace("LX", "X"):
            if only and (unit != kind or (only == "B2" and len(words) < 2)):
                words.append(_NOP if unit != "B" else _NOP_B)
                continue
            slot = 1 if unit == "X" else len(words)
            for _ in range(20):
                often = [name for name in _BY_FORMAT[unit] if name in _OFTEN]
                usual = often and source.random() < 0.5
                name = source.choice(often if usual else list(_BY_FORMAT[unit]))
                if forward and name in ("B4", "B5"):  # a branch register may lead back
                    name = "B1"
                if only:
                    name = only
                form = source.choice(_BY_FORMAT[unit][name])
                word = _word(source, form, at, forward)
                if _executes(decode_slot(unit, word, 0, slot), source):
                    break
            words.append(word)
        if units == "MLX":
            words.insert(1, source.getrandbits(41))
        number = TEMPLATES.index(units) | source.getrandbits(1)
        out += Bundle(number, (words[0], words[1], words[2])).pack()
    return out + code("M break.m 0x0")


def _number(source: random.Random) -> int:
    """A floating-point register's 82 bits; ordinary ones near each other, mostly."""
    kind = source.random()
    if kind < 0.1:
        return source.getrandbits(82)
    if kind < 0.2:
        special = (0, 1 << 81, 1 << 63, 0x1FFFE << 64, 0x1FFFF << 64 | 1 << 63, 0x1003E << 64)
        return source.choice(special)
    exponent = 0xFFFF + source.choice((0, 0, 1, -1, 60, -60, 63, 300, -300, 1023, -1022))
    fraction = source.choice((0, source.getrandbits(11) << 52, source.getrandbits(63)))
    return source.getrandbits(1) << 81 | exponent << 64 | 1 << 63 | fraction


def _prepare(cpu: BareIa64, source: random.Random, forward: bool) -> None:
    write, pick = cpu.write_register, source.choice
    write("bsp", STACK + 8 * source.randrange(62))
    write("cfm", pick((21, 21 | 13 << 7, 40 | 20 << 7 | 1 << 14 | 3 << 18 | 5 << 25 | 7 << 32)))
    for at in range(1, 128):
        write(f"r{at}", pick((0, 1, (1 << 64) - 1, source.getrandbits(64), source.getrandbits(8))))
        write(f"f{at}", _number(source))
    for at in _BASES:
        write(f"r{at}", DATA + 16 * source.randrange(16, 200))
    write("pr", source.getrandbits(64) | 1)
    for at in range(8):
        write(f"b{at}", CODE + 16 * (_BUNDLES if forward else source.randrange(_BUNDLES + 1)))
    write("lc", pick((0, 1, 4, source.getrandbits(64))))
    write("ec", pick((0, 1, 3)))
    write("pfs", pick((0, 12 | 7 << 7, 12 | 7 << 7 | 5 << 52, source.getrandbits(64))))
    write("unat", pick((0, 0, source.getrandbits(64))))
    write("ccv", source.getrandbits(2))
    masks = pick((0x3F, 0x3F, source.getrandbits(6)))
    controls = [pick((0xC, 0xC, 0x4E, 0, 8, 0x1C)) for _ in range(4)]
    controls[0] &= 63
    flags = sum((value | source.choice((0, 32)) << 7) << 6 + 13 * at
                for at, value in enumerate(controls))  # fmt: skip
    write("fpsr", masks | flags)
    cpu.write(DATA, source.randbytes(PAGE))
    if source.random() < 0.6:
        for at in source.sample((8, 9, 10, 14, 15, 20, *range(32, 44)), source.randrange(1, 7)):
            write(f"nat{at}", 1)


def _seen(cpu: BareIa64) -> tuple[object, ...]:
    state = cpu.state
    return (
        dict(zip(_NAMES, cpu.read_registers(_NAMES), strict=True)),
        (state.below, state.stack, any(state.stack_nats) and state.stack_nats, dict(cpu.alat)),
        (cpu.blocks(), list(cpu.last_branches)),
        cpu.read(DATA, PAGE),
    )


def _pair(program: bytes, seed: int, forward: bool) -> list[BareIa64]:
    cores = []
    for after in (0, 1):
        unaligned = bool(seed & 1)
        cpu = BareIa64(program, jit_after=after, emulate_unaligned=unaligned)
        _prepare(cpu, random.Random(seed), forward)
        cores.append(cpu)
    return cores


def _close(cores: list[BareIa64]) -> None:
    for cpu in cores:
        cpu.memory.close()


@pytest.mark.parametrize(
    ("kind", "only"), [(unit, name) for unit, names in _BY_FORMAT.items() for name in names]
)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_every_format_does_the_same(kind: str, only: str, seed: int) -> None:
    cores = _pair(_program(random.Random(f"{only}{seed}"), True, only, kind), seed, True)
    try:
        for _ in range(2 * _BUNDLES):
            stops = [cpu.run() for cpu in cores]
            assert stops[0] == stops[1]
            assert _seen(cores[0]) == _seen(cores[1])
            at = (cores[0].read_register("ip") & ~15) + 16
            if not CODE <= at < CODE + 16 * _BUNDLES:
                break
            for cpu in cores:
                cpu.write_register("ip", at)
    finally:
        _close(cores)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 48))
def test_code_without_loops_ends_in_the_same_state(seed: int) -> None:
    cores = _pair(_program(random.Random(seed), True), seed, True)
    try:
        for _ in range(3):
            stops = [cpu.run() for cpu in cores]
            assert stops[0] == stops[1]
            assert _seen(cores[0]) == _seen(cores[1])
            for cpu in cores:
                cpu.write_register("ip", (cpu.read_register("ip") & ~15) + 16)
    finally:
        _close(cores)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 48), st.integers(1, 30))
@example(49153, 1)  # br.wtop where it may not stand, its predicate false
def test_code_with_loops_is_in_the_same_state_at_every_quantum(seed: int, quantum: int) -> None:
    cores = _pair(_program(random.Random(seed), False), seed, False)
    try:
        for _ in range(6):
            stops = [cpu.run(quantum) for cpu in cores]
            assert stops[0] == stops[1]
            assert _seen(cores[0]) == _seen(cores[1])
            if stops[0].kind is not StopKind.QUANTUM:
                break
    finally:
        _close(cores)


@pytest.mark.parametrize("part", range(_PARTS))
def test_slots_blocks_and_machine_code_end_in_the_same_state(part: int) -> None:
    """Code without loops, slot by slot, as blocks of Python and as machine code."""
    for seed in range(SEED + part, SEED + PROGRAMS, _PARTS):
        program = _program(random.Random(seed), True)
        cores = _pair(program, seed, True)
        slots = BareIa64(program, emulate_unaligned=bool(seed & 1))
        _prepare(slots, random.Random(seed), True)
        try:
            for _ in range(3):
                stops = [cpu.run() for cpu in cores]
                states = [_seen(cpu) for cpu in cores]
                assert (stops[0], states[0]) == (stops[1], states[1]), seed
                assert _steps(slots) == stops[0], seed
                registers, below, _, memory = _seen(slots)  # only blocks keep the clock
                assert (registers, below, memory) == (*states[0][:2], states[0][3]), seed
                for cpu in (*cores, slots):
                    cpu.write_register("ip", (cpu.read_register("ip") & ~15) + 16)
        finally:
            _close([*cores, slots])


def _steps(cpu: BareIa64) -> Stop | None:
    """Execute slot by slot up to a stop."""
    for _ in range(3 * (_BUNDLES + 1)):
        stop = cpu.step()
        if stop is not None:
            return stop
    return None
