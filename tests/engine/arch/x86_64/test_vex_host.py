"""Lent instructions in translations and outside, against this machine's processor."""

import random
import re
import subprocess
from pathlib import Path

import pytest
import vexforms
from barecpu import CODE, DATA, BareCpu
from compiled import build
from sessionkit import loaded

from engine.arch.base import TrapKind
from engine.arch.engines import LentCode
from engine.arch.x86_64 import vex, vex_host
from engine.cpu import native, unicorn_lent
from engine.cpu.base import Stop, StopKind
from engine.cpu.ram import PAGE
from engine.cpu.unicorn_screen import Screen

_RUNNER = Path(__file__).parents[3] / "data" / "avx" / "forms.c"
_SIGFPE = 8
pytestmark = pytest.mark.skipif(
    not native.lends(), reason="the host has no AVX2 to lend, or its code is not wanted"
)


@pytest.fixture
def screened(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The instructions that are carried out outside of translations, as they are."""
    seen: list[bytes] = []
    handle = Screen.handle

    def noting(self: Screen, cpu: BareCpu) -> object:
        assert self.met is not None
        seen.append(cpu.read(self.met, 3))
        return handle(self, cpu)

    monkeypatch.setattr(Screen, "handle", noting)
    return seen


def _built(folder: Path, seed: int, times: int) -> tuple[Path, list[bytes], list[str]]:
    """A program with random instructions, them, and what it tells on this machine."""
    draw = random.Random(seed)
    codes = list(vexforms.encodings(draw, times))
    table = folder / "table.S"
    table.write_text(vexforms.assembly(codes, draw))
    options = ("-static", "-O1", "-mavx2", "-w", str(table))
    program = build(folder, "forms", _RUNNER.read_text(), *options)
    done = subprocess.run([program], capture_output=True, check=True, text=True)
    return program, codes, done.stdout.splitlines()


def _emulated(program: Path) -> list[str]:
    with loaded(program) as guest:
        guest.run()
        return guest.out.splitlines()


def _differences(codes: list[bytes], one: list[str], other: list[str]) -> list[str]:
    """Lines that differ; processors differ in which bytes vmaskmovdqu may not access."""
    assert len(one) == len(other)
    found = []
    for first, second in zip(one, other, strict=True):
        code = codes[int(first.split()[0])]
        insn = vex.known(code)
        assert insn is not None
        if first != second and (insn.fields.key != vex.BYTES_BY_MASK or "signal 11" not in first):
            found.append(f"{code.hex()}: {first} / {second}")
    return found


def test_all_forms_do_what_they_do_here(tmp_path: Path, screened: list[bytes]) -> None:
    program, codes, natively = _built(tmp_path, 1, 1)
    assert len(codes) > 600
    raised = re.findall(r"signal (\d+)", "\n".join(natively))
    assert raised.count("11") > 100
    assert raised.count(str(_SIGFPE)) > 10

    assert _differences(codes, natively, _emulated(program)) == []
    assert screened == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [21, 22])
def test_many_instructions_do(seed: int, tmp_path: Path, screened: list[bytes]) -> None:
    program, codes, natively = _built(tmp_path, seed, 8)

    assert _differences(codes, natively, _emulated(program)) == []
    assert screened == []


def test_it_is_the_same_where_code_has_no_room(
    tmp_path: Path, screened: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, codes, natively = _built(tmp_path, 3, 1)
    _run("")  # an engine leads the fetch of code first
    codes_of_process = unicorn_lent._led("x86_64", vex_host.LENT)
    assert codes_of_process is not None
    put, left = codes_of_process._put, [100]

    def full(code: LentCode) -> int:
        left[0] -= 1
        return put(code) if left[0] >= 0 else 0

    monkeypatch.setattr(codes_of_process, "_put", full)
    monkeypatch.setattr(codes_of_process, "_places", {})

    emulated = _emulated(program)

    assert len(set(screened)) > 300
    floats = [line for line in _differences(codes, natively, emulated) if "signal 8" not in line]
    assert floats == []


def test_where_the_build_is_another_they_are_carried_out_outside(
    screened: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unicorn_lent._led("another", vex_host.LENT) is None
    monkeypatch.setattr(unicorn_lent, "_led", lambda target, insns: None)

    cpu, stop = _run("c5fdfec0 c4e2fd58c8")  # vpaddd ymm0, ymm0, ymm0; none
    assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.ILLEGAL)
    assert (cpu.pc, screened) == (CODE + 4, [b"\xc5\xfd\xfe", b"\xc4\xe2\xfd"])


def _run(code: str, **registers: int) -> tuple[BareCpu, Stop]:
    """Some code up to a system call, or to where it stops."""
    cpu = BareCpu("x86_64", bytes.fromhex(code) + b"\x0f\x05")
    for name, value in registers.items():
        cpu.write_register(name, value)
    return cpu, cpu.run()


@pytest.mark.parametrize(("code", "lower"), [("c5f877", 0x55), ("c5fc77", 0)])
def test_all_vectors_are_cleared_at_once(code: str, lower: int, screened: list[bytes]) -> None:
    values = {f"xmm{number}": 0x55 for number in range(16)}
    values |= {f"ymm{number}h": 0x66 for number in range(16)}

    cpu, stop = _run(code, **values)

    assert (stop.kind, screened) == (StopKind.SYSCALL, [])
    for number in range(16):
        assert cpu.read_register(f"xmm{number}") == lower
        assert cpu.read_register(f"ymm{number}h") == 0


def test_a_block_may_have_both_kinds(screened: list[bytes]) -> None:
    # vpaddd ymm0, ymm0, ymm0; vmovdqu ymm1, [rdi] with two segments; vpaddd ymm0, ymm0, ymm0
    cpu, stop = _run("c5fdfec0 6465c5fe6f0f c5fdfec0", rdi=DATA, xmm0=5, xmm1=7)

    assert (stop.kind, screened) == (StopKind.SYSCALL, [b"\x64\x65\xc5"])
    assert (cpu.read_register("xmm0"), cpu.read_register("xmm1")) == (20, 0)
    assert cpu.lent == 3


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("64c5fe6f0f", DATA + 32 + 16),  # vmovdqu ymm1, fs:[rdi]
        ("65c5fe6f0f", DATA + 48 + 16),
        ("65c5fe6f0c2500000000", 48),
        ("67c5fe6f0f", DATA + 16 & 0xFFFFFFFF),
        ("3e64c5fe6f4f08", DATA + 32 + 24),
        ("65c4e2ed8c0f", DATA + 48 + 16),  # vpmaskmovq ymm1, ymm2, gs:[rdi]
        ("64c4e2ed900c1f", DATA + 32 + 16),  # vpgatherdq ymm1, fs:[rdi+xmm3], ymm2
    ],
)
def test_segments_and_short_addresses(code: str, place: int, screened: list[bytes]) -> None:
    # vpaddd ymm4, ymm4, ymm4 in front
    cpu = BareCpu("x86_64", bytes.fromhex("c5ddfee4" + code) + b"\x0f\x05")
    cpu.write(DATA, bytes(range(128)))
    cpu.write_register("rdi", DATA + 16)
    cpu.write_register("fs_base", 32)
    cpu.write_register("gs_base", 48)
    cpu.write_register("xmm2", 1 << 63)
    stop = cpu.run()

    assert screened == []
    if DATA <= place < DATA + 128:
        assert stop.kind is StopKind.SYSCALL
        assert cpu.read_register("xmm1") & 0xFF == place - DATA
    else:
        assert (stop.kind, stop.address, cpu.pc) == (StopKind.FAULT, place, CODE + 4)


def test_the_first_may_be_one_that_the_emulator_takes_for_less(screened: list[bytes]) -> None:
    cpu, stop = _run("c4e2ed8c0f", rdi=DATA)  # vpmaskmovq ymm1, ymm2, [rdi]
    assert stop.kind is StopKind.SYSCALL
    cpu.write_register("rip", CODE)
    assert cpu.run().kind is StopKind.SYSCALL

    assert (len(screened), cpu.lent) == (1, 2)


def test_mxcsr_is_moved(screened: list[bytes]) -> None:
    # vdivss xmm0, xmm1, xmm2; vstmxcsr [rdi]; vldmxcsr [rdi+4]; vstmxcsr [rdi+8]
    code = "c5f25ec2 c5f8ae1f c5f8ae5708 c5f8ae5f10"
    for place in (DATA, DATA + PAGE - 2):
        cpu = BareCpu("x86_64", bytes.fromhex(code) + b"\x0f\x05")
        cpu.write(place + 8, (0x5F80).to_bytes(4, "little"))
        cpu.write_register("rdi", place)
        cpu.write_register("xmm1", 0x3F800000)
        cpu.write_register("xmm2", 0x40400000)
        assert cpu.run().kind is StopKind.SYSCALL
        assert cpu.read(place, 4) == (0x1FA0).to_bytes(4, "little")
        assert cpu.read(place + 16, 4) == (0x5F80).to_bytes(4, "little")
        assert cpu.read_register("mxcsr") == 0x5F80

    cpu, stop = _run("c5f8ae17", rdi=DATA)  # vldmxcsr [rdi]
    assert (stop.kind, cpu.read_register("mxcsr")) == (StopKind.SYSCALL, 0)
    cpu = BareCpu("x86_64", bytes.fromhex("90c5f8ae17"))
    cpu.write(DATA, b"\0\0\1\0")
    cpu.write_register("rdi", DATA)
    stop = cpu.run()
    assert (stop.kind, stop.number, cpu.pc) == (StopKind.TRAP, 13, CODE + 1)
    assert screened == []


def test_code_that_is_rewritten_is_translated_again(screened: list[bytes]) -> None:
    cpu, stop = _run("c5fdfec1", xmm0=10, xmm1=3)  # vpaddd ymm0, ymm0, ymm1
    found = []
    for opcode in (0xFA, 0xFE, 0xEF, 0xFA):  # vpsubd, vpaddd, vpxor
        found.append(cpu.read_register("xmm0"))
        cpu.patch(CODE + 2, bytes((opcode,)))
        cpu.write_register("rip", CODE)
        stop = cpu.run()

    assert (stop.kind, screened) == (StopKind.SYSCALL, [])
    assert (*found, cpu.read_register("xmm0")) == (13, 10, 13, 14, 11)


def test_an_instruction_may_end_with_its_page_and_not_behind_the_last() -> None:
    end = CODE + 4 * PAGE
    cpu = BareCpu("x86_64")
    cpu.write(end - 8, bytes.fromhex("c5fdfec0 c5fdfec0"))  # vpaddd ymm0, ymm0, ymm0, twice
    cpu.write_register("rip", end - 8)
    cpu.write_register("xmm0", 3)
    stop = cpu.run()
    assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, end, "execute")
    assert (cpu.pc, cpu.read_register("xmm0")) == (end, 12)

    cpu.patch(end - 4, bytes.fromhex("90c5fdfe"))
    cpu.write_register("rip", end - 8)
    stop = cpu.run()
    assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, end, "execute")
    assert (cpu.pc, cpu.read_register("xmm0")) == (end - 3, 24)

    cpu.patch(end - 4, bytes.fromhex("90906467"))
    cpu.write_register("rip", end - 8)
    stop = cpu.run()
    assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, end, "execute")
    assert (cpu.pc, cpu.read_register("xmm0")) == (end - 2, 48)


@pytest.mark.parametrize("place", [DATA + 64, DATA + PAGE - 10])
def test_their_accesses_are_seen(place: int) -> None:
    for code, write in (("c5fd7f07", True), ("c5fe7f07", True), ("c5fdfe07", False)):
        cpu = BareCpu("x86_64", bytes.fromhex(code) + b"\x90")
        cpu.write(DATA, bytes(range(256)) * 32)
        cpu.write_register("rdi", place)
        pages = {
            region.physical + at: region.start + at
            for region in cpu.regions
            for at in range(0, region.end - region.start, PAGE)
        }
        stop, seen = cpu.observe(pages)
        if place % 32 and code == "c5fd7f07":  # vmovdqa
            assert stop is not None
            continue
        assert stop is None
        assert {access.write for access in seen} == {write}
        touched = {
            at for access in seen for at in range(access.address, access.address + access.size)
        }
        assert touched == set(range(place, place + 32))
        if write:
            kept = {
                access.address + at: byte for access in seen for at, byte in enumerate(access.old)
            }
            assert kept == {at: at - DATA & 255 for at in touched}
        assert cpu.pc == CODE + 4


@pytest.mark.parametrize("place", [DATA + 64, DATA + PAGE - 10])
@pytest.mark.parametrize(
    ("code", "write", "touched"),
    [
        ("c4e2758e07", True, {*range(4, 8), *range(20, 24)}),  # vpmaskmovd [rdi], ymm1, ymm0
        ("c4e2758c07", False, {*range(4, 8), *range(20, 24)}),
        ("c4e275900497", False, {*range(8, 12), *range(24, 28)}),  # vpgatherdd [rdi+ymm2*4]
        ("c5f9f7c1", True, {7, 14}),  # vmaskmovdqu xmm0, xmm1
    ],
)
def test_accesses_of_elements_are_seen(
    code: str, write: bool, touched: set[int], place: int
) -> None:
    cpu = BareCpu("x86_64", bytes.fromhex(code) + b"\x90")
    cpu.write(DATA, bytes(range(256)) * 32)
    cpu.write_register("rdi", place)
    cpu.write_register("xmm1", 0x80 << 56 | 0x80 << 112)  # elements 1 and 5 with the next
    cpu.write_register("ymm1h", 1 << 63)
    cpu.write_register("xmm2", sum(at + 1 << 32 * at for at in range(4)))
    cpu.write_register("ymm2h", sum(at + 5 << 32 * at for at in range(4)))
    pages = {
        region.physical + at: region.start + at
        for region in cpu.regions
        for at in range(0, region.end - region.start, PAGE)
    }

    stop, seen = cpu.observe(pages)

    assert stop is None
    assert {access.write for access in seen} == {write}
    found = {at for access in seen for at in range(access.address, access.address + access.size)}
    assert {at - place for at in found} == touched


def test_flags_are_those_of_before_where_the_operand_faults() -> None:
    """Of an instruction that would have set them, too."""
    # cmp eax, ecx; vptest ymm0, [rdi]
    cpu, stop = _run("39c8 c4e27d1707", rdi=DATA - 0x800, rax=1, rcx=2)

    assert (stop.kind, stop.address, cpu.pc) == (StopKind.FAULT, DATA - 0x800, CODE + 2)
    assert cpu.read_register("eflags") & 0x8D5 == 0x95


@pytest.mark.parametrize("code", ["0f58c0", "c5f858c0"])  # addps and vaddps xmm0, xmm0
def test_bits_that_mxcsr_has_not_never_come_to_the_host(code: str) -> None:
    """They would end the process."""
    cpu = BareCpu("x86_64", bytes.fromhex("0fae0f" + code + "0f05"))  # fxrstor [rdi]
    cpu.write(DATA + 24, (0xFFFF1F80).to_bytes(4, "little"))
    cpu.write_register("rdi", DATA)
    assert cpu.run().kind in (StopKind.SYSCALL, StopKind.TRAP)

    cpu.write_register("mxcsr", 0xFFFF1F80)
    assert cpu.read_register("mxcsr") == 0x1F80
