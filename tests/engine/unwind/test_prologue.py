"""Rows read off instructions: small functions at every place, real ones against tables."""

import random
from collections.abc import Callable

import pytest
from assembling import UNASSEMBLED
from hypothesis import given, settings
from hypothesis import strategies as st
from unwindkit import guest

from engine.arch.aarch64 import AARCH64
from engine.arch.base import Arch
from engine.arch.x86_64 import X86_64
from engine.errors import GuestFaultError
from engine.guest.modules import Module
from engine.image import ElfImage
from engine.insn.asm import assemble
from engine.unwind.dwarf import DwarfTables
from engine.unwind.functions import Functions
from engine.unwind.prologue import Prologues
from engine.unwind.rows import AtCfa, Caller, CfaRegister, CfiRow, SameValue
from engine.unwind.unwinder import Unwinder, UnwindGuest

pytest.importorskip("keystone", reason=UNASSEMBLED, exc_type=ImportError)

CODE = 0x40_0000
HINTS = {  # which the assembler does not know
    "endbr64": bytes.fromhex("f30f1efa"),
    "paciasp": bytes.fromhex("3f2303d5"),
    "autiasp": bytes.fromhex("bf2303d5"),
}


class Function:
    """A function in memory, line by line."""

    def __init__(self, arch: Arch, *lines: str) -> None:
        self.arch = arch
        self.places: list[int] = []
        code = b""
        for line in lines:
            self.places.append(CODE + len(code))
            code += HINTS.get(line) or assemble(arch, CODE + len(code), line)
        self.code = code

    def read(self, address: int, size: int) -> bytes:
        if not CODE <= address < CODE + len(self.code):
            return b""
        return self.code[address - CODE : address - CODE + size]

    def row(self, line: int, *, entry: bool, exact: bool = True) -> CfiRow | None:
        """By the way from the entry, or by the way to the return alone."""
        known = (CODE, CODE + len(self.code)) if entry else None
        found = Prologues(self.arch, self.read, lambda address: known, lambda address: False)
        return next(found.rows(self.places[line], exact), None)


def cfa(row: CfiRow | None) -> tuple[str, int]:
    assert row is not None
    assert isinstance(row.cfa, CfaRegister)
    return row.cfa.register, row.cfa.offset


X86 = Function(
    X86_64,
    "endbr64",
    "push rbp",
    "mov rbp, rsp",
    "push rbx",
    "sub rsp, 0x28",
    "mov ebx, edi",
    "call 0x400100",
    "lea rsp, [rbp - 8]",
    "pop rbx",
    "pop rbp",
    "ret",
)
X86_OFFSETS = [8, 8, 16, 16, 24, 64, 64, 64, 24, 16, 8]

A64 = Function(
    AARCH64,
    "paciasp",
    "stp x29, x30, [sp, #-48]!",
    "mov x29, sp",
    "stp x19, x20, [sp, #16]",
    "sub sp, sp, #64",
    "bl 0x400100",
    "add sp, sp, #64",
    "ldp x19, x20, [sp, #16]",
    "ldp x29, x30, [sp], #48",
    "autiasp",
    "ret",
)
A64_OFFSETS = [0, 0, 48, 48, 48, 112, 112, 48, 48, 0, 0]


@pytest.mark.parametrize("entry", [True, False])
@pytest.mark.parametrize(
    ("function", "offsets"), [(X86, X86_OFFSETS), (A64, A64_OFFSETS)], ids=["x86_64", "aarch64"]
)
def test_every_place(function: Function, offsets: list[int], entry: bool) -> None:
    sp, fp = function.arch.roles.sp, function.arch.roles.fp
    for line, offset in enumerate(offsets):
        register, found = cfa(function.row(line, entry=entry))
        if register == sp:
            assert found == offset, line
        else:  # a stack pointer that comes back from the frame pointer
            assert (register, found) == (fp, 16 if fp == "rbp" else 48), line


@pytest.mark.parametrize("entry", [True, False])
def test_saved_registers(entry: bool) -> None:
    row = X86.row(6, entry=entry)
    assert row is not None
    assert row.rules["rip"] == AtCfa(-8)
    assert row.rules["rbp"] == AtCfa(-16)
    assert row.rules["rbx"] == AtCfa(-24)
    row = A64.row(6, entry=entry, exact=False)
    assert row is not None
    assert row.rules["x30"] == AtCfa(-40)
    assert row.rules["x29"] == AtCfa(-48)


def test_a_link_register_is_good_up_to_the_first_call() -> None:
    before, after = A64.row(1, entry=True), A64.row(6, entry=True, exact=False)
    assert before is not None
    assert after is not None
    assert before.rules["x30"] == SameValue()
    assert after.rules["x30"] == AtCfa(-40)


@pytest.mark.parametrize(
    ("function", "line", "expected"),
    [
        # linkage stubs, and the system call of clone3, which no table covers
        (Function(X86_64, "endbr64", "jmp qword ptr [rip + 0x1000]"), 1, ("rsp", 8)),
        (Function(X86_64, "push 3", "jmp qword ptr [rip + 0x1000]"), 1, ("rsp", 16)),
        (Function(AARCH64, "adrp x16, 0x410000", "ldr x17, [x16, #8]", "br x17"), 2, ("sp", 0)),
        (Function(X86_64, "syscall", "test eax, eax", "jl 0x400100", "ret"), 1, ("rsp", 8)),
        # a large frame through a register, and a stack that is aligned through another one
        (Function(AARCH64, "mov x16, #0x5000", "sub sp, sp, x16", "nop"), 2, ("sp", 0x5000)),
        (Function(X86_64, "mov eax, 0x12000", "sub rsp, rax", "nop"), 2, ("rsp", 0x12008)),
        (Function(X86_64, "lea r10, [rsp + 8]", "and rsp, -32", "nop"), 2, ("r10", 0)),
        (Function(X86_64, "push rbp", "mov rbp, rsp", "sub rsp, rcx", "nop"), 3, ("rbp", 16)),
    ],
)
def test_from_the_entry(function: Function, line: int, expected: tuple[str, int]) -> None:
    assert cfa(function.row(line, entry=True)) == expected


