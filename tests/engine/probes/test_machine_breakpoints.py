"""Breakpoints in a machine: it ends as without them, and the processor tells of the same hits."""

import hashlib
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import capstone
import pytest
from machinekit import CODE, PRESENT, STACK, WRITABLE, bare, gate, map_page

from engine.arch import by_name
from engine.cpu import native, unicorn_planted_code
from engine.cpu.unicorn_planted import SLOT
from engine.insn.asm import assemble
from engine.insn.disasm import Disassembler
from engine.machine.addresses import KernelAddresses
from engine.machine.machine import BareMachine, MachineEnd
from engine.machine.probing import MachineProbes
from engine.probes import machine_breakpoints
from engine.probes.machine_breakpoints import MachineBreakpoints

pytestmark = pytest.mark.skipif(
    not native.possible(), reason="host code is for x86-64 hosts without KPROBE_TUI_PORTABLE"
)
Outcome = tuple[MachineEnd, list[int], str]
ADJUST = 0x10
"""The flag AF, which the emulator is not sure of where a hook reads it."""
ARCH = by_name("x86_64")
WINDOW = 0x4000_0000
IDT, LIMITS, ALIAS, NOWHERE = 0x8000, 0x7000, 0x100400, 0x1F0000
FUNCTION, HANDLER, MAPPER = CODE + 0x400, CODE + 0x500, CODE + 0x600
MAIN = f"""
    lidt [{LIMITS}]; mov ecx, 3;
    again: inc eax; dec ecx; jnz again;
    mov ecx, 4; mov edi, 0x11000; rep stosb; mov esi, 0x11000; mov ecx, 3; repe cmpsb;
    call {FUNCTION}; mov rdx, {FUNCTION}; call rdx; push rdx; call qword ptr [rsp];
    pop rbx; pushfq; pop r8; or r8, 1; push r8; popfq; setc r9b;
    lea r10, [rip + 5]; mov r11, [rip + 1]; mov ecx, 2; xor ebp, ebp;
    turn: inc ebp; cmp ebp, 9; loopne turn; jrcxz over; nop;
    over: mov eax, [{NOWHERE}]; add eax, 3; sti; nop; cli; mov r12, cr0; mov cr0, r12;
    mov r13, cr3; mov cr3, r13; cpuid; int3; int 0x30; nop; lock inc qword ptr [0x11010];
    lea rdx, [rip + 3]; jmp rdx; nop; call qword ptr [0x11020]; fninit; hlt
"""
CODES = {
    CODE: MAIN,
    FUNCTION: "add eax, 7; ret",
    HANDLER: "inc r14; iretq",
    MAPPER: f"mov qword ptr [{0x4000 + (NOWHERE >> 12) * 8}], {0x11003}; invlpg [{NOWHERE}]; "
    "inc r15; add rsp, 8; iretq",
}


def assembled(address: int, text: str) -> bytes:
    assert ARCH is not None
    return assemble(ARCH, address, text)


def program() -> BareMachine:
    """A machine with the program, and handlers of what it raises."""
    machine = bare(b"")
    for address, text in CODES.items():
        code = assembled(address, text)
        machine.cpu.memory[address : address + len(code)] = code
    struct.pack_into("<HQ", machine.cpu.memory, LIMITS, 0xFFF, IDT)
    struct.pack_into("<Q", machine.cpu.memory, 0x11020, FUNCTION)
    map_page(machine, NOWHERE, 0, 0)
    for vector, handler in ((3, HANDLER), (0x30, HANDLER), (14, MAPPER)):
        gate(machine, IDT, vector, handler)
    return machine


def places() -> list[int]:
    """The addresses of the instructions."""
    assert ARCH is not None
    return [
        insn.address
        for address, text in CODES.items()
        for insn in Disassembler(ARCH).decode(address, assembled(address, text))
    ]


def outcome(machine: BareMachine) -> Outcome:
    """How a machine ends: its end, registers and memory."""
    end, cpu = machine.run(), machine.cpu
    names = ("rax", "rbx", "rcx", "rdx", "rsp", "rbp", "rsi", "rdi", "eflags")
    registers = [cpu[name] for name in (*names, *(f"r{number}" for number in range(8, 16)))]
    return end, registers, hashlib.sha256(cpu.memory[:]).hexdigest()


def planted(machine: BareMachine, window: int = WINDOW) -> MachineBreakpoints:
    """The breakpoints of a machine."""
    assert ARCH is not None
    cpu = machine.cpu
    return MachineBreakpoints(ARCH, cpu, KernelAddresses(cpu), cpu.plant_at(window))


def probed(told: bool, chosen: list[int]) -> tuple[Outcome, list[tuple[int, ...]]]:
    """The outcome with probes, and their hits with some of the processor's state."""
    machine = program()
    seen: list[tuple[int, ...]] = []
    cpu = machine.cpu

    def at(place: int) -> Callable[[], None]:
        return lambda: seen.append(
            (place, cpu["rax"], cpu["rsp"], cpu["rcx"], cpu["eflags"] & ~ADJUST)
        )

    if told:
        probes = MachineProbes(cpu, KernelAddresses(cpu), lambda: 0)
        for place in chosen:
            probes.add(place, at(place), begins=False)
    else:
        breakpoints = planted(machine)
        for place in chosen:
            breakpoints.add(place, at(place))
        assert breakpoints.unreached == []
    return outcome(machine), seen


def test_the_program_does_what_it_is_for() -> None:
    machine = program()
    (end, registers, _) = outcome(machine)
    assert end.blocks > 30
    assert registers[-2:] == [2, 1]  # two software interrupts and a page fault
    assert machine.cpu["rsp"] == STACK


