"""Instructions with a VEX prefix: what there is, what memory they touch, whole programs."""

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import capstone
import pytest
from barecpu import CODE, DATA, BareCpu
from compiled import build
from sessionkit import loaded

from engine.arch.base import TrapKind
from engine.arch.x86_64 import vex, vex_forms
from engine.cpu import native
from engine.cpu.base import Stop, StopKind
from engine.cpu.ram import PAGE

SOURCE = Path(__file__).parents[3] / "data" / "avx" / "threads.c"
_MD = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_MD.detail = True
_BMI = {capstone.x86.X86_GRP_BMI, capstone.x86.X86_GRP_BMI2}
needs_vectors = pytest.mark.skipif(
    not native.lends(), reason="the host has no AVX2 to lend, or its code is not wanted"
)


def _encodings() -> Iterator[tuple[int, int, bool, bytes]]:
    """(key, prefix, memory, code) of each form, with all that it leaves open."""
    for (key, prefix, memory), form in vex_forms.all_forms().items():
        for wide in (False, True) if form.wide is None else (form.wide,):
            for long in (False, True) if form.long is None else (form.long,):
                for reg in form.groups or {1}:
                    vvvv = 2 if form.has_register else 0
                    third = wide << 7 | (~vvvv & 15) << 3 | long << 2 | prefix
                    tail = b"\x86" + bytes(4) if memory else b"\xc6"
                    if form.size == "gather":
                        tail = b"\x84\x1e" + bytes(4)
                    head = bytes((0xC4, 0xE0 | key >> 8, third, key & 0xFF))
                    code = head + bytes((tail[0] | reg << 3,)) + tail[1:] + b"\x11"
                    yield key, prefix, memory, code


def test_all_forms_are_known_to_the_disassembler() -> None:
    seen = 0
    for key, prefix, memory, code in _encodings():
        found = vex.known(code)
        assert found is not None, (hex(key), prefix, memory, code.hex())
        insn = next(_MD.disasm(code, 0), None)
        if insn is None and found.form.wide is None and found.fields.wide:
            continue  # where W is of no account, it takes some to have to be clear
        assert insn is not None, code.hex()
        assert insn.mnemonic.startswith("v") or set(insn.groups) & _BMI, code.hex()
        assert insn.size == found.fields.size
        if memory and found.form.size != "gather":
            operand = next(each for each in insn.operands if each.type == capstone.x86.X86_OP_MEM)
            size = found.form.bytes(found.fields.wide, found.long)
            assert operand.size == size, (insn.mnemonic, size)
        seen += 1
    assert seen > 1000


@pytest.mark.parametrize(
    "code",
    [
        "c5fcfac1",  # vpsubd without 66
        "c5e82800",  # vmovaps with a register in vvvv
        "c4e37d06c1",  # cut off
        "c5f892d0",  # kmovw
        "c4e2fd16c1",  # vpermps with W
        "c4e26990041600",  # a gather with its mask as the index
        "66c5f877",  # 66 in front of VEX
        "c4e279cfc1",  # gf2p8mulb
    ],
)
def test_others_are_no_instructions(code: str) -> None:
    raw = bytes.fromhex(code)
    assert vex.known(raw) is None


def run(code: str, **registers: int) -> tuple[BareCpu, Stop]:
    """Some code up to a system call, or to where it stops."""
    cpu = BareCpu("x86_64", bytes.fromhex(code) + b"\x0f\x05")
    for name, value in registers.items():
        cpu.write_register(name, value)
    return cpu, cpu.run()


def wide(*words: int) -> int:
    return int.from_bytes(struct.pack("<8I", *words), "little")


END = DATA + 4 * PAGE


@needs_vectors
def test_masked_moves_touch_what_they_move() -> None:
    ones = 0xFFFFFFFF
    vectors = {"xmm1": wide(ones, ones, 0, 0, 0, 0, 0, 0), "xmm0": 0x55, "ymm0h": 0x66}
    cpu, stop = run("c4e2752c07", rdi=END - 8, **vectors)  # vmaskmovps ymm0, ymm1, [rdi]
    assert stop.kind is StopKind.SYSCALL
    assert (cpu.read_register("xmm0"), cpu.read_register("ymm0h")) == (0, 0)
    cpu, stop = run("c4e2752e07", rdi=END - 8, **vectors)  # vmaskmovps [rdi], ymm1, ymm0
    assert stop.kind is StopKind.SYSCALL
    assert cpu.read(END - 8, 8) == struct.pack("<2I", 0x55, 0)
    vectors["xmm1"] = wide(ones, ones, ones, 0, 0, 0, 0, 0)
    cpu, stop = run("c4e2752e07", rdi=END - 8, **vectors)
    assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, END, "write")
    assert cpu.read(END - 8, 8) == bytes(8)


