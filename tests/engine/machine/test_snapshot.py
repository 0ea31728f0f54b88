"""Snapshots: a machine goes on from one as it went on itself; a damaged file is none."""

import hashlib
import stat
import struct
from pathlib import Path
from random import Random

import pytest
from machinekit import BEGAN, CODE, bare, gate

from engine.cpu import native
from engine.cpu.unicorn_system import PAGE
from engine.machine.machine import BareMachine, BootEnd, MachineEnd, NoInput
from engine.machine.mailbox import PORTS, Mailbox
from engine.machine.snapshot import read_snapshot, write_snapshot

pytestmark = pytest.mark.skipif(
    not native.possible(), reason="host code is for x86-64 hosts without KPROBE_TUI_PORTABLE"
)

SIZE = 16 << 20
IDT, HANDLER, COUNTER, LOG = 0x8000, 0x30000, 0x40000, 0x50000


def out(port: int, value: int) -> bytes:
    """`mov al, value; out port, al`."""
    return bytes((0xB0, value, 0xE6, port))


HANDLE = (
    b"\x50\xff\x04\x25" + struct.pack("<I", COUNTER)  # push rax; inc dword [COUNTER]
    + out(0x20, 0x20)
    + b"\x58\x48\xcf"  # pop rax; iretq
)  # fmt: skip
BEGIN = (
    b"\x0f\x01\x1c\x25" + struct.pack("<I", 0x7000)  # lidt
    + b"".join(out(*each) for each in ((0x20, 0x11), (0x21, 0x30), (0x21, 4), (0x21, 1)))
    + out(0x21, 0xFE) + out(0x43, 0x34) + out(0x40, 0x00) + out(0x40, 0x10)
    + b"\x0f\x20\xe0\x0d\x00\x06\x00\x00\x0f\x22\xe0"  # cr4 |= OSFXSR | OSXMMEXCPT
    + b"\xbb\x00\x00\x05\x00"  # mov ebx, LOG
    + b"\xb8\x39\x30\x00\x00\x66\x0f\x6e\xc0"  # mov eax, 12345; movd xmm0, eax
    + b"\xdb\xe3\xd9\xe8"  # fninit; fld1
    + b"\xba\xa4\x06\x00\x00\xef"  # mov edx, 0x6a4; out dx, eax: pause
)  # fmt: skip
GO_ON = (
    b"\xfb\xf4\xfa"  # sti; hlt; cli
    + b"\x0f\x31\x89\x03\x83\xc3\x04"  # rdtsc; mov [rbx], eax; add ebx, 4
    + b"\x66\x0f\xfe\xc0\xd8\xc0"  # paddd xmm0, xmm0; fadd st(0), st(0)
    + b"\x83\x3c\x25" + struct.pack("<I", COUNTER) + b"\x14"  # cmp dword [COUNTER], 20
)  # fmt: skip
END = b"\x66\x0f\x7e\xc1\xdd\x1b\xf4"  # movd ecx, xmm0; fstp qword [rbx]; hlt
PROGRAM = BEGIN + GO_ON + b"\x72" + struct.pack("<b", -len(GO_ON) - 2) + END


def machine(*, loaded: bool) -> BareMachine:
    """A machine of ours, with the program in it or empty."""
    made = bare(PROGRAM) if loaded else BareMachine(SIZE, lambda data: None, NoInput(), BEGAN)
    made.plug("mailbox", Mailbox(made.pause), PORTS)
    if loaded:
        memory = made.cpu.memory
        struct.pack_into("<HQ", memory, 0x7000, 0xFFF, IDT)
        memory[HANDLER : HANDLER + len(HANDLE)] = HANDLE
        gate(made, IDT, 0x30, HANDLER)
    return made


def rest(made: BareMachine) -> tuple[MachineEnd, object, str]:
    """How a machine goes on: its end, its state, and its memory."""
    end = made.run()
    return end, made.state(), hashlib.sha256(made.cpu.memory).hexdigest()


@pytest.fixture
def paused(tmp_path: Path) -> tuple[BareMachine, Path]:
    """A machine that has paused, and its snapshot."""
    made = machine(loaded=True)
    assert made.run().reason is BootEnd.PAUSED
    path = tmp_path / "folder" / "snapshot"
    write_snapshot(path, made, {"what": "a test"})
    return made, path


