"""The ways between blocks: the table follows what is mapped and written, and changes no run."""

import ctypes
import os
import struct
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from archkit import COMPILED
from barecpu import CODE, DATA, BareCpu
from sessionkit import SAMPLES

from engine.arch.base import TrapKind
from engine.cpu import native, unicorn_blocks, unicorn_cpu
from engine.cpu import unicorn_linkage as linkage
from engine.cpu.base import StopKind
from engine.cpu.pagetable import Region
from engine.cpu.ram import PAGE
from engine.cpu.unicorn_blocks import BlockTable
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session

KNOWN = "2.1.4"
ROUNDS = 100
EPILOGUE = 0x98
"""Place in the TCGContext of the address of what comes before all translations."""
COMPARISON = bytes.fromhex("48397120 7413")  # cmp [rcx+0x20], rsi; je
FAR = CODE + 0x100000
"""A page with the function that is called; its address shares nothing with CODE's page."""


@pytest.fixture(params=["native", "portable"])
def callbacks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "portable":
        monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")


def adding(arch: str, number: int) -> bytes:
    """A function that adds a number to a register."""
    if arch == "x86_64":
        return b"\x83\xc2" + bytes([number]) + b"\xc3"  # add edx, number; ret
    return struct.pack("<2I", 0x91000042 | number << 10, 0xD65F03C0)  # add x2, x2, number; ret


class Caller(BareCpu):
    """Calls what is at FAR again and again, and then the system."""

    def __init__(self, arch: str) -> None:
        if arch == "x86_64":
            # again: call rbx; dec ecx; jne again; syscall
            super().__init__(arch, bytes.fromhex("ffd3 ffc9 75fa 0f05"))
            self.count, self.sum, self.target = "rcx", "rdx", "rbx"
        else:
            # again: blr x3; subs x1, x1, 1; b.ne again; svc 0
            words = (0xD63F0060, 0xF1000421, 0x54FFFFC1, 0xD4000001)
            super().__init__(arch, struct.pack("<4I", *words))
            self.count, self.sum, self.target = "x1", "x2", "x3"
        self.pages = [self._take(1), self._take(1)]
        for number, page in enumerate(self.pages, 1):
            self.memory.write(page, adding(arch, number))
        self.show(0)

    def show(self, page: int) -> None:
        """Map one of the two pages at FAR."""
        far = Region(FAR, FAR + PAGE, self.pages[page], 7)
        self.page_table.load([self.regions[0], far, *self.regions[1:]])
        self.flush_tlb()

    def called(self) -> int:
        """The sum after a run from the beginning."""
        self.write_register(self.count, ROUNDS)
        self.write_register(self.sum, 0)
        self.write_register(self.target, FAR)
        self.write_register(self.arch.roles.pc, CODE)
        stop = self.run()
        assert (stop.kind, stop.trap) == (StopKind.SYSCALL, TrapKind.OTHER), stop
        return self.read_register(self.sum)


@pytest.mark.parametrize("target", COMPILED)
def test_the_known_version_has_tables(target: str) -> None:
    if version("unicorn") != KNOWN or not native.possible():
        pytest.skip("another build of Unicorn, or no host code")
    assert BlockTable(BareCpu(target).engine_address, target).active == (
        target in unicorn_blocks.TARGETS
    )


def test_other_code_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ctypes.create_string_buffer(b"\xc3" * 4096)
    changed: list[object] = []
    monkeypatch.setattr(linkage, "address_of", lambda name: ctypes.addressof(other))
    monkeypatch.setattr(linkage, "rewrite", changed.append)
    lead = unicorn_blocks.led.__wrapped__  # not what was found out before
    assert not lead("x86_64")
    assert not lead("m68k")
    assert not changed
    assert other.raw == b"\xc3" * 4096 + b"\0"


@pytest.mark.usefixtures("callbacks")
@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_another_page_at_an_address_is_what_is_called(arch: str) -> None:
    machine = Caller(arch)
    sums = []
    for page in (0, 1, 0, 1):
        machine.show(page)
        sums.append(machine.called())
    assert sums == [ROUNDS, 2 * ROUNDS, ROUNDS, 2 * ROUNDS]


@pytest.mark.usefixtures("callbacks")
@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_a_page_that_is_gone_is_called_no_more(arch: str) -> None:
    machine = Caller(arch)
    assert machine.called() == ROUNDS
    machine.page_table.load(machine.regions)
    machine.flush_tlb()
    machine.write_register(machine.arch.roles.pc, CODE)
    machine.write_register(machine.count, ROUNDS)
    stop = machine.run()
    assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, FAR, "execute")


@pytest.mark.usefixtures("callbacks")
@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_code_that_is_changed_is_called_as_it_is(arch: str) -> None:
    machine = Caller(arch)
    sums = []
    for number in (1, 7, 3):
        machine.patch(FAR, adding(arch, number))
        sums.append(machine.called())
    machine._uc.flush_code()
    assert [*sums, machine.called()] == [ROUNDS, 7 * ROUNDS, 3 * ROUNDS, 3 * ROUNDS]