@needs_vectors
def test_a_gather_that_faults_keeps_what_it_has() -> None:
    ones = 0xFFFFFFFF
    cpu = BareCpu(
        "x86_64", bytes.fromhex("c4e26d900c87 0f05")
    )  # vpgatherdd ymm1,[rdi+ymm0*4],ymm2
    cpu.write(END - 8, struct.pack("<2I", 7, 8))
    for name, value in (
        *(("rdi", END - 8), ("xmm0", wide(1, 0, 5000, 2, 0, 0, 0, 0)), ("ymm0h", 0)),
        *(("xmm1", wide(9, 9, 9, 9, 0, 0, 0, 0)), ("ymm1h", 0x99)),
        *(("xmm2", wide(ones, ones, 0, ones, 0, 0, 0, 0)), ("ymm2h", ones)),
    ):
        cpu.write_register(name, value)
    stop = cpu.run()
    assert (stop.kind, stop.address, cpu.pc) == (StopKind.FAULT, END, CODE)
    assert cpu.read_register("xmm1") == wide(8, 7, 9, 9, 0, 0, 0, 0)
    assert cpu.read_register("xmm2") == wide(0, 0, 0, ones, 0, 0, 0, 0)
    assert (cpu.read_register("ymm1h"), cpu.read_register("ymm2h")) == (0x99, ones)


@needs_vectors
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("c5fc2807", TrapKind.PRIVILEGED),  # vmovaps ymm0, [rdi]
        ("c5fd7f07", TrapKind.PRIVILEGED),  # vmovdqa [rdi], ymm0
        ("c5fc1007", None),  # vmovups ymm0, [rdi]
        ("c5fc5807", None),  # vaddps ymm0, ymm0, [rdi]
    ],
)
def test_some_want_their_operand_aligned(code: str, kind: TrapKind | None) -> None:
    for place in (DATA, DATA + 16):
        _, stop = run(code, rdi=place)
        if kind is not None and place % 32:
            assert (stop.kind, stop.trap) == (StopKind.TRAP, kind)
        else:
            assert stop.kind is StopKind.SYSCALL


@needs_vectors
def test_a_fault_is_where_the_operand_is() -> None:
    for code, access, at in (
        ("c5fc10448ff0", "read", END),  # vmovups ymm0, [rdi+rcx*4-16]
        ("c5fc11448ff0", "write", END),
        ("c5fa10440f20", "read", END + 8),  # vmovss xmm0, [rdi+rcx+32]
    ):
        cpu, stop = run(code, rdi=END - 28, rcx=4)
        assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, at, access)
        assert cpu.pc == CODE


@needs_vectors
def test_cpuid_does_not_tell() -> None:
    found = {}
    for leaf in (1, 7, 0x80000001):
        cpu, stop = run("0fa2", rax=leaf, rcx=0)
        assert stop.kind is StopKind.SYSCALL
        found[leaf] = cpu.read_register("rbx"), cpu.read_register("rcx")
    assert not found[1][1] & (1 << 12 | 1 << 22 | 1 << 28 | 1 << 29)  # FMA, movbe, AVX, F16C
    assert not found[7][0] & (1 << 3 | 1 << 5 | 1 << 8)  # BMI1, AVX2, BMI2
    assert not found[0x80000001][1] & 1 << 5  # lzcnt


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("avx")
    options = ("-static", "-O2", "-mavx2", "-pthread", "-D_GNU_SOURCE", "-w")
    return build(folder, "threads", SOURCE.read_text(), *options)


@needs_vectors
def test_threads_signals_and_children_keep_their_registers(program: Path) -> None:
    native_output = subprocess.run([program], capture_output=True, check=True, text=True).stdout
    for seed in (1, 2):
        with loaded(program, seed=seed) as guest:
            guest.run()
            assert guest.out == native_output
