"""The differ of boots: a kernel booted plain and probed, and where the two boots part.

Both machines run in turns of equally many blocks. After each turn all that they consist of is
compared: what the console has written, the clock, the registers, the devices, the blocks of
disks, every byte of memory. Where they differ, both are booted again, up to where they were equal
last, in shorter turns, until one block is left.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Event
from typing import Final

from msgspec import Struct

from engine.cpu.unicorn_system import GENERAL, PAGE, SEGMENTS
from engine.machine.machine import BootEnd, MachineEnd
from engine.machine.pages import ComparedMemory
from engine.session.booted.tracing import BootTracing
from engine.session.guest.outputs import OutputFiles
from engine.session.headless.boot_traces import BREAKPOINT, TOLD
from engine.session.headless.bootable import Bootable, bootable
from engine.session.headless.booting import Booted
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.config import Mode
from engine.session.protocol.kernels import BootRequest, KernelChoice
from engine.session.protocol.report import Report
from engine.session.protocol.requests import ProbeRequest, TraceOptions

TURN: Final = 1 << 24
"""Blocks between two comparisons."""
_FINER: Final = 64
"""A finer pass has so many turns in one of the pass before."""
_WORD: Final = 8
_SHOWN: Final = 8
"""Registers, and words of memory, that are shown."""
_REGISTERS: Final = (
    *GENERAL,
    *("rip", "eflags"),
    *SEGMENTS,
    *("fs_base", "gs_base", "cr0", "cr2", "cr3", "cr4", "efer", "mxcsr"),
    *(f"xmm{number}" for number in range(16)),
)


class BootDiffRequest(Struct, frozen=True):
    """A boot that is compared with the same one under probes.

    Attributes:
        boot: what is booted; its console has no input.
        probes: that the second boot has.
        mode: by whose rules they are placed.
        kernel: where names are found.
        technique: one of `BOOT_TECHNIQUES`.
    """

    boot: BootRequest
    probes: ProbeRequest
    mode: Mode = Mode.STRICT
    kernel: KernelChoice = KernelChoice()
    technique: str = TOLD


class BootEffect(Struct, frozen=True):
    """The outcome of a comparison.

    Attributes:
        lines: the first difference, in words; empty if there is none.
        progress: the blocks and the time that were compared, in words.
        places: number of places that were probed.
        hits: how often they were hit.
        remarks: about places that take no probe, and about hits that were missed.
        stopped: somebody has stopped the machines before they had ended, or before the place of a
            difference was narrowed down.
    """

    lines: tuple[str, ...]
    progress: str
    places: int
    hits: int
    remarks: tuple[Report, ...]
    stopped: bool


class ComparedBoot:
    """One of two boots that are compared, in front of its first instruction.

    Attributes:
        booted: the machine.
        console: what it has written.
        tracing: its probes; None without.
        end: how it has ended; None while it goes on.
    """

    def __init__(self, parts: Bootable, put: Callable[[bytes], None] | None = None) -> None:
        """Lay the kernel out.

        Args:
            parts: of the machine.
            put: takes what the console writes, besides `console`; None for nobody.

        Raises:
            CommandError, ImageError: as `Booted`.
        """
        self.console = bytearray()
        self._put = put
        self._parts = parts
        self.booted = Booted(parts, self._written, None)
        self.tracing: BootTracing | None = None
        self.end: MachineEnd | None = None

    def _written(self, data: bytes) -> None:
        self.console += data
        if self._put is not None:
            self._put(data)

    def probe(self, request: BootDiffRequest, stack: ExitStack) -> None:
        """Place the probes of a request; what they record is for nobody.

        Args:
            request: whose probes.
            stack: closes what is opened.

        Raises:
            ProbeError: a definition is not accepted.
        """
        outputs = OutputFiles(request.boot.kernel)
        stack.callback(outputs.close)
        opened = OpenedKernel(self.booted.kernel, request.kernel)
        options = TraceOptions(output="/dev/null", mode=request.mode)
        planted = request.technique == BREAKPOINT
        machine = self.booted.machine
        self.tracing = BootTracing(
            *(opened, machine, options, outputs, None), planted=planted, files=self._parts.files
        )
        stack.callback(self.tracing.discard)
        self.tracing.place(request.probes)
        self.tracing.start()

    def run(self, until: int) -> None:
        """Run until so many blocks are complete, or the boot ends."""
        if self.end is None:
            end = self.booted.machine.run(until)
            self.end = end if end.reason is not BootEnd.PAUSED else None

    def finish(self) -> tuple[Report, ...]:
        """Show the rest of the console, and say what there is to be said about the probes."""
        self.booted.flush()
        if self.tracing is None:
            return ()
        return (*self.tracing.remarks, *self.tracing.finish())


MakeBoots = Callable[
    [ExitStack, Callable[[bytes], None] | None], tuple[ComparedBoot, ComparedBoot]
]
"""Makes the boot without probes and the one with them, given what takes the console of the first
one."""


class BootDiffer:
    """Compares two boots; `stop` may be called from any thread."""

    def __init__(self, make: MakeBoots, put: Callable[[bytes], None], turn: int = TURN) -> None:
        """Take what makes the boots.

        Args:
            make: makes them, each time in front of their first instruction.
            put: takes what the console of the plain one writes.
            turn: blocks between two comparisons.
        """
        self._make, self._put, self._turn = make, put, turn
        self._stop = Event()
        self._running: tuple[ComparedBoot, ...] = ()

    @classmethod
    def of(cls, request: BootDiffRequest, put: Callable[[bytes], None]) -> "BootDiffer":
        """The differ of a request; see `compare` for what it raises."""

        def make(
            stack: ExitStack, put: Callable[[bytes], None] | None
        ) -> tuple[ComparedBoot, ComparedBoot]:
            parts = bootable(request.boot)
            plain, probed = ComparedBoot(parts, put), ComparedBoot(parts)
            probed.probe(request, stack)
            return plain, probed

        return cls(make, put)

    def stop(self) -> None:
        """Stop both machines soon."""
        self._stop.set()
        for boot in self._running:
            boot.booted.halt()

    def compare(self) -> BootEffect:
        """Boot twice, and compare.

        Raises:
            ImageError: the kernel cannot be booted.
            ProbeError: a probe is not accepted.
            CommandError: this host boots no machine.
        """
        with ExitStack() as stack:
            plain, probed = self._boots(stack, self._put)
            equal = self._run(plain, probed, 0, self._turn)
            remarks = probed.finish()
            plain.finish()
            found = self._found(plain, probed)
            tracing = probed.tracing
            counts = (tracing.places, tracing.hits) if tracing is not None else (0, 0)
            progress = plain.booted.progress
        if found:
            found = self._narrowed(equal, found)
        return BootEffect(tuple(found), progress, *counts, remarks, self._stop.is_set())

    def _boots(
        self, stack: ExitStack, put: Callable[[bytes], None] | None
    ) -> tuple[ComparedBoot, ComparedBoot]:
        boots = self._running = self._make(stack, put)
        for boot in boots:
            stack.callback(boot.booted.machine.close)
            if self._stop.is_set():
                boot.booted.halt()
        return boots

    def _found(self, plain: ComparedBoot, probed: ComparedBoot) -> list[str]:
        return [] if self._stop.is_set() else list(_differences(plain, probed))

    def _run(self, plain: ComparedBoot, probed: ComparedBoot, equal: int, turn: int) -> int:
        """Run both from where they are equal until they differ or have ended.

        Returns:
            The number of blocks behind which they were equal last.
        """
        for boot in (plain, probed):
            boot.run(equal)
        while plain.end is None and not self._stop.is_set():
            for boot in (plain, probed):
                boot.run(equal + turn)
            if next(_differences(plain, probed), ""):
                break
            equal += turn
        return equal

    def _narrowed(self, equal: int, found: list[str]) -> list[str]:
        """Boot again in finer turns; the difference behind the first block that has one."""
        turn = self._turn
        while turn > 1:
            turn = -(-turn // _FINER)
            with ExitStack() as stack:
                plain, probed = self._boots(stack, None)
                equal = self._run(plain, probed, equal, turn)
                seen = self._found(plain, probed)
                if self._stop.is_set():
                    return [*found, f"stopped; the first block that differs is behind {equal}"]
                if not seen:
                    return [*found, "a second pair of boots does not differ so"]
                found = seen
                place = _place(plain)
                probed.finish()
        return [f"block {equal + 1}{place} is the first one behind which the boots differ", *found]


def _place(boot: ComparedBoot) -> str:
    """The place of the block that was executed last, in words behind a number."""
    begin = boot.booted.machine.cpu.record.begin
    name = boot.booted.place(begin)
    return f", in front of {begin:#x}" + (f" ({name})" if name else "")


def _differences(plain: ComparedBoot, probed: ComparedBoot) -> Iterator[str]:
    """Lines about what two boots differ in, the one without probes first."""
    one, other = plain.booted.machine, probed.booted.machine
    if plain.console != probed.console:
        yield _of_consoles(bytes(plain.console), bytes(probed.console))
    if plain.end != probed.end:
        yield f"end: {_end(plain)}; with probes {_end(probed)}"
    blocks, other_blocks = one.cpu.record.blocks, other.cpu.record.blocks
    if blocks != other_blocks:
        yield f"blocks: {blocks}; with probes {other_blocks}"
    if one.clock.now != other.clock.now:
        yield f"clock: {one.clock.now} ns; with probes {other.clock.now} ns"
    pairs = ((name, one.cpu.register(name), other.cpu.register(name)) for name in _REGISTERS)
    yield from _some(
        "registers", (f"{name} {a:#x}; with probes {b:#x}" for name, a, b in pairs if a != b)
    )
    for name, device in one.devices.items():
        if device.state() != other.devices[name].state():
            yield f"device: the {name} is in another state with probes"
    for number, (disk, probed_disk) in enumerate(zip(one.disks, other.disks, strict=True)):
        if disk.changes != probed_disk.changes:
            yield f"disk {number}: other blocks were written with probes"
    yield from _some("memory", _of_memories(plain, probed))


def _some(what: str, found: Iterator[str]) -> Iterator[str]:
    """The first lines, with their heading, and a word on whether there are more."""
    for number, line in enumerate(found):
        if number == _SHOWN:
            yield f"{what}: more differs"
            return
        yield f"{what}: {line}"


def _end(boot: ComparedBoot) -> str:
    end = boot.end
    if end is None:
        return "goes on"
    return f"{end.reason.value}, at {end.pc:#x}" + (f" ({end.text})" if end.text else "")


def _of_consoles(plain: bytes, probed: bytes) -> str:
    """The first line that two consoles differ in."""
    at = next(
        (at for at, (a, b) in enumerate(zip(plain, probed, strict=False)) if a != b),
        min(len(plain), len(probed)),
    )
    begin = plain.rfind(b"\n", 0, at) + 1
    lines = [
        text[begin:].partition(b"\n")[0].decode("utf-8", "replace") for text in (plain, probed)
    ]
    number = plain.count(b"\n", 0, begin) + 1
    return f"console: line {number}: {lines[0]!r}; with probes {lines[1]!r}"


def _of_memories(plain: ComparedBoot, probed: ComparedBoot) -> Iterator[str]:
    """The words of physical memory that differ, with the names of the kernel's variables."""
    one, other = plain.booted.machine.cpu.memory, probed.booted.machine.cpu.memory
    for page in ComparedMemory(one, other).differing():
        for at in range(page * PAGE, (page + 1) * PAGE, _WORD):
            was, now = (int.from_bytes(each[at : at + _WORD], "little") for each in (one, other))
            if was != now:
                yield f"{_variable(plain.booted, at)} {was:#x}; with probes {now:#x}"


def _variable(booted: Booted, physical: int) -> str:
    """A physical address, and the name of the kernel's own code or data there."""
    for segment in booted.kernel.elf.segments:
        inside = physical - segment.paddr
        if 0 <= inside < segment.memsz:
            found = booted.kernel.names.at(segment.vaddr + inside)
            if found is not None:
                return f"{physical:#x} ({found.name}+{segment.vaddr + inside - found.start:#x})"
    return f"{physical:#x}"