def test_a_machine_goes_on_identically_three_times(paused: tuple[BareMachine, Path]) -> None:
    """Registers, vector and float registers, devices, the clock, and all of the memory."""
    made, path = paused
    expected = rest(made)
    assert expected[0].reason is BootEnd.OFF
    assert struct.unpack_from("<I", made.cpu.memory, COUNTER)[0] == 20
    assert made.cpu["rcx"] & 0xFFFFFFFF == 12345 << 20 & 0xFFFFFFFF
    for _ in range(3):
        again = machine(loaded=False)
        assert read_snapshot(path, again) == {"what": "a test"}
        assert rest(again) == expected


def test_a_snapshot_of_a_restored_machine_is_the_same_file(
    paused: tuple[BareMachine, Path], tmp_path: Path
) -> None:
    _, path = paused
    again = machine(loaded=False)
    write_snapshot(tmp_path / "second", again, read_snapshot(path, again))
    assert (tmp_path / "second").read_bytes() == path.read_bytes()


def test_the_file_is_for_the_user_alone_and_has_no_empty_pages(
    paused: tuple[BareMachine, Path],
) -> None:
    _, path = paused
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.stat().st_size < 24 * PAGE


def test_a_damaged_file_is_none(paused: tuple[BareMachine, Path], tmp_path: Path) -> None:
    """Cut short anywhere, longer, any byte changed."""
    _, path = paused
    raw = path.read_bytes()
    rng = Random(41)
    cut = [raw[: rng.randrange(len(raw))] for _ in range(20)]
    cut += [b"", raw[:8], raw[:20], raw[:-1], raw + b"x"]
    changed = []
    for _ in range(40):
        at = rng.randrange(len(raw) if rng.random() < 0.5 else 600)
        changed.append(raw[:at] + bytes((raw[at] ^ 1 << rng.randrange(8),)) + raw[at + 1 :])
    damaged = tmp_path / "damaged"
    again = machine(loaded=False)
    for data in (*cut, *changed):
        damaged.write_bytes(data)
        with pytest.raises(ValueError, match=r"."):
            read_snapshot(damaged, again)


def test_a_snapshot_of_another_machine_is_none(paused: tuple[BareMachine, Path]) -> None:
    _, path = paused
    larger = BareMachine(2 * SIZE, lambda data: None, NoInput(), BEGAN)
    with pytest.raises(ValueError, match="of another memory"):
        read_snapshot(path, larger)
    plain = BareMachine(SIZE, lambda data: None, NoInput(), BEGAN)
    with pytest.raises(ValueError, match="other devices"):
        read_snapshot(path, plain)


def test_a_state_that_is_none_is_refused(paused: tuple[BareMachine, Path]) -> None:
    """Whatever stands in place of a value, it is a ValueError and nothing else."""
    made, _ = paused
    state = made.state()
    wrongs: tuple[object, ...] = (None, 5, "x", b"x", [], {})
    again = machine(loaded=False)
    for wrong in wrongs:
        for name in ("cpu", "devices"):
            with pytest.raises(ValueError, match=r"."):
                again.restore({**state, name: wrong})
        for device in state["devices"]:
            devices = {**state["devices"], device: wrong}
            with pytest.raises(ValueError, match=r"."):
                again.restore({**state, "devices": devices})


def test_hardware_breakpoints_are_no_part_of_a_state(paused: tuple[BareMachine, Path]) -> None:
    made, _ = paused
    raw = bytearray(made.state()["cpu"])
    raw[0x1558] = 1
    with pytest.raises(ValueError, match="no state of such a processor"):
        machine(loaded=False).cpu.restore(bytes(raw))


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    made = machine(loaded=True)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match=r"."):
        write_snapshot(tmp_path / "file" / "snapshot", made, {})
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match=r"."):
        write_snapshot(tmp_path / "taken", made, {})
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "taken"]


def test_the_code_of_a_restored_machine_is_translated_anew(
    paused: tuple[BareMachine, Path],
) -> None:
    """A machine goes back to a state of its own, whatever it has executed meanwhile."""
    made, path = paused
    expected = rest(made)
    made.cpu.memory[CODE : CODE + 2] = b"\xeb\xfe"
    made.cpu.memory[:] = bytes(SIZE)
    read_snapshot(path, made)
    assert rest(made) == expected
