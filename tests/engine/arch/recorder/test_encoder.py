"""Encoders do what `Encoder` says of each operation, and change nothing else: random operands."""

import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import methodcaller

import pytest
from probekit import CODE, DATA, SP, ProbeGuest

from engine.arch import ARCHES
from engine.arch.program import Compare
from engine.arch.recorder.encoder import (
    Combination,
    Encoder,
    NumberTest,
    RecorderRegisters,
    Shift,
    Way,
)

JUMPING = [listed.name for listed in ARCHES if listed.record.jumps is not None]
FLAGS = {"x86_64": 0x8D5, "aarch64": 0xF << 28}
MASK = (1 << 64) - 1
ONES = 0x0101010101010101
EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 63, MASK)
SHARED = DATA + 0x800
FAR = DATA + 0xF000

Emit = Callable[[Encoder], object]
Registers = dict[int, int]


def number(rng: random.Random) -> int:
    return rng.choice((rng.getrandbits(64), rng.getrandbits(8), rng.choice(EDGES)))


def signed(value: int, size: int = 8) -> int:
    value &= (1 << 8 * size) - 1
    return value - (value >> 8 * size - 1 << 8 * size)


class Bench:
    """Runs operations from random registers, and sees what has changed."""

    def __init__(self, arch: str, seed: str) -> None:
        self.rng = random.Random(arch + seed)
        self.guest = guest = ProbeGuest(arch)
        jumps = guest.arch.jumps
        assert jumps is not None
        self.encoder = jumps.encoder
        self.use = use = jumps.encoder(DATA).registers
        self.usual = (use.value, use.row, *use.others)
        self.name = {number: name for name, number in use.names.items()}
        self.memory = self.rng.randbytes(0x10000)

    def pick(self, count: int) -> list[int]:
        """Different registers."""
        return self.rng.sample(self.usual, count)

    def run(self, emit: Emit, values: Registers) -> int:
        """Run operations up to a trap; its offset from their beginning."""
        guest, encoder = self.guest, self.encoder(DATA)
        emit(encoder)
        encoder.trap()
        guest.memory.poke(DATA, self.memory)
        guest.load(encoder.finished())
        flags = guest.arch.roles.flags
        self.flags = self.rng.getrandbits(64) & FLAGS[guest.arch.name]
        guest[flags] = guest[flags] & ~FLAGS[guest.arch.name] | self.flags
        self.values = {each: number(self.rng) for each in self.usual} | values
        for register, value in self.values.items():
            guest[self.name[register]] = value
        stop = guest.run_to_trap()
        return stop - CODE

    def check(
        self,
        emit: Emit,
        values: Registers,
        wanted: Registers,
        *,
        keeps: bool,
        but: Iterable[int] = (),
    ) -> None:
        """Compare registers and flags; those of `but` may have changed."""
        self.run(emit, values)
        guest = self.guest
        expected = self.values | {each: value & MASK for each, value in wanted.items()}
        got = {each: guest[self.name[each]] for each in expected}
        free = {*but, self.use.temporary} - wanted.keys()
        odd = {each for each in expected if got[each] != expected[each]} - free
        assert not odd, (got, expected)
        assert guest.sp == SP
        if keeps:
            assert guest[guest.arch.roles.flags] & FLAGS[guest.arch.name] == self.flags

    def word(self, address: int, size: int = 8) -> int:
        """Bytes of memory as they are before an operation."""
        return int.from_bytes(self.memory[address - DATA :][:size], "little")

    def now(self, address: int) -> int:
        return int.from_bytes(self.guest.memory.read(address, 8), "little")


@pytest.fixture(params=JUMPING)
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param, request.node.name)


def test_constants_copies_and_sums(bench: Bench) -> None:
    rng = bench.rng
    sums = (0, 1, -1, 8, 127, 128, -128, -129, 4095, 4096, -4096, 0x70001, -(1 << 30))
    for value in (*EDGES, ONES, -1, -ONES, 0x8080808080808080, *map(rng.getrandbits, range(64))):
        (target,) = bench.pick(1)
        bench.check(methodcaller("constant", target, value), {}, {target: value}, keeps=True)
    for value in sums:
        for source, target in (bench.pick(2), bench.pick(1) * 2):
            start = number(rng)
            emit = methodcaller("add", target, source, value)
            bench.check(emit, {source: start}, {target: start + value}, keeps=True)
    (target,) = bench.pick(1)
    bench.check(methodcaller("move", target, bench.use.sp), {}, {target: SP}, keeps=True)


