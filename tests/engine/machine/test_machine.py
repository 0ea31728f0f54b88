"""A machine with a few instructions: exceptions, interrupts, changed code, and how it ends."""

import os
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import capstone
import pytest
from controlkit import sample
from machinekit import (
    CLI_HLT,
    CODE,
    NX,
    PRESENT,
    WRITABLE,
    bare,
    gate,
    map_page,
    ran,
)
from sessionkit import loaded

from engine.cpu import native, unicorn_system, unicorn_system_code
from engine.errors import CommandError
from engine.machine.machine import BareMachine, BootEnd
from engine.machine.rawdisk import ChangeBudget, HostImage, RawDisk

pytestmark = pytest.mark.skipif(
    not native.possible(), reason="host code is for x86-64 hosts without KPROBE_TUI_PORTABLE"
)

RET_1 = b"\xb8\x01\x00\x00\x00\xc3"
IDT = 0x8000


def call(address: int) -> bytes:
    """`mov rax, address; call rax`."""
    return b"\x48\xb8" + struct.pack("<Q", address) + b"\xff\xd0"


def with_table(code: bytes, **handlers: bytes) -> BareMachine:
    """A machine whose exceptions lead to handlers, by "vNUMBER"."""
    lidt = b"\x0f\x01\x1c\x25" + struct.pack("<I", 0x7000)
    machine = bare(lidt + code)
    struct.pack_into("<HQ", machine.cpu.memory, 0x7000, 0xFFF, IDT)
    for number, (name, body) in enumerate(handlers.items()):
        at = 0x20000 + 0x100 * number
        machine.cpu.memory[at : at + len(body)] = body
        gate(machine, IDT, int(name[1:]), at)
    return machine


def test_code_that_is_written_over_through_another_mapping_is_run_as_it_is() -> None:
    """Two functions of a page run, are rewritten through a mapping that is not executable."""
    code = call(0x20000) + b"\x89\xc3" + call(0x20100) + b"\x89\xc1"  # ebx, ecx
    code += b"\x48\xb8" + struct.pack("<Q", 0x30000)
    code += b"\xc7\x40\x01" + struct.pack("<I", 2)
    code += b"\xc7\x80" + struct.pack("<2I", 0x101, 2)
    code += call(0x20000) + b"\x89\xc6" + call(0x20100) + b"\x89\xc7" + CLI_HLT  # esi, edi
    machine = bare(code)
    map_page(machine, 0x20000, 0x50000, PRESENT)
    map_page(machine, 0x30000, 0x50000, PRESENT | WRITABLE | NX)
    machine.cpu.memory[0x50000 : 0x50000 + 6] = RET_1
    machine.cpu.memory[0x50100 : 0x50100 + 6] = RET_1
    assert machine.run().reason is BootEnd.OFF
    assert [machine.cpu[name] & 0xFFFFFFFF for name in ("rbx", "rcx", "rsi", "rdi")] == [
        1,
        1,
        2,
        2,
    ]


def test_code_that_a_device_writes_over_is_run_as_it_is() -> None:
    """A function has run; a disk's content comes to its page; the function is run again."""
    code = call(0x20000) + b"\x89\xc3" + b"\x66\xba\x34\x12\xee" + call(0x20000) + CLI_HLT
    machine = bare(code)
    machine.cpu.memory[0x20000 : 0x20000 + 6] = RET_1

    def come(port: int, size: int, value: int) -> None:
        if port == 0x1234:
            machine.cpu.store(0x1FFFF, b"\x90\xb8\x02")

    machine.write_port = come  # type: ignore[method-assign]
    assert machine.run().reason is BootEnd.OFF
    assert (machine.cpu["rbx"], machine.cpu["rax"]) == (1, 2)


