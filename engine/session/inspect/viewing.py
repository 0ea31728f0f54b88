"""Makes the frozen views of a guest from the session that runs it."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar

from msgspec.structs import replace

from engine.arch.drawing import DrawnHit, UnitDrawing
from engine.arch.plan import Fixup
from engine.cpu.ram import EXECUTE, READ, WRITE
from engine.errors import GuestFaultError
from engine.guest.mapping import Mapping as MemoryMapping
from engine.linux.space import AddressSpace
from engine.message_text import counted
from engine.probes.hit_machine import BufferPart, HitBuffer, HitMachine, Phase, PhaseRecord
from engine.probes.point import ProbePoint
from engine.probes.point_state import Stage
from engine.session.guest.probed_space import ProbedSpace
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import Backtraces, comparison, space_of
from engine.session.inspect.frame_variables import FRAMES, FrameVariables
from engine.session.inspect.telescope import Telescope
from engine.session.protocol.frames import GuestFrame
from engine.session.protocol.views import (
    Change,
    DetourCounts,
    DetourPart,
    DetourView,
    HitView,
    MappingView,
    ModuleView,
    Origin,
    PhaseView,
    RegisterView,
    StackWord,
)
from engine.unwind.compare import UNWINDERS

if TYPE_CHECKING:
    from engine.session.inspect.goroutines import Goroutine


_FIXUPS: Final = {
    Fixup.IP: "pc moves from behind the copy to behind the original",
    Fixup.CALL: "the return address becomes the original's",
    Fixup.NOT_TAKEN: "pc moves behind the original if the branch was not taken",
    Fixup.VALUE: "the register that was given the copy's address gets the original's",
    Fixup.SCRATCH: "the register that stood in for pc gets its own value back",
    Fixup.FLAGS: "TF stays as the instruction left it",
    Fixup.TRACE_FLAG: "the pushed flags show TF of the single step",
    Fixup.STEP_FLAG: "TF of the single step stays set",
    Fixup.STRANDED: "pc stays in the slot, behind the copy",
}
_BY_GUEST: Final = frozenset({Phase.SLOT, Phase.EMULATED, Phase.DISPLACED})


_Spanned = TypeVar("_Spanned", ModuleView, MappingView)


class Sight(Protocol):
    """Says which thread a user looks at."""

    @property
    def space(self) -> AddressSpace:
        """The address space of that thread."""

    @property
    def seen(self) -> AddressSpace:
        """The one of the frame that is looked at."""


class Viewing:
    """The parts of a `GuestView` that take work, remembered until they change.

    Attributes:
        backtraces: of the session.
        unwinder: finds the frames that are shown.
        build_id: of the program.
        detours: its detour buffers.
        variables: of the frames that are shown.
    """

    def __init__(self, session: Session, sight: Sight) -> None:
        """Nothing is looked at yet; `sight` says in which memory."""
        self._session = session
        self._sight = sight
        self._before: dict[str, int] = {}
        self._registers: tuple[RegisterView, ...] = ()
        self._modules: dict[tuple[int, int], ModuleView] = {}
        self._planted: tuple[ProbedSpace | None, int, dict[int, bytes]] = (None, -1, {})
        self.detours = DetourViews(session)
        self.backtraces = Backtraces(session)
        self.variables = FrameVariables(session)
        self.unwinder = UNWINDERS[0]
        self._asked: tuple[str, Mapping[str, int], Goroutine | None] = "", {}, None
        self._frames: tuple[tuple[GuestFrame, ...], str] = ((), "")
        self.build_id = session.image.identity

    # -- registers ------------------------------------------------------------------------

    def registers(
        self, origin: Origin, parked: "Goroutine | None" = None
    ) -> tuple[RegisterView, ...]:
        """All registers now; those that changed since the last call were changed by `origin`.

        Args:
            origin: what has changed them.
            parked: a goroutine that is looked at: those that it has, and no others.
        """
        session = self._session
        items = session.arch.registers
        if parked is None:
            values = [session.cpu.read_register(item.name) for item in items]
        else:
            has = self.backtraces.registers_of(parked)
            items = tuple(item for item in items if item.name in has)
            values = [has[item.name] for item in items]
        before, views = self._before, []
        telescope = Telescope(session, self._sight.space)
        link = session.arch.roles.link
        for item, value in zip(items, values, strict=True):
            old = before.get(item.name, value)
            views.append(
                RegisterView(
                    item.name,
                    value,
                    item.bits,
                    item.group,
                    origin if old != value else "",
                    old,
                    " ".join(name for bit, name in item.flags if value >> bit & 1),
                    telescope.follow(value, returns=item.name == link)
                    if item.group == "general"
                    else (),
                )
            )
        self._before = {item.name: value for item, value in zip(items, values, strict=True)}
        self._registers = tuple(views)
        return self._registers

    def same_registers(self) -> tuple[RegisterView, ...]:
        """Return the registers of the last stop."""
        return self._registers

    def words(self, address: int, count: int) -> tuple[StackWord, ...]:
        """Words of the memory in sight from an address on, and where they lead."""
        found = (Telescope(self._session, one).words(address, count) for one in self._seen())
        return next((words for words in found if words), ())

    def stack(self, count: int) -> tuple[StackWord, ...]:
        """Words from the stack pointer of the last registers on, and where they lead."""
        arch = self._session.arch
        size, sp = arch.bits // 8, arch.roles.sp
        top = next((one.value for one in self._registers if one.name == sp), None)
        return () if top is None else self.words(top & -size, count)

    def _seen(self) -> tuple[AddressSpace, ...]:
        """The address spaces in sight: behind a program's that of the kernel it has called."""
        return tuple(dict.fromkeys((self._sight.seen, self._sight.space)))

    # -- frames -----------------------------------------------------------------------------

    def frames(
        self, waiting_in: str, own: Mapping[str, int], parked: "Goroutine | None" = None
    ) -> tuple[tuple[GuestFrame, ...], str]:
        """The backtrace now, and why it ends.

        Args:
            waiting_in: name of the system call that is being made, "" for none.
            own: registers that hold something of the machinery's, as the program would see them.
            parked: a goroutine that is looked at in place of the thread.
        """
        self._asked = waiting_in, own, parked
        if parked is None:
            registers = self.backtraces.registers()
            registers.update(own)
            take = partial(self.backtraces.take, registers, syscall=waiting_in)
        else:
            take = partial(self.backtraces.parked, parked)
        trace = take(unwinder=self.unwinder.name)
        differing, end = frozenset[int](), trace.end
        if self.unwinder is not UNWINDERS[0]:
            whole = take()
            differing, missing = _differences(whole.frames, trace.frames)
            are = "is" if missing == 1 else "are"
            lost = f"; {counted(missing, 'frame')} of the whole backtrace {are} missing"
            end += lost if missing else ""
        variables = self.variables.of_frames(trace.frames)
        views = tuple(
            replace(frame, differs=frame.number in differing, variables=own)
            if own or frame.number in differing
            else frame
            for frame, own in zip(trace.frames, variables, strict=True)
        )
        self._frames = views, end
        return self._frames

    def space_of(self, number: int) -> AddressSpace | None:
        """The address space of a frame where that is not the thread's."""
        frames = self._frames[0]
        return space_of(self._session, frames[number]) if 0 <= number < len(frames) else None

    def choose(self, name: str, *, now: bool) -> str:
        """Find frames with another unwinder from here on; what it is, in words.

        Args:
            name: of the unwinder, "" for the one that follows the one at hand.
            now: whether the guest stands, so that the frames of now can be found anew.

        Raises:
            CommandError: there is no such unwinder.
        """
        if name:
            self.unwinder = comparison(name)
        else:
            self.unwinder = UNWINDERS[(UNWINDERS.index(self.unwinder) + 1) % len(UNWINDERS)]
        if now:
            self.frames(*self._asked)
        return f"{self.unwinder.name}: {self.unwinder.text}"

    def same_frames(self, frame: int = 0) -> tuple[tuple[GuestFrame, ...], str]:
        """The last backtrace again, with the variables of a frame that is looked at.

        Args:
            frame: its number.
        """
        views, end = self._frames
        if FRAMES <= frame < len(views) and not views[frame].variables:
            found = self.variables.of_frame(frame)
            if found:
                shown = replace(views[frame], variables=found)
                self._frames = (*views[:frame], shown, *views[frame + 1 :]), end
        return self._frames

    def planted(self) -> dict[int, bytes]:
        """The bytes that stand in place of original ones, by address."""
        probing = self._session.probing
        there = probing.spaces.get(self._sight.seen) if probing is not None else None
        if there is None:
            return {}
        if self._planted[:2] != (there, there.overlay.changes):
            self._planted = there, there.overlay.changes, there.overlay.planted()
        return self._planted[2]

    def modules(self) -> tuple[ModuleView, ...]:
        """The files in memory, by address."""
        first, *more = map(self._modules_in, self._seen())
        return tuple(sorted((*first, *_beside(first, *more)), key=lambda view: view.start))

    def _modules_in(self, space: AddressSpace) -> list[ModuleView]:
        image, users = self._session.image, self._session.user_files
        spans: dict[int, list[int]] = {}
        found = {}
        for mapping in space.memory.mappings:
            if not mapping.perms or mapping.reserved:
                continue
            module = space.modules.at(mapping.start)
            if module is None:
                continue
            found[id(module)] = module
            span = spans.setdefault(id(module), [mapping.start, mapping.end])
            span[0], span[1] = min(span[0], mapping.start), max(span[1], mapping.end)
        views = []
        for key, module in found.items():
            start, end = spans[key]
            known = self._modules.get((key, end))
            if known is None or known.start != start:
                carried = users is not None and users.has(module.name, module.image)
                known = self._modules[key, end] = ModuleView(
                    module.name, start, end, module.bias, module.image is image, carried
                )
            views.append(known)
        return views

    def mappings(self) -> tuple[MappingView, ...]:
        """The memory map, with the engine's windows and all that the stack may grow into."""
        first, *more = map(self._mappings_in, self._seen())
        if not more:
            return first
        return tuple(sorted((*first, *_beside(first, *more)), key=lambda view: view.start))

    def _mappings_in(self, space: AddressSpace) -> tuple[MappingView, ...]:
        users = space.modules.contents is not None  # names are of the kernel's memory there

        def name(mapping: MemoryMapping) -> str:
            module = space.modules.at(mapping.start) if users and mapping.shared else None
            return module.name if module is not None else "" if users else mapping.name

        return tuple(
            MappingView(mapping.start, mapping.end, _perms(mapping.perms), name(mapping))
            for mapping in space.memory.mappings
            if mapping.perms or not mapping.reserved
        )

    # -- a hit ----------------------------------------------------------------------------

    def hit(self, machine: HitMachine, done: tuple[PhaseView, ...]) -> HitView:
        """A hit as far as it has come."""
        point, session = machine.point, self._session
        detour = self.detours.of(machine)
        planted = self.planted().get(point.address, b"")
        slot = machine.slot
        code = self._slot_code(point, slot)
        listed = session.disassembler.decode(slot or 0, code) if slot is not None else ()
        insn = session.disassembler.decode(point.address, point.plan.raw)
        return HitView(
            address=point.address,
            place=str(session.seen.modules.locate(point.address)),
            probes=_names(point, machine),
            route=(*(phase.name for phase in done), *(phase.value for phase in machine.ahead)),
            done=done,
            next=machine.next.value if machine.next is not None else "",
            how=point.how if detour is None else detour.what,
            reason=point.plan.reason if detour is None else _why_jump(point),
            original=point.plan.raw,
            planted=planted,
            insn=insn[0].text if insn else "",
            slot=slot,
            slot_bytes=code,
            slot_text=tuple(f"{item.address:x}  {item.text}" for item in listed),
            fixups=() if detour else tuple(_FIXUPS[fixup] for fixup in point.plan.fixups),
            returns_to=machine.calls[0].ret_addr if machine.calls else None,
            detour=detour,
            units=self._units(point, slot, code),
        )

    def _units(self, point: ProbePoint, slot: int | None, code: bytes) -> tuple[UnitDrawing, ...]:
        """The units of code of a hit, where bytes do not say enough."""
        draw, plan = self._session.arch.probes.draw, point.plan
        if draw is None:
            return ()
        standing = self._session.seen.memory.read(plan.base, len(plan.raw))
        return draw(plan, DrawnHit(standing, slot, code, point.boosted))

    def _slot_code(self, point: ProbePoint, slot: int | None) -> bytes:
        if slot is None:
            return b""
        if slot == point.slot:
            return point.copy.code
        size = len(point.plan.scratch_copy or point.plan.copy)
        try:
            return self._session.seen.memory.read(
                slot, size + len(self._session.arch.probes.after)
            )
        except GuestFaultError:
            return b""

    def phase(self, record: PhaseRecord, machine: HitMachine) -> PhaseView:
        """A phase that was carried out."""
        site, slot = record.point, machine.slot
        kinds: dict[int | None, Literal["site", "slot"]] = {slot: "slot", site: "site"}
        changes = [
            Change(address, old, new, kinds.get(address, "stack"))
            for address, old, new in record.memory
        ]
        return PhaseView(
            record.phase.value,
            record.text,
            record.before,
            record.after,
            tuple((name, old, new) for name, (old, new) in record.registers.items()),
            tuple(changes),
            record.phase in _BY_GUEST,
        )


