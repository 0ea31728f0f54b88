"""Probes of a guest: the machinery wired to the guest, and places turned into probes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from engine.arch.plan import Mode, Rules
from engine.errors import ProbeRejectedError
from engine.guest.memory import Memory
from engine.guest.modules import Module
from engine.guest.text import TextOverlay
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.manager import ProbeManager
from engine.probes.site import ImageCode
from engine.probes.technique import DetourRoom, Located
from engine.session.guest.loading import LoadedGuest
from engine.session.program.libraries import GuestTree, ProgramFile
from engine.session.program.places import Place, guest_address
from engine.session.program.verdicts import Verdicts

_SLOT_BYTES: Final = 1 << 20
"""Of the window below the program: for slots; the rest is for detours."""
_SHORT: Final = 64
"""Distance from a function's start that is decoded rather than looked up."""


class GuestCode:
    """The guest's code by guest address; satisfies `engine.probes.code_map.CodeMap`."""

    def __init__(self, guest: LoadedGuest, verdicts: Verdicts) -> None:
        self._guest = guest
        self._verdicts = verdicts
        self._known: dict[int, tuple[ProgramFile, ImageCode]] = {}

    def symbol(self, name: str) -> int | None:
        """Address of a function in a file that is mapped, None if there is none."""
        for place in self._verdicts.places.resolve(name):
            return guest_address(place, self._guest.modules, self._guest.memory)
        return None

    def _of(self, module: Module) -> tuple[ProgramFile, ImageCode]:
        found = self._known.get(id(module.image))
        if found is None:
            file = self._verdicts.main
            if file.image is not module.image:
                file = ProgramFile(
                    module.name, module.image, frozenset({module.name}), module.symbols
                )
            code = ImageCode(self._guest.arch, module.image, file.symbols)
            found = self._known[id(module.image)] = (file, code)
        return found

    def locate(self, address: int) -> Located | None:
        """The code around an address, as the conditions of jumps look at it."""
        module = self._guest.modules.at(address)
        if module is None:
            return None
        code = self._of(module)[1]
        function = self.function(address)
        if function is None:
            return code, None, module.bias
        start, end = function
        return code, code.function(start - module.bias, end - start), module.bias

    def function(self, address: int) -> tuple[int, int] | None:
        """(start, end) of the function around an address."""
        module = self._guest.modules.at(address)
        if module is None:
            return None
        found = self._verdicts.places.ranges.at(self._of(module)[0], address - module.bias)
        if found is None:
            return None
        start = found[0] + module.bias
        return start, start + found[1]

    def boundary(self, address: int) -> bool:
        """True if an instruction begins there; also where no function is known."""
        function = self.function(address)
        if function is None or function[0] == address:
            return True
        start, end = function
        module = self._guest.modules.at(address)
        assert module is not None, "a function lies in a file"
        if address - start > _SHORT or self._guest.arch.code_unit > 1:
            code = self._of(module)[1]
            return code.function(start - module.bias, end - start).holds(address - module.bias)
        probes, longest = self._guest.arch.probes, self._guest.arch.insn_max
        data = module.image.read_vaddr(start - module.bias, _SHORT + longest)
        at = 0
        while at < address - start:
            size = probes.length(data[at : at + longest])
            if not size:
                return False
            at += size
        return at == address - start


Ready = Callable[[Kprobe], None]
"""Called once a probe's address is known, before it is armed."""

Wanted = tuple[Place, Kprobe, Ready]
"""A probe, where it goes, and what is to be done once it is known where that is."""


@dataclass(slots=True)
class PendingProbe:
    """A probe whose file is not mapped yet.

    Attributes:
        place: where it will go.
        probe: it.
        text: for messages.
        ready: see `Wanted`.
        again: its file was mapped before.
        left: where its code was before the program moved it or took it away; None else.
        dropped: its breakpoint went with the page; the code is still there.
    """

    place: Place
    probe: Kprobe
    text: str
    ready: "Ready"
    again: bool = False
    left: int | None = None
    dropped: bool = False


