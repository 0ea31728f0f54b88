"""The machinery of probes of one guest, put together."""

from collections.abc import Callable, Mapping, Sequence

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.cpu.base import Cpu
from engine.guest.memory import Memory
from engine.guest.text import TextOverlay
from engine.probes.admission import Admission
from engine.probes.arming import Arming
from engine.probes.breakpoint_actions import Breakpoints
from engine.probes.code_map import CodeMap
from engine.probes.covering import Covering
from engine.probes.current_hit import CurrentHit, Status
from engine.probes.detour_keeper import detour_keeper
from engine.probes.detourroom import DetourRoom
from engine.probes.engine_code import EngineCode
from engine.probes.engine_window import EngineWindow
from engine.probes.goroutines import GoroutineStacks
from engine.probes.hit_machine import HitMachine
from engine.probes.hits import HitDispatcher
from engine.probes.kprobe import Kprobe
from engine.probes.point import ProbePoint, ProbePoints
from engine.probes.recorded_breakpoints import RecordedBreakpoints
from engine.probes.registry import ProbeRegistry, Unmapped
from engine.probes.regs import PtRegs
from engine.probes.return_catchers import RETURNS
from engine.probes.return_probes import ReturnProbes
from engine.probes.slots import InsnSlots, XolArea
from engine.probes.stepping import GuestStep
from engine.probes.target import ProbeTarget
from engine.probes.technique import TechniqueHost
from engine.probes.techniques import AUTO, chosen