def test_paths_that_disagree_say_nothing_of_sp() -> None:
    """Two ways with different stacks meet: only the frame pointer is left."""
    function = Function(
        X86_64,
        "push rbp",
        "mov rbp, rsp",
        "test edi, edi",
        "je 0x40000a",
        "push rdi",
        "nop",
        "nop",
        "nop",
        "leave",
        "ret",
    )
    assert cfa(function.row(7, entry=True)) == ("rbp", 16)


def test_nobody_calls_the_entry_of_a_program() -> None:
    function = Function(X86_64, "xor ebp, ebp", "pop rsi", "hlt")
    found = Prologues(X86_64, function.read, lambda at: (CODE, CODE + 9), lambda at: at == CODE)
    row = next(found.rows(CODE, True))
    caller = row.caller(X86_64, {"rsp": 64, "rip": CODE}, _no_memory)
    assert isinstance(caller, Caller)
    assert (caller.pc, caller.cfa) == (None, 64)


def _no_memory(address: int, size: int) -> bytes:
    raise GuestFaultError(address, "read")


@given(st.binary(max_size=64), st.sampled_from([X86_64, AARCH64]), st.integers(0, 1 << 64))
@settings(max_examples=80)
def test_any_code_and_stack(code: bytes, arch: Arch, word: int) -> None:
    """Whatever stands there: an end with a reason, no exception."""

    def text(address: int, size: int) -> bytes:
        return code[address - CODE :][:size] if address >= CODE else b""

    view = UnwindGuest(
        arch,
        lambda address: None,
        lambda address, size: (word & (1 << 64) - 1).to_bytes(8, "little")[:size],
        text,
        lambda address: CODE <= address < CODE + len(code),
    )
    registers = dict.fromkeys((r.name for r in arch.registers if r.group == "general"), CODE)
    walk = Unwinder(view).walk(registers, limit=50)
    assert walk.end.text
    assert 0 < len(walk.frames) <= 50


@pytest.mark.parametrize("name", ["amd64/guests-static", "arm64/guests-static"])
def test_what_the_tables_say(name: str) -> None:
    """glibc's functions: padding and what follows a call that never returns aside."""
    image = ElfImage.open(str(guest(name)))
    arch = X86_64 if name.startswith("amd64") else AARCH64
    module = Module(name, image, 0)
    module_at: Callable[[int], Module | None] = lambda at: module if module.contains(at) else None  # noqa: E731
    tables = DwarfTables(arch, module_at)
    functions = Functions(arch, module_at)
    found = Prologues(arch, image.read_vaddr, functions.at, lambda address: False)
    chosen = random.Random(7).sample([f for f in module.symbols.functions() if f.size], 60)
    places = different = 0
    for function in chosen:
        at = function.address
        while at < function.address + function.size:
            insn = found.insn(at)
            if insn is None:
                break
            said, row = tables.row(at, True), next(found.rows(at, True), None)
            if said is not None and isinstance(said.cfa, CfaRegister):
                places += 1
                mine = row.cfa if row is not None else None
                fits = isinstance(mine, CfaRegister) and (
                    mine == said.cfa or mine.register != said.cfa.register
                )
                different += not fits
            at += insn.size
    assert places > 2000
    assert different <= places / 100


@pytest.mark.parametrize(("function", "offsets"), [(X86, X86_OFFSETS), (A64, A64_OFFSETS)])
def test_where_there_is_no_doubt(function: Function, offsets: list[int]) -> None:
    """A straight line from the entry or to the return: what may overrule a table."""
    known = (CODE, CODE + len(function.code))
    found = Prologues(function.arch, function.read, lambda at: known, lambda at: False)
    sp = function.arch.roles.sp
    for line, offset in enumerate(offsets):
        row = found.certain(function.places[line], lambda start: True)
        assert row is not None, line
        assert cfa(row)[0] != sp or cfa(row)[1] == offset, line
    assert found.certain(CODE, lambda start: False) is None  # a call stands before the return


def test_a_return_through_another_register_is_doubtful() -> None:
    function = Function(AARCH64, "add x0, x14, x0", "ret x15")
    found = Prologues(AARCH64, function.read, lambda at: None, lambda at: False)
    assert found.certain(CODE, lambda start: True) is None


def test_a_stack_of_addresses_that_nobody_called_ends_soon() -> None:
    """A core with another build's program leads from one wrong return address to the next."""
    code = assemble(X86_64, CODE, "nop; nop; add rsp, 8; ret")

    def read(address: int, size: int) -> bytes:
        return code[address - CODE :][:size] if CODE <= address < CODE + len(code) else b""

    guest = UnwindGuest(
        X86_64,
        lambda address: None,
        lambda address, size: (CODE + 1).to_bytes(8, "little") * (size // 8),
        read,
        lambda address: True,
    )
    walk = Unwinder(guest).walk({"rip": CODE + 1, "rsp": 0x7000_0000, "rbp": 0})
    assert len(walk.frames) == 16
    assert walk.end.text == "no call stands in front of the last 16 return addresses"
