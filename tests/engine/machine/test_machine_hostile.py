"""Random programs at ring 0, with a disk and probes, neither end the process nor make it grow.

`KPROBE_TUI_MACHINE_FUZZ=20000` runs so many; a program that ends the process is named by the last
number in the message.
"""

import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from machinekit import CODE, bare, gate

from engine.arch import by_name
from engine.cpu import native
from engine.machine.addresses import KernelAddresses
from engine.machine.currenttask import TaskMembers, TaskReader
from engine.machine.kernelmodules import KernelModules, ModuleMembers
from engine.machine.machine import BareMachine, BootEnd
from engine.machine.probing import MachineProbes, ReturnProbe
from engine.machine.rawdisk import ChangeBudget, HostImage, RawDisk
from engine.probes.machine_breakpoints import MachineBreakpoints

COUNT = int(os.environ.get("KPROBE_TUI_MACHINE_FUZZ", "150"))
LONGEST = 2.0
"""Seconds of a program, which may loop."""
LIMIT = 200 << 10
"""KB of memory that the process of all programs takes at the most."""
OPCODES = tuple(
    bytes.fromhex(text)
    for text in [
        "0f22",
        "0f20",
        "0f23",
        "0f21",
        "0f30",
        "0f32",
        "0f01",
        "0f00",
        "e6",
        "e4",
        "ef",
        "ed",
        "ee",
        "ec",
        "0f05",
        "0f07",
        "480f07",
        "cf",
        "48cf",
        "cd",
        "f4",
        "fb",
        "fa",
        "0f09",
        "0fae",
        "0fc7",
        "0fa2",
        "0f31",
        "0f34",
        "0f35",
        "9d",
        "9c",
        "ca",
        "cb",
        "48cb",
        "ff",
        "8e",
        "8c",
        "0fb2",
        "0fb4",
        "0fb5",
        "6c",
        "6d",
        "6e",
        "6f",
        "f36c",
        "f36e",
        "66",
        "67",
        "f2",
        "f3",
        "f0",
        "0f06",
        "0f08",
        "0f0b",
        "0f77",
        "0faa",
        "c4",
        "c5",
        "8f",
        "62",
        "d9",
        "db",
        "dd",
        "9b",
        "0f18",
        "0f1f",
        "0f38",
        "0f3a",
    ]
)
"""Privileged instructions, system calls, returns, prefixes, and what has many forms behind."""
MSRS = (
    *(0x1B, 0x10, 0x174, 0x175, 0x176, 0x277, 0x2FF, 0x200, 0x1A0, 0x400, 0x179, 0x17A, 0x17B),
    *(0xC0000080, 0xC0000081, 0xC0000082, 0xC0000084, 0xC0000100, 0xC0000101, 0xC0000102),
    *(0xC0000103, 0xC0010117, 0xC0010015, 0x1D9, 0x38F, 0x6E0, 0x3A, 0xD90, 0xDA0, 0x48, 0x122),
)
PORTS = (
    *(0x20, 0x21, 0xA0, 0xA1, 0x40, 0x41, 0x42, 0x43, 0x61, 0x70, 0x71, 0x64, 0x80, 0xCF8, 0xCFC),
    *range(0x3F8, 0x400),
    *(0xCFD, 0xCFE, 0xCFF, *range(0xC000, 0xC080, 4), 0xC014, 0xC016, 0xC018, 0xC01C, 0xC03C),
)


def program(source: random.Random) -> bytes:
    """A program of some dozen instructions."""
    pick = source.choice
    out = bytearray()
    for _ in range(source.randrange(5, 60)):
        kind = source.random()
        if kind < 0.25:
            high = 0xFFFF_FFFF_8000_0000 | source.getrandbits(20)
            value = pick([source.getrandbits(64), source.randrange(1 << 24), pick(MSRS), high])
            out += b"\x48" + bytes([0xB8 + source.randrange(8)]) + struct.pack("<Q", value)
        elif kind < 0.35:
            out += b"\xb9" + struct.pack("<I", pick(MSRS)) + pick([b"\x0f\x30", b"\x0f\x32"])
        elif kind < 0.45:
            port = pick((*PORTS, source.getrandbits(16)))
            out += (
                b"\x66\xba" + struct.pack("<H", port) + pick([b"\xee", b"\xec", b"\xef", b"\xed"])
            )
        elif kind < 0.75:
            out += bytes([pick([0x40, 0x41, 0x44, 0x48])]) if source.random() < 0.4 else b""
            out += pick(OPCODES) + source.randbytes(source.randrange(4))
        else:
            out += source.randbytes(source.randrange(1, 6))
    return bytes(out)


