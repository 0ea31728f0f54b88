"""Registration of probes, arming, and code that goes from under them.

The order of checks and the names of the errors are kernel/kprobes.c's.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Final

from engine.arch.base import Arch
from engine.arch.plan import InsnPlan, Mode, Rules
from engine.cpu.base import Cpu
from engine.errors import ProbeRejectedError
from engine.guest.memory import Memory
from engine.guest.text import TextOverlay
from engine.probes.admission import Admission
from engine.probes.blacklist import Blacklist
from engine.probes.boost import boost_again, crowded, unboost
from engine.probes.breakpoint import Breakpoints
from engine.probes.code_map import CodeMap
from engine.probes.engine_window import EngineWindow
from engine.probes.hits import Status
from engine.probes.jump import Jumps
from engine.probes.kprobe import Kprobe, ProbeFlags
from engine.probes.kretprobe import Kretprobe
from engine.probes.point import ProbePoint
from engine.probes.refcount import ReferenceCounters
from engine.probes.regs import PtRegs
from engine.probes.return_catcher import Returns, ReturnSite, own
from engine.probes.return_sites import ReturnSites
from engine.probes.returning import RETURNS, Returning, catcher
from engine.probes.slots import InsnSlots, XolArea
from engine.probes.stepping import GuestStep

__all__ = ["ProbeManager", "Status"]

_MANY: Final = 64


class ProbeManager(Admission, Returning):
    """All probes of one guest.

    Attributes:
        points: by guest address.
        mode: strictness of probes that do not say otherwise.
        blacklist: where nothing may be probed.
        status: of the probe whose handlers run or that is being stepped.
        current: its point.
        on_notice: told, in words, what happened to a probe without the user's doing.
        on_unmapped: given probes whose code is gone: those that will be registered again.
        counters: reference counters of uprobes.
        returns: what catches the returns of functions with return probes.
        jumps: makes jumps of breakpoints; None where there are none.
        kernel_maxactive: a return kprobe that does not say how many instances it wants gets as
            many as the kernel would give it.
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
        trampoline: int = 0,
        returns: str = RETURNS[0],
    ) -> None:
        """Plant nothing yet.

        Args:
            arch: the guest's architecture.
            cpu: its processor.
            memory: its memory.
            overlay: owner of patched bytes.
            code_map: what is known about the code around an address.
            windows: (start, size) of engine windows for slots; the first page of the first is
                the XOL area.
            mode: default strictness.
            thread: id of the running thread.
            trampoline: page of an engine window for what calls return to in kernel mode.
            returns: how returns are caught, of `RETURNS`.

        Raises:
            CommandError: the architecture cannot catch returns in that way.
        """
        self.arch, self.cpu, self.memory, self.overlay = arch, cpu, memory, overlay
        self.code_map = code_map
        self.mode = mode
        self.thread = thread
        self.points: dict[int, ProbePoint] = {}
        self.blacklist = Blacklist()
        self.status = Status.IDLE
        self.current: ProbePoint | None = None
        self.on_notice: Callable[[str], None] = lambda text: None
        self.on_unmapped: Callable[[list[Kprobe]], Collection[Kprobe]] = lambda probes: ()
        self.counters = ReferenceCounters(memory)
        self.regs = PtRegs(arch, cpu, memory)
        self.step = GuestStep(cpu, memory, arch.roles.pc)
        page = memory.plan.page_size
        area_page = windows[0][0]
        ranges = [(windows[0][0] + page, windows[0][1] - page), *windows[1:]]
        slots = tuple(
            InsnSlots(EngineWindow(memory, start, size), arch.probes.kprobe_slot)
            for start, size in ranges
        )
        for start, size in windows:
            self.blacklist.add(start, start + size, "[kprobe-tui]")
        self.slots = slots
        self.area = XolArea(memory, area_page, arch.probes.uprobe_slot)
        self.breakpoints = Breakpoints(
            arch,
            cpu,
            self.step,
            slots,
            self.area,
            thread,
            first_fit=mode is Mode.KERNEL,
        )
        self.kernel_maxactive = mode is Mode.KERNEL
        self.returns: Returns = catcher(self, returns, trampoline)
        if self.returns.trampoline is not None:
            self.blacklist.add(trampoline, trampoline + page, "[kprobe-tui]")
        self.breakpoints.entry = self.returns.action
        self.breakpoints.crowded = partial(crowded, self.points)
        self.breakpoints.waits = lambda point: self.jumps.waits(point) if self.jumps else 0
        self.jumps: Jumps | None = None
        self._return_probes = 0
        self._saved: tuple[Status, ProbePoint | None] = (Status.IDLE, None)
        self._back = len(arch.breakpoint) if arch.trap_advances_pc else 0
        self._slots_of: dict[int, ProbePoint] = {}
        self._checked: dict[tuple[int, Rules, Mode], InsnPlan] = {}
        overlay.on_lost = self._lost

    # -- registration ---------------------------------------------------------------------

    def register(self, probe: Kprobe) -> None:
        """Register and arm one probe (register_kprobe).

        Raises:
            ProbeRejectedError: with the kernel's errno.
        """
        self.register_all([probe])

    def register_all(self, probes: Sequence[Kprobe]) -> None:
        """Register all or none (register_kprobes).

        Raises:
            ProbeRejectedError: of the first that cannot be placed; EINVAL for none at all.
        """
        if not probes:
            raise ProbeRejectedError(0, "no probes given", "EINVAL")
        done: list[Kprobe] = []
        fresh: dict[int, ProbePoint] = {}
        try:
            for probe in probes:
                point = self._place(probe, fresh)
                # A return comes before what happens to stand where it returns to.
                behind = bool(point.probes) and isinstance(point.probes[0], ReturnSite)
                point.probes.insert(int(behind), probe)
                done.append(probe)
            for point in fresh.values():
                if point.enabled() and not self.breakpoints.prepare(point):
                    raise ProbeRejectedError(point.address, "no slot is left", "ENOMEM")
        except ProbeRejectedError:
            for probe in done:
                assert probe.addr is not None
                owner = fresh.get(probe.addr) or self.points[probe.addr]
                owner.probes.remove(probe)
                if probe.symbol_name is not None:
                    probe.addr = None
            for point in fresh.values():
                self.breakpoints.give_back(point)
            raise
        self._checked.clear()
        self.points.update(fresh)
        self.admit([probe for probe in done if isinstance(probe, Kretprobe)])
        self.arm([point for point in fresh.values() if point.enabled()])
        for address in {probe.addr for probe in done if probe.addr not in fresh}:
            self.refresh(self.points[address or 0])

    def _place(self, probe: Kprobe, fresh: dict[int, ProbePoint]) -> ProbePoint:
        address = self._address(probe)
        mode = probe.mode or self.mode
        point = self.points.get(address) or fresh.get(address)
        if point is not None and probe in point.probes:
            raise ProbeRejectedError(address, "this probe is registered already", "EINVAL")
        if probe.flags not in (ProbeFlags.NONE, ProbeFlags.DISABLED):
            raise ProbeRejectedError(address, "only DISABLED may be given", "EINVAL")
        self.allow(address)
        if isinstance(probe, Kretprobe):
            self.allow_return(probe, address)
        if point is None:
            plan = self._checked.pop((address, probe.rules, mode), None)
            plan = plan or self.plan(address, probe.rules, mode)
            if probe.always:
                plan = self.unconditional(plan)
            point = fresh[address] = ProbePoint(address, plan)
        elif any(
            own(other) or other.always or other.rules is not probe.rules for other in point.probes
        ):
            plan = self.plan(address, probe.rules, mode)  # its own rules must allow it too
            if not point.plan.predicate:
                point.guard = plan.predicate
        elif probe.always and address not in fresh:
            self.always(point)
        probe.addr = address
        return point

    def unregister(self, probe: Kprobe) -> None:
        """Take one probe out (unregister_kprobe)."""
        self.unregister_all([probe])

    def unregister_all(self, probes: Iterable[Kprobe]) -> None:
        """Take probes out, all of them at once.

        Raises:
            ProbeRejectedError: EINVAL for one that is not registered; the others are gone.
        """
        empty: list[ProbePoint] = []
        unknown: Kprobe | None = None
        returning: list[Kretprobe] = []
        for probe in probes:
            point = self.points.get(probe.addr or 0)
            if point is None or probe not in point.probes:
                unknown = probe
                continue
            point.probes.remove(probe)
            if isinstance(probe, Kretprobe):
                returning.append(probe)
            if point.probes:
                self.refresh(point)
            else:
                empty.append(point)
                del self.points[point.address]
        self._disarm([point for point in empty if point.armed])
        self.dismiss(returning)
        if unknown is not None:
            raise ProbeRejectedError(unknown.addr or 0, f"{unknown} is not registered", "EINVAL")

    def enable(self, probe: Kprobe) -> None:
        """Let a probe's handlers run again; EINVAL if it is gone or not registered."""
        self._switch(probe, on=True)

    def disable(self, probe: Kprobe) -> None:
        """Keep a probe, but quiet; its point is disarmed once all its probes are disabled."""
        self._switch(probe, on=False)

    def _switch(self, probe: Kprobe, *, on: bool) -> None:
        point = self.points.get(probe.addr or 0)
        if point is None or probe not in point.probes or ProbeFlags.GONE in probe.flags:
            raise ProbeRejectedError(probe.addr or 0, f"{probe} is not registered", "EINVAL")
        probe.flags = ProbeFlags.NONE if on else ProbeFlags.DISABLED
        self.refresh(point)

    # -- arming ---------------------------------------------------------------------------

    def refresh(self, point: ProbePoint) -> None:
        """The point's probes have changed."""
        if not point.enabled():
            if point.armed:
                self._disarm([point])
            return
        if point.armed and self.jumps is not None:
            self.jumps.reconsider(point)
        if point.armed and point.slot is not None and point.boosted == point.wants_post():
            # A post-handler came or went: the slot's end changes.
            self._disarm([point])
        if not point.armed:
            if point.slot is None and not self.breakpoints.prepare(point):
                raise ProbeRejectedError(point.address, "no slot is left", "ENOMEM")
            self.arm([point])
        else:
            self.breakpoints.plant(point)

    def arm(self, points: list[ProbePoint]) -> None:
        """Plant the breakpoints of points whose slots are prepared."""
        many = len(points) > _MANY
        patches, masks = {}, {}
        if self.jumps is not None:
            self.jumps.arming(points)
        unboost(self.points, points, self.breakpoints)
        for point in points:
            if point.slot is not None:
                self.memory.poke(point.slot, point.code, forget=not many)
                self._slots_of[point.slot] = point
            value = self.planted(point)
            if point.plan.bits is not None:
                value, masks[point.address] = point.plan.bits
            patches[point.address] = (value, point.plan.raw)
            self.breakpoints.plant(point)
            point.armed = True
        self.overlay.plant(patches, masks)
        for point in points:
            self.counters.armed(point)
        if self.jumps is not None:
            self.jumps.armed(points)

    def planted(self, point: ProbePoint) -> bytes:
        """The breakpoint that stands at a point."""
        kprobe = any(probe.rules is Rules.KPROBE for probe in point.probes)
        return self.arch.probes.kprobe if kprobe else self.arch.probes.uprobe

    def _disarm(self, points: list[ProbePoint]) -> None:
        if self.jumps is not None:
            for point in points:
                self.jumps.unoptimize(point)
        self.overlay.lift([point.address for point in points])
        for point in points:
            point.armed = False
            self.breakpoints.remove(point)
            self.counters.disarmed(point)
        boost_again(self.points, points, self.breakpoints)
        for point in points:
            if point.slot is not None and not self._busy(point):
                del self._slots_of[point.slot]
                self.breakpoints.give_back(point)
        for slots in self.slots:
            slots.collect(lambda slot: self._in_slot(slot))
        if self.jumps is not None:
            self.jumps.room_made([point.address for point in points])

    def _busy(self, point: ProbePoint) -> bool:
        """Whether the guest is in the middle of this point's step."""
        return point.slot is not None and self._in_slot(point.slot)

    def _in_slot(self, slot: int) -> bool:
        pc = self.cpu.read_register(self.arch.roles.pc)
        return slot <= pc < slot + self.arch.probes.kprobe_slot

    def _lost(self, address: int, why: str) -> None:
        """The overlay gave a patch up: its code is gone, or is other code now."""
        point = self.points.get(address)
        if point is None:
            return
        if self.jumps is not None:
            self.jumps.unoptimize(point, gone=True)
        point.armed = False
        self.breakpoints.remove(point)
        self.counters.disarmed(point)
        asked = [probe for probe in point.probes if not isinstance(probe, ReturnSite)]
        names = ", ".join(str(probe) for probe in asked)
        if why == "rewritten":
            try:
                modes = {(probe.rules, probe.mode or self.mode) for probe in asked}
                plans = [self.plan(address, rules, mode) for rules, mode in modes]
                self._replace(point, plans[0] if plans else self.plan_of_return(address))
                if names:
                    self.on_notice(
                        f"the guest rewrote its code at {address:#x}; {names}: armed again on "
                        f"the new instruction"
                    )
                return
            except ProbeRejectedError as error:
                why = f"rewritten by the guest: {error.reason}"
        del self.points[address]
        self.breakpoints.give_back(point)
        waiting = self.on_unmapped(asked) if why == "unmapped" else ()
        for probe in point.probes:
            if probe not in waiting:
                probe.flags |= ProbeFlags.GONE
        if isinstance(self.returns, ReturnSites):
            self.returns.forget(address)
        self.dismiss([probe for probe in asked if isinstance(probe, Kretprobe)])
        names = ", ".join(str(probe) for probe in asked if probe not in waiting)
        if names:
            self.on_notice(f"the code at {address:#x} was {why}; {names}: dropped")

    def replan(self, point: ProbePoint, plan: InsnPlan) -> None:
        """Give a point another plan of the same instruction."""
        if point.armed:
            self._disarm([point])
        self._replace(point, plan)

    def _replace(self, point: ProbePoint, plan: InsnPlan) -> None:
        if point.slot is not None:
            self._slots_of.pop(point.slot, None)
        self.breakpoints.give_back(point)
        point.plan, point.scratch, point.boosted = plan, False, False
        if not self.breakpoints.prepare(point):
            raise ProbeRejectedError(point.address, "no slot is left", "ENOMEM")
        if point.enabled():
            self.arm([point])
