"""Lock prefixes stand only where a processor takes them (SDM volume 2, LOCK)."""

import capstone
import pytest
from barecpu import CODE, DATA, BareCpu

from engine.arch.base import TrapKind
from engine.cpu import native, unicorn_linkage, unicorn_locks
from engine.cpu.base import StopKind

needs_host_code = pytest.mark.skipif(
    not native.possible(), reason="the check is host code, which is not wanted or not possible"
)
SYSCALL = b"\x0f\x05"
VPADDD = b"\xc5\xfd\xfe\xc0"

# As the host's own processor does it; memory is [rbx].
TAKEN = {
    "add": "f00103",
    "adc of a byte": "f01003",
    "add of a number": "f083030a",
    "and of a number": "f0812301020304",
    "behind another prefix": "2ef0ff03",
    "in front of another": "f066ff03",
    "three times, and REX": "f0f0f0480103",
    "not": "f0f713",
    "neg of a byte": "f0f61b",
    "dec": "f048ff0b",
    "xchg": "f08703",
    "bts": "f00fab03",
    "btc of a number": "f00fba3b03",
    "cmpxchg": "f00fb10b",
    "xadd": "f00fc103",
    "cmpxchg8b": "f00fc70b",
}
REFUSED = {
    "mov": "f08b03",
    "cmp": "f03903",
    "cmp of a number": "f0833b0a",
    "add of a register": "f001c0",
    "add to a register": "f00303",
    "xadd of registers": "f00fc1c0",
    "bt": "f00fa303",
    "bt of a number": "f00fba2303",
    "shl": "f0d123",
    "shld": "f00fa40301",
    "test": "f0f60301",
    "mul": "f0f723",
    "push": "f0ff33",
    "call": "f0ff13",
    "nop": "f090",
    "ret": "f0c3",
    "far return": "f0cb",
    "a segment register": "f08e03",
    "a jump": "f07500",
    "addps": "f00f5803",
    "crc32": "f0f20f38f103",
    "vpaddd": "f0c5fdfec0",
    "behind another prefix": "66f08b03",
}


def _run(code: bytes) -> tuple[StopKind, TrapKind, int]:
    machine = BareCpu("x86_64", code + SYSCALL)
    machine.write_register("rbx", DATA)
    stop = machine.run()
    return stop.kind, stop.trap, machine.pc


def test_bytes_are_the_instructions_beside_them() -> None:
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoded = list(engine.disasm_lite(unicorn_locks._LOOK, 24))
    assert sum(size for _, size, _, _ in decoded) == len(unicorn_locks._LOOK)
    starts = {at for at, _, _, _ in decoded}
    jumps = {int(text, 16) for _, _, name, text in decoded if name[0] in "jc" and "0x" in text[:2]}
    assert len(jumps) >= 8
    assert jumps <= starts


@needs_host_code
@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    code = bytes.fromhex(TAKEN[name])
    assert _run(code) == (StopKind.SYSCALL, TrapKind.OTHER, CODE + len(code) + 2)


@needs_host_code
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert _run(bytes.fromhex(REFUSED[name])) == (StopKind.TRAP, TrapKind.ILLEGAL, CODE)


@needs_host_code
@pytest.mark.skipif(not native.lends(), reason="the host has no AVX2 to lend")
@pytest.mark.parametrize("name", ["mov", "cmp", "vpaddd"])
def test_refused_where_the_host_lends_instructions(name: str) -> None:
    """Which has another routine ask for bytes of code first."""
    taken = bytes.fromhex(TAKEN["add"])
    code = VPADDD + taken + bytes.fromhex(REFUSED[name])
    at = CODE + len(VPADDD + taken)
    assert _run(code) == (StopKind.TRAP, TrapKind.ILLEGAL, at)


@needs_host_code
def test_an_operand_that_looks_like_the_prefix_is_none() -> None:
    # mov al, 0xf0; mov esi, eax (the second byte is 0xc6); add eax, 0xf0f0f0f0; xor eax, esi
    code = bytes.fromhex("b0f0 89c6 05f0f0f0f0 31f0")
    assert _run(code)[0] is StopKind.SYSCALL


@needs_host_code
def test_a_row_of_prefixes_is_as_long_as_an_instruction_at_most() -> None:
    assert _run(b"\xf0" * 15 + b"\x01\x03")[0] is not StopKind.SYSCALL


@needs_host_code
def test_what_follows_a_prefix_may_be_missing() -> None:
    """The prefix is the last byte that can be executed."""
    machine = BareCpu("x86_64")
    end = max(region.end for region in machine.regions if region.perms & 4)
    machine.write(end - 1, b"\xf0")
    machine.write_register("rip", end - 1)
    stop = machine.run()
    assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, end, "execute")


def test_without_host_code_nothing_is_led(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    assert not unicorn_locks.refuse("x86_64")
    assert unicorn_locks.fetcher("nobody") == unicorn_linkage.address_of("cpu_ldub_code_nobody")