def test_a_disk_interrupts_and_wakes_a_processor(tmp_path: Path) -> None:
    """The driver of a bare machine: a request, then hlt until line 11 comes, which is level."""
    (tmp_path / "image").write_bytes(b"0123456789abcdef" * 64)
    times = []
    for _ in range(2):
        setup = b"".join(
            b"\x66\xba" + struct.pack("<H", port) + b"\xb8" + struct.pack("<I", value) + out
            for port, value, out in (
                *((port, value, b"\xee") for port, value in (
                    *((0x20, 0x11), (0x21, 0x20), (0x21, 4), (0x21, 1), (0x21, 0xFB)),
                    *((0xA0, 0x11), (0xA1, 0x28), (0xA1, 2), (0xA1, 1), (0xA1, 0xF7)),
                    *((0xC014, 3),),
                )),
                *((0xC008, 1, b"\xef"), (0xC00C, 1, b"\xef"), (0xC014, 11, b"\xee")),
                *((0xC020, 0x9000, b"\xef"), (0xC028, 0xA000, b"\xef"), (0xC030, 0xB000, b"\xef")),
                *((0xC01C, 1, b"\x66\xef"), (0xC014, 15, b"\xee"), (0xC03C, 0, b"\x66\xef")),
            )
        )  # fmt: skip
        ended = b"\x66\xba\x38\xc0\xec\x88\xc3\xb0\x20\xe6\xa0\xe6\x20\x48\xcf"
        machine = with_table(setup + b"\xfb\xf4" + CLI_HLT, v43=ended)
        machine.add_disk(RawDisk(HostImage(str(tmp_path / "image")), ChangeBudget(0)))
        memory = machine.cpu.memory
        struct.pack_into("<QI2H", memory, 0x9000, 0xC000, 16, 1, 1)
        struct.pack_into("<QI2H", memory, 0x9010, 0xD000, 513, 2, 0)
        struct.pack_into("<3H", memory, 0xA000, 0, 1, 0)
        struct.pack_into("<I4xQ", memory, 0xC000, 0, 1)
        end = machine.run()
        assert (end.reason, machine.cpu["rbx"] & 0xFF) == (BootEnd.OFF, 1)
        assert memory[0xD000:0xD201] == b"0123456789abcdef" * 32 + b"\0"
        assert end.nanoseconds > 20_000
        times.append((end.nanoseconds, end.blocks))
    assert times[0] == times[1]


def test_two_machines_do_not_meet() -> None:
    """Each notices its own code alone; one that is gone is no other's."""
    for _ in range(3):
        test_code_that_is_written_over_through_another_mapping_is_run_as_it_is()
        other = bare(CLI_HLT)
        test_code_that_is_written_over_through_another_mapping_is_run_as_it_is()
        assert other.run().reason is BootEnd.OFF


@pytest.mark.parametrize(
    "code",
    [
        b"\x0f\x0b",
        b"\xcc",
        b"\x31\xd2\x31\xc0\xf7\xf0",
        b"\x48\xb8" + b"\x11" * 8 + b"\xff\xe0",
        b"\x48\xb8" + struct.pack("<Q", 0x7FFFF000) + b"\x0f\x22\xd8",
        b"\x0f\xff",
        b"\x48\xcf",
    ],
    ids=["ud2", "int3", "division", "nowhere", "tables", "invalid", "iretq"],
)
def test_what_nobody_can_deliver_shuts_the_processor_down(code: bytes) -> None:
    assert ran(code)[1].reason is BootEnd.FAULT


@pytest.mark.parametrize(
    ("code", "vector", "pushed"),
    [
        (b"\x0f\x0b", 6, 0),
        (b"\x0f\xff", 6, 0),
        (b"\xcc", 3, 0),
        (b"\x31\xd2\x31\xc9\xf7\xf1", 0, 0),
        (b"\x8b\x04\x25" + struct.pack("<I", 0x300000), 14, 1),
        (b"\xcd\x80", 0x80, 0),
    ],
    ids=["ud2", "invalid", "int3", "division", "page", "int"],
)
def test_an_exception_comes_to_its_handler(code: bytes, vector: int, pushed: int) -> None:
    """Its handler finds rip, cs, rflags, rsp and ss on the stack, behind an error code."""
    body = b"\x58" * pushed + b"\x5b\x59\x5a\x5e\x5f" + CLI_HLT
    machine = with_table(code, **{f"v{vector}": body})
    machine.cpu["rax"] = 99
    assert machine.run().reason is BootEnd.OFF
    assert machine.cpu["rcx"] == 0x10
    assert machine.cpu["rdi"] == 0x18
    trap = vector in (3, 0x80)
    at = CODE + 8 + (len(code) if trap else 4 if vector == 0 else 0)
    assert machine.cpu["rbx"] == at
    assert not pushed or machine.cpu["rax"] == 0  # not present, a read, of the kernel