class DetourViews:
    """Makes views of detour buffers; the last one's instructions are remembered."""

    def __init__(self, session: Session) -> None:
        """Nothing is looked at yet."""
        self._session = session
        self._known: tuple[HitBuffer | None, tuple[DetourPart, ...]] = None, ()

    def of(self, machine: HitMachine) -> DetourView | None:
        """The buffer that a hit goes through and where the guest is in it; None for no buffer."""
        session, buffer = self._session, machine.buffer
        if buffer is None:
            return None
        if self._known[0] != buffer:
            self._known = buffer, tuple(self._part(part, buffer) for part in buffer.parts)
        standing = buffer.replacement
        jump = session.disassembler.decode(standing.address, standing.jump)
        pc = session.cpu.read_register(session.arch.roles.pc)
        return DetourView(
            window=standing.original,
            jump=jump[0].text if jump else "",
            held=machine.point.state.held,
            parts=self._known[1],
            what=buffer.what,
            at=pc if 0 <= pc - standing.start < len(standing.code) else None,
        )

    def counts(self) -> DetourCounts:
        """Count the buffers, and say what those wait for that nobody needs any more."""
        probing = self._session.probing
        if probing is None:
            return DetourCounts()
        found = probing.manager.techniques.buffers()
        return DetourCounts(found.standing, len(found.waits), found.waits, found.freed)

    def _part(self, part: BufferPart, buffer: HitBuffer) -> DetourPart:
        standing = buffer.replacement
        code = standing.code[part.start - standing.start : part.end - standing.start]
        original = None
        if part.original is not None:
            rest = standing.original[part.original - standing.address :]
            texts = self._listed(part.original, rest)
            original = texts[0] if texts else (part.original, "")
        listed = tuple(self._listed(part.start, code))
        return DetourPart(part.phase.value, part.start, part.end - part.start, listed, original)

    def _listed(self, address: int, code: bytes) -> list[tuple[int, str]]:
        found = self._session.disassembler.decode(address, code)
        return [(item.address, item.text) for item in found]