def combined(how: Combination, one: int, other: int) -> int:
    return {
        Combination.ADD: one + other,
        Combination.SUB: one - other,
        Combination.AND: one & other,
        Combination.OR: one | other,
        Combination.XOR: one ^ other,
        Combination.AND_NOT: one & ~other,
        Combination.OR_NOT: one | ~other,
    }[how]


def shifts(rng: random.Random) -> Iterator[Shift | None]:
    yield None
    for way in Way:
        yield Shift(way, rng.randrange(1, 64))


def shifted(value: int, shift: Shift | None) -> int:
    if shift is None:
        return value
    if shift.way is Way.LEFT:
        return value << shift.bits & MASK
    return (value if shift.way is Way.RIGHT else signed(value)) >> shift.bits


@pytest.mark.parametrize("how", Combination)
def test_combinations(bench: Bench, how: Combination) -> None:
    rng, sp = bench.rng, bench.use.sp
    for _ in range(4):
        for shift in shifts(rng):
            first, second, third = bench.pick(3)
            for target, one, other in (
                (first, second, third),
                (first, first, second),
                (first, second, first),
            ):
                values = {one: number(rng), other: number(rng)}
                result = combined(how, values[one], shifted(values[other], shift))
                keeps = how is Combination.ADD and shift is None
                changed = () if shift is None else (other,)
                bench.check(
                    methodcaller("combine", how, target, one, other, shift),
                    values,
                    {target: result},
                    keeps=keeps,
                    but=changed,
                )
        if how in (Combination.ADD, Combination.SUB):
            target, other = rng.choice((bench.pick(2), bench.pick(1) * 2))
            value = number(rng)
            bench.check(
                methodcaller("combine", how, target, sp, other),
                {other: value},
                {target: combined(how, SP, value)},
                keeps=how is Combination.ADD,
            )


def test_combinations_with_constants(bench: Bench) -> None:
    for how in (Combination.AND, Combination.XOR):
        for constant in (1, -8, 1 << 63, 0x8080808080808080, ONES, 0xFFF0, 12345, 0x123456789):
            register, spare = bench.pick(2)
            value = number(bench.rng)
            bench.check(
                methodcaller("combine_constant", how, register, constant, spare),
                {register: value},
                {register: combined(how, value, constant)},
                keeps=False,
                but=(spare,),
            )


def test_bits_and_bytes(bench: Bench) -> None:
    rng = bench.rng
    for _ in range(40):
        low = rng.randrange(64)
        width = rng.choice((1, 64 - low, rng.randrange(1, 65 - low)))
        source, target = rng.choice((bench.pick(2), bench.pick(1) * 2))
        value = number(rng)
        wanted = value >> low & (1 << width) - 1
        emit: Emit = methodcaller("extract", target, source, low, width)
        bench.check(emit, {source: value}, {target: wanted}, keeps=False)
    for zeros in range(9):
        value = (rng.getrandbits(64) | rng.randrange(1, 256)) << 8 * zeros & MASK
        value |= (rng.randrange(1, 256) << 8 * zeros) & MASK
        (register,) = bench.pick(1)
        bench.check(
            methodcaller("count_bytes", register),
            {register: value},
            {register: zeros},
            keeps=False,
        )


def test_vector_registers(bench: Bench) -> None:
    for name, source in bench.use.vectors.items():
        (target,) = bench.pick(1)
        value = number(bench.rng)
        bench.guest[name] = bench.rng.getrandbits(64) << 64 | value
        bench.check(methodcaller("move_vector", target, source), {}, {target: value}, keeps=True)


def branches(bench: Bench, values: Registers, *operations: Emit) -> bool:
    """Whether the last of some operations goes to the label "there"."""
    places: list[int] = []

    def both(encoder: Encoder) -> None:
        for operation in operations:
            operation(encoder)
        encoder.trap()
        places.append(encoder.label("there"))

    return bench.run(both, values) == places[0]


COMPARED: dict[Compare, Callable[[int, int], bool]] = {
    Compare.EQ: lambda one, two: one == two,
    Compare.NE: lambda one, two: one != two,
    Compare.LT: lambda one, two: one < two,
    Compare.LE: lambda one, two: one <= two,
    Compare.GT: lambda one, two: one > two,
    Compare.GE: lambda one, two: one >= two,
    Compare.AND: lambda one, two: bool(one & two),
}


