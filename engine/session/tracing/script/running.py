"""The run of a script: rows go to its actions in the order of hits, and what actions ask for.

Rows are taken before each system call, so that what a script prints stands among the guest's own
output where it belongs; before a timer's action; and at once where an action reads memory.
"""

import random
from collections.abc import Callable, Sequence
from errno import EISDIR, ENOENT
from fnmatch import fnmatchcase
from os import strerror
from typing import Any, Final, Literal

from engine.arch.program import THREAD_MOST
from engine.errors import CutOff, GuestFaultError
from engine.guest.modules import Location, Modules
from engine.linux.clock import BLOCK_NS
from engine.linux.ending import Exit
from engine.linux.errno import LinuxError
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import Backtraces
from engine.session.tracing.script.events import ScriptEvent
from engine.session.tracing.script.script_symbols import ScriptSymbols
from engine.session.tracing.stacks import LIMIT
from engine.session.tracing.tracing import Tracing
from engine.trace.bpftrace.captures import Action, RowReads
from engine.trace.bpftrace.config import Config
from engine.trace.bpftrace.value_names import SymbolName, ValueNames
from engine.trace.rows import HEAD, whole

_CORE: Final = "unicorn"
_KEPT: Final = 1024
"""Processes whose names are known after their end."""
_FILE_MOST: Final = 1 << 20
"""Bytes of a file that `cat()` shows."""
_CGROUP: Final = 1
"""The id of the one control group that a guest is in."""
_HIERARCHY: Final = b"unified"
"""The name that bpftrace gives the hierarchy of version 2."""
_ROOT: Final = b"root"
_TOOL: Final = b"bpftrace"
OUTSIDE: Final = 1 << 22
"""The thread of begin and end, which belong to no hit; no thread of Linux has that number."""

Space = Literal["user", "kernel"]


def _cgroup_path(group: int, pattern: bytes) -> str:
    """The path of a control group in the hierarchies that a pattern means: a guest has one."""
    shown = group == _CGROUP and fnmatchcase(_HIERARCHY, pattern or b"*")
    return f"{_HIERARCHY.decode()}:/" if shown else ""


class ScriptExit(Exception):  # noqa: N818 - it is no error
    """An action has called exit()."""


class ScriptTimer:
    """An action that runs at intervals of the guest's time; an `Expiring`."""

    def __init__(self, run: "ScriptRun", period: int, action: Callable[[], None]) -> None:
        """Begin now.

        Args:
            run: of the script.
            period: nanoseconds between two.
            action: what runs.
        """
        self._run = run
        self._period = period
        self._action = action
        self._due = run.session.clock.peek() + period

    def next_expiry(self) -> int | None:
        """When it is due by time alone; None behind the end of the script."""
        return None if self._run.over else self._due

    def post_expired(self) -> None:
        """Run the action, if it is due."""
        now = self._run.session.clock.peek()
        while self._due <= now and not self._run.over:
            self._due += self._period
            self._run.timer(self._action)


