"""The copies of instructions, by their text, of all architectures."""

import pytest

from engine.arch import by_name
from engine.arch.dataflow import InsnCopies, number, split
from engine.arch.machine import Insn


class Registers(dict[str, int]):
    """Registers by name; those that are not given are 0."""

    def read_register(self, name: str) -> int:
        """The value of one."""
        return self.get(name, 0)

    def write_register(self, name: str, value: int) -> None:
        """Set one."""
        self[name] = value


def copies(arch: str, text: str, registers: Registers, raw: bytes = b"") -> InsnCopies:
    """The copies of an instruction."""
    flow = by_name(arch).data_flow
    assert flow is not None
    predicate, _, rest = text.rpartition(") ") if text.startswith("(") else ("", "", text)
    mnemonic, _, operands = rest.partition(" ")
    mnemonic = f"{predicate}) {mnemonic}" if predicate else mnemonic
    return flow().copies(Insn(0x1000, raw, mnemonic, operands, 4), registers)


def told(found: InsnCopies) -> list[str]:
    """The copies in short: target bytes, source bytes, what is above."""
    shown = []
    for one in found.copies:
        ends = [
            hex(part.value)
            if part.kind == "constant"
            else f"{part.name}[{part.first}:{part.size}]"
            for part in (one.target, one.source)
        ]
        shown.append(" ".join([*ends, f"{one.filled} {one.wider}" if one.wider else ""]).strip())
    return ["idle"] if found.idle else shown


@pytest.mark.parametrize(
    ("arch", "text", "wanted"),
    [
        ("x86_64", "mov rdi, qword ptr [rbx + 0x10]", ["rdi[0:8] [0:8]"]),
        ("x86_64", "mov dword ptr [rax], esi", ["[0:4] rsi[0:4]"]),
        ("x86_64", "mov eax, esi", ["rax[0:4] rsi[0:4] zero 4"]),
        ("x86_64", "mov ah, bl", ["rax[1:1] rbx[0:1]"]),
        ("x86_64", "mov byte ptr [rax], r13b", ["[0:1] r13[0:1]"]),
        ("x86_64", "movzx eax, byte ptr [rdi]", ["rax[0:1] [0:1] zero 7"]),
        ("x86_64", "movsxd rax, edx", ["rax[0:4] rdx[0:4] sign 4"]),
        ("x86_64", "push rbp", ["[0:8] rbp[0:8]"]),
        ("x86_64", "xor eax, eax", ["rax[0:4] 0x0 zero 4"]),
        ("x86_64", "add eax, ebx", []),
        ("x86_64", "lea rax, [rbx + 8]", []),
        ("x86_64", "cmove rax, rbx", ["idle"]),
        ("x86_64", "cmovne rax, rbx", ["rax[0:8] rbx[0:8]"]),
        ("x86_64", "xchg rax, rbx", ["rax[0:8] rbx[0:8]", "rbx[0:8] rax[0:8]"]),
        ("x86_64", "movups xmm0, xmmword ptr [rsi]", ["xmm0[0:16] [0:16]"]),
        ("x86_64", "movhps qword ptr [rdi], xmm1", ["[0:8] xmm1[8:8]"]),
        ("x86_64", "movq xmm0, rax", ["xmm0[0:8] rax[0:8] zero 8"]),
        ("aarch64", "ldp x29, x30, [sp], #0x20", ["x29[0:8] [0:8]", "x30[0:8] [8:8]"]),
        ("aarch64", "stp xzr, x1, [sp]", ["[0:8] 0x0", "[8:8] x1[0:8]"]),
        ("aarch64", "ldrb w0, [x1]", ["x0[0:1] [0:1] zero 7"]),
        ("aarch64", "ldrsw x0, [x1]", ["x0[0:4] [0:4] sign 4"]),
        ("aarch64", "sxtw x0, w1", ["x0[0:4] x1[0:4] sign 4"]),
        ("aarch64", "csel x0, x1, x2, eq", ["x0[0:8] x2[0:8]"]),
        ("aarch64", "ldr q0, [x1]", ["v0[0:16] [0:16]"]),
        ("aarch64", "swp x0, x1, [x2]", ["[0:8] x0[0:8]", "x1[0:8] [0:8]"]),
        ("aarch64", "add x0, x1, #1", []),
        ("ia64", "ld8 r14=[r15],8", ["r14[0:8] [0:8]"]),
        ("ia64", "ld4 r14=[r15];;", ["r14[0:4] [0:4] zero 4"]),
        ("ia64", "st1 [r14]=r15", ["[0:1] r15[0:1]"]),
        ("ia64", "(p06) mov r14=r15", ["idle"]),
        ("ia64", "(p07) mov r14=r15", ["r14[0:8] r15[0:8]"]),
        ("ia64", "alloc r35=ar.pfs,8,5,0", ["r35[0:8] pfs[0:8]"]),
        ("ia64", "sxt4 r14=r15", ["r14[0:4] r15[0:4] sign 4"]),
        ("ia64", "add r14=r15,r16", []),
    ],
)
def test_copies(arch: str, text: str, wanted: list[str]) -> None:
    registers = Registers(pr=1 | 1 << 7)
    assert told(copies(arch, text, registers)) == wanted


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ("03b50500", ["a0[0:8] [0:8]"]),  # ld a0, 0(a1)
        ("03e50500", ["a0[0:4] [0:4] zero 4"]),  # lwu a0, 0(a1)
        ("23b0a500", ["[0:8] a0[0:8]"]),  # sd a0, 0(a1)
        ("2e85", ["a0[0:8] a1[0:8]"]),  # c.mv a0, a1
        ("1385f5ff", []),  # addi a0, a1, -1
        ("13050500", ["a0[0:8] a0[0:8]"]),  # addi a0, a0, 0
        ("1b850500", ["a0[0:4] a1[0:4] sign 4"]),  # sext.w a0, a1
        ("2fb5c508", ["a0[0:8] [0:8]", "[0:8] a2[0:8]"]),  # amoswap.d
    ],
)
def test_copies_of_words(raw: str, wanted: list[str]) -> None:
    assert told(copies("riscv64", "", Registers(), bytes.fromhex(raw))) == wanted


def test_operands() -> None:
    assert split("x0, [x1, #8], {v0.8b, v1.8b}") == ["x0", "[x1, #8]", "{v0.8b, v1.8b}"]
    assert split("") == []
    assert (number("#0x10"), number("-4"), number("rax")) == (16, -4, None)