def ticking() -> Iterator[BareMachine]:
    """Machines that count five ticks of 1,193 counts: one in a loop, one that waits for them."""
    setup = b"".join(
        b"\xb0" + bytes((value,)) + b"\xe6" + bytes((port,))  # mov al, value; out port, al
        for port, value in (
            *((0x20, 0x11), (0x21, 0x20), (0x21, 4), (0x21, 1), (0x21, 0xFE)),
            *((0x43, 0x34), (0x40, 1193 & 0xFF), (0x40, 1193 >> 8)),
        )
    )
    count = b"\xff\xc3\xb0\x20\xe6\x20\x48\xcf"  # inc ebx; end of interrupt; iretq
    looping = b"\x31\xdb\xfb" + b"\x83\xfb\x05\x75\xfb" + CLI_HLT
    waiting = b"\x31\xdb\xfb" + b"\xf4\x83\xfb\x05\x75\xfa" + CLI_HLT
    for body in (looping, waiting):
        yield with_table(setup + body, v32=count)


def test_the_timer_interrupts_a_loop_and_wakes_a_processor() -> None:
    """A tick of 1,193 counts comes at its nanosecond, whatever the host does meanwhile."""
    for first, second in zip(ticking(), ticking(), strict=True):
        times = []
        for machine in (first, second):
            end = machine.run()
            assert (end.reason, machine.cpu["rbx"]) == (BootEnd.OFF, 5)
            times.append((end.nanoseconds, end.blocks))
        assert times[0] == times[1]
        assert 4_900_000 < times[0][0] < 5_100_000


def test_who_looks_at_a_machine_changes_nothing() -> None:
    """Looks come at their times, while it runs and while it waits, and it ends as without them."""
    for machine, other in zip(ticking(), ticking(), strict=True):
        looks: list[int] = []

        def look(machine: BareMachine = machine, looks: list[int] = looks) -> None:
            looks.append(machine.clock.now)
            machine.look_at(300_000 * (len(looks) + 1), look)

        machine.look_at(300_000, look)
        assert machine.run() == other.run()
        assert len(looks) == 16
        assert all(0 <= at - 300_000 * (n + 1) < 1000 for n, at in enumerate(looks))


def test_a_masked_interrupt_waits() -> None:
    """With interrupts disabled nothing is delivered, and a halt then is the end."""
    assert ran(CLI_HLT)[1].reason is BootEnd.OFF
    assert ran(b"\xfb\xf4")[1].reason is BootEnd.STUCK


def test_a_processor_that_waits_is_woken_by_an_interrupt_alone() -> None:
    """A timer whose line is masked ticks, and nobody goes on behind the hlt."""
    setup = b"".join(
        b"\xb0" + bytes((value,)) + b"\xe6" + bytes((port,))
        for port, value in (
            *((0x20, 0x11), (0x21, 0x20), (0x21, 4), (0x21, 1), (0x21, 0xFF)),
            *((0x43, 0x34), (0x40, 0x00), (0x40, 0x10)),
        )
    )
    end = ran(setup + b"\xfb\xf4\xbb\x01\x00\x00\x00" + CLI_HLT)
    assert end[1].reason is BootEnd.STUCK
    assert end[0].cpu["rbx"] == 0


