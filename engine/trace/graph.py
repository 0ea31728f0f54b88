"""Calls and returns of many functions as rows: what ftrace's function_graph tracer records.

An entry's row has the depth of the call among those that are traced and the address that it
returns to, an exit's row also the time of the call (kernel/trace/trace_entries.h). `Calls` follows
the calls on their stack, as kernel/trace/fgraph.c does, but a program may leave functions without
a return: by longjmp, by an exception, by a handler that never comes back. What has gone is seen by
the stack pointer at the next call or return, and gets an exit's row that says so.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from engine.arch.program import RETURN_HEAD, ROW_HEAD, FieldType, ValueKind, row_head
from engine.fetch.evaluate import RowSink
from engine.probes.kretprobe import Kretprobe, KretprobeInstance
from engine.trace.rows import Column, EventInfo, ValueForm, pack_row

GROUP: Final = "ftrace"
ENTRY: Final = "funcgraph_entry"
EXIT: Final = "funcgraph_exit"

_NUMBER: Final = FieldType(ValueKind.UNSIGNED, 4)
_TIME: Final = FieldType(ValueKind.UNSIGNED, 8)
_FLAG: Final = FieldType(ValueKind.UNSIGNED, 1)
_WORD: Final = FieldType(ValueKind.HEX, 8)
_PLACE: Final = FieldType(ValueKind.SYMBOL, 8)

_BEFORE_ARGS: Final = ROW_HEAD + 2


Shown = tuple[str, FieldType, ValueForm | None]
"""The name, type and form of an argument."""


def entry_info(number: int, args: Sequence[Shown] = ()) -> EventInfo:
    """The event of calls; arguments of the function stand behind depth and parent."""
    columns = [Column("depth", _NUMBER, ROW_HEAD), Column("parent", _PLACE, ROW_HEAD + 1)]
    columns += [
        Column(name, kind, _BEFORE_ARGS + index, form=form)
        for index, (name, kind, form) in enumerate(args)
    ]
    words = ROW_HEAD + len(columns)
    return EventInfo(number, GROUP, ENTRY, tuple(columns), words, symbolic=True)


def exit_info(number: int, shown: FieldType = _WORD, form: ValueForm | None = None) -> EventInfo:
    """The event of returns.

    Args:
        number: of the event.
        shown: type of the value returned.
        form: how this value is shown.
    """
    columns = (
        Column("depth", _NUMBER, RETURN_HEAD),
        Column("calltime", _TIME, RETURN_HEAD + 1),
        Column("left", _FLAG, RETURN_HEAD + 2),
        Column("retval", shown, RETURN_HEAD + 3, form=form),
    )
    words = RETURN_HEAD + len(columns)
    return EventInfo(number, GROUP, EXIT, columns, words, returns=True, symbolic=True)


def is_entry(info: EventInfo) -> bool:
    """True if rows are calls of the function graph."""
    return info.name == ENTRY and info.group == GROUP


def is_exit(info: EventInfo) -> bool:
    """True if rows are returns of the function graph."""
    return info.name == EXIT and info.group == GROUP


ENTRY_ROW: Final = struct.Struct("<IIQQQQ")
"""Head, thread, time, function, depth, parent."""

EXIT_ROW: Final = struct.Struct("<IIQQQQQQQ")
"""Head, thread, time, function, returned to, depth, time of the call, left, returned value."""


class GraphResult(Struct, frozen=True):
    """The record of a function's returns that have an event of their own.

    Attributes:
        info: the event.
        text: the value returned as a text, from what was kept at the entry; None where the
            register that results come in is recorded.
        keep: the value that is kept at the entry for it; None for nothing.
    """

    info: EventInfo
    text: Callable[[int], bytes] | None = None
    keep: Callable[[], int] | None = None


class GraphProbe(Kretprobe):
    """A traced function.

    Attributes:
        info: the event of its calls.
        values: reads its arguments where texts are among them; None where `capture` does.
        result: how its returns are recorded; None for the way that all others are.
        function: its address as rows show it.
        head: halves of the first word of its entries' rows, without the thread.
        words: of such a row.
        root: what is called in it is traced (set_graph_function).
        muted: neither it nor what is called in it is recorded (set_graph_notrace).
    """

    __slots__ = ("function", "head", "info", "muted", "pack", "result", "root", "values", "words")

    def __init__(
        self,
        function: int,
        info: EventInfo,
        *,
        root: bool = False,
        muted: bool = False,
        name: str = "",
        maxactive: int = 0,
    ) -> None:
        super().__init__(name=name, maxactive=maxactive)
        self.function = function
        self.info = info
        self.values: Callable[[], Sequence[int | bytes]] | None = None
        self.result: GraphResult | None = None
        self.words = info.words
        self.head = row_head(info.id, info.words)
        self.pack = struct.Struct(f"<II{info.words - 1}Q").pack_into
        self.root = root
        self.muted = muted


class Stack(Struct):
    """The calls on one stack of the program.

    Attributes:
        low: lowest address.
        high: behind the highest one.
        exact: frames below the stack pointer are gone: nothing else lives on this memory.
        signal: it is the alternate stack of signal handlers.
        own: it is a goroutine's: its calls have nothing to do with those of the stack before it.
        base: depth of the call that came to this stack.
        roots: calls of roots among those.
        muted: calls among those in which nothing is recorded.
        calls: the newest last.
    """

    low: int
    high: int
    exact: bool
    signal: bool = False
    own: bool = False
    base: int = 0
    roots: int = 0
    muted: int = 0
    calls: list[KretprobeInstance] = field(default_factory=list)


class Calls:
    """Follows the calls of `GraphProbe`s and records them; a `Tracker`.

    Attributes:
        depth_max: calls deeper than so many are not recorded, 0 for no limit (max_graph_depth).
        rooted: only what is called in functions that are roots is recorded.
        chosen: whether a thread's calls are followed, by its id; None where all are.
        process: id of the process that runs: stacks of others are at the same addresses.
        entries: calls recorded.
        exits: returns recorded.
        left: calls recorded as left without a return.
        late: returns of calls that were taken for left: they are not recorded again.
    """

    def __init__(
        self,
        sink: RowSink,
        exits: EventInfo,
        now: Callable[[], int],
        thread: Callable[[], int],
        stack_of: Callable[[int], Stack],
        function_of: Callable[[int], tuple[int, int] | None] | None,
        retval: Callable[[], tuple[int, ...]] | None = None,
    ) -> None:
        """Nothing is called yet.

        Args:
            sink: where rows go.
            exits: the event of returns.
            now: the clock.
            thread: id of the running thread.
            stack_of: describes the stack that an address lies on.
            function_of: (start, end) of the function around an address; None where calls push
                the return address, and so no two can have the same place on the stack.
            retval: reads the returned value's register; None: values are not recorded.
        """
        self.depth_max = 0
        self.rooted = False
        self.chosen: Callable[[int], bool] | None = None
        self.entries = self.exits = self.left = self.late = 0
        self._sink = sink
        self._head = row_head(exits.id, exits.words)
        self._size = exits.words * 8
        self._now = now
        self._thread = thread
        self._stack_of = stack_of
        self._function_of = function_of
        self._retval = retval
        self.process = self._over = 0
        self._stacks: dict[tuple[int, int, bool], Stack] = {}
        self._lifted: dict[tuple[int, int], Stack] = {}
        self._stack = Stack(1, 0, True)
        self._low, self._high = 1, 0
        self._exact = True
        self._calls = self._stack.calls
        self._in_root = self._in_muted = 0
        self._running = thread()
        self._threads: dict[int, tuple[Stack, int, int]] = {}

    def switched(self, thread: int, process: int) -> None:
        """Note that another thread runs from here on, with calls of its own."""
        self.process = process
        self._threads[self._running] = self._stack, self._in_root, self._in_muted
        fresh = Stack(1, 0, True), 0, 0
        stack, self._in_root, self._in_muted = self._threads.get(thread, fresh)
        self._running, self._stack, self._calls = thread, stack, stack.calls
        self._low, self._high, self._exact = stack.low, stack.high, stack.exact

    def process_over(self, process: int) -> None:
        """A process has ended in the middle of calls, or begins another program."""
        for key in [key for key in self._stacks if key[0] == process]:
            self._over += len(self._stacks.pop(key).calls)
        if process == self.process:
            self._stack, self._in_root, self._in_muted = Stack(1, 0, True), 0, 0
            self._calls = self._stack.calls
            self._low, self._high, self._exact = 1, 0, True

    def thread_over(self, thread: int, process: int, high: int) -> None:
        """A thread has ended in the middle of calls: its stack is another's.

        Args:
            thread: its id.
            process: the process that it was in.
            high: the address behind its stack.
        """
        gone = self._stacks.pop((process, high, False), None)
        if gone is None:
            return
        self._over += len(gone.calls)
        self._threads.pop(thread, None)
        if gone is self._stack:
            self._stack, self._in_root, self._in_muted = Stack(1, 0, True), 0, 0
            self._calls = self._stack.calls
            self._low, self._high, self._exact = 1, 0, True

    # -- goroutines' stacks ---------------------------------------------------------------

    def lift(self, low: int, high: int) -> None:
        """A stack is being moved: others may get its memory meanwhile."""
        found = self._stacks.pop((self.process, high, False), None)
        if found is None or found.low != low:
            if found is not None:
                self._stacks[self.process, high, False] = found
            return
        self._lifted[self.process, high] = found
        found.low, found.high = 1, 0  # no frame lies on it
        if found is self._stack:
            self._low, self._high = 1, 0

    def put(self, before: tuple[int, int], now: tuple[int, int]) -> None:
        """Note where a stack is that has been moved."""
        found = self._lifted.pop((self.process, before[1]), None)
        if found is None:
            return
        found.low, found.high = now
        self._stacks[self.process, found.high, False] = found
        if found is self._stack:
            self._low, self._high = now

    def abandoned(self, low: int, high: int) -> None:
        """A goroutine is over."""
        found = self._stacks.get((self.process, high, False))
        if found is None or found.low != low or not found.own:
            return
        del self._stacks[self.process, high, False]
        roots = self._in_root, self._in_muted
        while found.calls:
            self._leave(found.calls.pop())
        self._in_root, self._in_muted = (0, 0) if found is self._stack else roots
        found.low, found.high = 1, 0
        if found is self._stack:
            self._low, self._high = 1, 0

    # -- what code in the guest does ------------------------------------------------------

    def bounds(self, slot: int) -> tuple[int, int, int] | None:
        """(start, end, depth) of the stack that a frame lies on; None if code must not go on.

        It must not where frames below the newest may be alive, and before calls that have been
        left are recorded as such.
        """
        calls = self._calls
        if not self._low <= slot < self._high or not self._exact:
            return None
        if calls and (calls[-1].gone or calls[-1].slot < slot):
            return None
        return self._low, self._high, self._stack.base + len(calls)

    def recorded(
        self, probe: Kretprobe, time: int, depth: int, ret_addr: int, args: tuple[int, ...]
    ) -> None:
        """A call begins that needs no instance."""
        assert isinstance(probe, GraphProbe)
        self._entry(probe, time, depth, ret_addr, args)
        self.counted(1)

    def over(self, probe: Kretprobe, ret_addr: int, time: int, depth: int) -> None:
        """Such a call has returned."""
        assert isinstance(probe, GraphProbe)
        retval = 0 if self._retval is None else self._retval()[0]
        self._exit_row(probe, ret_addr, time, depth, 0, retval)

    def brought(self, instance: KretprobeInstance) -> None:
        """A call gets an instance that had none."""
        self._calls.append(instance)
        self.exits -= 1

    def ended(self, instance: KretprobeInstance) -> None:
        """The return of the newest call, which had got an instance, is recorded."""
        if self._calls and self._calls[-1] is instance:
            self._calls.pop()
        elif instance in self._calls:
            self._calls.remove(instance)
        self.exits += 1

    def counted(self, calls: int) -> None:
        """Code has recorded so many calls, and the returns of those without an instance."""
        self.entries += calls
        self.exits += calls

    @property
    def pending(self) -> int:
        """Calls that have neither returned nor been left so far."""
        stacks = (*self._stacks.values(), *self._lifted.values())
        return self._over + sum(len(stack.calls) for stack in stacks)

    def entered(self, instance: KretprobeInstance) -> bool:
        """A call begins; False if it is not to be followed."""
        probe, slot = instance.rp, instance.slot
        assert isinstance(probe, GraphProbe)
        if not self._low <= slot < self._high:
            self._switch(slot)
        calls = self._calls
        while calls:
            top = calls[-1]
            if not top.gone:
                if top.slot > slot or not self._exact:
                    break
                if top.slot == slot and (
                    top.ret_addr == instance.ret_addr or self._called_by(top, instance)
                ):
                    break  # a tail call, or a frameless caller that never returns
            calls.pop()
            self._leave(top)
        depth = self._stack.base + len(calls)
        if self.depth_max and depth >= self.depth_max:
            return False
        if self.rooted and not self._in_root and not probe.root:
            return False
        if self.chosen is not None and not self.chosen(self._thread()):
            return False
        calls.append(instance)
        self._in_root += probe.root
        self._in_muted += probe.muted
        if self._in_muted:
            return True
        now = self._now()
        if probe.values is not None:
            values = (depth, instance.ret_addr, *probe.values())
            self._write(pack_row(probe.info, self._thread(), now, probe.function, values))
        else:
            args = instance.entry
            if args is None:
                args = () if probe.capture is None else probe.capture()
            self._entry(probe, now, depth, instance.ret_addr, args)
        if probe.result is not None and probe.result.keep is not None:
            instance.entry = (probe.result.keep(),)
        self.entries += 1
        instance.data = now, depth
        return True

    def _entry(
        self, probe: GraphProbe, now: int, depth: int, ret_addr: int, args: tuple[int, ...]
    ) -> None:
        sink, size = self._sink, probe.words * 8
        position = sink.position
        if position + size > sink.limit:
            sink.drain()
            position = sink.position
        probe.pack(
            sink.buffer,
            position,
            probe.head[0],
            probe.head[1] | self._thread(),
            now,
            probe.function,
            depth,
            ret_addr,
            *args,
        )
        sink.position = position + size

    def returned(self, instance: KretprobeInstance) -> None:
        """A call has returned."""
        if not self._low <= instance.slot < self._high:
            self._switch(instance.slot)
        calls = self._calls
        if calls and calls[-1] is instance:
            calls.pop()
        elif instance not in calls:
            self.late += 1
            return
        elif self._exact:
            while (top := calls.pop()) is not instance:
                self._leave(top)
        else:
            calls.remove(instance)
        self.exits += 1
        probe = instance.rp
        assert isinstance(probe, GraphProbe)
        result = probe.result
        retval: int | bytes = 0
        if result is not None and result.text is not None:
            retval = result.text(instance.entry[0] if instance.entry else 0)
        elif self._retval is not None:
            retval = self._retval()[0]
        self._exit(instance, instance.ret_addr, 0, retval)

    def _called_by(self, top: KretprobeInstance, instance: KretprobeInstance) -> bool:
        """True if the function of one call has made another without moving the stack pointer."""
        if self._function_of is None:
            return False
        around = self._function_of(instance.ret_addr - 1)
        return around is not None and around[0] <= (top.rp.addr or 0) < around[1]

    def _leave(self, instance: KretprobeInstance) -> None:
        """A call is gone without a return."""
        instance.gone = True
        self.left += 1
        self._exit(instance, 0, 1, 0)

    def _exit(self, instance: KretprobeInstance, to: int, left: int, retval: int | bytes) -> None:
        probe = instance.rp
        assert isinstance(probe, GraphProbe)
        self._in_root -= probe.root
        self._in_muted -= probe.muted
        if instance.data is None:
            self.exits -= not left
            self.left -= left
            return
        began, depth = instance.data
        self._exit_row(probe, to, began, depth, left, retval)

    def _exit_row(
        self,
        probe: GraphProbe,
        to: int,
        began: int,
        depth: int,
        left: int,
        retval: int | bytes,
    ) -> None:
        result = probe.result
        if result is not None:
            if result.text is not None and not isinstance(retval, bytes):
                retval = b""  # left, so there is none
            values = (to, depth, began, left, retval)
            row = pack_row(result.info, self._thread(), self._now(), probe.function, values)
            self._write(row)
            return
        sink, size = self._sink, self._size
        position = sink.position
        if position + size > sink.limit:
            sink.drain()
            position = sink.position
        EXIT_ROW.pack_into(
            sink.buffer,
            position,
            self._head[0],
            self._head[1] | self._thread(),
            self._now(),
            probe.function,
            to,
            depth,
            began,
            left,
            retval,
        )
        sink.position = position + size

    def _write(self, row: bytes) -> None:
        """Put a whole row behind the others."""
        sink = self._sink
        position = sink.position
        if position + len(row) > sink.limit:
            sink.drain()
            position = sink.position
        sink.buffer[position : position + len(row)] = row
        sink.position = position + len(row)

    def _switch(self, slot: int) -> None:
        """The program runs on another stack, or the stack has grown."""
        found, old = self._stack_of(slot), self._stack
        key = self.process, found.high, found.signal
        stack = self._stacks.get(key)
        if stack is None:
            stack = self._stacks[key] = found
        stack.low, stack.exact = found.low, found.exact
        if stack is not old:
            if old.signal and not stack.signal:  # its handler is over, whichever way it went
                while old.calls:
                    self._leave(old.calls.pop())
            if stack.own or old.own:
                old.roots, old.muted = self._in_root, self._in_muted
            if stack.own:
                self._in_root, self._in_muted = stack.roots, stack.muted
            elif not stack.calls:
                stack.base = old.base + len(old.calls)
        self._stack, self._calls = stack, stack.calls
        self._low, self._high, self._exact = stack.low, stack.high, stack.exact