class ScriptRun:
    """One run of a script; `captures.RunSurroundings` says what actions ask of it.

    Attributes:
        session: the guest.
        readers: functions that expressions of rows use to read memory.
        clock: nanoseconds that a row's time is ahead of its ticks, in a list of one.
        over: exit() was called.
        ends_guest: exit() ends the guest, too.
        repeats: actions run once more for their maps alone: nothing else is to come of them.
        code: what it was called with.
        printed: called when what actions have printed is to come out.
        timed: told of the action of a timer before it runs.
        complain: takes a word about something that an action could not do.
        as_linux: memory is read as BPF may, which does not wait for a page that is not there.
        symbols: finds what `uaddr()` names.
    """

    def __init__(self, session: Session) -> None:
        """Set up for a guest that has not begun."""
        self.session = session
        self.clock = [0]
        self.over = False
        self.ends_guest = True
        self.repeats = False
        self.code = 0
        self.printed: Callable[[], object] = lambda: None
        self.timed: Callable[[Callable[[], None]], object] = lambda action: None
        self.complain: Callable[[str], object] = lambda text: None
        self.as_linux = False
        self._shows_lines = self._demangles = False
        self.symbols: ScriptSymbols | None = None
        self.readers: dict[str, Any] = {
            "string_in": self.string,
            "bytes_at": lambda address, size: self.memory(address, size) or b"",
            "number_at": self._number,
        }
        self.started = 0
        self._tracing: Tracing | None = None
        self._actions: dict[int, Action] = {}
        self._with_stack: frozenset[int] = frozenset()
        self._stack: tuple[int, ...] | None = None
        self._kernel_frames = 0
        self._random = random.Random(session.config.randomness)
        self._backtraces = Backtraces(session)
        self._modules: dict[int, Modules] = {}
        self._names: dict[tuple[int, int], tuple[SymbolName, ...]] = {}
        self._functions: dict[int, bytes] = {}
        self._order: Literal["little", "big"] = (
            "little" if session.arch.byteorder == "little" else "big"
        )

    # -- setting up -----------------------------------------------------------------------

    def read_as_linux(self) -> None:
        """Read memory as BPF may: of a page that is not there yet comes "" or 0.

        Before the guest begins. Kernels have their memory there, and of the memory of a processor
        that is not Unicorn's nobody knows what was used.
        """
        session = self.session
        if not session.is_kernel and session.arch.core == _CORE:
            session.ram.watch_reached()
            self.as_linux = True

    def attach(
        self,
        tracing: Tracing,
        events: Sequence[tuple[ScriptEvent, Action]],
        stacks: frozenset[int],
    ) -> None:
        """Have rows run actions.

        Args:
            tracing: records them.
            events: with their actions.
            stacks: ids of the events that have a call stack behind each row.
        """
        self._tracing = tracing
        actions: dict[int, list[Action]] = {}
        for event, action in events:
            actions.setdefault(event.info.id, []).append(action)
        self._actions = {number: _each(found) for number, found in actions.items()}
        self._with_stack = stacks

    def plain_reads(self, probe: str) -> RowReads:
        """The reading of an action without a row: a timer's, begin's and end's."""
        return RowReads(
            lambda data, position: (self.now(), 0), "w[0]", (), {}, probe.encode(errors="replace")
        )

    def begin(self) -> None:
        """The guest is about to run: time begins to be counted."""
        session, machine = self.session, self.session.machine
        session.cpu.count_blocks(True)
        self._settle()
        self.started = self.now()
        machine.moments.leaving.append(self._leaving)
        spaces = machine.spaces
        replaced = spaces.replaced

        def replace_too(old: AddressSpace, new: AddressSpace) -> None:
            replaced(old, new)
            self._functions.clear()
            pid = machine.current.process.pid
            self._names = {key: name for key, name in self._names.items() if key[0] != pid}

        spaces.replaced = replace_too

    def follow_calls(self, tracing: Tracing) -> None:
        """Take rows before each system call; the guest gets no further behind exit()."""
        hooks, ram = self.session.hooks, self.session.ram
        before = hooks.syscall_enter

        def enter(number: int, name: str, arguments: tuple[int, ...]) -> None:
            tracing.drain()
            ram.watches_reached = (
                False  # what events read of the call, the kernel has not read yet
            )
            try:
                before(number, name, arguments)
            finally:
                ram.watches_reached = self.as_linux
            if self.over and self.ends_guest:
                self.leave()

        hooks.syscall_enter = enter

    def _leaving(self, thread: Thread, last: bool) -> None:
        if last:
            if len(self._modules) >= _KEPT:
                self._modules.pop(next(iter(self._modules)))
            self._modules[thread.process.pid] = thread.space.modules.kept()

    # -- rows -----------------------------------------------------------------------------

    def consume(self, data: bytes) -> None:
        """Run the actions of rows; a `Consumer`."""
        if self.over:
            return
        self._settle()
        try:
            if self._with_stack:
                self._consume_stacked(data)
            else:
                self._consume(data)
        except ScriptExit:
            self.end()
        self.printed()

    def again(self, entries: Sequence["bytes | Callable[[], None]"]) -> None:
        """Run actions once more, for their maps alone.

        Args:
            entries: rows, and actions of timers, in the order in which they came.
        """
        settings = self.over, self.code, self._random.getstate()
        self.over, self.repeats = False, True
        self._random.seed(self.session.config.randomness)
        try:
            for entry in entries:
                if self.over:
                    break
                if isinstance(entry, bytes):
                    self.consume(entry)
                else:
                    self._run_timer(entry)
            self.printed()
        finally:
            self.over, self.code, state = settings
            self._random.setstate(state)
            self.repeats = False

    def acts_on(self, event: int) -> bool:
        """True if rows of an event run an action; others are call stacks."""
        return event in self._actions

    def _consume(self, data: bytes) -> None:
        position, end = 0, len(data)
        head, actions = HEAD.unpack_from, self._actions
        while position < end:
            number, words, thread = head(data, position)
            if thread > THREAD_MOST:
                number, thread = whole(number, thread)
            actions[number](data, position, thread)
            position += words * 8

    def _consume_stacked(self, data: bytes) -> None:
        """The same where call stacks stand behind some rows."""
        position, end = 0, len(data)
        head, actions, stacked = HEAD.unpack_from, self._actions, self._with_stack
        while position < end:
            number, words, thread = head(data, position)
            if thread > THREAD_MOST:
                number, thread = whole(number, thread)
            following = position + words * 8
            if number in stacked and following < end:
                self._read_stack(data, following)
            action = actions.get(number)
            if action is not None:  # else it is a stack
                action(data, position, thread)
            self._stack = None
            position = following

    def _read_stack(self, data: bytes, position: int) -> None:
        assert self._tracing is not None, "rows come of it"
        number, words, thread = HEAD.unpack_from(data, position)
        number, _ = whole(number, thread)
        info = self._tracing.table[number]
        if number in self._actions:
            return
        start, end = position + info.words * 8, position + words * 8
        frames = memoryview(data)[start:end].cast("Q")
        self._kernel_frames = 0
        if info.columns:
            self._kernel_frames = int.from_bytes(data[start - 8 : start], "little")
        self._stack = tuple(frames)

    def _settle(self) -> None:
        """Find what the time of rows is by their ticks."""
        clock = self.session.clock
        if clock.host:
            self.clock[0] = clock.peek() - self.session.cpu.now() * BLOCK_NS
        else:
            self.clock[0] = clock.peek() - clock.worked

    def now(self) -> int:
        """The guest's time in nanoseconds."""
        self._settle()
        return self.session.cpu.now() * BLOCK_NS + self.clock[0]

    def timer(self, action: Callable[[], None]) -> None:
        """Run the action of a timer, behind those of all hits before it."""
        assert self._tracing is not None, "timers begin with the run"
        self._tracing.drain()
        if self.over:
            return
        self.timed(action)
        self._run_timer(action)
        self.printed()

    def _run_timer(self, action: Callable[[], None]) -> None:
        try:
            action()
        except ScriptExit:
            self.end()

    def leave(self) -> None:
        """End the guest at once.

        Raises:
            CutOff: always.
        """
        self.end()
        raise CutOff(self.code)

    def end(self) -> None:
        """No action runs any more, and the guest ends where it is, if it is to."""
        self.over = True
        if self.repeats or not self.ends_guest:
            return
        self.session.kernel.stop(Exit(code=self.code & 0xFF, by_user=True))
        self.session.nudge()

    # -- what actions ask -----------------------------------------------------------------

    def memory(self, address: int, size: int) -> bytes | None:
        """Bytes of the guest's, None where they cannot be read."""
        memory, address = self.session.seen.memory, address & (1 << 64) - 1
        read = memory.bytes.used_bytes if self.as_linux else memory.read
        try:
            return read(address, size)
        except (GuestFaultError, ValueError, OverflowError):
            return None

    def string(self, address: int, size: int) -> bytes:
        """A string of at most so many bytes with its NUL, which is left out."""
        if size <= 1:
            return b""
        memory, address = self.session.seen.memory, address & (1 << 64) - 1
        read = memory.bytes.used_cstring if self.as_linux else memory.read_cstring
        try:
            return read(address, size - 1)
        except (GuestFaultError, ValueError, OverflowError):
            return b""

    def _number(self, address: int, size: int = 8, signed: bool = False) -> int:
        return int.from_bytes(self.memory(address, size) or b"", self._order, signed=signed)

    def register(self, name: str) -> int:
        """A register at the hit."""
        arch = self.session.arch
        names = arch.probes.fetch_registers
        value = self.session.cpu.read_register(names.get(name, name))
        return self.session.seen.hooks.original_pc(value) if name == arch.roles.pc else value

    def process(self, thread: int) -> int:
        """The process of a thread."""
        return self.session.machine.pids.get(thread, thread)

    def parent(self, thread: int) -> int:
        """The parent of a thread's process."""
        process = self.session.machine.processes.get(self.process(thread))
        return 0 if process is None else process.ppid

    def comm(self, thread: int) -> bytes:
        """The name of a thread."""
        if thread == OUTSIDE:
            return _TOOL
        return self.session.machine.comms.get(thread, b"")

    def user(self, thread: int) -> int:
        """The user of a thread's process."""
        process = self.session.machine.processes.get(self.process(thread))
        return self.session.process.uid if process is None else process.uid

    def group(self, thread: int) -> int:
        """The group of a thread's process."""
        process = self.session.machine.processes.get(self.process(thread))
        return self.session.process.gid if process is None else process.gid

    def stack(self, space: Space, limit: int) -> tuple[int, ...]:
        """The addresses of the call stack, innermost first."""
        if self._stack is None:
            registers = self._backtraces.registers()
            frames, kernel = self._backtraces.divided_places(registers, limit=LIMIT)
        else:
            frames, kernel = self._stack, self._kernel_frames
        return (frames[:kernel] if space == "kernel" else frames[kernel:])[:limit]

    def build_ids(self, frames: tuple[int, ...], process: int) -> tuple[tuple[bytes, int], ...]:
        """The build-id and the offset in its file of each frame; b"" and the address of others."""
        found: list[tuple[bytes, int]] = []
        for frame in frames:
            module = self._located(frame, process).module
            offset = None if module is None else module.image.file_offset(frame - module.bias)
            ident = None if module is None else module.image.build_id
            found.append(
                (b"", frame) if not ident or offset is None else (bytes.fromhex(ident), offset)
            )
        return tuple(found)

    def function(self, address: int) -> bytes:
        """The name of the function at an address."""
        found = self._functions.get(address)
        if self.session.user_programs is not None:
            location = self._located(address, self.session.machine.task)
            symbol = location.symbol
            return (f"{address:#x}" if symbol is None else symbol.name).encode(errors="replace")
        if found is None:
            location = self.session.seen.modules.locate(address)
            name = location.symbol.name if location.symbol is not None else f"{address:#x}"
            found = self._functions[address] = name.encode(errors="surrogateescape")
        return found

    def symbol_address(self, name: str, target: str) -> int:
        """The address of a symbol of the program; 0 if there is none."""
        return 0 if self.symbols is None else self.symbols.address(name, target)

    def processors(self) -> int:
        """The processors that the guest is told of."""
        return self.session.machine.cpus

    def wall(self) -> int:
        """Nanoseconds since 1970 at the guest's time 0."""
        return self.session.clock.ahead

    def random(self) -> int:
        """A number of 32 bits."""
        return self._random.getrandbits(32)

    def exit(self, code: int) -> None:
        """End the run.

        Raises:
            ScriptExit: always: the action goes no further.
        """
        self.code = code
        raise ScriptExit

    def signal(self, number: int, thread: int) -> None:
        """Send the process of a thread a signal."""
        if self.repeats:
            return
        found = self.session.machine.threads.get(thread)
        if found is not None:
            found.send_signal(number)
            self.session.nudge()

    def file(self, path: bytes) -> bytes | None:
        """The content of a file of the guest's, None if it cannot be read."""
        fs = self.session.fs
        try:
            place = fs.walk(fs.root, path)
            if place.node is None or place.node.is_directory:
                raise LinuxError(ENOENT if place.node is None else EISDIR)
            file, parts, size = fs.open_place(place, 0), list[bytes](), 0
            while size < _FILE_MOST and (data := file.read(_FILE_MOST)):
                parts.append(data)
                size += len(data)
        except LinuxError as error:
            shown = path.decode(errors="replace")
            self.complain(f"ERROR: failed to open file '{shown}' ({strerror(error.code)})")
            return None
        return b"".join(parts)[:_FILE_MOST]

    def cgroup(self, thread: int) -> int:
        """The id of a thread's control group: a guest has one."""
        return _CGROUP

    def main_process(self) -> int:
        """The process that GUEST runs as."""
        return self.session.machine.first.pid

    def task(self) -> int:
        """The kernel's record of a task: a program's kernel is ours, which has none."""
        return 0

    def user_mode(self) -> bool:
        """Actions run where the program does."""
        return True

    def path(self, where: int | bytes, size: int) -> bytes:
        """The path of a record of the kernel's, which has none here."""
        return b""

    def syscall_name(self, number: int) -> bytes:
        """The name of a system call by its number."""
        return self.session.arch.linux.syscalls.get(number, "").encode()

    def unwatch(self, address: int) -> None:
        """A watchpoint watches no more: its stores run nothing."""
        assert self._tracing is not None, "an action runs"
        for number, one in self._tracing.watches.watched.items():
            if one.watch.ranges[0].start == address and number in self._actions:
                self._actions[number] = _nothing

    # -- names ----------------------------------------------------------------------------

    def names(self, config: Config) -> ValueNames:
        """The names of what actions print, as a script's settings want them."""
        self._shows_lines, self._demangles = config.show_debug_info, config.cpp_demangle
        return ValueNames(
            strings_cut=config.str_trunc_trailer.encode(errors="surrogateescape"),
            longest_time=config.max_strlen,
            user_symbols=self._user_symbols,
            kernel_symbols=lambda address: self._user_symbols(address, 0),
            username=self._user_name,
            cgroup_path=_cgroup_path,
            booted_at=self.session.clock.ahead,
        )

    def _user_name(self, number: int) -> str:
        listed = self.file(b"/etc/passwd") or b""
        for line in listed.decode(errors="replace").splitlines():
            name, *rest = line.split(":")
            if len(rest) > 1 and rest[1] == str(number):
                return name
        return _ROOT.decode() if not number else ""

    def _user_symbols(self, address: int, process: int) -> tuple[SymbolName, ...]:
        key = process, address
        found = self._names.get(key)
        if found is None:
            found = self._names[key] = tuple(self._found_symbols(address, process))
        return found

    def _located(self, address: int, process: int) -> Location:
        """Name an address in a process; 0 is the guest's kernel, or its first program."""
        session = self.session
        if session.user_programs is not None and process:
            assert self._tracing is not None, "the guest has run"
            return self._tracing.programs.locate_in_task(process, address)
        return self._modules_of(process).locate(address)

    def _modules_of(self, process: int) -> Modules:
        """The files of a process, which may have ended."""
        running = self.session.machine.processes.get(process)
        modules = running.space.modules if running is not None and running.threads else None
        return modules or self._modules.get(process, self.session.space.modules)

    def _found_symbols(self, address: int, process: int) -> list[SymbolName]:
        location = self._located(address, process)
        module = location.module
        if location.symbol is None or module is None:
            return []
        found: list[SymbolName] = []
        line = module.line_at(address) if self._shows_lines else None
        for call in module.inlined_at(address) if line is not None else ():
            found.append(SymbolName(call.name, None, module.name, _place(line)))
            line = call.file, call.line
        symbol = location.symbol
        name = symbol.demangled if self._demangles else symbol.name
        last = SymbolName(name, location.offset, module.name, _place(line))
        return [*found, last]


def _nothing(data: Any, position: int, thread: int) -> None:
    """The action of what is watched no more."""


def _place(line: tuple[str, int] | None) -> str:
    """A line of the source as it is shown; "" where none is known."""
    return "" if line is None or not line[1] else f"{line[0]}:{line[1]}"


def _each(actions: Sequence[Action]) -> Action:
    """One action that runs several, for probes that share an event."""
    if len(actions) == 1:
        return actions[0]

    def run(data: Any, position: int, thread: int) -> None:
        for action in actions:
            action(data, position, thread)

    return run