def lay_out_a_queue(machine: BareMachine, source: random.Random) -> None:
    """Be a driver up to its last step, with requests that are half sensible."""
    for port, size, value in (
        *((0xC014, 1, 3), (0xC008, 4, 1), (0xC00C, 4, 1), (0xC014, 1, 11)),
        *((0xC020, 4, 0x9000), (0xC028, 4, 0xA000), (0xC030, 4, 0xB000), (0xC01C, 2, 1)),
        (0xC014, 1, 15),
    ):
        machine.write_port(port, size, value)
    for number in range(64):
        address = source.choice((CODE, 0x9000, 0xA000, 0xB000, source.getrandbits(24)))
        size = source.choice((1, 16, 512, 513, 4096, source.getrandbits(32)))
        row = address, size, source.getrandbits(3), source.randrange(66)
        struct.pack_into("<QI2H", machine.cpu.memory, 0x9000 + 16 * number, *row)
    kind = source.choice((0, 1, 4, 8, source.getrandbits(32)))
    struct.pack_into("<I4xQ", machine.cpu.memory, CODE + 0x800, kind, source.randrange(9))
    struct.pack_into("<QI2H", machine.cpu.memory, 0x9000, CODE + 0x800, 16, 1, 1)
    struct.pack_into("<2H64H", machine.cpu.memory, 0xA000, 0, source.randrange(66), *bytes(64))
    machine.write_port(0xC03C, 2, 0)


def probe_everywhere(machine: BareMachine, source: random.Random) -> None:
    """Probe the program as a kernel, whose tasks and modules are wherever its registers say."""
    cpu, addresses = machine.cpu, KernelAddresses(machine.cpu)
    reader = TaskReader(cpu, addresses, TaskMembers(*(source.getrandbits(17) for _ in range(4))))
    probes = MachineProbes(cpu, addresses, reader.address, {CODE + 64})
    listed, link, *members = (source.getrandbits(13) for _ in range(7))
    way = ModuleMembers(listed, link, CODE + 3, CODE + 8, *members)
    modules = KernelModules(probes, cpu, addresses, way)
    modules.follow(lambda module: None, lambda module: None)

    def look(*_entry: object) -> None:
        reader.now()
        modules.at(cpu["rsp"])

    if source.random() < 0.5:
        plant_everywhere(machine, source, look)
    for at in range(CODE, CODE + 200, source.randrange(1, 20)):
        probes.add(at, look, begins=source.random() < 0.5)
        limit = source.choice((None, 1, 100))
        probes.add_return(at, ReturnProbe(look, look, limit), begins=source.random() < 0.7)


def plant_everywhere(
    machine: BareMachine, source: random.Random, look: Callable[[], None]
) -> None:
    """Plant breakpoints in the program; their slots are where it may jump and map pages."""
    arch, window = by_name("x86_64"), source.choice((CODE + 0x100000 & -0x100000, 0x4000_0000))
    assert arch is not None
    code = machine.cpu.plant_at(window)
    breakpoints = MachineBreakpoints(arch, machine.cpu, KernelAddresses(machine.cpu), code)
    for at in range(CODE, CODE + 200, source.randrange(1, 9)):
        breakpoints.add(at, look)


def run_one(number: int) -> BootEnd:
    """Run the program of a number, with tables that are half sensible."""
    source = random.Random(number)
    machine = bare(b"\x0f\x01\x1c\x25" + struct.pack("<I", 0x7000) + program(source))
    with tempfile.NamedTemporaryFile() as image:
        image.truncate(1 << 16)
        machine.add_disk(RawDisk(HostImage(image.name), ChangeBudget(1 << 20)))
    if source.random() < 0.5:
        lay_out_a_queue(machine, source)
    table = 0x8000 if source.random() < 0.9 else source.getrandbits(48)
    struct.pack_into("<HQ", machine.cpu.memory, 0x7000, 0xFFF, table)
    if source.random() < 0.7:
        for vector in range(256):
            handlers = [CODE, CODE + source.randrange(200), source.getrandbits(47)]
            gate(machine, 0x8000, vector, source.choice(handlers))
    if source.random() < 0.3:
        for _ in range(20):
            at = source.choice((0x1000, 0x2000, 0x3000, 0x4000)) + 8 * source.randrange(512)
            entry = source.randrange(1 << 13) << 12 | source.getrandbits(9)
            entry = entry if source.random() < 0.7 else source.getrandbits(64)
            struct.pack_into("<Q", machine.cpu.memory, at, entry)
    if source.random() < 0.5:
        probe_everywhere(machine, source)
    timer = threading.Timer(LONGEST, machine.halt)
    timer.start()
    try:
        return machine.run().reason
    finally:
        timer.cancel()
        timer.join()
        machine.close()


def peak() -> int:
    """KB that this process took at the most.

    `ru_maxrss` would count what the parent took, too: an exec hands the old image's peak on
    (exec_mmap in fs/exec.c), and the old image of a vfork is the parent's.
    """
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


@pytest.mark.slow
@pytest.mark.skipif(not native.possible(), reason="machines are for x86-64 hosts")
def test_random_programs_end_as_programs_do() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", __file__, str(COUNT)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-100:] + done.stderr[-2000:]
    assert done.stdout.split()[-1] == "done"


if __name__ == "__main__":
    for each in range(int(sys.argv[1])):
        print(each, flush=True)
        run_one(each)
    taken = peak()
    print("done" if taken < LIMIT else f"{taken}KB")
