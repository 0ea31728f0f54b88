"""The probe-effect differ: a guest run plain and probed, and where the two runs part.

Compared are, system call by system call, its number, arguments, result and all registers, and
the guest's clock; then output, end, and memory. The first difference is what is shown. Where
probes may be jumps, registers that carry nothing across calls and that detours use for that
reason (`ArchJumps.scratch`: x16 and x17 of AArch64) are not compared, nor where frames of
signals have them. Values that a way of catching returns replaces are equal to what they replace
(`declared`).
"""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Final

from msgspec import Struct, msgpack
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CommandError
from engine.guest.memory import Mapping
from engine.linux.fs.stdio import host_stdio
from engine.probes.kprobe import Uprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.return_catchers import catcher_kind
from engine.probes.techniques import chosen
from engine.session.guest.session import Attach, Session
from engine.session.headless import beside
from engine.session.headless.declared import DeclaredChanges
from engine.session.headless.observed import Call, Observed, ObservedElsewhere
from engine.session.headless.replay import RecordedIO, ReplayedIO
from engine.session.program.opening import OpenedFiles, OpenedProgram
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report
from engine.session.protocol.requests import DiffRequest, TraceOptions
from engine.session.tracing.tracing import Tracing

_PIECE: Final = 1 << 20
_WAITED: Final = 0.1
"""Seconds that a run beside another may have waited: more of them are not its own time."""


class Effect(Struct, frozen=True):
    """The outcome of a comparison.

    Attributes:
        lines: the first difference, in words; empty if there is none.
        plain: the run without probes.
        probed: the run with them.
        refused: remarks about places that take no probe.
        damage: remarks about damaged files.
        cut: the run that the limit of time ended before a difference was found, "the plain run"
            or "the probed run"; "" if both are compared to their ends. The plain run is then the
            only one that was made if it is the one that was cut.
    """

    lines: tuple[str, ...]
    plain: Observed
    probed: Observed
    refused: tuple[str, ...] = ()
    damage: tuple[Report, ...] = ()
    cut: str = ""


def compare(
    request: DiffRequest,
    attach: Attach,
    *,
    at_once: bool = False,
    files: OpenedFiles | None = None,
) -> Effect:
    """Run a guest twice, without and with the probes of a request.

    Args:
        request: the guest, whose clock must be its own, and the probes.
        attach: connects a run with the host.
        at_once: the runs may be made at the same time, in two processes.
        files: those that were opened before.

    Raises:
        ImageError: the guest cannot be run.
        ProbeError: a probe is not accepted.
        CommandError: the runs could differ without any probe.
    """

    def place(session: Session) -> None:
        tracing = Tracing(session, TraceOptions(output="/dev/null", mode=request.mode))
        with session.opened.explained():
            tracing.definitions.place(request.probes)
        if request.served:
            _serve(session, tracing)

    config, mode = request.config, request.mode
    return compared(config, place, attach, mode, at_once=at_once, files=files)


def _serve(session: Session, tracing: Tracing) -> None:
    """Give every probe handlers that do nothing: the engine serves its hits from now on.

    Every other one has no post-handler: its copy may go on by itself.
    """
    manager = session.probes().manager
    made = [probe for event in tracing.events.values() for probe in event.probes]
    for index, probe in enumerate(made):
        if isinstance(probe, Kretprobe):
            probe.entry_handler = probe.handler = lambda instance, regs: 0
            continue
        if isinstance(probe, Uprobe):
            probe.handler = lambda uprobe, regs: 0
        probe.pre_handler = lambda kprobe, regs: 0
        if index % 2 == 0:
            probe.post_handler = lambda kprobe, regs, flags: None
    for address in {probe.addr or 0 for probe in made}:
        if address in manager.points:  # and not one of a file that is not mapped yet
            manager.refresh(manager.points[address])


