"""The machine: a processor, its devices, and the end of a boot."""

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, Protocol

from msgspec import Struct

from engine.cpu.unicorn_system import NEVER, NOTHING, STOP, SystemCpu
from engine.machine import interrupts, pci, realtime, serial, timer
from engine.machine.clock import COUNTER, NO_EVENT, PORT, MachineClock
from engine.machine.rawdisk import RawDisk
from engine.machine.virtioblock import VirtioBlock
from engine.machine.virtiopci import SUBSYSTEM, VirtioFunction
from engine.machine.virtqueue import SplitQueue

DISKS_MOST: Final = 16
_TIMER: Final = 0
_KEYBOARD, _PULSE_RESET = 0x64, 0xFE
_NO_KEYBOARD: Final = 0xFD
"""Status of a keyboard controller that is none, and takes a command at once: a kernel that resets
the machine through it does not wait for room."""
_RESET, _RESETS = 0xCF9, (6, 14)
_SILENT: Final = frozenset((0x80, 0xED))
"""Ports that delays are made with."""
_PANIC: Final = b"Kernel panic - not syncing: "
_LEAVING: Final = b"reboot: "
"""The words of Linux before it powers off or restarts, in kernel/reboot.c and arch/x86."""
_LINE_MOST: Final = 1024


class BootEnd(Enum):
    """Why a machine has stopped."""

    OFF = "the kernel has halted or powered off"
    RESET = "the kernel has reset the machine"
    PANIC = "the kernel has panicked"
    FAULT = "the processor has shut down: an exception could not be delivered"
    ASTRAY = "the processor was led to where no memory is"
    STUCK = "the processor waits, and nothing will ever wake it"
    HALTED = "the machine was stopped"
    PAUSED = "a device has paused the machine"


class MachineEnd(Struct, frozen=True):
    """The end of a boot.

    Attributes:
        reason: why.
        text: the kernel's own of a panic, the emulator's of a processor that cannot go on, or "".
        pc: where the processor stands.
        nanoseconds: of the machine's time.
        blocks: that were executed.
    """

    reason: BootEnd
    text: str
    pc: int
    nanoseconds: int
    blocks: int


class ConsoleInput(Protocol):
    """The input of the console.

    Attributes:
        over: nothing comes any more.
    """

    @property
    def over(self) -> bool:
        """See the class."""

    def take(self, nanoseconds: int) -> bytes:
        """Give what has come, b"" for nothing; wait for it so long, where waiting makes sense.

        Args:
            nanoseconds: 0 from a machine that runs, more from one that waits.
        """


class NoInput:
    """A `ConsoleInput` without anybody who types."""

    over = True

    def take(self, nanoseconds: int) -> bytes:
        """Give nothing at once."""
        return b""


class Device(Protocol):
    """A part of the machine whose state a snapshot keeps."""

    def state(self) -> dict[str, Any]:
        """The state as plain values: numbers, bytes, lists and dictionaries of such."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state, which `state` of such a device has given."""


class PortDevice(Device, Protocol):
    """A device behind ports."""

    def read(self, port: int) -> int:
        """Serve an IN."""

    def write(self, port: int, value: int) -> None:
        """Serve an OUT."""


