"""The engine for programs of others: a guest, its probes and events, memory and backtraces.

What a `Guest` does is done by the same `Control` that the terminal interface has. A guest belongs
to one thread; nothing of it runs while none of its methods does.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError
from engine.session.control.control import Control
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.interpreter import Interpreter
from engine.session.guest.terminal import CapturedStreams
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import USUAL_CPU, GuestConfig, Mode
from engine.session.protocol.frames import GuestFrame as GuestFrame
from engine.session.protocol.views import RunState, StopCause
from engine.trace.ring import Ring
from engine.trace.rows import EventInfo, EventSource, Value, decode

_STACK: Final = EventSource.STACK


class RecordedEvent(Struct, frozen=True):
    """An event that a probe has recorded.

    Attributes:
        group: first part of its name.
        name: second part.
        time: ticks of the guest's clock.
        pid: the process.
        tid: the thread.
        comm: the thread's name, as it is now.
        address: of the probe; of the function for a return event.
        symbol: the same as "ackermann+0x0/0x34".
        returned_to: where a return event's function returns to, else None.
        values: the arguments by name: numbers, bytes of strings, None for a string that could not
            be read, tuples of these for arrays.
    """

    group: str
    name: str
    time: int
    pid: int
    tid: int
    comm: str
    address: int
    symbol: str
    returned_to: int | None
    values: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        """An argument by its name; KeyError if it has none of that name."""
        return self.values[name]


class GuestStop(Struct, frozen=True):
    """The reason why a guest stands, or how it has ended.

    Attributes:
        reason: in words.
        ended: the program is over.
        exit_code: then its exit code, 128 more than the signal that ended it; else None.
        hit: a breakpoint has stopped it.
        signal: number of the signal that it is about to get, 0 for none.
        pc: where it stands.
        location: the same as "ackermann+0x0".
        thread: id of the thread that runs.
    """

    reason: str
    ended: bool
    exit_code: int | None
    hit: bool
    signal: int
    pc: int
    location: str
    thread: int


class Guest:
    """A program in a guest of its own, which stands until it is let run.

    A context manager: at its end the guest is gone.
    """

    def __init__(
        self, config: GuestConfig, data: bytes = b"", *, linux_rules: bool = False
    ) -> None:
        """Load the program; see `open_guest`."""
        self._streams = CapturedStreams(data)
        self._infos: dict[int, EventInfo] = {}
        self._ring = Ring()
        self._notices: list[str] = []
        mode = Mode.KERNEL if linux_rules else Mode.STRICT
        try:
            self._control = Control(config, self._told, mode=mode, terminal=self._streams)
        except BaseException:
            self._streams.close()
            raise
        self._text: list[str] = []
        self._debugger = Debugger(self._control, self._text.append)
        self._interpreter = Interpreter(self._debugger)
        self._debugger.started = True
        self._open = True

    def __enter__(self) -> "Guest":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the guest, and give back what belongs to the host."""
        if self._open:
            self._open = False
            self._control.close()
            self._streams.close()

    def _told(self, event: ev.SessionEvent) -> None:
        if isinstance(event, ev.Declared):
            self._infos.update((info.id, info) for info in event.infos)
        elif isinstance(event, ev.Rows):
            self._ring.append(event.data)
        elif isinstance(event, ev.Notice):
            self._notices.append(event.text)
        elif isinstance(event, ev.Remark):
            self._notices += event.lines

    # -- probes and events -------------------------------------------------------------------

    def place(self, definition: str) -> None:
        """Carry out a line of `kprobe_events` or `uprobe_events`: p:EVENT PLACE ARGS, r:..., -:...

        Raises:
            KprobeTuiError: it is not accepted.
        """
        self._control.loop.carry_out(cmd.Define(definition))

    def stop_at(self, place: str) -> None:
        """Stop whenever a place is reached: SYM[+OFF], LIB:SYM, 0xADDR, FILE:LINE. Again: no more.

        Raises:
            KprobeTuiError: there is no such place.
        """
        self._control.loop.carry_out(cmd.ToggleBreak(place))

    def events(self) -> Iterator[RecordedEvent]:
        """The events that were recorded since this was asked last, in their order; each once."""
        self._control.refresh()
        ring, self._ring = self._ring, Ring()
        machine, modules = self._control.session.machine, self._control.session.modules
        symbols: dict[int, str] = {}
        for row in ring:
            one = decode(self._infos, row)
            info = self._infos[one.id]
            if info.source is _STACK:
                continue
            if one.address not in symbols:
                found = modules.locate(one.address)
                size = f"/{found.symbol.size:#x}" if found.symbol is not None else ""
                name = found.symbol.name if found.symbol is not None else ""
                symbols[one.address] = (
                    f"{name}+{found.offset:#x}{size}" if name else f"{one.address:#x}"
                )
            columns = (column.name for column in info.columns)
            yield RecordedEvent(
                one.group,
                one.name,
                one.time,
                machine.pids.get(one.thread_id, one.thread_id),
                one.thread_id,
                machine.comms.get(one.thread_id, b"").decode(errors="replace"),
                one.address,
                symbols[one.address],
                one.returned_to,
                dict(zip(columns, one.values, strict=True)),
            )

    # -- running -------------------------------------------------------------------------------

    def run(self) -> GuestStop:
        """Let the guest run to its next stop, or to its end.

        A signal that would end it, or that it handles itself, stops it first; the next `run`
        delivers it.

        Raises:
            KprobeTuiError: it has ended.
        """
        return self._move(cmd.Continue())

    def step(self) -> GuestStop:
        """Execute one instruction; see `run`."""
        return self._move(cmd.StepInsn())

    def _move(self, command: cmd.Command) -> GuestStop:
        self._debugger.move(command)
        self._debugger.pending.clear()
        return self.stop

    @property
    def stop(self) -> GuestStop:
        """Why it stands."""
        view = self._control.view()
        signal = self._debugger.signal if view.cause is StopCause.SIGNAL else 0
        return GuestStop(
            view.reason,
            view.state is RunState.ENDED,
            view.exit_code,
            view.cause is StopCause.HIT,
            signal,
            view.pc,
            view.location,
            view.thread,
        )

    @property
    def output(self) -> bytes:
        """The first 16 MiB that the program has written to its standard output."""
        return bytes(self._streams.output)

    @property
    def errors(self) -> bytes:
        """The same of its standard error."""
        return bytes(self._streams.errors)

    @property
    def notices(self) -> Sequence[str]:
        """Remarks of the engine: probes that never hit, files that are damaged, and so on."""
        return tuple(self._notices)

    # -- looking -------------------------------------------------------------------------------

    @property
    def arch(self) -> str:
        """Name of its architecture."""
        return self._control.session.arch.name

    @property
    def registers(self) -> Mapping[str, int]:
        """All registers of the thread that runs."""
        session = self._control.session
        read = session.cpu.read_register
        found = {register.name: read(register.name) for register in session.arch.registers}
        pc = session.arch.roles.pc
        found[pc] = session.seen.hooks.original_pc(found[pc])
        return found

    def set_register(self, name: str, value: int) -> None:
        """Set a register.

        Raises:
            KprobeTuiError: there is none of that name.
        """
        self._control.loop.carry_out(cmd.WriteRegister(name, value))

    def read(self, address: int, size: int) -> bytes:
        """Memory as the program has it, without what probes have planted.

        Raises:
            KprobeTuiError: nothing is mapped there.
        """
        space = self._control.session.seen
        try:
            return space.hooks.original(address, space.memory.peek(address, size))
        except GuestFaultError as error:
            raise CommandError(f"{size} bytes at {address:#x} cannot be read") from error

    def write(self, address: int, data: bytes) -> None:
        """Set bytes of memory, code included.

        Raises:
            KprobeTuiError: nothing is mapped there.
        """
        self._control.loop.carry_out(cmd.WriteMemory(address, data))

    def backtrace(self) -> list[GuestFrame]:
        """The frames of the thread that runs, innermost first, those of inlined calls too.

        A frame that a signal has put there is called "<signal handler called>", as in gdb.
        """
        self._control.refresh()
        return [
            replace(one, function=one.title) if one.signal else one
            for one in self._control.view().frames
            if not one.differs
        ]

    def command(self, line: str) -> str:
        """Carry out a word of gdb's; what it prints.

        Raises:
            KprobeTuiError: it cannot be carried out.
        """
        self._text.clear()
        self._interpreter.line(line)
        return "".join(self._text)


def open_guest(
    path: str,
    *args: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    root: str | None = None,
    core: str | None = None,
    seed: int = 0,
    max_blocks: int | None = None,
    technique: str = "auto",
    linux_rules: bool = False,
    guest_cpu: str = USUAL_CPU,
) -> Guest:
    """Load a program into a guest, which stands at its first instruction.

    Args:
        path: of the ELF file.
        args: its arguments.
        stdin: what it can read from standard input.
        env: its environment; empty if not given.
        root: a directory that is the guest's whole tree.
        core: a core file that a process of it has left, to be looked at.
        seed: of everything random, the turns of threads included.
        max_blocks: basic blocks after which it is ended.
        technique: of probes: auto, breakpoint or jump.
        linux_rules: accept and refuse probes exactly as Linux does.
        guest_cpu: level of its processor, v2 or v3.

    Raises:
        KprobeTuiError: it cannot be loaded.
    """
    config = GuestConfig(
        path,
        args,
        root=root,
        core=core,
        env=tuple(f"{key}={value}" for key, value in (env or {}).items()),
        seed=seed,
        max_blocks=max_blocks,
        technique=technique,
        guest_cpu=guest_cpu,
    )
    return Guest(config, stdin, linux_rules=linux_rules)