class ProbeManager:
    """All probes of one guest: registers them, and serves their hits.

    Attributes:
        points: by guest address.
        blacklist: where nothing may be probed.
        regs: the guest's registers as handlers see them.
        code_map: names and boundaries of the guest's code.
        goroutines: finds the stacks of Go programs.
        mode: strictness of probes that do not say otherwise.
        slots: of kprobes.
        area: slots of uprobes.
        returns: the catcher of returns.
        recorded: breakpoints whose hits are recorded in the guest; None where none can be.
        techniques: who may take the place of breakpoints.
        hits: the state machine of hits.
        code: the engine's own code in the guest.
        counters: reference counters of uprobes.
        register: registers and arms one probe (`ProbeRegistry.register`), `register_all` several;
            `unregister` and `unregister_all` take them out, `disable` keeps one quiet and `enable`
            lets it run again. What cannot be is a `ProbeRejectedError`.
        refresh: brings a point in line with its probes, which do something else now.
        check: the plan of a probe that could be registered (`Admission.check`).
        plan: that for the instruction at an address (`Admission.plan`).
        run: the instructions of a function, for many uprobes (`Admission.run`).
        allow_return: refuses a return probe that cannot be placed.
        traps: True if a point's breakpoint would trap with the registers as they are.
        handle: sees to a stop of the CPU (`HitDispatcher.handle`).
        withdraw: gives a step up for a signal, where it can (`HitDispatcher.withdraw`).
        busy: True if the guest stands in the machinery (`EngineCode.busy`).
        original_pc: the program's own address for a place in it (`EngineCode.original_pc`).
        name: such a place as a symbol (`EngineCode.name`).
        covering: changes of the program's bytes by a debugger inside.
        resolve_return: where a frame really returns to (`ReturnCatcher.resolve`).
    """

    def __init__(
        self,
        arch: Arch,
        cpu: Cpu,
        memory: Memory,
        overlay: TextOverlay,
        code_map: CodeMap,
        windows: Sequence[tuple[int, int]],
        *,
        mode: Mode = Mode.STRICT,
        thread: Callable[[], int] = lambda: 0,
        notify: Callable[[str], None] = lambda text: None,
        unmapped: Unmapped = lambda probes: (),
        trampoline: int = 0,
        returns: str = RETURNS[0],
        room: DetourRoom | None = None,
        technique: str = AUTO,
        stack_at: Callable[[int], tuple[int, int] | None] = lambda address: None,
    ) -> None:
        """Plant nothing yet.

        Args:
            arch: the guest's architecture.
            cpu: its processor.
            memory: its memory.
            overlay: owner of patched bytes.
            code_map: names and boundaries of its code.
            windows: (start, size) of engine windows for slots; the first page of the first is
                the XOL area.
            mode: default strictness.
            thread: id of the running thread.
            notify: told, in words, what happened to a probe without the user's doing.
            unmapped: given probes whose code is gone: those that will be registered again.
            trampoline: page of an engine window for what calls return to in kernel mode.
            returns: how returns are caught, of `return_catchers.RETURNS`.
            room: where techniques may have code of their own; None: nowhere.
            technique: which are used, of `techniques.technique_names`.
            stack_at: the bounds of the stack that an address lies on, where a mapping has
                several; None of others, which are as large as their mapping.

        Raises:
            CommandError: the architecture cannot catch returns in that way.
        """
        self.regs = PtRegs(arch, cpu, memory)
        step = GuestStep(cpu, memory, arch.roles.pc)
        find = memory.find
        self.goroutines = goroutines = GoroutineStacks(arch, cpu, memory)

        def bounds(address: int) -> tuple[int, int] | None:
            found = stack_at(address)
            if found is None and goroutines.present:
                stack = goroutines.stack_at(address)
                found = None if stack is None else (stack.low, stack.high)
            if found is None and (mapping := find(address)) is not None:
                found = mapping.start, mapping.end
            return found

        self._target = target = ProbeTarget(
            *(arch, cpu, memory, overlay, code_map, self.regs, step, mode, thread, notify),
            goroutines,
            bounds,
        )
        self.code_map, self.mode = code_map, mode
        self.points = ProbePoints()
        self._admission = admission = Admission(target)
        self.blacklist = admission.blacklist
        for start, size in windows:
            self.blacklist.add(start, start + size, "[kprobe-tui]")
        self.slots, self.area = _slots(target, windows)
        choice, current = chosen(technique), CurrentHit()
        breakpoints = Breakpoints(
            target,
            self.points,
            self.slots,
            self.area,
            current,
            lambda point, go: self.returns.action(point, go),
            at_once=choice.at_once,
        )
        self.techniques = breakpoints.techniques
        self._arming = arming = Arming(
            target, self.points, admission, self.slots, breakpoints, self.techniques
        )
        self.counters = arming.counters
        probes = ReturnProbes(target, admission, arming, breakpoints, returns, trampoline)
        self.returns = probes.catcher
        self._registry = registry = ProbeRegistry(
            admission, arming, breakpoints, probes, notify, unmapped
        )
        overlay.on_lost = registry.lost
        detours = detour_keeper(target, self.returns, room)
        if detours is not None and room is not None:
            for start, size in (room.window, *room.beside):
                self.blacklist.add(start, start + size, "[kprobe-tui]")
            self.techniques.include(detours)
            breakpoints.recorded = RecordedBreakpoints(
                target, detours, lambda: self.techniques.after
            )
        self.recorded = breakpoints.recorded
        self.covering = Covering(target, self.points, arming, self.techniques)
        host = TechniqueHost(
            target,
            self.points,
            self.returns,
            self.blacklist,
            room,
            detours,
            choice.at_once,
            registry.register,
            registry.unregister,
            arming.replant,
            arming.planted,
        )
        self._machines = {kind.stands: kind.machine for kind in choice.kinds}
        for kind in choice.kinds:
            built = kind.build(host)
            if built is not None:
                self.techniques.join(kind.stands, built)
        if choice.at_once and not self.techniques.replacing:
            text = f"{technique} probes cannot be had in this guest ({target.arch.name})"
            notify(f"all stay breakpoints: {text}")
        self.code = EngineCode(
            target, self.slots, breakpoints, self.techniques, self.returns, arming.slots_of
        )
        self.hits = HitDispatcher(
            target,
            self.points,
            breakpoints,
            self.techniques,
            self.returns,
            self.code,
            current,
            registry.unregister,
        )
        # Calls go straight to the part that answers them.
        self.register, self.register_all = registry.register, registry.register_all
        self.unregister, self.unregister_all = registry.unregister, registry.unregister_all
        self.enable, self.disable = registry.enable, registry.disable
        self.refresh, self.arm_dormant = arming.refresh, arming.arm_dormant
        self.awaken = registry.awaken
        self.check, self.plan, self.run = admission.check, admission.plan, admission.run
        self.allow_return, self.traps = admission.allow_return, self.hits.traps
        self.handle, self.withdraw = self.hits.handle, self.hits.withdraw
        self.busy, self.original_pc, self.name = (
            self.code.busy,
            self.code.original_pc,
            self.code.name,
        )
        self.resolve_return = self.returns.resolve

    def follow(
        self,
        other: "ProbeManager",
        twin: Callable[[Kprobe], Kprobe | None],
        twins: Mapping[Kprobe, Kprobe],
    ) -> None:
        """Probe in a copy of another one's memory what it probes; pending calls return here, too.

        Args:
            other: of the memory that was copied.
            twin: makes the probe that stands for one of its here, None where none is wanted.
            twins: where that keeps them.
        """
        self.counters.follow(other.counters)
        self.techniques.follow(other.techniques)
        other.points.wake_all()
        self._registry.follow(other.points, twin)
        self.counters.keep(self.points)
        self.returns.follow(other.returns, twins)

    # -- hits -----------------------------------------------------------------------------

    def machine(self, point: ProbePoint) -> HitMachine:
        """Carries out, a phase at a time, the hit of the point that the guest stands at."""
        replacement = point.replacement
        kind = "breakpoint" if replacement is None else replacement.kind
        return self._machines[kind](self.hits)

    def passes_call(self, behind: int) -> bool:
        """True if a system call is the program's own, and nothing of the machinery sees to it.

        Args:
            behind: the pc behind its instruction.
        """
        if self.hits.current.status is not Status.IDLE or self.code.inside(behind):
            return False
        return not self.points or not self.techniques.displaces

    # -- what there is --------------------------------------------------------------------

    def placed(self) -> list[ProbePoint]:
        """The points that somebody has asked for: not those of the machinery.

        Their probes' counts of hits are those of now.
        """
        self.techniques.collect()
        self.points.wake_all()
        return [
            point
            for point in self.points.values()
            if not all(probe.machinery for probe in point.probes)
        ]

    def asked(self) -> Sequence[Kprobe]:
        """The probes that somebody has asked for, in the order of their registration.

        Those that were taken out again are among them if they have hits that were not served;
        dormant ones are not.
        """
        return tuple(self._registry.asked)

    def switched(self) -> None:
        """Go on with another thread of this address space."""
        if self.returns.in_guest is not None:
            self.returns.in_guest.calls.leave_stack()

    def leave(self) -> None:
        """The processor leaves this address space."""
        if self.returns.in_guest is not None:
            self.returns.in_guest.calls.leave()

    def enter(self) -> None:
        """The processor is in this address space from here on, after it has left another."""
        if self.returns.in_guest is not None:
            self.returns.in_guest.calls.enter()
        self.techniques.enter()


def _slots(
    target: ProbeTarget, windows: Sequence[tuple[int, int]]
) -> tuple[tuple[InsnSlots, ...], XolArea]:
    """Slots of kprobes in windows, and the area of uprobes' slots in the first page of them."""
    memory, probes = target.memory, target.arch.probes
    page = memory.plan.page_size
    ranges = [(windows[0][0] + page, windows[0][1] - page), *windows[1:]]
    slots = tuple(
        InsnSlots(EngineWindow(memory, start, size), probes.kprobe_slot) for start, size in ranges
    )
    return slots, XolArea(memory, windows[0][0], probes.uprobe_slot)
