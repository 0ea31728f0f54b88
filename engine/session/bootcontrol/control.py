"""A booted kernel under control: carries the commands of front ends out, boot after boot.

`MachineControl` belongs to one thread. It gets its commands from `execute`, and while the machine
moves from a source, once `attention` was called (from any thread). What happens is told through
`tell`, in the same events as of a program's guest.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CommandError, GuestFaultError, KprobeTuiError, ProbeSyntaxError
from engine.machine.stepping import MachineMoment
from engine.message_text import counted
from engine.session.bootcontrol.boots import BootSeries, Likeness
from engine.session.bootcontrol.functions import BootFunctions
from engine.session.bootcontrol.kernel_hit_views import KernelHitViewing
from engine.session.bootcontrol.motions import MachineMotions
from engine.session.bootcontrol.telescope import MachineTelescope
from engine.session.bootcontrol.views import MachineParts, MachineViewing
from engine.session.bootcontrol.words import BootWords
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

_OTHER_BOOT: Final = "; the kernel is told of it, so this is another boot, at the same time"

Handler = Callable[[Any], str]


class BootMark(Struct, frozen=True):
    """A bookmark.

    Attributes:
        moment: when; None in a boot that comes to another one at that time.
        time: the same in nanoseconds since power-on.
        pc: of the instruction that comes next.
    """

    moment: MachineMoment | None
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
        self._config, self._tell, self._source = config, tell, source
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
        self._handlers = self._table()
        self._boots = BootSeries(config, mode, self._written, self._rows)
        self._opened = self._boots.opened
        self._begin()

    # -- boots ------------------------------------------------------------------------------

    def _begin(self, news: ev.SessionEvent | None = None) -> None:
        """Have the boot at hand that was laid out last.

        Args:
            news: what is told in front of all that is told of it.
        """
        if news is not None:
            self._tell(news)
        self._count = self._declared = 0
        self._viewed = GuestView()
        self._boot = boot = self._boots.boot
        self._machine = boot.machine
        self._list = self._boots.rows
        self._functions.begin(boot.tracing)
        boot.tracing.start()
        self._motions = MachineMotions(boot, self._list, self._goes_on)
        self._viewing = MachineViewing(boot, self._config.guest)
        self._hit = KernelHitViewing(boot, self._motions.hits)
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
            cmd.StepPhase: lambda _: self._move(self._motions.phase),
            cmd.FinishHit: lambda _: "",
            cmd.RunTo: lambda given: self._move(lambda: self._motions.to(given.address)),
            cmd.Finish: lambda _: self._finish(),
            cmd.StepBack: lambda given: self._move(
                lambda: self._motions.step_back(over=given.over)
            ),
            cmd.PhaseBack: lambda _: self._move(self._motions.phase_back),
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
        ours = any(entry.row.enabled for entry in self._list.entries)
        if not ours and not self._motions.hits.known:
            raise CommandError(
                "no probe is on that could be hit (p places one), and this kernel does not tell"
                " of its own"
            )
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
        mark = self._marks[given.name]
        moment = mark.moment
        if moment is None:
            return self._move(lambda: self._motions.seek_time(mark.time, mark.pc))
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
        self._boots.lay_instead(self._list.rows, lambda: self._begin(ev.Restarted()))
        self._moment += 1
        self._changed += 1
        return "started afresh"

    def _refill(self) -> str:
        """Boot again to here, with the probes that there are now: the log is theirs from power-on.

        The same is typed at the same times, so that the same happens.
        """
        return self._boot_to_here(self._list.rows, Likeness.SAME)

    def _boot_to_here(
        self, rows: tuple[ProbeRow, ...], follows: Likeness, *, whole: bool = False
    ) -> str:
        """Boot again to here, with these probes; why it stands.

        Another boot comes to the same time: its moments are others, its bookmarks have times only.

        Args:
            rows: the probes.
            follows: the same boot, or another one.
            whole: see `BootSeries.lay_instead`.

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
        is_same = follows is Likeness.SAME
        now, newest, end = machine.moment, machine.newest, self._end
        times = machine.nanoseconds, machine.time_of_newest
        marks = {
            name: mark if is_same else replace(mark, moment=None)
            for name, mark in self._marks.items()
        }
        hits = {entry.row.id: entry.hits for entry in self._list.entries}
        del machine, log  # they are large

        def begin() -> None:
            if not is_same:
                self._tell(ev.Restarted())  # what the console shows is of the boot before
            self._begin(ev.Refilling(0, end))

        self._boots.lay_instead(rows, begin, follows=follows, whole=whole)
        self._marks, self._end = marks, end
        for entry in self._list.entries:
            entry.hits = hits.get(entry.row.id, 0)

        def tell(time: int) -> None:
            self._tell(ev.Refilling(max(time, 1), end))

        def live() -> None:
            if is_same:
                self._motions.live_again(newest, now, tell)
            else:
                self._motions.live_to(times[1], times[0], tell)

        reason = self._move(live)
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
            KprobeTuiError: it is not accepted, or a recorded boot was not told of it; nothing has
                changed.
        """
        rows = self._list.rows
        number = given.replaces or max((row.id for row in rows), default=0) + 1
        fresh = ProbeRow(number, "p", given.line.strip(), True, given.stops)
        others = tuple(row for row in rows if row.id != number)
        return f"placed {fresh.line}{self._anew((*others, fresh))}"

    def _load_script(self, given: cmd.LoadScript) -> str:
        """Attach a script from power-on, in place of the last one: one boots to here again."""
        if not given.text:
            name = self._boots.detach()
            return f"{name} is out" if name else "no script is attached"
        request = BootScriptRequest(
            given.name, given.text, given.parameters, quiet=True, kernel=self._config.kernel
        )
        told = self._boots.attach(request, lambda: self._anew(self._list.rows))
        return f"{given.name} is attached{told if told.endswith(_OTHER_BOOT) else ''}"

    def _anew(self, rows: tuple[ProbeRow, ...]) -> str:
        """Have these probes and the script from power-on: one boots to here again.

        Returns:
            What the user is to know of that, to be put behind what was done.

        Raises:
            KprobeTuiError: something is not accepted, or a recorded boot was not told of it;
                nothing has changed.
        """
        likeness = self._boots.likeness(rows)
        if likeness is Likeness.FRESH:
            self._boots.lay_instead(rows, self._begin, whole=True)
            return ""
        self._boot_to_here(rows, likeness, whole=True)
        return ", from power-on" + (_OTHER_BOOT if likeness is Likeness.OTHER else "")

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
        found = []
        for row in given.probes:
            why = self._boots.why_not_told(row)
            if why:
                self._tell(ev.Notice(f"{row.line}: {why}"))
            else:
                found.append(row)
        self._boots.lay_instead((*self._list.rows, *found), self._begin)
        return f"{counted(len(found), 'thing')} of the last time"

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
                told = self._words.behind(line)
                reason = self._move(motion)
                said = (told() if told is not None else "") or reason
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
        motions, machine, hits = self._motions, self._machine, self._motions.hits
        if self._is_stale and not self._moves:
            self._seen = self._viewing.parts(self._pid, by_machinery=hits.by_machinery)
            self._is_stale = False
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
            location=(not self._moves and self._hit.location) or seen.location,
            line=seen.line,
            registers=seen.registers,
            frames=seen.frames,
            frames_end=seen.frames_end,
            frame=frame,
            moment=self._moment,
            hit=None if self._moves else self._hit.view,
            at_hit=not self._moves and hits.phase is not None,
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
