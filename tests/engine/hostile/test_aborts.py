"""Instructions on which Unicorn 2.1.4 calls abort(): the guest gets SIGILL, the host lives.

The two lists are what an exhaustive search found: of AArch64 every value of bits 31 to 10 with
four values of the register fields, of x86-64 prefixed and VEX, EVEX, x87, 3DNow! forms by chance.
"""

from collections.abc import Callable
from itertools import product

import pytest
from barecpu import BareCpu
from guestrun import Outcome

from engine.arch.base import TrapKind
from engine.cpu.base import Stop, StopKind

Attack = Callable[..., Outcome]

# Bits 31 to 10; "-" is either.
_FAMILIES = """
0-001110-10-----001011 0--0111001111000----10 0--01110-1111000-0--10 0--01110-111100-0---10
0--011100111100--11-10 0-001110-1111001-11-10 0--01110110-----000111 0-001110110-----0010-1
0--0111011111001-1-010 0-101110-10-----000011 0-101110-111100--11010 0-101110110-----000-11
0-101110110-----00-111 0-10111011111001--0010 01--111001111000----10 01--1110-1111000-0--10
01--1110-111100-0---10 01--11100111100--11-10 01--111011111001-1-010 01011110-1111000--1110
011-1110-1111000--1010 011-11101111100--00010 01111110-1111001-11-10
"""
WAYS = ("mprotect", "modify", "alias", "across")


def _words() -> list[int]:
    words = set()
    for family in _FAMILIES.split():
        free = [index for index, bit in enumerate(family) if bit == "-"]
        for bits in product("01", repeat=len(free)):
            text = list(family)
            for index, bit in zip(free, bits, strict=True):
                text[index] = bit
            words.add(int("".join(text), 2) << 10)
    return sorted(words)


def _locked() -> list[bytes]:
    """Bit tests of registers behind a lock prefix."""
    prefixes = (
        b"\xf0",
        b"\x66\xf0",
        b"\xf0\x48",
        b"\xf2\xf0\x44",
        b"\x48\xf0\x66\x49",
        b"\xf0\x64",
    )
    registers = [
        bytes((0x0F, opcode, modrm))
        for opcode in (0xA3, 0xAB, 0xB3, 0xBB)
        for modrm in range(0xC0, 0x100, 7)
    ]
    immediate = [bytes((0x0F, 0xBA, modrm, 5)) for modrm in range(0xE0, 0x100)]
    return [prefix + code for prefix in prefixes for code in registers + immediate]


CASES = {
    "aarch64": [(word | 0x41).to_bytes(4, "little") for word in _words()],
    "x86_64": _locked(),
}
# One that the guest of `test_code` does not hold: planted while it runs.
ONE = {"aarch64": "d30cd96e", "x86_64": "f0410fbac705"}
BEFORE = {
    "aarch64": bytes.fromhex("e00300f9 00040091 e10340f9".replace(" ", "")),
    "x86_64": bytes.fromhex("48890424 48ffc0 488b0c24".replace(" ", "")),
}
"""Store x0 (rax), add one to it, load: what a block has in front."""


@pytest.fixture(params=CASES)
def arch(request: pytest.FixtureRequest) -> str:
    """Those on which Unicorn is known to give up."""
    return str(request.param)


def _cpu(arch: str) -> BareCpu:
    cpu = BareCpu(arch)
    if not cpu._guard.active:
        pytest.skip("the emulator's aborts cannot be caught here")
    return cpu


def test_the_list_is_whole() -> None:
    assert len(CASES["aarch64"]) == 810


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("stepped", [False, True])
def test_each_is_refused_where_it_stands(arch: str, before: bool, stepped: bool) -> None:
    cpu = _cpu(arch)
    front = BEFORE[arch] if before else b""
    counter = cpu.arch.linux.result
    for code in CASES[arch]:
        cpu.patch(0x400000, front + code + cpu.arch.breakpoint)
        cpu.write_register(cpu.arch.roles.pc, 0x400000)
        cpu.write_register(counter, 7)
        stop: Stop | None = None
        while stop is None:
            stop = cpu.step() if stepped else cpu.run()
        assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.ILLEGAL), code.hex()
        assert cpu.pc == 0x400000 + len(front), code.hex()
        assert cpu.read_register(counter) == 7 + before, code.hex()


def test_what_follows_runs(arch: str) -> None:
    cpu = _cpu(arch)
    code = CASES[arch][0]
    cpu.patch(0x400000, code + BEFORE[arch] + cpu.arch.breakpoint)
    cpu.write_register(cpu.arch.linux.result, 1)

    assert cpu.run().trap is TrapKind.ILLEGAL
    cpu.write_register(cpu.arch.roles.pc, 0x400000 + len(code))
    assert cpu.run().trap is TrapKind.BREAKPOINT
    assert cpu.read_register(cpu.arch.linux.result) == 2


def test_the_clock_does_not_tell(arch: str) -> None:
    """A jump to such a block and what stands in front cost as many ticks as without."""
    ticks = []
    harmless = {"aarch64": "1f2003d5", "x86_64": "90"}
    jump = {"aarch64": "04000014", "x86_64": "eb0e"}  # to 16 bytes from here
    for code in (bytes.fromhex(harmless[arch]), CASES[arch][0]):
        cpu = _cpu(arch)
        cpu.count_blocks(True)
        cpu.patch(0x400000, bytes.fromhex(jump[arch]))
        cpu.patch(0x400010, BEFORE[arch] + code + cpu.arch.breakpoint)
        cpu.run(1000)
        ticks.append(cpu.blocks())

    assert ticks[0] == ticks[1]


@pytest.mark.parametrize("way", WAYS)
def test_planted_in_a_running_program(attack: Attack, arch: str, way: str) -> None:
    done = attack("code", "planted", way, ONE[arch])

    assert done.code == 132
    assert "killed by SIGILL" in done.err
    assert done.out == ""
    assert "insn 0x" not in done.err


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_goes_on(attack: Attack, arch: str, way: str) -> None:
    harmless = {"aarch64": "1f2003d5", "x86_64": "6690"}[arch]
    done = attack("code", "planted", way, ONE[arch], harmless, ONE[arch])

    assert done.code == 0
    assert done.out.splitlines() == [
        f"{ONE[arch]}: 4", f"{ONE[arch]} again: 4", f"{harmless}: 0", f"{harmless} again: 0",
        f"{ONE[arch]}: 4", f"{ONE[arch]} again: 4",
    ]  # fmt: skip


def test_as_data_they_can_be_read(arch: str) -> None:
    """A value in the text that only looks like one stays what it is."""
    cpu = _cpu(arch)
    code = bytes.fromhex(ONE[arch])[:4]
    load = {"aarch64": "4000001802000014", "x86_64": "8b0502000000eb04"}  # and a jump over it
    cpu.patch(0x400000, bytes.fromhex(load[arch]) + code + cpu.arch.breakpoint)

    assert cpu.run().trap is TrapKind.BREAKPOINT
    assert cpu.read_register(cpu.arch.linux.result) == int.from_bytes(code, "little")