def compared(
    config: GuestConfig,
    place: Callable[[Session], None],
    attach: Attach,
    mode: Mode = Mode.STRICT,
    *,
    at_once: bool = False,
    files: OpenedFiles | None = None,
) -> Effect:
    """Run a guest twice, with anything done to the second session before it runs.

    Args:
        config: the guest; its clock must be the guest's own.
        place: puts the probes into the second run's session.
        attach: connects a run with the host.
        mode: strictness of placement.
        at_once: the runs may be made at the same time, in two processes; the second one's session
            is then that of another process.
        files: those that were opened before.

    Raises:
        CommandError: the runs could differ without any probe.
    """
    if config.clock == "host":
        raise CommandError("--clock host makes two runs differ without any probe")
    if any(writable for _, writable in config.shares):
        raise CommandError("--share PATH:rw: the second run would see what the first one wrote")
    replaces = catcher_kind(config.returns, mode).trampoline
    runs = _Runs(config, place, attach, mode, files, keeps=replaces)
    # Both would write the file of the schedule.
    if not at_once or config.record_schedule is not None or not beside.can_be():
        return runs.in_turn()
    return runs.at_once()


class _Runs:
    """The two runs of a comparison."""

    def __init__(
        self,
        config: GuestConfig,
        place: Callable[[Session], None],
        attach: Attach,
        mode: Mode,
        files: OpenedFiles | None,
        *,
        keeps: bool,
    ) -> None:
        """`keeps`: their memory may have to be looked at once both have ended."""
        self._config = config
        self._place = place
        self._attach = attach
        self._mode = mode
        self._files = files
        self._keeps = keeps

    def in_turn(self) -> Effect:
        """Make the second one after the first."""
        recorded, times = RecordedIO(), _AccessTimes()
        with ExitStack() as memories:
            plain = self._plain(recorded, times, memories)
            if plain.timed_out:
                return _cut(plain)
            return self._after(plain, recorded, times, memories)

    def _after(
        self, plain: Observed, recorded: RecordedIO, times: "_AccessTimes", memories: ExitStack
    ) -> Effect:
        replayed = ReplayedIO(recorded)
        return _effect(plain, self._probed(replayed, times.accessed, memories), replayed)

    def at_once(self) -> Effect:
        """Make the second one in a process of its own meanwhile.

        Where that does not come to an end, or has waited before the limit of time has cut it, it
        is made again after the first.
        """
        with ExitStack() as memories:
            try:
                run = beside.RunBeside(self._beside)
            except OSError:
                return self.in_turn()
            memories.callback(run.close)
            recorded, times = beside.TellingIO(run.tell), _AccessTimes(run.tell_time)
            plain = self._plain(recorded, times, memories)
            if plain.timed_out:
                return _cut(plain)
            found = run.results()
            if found is not None:
                elsewhere = msgpack.decode(found, type=ObservedElsewhere)
                probed = elsewhere.run
                if not (probed.timed_out and elsewhere.waited > _WAITED):
                    probed.read = run.read if self._keeps else None
                    replayed = ReplayedIO(recorded)
                    replayed.skip(elsewhere.taken, elsewhere.difference)
                    return _effect(plain, probed, replayed)
            run.close()
            return self._after(plain, recorded, times, memories)

    def _beside(
        self, io: beside.FedIO, times: beside.FedTimes
    ) -> tuple[bytes, beside.Serve | None]:
        """The second run in its process."""
        probed = self._probed(io, times.accessed, ExitStack())
        read, probed.read = probed.read, None
        found = ObservedElsewhere(probed, io.taken, io.difference, io.waited)
        return msgpack.encode(found), read

    def _plain(self, io: RecordedIO, times: "_AccessTimes", memories: ExitStack) -> Observed:
        return self._observed(
            io, lambda session, seen: _show_times(session, times.accessed), memories
        )

    def _probed(
        self, io: ReplayedIO, accessed: Callable[[int, int, int], int], memories: ExitStack
    ) -> Observed:
        def probe(session: Session, seen: Observed) -> None:
            session.probes(self._mode)
            seen.declared.note(session)
            self._place(session)
            seen.refused = tuple(remark.lines[0] for remark in session.remarks)
            _show_times(session, accessed)  # of what the guest asks for, not the placing

        return self._observed(io, probe, memories)

    def _observed(
        self,
        io: RecordedIO | ReplayedIO,
        prepare: Callable[[Session, Observed], None],
        memories: ExitStack,
    ) -> Observed:
        """A run; its memory lasts as long as `memories`, if it has to be looked at again."""
        opened = OpenedProgram.open(self._config, self._files)
        kept = memories if self._keeps else None
        return _observe(opened, io, prepare, self._attach, kept)


