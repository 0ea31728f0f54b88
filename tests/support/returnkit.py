"""Guests with functions that return in all the ways there are."""

from typing import Any

import pytest
from archkit import ASSEMBLED
from assembling import UNASSEMBLED
from probekit import CODE, SP, ProbeGuest

from engine.arch.plan import Mode
from engine.insn.asm import in_hexadecimal
from engine.probes.kretprobe import Kretprobe

keystone = pytest.importorskip("keystone", reason=UNASSEMBLED, exc_type=ImportError)

F, G = CODE + 0x100, CODE + 0x200
each = pytest.mark.parametrize("arch", ASSEMBLED)
either = pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)

RECURSION = {
    "x86_64": (
        "mov edi, {n}; call {F}; nop; int3",
        "test edi, edi; je L1; push rdi; dec edi; call {F}; pop rdi; add eax, edi; ret;"
        "L1: xor eax, eax; ret",
    ),
    "aarch64": (
        "mov x0, #{n}; bl {F}; nop; brk #0xf000",
        "cbz x0, L1; stp x29, x30, [sp, #-32]!; str x0, [sp, #16]; sub x0, x0, #1; bl {F};"
        "ldr x1, [sp, #16]; add x0, x0, x1; ldp x29, x30, [sp], #32; ret; L1: ret",
    ),
}
TAIL = {
    "x86_64": ("call {F}; nop; int3", "jmp {G}", "mov eax, 7; ret"),
    "aarch64": ("bl {F}; nop; brk #0xf000", "b {G}", "mov x0, #7; ret"),
}
# f jumps out of its frame to where it would have returned, but when rsi/x1 is 0.
JUMP = {
    "x86_64": (
        "mov esi, 1; L1: call {F}; test esi, esi; je L2; dec esi; jmp L1; L2: int3",
        "test esi, esi; je L1; pop rax; jmp rax; L1: ret",
    ),
    "aarch64": (
        "mov x1, #1; L1: bl {F}; cbz x1, L2; sub x1, x1, #1; b L1; L2: brk #0xf000",
        "cbz x1, L1; br x30; L1: ret",
    ),
}


def assembled(arch: str, text: str, at: int, **values: Any) -> bytes:
    kinds = {
        "x86_64": (keystone.KS_ARCH_X86, keystone.KS_MODE_64),
        "aarch64": (keystone.KS_ARCH_ARM64, keystone.KS_MODE_LITTLE_ENDIAN),
    }
    mark = "#" * (arch == "aarch64")
    text = text.format(F=f"{mark}{F}", G=f"{mark}{G}", **values)
    code, _ = keystone.Ks(*kinds[arch]).asm(in_hexadecimal(text), at)
    return bytes(code)


def guest_of(
    arch: str, parts: tuple[str, ...], mode: Mode = Mode.STRICT, **values: Any
) -> ProbeGuest:
    guest = ProbeGuest(arch, mode=mode)
    for text, at in zip(parts, (CODE, F, G), strict=False):
        code = assembled(arch, text, at, **values)
        guest.memory.poke(at, code)
        guest.names.functions.append((at, at + len(code)))
    guest.pc, guest.sp = CODE, SP
    return guest


class Seen:
    """What a probe's return event was given."""

    def __init__(
        self, guest: ProbeGuest, probe: Kretprobe, name: str = "", to: Any = None
    ) -> None:
        self.rows: list[Any] = [] if to is None else to
        self.name = name
        self.guest = guest
        probe.record_return = self.record

    def record(self, thread: int, ret_addr: int, entry: tuple[int, ...] = ()) -> None:
        value = self.guest[self.guest.arch.probes.retval]
        self.rows.append((self.name, ret_addr, value, *entry))


def registered(guest: ProbeGuest, address: int = F, **options: Any) -> Kretprobe:
    probe = Kretprobe(addr=address, **options)
    guest.manager.register(probe)
    return probe
