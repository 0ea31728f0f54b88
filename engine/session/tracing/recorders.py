"""Compiles the recorders of a trace's probes."""

import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from engine.arch.plan import RETURN_ADDRESS, TRAMPOLINE_ADDRESS, Mode, Rules
from engine.arch.program import Base, FetchArg, RecordLayout, Source, row_head
from engine.arch.recording import Recording
from engine.errors import GuestFaultError
from engine.fetch.evaluate import (
    FetchContext,
    FetchSite,
    Recorder,
    SharedRecorder,
    capturer,
    recorder,
    shared_recorder,
)
from engine.probes.callwork import call_work
from engine.probes.kprobe import Kprobe, RowOfAny
from engine.probes.kretprobe import CallWork, Kretprobe
from engine.session.guest.probed_space import ProbedSpace
from engine.session.guest.probing import Probing
from engine.session.guest.session import Session
from engine.session.guest.wanted_probes import Ready, Wanted
from engine.session.program.places import Place
from engine.session.tracing.event_set import TraceEvent
from engine.session.tracing.triggers import EventControls
from engine.trace.rows import EventTable
from engine.trace.staging import Staging
from engine.trace.value_rows import value_recorder

if TYPE_CHECKING:
    from engine.session.tracing.typed_events import ValuesRead


class ProbeCpu:
    """The session's processor as the evaluator sees it at one probe.

    Its pc is `pc`, wherever the trap left the real one.
    """

    def __init__(self, session: Session, pc: int = 0) -> None:
        self._reader = session.cpu.traps.reader
        self._pc = session.arch.roles.pc
        self._address = pc
        self.now = session.cpu.now

    def reader(self, names: tuple[str, ...]) -> Callable[[], tuple[int, ...]]:
        """Reads registers, all at once."""
        read = self._reader(names)
        if self._pc not in names:
            return read
        places = [index for index, name in enumerate(names) if name == self._pc]

        def at_probe() -> tuple[int, ...]:
            values = list(read())
            for index in places:
                values[index] = self._address
            return tuple(values)

        return at_probe