def _cut(plain: Observed) -> Effect:
    """The outcome where the limit of time has ended the plain run."""
    damage = plain.reports.damage if plain.reports is not None else ()
    return Effect((), plain, Observed(), damage=damage, cut="the plain run")


def _effect(plain: Observed, probed: Observed, replayed: ReplayedIO) -> Effect:
    """The outcome of both runs."""
    lines = tuple(_difference(plain, probed, replayed))
    damage = probed.reports.damage if probed.reports is not None else ()
    cut = "the probed run" if probed.timed_out and not lines else ""
    return Effect(lines, plain, probed, probed.refused, damage, cut)


def _show_times(session: Session, accessed: Callable[[int, int, int], int]) -> None:
    """Let a guest see when host files were read last."""
    for volume in session.fs.host_volumes:
        volume.accessed = accessed


class _AccessTimes:
    """The times at which host files were read last, as the first of several runs has seen them.

    A run reads files, so that the next one would see other times.
    """

    def __init__(self, tell: Callable[[int, int, int], None] | None = None) -> None:
        """None is known; `tell` is called for each that is from now on."""
        self._known: dict[tuple[int, int], int] = {}
        self._tell = tell

    def accessed(self, device: int, number: int, time: int) -> int:
        """The time that a guest sees."""
        key = device, number
        if key not in self._known:
            self._known[key] = time
            if self._tell is not None:
                self._tell(device, number, time)
        return self._known[key]


def _observe(
    opened: OpenedProgram,
    io: RecordedIO | ReplayedIO,
    prepare: Callable[[Session, Observed], None],
    attach: Attach,
    kept: ExitStack | None,
) -> Observed:
    """Run a guest; its memory lasts as long as `kept`, None for not longer than the run."""
    with ExitStack() as own:
        session = Session(opened.config, host_stdio(io), opened)
        (own if kept is None else kept).callback(session.close)
        seen = Observed()
        io.now = lambda: session.machine.syscall_count
        _listen(session, seen)
        prepare(session, seen)
        session.cpu.count_blocks(True)
        with attach(session):
            seen.reports = session.run()
        session.check_ended()
        seen.time = session.cpu.blocks()
        if session.probing is not None:
            seen.points, seen.hits = session.probing.tally()
            seen.notices = tuple(session.probing.notices)
        read = _reader(session, seen)
        _digest(session, seen, read)
        seen.read = None if kept is None else read
        return seen


def _listen(session: Session, seen: Observed) -> None:
    cpu, hooks, machine = session.cpu, session.hooks, session.machine
    last: dict[int, int] = {}  # the call that a thread is in, by its id
    pc = session.arch.roles.pc
    scratch = chosen(session.config.technique).scratch(session.arch)
    unseen = {pc, *scratch}
    seen.names = names = tuple(
        register.name
        for register in session.arch.registers
        if register.group in ("general", "flags")
        and register.bits <= 64
        and register.name not in unseen
    )

    def enter(number: int, name: str, arguments: tuple[int, ...]) -> None:
        values = tuple(cpu.read_registers(names))
        at = session.seen.hooks.original_pc(cpu.read_register(pc))
        last[machine.current.tid] = len(seen.calls)
        seen.calls.append(Call(name, arguments, cpu.blocks(), values, at))

    def leave(number: int, name: str, result: int) -> None:
        number = last[machine.current.tid]
        seen.calls[number] = replace(seen.calls[number], result=result)

    def signalled() -> None:
        if session.seen is not session.space:
            return
        at, unwind = cpu.read_register(session.arch.roles.sp), session.arch.unwind
        if unwind is not None:
            seen.unseen.update(at + unwind.saved[name] for name in scratch)

    hooks.syscall_enter, hooks.syscall_exit = enter, leave
    hooks.signalled = signalled


def _reader(session: Session, seen: Observed) -> Callable[[int, int], bytes]:
    """Reads the guest's memory as the program knows it: without patches and windows."""
    memory, original = session.memory, session.space.hooks.original

    def read(at: int, size: int) -> bytes:
        data = bytearray(original(at, memory.read(at, size)))
        for word in seen.unseen:
            if at <= word < at + len(data):
                data[word - at : word - at + 8] = bytes(8)
        return bytes(data)

    return read