def test_another_build_of_the_emulator_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offsets in the host code are those of a build whose code is known."""
    monkeypatch.setattr(unicorn_system, "_CHECKS", "0" * 8)
    with pytest.raises(CommandError, match="laid out otherwise"):
        bare(CLI_HLT)


def test_bytes_are_the_instructions_beside_them() -> None:
    """As the assembler sees them: the texts of the listing, and jumps that stay inside."""
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    source = Path(unicorn_system_code.__file__).read_text(encoding="utf-8")
    listed = re.findall(r'^    "([0-9a-f]+)"  # (\w+)', source, re.MULTILINE)
    assert len(listed) > 80
    for digits, name in listed:
        (insn,) = engine.disasm_lite(bytes.fromhex(digits), 0)
        assert insn[2] == name, (digits, name)
    for piece in ("BLOCK", "EXCEPTION", "INVALID", "PROTECT", "UNPROTECT", "SET_DIRTY"):
        code = getattr(unicorn_system_code, piece)
        decoded = list(engine.disasm_lite(code, 0))
        starts = {at for at, _, _, _ in decoded}
        jumps = {
            int(text, 16) for _, _, name, text in decoded if name[0] == "j" and "[" not in text
        }
        assert sum(size for _, size, _, _ in decoded) == len(code)
        assert jumps <= starts


def test_a_guest_of_the_other_kind_in_the_process_changes_nothing() -> None:
    """User-mode guests change the emulator's code for all engines of the process."""
    with loaded(sample("x86_64", "recursion")) as guest:
        assert guest.run().exit_code == 0
        test_code_that_is_written_over_through_another_mapping_is_run_as_it_is()


ENABLE_SSE = b"\x0f\x20\xe0\x0d\x00\x06\x00\x00\x0f\x22\xe0\x0f\x20\xc0\x24\xf3\x0f\x22\xc0"
"""CR4.OSFXSR and CR4.OSXMMEXCPT on, CR0.EM and CR0.TS off."""
DIVIDES = b"\xf3\x0f\x5e\xc1"


def single(*codes: int) -> bytes:
    """Bits into xmm0, xmm1 by eax."""
    moves = (b"\x66\x0f\x6e\xc0", b"\x66\x0f\x6e\xc8")
    pairs = zip(codes, moves, strict=False)
    return b"".join(b"\xb8" + struct.pack("<I", code) + move for code, move in pairs)


def with_flags(control: int, code: bytes) -> bytes:
    """Code with a value of MXCSR in front; what that is behind it is stored at 0x9400."""
    load = b"\xc7\x04\x25" + struct.pack("<2I", 0x9900, control)
    load += b"\x0f\xae\x14\x25" + struct.pack("<I", 0x9900)
    return ENABLE_SSE + load + code + b"\x0f\xae\x1c\x25" + struct.pack("<I", 0x9400) + CLI_HLT


@pytest.mark.parametrize(
    ("codes", "operation", "flags"),
    [
        ((0x3F800000, 0x40400000), DIVIDES, 0x20),  # 1 / 3 is inexact
        ((0x00000001, 0x00000001), b"\xf3\x0f\x58\xc1", 0x02),  # denormal operands
        ((0x7F800001, 0x3F800000), b"\xf3\x0f\x58\xc1", 0x01),  # a signalling NaN
        ((0x00800000, 0x00800000), b"\xf3\x0f\x59\xc1", 0x30),  # underflow
        ((0x3F800000, 0x00000000), DIVIDES, 0x04),  # by zero
    ],
)
def test_floating_point_sets_its_flags(
    codes: tuple[int, int], operation: bytes, flags: int
) -> None:
    """Those of MXCSR that the manual says (Intel SDM, volume 1, 11.5.2)."""
    machine, end = ran(with_flags(0x1F80, single(*codes) + operation))
    assert end.reason is BootEnd.OFF
    assert struct.unpack_from("<I", machine.cpu.memory, 0x9400)[0] == 0x1F80 | flags


def test_an_unmasked_exception_of_floating_point_comes_to_its_handler() -> None:
    store = b"\xc7\x04\x25" + struct.pack("<2I", 0x9800, 0x1234)
    code = with_flags(0x0F80, single(0x3F800000, 0x40400000) + DIVIDES)  # inexact is unmasked
    machine = with_table(code, v19=store + CLI_HLT)
    assert machine.run().reason is BootEnd.OFF
    assert struct.unpack_from("<I", machine.cpu.memory, 0x9800)[0] == 0x1234