@pytest.mark.parametrize("compare", Compare)
def test_comparisons(bench: Bench, compare: Compare) -> None:
    rng = bench.rng
    ordered = compare not in (Compare.EQ, Compare.NE, Compare.AND)
    for _ in range(150):
        size, sign = rng.choice((1, 2, 4, 8)), ordered and rng.random() < 0.5
        mask = (1 << 8 * size) - 1
        value = number(rng)
        near = value + rng.choice((-1, 0, 0, 1, 1 << 8 * size - 1)) & mask
        constant = rng.choice((near, number(rng) & mask, rng.choice(EDGES) & mask))
        if sign:
            constant = signed(constant, size)
        kept = signed(value, size) if sign else value & mask
        wanted = COMPARED[compare](kept, constant)
        outcome = rng.random() < 0.5
        register = rng.choice(bench.usual[:1] + bench.usual[2:])
        what = NumberTest(compare, register, constant, size, sign)
        spare = bench.use.row
        jump = methodcaller("jump_if", what, "there", outcome=outcome, spare=spare)
        assert branches(bench, {register: value}, jump) is (wanted is outcome), what
        got = {each: bench.guest[bench.name[each]] for each in bench.usual}
        changed = {each for each in bench.usual if got[each] != bench.values[each]}
        allowed = {bench.use.temporary}
        if not bench.encoder(DATA).fits(constant, size):
            allowed.add(spare)
        assert changed <= allowed


@pytest.mark.parametrize("zero", [True, False])
def test_jumps_on_zero(bench: Bench, zero: bool) -> None:
    """Whatever flags say: they may be those of the register, of another one, or of no one."""
    for value in (0, 1, 1 << 63, 1 << 32, MASK):
        register, other = bench.pick(2)
        values, wanted = {register: value, other: 0}, (value == 0) is zero
        jump = methodcaller("jump_if_zero", register, "there", zero=zero)
        assert branches(bench, values, jump) is wanted
        for how in (Combination.XOR, Combination.SUB):
            before = methodcaller("combine", how, other, other, register)
            assert branches(bench, values, before, jump) is wanted
        tested = methodcaller("combine", Combination.OR, other, other, register)
        jump = methodcaller("jump_if_zero", other, "there", zero=zero)
        assert branches(bench, values, tested, jump) is wanted
        again = methodcaller("label", "again")
        assert branches(bench, values, tested, again, jump) is wanted


def look(
    encoder: Encoder, *, base: int, offset: int, piece: bytes, equal: bool, spare: int
) -> None:
    """Compare the second piece behind an offset."""
    left = encoder.reach(base, offset - len(piece)) + len(piece)
    encoder.jump_if_bytes(base, left, piece, "there", equal=equal, spare=spare)


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("same", [True, False])
def test_jumps_on_bytes(bench: Bench, same: bool, equal: bool) -> None:
    use, rng = bench.use, bench.rng
    for size in bench.encoder(DATA).pieces:
        for offset in (0, -24 * size, 200 * size, 70_000 * size):
            address = SHARED + 8 * rng.randrange(8)
            piece = bytearray(bench.memory[address - DATA :][:size])
            piece[rng.randrange(size)] ^= not same
            jump = partial(
                look,
                base=use.value,
                offset=offset,
                piece=bytes(piece),
                equal=equal,
                spare=use.row,
            )
            assert branches(bench, {use.value: address - offset}, jump) is (same is equal)


def test_loads_and_stores(bench: Bench) -> None:
    rng, sp = bench.rng, bench.use.sp
    for offset in (0, 1, -1, 8, 255, -256, 4095, 32760, 32768, -5000, 1 << 20, -(1 << 31)):
        for size in (1, 2, 4, 8):
            target, base = rng.choice((bench.pick(2), bench.pick(1) * 2))
            address = SHARED + rng.randrange(64)
            bench.check(
                methodcaller("load", target, base, offset, size),
                {base: address - offset},
                {target: bench.word(address, size)},
                keeps=True,
            )
    bench.guest.memory.poke(SP, bytes(range(1, 65)))
    for offset in (0, 8, 56):
        (target,) = bench.pick(1)
        wanted = int.from_bytes(bytes(range(1, 65))[offset : offset + 8], "little")
        bench.check(methodcaller("load", target, sp, offset), {}, {target: wanted}, keeps=True)
    for offset in (0, 8, 120, 128, 2048):
        register, base = bench.pick(2)
        value = number(rng)
        bench.check(
            methodcaller("store", register, base, offset),
            {register: value, base: SHARED},
            {},
            keeps=True,
        )
        assert bench.now(SHARED + offset) == value
    first, second, base = bench.pick(3)
    words = {first: bench.word(SHARED), second: bench.word(SHARED + 8)}
    bench.check(methodcaller("load_pair", first, second, base), {base: SHARED}, words, keeps=True)
    values = {first: number(rng), second: number(rng), base: SHARED}
    bench.check(methodcaller("store_pair", first, second, base), values, {}, keeps=True)
    assert (bench.now(SHARED), bench.now(SHARED + 8)) == (values[first], values[second])
    for size in (4, 8):
        target, base = bench.pick(2)
        value = rng.getrandbits(8 * size)
        wanted = bench.word(SHARED + 24, size) ^ value
        bench.check(
            methodcaller("differ", target, base, 24, size, value),
            {base: SHARED},
            {target: wanted},
            keeps=False,
        )


