"""A booted kernel under control: carries the commands of front ends out, boot after boot.

`MachineControl` belongs to one thread. It gets its commands from `execute`, and while the machine
moves from a source, once `attention` was called (from any thread). What happens is told through
`tell`, in the same events as of a program's guest.
"""

import gc
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CommandError, GuestFaultError, KprobeTuiError, ProbeSyntaxError
from engine.machine.stepping import MachineMoment
from engine.message_text import counted
from engine.session.bootcontrol.boot import ControlledBoot, words_of
from engine.session.bootcontrol.functions import BootFunctions
from engine.session.bootcontrol.motions import MachineMotions
from engine.session.bootcontrol.probe_rows import BootProbeRows
from engine.session.bootcontrol.script import BootScript
from engine.session.bootcontrol.telescope import MachineTelescope
from engine.session.bootcontrol.views import MachineParts, MachineViewing
from engine.session.bootcontrol.words import BootWords
from engine.session.headless.bootable import bootable
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.kinds import CommandKind, kind_of
from engine.session.protocol.probes import ProbeRow
from engine.session.protocol.scripts import BootScriptRequest
from engine.session.protocol.views import GuestView, HistoryView, MarkView, RunState
from engine.trace.rows import count_rows

_PAGE: Final = 1 << 12
_AT_ONCE: Final = (CommandKind.QUESTION, CommandKind.TERMINAL)
"""Kinds that are carried out while the machine moves, as it is then."""
_PROGRAMS: Final[Mapping[type[cmd.Command], str]] = {
    cmd.CallFunction: "no function is called in a kernel that runs: without --boot one is",
    cmd.LastRegisterWrite: "the last write of a register is not looked for in a booted kernel;"
    " that of memory is",
    cmd.Origin: "values are followed back in programs; in a booted kernel the last write of memory"
    " is found",
    cmd.FirstTime: "a moment is looked for by an expression in programs only",
    cmd.LastTime: "a moment is looked for by an expression in programs only",
    cmd.StartBranch: "a boot has one history: what is changed in the present begins no other",
    cmd.SwitchBranch: "a boot has one history",
    cmd.DeleteBranch: "a boot has one history",
    cmd.CompareBranches: "a boot has one history",
    cmd.LoadHandlers: "handlers of Python are for programs; :bpftrace runs scripts",
    cmd.Assemble: "instructions are assembled in programs only; bytes can be written",
    cmd.ReadLayout: "the types of a kernel's objects are not laid out here: bytes and words are",
    cmd.Signal: "a machine gets no signals; 7 types on the console",
    cmd.Unwind: "the stack of a booted kernel is walked by the kernel's own tables alone",
    cmd.StepAlone: "a machine has one processor: its kernel chooses who runs",
    cmd.ChooseGoroutine: "a kernel has no goroutines",
    cmd.ListGoroutines: "a kernel has no goroutines",
}
"""Commands that are for programs, and what to do instead."""

Handler = Callable[[Any], str]


class BootMark(Struct, frozen=True):
    """A bookmark.

    Attributes:
        moment: when.
        time: the same in nanoseconds since power-on.
        pc: of the instruction that comes next.
    """

    moment: MachineMoment
    time: int
    pc: int


class MachineCommands(Protocol):
    """Gives commands while a machine moves."""

    def waiting(self) -> cmd.Command | None:
        """Give the next command, None if none has come in; raises where the end has come."""