def test_all_instructions_at_once() -> None:
    """Blocks, registers and memory are those of a run without; hits are those that are told."""
    everywhere = places()
    assert len(everywhere) > 60
    ended, seen = probed(False, everywhere)
    assert ended == outcome(program())
    assert (ended, seen) == probed(True, everywhere)


@pytest.mark.slow
def test_each_instruction_alone() -> None:
    plain = outcome(program())
    for place in places():
        ended, seen = probed(False, [place])
        assert ended == plain, hex(place)
        assert (ended, seen) == probed(True, [place]), hex(place)


def test_slots_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, everywhere = probed(True, places())
    monkeypatch.setattr(machine_breakpoints, "WINDOW", 4 * SLOT)
    assert probed(False, places()) == (plain, everywhere)


def test_code_that_the_guest_writes_over() -> None:
    """It reads its own bytes, changes the probed instruction through an alias, and runs that."""
    machine, seen = bare(b""), list[Any]()
    text = f"""
        call {FUNCTION}; movzx ebx, byte ptr [{FUNCTION}];
        mov byte ptr [{ALIAS + 2}], 9; call {FUNCTION};
        mov dword ptr [{ALIAS}], 0x90c3c0ff; call {FUNCTION};
        mov byte ptr [{ALIAS}], 0xe9; mov dword ptr [{ALIAS + 1}], {HANDLER - FUNCTION - 5};
        call {FUNCTION}; hlt
    """
    for address, each in {
        CODE: text, FUNCTION: "add eax, 7; ret", HANDLER: "sub eax, 1000; ret"
    }.items():  # fmt: skip
        code = assembled(address, each)
        machine.cpu.memory[address : address + len(code)] = code
    text_page = FUNCTION & -4096
    map_page(machine, ALIAS & -4096, text_page, PRESENT | WRITABLE)
    breakpoints = planted(machine)
    breakpoints.add(FUNCTION, lambda: seen.append(machine.cpu["rax"]))
    machine.run()
    assert seen == [0, 7, 16, 17]
    assert machine.cpu["rax"] == 17 - 1000 & 0xFFFF_FFFF
    assert machine.cpu["rbx"] == 0x83


def test_a_breakpoint_of_the_guest_below_ours_is_delivered() -> None:
    machine, seen = program(), list[Any]()
    machine.cpu.memory[FUNCTION] = 0xCC
    machine.cpu["rip"] = CODE
    code = assembled(CODE, f"lidt [{LIMITS}]; call {FUNCTION}; hlt")
    machine.cpu.memory[CODE : CODE + len(code)] = code
    machine.cpu.memory[FUNCTION + 1] = 0xC3
    planted(machine).add(FUNCTION, lambda: seen.append(machine.cpu["r14"]))
    machine.run()
    assert (seen, machine.cpu["r14"], machine.cpu["rsp"]) == ([0], 1, STACK)


def test_a_probe_that_is_taken_out_and_one_that_comes_while_the_machine_runs() -> None:
    machine, seen = program(), list[Any]()
    breakpoints = planted(machine)
    cpu = machine.cpu

    def first() -> None:
        seen.append("first")
        breakpoints.remove(FUNCTION, first)
        breakpoints.add(FUNCTION + 3, lambda: seen.append("second"))

    breakpoints.add(FUNCTION, first)
    plain = outcome(program())
    assert outcome(machine)[1:] == plain[1:]
    assert seen[:2] == ["first", "second"]
    assert seen.count("first") == 1
    assert seen.count("second") == 4
    assert cpu["rsp"] == STACK


def test_the_window_is_executed_and_neither_read_nor_written() -> None:
    for text in (f"mov eax, [{WINDOW}]", f"mov dword ptr [{WINDOW}], eax"):
        machine = program()
        code = assembled(CODE, f"lidt [{LIMITS}]; mov ebx, 5; {text}; nop; hlt")
        machine.cpu.memory[CODE : CODE + len(code)] = code
        fault = assembled(MAPPER, "mov r15, cr2; hlt")
        machine.cpu.memory[MAPPER : MAPPER + len(fault)] = fault
        planted(machine).add(CODE + 8, lambda: None)
        machine.run()
        assert (machine.cpu["r15"], machine.cpu["rbx"]) == (WINDOW, 5)


def test_a_place_beyond_reach_loses_its_probe() -> None:
    machine = program()
    breakpoints = planted(machine, 1 << 40)
    relative = [
        place for place in places() if machine.cpu.memory[place : place + 3] == b"\x4c\x8d\x15"
    ]
    breakpoints.add(relative[0], lambda: None)
    assert outcome(machine)[1:] == outcome(program())[1:]
    assert breakpoints.unreached == relative


def test_bytes_are_the_instructions_beside_them() -> None:
    """As the assembler sees them: the names of the listing, and jumps that stay inside."""
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    source = Path(unicorn_planted_code.__file__).read_text(encoding="utf-8")
    listed = re.findall(r'^    "([0-9a-f]+)"  # (\w+)', source, re.MULTILINE)
    assert len(listed) > 80
    for digits, name in listed:
        (insn,) = engine.disasm_lite(bytes.fromhex(digits), 0)
        assert insn[2] == name, (digits, name)
    for piece in ("BLOCK", "EXCEPTION", "INVALID", "FETCH", "FILL"):
        decoded = list(engine.disasm_lite(getattr(unicorn_planted_code, piece), 0))
        starts = {at for at, _, _, _ in decoded}
        jumps = {
            int(text, 16) for _, _, name, text in decoded if name[0] == "j" and text[:2] == "0x"
        }
        assert jumps <= starts
