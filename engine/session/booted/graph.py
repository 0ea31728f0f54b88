"""Calls of a booted kernel's functions, as ftrace's function and function_graph tracers show them.

Calls are followed task by task. One that is left without a return, as of a task that ends in it,
is seen when the next call or return of the task lies further up on the same stack.
"""

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.program import row_head
from engine.errors import ProbeError
from engine.machine.kernelmodules import LoadedModule
from engine.machine.probing import ReturnProbe
from engine.session.booted.probes import BootProbe, WaitingProbe
from engine.session.booted.tracing import BootTracing
from engine.session.protocol.requests import TRACERS, GraphOptions
from engine.trace.function import function_info, function_recorder
from engine.trace.graph import ENTRY_ROW, EXIT_ROW, entry_info, exit_info
from engine.trace.staging import put_row

_DEEPEST: Final = 1 << 12
"""Calls of a task that are followed at a time; Linux follows 50."""
_TASKS: Final = 1 << 12
"""Tasks whose calls are followed at a time."""
_STACK: Final = 14
"""Bits of an address in a kernel stack: no two stacks share the others (THREAD_SIZE)."""


class _GraphCall(Struct, eq=False):
    """A call that has not returned.

    Attributes:
        function: its address as rows show it.
        slot: address of the return address.
        leads_to: where it returns to.
        time: of the call.
        depth: calls of the task around it; None for one that is not recorded.
        root: what is called in it is traced.
        muted: nothing that is called in it is.
    """

    function: int
    slot: int
    leads_to: int
    time: int
    depth: int | None
    root: bool
    muted: bool


class _TaskCalls(Struct):
    """The pending calls of one task."""

    pid: int
    calls: list[_GraphCall]