def test_what_detours_share(bench: Bench) -> None:
    rng, use = bench.rng, bench.use
    for address in (DATA, SHARED, FAR):
        for size in (4, 8):
            for target in bench.usual:
                wanted = {target: bench.word(address, size)}
                bench.check(methodcaller("read", target, address, size), {}, wanted, keeps=True)
        value = number(rng)
        bench.check(methodcaller("write", address), {use.value: value}, {}, keeps=True)
        assert bench.now(address) == value
        bench.check(methodcaller("increment", address), {}, {}, keeps=True, but=(use.value,))
        assert bench.now(address) == bench.word(address) + 1 & MASK
        spare = use.others[0] if use.temporary is None else use.temporary
        wanted = {use.value: bench.word(address) - bench.word(address + 8)}
        bench.check(methodcaller("clock", address, spare), {}, wanted, keeps=True, but=(spare,))


def linked(found: list[int], target: int, encoder: Encoder) -> None:
    found.append(encoder.return_address(target))


def test_the_return_address(bench: Bench) -> None:
    """It is where the architecture's calls leave it, on the stack or in the link register."""
    link = bench.guest.arch.roles.link
    address = number(bench.rng)
    bench.guest.memory.poke(SP, address.to_bytes(8, "little"))
    if link is not None:
        bench.guest[link] = address
    for target in bench.usual:
        found: list[int] = []
        bench.run(partial(linked, found, target), {})
        assert bench.guest[bench.name[found[0]]] == address
        assert found[0] == target or link is not None


def changing(use: RecorderRegisters, saved: Registers, flags: bool, encoder: Encoder) -> None:
    """All of a recorder but what it is for; its registers and flags change."""
    encoder.begin()
    if flags:
        encoder.hold_flags()
    encoder.keep(saved, flags=flags)
    for register in (use.value, *saved):
        encoder.constant(register, 0)
    if flags:
        encoder.combine_constant(Combination.XOR, use.row, 1, use.value)
        encoder.combine(Combination.SUB, use.value, use.value, use.row)
    encoder.give_back(saved, flags=flags)
    encoder.end(flags=flags)


@pytest.mark.parametrize("flags", [True, False])
def test_registers_and_flags_are_given_back(bench: Bench, flags: bool) -> None:
    use, rng = bench.use, bench.rng
    for _ in range(20):
        used = {use.value, use.row, *rng.sample(use.others, rng.randrange(len(use.others) + 1))}
        places = {register: 8 * at for at, register in enumerate(bench.usual)}
        saved = {each: at for each, at in places.items() if each in used - use.free}
        emit = partial(changing, use, saved, flags)
        bench.check(emit, {}, {}, keeps=True, but=use.free)
        for register, offset in saved.items():
            assert bench.now(DATA + offset) == bench.values[register]


@pytest.mark.parametrize("flags", [True, False])
def test_what_is_rejected_gives_back_as_much(bench: Bench, flags: bool) -> None:
    """Behind a filter of registers nothing has been saved but the register for values."""
    use = bench.use

    def emit(encoder: Encoder) -> None:
        encoder.begin()
        encoder.increment(SHARED)
        if flags:
            encoder.hold_flags()
            what = NumberTest(Compare.GE, use.others[0], 0, 4, False)
            encoder.jump_if(what, "rejected", outcome=True, spare=use.row)
        encoder.label("rejected")
        encoder.end(flags=flags)

    for _ in range(20):
        bench.check(emit, {}, {}, keeps=True, but=use.free)
