"""The system calls and signals of a session's guest in strace's words."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.errors import GuestFaultError
from engine.linux.signals import PendingSignal
from engine.linux.table import CallTable
from engine.linux.thread import Thread
from engine.session.guest.session import Session
from engine.session.protocol.calltraces import CallTraceRequest
from engine.session.tracing.call_choice import SyscallChoice
from engine.session.tracing.call_files import CallFiles
from engine.session.tracing.call_injection import CallInjection
from engine.session.tracing.descriptor_texts import descriptor_text, netlink_protocol
from engine.trace.strace.call import CallStyle, GuestFacts, TracedCall
from engine.trace.strace.counts import CallCounts
from engine.trace.strace.decoder import ShownCall, call_forms
from engine.trace.strace.dumps import dump_lines
from engine.trace.strace.names import signal_name
from engine.trace.strace.signalargs import signal_info

if TYPE_CHECKING:
    from engine.session.inspect.backtrace import Backtraces

_EINTR: Final = 4
_EXITS: Final = frozenset({"exit", "exit_group"})
_PATHS: Final = frozenset({"path", "mount_source"})
_FDS: Final = frozenset({"fd", "dirfd"})


class UnfinishedCall(Struct):
    """A call that a thread is in.

    Attributes:
        shown: the call as text.
        began: tick at which it was made.
        text: its beginning, where nothing of it is written before it ends.
        note: what is said behind its result of what was done to it.
    """

    shown: ShownCall
    began: int
    text: str = ""
    note: str = ""


class CallTracing:
    """Hears of calls, signals and ends, and writes them."""

    def __init__(self, session: Session, request: CallTraceRequest, files: CallFiles) -> None:
        """Set up, for a guest that has not begun.

        Args:
            session: the guest.
            request: what is shown.
            files: where lines go.

        Raises:
            CommandError: a set of calls is wrong.
        """
        self._session = session
        self._machine = session.machine
        self._request = request
        self._files = files
        linux = session.arch.linux
        self._choice = choice = SyscallChoice(request.expressions, linux.syscalls.values())
        self._injection = CallInjection(session, choice.injections) if choice.injections else None
        self._counts = CallCounts(request.sort, request.columns) if request.counts else None
        self._lines = request.counts != 1
        order = "<" if session.arch.byteorder == "little" else ">"
        self._facts = GuestFacts(order, linux)
        self._style = CallStyle(
            request.string_max,
            request.verbose,
            request.hexadecimal,
            request.descriptors,
            choice.whole,
            choice.plain,
            choice.raw,
        )
        self._table = CallTable(linux)
        self._calls: dict[int, UnfinishedCall] = {}
        self._unheard: dict[int, list[PendingSignal]] = {}
        self._last: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._leaving: int | None = None
        self._paths = frozenset(path.encode(errors="surrogateescape") for path in request.paths)
        self._backtraces: Backtraces | None = None
        self._before = 0
        files.leader = self._leader

    def start(self) -> None:
        """Hear of everything from now on; the line of the program's own start is written."""
        session, machine = self._session, self._machine
        session.cpu.count_blocks(True)
        hooks = session.hooks
        before_enter, before_exit = hooks.syscall_enter, hooks.syscall_exit

        def enter(number: int, name: str, values: tuple[int, ...]) -> None:
            before_enter(number, name, values)
            self._entered(machine.current, number, name, values)

        def leave(number: int, name: str, result: int) -> None:
            before_exit(number, name, result)
            self._returned(machine.current, result)

        hooks.syscall_enter, hooks.syscall_exit = enter, leave
        injection = self._injection
        if injection is not None:

            def given(number: int, name: str) -> int | None:
                thread = machine.current
                return injection.entered(thread, name) if self._followed(thread) else None

            hooks.given_result = given
        moments = machine.moments
        moments.started.append(self._started)
        moments.executed.append(self._executed)
        moments.delivered.append(self._delivered)
        moments.unheard.append(self._ignored)
        moments.restored.append(self._restored)
        left, held = machine.left, machine.held

        def leaving(thread: Thread, code: int) -> None:
            self._ended(thread, code)
            left(thread, code)

        def stopping(thread: Thread) -> None:
            self._stopped(thread)
            held(thread)

        machine.left, machine.held = leaving, stopping
        self._files.follow(machine.current.tid)
        self._show_start()

    def finish(self) -> None:
        """The run is over: what is unfinished stays so, and the table follows."""
        for thread in list(self._calls):
            call = self._calls[thread]
            if call.text and self._wants("unfinished"):
                self._files.of(thread).begin(thread, call.text)
        self._files.close_lines()
        if self._counts is not None:
            for line in self._counts.lines():
                self._files.stand_alone(line)

    def _followed(self, thread: Thread) -> bool:
        return bool(self._request.follows) or thread.tid == self._machine.first.pid

    def _leader(self, thread: int) -> str:
        """Make the front of a line: the thread's id, and a time."""
        request = self._request
        text = self._files.prefix(thread)
        if request.relative:
            now = self._session.cpu.now()
            text += f"{now - self._before:13d} "
            self._before = now
        text += self._time()
        if request.numbers:
            number = self._numbers.get(thread)
            text += f"[{'????' if number is None else format(number, '4d')}] "
        if request.pointers:
            text += f"[{'?' * 16 if thread == self._leaving else format(self._pc(), '016x')}] "
        return text

    def _pc(self) -> int:
        return self._machine.current.cpu.read_register(self._session.arch.roles.pc)

    def _time(self) -> str:
        """The guest's time of day, where it is asked for."""
        request, text = self._request, ""
        if request.times:
            moment = self._machine.clock.peek_realtime()
            seconds, rest = divmod(moment, 10**9)
            if request.times > 2:
                return f"{text}{seconds}.{rest // 1000:06d} "
            text += time.strftime("%H:%M:%S", time.localtime(seconds))
            text += f".{rest // 1000:06d} " if request.times > 1 else " "
        return text

    # -- calls ---------------------------------------------------------------------------------

    def _entered(self, thread: Thread, number: int, name: str, values: tuple[int, ...]) -> None:
        if not self._followed(thread):
            return
        self._hear(thread)
        self._numbers[thread.tid] = number
        self._calls.pop(thread.tid, None)
        shown = name if not name.startswith("#") else f"syscall_{number:#x}"
        if not self._choice.traced(name):
            self._names[thread.tid] = shown
            return
        call = self._made(thread, shown, values)
        if self._paths and not self._concerns(thread, call):
            return
        if name == "restart_syscall":
            call.saved["before"] = self._names.get(thread.tid, "system call")
        self._names[thread.tid] = shown
        opened = UnfinishedCall(ShownCall(call, self._arity(name)), self._session.cpu.now())
        self._calls[thread.tid] = opened
        if not self._lines:
            return
        if name == "rt_sigreturn":
            linux = self._session.arch.linux
            sp = thread.cpu.read_register(self._session.arch.roles.sp)
            call.saved["mask_at"] = sp + linux.signals.saved_mask
            return  # its mask is known when it has been carried out
        text = opened.shown.begin()
        if self._choice.statuses is not None:
            opened.text = text
        else:
            self._files.of(thread.tid).begin(thread.tid, text)

    def _arity(self, name: str) -> int:
        entry = self._table[name] if not name.startswith("#") else None
        return entry.arity if entry is not None else 6

    def _made(self, thread: Thread, name: str, values: tuple[int, ...]) -> TracedCall:
        def path_of(number: int) -> str:
            return descriptor_text(thread, number, whole=self._request.descriptors > 1)

        def netlink_of(number: int) -> int:
            return netlink_protocol(thread, number)

        arguments = (*values, *(0,) * (6 - len(values)))
        memory = thread.memory.read
        return TracedCall(name, arguments, self._facts, self._style, memory, path_of, netlink_of)

    def _concerns(self, thread: Thread, call: TracedCall) -> bool:
        """True if a call is about one of the paths that are wanted."""
        form = call_forms().get(call.name)
        for index, each in enumerate(form.arguments if form is not None else ()):
            value = call.arguments[index]
            if each.kind in _PATHS:
                found = call.cstring(value, 4096)
                if found is not None and found[0] in self._paths:
                    return True
            elif each.kind in _FDS:
                file = thread.files.peek(value & 0xFFFFFFFF)
                if file is not None and file.describe() in self._paths:
                    return True
        return False

    def _returned(self, thread: Thread, result: int) -> None:
        opened = self._calls.pop(thread.tid, None)
        note = self._injection.left(thread) if self._injection is not None else ""
        if opened is not None:
            opened.note = note
            opened.shown.call.saved["given"] = bool(note)
            opened.shown.call.result = result
            if result == -_EINTR:
                opened.shown.call.saved["interrupted"] = True
            self._close(thread, opened)
        if self._followed(thread):
            self._hear(thread)

    def _close(self, thread: Thread, opened: UnfinishedCall) -> None:
        """Write the rest of a call's line."""
        call, tid = opened.shown.call, thread.tid
        took = self._session.cpu.now() - opened.began
        if self._counts is not None:
            self._counts.add(call.name, took, failed=call.failed)
        if not self._lines:
            return
        end = "failed" if call.failed else "successful"
        if not self._wants("unavailable" if call.result is None else end):
            return
        transcript = self._files.of(tid)
        if opened.text:
            transcript.begin(tid, opened.text)
        cut = call.result is None and not opened.shown.whole
        rest = " <unfinished ...>)" if cut else opened.shown.finish()
        text = opened.shown.result() + opened.note
        if self._request.takes and call.result is not None:
            text += f" <{took}>"
        transcript.end(tid, call.name, rest, text)
        if call.result is not None:
            for line in dump_lines(call, self._choice.reads, self._choice.writes):
                transcript.stand_alone(line)
        if self._request.stacks and call.result is not None:
            for line in self._stack(call.name):
                transcript.stand_alone(line)

    def _wants(self, status: str) -> bool:
        return self._choice.statuses is None or status in self._choice.statuses

    def _stack(self, name: str) -> Iterator[str]:
        """The call stack, as strace -k has it."""
        from engine.session.inspect.backtrace import Backtraces  # loads the unwinder

        if self._backtraces is None:
            self._backtraces = Backtraces(self._session)
        modules = self._session.seen.modules
        for frame in self._backtraces.take().frames:
            module = modules.at(frame.pc)
            if module is None:
                yield f" > unexpected_backtracing_error [{frame.pc:#x}]"
                continue
            symbol = module.symbol_at(frame.pc - 1)
            place = f"{frame.function}+{frame.offset:#x}" if symbol is not None else ""
            yield f" > {frame.module}({place}) [{frame.pc - module.bias:#x}]"

    # -- programs and threads --------------------------------------------------------------------

    def _show_start(self) -> None:
        """Write the call that has begun the program, as strace itself makes it."""
        thread = self._machine.current
        start, name = thread.space.start, "execve"
        if start is None or not self._choice.traced(name) or not self._lines:
            return
        numbers = {each: number for number, each in self._session.arch.linux.syscalls.items()}
        self._numbers[thread.tid] = numbers[name]
        call = self._made(thread, name, ())
        head = start.sp + self._session.arch.linux.start_scratch
        words = call.peek(head, 8)
        if words is None:
            return
        count = int.from_bytes(words, self._facts.byteorder)
        path = self._session.config.guest.encode(errors="surrogateescape")
        if self._paths and path not in self._paths:
            return
        memory = thread.memory.read
        at = 1 << 63  # no guest's: the path that the call is given lies outside of the guest

        def read(address: int, size: int) -> bytes:
            if address < at:
                return memory(address, size)
            if address - at > len(path):
                raise GuestFaultError(address, "read")
            return (path + b"\0")[address - at : address - at + size]

        call.memory = read
        call.arguments = (at, head + 8, head + 8 * (count + 2), 0, 0, 0)
        opened = UnfinishedCall(ShownCall(call, 3), self._session.cpu.now())
        text = opened.shown.begin()
        if self._choice.statuses is not None:
            opened.text = text
        else:
            self._files.of(thread.tid).begin(thread.tid, text)
        call.result = 0
        self._close(thread, opened)

    def _started(self, maker: Thread, thread: Thread) -> None:
        if not self._request.follows:
            return
        self._files.follow(thread.tid)
        quiet = self._request.quiet or "attach" in self._choice.silent
        if self._lines and not quiet:
            self._files.message(f"strace: Process {thread.tid} attached")

    def _executed(self, thread: Thread, before: int, path: bytes) -> None:
        opened = self._calls.pop(before, None)
        if before != thread.tid:
            self._files.leave(before)
            self._files.follow(thread.tid)
        if opened is not None:
            opened.shown.call.result = 0
            self._close(thread, opened)

    def _ended(self, thread: Thread, code: int) -> None:
        if not self._followed(thread):
            return
        self._hear(thread)
        opened = self._calls.pop(thread.tid, None)
        if opened is not None:
            self._close(thread, opened)
        number = code & 0x7F
        quiet = self._request.quiet > 1 or "exit" in self._choice.silent
        if self._lines and not (quiet and not number):
            text = f"killed by {signal_name(number)}" if number else f"exited with {code >> 8}"
            core = " (core dumped)" if number and code & 0x80 else ""
            self._leaving = thread.tid
            self._files.of(thread.tid).line(thread.tid, f"+++ {text}{core} +++")
        self._files.leave(thread.tid)
        self._unheard.pop(thread.tid, None)
        self._names.pop(thread.tid, None)
        self._numbers.pop(thread.tid, None)

    def _stopped(self, thread: Thread) -> None:
        number = thread.process.stop_code
        if self._lines and self._followed(thread) and number and self._choice.signals(number):
            self._files.of(thread.tid).line(
                thread.tid, f"--- stopped by {signal_name(number)} ---"
            )

    # -- signals -------------------------------------------------------------------------------

    def _delivered(self, thread: Thread, item: PendingSignal) -> None:
        if self._followed(thread):
            self._hear(thread)
            self._show_signal(thread, item)

    def _ignored(self, thread: Thread, item: PendingSignal) -> None:
        """A signal without effect was sent: it shows when the thread comes out of its call."""
        if not self._followed(thread):
            return
        waiting = self._unheard.setdefault(thread.tid, [])
        if all(each.number != item.number for each in waiting):
            waiting.append(item)
        if thread.tid not in self._calls:
            self._hear(thread)

    def _hear(self, thread: Thread) -> None:
        for item in self._unheard.pop(thread.tid, ()):
            self._show_signal(thread, item)

    def _show_signal(self, thread: Thread, item: PendingSignal) -> None:
        if not self._lines or not self._choice.signals(item.number):
            return
        info = signal_info(item.info, self._facts.order)
        self._files.of(thread.tid).line(thread.tid, f"--- {signal_name(item.number)} {info} ---")

    def _restored(self, thread: Thread) -> None:
        """A handler has returned: its call has the result that the frame restores."""
        opened = self._calls.pop(thread.tid, None)
        if opened is None:
            return
        call = opened.shown.call
        call.saved["mask"] = thread.signals.blocked.to_bytes(8, "little")
        value = thread.cpu.read_register(self._session.arch.linux.result)
        call.result = value - (1 << 64) if value >> 63 else value
        if self._lines and self._wants("successful"):
            text = opened.shown.begin()
            self._files.of(thread.tid).begin(thread.tid, text)
        opened.text = ""
        self._close(thread, opened)
