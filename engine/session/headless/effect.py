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

from msgspec import Struct, field
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
from engine.session.headless.declared import DeclaredChanges
from engine.session.headless.replay import RecordedIO, ReplayedIO
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report, Reports
from engine.session.protocol.requests import DiffRequest, TraceOptions
from engine.session.tracing.tracing import Tracing

_PIECE: Final = 1 << 20


class Call(Struct, frozen=True):
    """A system call as it was made.

    Attributes:
        name: of the call.
        arguments: its registers.
        result: what it returned; None for one that did not return.
        time: of the guest's clock when it was made.
        registers: (name, value) of the general registers and flags when it was made.
        pc: the program's own address behind it.
    """

    name: str
    arguments: tuple[int, ...]
    time: int
    registers: tuple[tuple[str, int], ...]
    pc: int
    result: int | None = None

    def __str__(self) -> str:
        shown = ", ".join(f"{value:#x}" for value in self.arguments)
        result = "?" if self.result is None else f"{self.result}"
        return f"{self.name}({shown}) = {result}"


class Observed(Struct):
    """Everything observed of one run.

    Attributes:
        calls: its system calls.
        reports: how it ended.
        time: the guest's clock at the end.
        memory: (start, end, name) of a mapping to the digests of its pieces.
        hits: probe hits.
        points: probed places, those among them whose code is gone at the end.
        unseen: addresses of words of signals' frames that are not compared.
        declared: the values that catching returns has replaced.
        notices: what happened to probes without the user's doing.
        read: (address, size) to memory at the end, as the program knows it, while it is kept.
    """

    calls: list[Call] = field(default_factory=list)
    reports: Reports | None = None
    time: int = 0
    memory: dict[tuple[int, int, str], list[bytes]] = field(default_factory=dict)
    hits: int = 0
    points: int = 0
    unseen: set[int] = field(default_factory=set)
    declared: DeclaredChanges = field(default_factory=DeclaredChanges)
    notices: tuple[str, ...] = ()
    read: Callable[[int, int], bytes] | None = None

    @property
    def timed_out(self) -> bool:
        """True if the host's limit of time has ended the run, at a place that means nothing."""
        return self.reports is not None and self.reports.limit == "timeout"


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


def compare(request: DiffRequest, attach: Attach) -> Effect:
    """Run a guest twice, without and with the probes of a request.

    Args:
        request: the guest, whose clock must be its own, and the probes.
        attach: connects a run with the host.

    Raises:
        ImageError: the guest cannot be run.
        ProbeError: a probe is not accepted.
        CommandError: the runs could differ without any probe.
    """
    refused: list[str] = []

    def place(session: Session) -> None:
        tracing = Tracing(session, TraceOptions(output="/dev/null", mode=request.mode))
        with session.opened.explained():
            tracing.definitions.place(request.probes)
        if request.served:
            _serve(session, tracing)
        refused.extend(remark.lines[0] for remark in session.remarks)

    effect = compared(request.config, place, attach, request.mode)
    return replace(effect, refused=tuple(refused))


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
    for address in {probe.addr for probe in made}:
        if address in manager.points:  # and not one of a file that is not mapped yet
            manager.refresh(manager.points[address])


def compared(
    config: GuestConfig,
    place: Callable[[Session], None],
    attach: Attach,
    mode: Mode = Mode.STRICT,
) -> Effect:
    """Run a guest twice, with anything done to the second session before it runs.

    Args:
        config: the guest; its clock must be the guest's own.
        place: puts the probes into the second run's session.
        attach: connects a run with the host.
        mode: strictness of placement.

    Raises:
        CommandError: the runs could differ without any probe.
    """
    if config.clock == "host":
        raise CommandError("--clock host makes two runs differ without any probe")
    if any(writable for _, writable in config.shares):
        raise CommandError("--share PATH:rw: the second run would see what the first one wrote")
    recorded, times = RecordedIO(), _AccessTimes()
    with ExitStack() as memories:
        replaces = catcher_kind(config.returns, mode).trampoline
        kept = memories if replaces else None
        plain = _observe(config, recorded, lambda session, seen: times.show(session), attach, kept)
        if plain.timed_out:
            damage = plain.reports.damage if plain.reports is not None else ()
            return Effect((), plain, Observed(), damage=damage, cut="the plain run")
        replayed = ReplayedIO(recorded)

        def probe(session: Session, seen: Observed) -> None:
            times.show(session)
            session.probes(mode)
            seen.declared.note(session)
            place(session)

        probed = _observe(config, replayed, probe, attach, kept)
        lines = tuple(_difference(plain, probed, replayed))
        damage = probed.reports.damage if probed.reports is not None else ()
        cut = "the probed run" if probed.timed_out and not lines else ""
        return Effect(lines, plain, probed, damage=damage, cut=cut)


class _AccessTimes:
    """The times at which host files were read last, as the first of several runs has seen them.

    A run reads files, so that the next one would see other times.
    """

    def __init__(self) -> None:
        """None is known."""
        self._known: dict[tuple[int, int], int] = {}

    def show(self, session: Session) -> None:
        """Let a guest see the times that are known."""
        for volume in session.fs.host_volumes:
            volume.accessed = self._accessed

    def _accessed(self, device: int, number: int, time: int) -> int:
        return self._known.setdefault((device, number), time)


def _observe(
    config: GuestConfig,
    io: RecordedIO | ReplayedIO,
    prepare: Callable[[Session, Observed], None],
    attach: Attach,
    kept: ExitStack | None,
) -> Observed:
    """Run a guest; its memory lasts as long as `kept`, if it has to be looked at again."""
    with ExitStack() as own:
        session = Session(config, host_stdio(io))
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
    names = [
        register.name
        for register in session.arch.registers
        if register.group in ("general", "flags")
        and register.bits <= 64
        and register.name not in unseen
    ]

    def enter(number: int, name: str, arguments: tuple[int, ...]) -> None:
        values = tuple(zip(names, cpu.read_registers(names), strict=True))
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
        yield from _calls(left, right, probed.declared)
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
        and all(same(a, b) for (_, a), (_, b) in zip(left.registers, right.registers, strict=True))
    )


def _calls(left: Call, right: Call, declared: DeclaredChanges) -> Iterable[str]:
    yield f"plain:  {left} at {left.pc:#x}, time {left.time}"
    yield f"probed: {right} at {right.pc:#x}, time {right.time}"
    changed = [
        f"{name} {a:#x} / {b:#x}"
        for (name, a), (_, b) in zip(left.registers, right.registers, strict=True)
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
