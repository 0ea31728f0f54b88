"""A booted machine in the hands of gdb: the commands of its remote protocol.

Source: "GDB Remote Serial Protocol" of gdb's manual. The machine is one thread, its processor,
whose name is that of the task that runs. Nothing is planted: the processor itself stops at a
breakpoint, in the kernel and in programs alike. gdb gets a file with the kernel's symbols and
frames. A boot that has ended badly is told as a stop, so that its cause can be looked for.
"""

import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from engine.arch.gdbtarget import GdbRegister
from engine.cpu.unicorn_system import PAGE
from engine.cpu.unicorn_watches import READ, WRITE, DataRange
from engine.errors import CommandError, GuestFaultError, KprobeTuiError
from engine.escaping import escaped as shown
from engine.machine.machine import BootEnd
from engine.machine.stepping import MachineMoment
from engine.session.booted.frames import BootFrames
from engine.session.booted.stacks import BootStacks
from engine.session.headless.booting import Booted, ended
from engine.session.kernel.opened import OpenedKernel
from engine.session.machine.catches import KernelCatches
from engine.session.machine.debugging import DebuggedMachine
from engine.session.machine.symbolfile import symbol_file
from engine.session.serve import target
from engine.session.serve.answering import LeaveError
from engine.session.serve.packets import MOST, Documents, escaped, number
from engine.session.serve.servedfile import ServedFile

_SIZE: Final = 0x8000
"""Bytes of a packet that gdb may send."""
_OK: Final = b"OK"
_FAULT, _REFUSED, _DAMAGED = b"E0e", b"E01", b"E16"
_SUPPORTED: Final = (
    f"PacketSize={_SIZE:x};QStartNoAckMode+;vContSupported+;swbreak+;hwbreak+;"
    "qXfer:features:read+;qXfer:threads:read+;qXfer:exec-file:read+;qXfer:memory-map:read+"
).encode()
_REVERSE: Final = b";ReverseStep+;ReverseContinue+"
_SOFTWARE, _HARDWARE = b"0", b"1"
_WATCHES: Final = {b"2": WRITE, b"3": READ, b"4": READ | WRITE}
"""Kinds of watchpoints: of stores, of loads, of both."""
_WATCH_NAMES: Final = {WRITE: b"watch", READ: b"rwatch", READ | WRITE: b"awatch"}
_THREAD: Final = 1
_TRAP, _INTERRUPT, _ABORT = 5, 2, 6
_FILE: Final = "/kprobe-tui/vmlinux"
"""The name of the file of symbols; it is nowhere but here."""
_OVER: Final = (BootEnd.OFF, BootEnd.RESET, BootEnd.HALTED)
_HELP: Final = """\
monitor bt                the call stack, by the kernel's own unwind tables
monitor task              the task that runs
monitor moment            where the machine stands: blocks.instructions, and its time
monitor seek BLOCKS[.N]   go to a moment where the machine has been
monitor catch KIND...     stop where the kernel tells of an oops, panic, warn; off: nowhere
"""