class Recorders:
    """Compiles a probe's recorder once its address is known, and again when its event changes."""

    def __init__(
        self,
        session: Session,
        mode: Mode,
        probing: Probing,
        controls: EventControls,
        context: FetchContext,
        staging: Staging,
        table: EventTable,
    ) -> None:
        """Set up.

        Args:
            session: the guest.
            mode: strictness, which decides what `%ip` is.
            probing: its probes.
            controls: filters and triggers, which stand around a recorder.
            context: what recorders share.
            staging: where rows go, which code in the guest writes to as well.
            table: events by number.
        """
        self._session = session
        self._mode = mode
        self._probing = probing
        self._controls = controls
        self._context = context
        self._staging = staging
        self._table = table
        self._shared: dict[RecordLayout, SharedRecorder | None] = {}
        self._shared_in: ProbedSpace | None = None

    def wanted(
        self, place: Place, probe: Kprobe, event: TraceEvent, layout: RecordLayout
    ) -> Wanted:
        """A probe that gets its recorder once its address is known.

        Args:
            place: of the probe.
            probe: the probe without an address yet.
            event: its event.
            layout: of its rows, where that of the event does not hold.
        """
        ready: Ready = event
        if layout is not event.kind.layout:
            ready = partial(self.prepare, number=event.info.id, layout=layout)
        late = not isinstance(probe, Kretprobe)
        return Wanted(place, probe, ready, anywhere=not layout.fields, late=late)

    def prepare(
        self, probe: Kprobe, space: ProbedSpace, place: Place, number: int, layout: RecordLayout
    ) -> None:
        """Compile the recorder of a probe whose address is known.

        Args:
            probe: the probe with its address.
            space: where it is.
            place: of it.
            number: of the event.
            layout: of its rows.
        """
        assert probe.addr is not None
        base = probe.addr - (place.file_offset or 0)
        seen: dict[str, Any] = {"memory": space.space.memory, "where": space.addresses.where}
        pc = self._session.arch.roles.pc
        if any(
            _names(base, pc)
            for field in layout.fields
            for base in (field.arg.base, *(field.arg.base.fetch or ())[:1])
        ):
            seen["cpu"] = ProbeCpu(self._session, self._pc_at(probe))
        site = FetchSite(probe.addr, base)
        make = partial(_compiled, number, layout, site, seen)
        info = self._table[number]
        probe.passes = self._controls.passing(info, make)
        if isinstance(probe, Kretprobe):
            probe.capture = capturer(layout, site, replace(self._context, **seen))
            record = self._controls.recorder(info, make, probe.addr)
            probe.record_return = self._behind_trampoline(record, probe.rules, layout, space)
            call = self._call(probe, number, layout, base, space)
            space.manager.returns.replace_call(probe, call)
        else:
            probe.record_by(partial(self._controls.recorder, info, make, probe.addr))
            probe.recording = self._in_guest(probe, number, layout, base, space)

    def wanted_values(
        self,
        place: Place,
        probe: Kprobe,
        event: TraceEvent,
        values: "Callable[[Kprobe], ValuesRead]",
    ) -> Wanted:
        """A probe whose values are read at its hits.

        Args:
            place: of the probe.
            probe: the probe without an address yet.
            event: its event.
            values: what reads them at it.
        """
        ready = partial(self._prepare_values, number=event.info.id, values=values)
        return Wanted(place, probe, ready, late=not isinstance(probe, Kretprobe))

    def _prepare_values(
        self,
        probe: Kprobe,
        space: ProbedSpace,
        place: Place,
        number: int,
        values: "Callable[[Kprobe], ValuesRead]",
    ) -> None:
        """Compile the recorder of a probe whose values are read at its hits."""
        assert probe.addr is not None
        info, found = self._table[number], values(probe)
        make = partial(value_recorder, info, probe.addr, found.read)
        probe.passes = self._controls.passing(info, make)
        if isinstance(probe, Kretprobe):
            probe.capture = found.keep
            probe.record_return = self._controls.recorder(info, make, probe.addr)
            space.manager.returns.replace_call(probe, None)
        else:
            probe.record_by(partial(self._controls.recorder, info, make, probe.addr))
            probe.recording = None

    def share(
        self, probe: Kprobe, space: ProbedSpace, number: int, layout: RecordLayout
    ) -> RowOfAny | None:
        """Find the recorder that all probes of a layout share, for one that is not prepared.

        A hit takes longer so than with a recorder of the probe's own, and less than to make one.

        Args:
            probe: the probe whose recorder is not prepared.
            space: where it is.
            number: of the event.
            layout: of its rows.

        Returns:
            None where its event does more, or its rows say more of its place than the address.
        """
        if not self._controls.records_only(self._table[number]):
            return None
        if space is not self._shared_in:
            self._shared.clear()
            self._shared_in = space
        if layout not in self._shared:
            made = None
            if not layout.strings and not self._is_of_place(layout):
                memory, where = space.space.memory, space.addresses.where
                context = replace(self._context, memory=memory, where=where)
                made = shared_recorder(layout, context)
            self._shared[layout] = made
        record = self._shared[layout]
        if record is None:
            return None
        head, high = row_head(number, layout.words)
        return record, high, head

    def _is_of_place(self, layout: RecordLayout) -> bool:
        """True if what is fetched depends on the probe's place."""
        pc = self._session.arch.roles.pc
        return any(
            _names(base, pc) or (isinstance(base, Base) and base.source is Source.IMAGE)
            for field in layout.fields
            for base in (field.arg.base, *(field.arg.base.fetch or ())[:1])
        )

    def _in_guest(
        self, probe: Kprobe, number: int, layout: RecordLayout, base: int, space: ProbedSpace
    ) -> Recording | None:
        """The row that code in the guest would record for a probe; None where that is not all."""
        ops = self._controls.predicate(self._table[number])
        if not space.manager.techniques.writes_to(self._staging) or ops is None:
            return None
        assert probe.addr is not None
        return Recording(number, layout, probe.addr, base, self._pc_at(probe), ops)

    def _call(
        self, probe: Kretprobe, number: int, layout: RecordLayout, base: int, space: ProbedSpace
    ) -> CallWork | None:
        """The work of code in the guest at a return probe's calls; None where that is not all."""
        pc = self._session.arch.roles.pc
        if any(_names(field.arg.base, pc) for field in layout.fields):
            return None  # it is another one wherever the function is called from
        row = self._in_guest(probe, number, layout, base, space)
        return None if row is None else call_work(self._session.arch, row)

    def _behind_trampoline(
        self, record: Recorder, rules: Rules, layout: RecordLayout, space: ProbedSpace
    ) -> Recorder:
        """The recorder of a return that looks below the stack pointer, as Linux's rules have it.

        Linux's trampoline has pushed registers there before the event is recorded.
        """
        arch, manager = self._session.arch, space.manager
        pushes = arch.probes.pushes.get(rules)
        below = any(_reads_below(field.arg, arch.roles.sp) for field in layout.fields)
        if self._mode is not Mode.KERNEL or pushes is None or not below:
            return record
        names = tuple(n for n in pushes if n in {one.name for one in arch.registers})
        registers = self._session.cpu.traps.reader((*names, arch.roles.sp))
        form, memory = struct.Struct(f"<{len(pushes)}Q"), space.space.memory

        def recorded(thread: int, ret_addr: int, *entry: object) -> None:
            *values, sp = registers()
            known: dict[str | int, int] = dict(zip(names, values, strict=True))
            known[RETURN_ADDRESS] = ret_addr
            trampoline = manager.returns.trampoline
            if trampoline is not None:
                known[TRAMPOLINE_ADDRESS] = trampoline[0]
                words = [known.get(word, word) for word in reversed(pushes)]
                with suppress(GuestFaultError):
                    memory.write(sp - form.size, form.pack(*words))
            record(thread, ret_addr, *entry)

        return recorded

    def _pc_at(self, probe: Kprobe) -> int:
        """The value of `%ip` at a probe: its address.

        For Linux's kprobes on x86 it is the address behind the int3, one byte on, also where
        ftrace or a jump stands in for it (arch/x86/kernel/kprobes: core.c, ftrace.c, opt.c);
        uprobes put it back (kernel/events/uprobes.c, handle_swbp).
        """
        assert probe.addr is not None
        arch = self._session.arch
        as_linux = self._mode is Mode.KERNEL and probe.rules is Rules.KPROBE
        behind = len(arch.breakpoint) if as_linux and arch.trap_advances_pc else 0
        return probe.addr + behind


def _reads_below(arg: FetchArg, sp: str) -> bool:
    """True if an argument begins with memory below the stack pointer."""
    at_stack = arg.base.source is Source.STACK_POINTER or arg.base.register == sp
    return at_stack and bool(arg.derefs) and arg.derefs[0] < 0


def _names(base: object, register: str) -> bool:
    return isinstance(base, Base) and register in (base.register, base.text.decode("latin-1"))


def _compiled(
    number: int, layout: RecordLayout, site: FetchSite, seen: dict[str, Any], context: FetchContext
) -> Recorder:
    """An event's recorder for a sink; `seen` is what it sees of one address space."""
    return recorder(number, layout, site, replace(context, **seen))