def _digest(session: Session, seen: Observed, read: Callable[[int, int], bytes]) -> None:
    """Digests of the guest's memory.

    Neighbours that differ in nothing are one mapping, wherever their pages lie.
    """
    runs: list[list[Mapping]] = []
    for mapping in session.memory.mappings:
        if mapping.reserved or not mapping.perms or mapping.physical is None:
            continue
        if runs and runs[-1][-1].continues(mapping):
            runs[-1].append(mapping)
        else:
            runs.append([mapping])
    for run in runs:
        start, end = run[0].start, run[-1].end
        pieces = []
        for at in range(start, end, _PIECE):
            data = read(at, min(_PIECE, end - at))
            pieces.append(hashlib.blake2b(data, digest_size=16).digest())
        seen.memory[start, end, run[0].name] = pieces


def _difference(plain: Observed, probed: Observed, io: ReplayedIO) -> Iterable[str]:
    for index, (left, right) in enumerate(zip(plain.calls, probed.calls, strict=False)):
        if probed.timed_out and right.result is None:
            left = replace(left, result=None)  # it was cut in the middle of the call
        if left == right or _alike(left, right, probed.declared):
            continue
        yield f"system call {index + 1} differs"
        yield from _calls(left, right, plain.names, probed.declared)
        return
    if io.difference:
        yield f"output or input differs: {io.difference}"
        return
    if probed.timed_out:
        # The host's clock has cut it: only what it did before counts.
        if probed.time > plain.time:
            yield (
                f"the plain run ended at time {plain.time}, the probed run still went on at "
                f"{probed.time}, when the time limit (--timeout) ran out"
            )
        return
    if len(plain.calls) != len(probed.calls):
        more, whose = (
            (plain.calls, "plain")
            if len(plain.calls) > len(probed.calls)
            else (probed.calls, "probed")
        )
        first = more[min(len(plain.calls), len(probed.calls))]
        yield f"the {whose} run made more system calls: {first} at {first.pc:#x}"
        return
    if left_over := io.left():
        yield f"output differs: {left_over}"
        return
    assert plain.reports is not None
    assert probed.reports is not None
    if plain.reports.exit_code != probed.reports.exit_code:
        codes = plain.reports.exit_code, probed.reports.exit_code
        yield f"exit code {codes[0]} plain, {codes[1]} probed"
        return
    if plain.time != probed.time:
        yield f"the guest's clock ended at {plain.time} plain, {probed.time} probed"
        return
    yield from _memories(plain, probed)


def _alike(left: Call, right: Call, declared: DeclaredChanges) -> bool:
    """True if two calls differ only by values that were replaced."""
    same = declared.same
    return (
        (left.name, left.time, left.pc, left.result)
        == (right.name, right.time, right.pc, right.result)
        and all(map(same, left.arguments, right.arguments))
        and all(map(same, left.registers, right.registers))
    )


def _calls(
    left: Call, right: Call, names: tuple[str, ...], declared: DeclaredChanges
) -> Iterable[str]:
    yield f"plain:  {left} at {left.pc:#x}, time {left.time}"
    yield f"probed: {right} at {right.pc:#x}, time {right.time}"
    changed = [
        f"{name} {a:#x} / {b:#x}"
        for name, a, b in zip(names, left.registers, right.registers, strict=True)
        if not declared.same(a, b)
    ]
    if changed:
        yield f"registers (plain / probed): {', '.join(changed)}"


def _memories(plain: Observed, probed: Observed) -> Iterable[str]:
    if plain.memory.keys() != probed.memory.keys():
        odd = sorted(plain.memory.keys() ^ probed.memory.keys())[0]
        yield f"the mapping {odd[0]:#x}-{odd[1]:#x} {odd[2]} is in one run only"
        return
    for (start, end, name), pieces in plain.memory.items():
        for index, piece in enumerate(pieces):
            if piece != probed.memory[start, end, name][index]:
                low = start + index * _PIECE
                size, first = min(_PIECE, end - low), ""
                if plain.read is not None and probed.read is not None:
                    both = plain.read(low, size), probed.read(low, size)
                    at = probed.declared.difference(low, *both)
                    if at is None:
                        continue
                    first = f", first at {at:#x}"
                yield (
                    f"memory differs in {low:#x}-{min(low + _PIECE, end):#x} "
                    f"({name or 'anonymous'}) at the end{first}"
                )
                return