class MachineServer:
    """Answers packets about one machine.

    Attributes:
        put: takes packets that are sent while a command is carried out.
    """

    def __init__(
        self,
        booted: Booted,
        opened: OpenedKernel,
        tell: Callable[[str], object],
        *,
        past: bool,
        catches: Sequence[str] = (),
    ) -> None:
        """Take a machine that has not run.

        Args:
            booted: the machine, which may repeat if it has a past.
            opened: the kernel in it.
            tell: takes remarks for whoever has started the server.
            past: gdb may go backwards.
            catches: what the machine stops at by itself, of `CATCHES`.

        Raises:
            CommandError: gdb is not served for such a machine, or the kernel tells of none such.
        """
        self._booted, self._opened, self._tell = booted, opened, tell
        gdb = opened.arch.gdb_system
        if gdb is None:
            raise CommandError(f"gdb is not served for machines of {opened.arch.name}")
        self.put: Callable[[bytes], object] = lambda body: None
        self._machine = DebuggedMachine(booted.machine, booted.log, opened, past=past)
        if past and self._machine.why_no_past:
            tell(self._machine.why_no_past)
        self._target = gdb()
        machine = self._machine
        self._stacks = BootStacks(
            *(opened, booted.machine.cpu, machine.addresses, machine.modules),
            machine.task_address,
        )
        self._frames = BootFrames(machine, self._stacks, opened)
        self._wanted: set[int] = set()
        self._watched: set[DataRange] = set()
        self._catches = KernelCatches(opened, machine)
        self._catch(catches)
        self._stop = b"T05"
        # gdb waits a few seconds for an answer: the file is there before anybody can ask for it.
        self._files = ServedFile(_FILE, symbol_file(opened.image, opened.arch))
        self._documents = Documents(self._document, _SIZE)
        self._commands: dict[bytes, Callable[[bytes], bytes]] = {
            b"?": lambda rest: self._stop_reply(),
            b"g": lambda rest: self._read_registers(),
            b"G": self._write_registers,
            b"p": self._read_register,
            b"P": self._write_register,
            b"m": self._read_memory,
            b"M": lambda rest: self._write_memory(rest, bytes.fromhex),
            b"X": lambda rest: self._write_memory(rest, None),
            b"H": lambda rest: _OK,
            b"T": lambda rest: _OK,
            b"c": lambda rest: self._move(step=False),
            b"s": lambda rest: self._move(step=True),
            b"b": self._back,
            b"Z": self._insert,
            b"z": self._remove,
            b"D": self._detach,
            b"k": self._kill,
            b"v": self._verbose,
            b"q": self._query,
            b"Q": lambda rest: _OK if rest == b"StartNoAckMode" else b"",
        }

    # -- a `PacketServer` -------------------------------------------------------------------

    def close(self) -> None:
        """Stop the machine."""
        self._booted.halt()

    @property
    def ended(self) -> bool:
        """True if the kernel has switched the machine off."""
        end = self._machine.end
        return end is not None and end.reason in _OVER

    @property
    def exit_code(self) -> int:
        """0, or 1 for a boot that has ended badly."""
        return int(self._machine.end is not None and not self.ended)

    def answer(self, packet: bytes) -> bytes:
        """The answer to a packet, escaped; nothing for one that is not known.

        Raises:
            LeaveError: the connection is over.
        """
        command = self._commands.get(packet[:1])
        if command is None:
            return b""
        try:
            return command(packet[1:])
        except (ValueError, IndexError, struct.error, OverflowError):
            return _DAMAGED
        except GuestFaultError:
            return _FAULT
        except KprobeTuiError as error:
            return b"E." + escaped(shown(str(error)).encode())

    def interrupt(self) -> None:
        """Stop a machine that runs, or that is about to; from any thread."""
        self._machine.interrupt()

    def run_to_end(self) -> int:
        """Let the machine run on without gdb; its exit code."""
        self._machine.stop_at(set())
        self._machine.watch(())
        while self._machine.end is None:
            self._machine.go()
        self._tell_end()
        return self.exit_code

    # -- registers and memory ---------------------------------------------------------------

    def _value(self, register: GdbRegister) -> bytes:
        value = self._machine.register(register.source) if register.source else register.value
        return (value & (1 << register.bits) - 1).to_bytes(register.bits // 8, "little")

    def _read_registers(self) -> bytes:
        return b"".join(map(self._value, self._target.registers)).hex().encode()

    def _read_register(self, rest: bytes) -> bytes:
        registers, wanted = self._target.registers, number(rest)
        return self._value(registers[wanted]).hex().encode() if wanted < len(registers) else b"E01"

    def _write_registers(self, rest: bytes) -> bytes:
        data, at = bytes.fromhex(rest.decode("ascii")), 0
        for register in self._target.registers:
            size = register.bits // 8
            if at + size > len(data):
                break
            self._put_register(register, data[at : at + size])
            at += size
        return _OK

    def _write_register(self, rest: bytes) -> bytes:
        which, _, value = rest.partition(b"=")
        register = self._target.registers[number(which)]
        self._put_register(register, bytes.fromhex(value.decode("ascii"))[: register.bits // 8])
        return _OK

    def _put_register(self, register: GdbRegister, data: bytes) -> None:
        if register.source and data != self._value(register):
            self._machine.set_register(register.source, int.from_bytes(data, "little"))

    def _read_memory(self, rest: bytes) -> bytes:
        address, size = (number(word) for word in rest.split(b","))
        found = self._machine.read(address, min(size, (_SIZE - 8) // 2))
        return found.hex().encode() or (_FAULT if size else b"")

    def _write_memory(self, rest: bytes, decode: Callable[[str], bytes] | None) -> bytes:
        where, _, data = rest.partition(b":")
        address, size = (number(word) for word in where.split(b","))
        if decode is not None:
            data = decode(data.decode("ascii"))
        if size != len(data):
            return _DAMAGED
        if data:
            self._machine.write(address, data)
        return _OK

    # -- breakpoints ------------------------------------------------------------------------

    def _insert(self, rest: bytes) -> bytes:
        words = rest.split(b";")[0].split(b",")
        if words[0] in _WATCHES:
            watched = _watched(words)
            self._machine.watch(self._watched | {watched})
            self._watched.add(watched)
            return _OK
        if words[0] not in (_SOFTWARE, _HARDWARE):
            return b""
        address = number(words[1])
        self._machine.stop_at(self._wanted | {address} | self._catches.places)
        self._wanted.add(address)
        return _OK

    def _remove(self, rest: bytes) -> bytes:
        words = rest.split(b",")
        if words[0] in _WATCHES:
            self._watched.discard(_watched(words))
            self._machine.watch(self._watched)
            return _OK
        if words[0] not in (_SOFTWARE, _HARDWARE):
            return b""
        self._wanted.discard(number(words[1]))
        self._machine.stop_at(self._wanted | self._catches.places)
        return _OK

    def _catch(self, kinds: Sequence[str]) -> None:
        """Stop at these kinds of what the kernel tells, besides the breakpoints."""
        self._catches.choose(kinds)
        self._machine.stop_at(self._wanted | self._catches.places)

    def _stopped(self) -> bytes:
        """The reply at a place where the machine was to stop.

        gdb goes on by itself from a breakpoint that it does not know: what is caught is a signal.
        """
        if reply := self._accessed():
            return reply
        caught = self._catches.caught()
        if caught:
            self._say(caught + "\n")
        known = self._machine.pc in self._wanted
        return b"T%02x" % _TRAP + b"swbreak:;" if known or not caught else b"T%02x" % _ABORT

    def _step_reply(self) -> bytes:
        return self._accessed() or b"T%02x" % _TRAP

    def _accessed(self) -> bytes:
        """The reply at an access to watched data; b"" elsewhere."""
        access = self._machine.accessed
        if access is None:
            return b""
        found = [one for one in self._watched if access.meets(one)]
        if not found:
            return b""
        watched = min(found)
        at = max(access.address, watched.first)
        return b"T%02x%s:%x;" % (_TRAP, _WATCH_NAMES[watched.kinds], at)

    # -- motions ----------------------------------------------------------------------------

    def _move(self, *, step: bool) -> bytes:
        machine = self._machine
        if machine.end is not None:
            self._say("the boot is over; there is only a way back\n")
            return self._stop_reply()
        behind = machine.is_past
        if step:
            machine.step()
            stopped = True
        else:
            stopped = machine.go()
        if machine.end is not None:
            self._tell_end()
            self._stop = b"W00" if self.ended else b"T%02x" % _ABORT
        elif stopped:
            self._stop = self._step_reply() if step else self._stopped()
        elif behind and not machine.is_past:
            self._stop = b"T05replaylog:end;"
        else:
            self._stop = b"T%02x" % _INTERRUPT
        return self._stop_reply()

    def _back(self, rest: bytes) -> bytes:
        """The commands bs and bc: a step backwards, and back to the last stop."""
        machine = self._machine
        if machine.why_no_past or rest not in (b"s", b"c"):
            return b""
        found = machine.step_back() if rest == b"s" else machine.go_back()
        if found:
            self._stop = self._stopped() if rest == b"c" else self._step_reply()
        elif machine.moment == machine.oldest:
            self._stop = b"T05replaylog:begin;"
        else:
            self._stop = b"T%02x" % _INTERRUPT
        return self._stop_reply()

    def _stop_reply(self) -> bytes:
        if self._stop[:1] != b"T":
            return self._stop
        return self._stop + b"thread:%x;core:0;" % _THREAD

    def _tell_end(self) -> None:
        end = self._machine.end
        if end is not None and (text := ended(end, self._booted.place(end.pc))):
            self._say(text + "\n")
            self._tell(text)

    def _detach(self, rest: bytes) -> bytes:
        self.put(_OK)
        raise LeaveError(goes_on=True)

    def _kill(self, rest: bytes) -> bytes:
        raise LeaveError(goes_on=False)

    def _verbose(self, rest: bytes) -> bytes:
        """The commands that begin with v."""
        name, _, words = rest.partition(b";")
        if rest == b"Cont?":
            return b"vCont;c;C;s;S"
        if name == b"Cont":
            actions = [action[:1] for action in words.split(b";")]
            if not set(actions) <= {b"s", b"S", b"c", b"C"}:
                return b""
            return self._move(step=actions[0] in (b"s", b"S"))
        if rest.startswith(b"File:"):
            found = self._files.answer(rest.removeprefix(b"File:"))
            return b"" if found is None else escaped(found)
        if name == b"Kill":
            self.put(_OK)
            raise LeaveError(goes_on=False)
        return b""

    # -- questions --------------------------------------------------------------------------

    def _query(self, rest: bytes) -> bytes:
        """The questions, which begin with q."""
        name, _, words = rest.partition(b":")
        if name == b"Supported":
            return _SUPPORTED + (b"" if self._machine.why_no_past else _REVERSE)
        if rest == b"C":
            return b"QC%x" % _THREAD
        if rest == b"Attached" or name == b"Attached":
            return b"1"
        if rest == b"fThreadInfo":
            return b"m%x" % _THREAD
        if rest == b"sThreadInfo":
            return b"l"
        if rest.startswith(b"ThreadExtraInfo,"):
            return self._task().encode().hex().encode()
        if name == b"Xfer":
            return self._documents.answer(words)
        if rest.startswith(b"Rcmd,"):
            self._say(self._monitor(bytes.fromhex(rest[5:].decode("ascii")).decode().strip()))
            return _OK
        if name == b"Symbol":
            return _OK
        return b""

    def _document(self, what: bytes, annex: bytes) -> bytes | None:
        match what:
            case b"features":
                if annex != b"target.xml":
                    raise ValueError(annex)
                return target.description(self._target).encode()
            case b"threads":
                return target.threads([(_THREAD, self._task())]).encode()
            case b"exec-file":
                return _FILE.encode()
            case b"memory-map":
                return target.ALL_MEMORY.encode()
        return None

    def _task(self) -> str:
        task = self._machine.task()
        name = task.comm.decode("ascii", "replace") or "?"
        return f"{shown(name)} {task.pid}" if task.address else "no task"

    # -- monitor ----------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        data = text.encode(errors="backslashreplace")
        for at in range(0, len(data), _SIZE // 4):
            with suppress(OSError):  # a gdb that has vanished is noticed by who reads packets
                self.put(b"O" + data[at : at + _SIZE // 4].hex().encode())

    def _monitor(self, text: str) -> str:
        """Carry out a word behind `monitor`; the text that gdb shows."""
        word, _, rest = text.partition(" ")
        try:
            match word:
                case "bt":
                    return "".join(f"{line}\n" for line in self._frames.take().lines())
                case "task":
                    return self._task() + "\n"
                case "moment":
                    return self._told_moment()
                case "seek":
                    self._seek(rest.strip())
                    return (
                        self._told_moment()
                        + "gdb notices with: maintenance flush register-cache\n"
                    )
                case "catch":
                    if rest.strip():
                        self._catch([] if rest.strip() == "off" else rest.split())
                    return f"caught: {', '.join(self._catches.kinds.values()) or 'nothing'}\n"
                case "help" | "":
                    return _HELP
        except KprobeTuiError as error:
            return f"{error}\n"
        return f"there is no {shown(word)}: monitor help\n"

    def _told_moment(self) -> str:
        moment = self._machine.moment
        return f"{moment.blocks}.{moment.steps}, {self._machine.nanoseconds / 1e9:.9f} s\n"

    def _seek(self, text: str) -> None:
        blocks, _, steps = text.partition(".")
        if not blocks.isdecimal() or (steps and not steps.isdecimal()):
            raise CommandError("monitor seek BLOCKS or BLOCKS.INSTRUCTIONS, as monitor moment")
        self._machine.seek(MachineMoment(int(blocks), int(steps or 0)))


def _watched(words: Sequence[bytes]) -> DataRange:
    """The data of a watchpoint: its kind, address and size.

    Raises:
        ValueError: there is none such.
    """
    first, size = number(words[1]), number(words[2])
    if not 0 < size <= _SIZE or first + size > 1 << 64:
        raise ValueError(words)
    return DataRange(first, size, _WATCHES[words[0]])


assert PAGE < _SIZE < MOST