def _beside(first: Sequence[_Spanned], *more: Sequence[_Spanned]) -> list[_Spanned]:
    """Return the pieces of others that overlap none of the first."""
    return [
        one
        for each in more
        for one in each
        if all(one.end <= other.start or other.end <= one.start for other in first)
    ]


def _differences(
    whole: Sequence[GuestFrame], other: Sequence[GuestFrame]
) -> tuple[frozenset[int], int]:
    """Numbers of the other trace's frames that the whole one lacks; how many it has more."""
    keys = [
        [(frame.pc, frame.function, frame.inlined) for frame in each] for each in (whole, other)
    ]
    same: set[int] = set()
    for _, start, count in SequenceMatcher(None, keys[0], keys[1]).get_matching_blocks():
        same.update(range(start, start + count))
    return frozenset(range(len(other))) - same, len(whole) - len(same)


def _names(point: ProbePoint, machine: HitMachine) -> tuple[str, ...]:
    """The probes that a hit is of, each once: those of calls that have returned last."""
    served = [call.rp for call in machine.calls]
    # A probe that stops the guest has a stop beside it: the user has placed one thing.
    placed = [probe for probe in point.probes if not probe.stops] or point.probes
    return tuple(dict.fromkeys(str(probe) for probe in (*placed, *served)))


def _why_jump(point: ProbePoint) -> str:
    if point.why is not None:
        return point.why.detail
    why = f"every condition of a {point.technique} holds"
    return f"{why}; a stop stands in front of it" if point.state.stage is Stage.STOP else why


def _perms(perms: int) -> str:
    letters = ((READ, "r"), (WRITE, "w"), (EXECUTE, "x"))
    return "".join(letter if perms & bit else "-" for bit, letter in letters) + "p"