def test_floating_point_is_the_same_in_a_process_of_its_own() -> None:
    """A user-mode guest in the process has changed the emulator's; here is none."""
    script = (
        "import struct\n"
        "from machinekit import ran\n"
        f"machine, _ = ran({with_flags(0x1F80, single(0x3F800000, 0x40400000) + DIVIDES)!r})\n"
        "print(hex(struct.unpack_from('<I', machine.cpu.memory, 0x9400)[0]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0x1fa0\n"


def test_memory_that_is_not_there_reads_as_ones() -> None:
    code = b"\x48\xa1" + struct.pack("<Q", 0x1FF000) + CLI_HLT
    machine = bare(code)
    map_page(machine, 0x1FF000, 0xF000_0000, PRESENT)
    assert machine.run().reason is BootEnd.OFF
    assert machine.cpu["rax"] == 0xFFFF_FFFF_FFFF_FFFF


def test_code_where_no_memory_is_ends_the_run() -> None:
    machine = bare(call(0x1FF000))
    map_page(machine, 0x1FF000, 0xF000_0000, PRESENT)
    end = machine.run()
    assert (end.reason, bool(end.text)) == (BootEnd.ASTRAY, True)


def test_a_machine_is_halted_from_another_thread() -> None:
    machine = bare(b"\xeb\xfe")
    threading.Timer(0.2, machine.halt).start()
    end = machine.run()
    assert (end.reason, end.pc) == (BootEnd.HALTED, CODE)
    assert machine.run().blocks == end.blocks


@pytest.mark.parametrize(("port", "value"), [(0x64, 0xFE), (0xCF9, 6)])
def test_a_reset_ends_the_run(port: int, value: int) -> None:
    code = b"\x66\xba" + struct.pack("<H", port) + b"\xb0" + bytes((value,)) + b"\xee\xeb\xfe"
    assert ran(code)[1].reason is BootEnd.RESET


def test_an_error_of_the_console_comes_through() -> None:
    def refuse(data: bytes) -> None:
        raise OSError(data)

    code = b"\x66\xba\xf8\x03\xb0\x41\xee\xeb\xfe"
    with pytest.raises(OSError, match="A"):
        bare(code, refuse).run()


def test_hosts_without_the_code_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    with pytest.raises(CommandError, match="boots no machine"):
        bare(CLI_HLT)


def test_a_machine_that_is_halted_behind_a_block_stands_where_it_would_pause() -> None:
    loop = b"\xb9\x32\0\0\0" + b"\xff\xc9\x75\xfc" + CLI_HLT  # mov ecx, 50; 1: dec ecx; jnz 1b
    paused = bare(loop).run(until=20)
    machine = bare(loop)
    machine.halt_behind(20)
    first = machine.run(until=7)
    assert (first.reason, first.blocks) == (BootEnd.PAUSED, 7)
    for _ in range(2):
        end = machine.run()
        assert (end.reason, end.blocks, end.pc) == (BootEnd.HALTED, 20, paused.pc)


def test_an_exception_that_the_emulator_cannot_deliver_ends_the_machine() -> None:
    """Unicorn calls abort where no task register is there to take a stack from."""
    lidt = b"\x0f\x01\x1c\x25" + struct.pack("<I", 0x7000)
    machine = bare(lidt + bytes.fromhex("31c0 0f00d8 0f0b"))  # xor eax, eax; ltr ax; ud2
    struct.pack_into("<HQ", machine.cpu.memory, 0x7000, 0xFFF, 0x8000)
    for vector in range(32):
        gate(machine, 0x8000, vector, CODE)
        machine.cpu.memory[0x8000 + 16 * vector + 4] = 1  # on the first stack of the TSS
    end = machine.run()
    assert (end.reason, end.pc) == (BootEnd.ASTRAY, CODE + 13)
    assert "cannot carry out" in end.text
    _, after = ran(CLI_HLT)
    assert after.reason is BootEnd.OFF
