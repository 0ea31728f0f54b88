"""Probes in one address space: the machinery wired to it, and places turned into probes there."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode, Rules
from engine.cpu.ram import EXECUTE
from engine.errors import ProbeRejectedError
from engine.guest.memory import Memory
from engine.guest.text import TextOverlay, no_own_page
from engine.linux.space import AddressSpace
from engine.probes.kprobe import Kprobe, ProbeFlags, RowOfAny, Uprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.manager import ProbeManager
from engine.probes.plain_insns import PlainInsn, PlainRun
from engine.session.guest.engine_room import detour_room, slot_windows
from engine.session.guest.guest_code import GuestCode, KnownFiles
from engine.session.guest.loading import LoadedGuest, watch
from engine.session.guest.space_addresses import (
    SpaceAddresses,
    addresses_in,
    mapped_again,
    users_address,
)
from engine.session.guest.wanted_probes import FurtherProbes, Wanted, twin_of
from engine.session.program.places import Enclosing
from engine.session.program.verdicts import Verdicts

if TYPE_CHECKING:
    from engine.session.guest.dormant_wanted import DormantArming, DormantWanted

_AT_ONCE: Final = 4096
"""Probes that are registered together when their file is mapped."""
_MANY: Final = 64
"""Probes from which on the plain ones among them are armed by the bytes they stand on."""
_NONE: Final[Mapping[int, PlainInsn]] = {}


_COPIED: Final = ".syscall_stub"
"""The section of user-mode Linux that its processes run, too (arch/um/kernel/skas/clone.c)."""


class ProbingRules(Struct, frozen=True):
    """Settings and knowledge that the probes of all address spaces of a guest share.

    Attributes:
        verdicts: places and verdicts from the files alone.
        mode: strictness of probes that do not say otherwise.
        files: what is known of files.
        notify: told, in words, what happened to a probe without the user's doing.
        mapped: told (address space, start, size) of code that has come.
    """

    verdicts: Verdicts
    mode: Mode
    files: KnownFiles
    notify: Callable[[str], None]
    mapped: Callable[[AddressSpace, int, int], None]


class ProbedSpace:
    """The machinery of probes in one address space, and the probes there by place.

    Attributes:
        space: the address space.
        addresses: where places are in it.
        overlay: owner of patched bytes.
        manager: registration and hits.
        twins: by identity of the user's probe: the one that stands for it here, and the user's.
    """

    def __init__(self, guest: LoadedGuest, space: AddressSpace, rules: ProbingRules) -> None:
        """Wire the machinery to an address space in which nothing is probed."""
        config, cpu, machine, memory = guest.config, guest.cpu, guest.machine, space.memory
        self.space = space
        self._arch, self._rules = guest.arch, rules
        self.addresses = SpaceAddresses(space, rules.verdicts.places, guest.user_files)
        runs_in_kernel = space.modules.contents is not None
        self.overlay = TextOverlay(
            memory, cpu, self.addresses.own_page if runs_in_kernel else no_own_page
        )
        self._code = code = GuestCode(
            guest.arch, space, rules.verdicts, rules.files, self.overlay.original
        )
        self._pending: list[Wanted | DormantWanted] = []
        self.twins: dict[int, tuple[Kprobe, Kprobe]] = {}
        self._placed: dict[Kprobe, Wanted] = {}
        self._further = FurtherProbes()
        self._prepare = _Late(self)  # one object for all probes
        self._moving = (0, 0)  # the range that is just going elsewhere
        self._arming = False
        plan = guest.arch.plan
        stacks = guest.kernel_stacks if space is guest.space else None
        self.manager = ProbeManager(
            guest.arch,
            cpu,
            memory,
            self.overlay,
            code,
            slot_windows(guest, memory),
            mode=rules.mode,
            thread=partial(getattr, machine, "task"),  # asked at each hit: no frame for it
            trampoline=plan.trampoline[0] + plan.page_size,
            notify=rules.notify,
            unmapped=self._unmapped,
            # A kernel copies the stack of a program that forks, and its return address with it.
            returns="watched" if runs_in_kernel else config.returns,
            room=detour_room(guest, memory, code.locate),
            technique=config.technique,
            **({} if stacks is None else {"stack_at": stacks.at}),
        )
        main = space.modules.main
        if stacks is not None and main is not None:
            copied = main.image.section(_COPIED)
            if copied is not None:
                start = copied.addr + main.bias
                self.manager.blacklist.add(
                    start, start + copied.size, "the kernel copies this code into its processes"
                )
        space.modules.engine_name = self.manager.name
        hooks = space.hooks
        hooks.stopped, hooks.passes_call = self.manager.handle, self.manager.passes_call
        hooks.hold, hooks.withdraw = self.manager.busy, self.manager.withdraw
        hooks.original_pc = self.manager.original_pc
        hooks.resolve_return = self.manager.resolve_return
        hooks.unwind_info = self.manager.returns.unwind_info
        hooks.opened = self.overlay.refused
        hooks.original = self.overlay.restore
        covering = self.manager.covering
        hooks.rewrite, hooks.covers = covering.rewrite, covering.covers
        hooks.passed = covering.passed
        hooks.mapped = self._mapped
        hooks.unmapped = self._gone
        hooks.discarded = self._dropped
        memory.before_move = self._before_move
        watch(space)

    @property
    def pending(self) -> list[Wanted]:
        """The probes that wait for their file; dormant ones wake."""
        found: list[Wanted] = []
        for item in self._pending:
            found += (item,) if isinstance(item, Wanted) else item.all()
        self._pending[:] = found
        return found

    def wait(self, rows: "DormantWanted") -> None:
        """Have probes wait for their file (see `SpaceAddresses.waits`)."""
        self._pending.append(rows)

    # -- probes by place ------------------------------------------------------------------

    def place(self, wanted: Iterable[Wanted]) -> None:
        """Register probes at places, all or none; those of files not mapped yet wait.

        Raises:
            ProbeRejectedError: one of them cannot be placed.
        """
        now: list[Wanted] = []
        later: list[Wanted] = []
        for one in wanted:
            address = self.addresses.of(one.place)
            if address is None:
                later.append(one)
                continue
            one.probe.addr = address
            self._make_ready(one)
            now.append(one)
        self._register(now)
        self._pending += later
        if now:
            self._place_further(now, 0, 1 << 64)

    def _place_further(self, items: Iterable[Wanted] | None, start: int, size: int) -> None:
        """Place probes in further mappings of their files, in a range.

        Args:
            items: probes that are placed already; all that are if None.
            start: of the range.
            size: of it.
        """
        if self.addresses.has_users:
            return
        mappings = mapped_again(self.space.memory, start, size)
        if not mappings:
            return
        self.manager.points.wake_all()
        found: list[Wanted] = []
        for item in list(self._placed.values() if items is None else items):
            if item.probe in self._further or item.place.file_offset is None:
                continue
            if ProbeFlags.GONE in item.probe.flags or item.probe not in self._placed:
                continue
            known = {item.probe.addr, *self._further.addresses(item.probe)}
            for address in addresses_in(item.place, mappings):
                if address in known:
                    continue
                made = twin_of(item.probe)
                made.addr = address
                wanted = item.of(made)
                self._further.add(made, item.probe)
                self._make_ready(wanted)
                found.append(wanted)
        arming, self._arming = self._arming, True  # committing slots maps memory too
        try:
            accepted = self._accepted(found)
            self._register(accepted)
        finally:
            self._arming = arming
        kept = {id(item.probe) for item in accepted}
        for item in found:
            if id(item.probe) not in kept:
                self._further.drop(item.probe)

    def _make_ready(self, one: Wanted) -> None:
        """Prepare a probe whose address is known, or have it prepared when it is hit."""
        if one.late:
            one.probe.prepare = self._prepare
        else:
            one.ready(one.probe, self, one.place)

    def _ready_at(self, one: Wanted, address: int) -> None:
        """A dormant probe wakes at an address where it is planted."""
        one.probe.addr = address
        self._make_ready(one)
        self._placed[one.probe] = one

    def wanted(self, probe: Kprobe) -> Wanted:
        """The wish that a probe came from."""
        return self._placed[probe]

    def _register(self, items: Sequence[Wanted], plain: Mapping[int, PlainInsn] = _NONE) -> None:
        """Register probes whose addresses are known, all or none.

        Args:
            items: the probes.
            plain: see `ProbeRegistry.register_all`.

        Raises:
            ProbeRejectedError: one of them cannot be registered.
        """
        if not items:
            return
        self._placed.update({item.probe: item for item in items})
        try:
            self.manager.register_all([item.probe for item in items], plain)
        except ProbeRejectedError:
            for item in items:
                del self._placed[item.probe]
            raise

    def check(self, probe: Kprobe, address: int) -> None:
        """Refuse a probe that could not be registered at an address.

        Raises:
            ProbeRejectedError: it could not.
        """
        self.manager.check(address, probe.rules, probe.mode or self.manager.mode)
        if isinstance(probe, Kretprobe):
            self.manager.allow_return(probe, address)

    def settle(self, one: Wanted, address: int) -> None:
        """Refuse a probe that could not be registered; one of a tracer follows the rules it can.

        Raises:
            ProbeRejectedError: it could not.
        """
        probe = one.probe
        try:
            self.check(probe, address)
        except ProbeRejectedError:
            if not one.traces or probe.rules is Rules.UPROBE:
                raise
            probe.rules = Rules.UPROBE
            try:
                self.check(probe, address)
            except ProbeRejectedError:
                probe.rules = Rules.KPROBE
            else:
                return
            raise

    def remove(self, probes: Iterable[Kprobe]) -> None:
        """Take probes out, those that wait and those that are gone among them."""
        asked = list(probes)
        mine = {id(probe): probe for probe in (*asked, *self._further.of(asked))}
        pending = self.pending
        waiting = {id(item.probe) for item in pending}
        self._pending[:] = [item for item in pending if id(item.probe) not in mine]
        points = self.manager.points
        there = [
            probe
            for key, probe in mine.items()
            if key not in waiting
            and (point := points.get(probe.addr or 0)) is not None
            and probe in point.probes
        ]
        for probe in mine.values():
            self._placed.pop(probe, None)
            self._further.drop(probe)
        self.manager.unregister_all(there)

    def switch(self, probe: Kprobe, *, on: bool) -> None:
        """Let a probe's handlers run, or keep it quiet; one whose code is gone stays so."""
        for made in self._further.of((probe,)):
            self.switch(made, on=on)
        if any(item.probe is probe for item in self.pending):
            probe.flags = ProbeFlags.NONE if on else ProbeFlags.DISABLED
        elif ProbeFlags.GONE not in probe.flags:
            (self.manager.enable if on else self.manager.disable)(probe)

    def renew(self, probe: Kprobe) -> None:
        """Prepare a probe anew; nothing while its file is not mapped."""
        for made in self._further.of((probe,)):
            self.renew(made)
        item = self._placed.get(probe)
        if item is None or probe.addr is None:
            return
        self._make_ready(item)
        point = self.manager.points.get(probe.addr)
        if point is not None:
            self.manager.refresh(point)

    # -- other address spaces -------------------------------------------------------------

    def follow(self, other: "ProbedSpace") -> None:
        """Probe in a copy of an address space what is probed there (uprobe_dup_mmap).

        The memory of the copy has the breakpoints already, and what they are planted on.
        """
        other.overlay.lift_in(self.space.memory)
        items = other.items()
        pairs: dict[Kprobe, Kprobe] = {}

        def twin(probe: Kprobe) -> Kprobe | None:
            if probe.machinery or probe.always or ProbeFlags.GONE in probe.flags:
                return None
            pairs[probe] = made = twin_of(probe)
            item = items.get(probe)
            if item is not None:
                self._placed[made] = wanted = item.of(made, again=item.fate.again)
                if not wanted.anywhere or made.prepare is not None:
                    self._make_ready(wanted)
            return made

        for waiting in other.pending:
            made = twin_of(waiting.probe)
            pairs[waiting.probe] = made
            self._pending.append(replace(waiting, probe=made))
        self.manager.follow(other.manager, twin, pairs)
        self._further.follow(other._further, pairs)
        for probe, made in pairs.items():
            if made not in self._further:
                origin = probe.origin or probe
                self.twins[id(origin)] = made, origin

    def begin(self, other: "ProbedSpace", *, take: bool) -> None:
        """Probe in another program's address space the files that are probed in the one before.

        What is known by its address alone belongs to that program, and stays behind.

        Args:
            other: the address space before; empty from now on if `take`.
            take: the very same probes go on here, as nobody is left there.
        """
        placed = other.items(alone=True)
        items = (*placed.values(), *other.pending)
        mine = {id(item.probe) for item in items}
        for probe in other.manager.asked() if take else ():
            if id(probe) not in mine and not probe.stops and ProbeFlags.GONE not in probe.flags:
                self._rules.notify(f"{probe}: stayed with a program that began another one")
        for item in items:
            probe = item.probe
            if item.place.file_offset is None or ProbeFlags.GONE in probe.flags:
                continue
            origin = probe.origin or probe
            if not take:
                probe = twin_of(probe)
            if take:
                probe.addr = None
            again = take and (item.fate.again or item.probe in placed)
            self._pending.append(item.of(probe, again=again))
            if origin is not probe:
                self.twins[id(origin)] = probe, origin
        self.arm_pending()

    def items(self, *, alone: bool = False) -> dict[Kprobe, Wanted]:
        """The placed probes that are registered; `alone`: without those of further mappings."""
        points = self.manager.points
        points.wake_all()
        return {
            probe: item
            for probe, item in self._placed.items()
            if not (alone and probe in self._further)
            and (point := points.get(item.probe.addr or 0)) is not None
            and item.probe in point.probes
        }

    def fold(self) -> set[int]:
        """Count the hits of probes that stand for the user's as theirs.

        Returns:
            Identities of the user's whose stand-in has been placed here.
        """
        self.manager.techniques.collect()
        if not self.twins and not self._further.stand_for:
            return set()
        waiting = (item for item in self._pending if isinstance(item, Wanted))
        again = {id(item.probe) for item in waiting if item.fate.again}
        stood = {
            id(origin)
            for made, origin in self.twins.values()
            if made in self._placed or id(made) in again
        }
        further = [(made, made.origin) for made in self._further if made.origin is not None]
        for made, origin in (*self.twins.values(), *further):
            origin.hits += made.hits
            origin.nmissed += made.nmissed
            made.hits = made.nmissed = 0
            if isinstance(made, Kretprobe) and isinstance(origin, Kretprobe):
                origin.unwatched += made.unwatched
                origin.left += made.left
                made.unwatched = made.left = 0
        return stood

    def leave(self, memory: Memory) -> None:
        """Take everything out of a copy of the memory, in which nobody probes."""
        self.overlay.lift_in(memory)
        self.manager.counters.lower_in(memory)
        regs, word = self.manager.regs, self._arch.bits // 8
        trampoline = self.manager.returns.trampoline
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
            memory.patch(at + found, real.to_bytes(word, "little"))

    # -- code that comes and goes ---------------------------------------------------------

    def _unmapped(self, probes: list[Kprobe]) -> Collection[Kprobe]:
        """Code is gone: its probes wait for their file to be mapped again, as uprobes do.

        (Kprobe events of a kernel module do too: trace_kprobe_module_callback.)
        """
        further = [probe for probe in probes if probe in self._further]
        if further:
            self.fold()
        back = [self._placed.pop(probe, None) for probe in probes]
        waiting = [
            item
            for item in back
            if item is not None
            and item.place.file_offset is not None
            and not self._further.drop(item.probe)
        ]
        main, (start, end) = self.space.modules.main, self._moving
        for item in waiting:
            address = item.probe.addr or 0
            own = main is not None and item.place.image is main.image
            moved = own or start <= address < end
            item.fate = replace(item.fate, again=True, **({"left": address} if moved else {}))
        self._pending += waiting
        return [*(item.probe for item in waiting), *further]

    def _before_move(self, start: int, size: int) -> None:
        self.overlay.before_move(start, size)
        self._moving = (start, start + size)

    def _mapped(self, start: int, size: int) -> None:
        self.overlay.mapped(start, size)
        stays = self._stays(start, size)
        self._moving = (0, 0)
        self._moved()
        self._rules.mapped(self.space, start, size)
        if self._arming or stays:
            return
        if not self._pending:
            if self._placed or self.manager.points.dormant:
                self._place_further(None, start, size)
            return
        self._arming = True  # committing slots maps memory too
        try:
            self._arm_pending(start, size)
            self._place_further(None, start, size)
        finally:
            self._arming = False

    def _stays(self, start: int, size: int) -> bool:
        """True of what is left where code went away (MREMAP_DONTUNMAP): Linux probes nothing."""
        if self._moving != (start, start + size):
            return False
        self.manager.points.wake_all()
        return not any(start <= address < start + size for address in self.manager.points)

    def _gone(self, start: int, size: int) -> None:
        self.overlay.unmapped(start, size)
        self._moved()

    def _moved(self) -> None:
        """Mappings have changed."""
        self.addresses.moved()
        self.manager.counters.changed()

    def _dropped(self, start: int, size: int) -> None:
        """Private pages of code were dropped (MADV_DONTNEED).

        On Linux the breakpoints of uprobes go with them, until the code is mapped anew or its
        mapping is split; kprobes know no such thing.
        """
        if self.manager.mode is not Mode.KERNEL:
            return
        self.manager.points.wake_all()
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
            self._rules.notify(
                f"{probe}: the guest has dropped its page at {probe.addr or 0:#x}, and with it "
                f"the breakpoint, as on Linux (--mode strict keeps it)"
            )
            item = self._placed.pop(probe, None)
            if item is not None:
                item.fate = replace(item.fate, again=True, dropped=True)
                self._pending.append(item)

    def arm_pending(self) -> None:
        """Register what waits and can be placed, wherever it is."""
        self._arming = True
        try:
            self._arm_pending(0, 1 << 64)
        finally:
            self._arming = False

    def _arm_pending(self, start: int, size: int) -> None:
        """Register what waits, after a range was mapped or has other permissions."""
        memory = self.space.memory
        mapped = memory.overlapping(start, start + size)
        names = {mapping.name for mapping in mapped}
        inodes = {mapping.inode for mapping in mapped}
        main = self.space.modules.main
        waiting: list[Wanted | DormantWanted] = []
        ready: list[Wanted] = []
        users: dict[tuple[str, int], int] | None = None
        around: Enclosing | None = None
        carried = comes = False
        given, self._pending = self._pending, []
        for one in given:
            items: Sequence[Wanted] | None
            if not isinstance(one, Wanted):
                self._arm_each(ready)  # of two at one place the order of definition counts
                ready.clear()
                items = self._plant_dormant(one, names, inodes)
            else:
                items = (one,)
            if items is None:
                waiting.append(one)
            for item in items or ():
                place = item.place
                if place.around is not around:  # neighbours are in one function
                    around = place.around
                    own = main is not None and main.image is around.image
                    carried = self.addresses.is_users(place)
                    comes = own or around.inode in inodes or bool(around.paths & names)
                address: int | None = None
                if carried:
                    users = self.addresses.users_pages(start, size) if users is None else users
                    address = users_address(place, users)
                elif comes:
                    address = self._free_address(item)
                here = memory.find(address) if address is not None and item.fate.dropped else None
                if address is None or (
                    here and not (here.start < start + size and start < here.end)
                ):
                    waiting.append(item)
                    continue
                if item.fate.dropped:
                    item.fate = replace(item.fate, dropped=False)
                item.probe.addr = address
                self._make_ready(item)
                ready.append(item)
        self._pending[:0] = waiting
        self._arm_each(ready)

    def _arm_each(self, ready: Sequence[Wanted]) -> None:
        """Register probes whose addresses are known."""
        for at in range(0, len(ready), _AT_ONCE):  # what is only needed meanwhile stays small
            self._arm_ready(ready[at : at + _AT_ONCE])

    @cached_property
    def _dormant(self) -> "DormantArming":
        from engine.session.guest.dormant_wanted import DormantArming  # few guests have that many

        memory = self.space.memory
        return DormantArming(memory, self.manager, self._code, self._run, self._ready_at)

    def _plant_dormant(
        self, rows: "DormantWanted", names: Collection[str], inodes: Collection[tuple[int, int]]
    ) -> Sequence[Wanted] | None:
        """Plant dormant probes if their file has come.

        Args:
            rows: the probes.
            names: of mappings that have come or changed.
            inodes: of their files.

        Returns:
            Those that are to be placed like any others; None while all of them wait.
        """
        main, around = self.space.modules.main, rows.like.place.around
        if self.addresses.has_users or (main is not None and main.image is around.image):
            return rows.all()
        if around.inode not in inodes and not around.paths & set(names):
            return None
        return rows.all() if self._further else self._dormant.arm(rows)

    def _free_address(self, item: Wanted) -> int | None:
        """An address for a probe that waits, at which none stands for it already."""
        address = self.addresses.of(item.place)
        if not self._further:
            return address
        taken = self._further.addresses(item.probe)
        if address not in taken:
            return address
        code = tuple(m for m in self.space.memory.mappings if m.perms & EXECUTE)
        return next((a for a in addresses_in(item.place, code) if a not in taken), None)

    def _arm_ready(self, items: Sequence[Wanted]) -> None:
        """Register those of some probes that can be placed, and tell what has moved."""
        plain: dict[int, PlainInsn] = {}
        with self._code.settled():
            ready = self._accepted(items, plain if len(items) > _MANY else None)
        self._register(ready, plain)
        for item in ready:
            left = item.fate.left
            if left is None:
                continue
            item.fate = replace(item.fate, left=None)
            if left != item.probe.addr:
                self._rules.notify(
                    f"{item.probe}: the guest has moved its code from {left:#x} to "
                    f"{item.probe.addr:#x}, and the probe with it"
                )

    def _accepted(
        self, items: Sequence[Wanted], plain: dict[int, PlainInsn] | None = None
    ) -> list[Wanted]:
        """Return the probes that can be placed; say of the others why not.

        Args:
            items: the probes.
            plain: gets the instructions of plain uprobes, by address, where it is given.
        """
        found: list[Wanted] = []
        run: PlainRun | None = None
        default, points = self.manager.mode, self.manager.points
        for item in items:
            probe, at = item.probe, item.probe.addr or 0
            usual = plain is not None and type(probe) is Uprobe and probe.plain and probe.enabled
            if plain is not None and usual and (probe.mode or default) is Mode.STRICT:
                if run is None or not run.low <= at < run.high:
                    run = self._run(at)
                insn = run.insn(at) if at not in points else None
                if insn is not None:
                    plain[at] = insn
                    found.append(item)
                    continue
            try:
                self.settle(item, item.probe.addr or 0)
            except ProbeRejectedError as error:
                self._rules.notify(f"{item.text}: not placed when its file was mapped: {error}")
            else:
                found.append(item)
        return found

    def _run(self, address: int) -> PlainRun:
        """The plain instructions of the function around an address."""
        function, low, high = self._code.unchanged(address) or (None, address, address + 1)
        return self.manager.run(function, low, high, Mode.STRICT)


class _Late:
    """Prepares probes of an address space when they are hit; a `Preparation`."""

    def __init__(self, space: ProbedSpace) -> None:
        self._space = space

    def __call__(self, probe: Kprobe) -> None:
        one = self._space.wanted(probe)
        one.ready(probe, self._space, one.place)

    def once(self, probe: Kprobe) -> RowOfAny | None:
        once = getattr(self._space.wanted(probe).ready, "once", None)
        found: RowOfAny | None = once(probe, self._space) if once is not None else None
        return found