class BareMachine:
    """A machine of one processor.

    Attributes:
        cpu: its processor.
        clock: its time.
        disks: in the order of their slots.
        devices: whatever else has a state, by name.
    """

    def __init__(
        self, size: int, put: Callable[[bytes], None], given: ConsoleInput, began: datetime
    ) -> None:
        """Make the machine; `linuxboot.prepare` puts a kernel in.

        Args:
            size: bytes of memory.
            put: takes what the console writes.
            given: what is typed there.
            began: the real-time clock at power-on.

        Raises:
            CommandError: this host has no machine.
        """
        self.cpu = SystemCpu(size, self)
        self.clock = MachineClock(self.cpu.record)
        self._put, self._given = put, given
        self._pic = interrupts.InterruptControllers()
        self._pit = timer.IntervalTimer(self.clock, lambda: self._pic.pulse(_TIMER))
        self._cmos = realtime.RealTimeClock(self.clock, began)
        self._serial = serial.SerialPort(
            self._written, lambda level: self._pic.set_line(serial.LINE, level)
        )
        self._bus = pci.PciBus(self._pic.set_line)
        self.disks: list[RawDisk] = []
        self._virtio: list[VirtioFunction] = []
        self._line = bytearray()
        self._panic = ""
        self._leaving = self._reset = self._paused = self._within = self._idles = False
        self._halts_here = self._stopped = False
        self._last = NEVER
        self._looks: dict[object, tuple[int, Callable[[], None]]] = {}
        self._halted, self._interrupted = threading.Event(), threading.Event()
        self.devices: dict[str, Device] = {
            "clock": self.clock,
            "interrupts": self._pic,
            "timer": self._pit,
            "realtime": self._cmos,
            "serial": self._serial,
        }
        self._reads = {
            **dict.fromkeys(interrupts.PORTS, self._pic.read),
            **dict.fromkeys(interrupts.LEVELS, self._pic.read_levels),
            **dict.fromkeys((*timer.PORTS, timer.GATE), self._pit.read),
            **dict.fromkeys(realtime.PORTS, self._cmos.read),
            **dict.fromkeys(serial.PORTS, self._serial.read),
            **dict.fromkeys(_SILENT, _zero),
            _KEYBOARD: _keyboard_status,
        }
        self._writes = {
            **dict.fromkeys(interrupts.PORTS, self._pic.write),
            **dict.fromkeys(interrupts.LEVELS, self._pic.write_levels),
            **dict.fromkeys((*timer.PORTS, timer.GATE), self._pit.write),
            **dict.fromkeys(realtime.PORTS, self._cmos.write),
            **dict.fromkeys(serial.PORTS, self._serial.write),
            _KEYBOARD: self._command_keyboard,
            _RESET: self._command_reset,
        }

    def add_disk(self, disk: RawDisk) -> None:
        """Put a disk into the next slot of the bus, before the machine runs."""
        memory, number = self.cpu.memory, len(self._virtio)
        block = VirtioBlock(disk, f"disk{number}", memory, self.cpu.store)
        device = VirtioFunction(block, SplitQueue(memory, self.cpu.store), self.clock)
        self._virtio.append(device)
        self.disks.append(disk)
        self.devices["bus"], self.devices[f"disk{number}"] = self._bus, device
        self._bus.add(device.function, device, SUBSYSTEM)
        self._pic.trigger_by_level(pci.LINES[number % len(pci.LINES)])

    @property
    def waits(self) -> bool:
        """True while the processor is halted, and waits for an interrupt."""
        return self._idles

    def run(self, until: int = NEVER) -> MachineEnd:
        """Run until the kernel has switched the machine off, or somebody has stopped it.

        A machine that was paused goes on at the next call.

        Args:
            until: number of blocks after which it pauses, in front of the next one.
        """
        self._begin(until)
        return self._go_on()

    def step(self, *, within: bool = False) -> MachineEnd:
        """Execute one instruction, and pause; an interrupt that is due is delivered instead.

        Args:
            within: the machine stands within a block, which has been counted: nothing is due.
        """
        record = self.cpu.record
        record.blocks -= within
        self._begin(record.blocks + 1)
        self._within = within
        return self._go_on(one=True)

    def _begin(self, until: int) -> None:
        self._paused = self._within = False
        self.cpu.record.until = min(until + 1, self._last, NEVER)

    def _go_on(self, *, one: bool = False) -> MachineEnd:
        while True:
            if self._idles and (end := self._wait()) is not None:
                return end
            self._plan()
            self._stopped = False
            why = self.cpu.run(one=one)
            one = self._within = False
            if why:
                return self._end(BootEnd.ASTRAY, why)
            if self._is_halted:
                return self._end(BootEnd.HALTED)
            if self._reset:
                return self._end(BootEnd.PANIC if self._panic else BootEnd.RESET)
            if self.cpu.is_down:  # on purpose where nothing else has reset the machine
                return self._end(BootEnd.RESET if self._leaving else BootEnd.FAULT)
            if self._paused and self._stopped:  # else the processor has been halted before that
                halted = self.cpu.record.blocks + 1 >= self._last
                return self._end(BootEnd.HALTED if halted else BootEnd.PAUSED)
            if not self.cpu.enabled:
                return self._end(BootEnd.PANIC if self._panic else BootEnd.OFF)
            self._idles = True

    def _wait(self) -> MachineEnd | None:
        """Let a processor that is halted wait; the end if that is over without an interrupt."""
        if not self._idle():
            return self._end(BootEnd.OFF if self._leaving else BootEnd.STUCK)
        if self._pic.waits or self._is_halted or self._reset:
            self._idles = False
            return None
        self._interrupted.clear()
        return self._end(BootEnd.PAUSED)

    def halt(self) -> None:
        """Stop the machine, from any thread: `run` returns."""
        self._halted.set()
        self._stop_soon()

    def halt_here(self) -> None:
        """Halt the machine at this moment, from a device; one that goes back is not halted."""
        self._halts_here = True
        self._stop_soon()

    def halt_behind(self, blocks: int) -> None:
        """Have the machine halted once so many blocks are complete, however it is run."""
        self._last = min(blocks + 1, NEVER)

    def pause(self) -> None:
        """Stop the machine before the next block, from a device or a place: `run` returns.

        A processor that is halted by then waits on when it runs again.
        """
        self._paused = self._stopped = True

    def interrupt(self) -> None:
        """Pause the machine soon, from any thread: the run at hand returns, or the next one."""
        self._interrupted.set()
        self._stop_soon()

    def look_at(self, time: int, action: Callable[[], None], whose: object = None) -> None:
        """Have an action called once at a time, and the machine go on as without it.

        It is called in front of a block, or while the processor waits.

        Args:
            time: in nanoseconds since power-on.
            action: replaces the one of the same owner that waits for its time.
            whose: tells owners apart.
        """
        self._looks[whose] = time, action
        self._plan_looks()
        self._plan()

    def plug(self, name: str, device: PortDevice, ports: Iterable[int]) -> None:
        """Add a device behind ports, which no other one has."""
        self.devices[name] = device
        for port in ports:
            self._reads[port], self._writes[port] = device.read, device.write

    def state(self) -> dict[str, Any]:
        """The state of all but the memory, as plain values; the machine must not run.

        What disks hold is no part of it, see `RawDisk.blocks`.
        """
        return {
            "cpu": self.cpu.state(),
            "devices": {name: device.state() for name, device in self.devices.items()},
            "line": bytes(self._line),
            "panic": self._panic,
            "leaving": self._leaving,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state of a machine that had the same devices; the memory is put back first.

        Raises:
            ValueError: the state is none of such a machine.
        """
        try:
            devices = state["devices"]
            if devices.keys() != self.devices.keys():
                raise ValueError("other devices")
            self.cpu.restore(state["cpu"])
            for name, device in self.devices.items():
                device.restore(devices[name])
            self._line = bytearray(state["line"])
            self._panic, self._leaving = str(state["panic"]), bool(state["leaving"])
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"no state of a machine: {error}") from error
        self._reset = self._paused = self._idles = self._halts_here = False

    def close(self) -> None:
        """Give the processor's memory back now; the machine must not be used again."""
        self.cpu.close()

    def _stop_soon(self) -> None:
        self.cpu.record.waits = 0
        self.cpu.record.limit = 0

    def _end(self, reason: BootEnd, text: str = "") -> MachineEnd:
        clock, cpu = self.clock, self.cpu
        text = text or self._panic
        return MachineEnd(reason, text, cpu["rip"], clock.now, cpu.record.blocks)

    def _idle(self) -> bool:
        """The processor waits for an interrupt: jump to the next one, or wait for a key.

        Returns:
            False if neither can come.
        """
        while not self._pic.waits and not self._stops:
            ticks = self.clock.event < NO_EVENT and not self._pic.masks(_TIMER)
            comes = ticks or self.clock.later < NO_EVENT
            if not comes and (self._given.over or not self._serial.listens):
                return False
            self._listen(max(1, self.clock.next - self.clock.now))
            if not self._pic.waits and self.clock.next < NO_EVENT:
                self.clock.wait()
                self._pass_time()
        return True

    def _listen(self, nanoseconds: int) -> None:
        if self._serial.listens and (data := self._given.take(nanoseconds)):
            self._serial.give(data)

    def _pass_time(self) -> None:
        """Have devices do what is due."""
        self._pit.pass_time()
        if self.clock.now >= self.clock.later:
            for device in self._virtio:
                device.pass_time()
            self.clock.later = min((device.due for device in self._virtio), default=NO_EVENT)
            self._bus.update_lines()
        if self.clock.now >= self.clock.watched:
            due = [one for one, (time, _) in self._looks.items() if self.clock.now >= time]
            actions = [self._looks.pop(one)[1] for one in due]
            self._plan_looks()
            for action in actions:
                action()

    def _plan_looks(self) -> None:
        self.clock.watched = min((time for time, _ in self._looks.values()), default=NO_EVENT)

    @property
    def _is_halted(self) -> bool:
        return self._halted.is_set() or self._halts_here

    @property
    def _stops(self) -> bool:
        """True if the machine is to stop."""
        return self._is_halted or self._reset or self._paused or self._interrupted.is_set()

    def _plan(self) -> None:
        """Say when the host code asks next."""
        record = self.cpu.record
        record.waits = 0 if self._within else self._pic.waits
        limit = record.until if self._within else self.clock.limit()
        record.limit = 0 if record.waits else min(limit, record.until)
        if self._stops:
            self._stop_soon()

    # -- a `Board` ------------------------------------------------------------------------

    def ask(self) -> int:
        """Let devices see the time; a vector if one waits that the processor takes."""
        record = self.cpu.record
        self._paused |= self._interrupted.is_set() or record.blocks >= record.until
        if self._stops:
            self._interrupted.clear()
            self._stopped = True
            return STOP
        self._pass_time()
        self._stopped = False  # whoever has looked at the time stops it behind this block
        self._listen(0)
        vector = NOTHING
        if self._pic.waits and self.cpu.interrupts:
            vector = self._pic.acknowledge()
        self._plan()
        return vector

    def read_port(self, port: int, size: int) -> int:
        """Serve an IN: ones where nothing is."""
        self.clock.spend(PORT)
        read = self._reads.get(port)
        value = read(port) if read is not None else self._bus.read(port, size)
        self._plan()
        return value

    def write_port(self, port: int, size: int, value: int) -> None:
        """Serve an OUT, which is lost where nothing is."""
        self.clock.spend(PORT)
        write = self._writes.get(port)
        if write is not None:
            write(port, value)
        else:
            self._bus.write(port, size, value)
            self.clock.later = min((device.due for device in self._virtio), default=NO_EVENT)
        self._plan()

    def counter(self) -> int:
        """Serve an RDTSC: a nanosecond is a tick."""
        self.clock.spend(COUNTER)
        now = self.clock.now
        self._plan()
        return now

    def _command_keyboard(self, port: int, value: int) -> None:
        self._reset = self._reset or value & 0xFF == _PULSE_RESET

    def _command_reset(self, port: int, value: int) -> None:
        self._reset = self._reset or value & 0xFF in _RESETS

    def _written(self, data: bytes) -> None:
        """Pass the console on, and look for the words of a panic."""
        self._put(data)
        self._line += data
        if data.endswith(b"\n") or len(self._line) > _LINE_MOST:
            at = self._line.find(_PANIC)
            if at >= 0 and not self._panic:
                self._panic = self._line[at + len(_PANIC) :].decode("utf-8", "replace").strip()
            self._leaving = self._leaving or _LEAVING in self._line
            self._line.clear()


def _zero(port: int) -> int:
    return 0


def _keyboard_status(port: int) -> int:
    return _NO_KEYBOARD
