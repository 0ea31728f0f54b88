"""Instructions a program may not execute, places it may not jump to, code that changes itself."""

import re
from collections.abc import Callable

import pytest
from guestrun import Outcome

from engine import arch as architectures
from engine.arch.base import Arch
from engine.cpu import native

Attack = Callable[..., Outcome]

_X86_FAULTS = """hlt cli sti mov_from_cr0 mov_to_cr3 mov_to_cr4 mov_from_dr7 mov_to_dr0 wrmsr rdmsr
in out in_imm insb outsb
lgdt lidt lldt ltr invd wbinvd invlpg clts lmsw swapgs sysexit iretq int_20
bad_segment null_stack far_jump xsetbv noncanonical"""
_X86_ILLEGAL = """ud2 rsm vmlaunch monitor mwait kmovq evex evex_mask lock_bts lock_btr
lock_btc_imm"""
_X86_LENT = "vaddps vpxor vzeroupper vmovdqu vfmadd vpgatherdd"
"""What runs where the host lends it."""
_ARM_ILLEGAL = """msr_ttbr0 msr_vbar msr_sctlr mrs_sctlr mrs_currentel mrs_pmccntr mrs_hcr
msr_daifset msr_spsel msr_elr tlbi dc_ivac dc_isw ic_iallu at_s1e1r eret hvc smc drps dcps1 hlt udf
sve sme half_three_same half_three_same_high half_two_reg half_scalar"""
_RISCV_ILLEGAL = """csrr_mstatus csrr_sstatus csrr_mhartid csrw_satp csrw_mtvec csrw_cycle
csrr_event
csrr_unknown mret sret wfi sfence zeros ones long_one vector hypervisor bit_count later_load
later_product"""
# What Linux delivers: (signal, si_code).
EXPECTED = {
    "x86_64": {
        **dict.fromkeys(_X86_FAULTS.split(), (11, 128)),
        **dict.fromkeys(_X86_ILLEGAL.split(), (4, 2)),
        **dict.fromkeys(_X86_LENT.split(), (0, 0) if native.lends() else (4, 2)),
        "int3": (5, 128),
        "divide": (8, 1),
    },
    "aarch64": {
        **dict.fromkeys(_ARM_ILLEGAL.split(), (4, 1)),
        "brk": (5, 1),
        "wfi": (0, 0),  # Linux skips it
        "wfe": (0, 0),
        "kernel_jump": (11, 1),
        "kernel_read": (11, 1),
    },
    "riscv64": {
        **dict.fromkeys(_RISCV_ILLEGAL.split(), (4, 1)),
        **dict.fromkeys(("ebreak", "c_ebreak"), (5, 1)),
        **dict.fromkeys(("alignment", "reserved"), (7, 1)),
        **dict.fromkeys(("kernel_jump", "kernel_read"), (11, 1)),
    },
}
NAMED = {
    "x86_64": {
        "hlt": "hlt", "mov_from_cr0": "mov rax, cr0", "wrmsr": "wrmsr", "out": "out dx, al",
        "in_imm": "in eax, 0x60", "lgdt": "lgdt", "iretq": "iretq", "ud2": "ud2",
        "kmovq": "no instruction that has a VEX prefix", "evex": "vaddpd zmm2, zmm1, zmm0",
    },
    "aarch64": {
        "msr_ttbr0": "msr ttbr0_el1, x0", "tlbi": "tlbi vmalle1", "eret": "eret",
        "hvc": "hvc #0", "smc": "smc #0", "udf": "udf #0", "sve": "ptrue p0.b",
    },
    "riscv64": {
        "csrr_mstatus": "csrr a0, mstatus", "mret": "mret", "wfi": "wfi", "zeros": "c.unimp",
        "sfence": "sfence.vma", "csrr_event": "counter of hardware events",
        "later_load": "reserved instruction",
    },
}  # fmt: skip
NAMED_CASES = [(arch, insn) for arch, insns in NAMED.items() for insn in insns]


def _record(name: str) -> Arch:
    return architectures.by_name(name)


def test_every_forbidden_instruction_gives_its_signal_twice(attack: Attack, arch: str) -> None:
    done = attack("code", "each")

    assert done.code == 0
    found = dict(line.split(": ") for line in done.out.splitlines())
    wanted = {
        name: f"{signal}/{code} {signal}/{code}" for name, (signal, code) in EXPECTED[arch].items()
    }
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(("arch", "insn"), NAMED_CASES)
def test_the_message_names_the_instruction(attack: Attack, arch: str, insn: str) -> None:
    done = attack("code", "one", insn)

    signal = EXPECTED[arch][insn][0]
    assert done.code == 128 + signal
    assert f"killed by {'SIGILL' if signal == 4 else 'SIGSEGV'}" in done.err
    assert f"insn_{insn}+" in done.err
    assert NAMED[arch][insn] in done.err


@pytest.mark.parametrize("window", ["trampoline", "xol", "detour"])
def test_the_engines_windows_cannot_be_touched(attack: Attack, arch: str, window: str) -> None:
    start, size = getattr(_record(arch).plan, window)

    done = attack("code", "window", f"{start:#x}", size)

    assert done.code == 0
    facts = done.facts
    refused = {name for name, result in facts.items() if result < 0}
    assert refused >= {
        *("mprotect", "mprotect all", "munmap", "mmap over", "mmap across"),
        *("mremap onto", "mremap away", "mremap grow", "read into"),
    }
    assert facts["munmap around"] <= 0  # what is around it may go, it stays: see below
    assert facts["mapped at hint"] == 0
    assert facts["store"] == facts["execute at the end"] == 11


@pytest.mark.parametrize("window", ["xol", "detour"])
def test_a_jump_into_a_window_is_told(attack: Attack, arch: str, window: str) -> None:
    start, _ = getattr(_record(arch).plan, window)

    done = attack("code", "jump", f"{start + 64:#x}")

    assert done.code == 139
    assert f"execute at {start + 64:#x} in the engine's window [kprobe-tui:{window}]" in done.err


def _return_code(arch: str) -> int:
    """The address that signal handlers return to: in the trampoline window, or in the vDSO."""
    record = _record(arch)
    abi = record.linux.vdso
    if abi is None or not abi.returns:
        return record.plan.trampoline[0]
    base = record.plan.vdso + sum(pages for _, pages in abi.data) * 4096
    return base + abi.file.read_bytes().index(record.linux.signals.return_code)


def test_a_jump_to_the_trampoline_is_a_return_without_a_frame(attack: Attack, arch: str) -> None:
    done = attack("code", "jump", f"{_return_code(arch):#x}")

    # What the stack holds decides where the "frame" leads: nowhere that can be executed.
    assert done.code == 139
    assert re.search("rt_sigreturn without a signal frame|SIGSEGV: ", done.err)


@pytest.mark.parametrize("place", ["data", "stack", "map"])
def test_data_is_not_executable(attack: Attack, place: str) -> None:
    done = attack("code", "data", place)

    assert done.code == 139
    assert "SIGSEGV: execute at" in done.err
    assert "(rw-)" in done.err


def test_changed_code_is_what_runs(attack: Attack) -> None:
    done = attack("code", "modify")

    assert done.facts == dict.fromkeys(
        ("in place", "by mprotect", "by read", "by remapping", "by file", "across pages",
         "by moving"), 0
    )  # fmt: skip


def test_code_changed_through_another_mapping_is_what_runs(attack: Attack) -> None:
    assert attack("code", "alias").facts["by alias"] == 0