class Probing:
    """The probes' machinery of a guest, and its probes by place.

    Attributes:
        manager: registration and hits.
        verdicts: places and verdicts from the files alone.
        pending: probes that wait for their file.
        notices: what happened to probes without the user's doing, in order.
    """

    def __init__(self, guest: LoadedGuest, mode: Mode = Mode.STRICT) -> None:
        """Wire the machinery to a loaded guest that has not run yet."""
        self._guest = guest
        config, memory, cpu = guest.config, guest.memory, guest.cpu
        program = guest.opened.program(GuestTree(guest.fs, guest.image.damage))
        self.verdicts = Verdicts(guest.arch, program, mode, config.technique)
        self.overlay = TextOverlay(memory, cpu)
        code = GuestCode(guest, self.verdicts)
        self.pending: list[PendingProbe] = []
        self.notices: list[str] = []
        self._placed: dict[int, PendingProbe] = {}
        self._left_behind = False  # a new process has been made
        self._moving = (0, 0)  # the range that is just going elsewhere
        self._symbols: dict[str, int | None] = {}
        self.manager = ProbeManager(
            guest.arch,
            cpu,
            memory,
            self.overlay,
            code,
            _windows(guest),
            mode=mode,
            thread=partial(getattr, guest.machine, "tid"),  # asked at each hit: no frame for it
            trampoline=guest.arch.plan.trampoline[0] + guest.arch.plan.page_size,
            notify=self.notices.append,
            unmapped=self._unmapped,
            returns=config.returns,
            room=_detour_room(guest, code.locate),
            technique=config.technique,
        )
        guest.modules.engine_name = self.manager.name
        hooks = guest.hooks
        hooks.stopped = self.manager.handle
        hooks.hold, hooks.withdraw = self.manager.busy, self.manager.withdraw
        hooks.original_pc = self.manager.original_pc
        hooks.resolve_return = self.manager.resolve_return
        hooks.unwind_info = self.manager.returns.unwind_info
        hooks.opened = self.overlay.refused
        hooks.original = self.overlay.restore
        hooks.mapped = self._mapped
        hooks.unmapped = self._gone
        hooks.discarded = self._dropped
        hooks.copied, hooks.replaced = self._copied, self._replaced
        guest.memory.before_move = self._before_move
        guest.kernel.switched.append(self.manager.switched)
        self._arming = False

    def where(self, name: str) -> int | None:
        """Address of a symbol of the program; None while its file is not mapped."""
        if name not in self._symbols:
            self._symbols[name] = self._find_symbol(name)
        return self._symbols[name]

    def _find_symbol(self, name: str) -> int | None:
        found = self.verdicts.places.symbol(name)
        if found is None:
            return None
        file, link = found
        main = self._guest.modules.main
        if main is not None and main.image is file.image:
            return link + main.bias
        for mapping in self._guest.memory.mappings:
            if mapping.name in file.paths:
                first = file.image.vaddr_of(mapping.offset)
                return None if first is None else mapping.start + link - first
        return None

    def place(self, wanted: Iterable[Wanted]) -> None:
        """Register probes at places, all or none; those of files not mapped yet wait.

        Raises:
            ProbeRejectedError: one of them cannot be placed.
        """
        guest = self._guest
        now: list[PendingProbe] = []
        later: list[PendingProbe] = []
        for place, probe, ready in wanted:
            address = guest_address(place, guest.modules, guest.memory)
            item = PendingProbe(place, probe, place.text, ready)
            if address is None:
                later.append(item)
                continue
            probe.addr = address
            ready(probe)
            now.append(item)
        if now:
            self.manager.register_all([item.probe for item in now])
            self._remember(now)
        self.pending += later

    def _remember(self, items: Iterable[PendingProbe]) -> None:
        """Probes whose code may be unmapped and mapped again, perhaps elsewhere."""
        self._placed.update({id(i.probe): i for i in items if i.place.file_offset is not None})

    def _unmapped(self, probes: list[Kprobe]) -> list[Kprobe]:
        """Code is gone: its probes wait for their file to be mapped again, as uprobes do.

        (Kprobe events of a kernel module do too: trace_kprobe_module_callback.)
        """
        back = [self._placed.pop(id(probe), None) for probe in probes]
        waiting = [item for item in back if item is not None and item.probe in probes]
        main, (start, end) = self._guest.image, self._moving
        for item in waiting:
            item.again, address = True, item.probe.addr or 0
            if item.place.image is main or start <= address < end:
                item.left = address
        self.pending += waiting
        return [item.probe for item in waiting]

    def place_each(self, wanted: Iterable[Wanted]) -> list[tuple[Place, str]]:
        """Register as many as can be: the places that cannot take a probe, and why."""
        refused: list[tuple[Place, str]] = []
        good: list[Wanted] = []
        guest, manager = self._guest, self.manager
        for place, probe, ready in wanted:
            address = guest_address(place, guest.modules, guest.memory)
            if address is not None and address not in manager.points:
                try:
                    self._check(probe, address)
                except ProbeRejectedError as error:
                    refused.append((place, error.reason))
                    continue
            good.append((place, probe, ready))
        self.place(good)
        return refused

    def _check(self, probe: Kprobe, address: int) -> None:
        self.manager.check(address, probe.rules, probe.mode or self.manager.mode)
        if isinstance(probe, Kretprobe):
            self.manager.allow_return(probe, address)

    def left_behind(self) -> list[PendingProbe]:
        """Probes whose code the program has taken away, and not put anywhere else."""
        return [item for item in self.pending if item.left is not None]

    def _copied(self, memory: Memory) -> None:
        """A new process begins with a copy of the memory, in which nothing is probed."""
        self.overlay.lift_in(memory)
        if not self._left_behind:
            self._left_behind = True
            self.notices.append("the guest has forked; its new processes run without probes")
        regs, word = self.manager.regs, self._guest.arch.bits // 8
        trampoline = self.manager.trampoline()
        stack = memory.find(regs.sp)
        if trampoline is None or stack is None:
            return
        at = regs.sp & -word
        wanted = trampoline[0].to_bytes(word, "little")
        data = memory.peek(at, stack.end - at)
        found = -1
        for real in self.manager.returns.replaced():
            found = data.find(wanted, found + 1)
            while found >= 0 and found % word:
                found = data.find(wanted, found + 1)
            if found < 0:
                break
            memory.poke(at + found, real.to_bytes(word, "little"))

    def _replaced(self) -> None:
        """The process begins another program: nothing of it is probed any more."""
        probes = [probe for point in self.manager.placed() for probe in point.probes]
        asked = [probe for probe in probes if not probe.machinery]
        if asked:
            self.manager.unregister_all(asked)
            self.notices.append(
                f"the guest began another program; {len(asked)} probes stayed with the first"
            )
        self.pending.clear()

    def _before_move(self, start: int, size: int) -> None:
        self.overlay.before_move(start, size)
        self._moving = (start, start + size)

    def _mapped(self, start: int, size: int) -> None:
        self.overlay.mapped(start, size)
        self._moving = (0, 0)
        self._moved()
        if not self.pending or self._arming:
            return
        self._arming = True  # committing slots maps memory too
        try:
            self._arm_pending(start, size)
        finally:
            self._arming = False

    def _gone(self, start: int, size: int) -> None:
        self.overlay.unmapped(start, size)
        self._moved()

    def _moved(self) -> None:
        """Mappings have changed."""
        self._symbols.clear()
        self.manager.counters.changed()

    def _dropped(self, start: int, size: int) -> None:
        """Private pages of code were dropped (MADV_DONTNEED).

        On Linux the breakpoints of uprobes go with them, until the code is mapped anew or its
        mapping is split; kprobes know no such thing.
        """
        if self.manager.mode is not Mode.KERNEL:
            return
        gone = [
            probe
            for address, point in self.manager.points.items()
            if start <= address < start + size
            for probe in point.probes
            if probe.rules is Rules.UPROBE and not probe.machinery
        ]
        if not gone:
            return
        self.manager.unregister_all(gone)
        for probe in gone:
            self.notices.append(
                f"{probe}: the guest has dropped its page at {probe.addr or 0:#x}, and with it "
                f"the breakpoint, as on Linux (--mode strict keeps it)"
            )
            item = self._placed.pop(id(probe), None)
            if item is not None:
                item.again = item.dropped = True
                self.pending.append(item)

    def _arm_pending(self, start: int, size: int) -> None:
        """Register what waits, after a range was mapped or has other permissions."""
        guest = self._guest
        waiting, ready = [], []
        for item in self.pending:
            address = guest_address(item.place, guest.modules, guest.memory)
            here = guest.memory.find(address) if address is not None and item.dropped else None
            if address is None or (here and not (here.start < start + size and start < here.end)):
                waiting.append(item)
            else:
                item.dropped = False
                item.probe.addr = address
                item.ready(item.probe)
                ready.append(item)
        self.pending = waiting
        for item in ready:
            try:
                self._check(item.probe, item.probe.addr or 0)
            except ProbeRejectedError as error:
                self.notices.append(f"{item.text}: not placed when its file was mapped: {error}")
                ready = [other for other in ready if other is not item]
        if ready:
            self.manager.register_all([item.probe for item in ready])
            self._remember(ready)
        for item in ready:
            left, item.left = item.left, None
            if left not in (None, item.probe.addr):
                self.notices.append(
                    f"{item.probe}: the guest has moved its code from {left:#x} to "
                    f"{item.probe.addr:#x}, and the probe with it"
                )


def _windows(guest: LoadedGuest) -> list[tuple[int, int]]:
    """(start, size) for slots: between the libraries and the stack, and below the program."""
    plan = guest.arch.plan
    windows = [plan.xol]
    windows += [
        (mapping.start, min(mapping.size, _SLOT_BYTES))
        for mapping in guest.memory.mappings
        if mapping.reserved and mapping.end <= plan.trampoline[0]
    ][:1]
    return windows


def _detour_room(guest: LoadedGuest, locate: Callable[[int], Located | None]) -> DetourRoom:
    """Detours stand in the window near the libraries, and below the program behind the slots."""
    plan = guest.arch.plan
    beside = tuple(
        (mapping.start + _SLOT_BYTES, mapping.size - _SLOT_BYTES)
        for mapping in guest.memory.mappings
        if mapping.reserved
        and mapping.end <= plan.trampoline[0]
        and mapping.size > 2 * _SLOT_BYTES
    )[:1]
    return DetourRoom(plan.detour, beside, locate)