class BootGraph:
    """The tracer of one boot."""

    def __init__(self, tracing: BootTracing, options: GraphOptions) -> None:
        """Trace nothing yet.

        Args:
            tracing: keeps and writes the rows.
            options: what is traced; arguments are not recorded.
        """
        self._entries_of: dict[int, tuple[BootProbe, Callable[[], None]]] = {}
        self._tracing, self._options = tracing, options
        self._graph = options.tracer == TRACERS[0]
        if self._graph:
            self._exits = tracing.add_event(exit_info)
            self._entries = tracing.add_event(entry_info)
        else:
            self._entries = tracing.add_event(function_info)
        self._tasks: dict[int, _TaskCalls] = {}
        self._modules: set[str] = set()
        self._place_other, self._take_out_other = tracing.placing, tracing.taking_out
        tracing.placing, tracing.taking_out = self._place_waiting, self._take_out

    @property
    def functions(self) -> int:
        """The number of functions that are traced."""
        return len(self._entries_of)

    def follow(self, depth: int) -> None:
        """Record calls so deep from now on, 0 for all."""
        self._options = replace(self._options, depth_max=depth)

    def add(self, globs: Sequence[str]) -> None:
        """Trace the functions that match, and those that the options name; while the boot stands.

        Raises:
            ProbeError: no function matches one of the patterns.
        """
        options, tracing = self._options, self._tracing
        for given, option in ((options.under, "--under"), (options.without, "--not")):
            for glob in given:
                if ":" in glob:
                    raise ProbeError(f"{option} {glob}: functions of modules are for -f alone")
        known = len(tracing.waiting)
        roots = set(self._addresses(options.under, "--under"))
        muted = set(self._addresses(options.without, "--not"))
        found = {one.address: one for one in tracing.functions(globs, "-f")}
        if self._graph:
            for given, option in ((options.under, "--under"), (options.without, "--not")):
                found |= {one.address: one for one in tracing.functions(given, option)}
        else:
            found = {at: one for at, one in found.items() if at not in muted}
        if not found and not any(":" in glob for glob in globs):
            raise ProbeError("no function is left to be traced")
        for address, one in found.items():
            if address in self._entries_of:
                continue
            if self._graph:
                self._follow(one, root=address in roots, muted=address in muted)
            else:
                self._count(one)
        self._modules.update(glob for glob in globs if ":" in glob)
        tracing.place_late(tracing.waiting[known:])

    def remove(self, globs: Sequence[str] = ()) -> int:
        """Trace functions no longer, while the boot stands; calls that are pending still return.

        Args:
            globs: patterns of them; none for all.

        Returns:
            The number of functions.
        """
        self._modules = {one for one in self._modules if globs and one not in globs}
        gone = [at for at in self._entries_of if not globs or self._is_named(at, globs)]
        for address in gone:
            self._forget(address)
        return len(gone)

    def _is_named(self, address: int, globs: Sequence[str]) -> bool:
        """True if patterns match the function at an address."""
        name, _, module = self._tracing.symbol(address).partition(" [")
        name = name.rpartition("+")[0]
        if module:
            name = f"{module.removesuffix(']')}:{name}"
        return any(fnmatchcase(name, glob) for glob in globs)

    def _forget(self, address: int) -> None:
        one, entry = self._entries_of.pop(address)
        self._tracing.probes.remove(one.place, entry, begins=one.begins is not None)

    def _place_waiting(self, waiting: WaitingProbe, probe: BootProbe) -> None:
        """Trace a function of a module that the kernel has loaded."""
        if waiting.event:
            self._place_other(waiting, probe)
            return
        wanted = f"{waiting.module}:{waiting.function}" in self._modules
        if wanted and probe.address not in self._entries_of:
            if self._graph:
                self._follow(probe, root=False, muted=False)
            else:
                self._count(probe)

    def _take_out(self, module: LoadedModule) -> None:
        """Trace the functions of a module no longer, whose memory goes."""
        for address in [each for each in self._entries_of if module.at(each) is not None]:
            self._forget(address)
        self._take_out_other(module)

    def _add(self, one: BootProbe, entry: Callable[[], None]) -> None:
        self._entries_of[one.address] = one, entry
        self._tracing.probes.add(one.place, entry, begins=one.begins is not None)

    def _addresses(self, globs: Sequence[str], option: str) -> Iterator[int]:
        return (one.address for one in self._tracing.functions(globs, option))

    def _count(self, one: BootProbe) -> None:
        tracing = self._tracing
        record = function_recorder(
            one.address, self._entries, tracing.sink, tracing.now, tracing.frame, None
        )
        self._add(one, lambda: tracing.of_chosen(record))

    def _follow(self, one: BootProbe, *, root: bool, muted: bool) -> None:
        def entered() -> _GraphCall:
            return self._entered(one.address, root=root, muted=muted)

        def returned(leads_to: int, call: _GraphCall) -> None:
            self._returned(leads_to, call)

        probe = ReturnProbe(entered, returned)
        self._add(one, self._tracing.probes.entry_of(probe))

    # -- calls ----------------------------------------------------------------------------

    def _of_task(self, slot: int) -> tuple[int, list[_GraphCall]]:
        """The id of the task that runs and its calls; those that are left are recorded as such."""
        tracing = self._tracing
        pid, task = tracing.running(), tracing.task()
        known = self._tasks.get(task)
        if known is None or known.pid != pid:
            if known is not None:
                self._leave(known.pid, known.calls)
            if len(self._tasks) >= _TASKS:
                for other in self._tasks.values():
                    self._leave(other.pid, other.calls)
                self._tasks.clear()
            known = self._tasks[task] = _TaskCalls(pid, [])
        calls = known.calls
        gone: list[_GraphCall] = []
        while calls and calls[-1].slot < slot and calls[-1].slot >> _STACK == slot >> _STACK:
            gone.insert(0, calls.pop())
        self._leave(pid, gone)
        return pid, calls

    def _leave(self, pid: int, calls: list[_GraphCall]) -> None:
        while calls:
            call = calls.pop()
            if call.depth is not None:
                self._exit(pid, call, 0, left=True)

    def _entered(self, function: int, *, root: bool, muted: bool) -> _GraphCall:
        tracing, options = self._tracing, self._options
        slot, leads_to = tracing.frame()
        pid, calls = self._of_task(slot)
        if len(calls) >= _DEEPEST:
            self._leave(pid, calls)
        now = tracing.now()
        muted = muted or (bool(calls) and calls[-1].muted)
        root = root or (bool(calls) and calls[-1].root)
        shown = not muted and (root or not options.under)
        depth = len([call for call in calls if call.depth is not None]) if shown else 0
        shown = shown and (not options.depth_max or depth < options.depth_max)
        shown = shown and tracing.is_chosen(pid)
        call = _GraphCall(function, slot, leads_to, now, depth if shown else None, root, muted)
        calls.append(call)
        if shown:
            info = self._entries
            first, second = row_head(info.id, info.words)
            row = ENTRY_ROW.pack(first, second | pid, now, function, depth, leads_to)
            put_row(tracing.sink, row)
        return call

    def _returned(self, leads_to: int, call: _GraphCall) -> None:
        # Calls below are left; of those that share the frame the newest returns first.
        pid, calls = self._of_task(call.slot)
        if call not in calls:
            return
        inner = calls[calls.index(call) + 1 :]
        del calls[calls.index(call) :]
        self._leave(pid, inner)
        if call.depth is not None:
            self._exit(pid, call, leads_to, left=False)

    def _exit(self, pid: int, call: _GraphCall, leads_to: int, *, left: bool) -> None:
        tracing, info = self._tracing, self._exits
        first, second = row_head(info.id, info.words)
        value = tracing.result() if self._options.retval and not left else 0
        row = EXIT_ROW.pack(
            *(first, second | pid, tracing.now(), call.function, leads_to or call.leads_to),
            *(call.depth, call.time, int(left), value),
        )
        put_row(tracing.sink, row)