class MachineControl:
    """One machine, boot after boot."""

    def __init__(
        self,
        config: GuestConfig,
        tell: Callable[[ev.SessionEvent], object],
        source: MachineCommands,
        *,
        mode: Mode = Mode.STRICT,
    ) -> None:
        """Lay the kernel out.

        Args:
            config: with what is to be booted.
            tell: takes what is to be known.
            source: gives commands while the machine moves.
            mode: strictness of definitions.

        Raises:
            ImageError: the kernel cannot be read.
            CommandError: it cannot be booted.
        """
        assert config.boot is not None, "a boot was asked for"
        self._config, self._request, self._tell = config, config.boot, tell
        self._source, self._mode = source, mode
        self._parts = bootable(self._request)
        self._opened = OpenedKernel(self._parts.kernel, config.kernel)
        self._ahead: deque[cmd.Command] = deque()
        self._restarts = self._moves = self._cut = False
        self._pid: int | None = None
        self._frame = self._moment = self._changed = self._count = self._declared = 0
        self._marks: dict[str, BootMark] = {}
        self._end = 0
        self._seen = MachineParts()
        self._viewed = GuestView()
        self._is_stale = True
        self._functions = BootFunctions()
        self._script: BootScriptRequest | None = None
        self._handlers = self._table()
        boot = self._made(())
        self._begin(boot, BootProbeRows(boot))

    # -- boots ------------------------------------------------------------------------------

    def _made(self, rows: tuple[ProbeRow, ...]) -> ControlledBoot:
        """A boot in front of its first instruction; raises `KprobeTuiError` for none."""
        return ControlledBoot(
            *(self._request, self._parts, self._opened, _lines(rows), self._written, self._rows),
            past=self._config.history,
            mode=self._mode,
            script=self._script,
        )

    def _begin(self, boot: ControlledBoot, rows: BootProbeRows) -> None:
        """Have a fresh boot at hand, with probes that are placed in it."""
        self._count = self._declared = 0
        self._viewed = GuestView()
        self._boot = boot
        self._machine = boot.machine
        self._list = rows
        self._functions.begin(boot.tracing)
        boot.tracing.start()
        self._motions = MachineMotions(boot, self._list, self._goes_on)
        self._viewing = MachineViewing(boot, self._config.guest)
        self._words = BootWords(boot, self._list, self._motions, self._changed_by_words)
        self._pid, self._frame, self._marks, self._end = None, 0, {}, boot.known_until
        self._is_stale = True
        for text in self._list.failed:
            self._tell(ev.Notice(text))
        self._tell(ev.ProgramBegan(0, 0, 0))
        for module in self._viewing.modules:
            self._tell(ev.FileMapped(0, module))
        if boot.booted.damage:
            self._tell(ev.Notice(boot.booted.damage))

    def _begin_instead(
        self,
        rows: tuple[ProbeRow, ...],
        news: ev.SessionEvent | None = None,
        *,
        alike: bool = False,
        whole: bool = False,
    ) -> None:
        """Have a fresh boot in the place of the one at hand, whose memory is given back.

        Args:
            rows: the probes.
            news: what is told in front of all that is told of the fresh one.
            alike: the same is typed at the same times.
            whole: there is another boot only if all probes can be placed in it.

        Raises:
            KprobeTuiError: there is no other boot; the one at hand stays.
        """
        boot, before = self._made(rows), self._boot
        placed = BootProbeRows(boot, rows)
        if whole and placed.failed:
            boot.close()
            raise CommandError(placed.failed[-1].removeprefix(f"{rows[-1].line}: "))
        before.tracing.drain()
        if alike:
            boot.booted.follow(before.booted)
        if news is not None:
            self._tell(news)
        self._begin(boot, placed)
        before.close()
        del before
        gc.collect()  # a machine is as large as its memory, twice with a past

    def _written(self, data: bytes) -> None:
        """The console has written something for the first time."""
        self._tell(ev.Output(data, self._machine.nanoseconds, self._machine.pc))

    def _rows(self, data: bytes) -> None:
        self._declare()
        comms = {**self._viewed.comms, **self._boot.comms}
        if comms != self._viewed.comms:  # a row is drawn with the names that are known then
            pids = {**self._viewed.pids, **self._boot.pids}
            self._viewed = replace(self._viewed, comms=comms, pids=pids)
            self._tell(ev.Viewed(self._viewed))
        count = count_rows(data)
        self._count += count
        self._tell(ev.Rows(data, count))

    def _declare(self) -> None:
        infos = self._boot.tracing.table
        if len(infos) > self._declared:
            fresh = tuple(info for number, info in infos.items() if number > self._declared)
            self._declared = max(info.id for info in fresh)
            self._tell(ev.Declared(fresh))

    # -- commands ---------------------------------------------------------------------------

    def attention(self, command: cmd.Command | None = None) -> None:
        """Have a machine that moves hear what has come in; from any thread.

        Args:
            command: what has come in; None for the end.
        """
        if self._moves and (self._motions.hears or isinstance(command, cmd.Halt | None)):
            self._machine.interrupt()

    def execute(self, command: cmd.Command) -> None:
        """Carry a command out, and tell how it went."""
        self._ahead.append(command)
        changed = False
        while self._ahead:
            following = self._ahead.popleft()
            self._cut = False
            self._attempt(following)
            changed = changed or kind_of(following).changes_view
            if self._restarts:
                self._restarts = False
                self._attempt(cmd.Restart())
        if changed:
            self.refresh()

    def _attempt(self, command: cmd.Command) -> None:
        try:
            self._tell(ev.Done(command, self._carry_out(command)))
        except ProbeSyntaxError as error:
            text = str(error)
            self._tell(ev.Failed(command, text, error.hint, error.command, error.column))
        except KprobeTuiError as error:
            self._tell(ev.Failed(command, str(error), error.hint))

    def _carry_out(self, command: cmd.Command) -> str:
        why = _PROGRAMS.get(type(command))
        if why is not None:
            raise CommandError(why)
        return self._handlers[type(command)](command)

    def _goes_on(self) -> bool:
        """Hear what has come in while the machine moves: whether the motion goes on."""
        changed = False
        while (command := self._source.waiting()) is not None:
            kind = kind_of(command)
            if kind is CommandKind.HALT:
                self._cut = True
                self._ahead.clear()
                self._tell(ev.Done(command))
            elif kind is CommandKind.RESTART:
                self._cut = self._restarts = True
                self._ahead.clear()
            elif kind in _AT_ONCE or isinstance(command, cmd.Refresh | cmd.SelectFrame):
                self._attempt(command)
                changed = changed or kind.changes_view
            elif kind is CommandKind.STILL:
                self._attempt(command)  # the machine stands between two blocks
                changed = True
            elif kind.moves or kind.travels:
                self._ahead.append(command)
            else:
                self._tell(ev.Failed(command, "the kernel is running", "Ctrl-C stops it"))
        if changed:
            self.refresh()
        return not self._cut

    def _move(self, motion: Callable[[], None]) -> str:
        self._pid = None
        self._frame = 0
        self._moment += 1
        self._moves = True
        try:
            self._motions.move(motion)
        finally:
            self._moves = False
            self._is_stale = True
            self._changed += 1
        if self._motions.state is RunState.ENDED:
            self._tell_end()
        return self._motions.reason

    def _tell_end(self) -> None:
        self._boot.tracing.drain()
        if self._boot.script is not None:
            self._boot.script.end()
        for remark in self._list.remarks():
            self._tell(ev.Remark(remark.lines))
        end, booted = self._machine.end, self._boot.booted
        if end is not None and not booted.log.stopping:
            booted.compare(end)
        if booted.difference:
            self._tell(ev.Remark((booted.difference,)))

    def _table(self) -> dict[type[cmd.Command], Handler]:
        """The commands that a machine obeys."""
        return {
            cmd.Continue: lambda _: self._move(self._motions.go),
            cmd.ContinueToHit: lambda _: self._move(self._to_hit),
            cmd.StepInsn: lambda given: self._move(lambda: self._motions.step(given.count)),
            cmd.StepOver: lambda given: self._move(
                lambda: self._motions.step(given.count, over=True)
            ),
            cmd.StepLine: lambda given: self._move(lambda: self._motions.line(over=given.over)),
            cmd.StepPhase: lambda _: self._move(lambda: self._motions.step(1)),
            cmd.FinishHit: lambda _: "",
            cmd.RunTo: lambda given: self._move(lambda: self._motions.to(given.address)),
            cmd.Finish: lambda _: self._finish(),
            cmd.StepBack: lambda given: self._move(
                lambda: self._motions.step_back(over=given.over)
            ),
            cmd.PhaseBack: lambda _: self._move(self._motions.step_back),
            cmd.LineBack: lambda given: self._move(
                lambda: self._motions.line_back(over=given.over)
            ),
            cmd.FinishBack: lambda _: self._move(self._motions.finish_back),
            cmd.ContinueBack: lambda _: self._move(self._motions.go_back),
            cmd.LastWrite: lambda given: self._move(
                lambda: self._motions.last_write(given.address, given.size)
            ),
            cmd.Seek: self._seek,
            cmd.SeekMark: self._seek_mark,
            cmd.SetMark: self._set_mark,
            cmd.DeleteMark: self._delete_mark,
            cmd.Halt: lambda _: "",
            cmd.Restart: lambda _: self._restart(),
            cmd.Refill: lambda _: self._refill(),
            cmd.Define: self._define,
            cmd.Restore: self._restore,
            cmd.ToggleBreak: lambda given: self._edit(lambda: self._list.toggle(given.place)),
            cmd.Delete: lambda given: self._edit(lambda: self._list.delete(given.ids)),
            cmd.Enable: lambda given: self._edit(
                lambda: self._list.enable(given.ids, on=given.on)
            ),
            cmd.StopOnHit: lambda given: self._edit(
                lambda: self._list.stop_on_hit(given.ids, on=given.on)
            ),
            cmd.SetFilter: lambda given: self._edit(
                lambda: self._list.set_filter(given.event, given.text)
            ),
            cmd.ChangeTrigger: lambda given: self._edit(
                lambda: self._list.change_trigger(given.event, given.text)
            ),
            cmd.LoadScript: self._load_script,
            cmd.TraceFunctions: lambda given: self._edit(lambda: self._trace_functions(given)),
            cmd.TraceKernel: self._trace_kernel,
            cmd.Undo: lambda _: self._nothing("undo"),
            cmd.Redo: lambda _: self._nothing("do again"),
            cmd.WriteRegister: self._write_register,
            cmd.WriteMemory: self._write_memory,
            cmd.ReadMemory: self._read_memory,
            cmd.ReadWords: self._read_words,
            cmd.ShowStack: lambda _: "",
            cmd.ReadParts: lambda _: "",
            cmd.ListDefinitions: self._list_definitions,
            cmd.TypedLine: lambda given: self._type(given.text),
            cmd.AskWords: lambda _: self._tell_words(),
            cmd.CompleteLine: self._complete,
            cmd.SelectFrame: self._select_frame,
            cmd.ChooseThread: self._choose_task,
            cmd.Input: self._input,
            cmd.Resize: lambda _: "",
            cmd.Refresh: lambda _: "",
        }

    def _nothing(self, what: str) -> str:
        raise CommandError(f"there is nothing to {what}")

    # -- motions ----------------------------------------------------------------------------

    def _to_hit(self) -> None:
        if not any(entry.row.enabled for entry in self._list.entries):
            raise CommandError("no probe is on that could be hit; p places one")
        self._motions.go(every=True)

    def _finish(self) -> str:
        """Run to the function's return; its value, where the machine has come there."""
        told = self._words.returning()
        return self._move(self._motions.finish) or told()

    def _seek(self, given: cmd.Seek) -> str:
        clock = given.clock
        if clock is None:
            return self._move(lambda: self._motions.seek(self._machine.newest))
        return self._move(lambda: self._motions.seek_time(clock, given.pc))

    def _seek_mark(self, given: cmd.SeekMark) -> str:
        if given.name not in self._marks:
            raise CommandError(f"there is no bookmark {given.name}")
        moment = self._marks[given.name].moment
        return self._move(lambda: self._motions.seek(moment))

    def _set_mark(self, given: cmd.SetMark) -> str:
        name = given.name
        if not name:
            name = next(str(n) for n in range(1, 1 << 20) if str(n) not in self._marks)
        machine = self._machine
        self._marks[name] = BootMark(machine.moment, machine.nanoseconds, machine.pc)
        return f"bookmark {name} at {machine.nanoseconds} ns"

    def _delete_mark(self, given: cmd.DeleteMark) -> str:
        if self._marks.pop(given.name, None) is None:
            raise CommandError(f"there is no bookmark {given.name}")
        return f"bookmark {given.name} deleted"

    def _restart(self) -> str:
        self._begin_instead(self._list.rows, ev.Restarted())
        self._moment += 1
        self._changed += 1
        return "started afresh"

    def _refill(self) -> str:
        """Boot again to here, with the probes that there are now: the log is theirs from power-on.

        The same is typed at the same times, so that the same happens.
        """
        return self._boot_to_here(self._list.rows)

    def _boot_to_here(self, rows: tuple[ProbeRow, ...], *, whole: bool = False) -> str:
        """Boot again to here, with these probes; why it stands.

        Args:
            rows: the probes.
            whole: see `_begin_instead`.

        Raises:
            KprobeTuiError: it cannot be done; the boot at hand stays.
        """
        machine, log = self._machine, self._boot.booted.log
        if self._moves:
            raise CommandError("the kernel is running; Ctrl-C stops it")
        if machine.why_no_past or not log.whole:
            raise CommandError(machine.why_no_past or "more was typed than is kept")
        if machine.oldest > MachineMoment(0):
            raise CommandError("something was changed by hand: another boot does not come to here")
        now, newest, end, marks = machine.moment, machine.newest, self._end, self._marks
        hits = {entry.row.id: entry.hits for entry in self._list.entries}
        del machine, log  # they are large
        self._begin_instead(rows, ev.Refilling(0, end), alike=True, whole=whole)
        self._marks, self._end = marks, end
        for entry in self._list.entries:
            entry.hits = hits.get(entry.row.id, 0)
        reason = self._move(
            lambda: self._motions.live_again(
                newest, now, lambda time: self._tell(ev.Refilling(max(time, 1), end))
            )
        )
        self._boot.tracing.drain()
        self._tell(ev.Refilled())
        return reason

    # -- probes -----------------------------------------------------------------------------

    def _edit(self, change: Callable[[], str]) -> str:
        said = change()
        self._changed += 1
        self._declare()
        return said

    def _define(self, given: cmd.Define) -> str:
        if self._list.needs_begin(given.line):
            return self._begin_with(given)
        return self._edit(lambda: self._list.define(given.line, given.replaces, stops=given.stops))

    def _begin_with(self, given: cmd.Define) -> str:
        """Have an event more that is followed from power-on: one boots to here again with it.

        Raises:
            KprobeTuiError: it is not accepted, or the kernel would have to be told of it before
                it begins; nothing has changed.
        """
        rows = self._list.rows
        number = given.replaces or max((row.id for row in rows), default=0) + 1
        fresh = ProbeRow(number, "p", given.line.strip(), True, given.stops)
        others = tuple(row for row in rows if row.id != number)
        begins = not self._boot.has_run
        self._anew((*others, fresh), fresh.line)
        return f"placed {fresh.line}" if begins else f"placed {fresh.line}, from power-on"

    def _load_script(self, given: cmd.LoadScript) -> str:
        """Attach a script from power-on, in place of the last one: one boots to here again."""
        before = self._script
        if not given.text:
            if before is None or self._boot.script is None:
                return "no script is attached"
            self._boot.script.end()
            self._script = None
            return f"{before.name} is out"
        choice = self._config.kernel
        self._script = BootScriptRequest(
            given.name, given.text, given.parameters, quiet=True, kernel=choice
        )
        try:
            self._anew(self._list.rows, given.name)
        except BaseException:
            self._script = before
            raise
        return f"{given.name} is attached"

    def _anew(self, rows: tuple[ProbeRow, ...], what: str) -> None:
        """Have these probes and the script from power-on: the boot comes to here again.

        Args:
            rows: the probes.
            what: the user has asked for.

        Raises:
            KprobeTuiError: something is not accepted, or the kernel would have to be told of it
                before it begins; nothing has changed.
        """
        script = None
        if self._script is not None:
            script = BootScript(self._opened, self._script, self._parts.files)
        words = words_of(self._opened, self._request, _lines(rows), script)
        self._parts.with_words(words)  # a recorded boot is told no others
        if not self._boot.has_run:
            self._begin_instead(rows, whole=True)
        elif words != self._boot.words:
            raise CommandError(
                f"{what}: the kernel makes this event itself once it is told to, before it"
                " begins: r starts afresh, and it can be placed then"
            )
        else:
            self._boot_to_here(rows, whole=True)

    def _trace_functions(self, given: cmd.TraceFunctions) -> str:
        if given.on:
            return self._functions.trace(given.globs, given.depth)
        return self._functions.leave(given.globs)

    def _trace_kernel(self, given: cmd.TraceKernel) -> str:
        if not given.on:
            ids = tuple(
                entry.row.id
                for entry in self._list.entries
                if any(group == given.group for group, _ in entry.events)
                and (not given.globs or entry.row.line.rpartition("/")[2] in given.globs)
            )
            return self._edit(lambda: self._list.delete(ids))
        return "; ".join(self._define(cmd.Define(f"{given.group}/{glob}")) for glob in given.globs)

    def _restore(self, given: cmd.Restore) -> str:
        if self._boot.has_run:
            raise CommandError("the boot has begun: nothing is placed from the last time")
        found = tuple(row for row in given.probes if self._can_be_told(row))
        self._begin_instead((*self._list.rows, *found))
        return f"{counted(len(found), 'thing')} of the last time"

    def _can_be_told(self, row: ProbeRow) -> bool:
        """False for an event that a recorded boot was not told of, or none; said to the user."""
        try:
            self._parts.with_words(words_of(self._opened, self._request, _lines((row,)), None))
        except KprobeTuiError as error:
            self._tell(ev.Notice(f"{row.line}: {error}"))
            return False
        return True

    def _list_definitions(self, given: cmd.ListDefinitions) -> str:
        if given.form != "tracefs":
            raise CommandError(f"{given.form}: definitions of a boot are listed for tracefs")
        self._tell(ev.Listed(given.form, tuple(self._boot.tracing.listing())))
        return ""

    # -- memory and registers ---------------------------------------------------------------

    def _need_present(self) -> None:
        self._boot.need_changeable()
        if self._moves:
            raise CommandError("the kernel is running; Ctrl-C stops it")

    def _write_register(self, given: cmd.WriteRegister) -> str:
        self._need_present()
        self._machine.set_register(given.name, given.value)
        self._is_stale = True
        return f"{given.name} = {given.value:#x}"

    def _write_memory(self, given: cmd.WriteMemory) -> str:
        self._need_present()
        try:
            self._machine.write(given.address, given.data)
        except GuestFaultError as error:
            raise CommandError(f"{given.address:#x}: no memory there") from error
        self._is_stale = True
        self._changed += 1
        return f"{len(given.data)} bytes at {given.address:#x}"

    def _read_memory(self, given: cmd.ReadMemory) -> str:
        pieces: list[tuple[int, bytes]] = []
        at, end = given.address, given.address + given.size
        while at < end:
            size = min(end, (at | _PAGE - 1) + 1) - at
            data = self._machine.read(at, size)
            if data:
                if pieces and pieces[-1][0] + len(pieces[-1][1]) == at:
                    pieces[-1] = pieces[-1][0], pieces[-1][1] + data
                else:
                    pieces.append((at, data))
            at += size
        self._tell(ev.MemoryRead(given, tuple(pieces), self._changed))
        return ""

    def _read_words(self, given: cmd.ReadWords) -> str:
        words = MachineTelescope(self._boot).words(given.address, given.count)
        self._tell(ev.WordsRead(given, words))
        return ""

    # -- what is looked at ------------------------------------------------------------------

    def _select_frame(self, given: cmd.SelectFrame) -> str:
        if not 0 <= given.number < max(1, len(self._seen.frames)):
            raise CommandError(f"there is no frame {given.number}")
        self._frame = given.number
        return ""

    def _choose_task(self, given: cmd.ChooseThread) -> str:
        current = self._machine.task().pid
        self._is_stale, self._frame = True, 0
        self._moment += 1
        if given.tid in (0, current):
            self._pid = None
            return f"task {current}, which runs"
        task = self._viewing.tasks.find(given.tid)
        self._pid = given.tid
        return f"task {given.tid} ({task.comm}) as it waits; i and o step the processor"

    # -- words ------------------------------------------------------------------------------

    def _type(self, text: str) -> str:
        printed: list[str] = []
        for line in text.split("\n"):
            motion = self._words.motion(line)
            if motion is None:
                said = self._words.carry_out(line)
            else:
                said = self._finish() if self._words.is_finish(line) else self._move(motion)
            if said:
                printed.append(said)
                self._tell(ev.Printed(said + "\n"))
        return "\n".join(printed)

    def _changed_by_words(self) -> None:
        self._is_stale = True
        self._changed += 1
        self._declare()

    def _tell_words(self) -> str:
        self._tell(ev.WordsKnown(self._words.words()))
        return ""

    def _complete(self, given: cmd.CompleteLine) -> str:
        self._tell(ev.LineCompleted(given.text, tuple(self._words.complete(given.text))))
        return ""

    def _input(self, given: cmd.Input) -> str:
        self._boot.type(given.data)
        return ""

    # -- telling ----------------------------------------------------------------------------

    def refresh(self) -> None:
        """Hand over what was recorded, and a view of how things are."""
        self._declare()
        self._boot.booted.flush()
        self._boot.tracing.drain()
        self._viewed = self.view()
        self._tell(ev.Viewed(self._viewed))

    def view(self) -> GuestView:
        """Make the view of this moment."""
        motions, machine = self._motions, self._machine
        if self._is_stale and not self._moves:
            self._seen, self._is_stale = self._viewing.parts(self._pid), False
        seen = self._seen
        frame = self._frame if self._frame < len(seen.frames) else 0
        comms = {task.tid: task.comm for task in seen.listed}
        pids = {task.tid: task.pid for task in seen.listed}
        return GuestView(
            state=motions.state,
            reason=motions.reason,
            cause=motions.cause,
            arch=self._opened.arch.name,
            program=self._config.guest,
            build_id=self._opened.image.elf.identity,
            pc=machine.pc,
            raw_pc=machine.pc,
            location=seen.location,
            line=seen.line,
            registers=seen.registers,
            frames=seen.frames,
            frames_end=seen.frames_end,
            frame=frame,
            moment=self._moment,
            probes=self._list.views(),
            modules=seen.modules,
            mappings=seen.mappings,
            comms={seen.pid: seen.comm, **comms, **self._boot.comms},
            pids={**pids, **self._boot.pids},
            thread=seen.pid if self._pid is None else self._pid,
            threads=max(1, len(seen.listed)),
            listed=seen.listed,
            time=machine.nanoseconds,
            events=self._count,
            exit_code=motions.exit_code if motions.state is RunState.ENDED else None,
            changed=self._changed,
            histograms=self._boot.histograms(),
            history=self._history(),
        )

    def _history(self) -> HistoryView | None:
        machine = self._machine
        if machine.why_no_past:
            return None
        marks = sorted(
            (MarkView(name, mark.time, mark.pc) for name, mark in self._marks.items()),
            key=lambda mark: mark.time,
        )
        now = machine.nanoseconds
        self._end = max(self._end, now)
        return HistoryView(now, self._end, machine.is_past, tuple(marks))

    def end_input(self) -> None:
        """Type nothing any more; a program inside that waits for input waits on."""
        self._boot.end_input()

    def close(self) -> None:
        """End the boot and give everything back."""
        self._boot.close()


def _lines(rows: tuple[ProbeRow, ...]) -> tuple[str, ...]:
    """The definitions among rows."""
    return tuple(row.line for row in rows if row.kind == "p")
