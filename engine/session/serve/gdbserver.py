"""A guest in the hands of gdb: the commands of its remote protocol.

Source: "GDB Remote Serial Protocol" of gdb's manual. A breakpoint that gdb takes out goes when the
guest moves next, so that those that it takes out at each stop and puts back stay where they are;
memory shows the program's own code, never what is planted. A word behind `monitor` is a line of
this program's own command line. A program that a deadlock or a limit has ended is told as one that
an interrupt has stopped: its threads can be looked at, and do not go on.
"""

import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Struct

from engine.arch.gdbtarget import GdbRegister
from engine.cpu.ram import EXECUTE
from engine.errors import CommandError, GuestFaultError, KprobeTuiError
from engine.escaping import escaped as shown
from engine.linux import signals as sig
from engine.session.control.control import Control
from engine.session.debugger.command_table import split_word
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.interpreter import Halting, HaltWish, Interpreter
from engine.session.debugger.places import CodePlace
from engine.session.debugger.stops import UserStop, UserWatchpoint
from engine.session.inspect.linkmap import link_maps
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig, Mode
from engine.session.protocol.views import RunState, StopCause
from engine.session.serve import target
from engine.session.serve.answering import LeaveError
from engine.session.serve.attention import AttentionTimer
from engine.session.serve.commandline import PassedLines, RecordedEvents
from engine.session.serve.gdbsignals import GDB_SIGNALS, LINUX_SIGNALS
from engine.session.serve.guestfiles import GuestFiles
from engine.session.serve.packets import MOST, Documents, escaped, number
from engine.session.serve.programmemory import ProgramMemory
from engine.session.serve.taken_output import PipedStreams
from engine.session.serve.watched import watch_bytes

_SIZE: Final = 0x8000
"""Bytes of a packet that gdb may send."""
_OK: Final = b"OK"
_FAULT, _REFUSED, _DAMAGED = b"E0e", b"E01", b"E16"
_SUPPORTED: Final = (
    f"PacketSize={_SIZE:x};QStartNoAckMode+;vContSupported+;swbreak+;hwbreak+;"
    "qXfer:features:read+;qXfer:auxv:read+;qXfer:threads:read+;qXfer:exec-file:read+;"
    "qXfer:libraries-svr4:read+;qXfer:memory-map:read+;qXfer:siginfo:read+;QPassSignals+"
).encode()
_REVERSE: Final = b";ReverseStep+;ReverseContinue+"
_SOFTWARE, _HARDWARE, _WRITE, _READ, _ACCESS = b"0", b"1", b"2", b"3", b"4"
_WATCHES: Final = {_WRITE: ("watch", "watch"), _READ: ("rwatch", "rwatch"),
                   _ACCESS: ("awatch", "awatch")}  # fmt: skip
_TRAP: Final = 5


class _Breakpoint(Struct, frozen=True):
    """A breakpoint as gdb asks for it: its kind, its address, and how many bytes are watched."""

    kind: bytes
    address: int
    size: int