@pytest.mark.usefixtures("callbacks")
def test_code_that_the_program_changes_is_called_as_it_is() -> None:
    # again: mov [rbx+2], cl; call rbx; dec ecx; jne again; syscall
    machine = Caller("x86_64")
    machine.patch(CODE, bytes.fromhex("884b02 ffd3 ffc9 75f7 0f05"))
    assert machine.called() == sum(range(ROUNDS + 1))


def test_engines_keep_their_own() -> None:
    first, second = Caller("x86_64"), Caller("x86_64")
    second.memory.write(second.pages[0], adding("x86_64", 9))
    sums = [machine.called() for machine in (first, second, first, second)]
    assert sums == [ROUNDS, 9 * ROUNDS, ROUNDS, 9 * ROUNDS]


def test_stores_to_what_was_data_are_seen_once_it_is_code() -> None:
    # again: mov [rbx+2], cl before the page is code: it is in the TLB as one that may be written.
    machine = Caller("x86_64")
    machine.patch(CODE, bytes.fromhex("884b02 ffc9 75f9 ffd3 c6430205 ffd3 0f05"))
    machine.write_register("rsp", DATA + PAGE)
    assert machine.called() == 1 + 5


@pytest.mark.parametrize("arch", COMPILED)
def test_a_guest_runs_the_same_without(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        def __init__(self, engine: int, target: str) -> None:
            pass

    seen = []
    for table in (BlockTable, Nothing):
        monkeypatch.setattr(unicorn_cpu, "BlockTable", table)
        out = bytearray()
        sink = SinkStream(out.extend)
        path = SAMPLES / arch / "recursion"
        config = GuestConfig(str(path), isolated=True, count_blocks=True)
        session = Session(config, (FeedStream(ended=True), sink, sink))
        reports = session.run()
        seen.append((bytes(out), session.cpu.blocks(), reports))
        session.close()
    assert seen[0] == seen[1]
    assert seen[0][0]


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("size", [100, 127, 128, 300])
@pytest.mark.parametrize("noted", [False, True])
def test_the_clock_ticks_alike_in_blocks_of_each_size(
    arch: str, size: int, noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # again: nop...; dec ecx; jne again; syscall
    nop, end = b"\x90", bytes.fromhex("ffc9 0f85 00000000 0f05")
    count = size - 8
    back = struct.pack("<i", -size)
    code = nop * count + end.replace(bytes(4), back)
    if arch == "aarch64":
        words = size // 4
        code = struct.pack("<I", 0xD503201F) * (words - 2)
        branch = 0x54000001 | (-(words - 1) & 0x7FFFF) << 5
        code += struct.pack("<3I", 0xF1000421, branch, 0xD4000001)
    trails = []
    for portable in ("0", "1"):
        monkeypatch.setenv("KPROBE_TUI_PORTABLE", portable)
        machine = BareCpu(arch, code)
        machine.write_register("rcx" if arch == "x86_64" else "x1", ROUNDS)
        if noted:
            machine.keep_branches()
        trail = []
        for quantum in (1, 2, 7, 30, 0, 100):
            stop = machine.run(quantum)
            trail.append((stop, machine.pc, machine.blocks(), tuple(machine.last_branches)))
        trails.append(trail)
    assert trails[0] == trails[1]
    assert trails[0][-1][2] == ROUNDS - 1
    behind = CODE + len(code) - (2 if arch == "x86_64" else 4)
    assert trails[0][-1][3] == ((behind, behind) if noted else (0, 0))


@pytest.mark.usefixtures("callbacks")
def test_branches_are_noted_from_when_they_are_asked_for() -> None:
    machine = Caller("x86_64")
    machine.count_blocks(True)
    machine.called()
    assert list(machine.last_branches) == [0, 0]
    machine.last_branches[0] = CODE  # by somebody who does not know
    early = machine.position()
    machine.keep_branches()
    assert list(machine.last_branches) == [0, 0]
    machine.called()
    kept = list(machine.last_branches)
    assert kept == [FAR + 4, CODE + 2]  # behind the ret and the call
    machine.keep_branches()
    assert list(machine.last_branches) == kept
    late = machine.position()
    machine.go_on(early)
    assert list(machine.last_branches) == [0, 0]
    machine.go_on(late)
    assert list(machine.last_branches) == kept


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_the_clock_is_a_comparison_in_translated_code(arch: str) -> None:
    """That hangs on where the host has its memory: other engines take the room for it."""
    asked = subprocess.run(
        [sys.executable, "-c", f"import test_unicorn_blocks as t; t.clock_is_inlined({arch!r})"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode == _NO_WAYS:
        pytest.skip("another build of Unicorn, or no host code")
    assert asked.returncode == 0, asked.stderr


_NO_WAYS = 77


def clock_is_inlined(arch: str) -> None:
    """Run by a process of its own; it fails if the clock is called by translated code."""
    machine = Caller(arch)
    if not machine._ways.active:
        sys.exit(_NO_WAYS)
    machine.write_register(machine.count, ROUNDS)
    machine.write_register(machine.target, FAR)
    machine.run(1 << 20)
    assert machine.blocks() == 3 * ROUNDS - 1
    place = machine.engine_address + unicorn_blocks._CONTEXT
    for offset in (0, EPILOGUE):  # where translations begin
        place = ctypes.c_uint64.from_address(place + offset).value
    assert COMPARISON in ctypes.string_at(place, 1 << 16)
