"""A machine whose program has a timer, ports, strings and a handler, and that is stepped."""

import struct
import zlib
from collections.abc import Callable

from machinekit import CODE, bare, gate

from engine.arch import by_name
from engine.insn.asm import assemble
from engine.insn.disasm import Disassembler
from engine.machine.consolelog import ConsoleLog
from engine.machine.machine import BareMachine, NoInput
from engine.machine.stepping import SteppedMachine

X86 = by_name("x86_64")
IDT, POINTER, HANDLER = 0x8000, 0x7000, 0x30000
COUNTER, LOG = 0x40000, 0x50000
_MAPPED = 2 << 20
_FLAG_PARTS = range(0x88, 0xB0)
"""eflags without the arithmetic ones, and what these follow from: operands and operation."""

_HANDLE = """
push rax; push rdx
inc dword ptr [0x40000]
mov al, 0x20; out 0x20, al
pop rdx; pop rax
iretq
"""
_PROGRAM = """
lidt [0x7000]
mov al, 0x11; out 0x20, al
mov al, 0x30; out 0x21, al
mov al, 4; out 0x21, al
mov al, 1; out 0x21, al
mov al, 0xfe; out 0x21, al
mov al, 0x34; out 0x43, al
mov al, 9; out 0x40, al
mov al, 0; out 0x40, al
mov ebx, 0x50000
mov r8d, 300
xor r9d, r9d
sti
round:
  rdtsc
  mov [rbx], eax
  add ebx, 4
  lea rdi, [0x60000]
  mov ecx, 5
  mov eax, r8d
  rep stosb
  in al, 0x40
  add r9b, al
  test r8d, 7
  jnz next
  mov dx, 0x3f8
  mov al, 0x41
  out dx, al
  inc r9d
next:
  call function
  test r8d, 31
  jnz over
  hlt
over:
  dec r8d
  jnz round
cli
hlt
function:
  add r9d, 3
  imul r10d, r9d, 7
  push r10
  pop r11
  ret
"""


def _code(text: str, at: int) -> bytes:
    return assemble(X86, at, text.replace(";", "\n"))


def program(put: Callable[[bytes], None]) -> tuple[BareMachine, ConsoleLog, int]:
    """A machine with the program, its console, and the address of its function."""
    console = ConsoleLog(NoInput(), put)
    code = _code(_PROGRAM, CODE)
    machine = bare(code, console.put)
    console.attach(machine.clock, machine.halt)
    handler = _code(_HANDLE, HANDLER)
    machine.cpu.memory[HANDLER : HANDLER + len(handler)] = handler
    struct.pack_into("<HQ", machine.cpu.memory, POINTER, 0xFFF, IDT)
    gate(machine, IDT, 0x30, HANDLER)
    return machine, console, CODE + code.index(_code("add r9d, 3", CODE))


def stepped(machine: BareMachine) -> SteppedMachine:
    """What stops and steps a machine whose memory is mapped one to one."""
    decoder = Disassembler(X86)

    def count(start: int, end: int) -> int:
        found = 0
        while start < end:
            for each in decoder.decode(start, machine.cpu.memory[start : start + 15])[:1]:
                start += len(each.raw)
                found += 1
        return found

    return SteppedMachine(machine, count)


def seen(machine: BareMachine) -> tuple[int, bytes, int, int, int]:
    """All that a machine consists of: a checksum of the mapped memory, registers, flags, time.

    What flags are computed from is left out: it says nothing where they are known already.
    """
    cpu = machine.cpu
    state = cpu.state()
    registers = state[: _FLAG_PARTS.start] + state[_FLAG_PARTS.stop :]
    return (
        zlib.crc32(cpu.memory[:_MAPPED]),
        registers,
        cpu["eflags"],
        machine.clock.now,
        cpu.record.blocks,
    )