class GdbServer:
    """Answers packets about one guest.

    Attributes:
        put: takes packets that are sent while a command is carried out.
        running: the guest is moving.
    """

    def __init__(
        self,
        config: GuestConfig,
        mode: Mode = Mode.KERNEL,
        tell: Callable[[str], object] = lambda text: None,
        *,
        sends_output: bool = False,
    ) -> None:
        """Load the guest, which stands at its first instruction.

        Args:
            config: the guest and its options.
            mode: strictness of breakpoints.
            tell: takes remarks for whoever has started the server.
            sends_output: gdb gets what the guest writes, as O packets, and nothing can be typed;
                otherwise the guest has the host's standard streams.

        Raises:
            KprobeTuiError: it cannot be loaded.
        """
        self._tell = tell
        self._events = RecordedEvents()
        self.put: Callable[[bytes], object] = lambda body: None
        self.running = self._monitors = False
        self._streams = PipedStreams(self._written) if sends_output else None
        wish = HaltWish()
        self._control = control = Control(
            config, self._told, mode=mode, terminal=self._streams, source=wish
        )
        self._halt = Halting(control, wish)
        self._interrupted = False
        # As in an interface breakpoints are kprobes with names: what Linux emulates takes no slot.
        # Words come from whoever has connected: files and shell of the host are not for them.
        self._debugger = Debugger(control, self._say, attached=True, remote=True)
        self._interpreter = Interpreter(self._debugger)
        self._memory = ProgramMemory(control)
        self._lines = PassedLines(
            control, self._interpreter, self._events, "What moves the guest is gdb's own business."
        )
        self._debugger.started = True
        gdb = control.session.arch.gdb
        if gdb is None:
            control.close()
            raise CommandError(f"gdb is not served for {control.session.arch.name}")
        self._target = gdb()
        self._registers = self._target.registers
        self._description = target.description(self._target).encode()
        self._wanted: dict[_Breakpoint, None] = {}
        self._planted: dict[_Breakpoint, UserStop] = {}
        self._traps: set[int] = set()
        """Places that are no code, where gdb waits for a function's return."""
        self._files = GuestFiles(control.session)
        self._attention = AttentionTimer(self._unheard, self._call)
        self._stop = b"T05"
        self._documents = Documents(self._document, _SIZE)
        self._commands: dict[bytes, Callable[[bytes], bytes]] = {
            b"?": lambda rest: self._stop_reply(),
            b"g": lambda rest: self._read_registers(),
            b"G": self._write_registers,
            b"p": self._read_register,
            b"P": self._write_register,
            b"m": self._read_memory,
            b"M": self._write_memory,
            b"X": self._write_bytes,
            b"H": self._choose,
            b"T": self._alive,
            b"c": lambda rest: self._resume(b"c", rest),
            b"C": lambda rest: self._resume(b"C", rest),
            b"s": lambda rest: self._resume(b"s", rest),
            b"S": lambda rest: self._resume(b"S", rest),
            b"b": self._back,
            b"Z": self._insert,
            b"z": self._remove,
            b"D": self._detach,
            b"k": self._kill,
            b"R": self._restart,
            b"!": lambda rest: _OK,
            b"v": self._verbose,
            b"q": self._query,
            b"Q": self._set,
        }

    def close(self) -> None:
        """Give back what belongs to the host."""
        self._attention.close()
        self._files.close()
        self._control.close()
        if self._streams is not None:
            self._streams.close()

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
        """Stop a guest that runs, or that is about to; from any thread."""
        self._interrupted = True
        if self.running:
            self._halt()
        self._attention.wanted()

    def _unheard(self) -> bool:
        return self.running and self._interrupted

    def _call(self) -> None:
        self._control.sight.attention()
        self._control.sight.nudge()

    @property
    def ended(self) -> bool:
        """True if the program is over."""
        return self._control.state is RunState.ENDED

    @property
    def exit_code(self) -> int:
        """The exit code of a program that is over."""
        return self._control.view().exit_code or 0

    def run_to_end(self) -> int:
        """Let the guest run on without gdb; its exit code."""
        while self._control.view().state is not RunState.ENDED:
            self._wanted.clear()
            self._sync(removes=True)
            try:
                self._debugger.move(cmd.Continue())
            except KprobeTuiError as error:
                self._tell(str(error))
                break
        return self.exit_code

    # -- what is told besides -------------------------------------------------------------------

    def _told(self, event: ev.SessionEvent) -> None:
        self._events.told(event)
        if isinstance(event, ev.Notice):
            self._tell(event.text)
        elif isinstance(event, ev.Remark):
            for line in event.lines:
                self._tell(line)

    def _say(self, text: str) -> None:
        """A text of a word behind `monitor`; what words say otherwise gdb says itself."""
        if not self._monitors:
            return
        self._put_output(text.encode(errors="backslashreplace"))

    def _written(self, data: bytes) -> None:
        """Send what the guest has written; gdb listens only while the guest moves."""
        if self.running or self._monitors:
            with suppress(OSError):  # a gdb that has vanished is noticed by who reads packets
                self._put_output(data)

    def _put_output(self, data: bytes) -> None:
        for at in range(0, len(data), _SIZE // 4):
            self.put(b"O" + data[at : at + _SIZE // 4].hex().encode())

    # -- threads ----------------------------------------------------------------------------

    def _thread_rows(self) -> list[tuple[int, str]]:
        machine = self._control.session.machine
        if self._is_gone:
            return []
        return [
            (tid, machine.comms.get(tid, b"").decode(errors="replace")) for tid in machine.threads
        ]

    def _choose(self, rest: bytes) -> bytes:
        """H: the thread that the next commands are about."""
        if rest[:1] != b"g":
            return _OK  # vCont says whose turn it is
        tid = _thread(rest[1:])
        if tid > 0:
            self._look_at(tid)
        return _OK

    def _look_at(self, tid: int) -> None:
        if tid != self._control.thread:
            self._control.loop.carry_out(cmd.ChooseThread(tid))

    def _alive(self, rest: bytes) -> bytes:
        return _OK if _thread(rest) in dict(self._thread_rows()) else _REFUSED

    # -- registers -----------------------------------------------------------------------------

    def _value(self, register: GdbRegister) -> bytes:
        session, size = self._control.session, register.bits // 8
        if not register.source:
            return register.value.to_bytes(size, "little")
        value = session.cpu.read_register(register.source)
        if register.source == session.arch.roles.pc:
            value = session.seen.hooks.original_pc(value)
        return (value & (1 << register.bits) - 1).to_bytes(size, "little")

    def _read_registers(self) -> bytes:
        self._need_program()
        with self._control.sight.visit():
            return b"".join(map(self._value, self._registers)).hex().encode()

    def _read_register(self, rest: bytes) -> bytes:
        self._need_program()
        wanted = number(rest)
        if wanted >= len(self._registers):
            return _REFUSED
        with self._control.sight.visit():
            return self._value(self._registers[wanted]).hex().encode()

    def _write_registers(self, rest: bytes) -> bytes:
        data, at = bytes.fromhex(rest.decode("ascii")), 0
        for register in self._registers:
            size = register.bits // 8
            if at + size > len(data):
                break
            self._put_register(register, data[at : at + size])
            at += size
        return _OK

    def _write_register(self, rest: bytes) -> bytes:
        which, _, value = rest.partition(b"=")
        data = bytes.fromhex(value.decode("ascii"))
        register = self._registers[number(which)]
        self._put_register(register, data[: register.bits // 8])
        return _OK

    def _put_register(self, register: GdbRegister, data: bytes) -> None:
        self._need_program()
        with self._control.sight.visit():
            before = self._value(register)
        if register.source and data != before:
            value = int.from_bytes(data, "little")
            self._control.loop.carry_out(cmd.WriteRegister(register.source, value))

    # -- memory -----------------------------------------------------------------------------

    def _read_memory(self, rest: bytes) -> bytes:
        address, size = (number(word) for word in rest.split(b","))
        self._need_program()
        found = self._memory.readable(address, min(size, (_SIZE - 8) // 2))
        return found.hex().encode() or (_FAULT if size else b"")

    def _write_memory(self, rest: bytes) -> bytes:
        where, _, data = rest.partition(b":")
        return self._poke(where, bytes.fromhex(data.decode("ascii")))

    def _write_bytes(self, rest: bytes) -> bytes:
        where, _, data = rest.partition(b":")
        return self._poke(where, data)

    def _poke(self, where: bytes, data: bytes) -> bytes:
        address, size = (number(word) for word in where.split(b","))
        if size != len(data):
            return _DAMAGED
        self._need_program()
        if data:
            self._control.loop.carry_out(cmd.WriteMemory(address, data))
        return _OK

    @property
    def _is_gone(self) -> bool:
        """True if the program has ended, and nothing of it is left to look at."""
        return self._control.state is RunState.ENDED and not self._control.session.left_standing

    def _need_program(self) -> None:
        if self._is_gone:
            raise CommandError("the program has ended")

    # -- breakpoints ------------------------------------------------------------------------

    def _asked(self, rest: bytes) -> _Breakpoint:
        words = rest.split(b";")[0].split(b",")
        kind, address, size = words[0], number(words[1]), number(words[2])
        if kind in (_SOFTWARE, _HARDWARE):
            kind, size = _SOFTWARE, 0
        elif kind not in _WATCHES:
            raise ValueError(kind)
        return _Breakpoint(kind, address, size)

    def _insert(self, rest: bytes) -> bytes:
        wanted = self._asked(rest)
        self._need_program()
        if wanted not in self._wanted:
            if wanted not in self._planted:
                self._plant(wanted)
            self._wanted[wanted] = None
        return _OK

    def _remove(self, rest: bytes) -> bytes:
        gone = self._asked(rest)
        self._wanted.pop(gone, None)
        self._traps.discard(gone.address)
        return _OK

    def _plant(self, wanted: _Breakpoint) -> None:
        """Have the guest stop there, whatever words behind `monitor` place and delete."""
        stops = self._debugger.stops
        if wanted.kind == _SOFTWARE and not self._is_code(wanted.address):
            self._traps.add(wanted.address)
            return
        if wanted.kind == _SOFTWARE:
            self._planted[wanted] = stops.add_own(CodePlace(wanted.address), lambda: True)
            return
        word, _ = _WATCHES[wanted.kind]
        self._planted[wanted] = watch_bytes(
            self._debugger, self._interpreter, word, wanted.address, wanted.size
        )

    def _is_code(self, address: int) -> bool:
        """True where code may run; gdb has functions that it calls return to the stack."""
        with self._control.sight.visit():
            mapping = self._control.session.seen.memory.find(address)
        return mapping is not None and bool(mapping.perms & EXECUTE)

    def _sync(self, *, removes: bool) -> None:
        """Take out what gdb has taken out, unless the guest only steps: that does no harm.

        A watchpoint that a word has deleted is watched again.
        """
        stops = self._debugger.stops
        for wanted, stop in list(self._planted.items()):
            stands = not stop.number or stops.all.get(stop.number) is stop
            if wanted in self._wanted:
                if not stands:
                    self._plant(wanted)
            elif removes or not stands:
                del self._planted[wanted]
                if stands:
                    stops.delete(stop)

    # -- motions ----------------------------------------------------------------------------

    def _resume(self, action: bytes, rest: bytes) -> bytes:
        """The old commands: c, s, C and S with a signal."""
        signal = 0
        if action in (b"C", b"S"):
            signal = number(rest.partition(b";")[0])
        return self._move(step=action in (b"s", b"S"), signal=signal)

    def _back(self, rest: bytes) -> bytes:
        """The commands bs and bc: a step backwards, and back to the last stop."""
        if not self._control.config.history or rest not in (b"s", b"c"):
            return b""
        self._sync(removes=rest == b"c")
        before = self._control.view()
        answer = self._go(cmd.StepBack() if rest == b"s" else cmd.ContinueBack())
        now = self._control.view()
        stays = (now.time, now.pc) == (before.time, before.pc)
        if self._stop == b"T05" and (stays or rest == b"c"):  # nothing has stopped it on the way
            self._stop = b"T05replaylog:begin;"
            return self._stop_reply()
        return answer

    def _move(self, *, step: bool, signal: int) -> bytes:
        """Let the guest move; why it has stopped."""
        self._need_program()
        if self.ended:  # a deadlock or a limit has ended the run: it stands where it did
            self._put_output(f"the program cannot go on: {self._control.view().reason}\n".encode())
            return self._stop_reply()
        self._sync(removes=not step)
        self._debugger.give_signal(LINUX_SIGNALS.get(signal, 0))
        behind = self._is_past
        answer = self._go(cmd.StepInsn() if step else cmd.Continue())
        if behind and not step and self._stop == b"T05" and not self._is_past:
            self._stop = b"T05replaylog:end;"
            return self._stop_reply()
        return answer

    @property
    def _is_past(self) -> bool:
        """True where the guest stands in front of the end of its recording."""
        found = self._control.history()
        return found is not None and found[0] < found[1]

    def _go(self, command: cmd.Command) -> bytes:
        """Carry out a motion; why the guest has stopped."""
        debugger = self._debugger
        self.running = True
        if self._interrupted:
            self._halt()
            self._attention.wanted()
        try:
            debugger.move(command)
            debugger.pending.clear()
        finally:
            self.running = self._interrupted = False
        self._stop = self._why()
        return self._stop_reply()

    def _why(self) -> bytes:
        """The stop at hand, without the thread."""
        debugger, view = self._debugger, self._control.view()
        if view.state is RunState.ENDED:
            if not self._is_gone:
                return b"T%02x" % sig.SIGINT
            end = self._control.session.machine.exit
            if end is not None and end.signal:
                return b"X%02x" % GDB_SIGNALS.get(end.signal, 143)
            return b"W%02x" % ((view.exit_code or 0) & 0xFF)
        if view.cause is StopCause.INTERRUPTED:
            return b"T%02x" % sig.SIGINT
        if debugger.signal == sig.SIGSEGV and view.pc in self._traps:
            return b"T%02xswbreak:;" % _TRAP
        if view.cause is StopCause.SIGNAL and debugger.signal:
            return b"T%02x" % GDB_SIGNALS.get(debugger.signal, 143)
        for stop in debugger.stops.reached:
            for wanted, planted in self._planted.items():
                if planted is not stop and getattr(stop, "stands_for", None) is not planted:
                    continue
                if isinstance(planted, UserWatchpoint):
                    _, name = _WATCHES[wanted.kind]
                    return b"T%02x%s:%x;" % (_TRAP, name.encode(), wanted.address)
                return b"T%02xswbreak:;" % _TRAP
        return b"T%02x" % _TRAP

    def _stop_reply(self) -> bytes:
        if self._stop[:1] != b"T":
            return self._stop
        machine = self._control.session.machine
        return self._stop + b"thread:%x;core:0;" % machine.tid

    def _detach(self, rest: bytes) -> bytes:
        self.put(_OK)
        raise LeaveError(goes_on=True)

    def _kill(self, rest: bytes) -> bytes:
        raise LeaveError(goes_on=False)

    def _restart(self, rest: bytes) -> bytes:
        """R: the program from its beginning; it has no answer."""
        self._begin_again()
        return b""

    def _begin_again(self) -> None:
        self._wanted.clear()
        self._sync(removes=True)
        self._debugger.restart()
        self._debugger.started = True
        self._files.close()
        self._files = GuestFiles(self._control.session)
        self._stop = b"T05"

    def _verbose(self, rest: bytes) -> bytes:
        """The commands that begin with v."""
        name, _, words = rest.partition(b";")
        if rest == b"Cont?":
            return b"vCont;c;C;s;S"
        if name == b"Cont":
            return self._continue(words)
        if rest.startswith(b"File:"):
            found = self._files.answer(rest.removeprefix(b"File:"))
            return b"" if found is None else escaped(found)
        if name == b"Kill":
            self.put(_OK)
            raise LeaveError(goes_on=False)
        if name == b"Run":
            self._begin_again()
            return self._stop_reply()
        return b""

    def _continue(self, words: bytes) -> bytes:
        """vCont: a thread steps, or all run on."""
        step, signal, threads = False, 0, [0]
        for action in words.split(b";"):
            what, _, where = action.partition(b":")
            tid = _thread(where) if where else -1
            if what[:1] in (b"s", b"S"):
                step, threads = True, [tid]
            if what[:1] in (b"C", b"S"):
                signal = number(what[1:])
            elif what[:1] not in (b"c", b"s"):
                return b""
        if step and threads[0] > 0:
            self._look_at(threads[0])
        return self._move(step=step, signal=signal)

    # -- questions --------------------------------------------------------------------------

    def _query(self, rest: bytes) -> bytes:
        """The questions, which begin with q."""
        name, _, words = rest.partition(b":")
        if name == b"Supported":
            return _SUPPORTED + (_REVERSE if self._control.config.history else b"")
        if rest == b"C":
            return b"QC%x" % self._control.thread
        if rest == b"Attached" or name == b"Attached":
            return b"0"
        if rest == b"fThreadInfo":
            ids = ",".join(f"{tid:x}" for tid, _ in self._thread_rows())
            return b"m" + ids.encode() if ids else b"l"
        if rest == b"sThreadInfo":
            return b"l"
        if rest.startswith(b"ThreadExtraInfo,"):
            name_ = dict(self._thread_rows()).get(_thread(rest.split(b",")[1]), "")
            return (name_ or "?").encode().hex().encode()
        if name == b"Xfer":
            return self._documents.answer(words)
        if rest.startswith(b"Rcmd,"):
            text = bytes.fromhex(rest[5:].decode("ascii")).decode(errors="replace")
            return self._monitor(text.strip())
        if name == b"Symbol":
            return _OK
        return b""

    def _set(self, rest: bytes) -> bytes:
        name, _, words = rest.partition(b":")
        if name == b"StartNoAckMode":
            return _OK
        if name == b"PassSignals":
            passed = {LINUX_SIGNALS.get(number(word)) for word in words.split(b";") if word}
            for each in GDB_SIGNALS:
                rule = self._debugger.signals[each]
                rule.stop = each not in passed
                rule.passed = True
            return _OK
        return b""

    def _document(self, what: bytes, annex: bytes) -> bytes | None:
        session = self._control.session
        match what:
            case b"features":
                if annex != b"target.xml":
                    raise ValueError(annex)
                return self._description
            case b"auxv":
                start = session.seen.start
                return start.auxv if start is not None else b""
            case b"threads":
                return target.threads(self._thread_rows()).encode()
            case b"exec-file":
                return session.paths.guest.encode(errors="surrogateescape")
            case b"memory-map":
                return target.MEMORY_MAP.encode()
            case b"siginfo":
                kept = session.machine.current.kept_signal
                return kept.item.info if kept is not None else bytes(128)
            case b"libraries-svr4":
                return self._libraries().encode(errors="surrogateescape")
        return None

    def _libraries(self) -> str:
        modules = self._control.session.seen.modules
        if modules.main is None:
            return target.libraries(0, ())
        found = link_maps(modules.main, self._memory.read)
        main = found[0][1] if found else 0
        return target.libraries(main, [row for row in found[1:] if row[0]])

    # -- monitor ----------------------------------------------------------------------------

    def _monitor(self, text: str) -> bytes:
        """A line of our own command line; what it prints, and what is wrong with it, is shown."""
        self._monitors = True
        try:
            for line in self._carried_out(text):
                self._say(line + "\n")
        except KprobeTuiError as error:
            self._say(f"{error}\n")
        finally:
            self._monitors = False
        return _OK

    def _carried_out(self, text: str) -> list[str]:
        told = self._lines.told(text)
        if told is None:
            if self._lines.moves(text):
                raise CommandError(f"{split_word(text)[0]} would move the guest behind gdb's back")
            self._interpreter.line(text)
        return told or []


def _thread(word: bytes) -> int:
    """An id: 0 for any thread, -1 for all; `pPID.TID` is that of the thread."""
    if word[:1] == b"p":
        word = word.partition(b".")[2] or b"-1"
    return -1 if word == b"-1" else number(word)


assert _SIZE < MOST
