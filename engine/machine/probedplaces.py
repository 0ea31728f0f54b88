"""The places that a booted kernel has probed itself: slots, detours and handlers, from its memory.

The structures are those of include/linux/kprobes.h, arch/x86/include/asm/kprobes.h and
include/linux/rethook.h; their members are found by BTF. What is read is the guest's to write:
lists are bounded.
"""

import struct
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.errors import GuestFaultError
from engine.image.kernel.btftypes import BtfTypes
from engine.image.kernel.kernelimage import KernelImage
from engine.machine.addresses import KernelAddresses
from engine.machine.kernelprobes import KprobeTable, kprobe_table

_WORD: Final = struct.Struct("<Q")
_LIST_MOST: Final = 1 << 12
"""Links of a list that are followed."""
_NAME_MOST: Final = 64
_GONE, _DISABLED, _OPTIMIZED, _FTRACE = 1, 2, 4, 8
"""KPROBE_FLAG_* of include/linux/kprobes.h."""
_JUMP: Final = b"\xe9"
_COPY_MOST: Final = 64
"""Bytes of an instruction, or of those behind a jump, at the most."""


class ServedProbe(Struct, frozen=True):
    """A kprobe of the kernel's own, as it is served.

    Attributes:
        name: its event's, `k/read`; the name is "" for a probe of a module.
        handler: address of its pre-handler, 0 without one.
        returned: address of the handler at returns, 0 for a probe that is no kretprobe's.
    """

    name: str
    handler: int
    returned: int


class ProbedPlace(Struct, frozen=True):
    """A probed place.

    Attributes:
        address: of the instruction.
        probes: those that are on, in the order in which they are called.
        opcode: first byte of the instruction.
        slot: where the copy of the instruction is; 0 where it has none.
        size: bytes of the copy.
        boosted: the slot leads back by a jump, so nothing traps behind the copy.
        emulated: the kernel carries the instruction out by software.
        post_handler: address of what is called behind the instruction; 0 for nothing.
        optimized: a jump stands there, or will.
        ftrace: the place is ftrace's, which calls the kprobes.
        detour: address of the buffer that the jump leads to; 0 for none.
        covered: bytes of the code that the jump stands over, behind the first byte.
        moved: bytes of the instructions at the end of the detour.
    """

    address: int
    probes: tuple[ServedProbe, ...]
    opcode: int
    slot: int
    size: int
    boosted: bool
    emulated: bool
    post_handler: int
    optimized: bool
    ftrace: bool
    detour: int
    covered: bytes
    moved: int


class CaughtReturn(Struct, frozen=True):
    """A call whose return address a kretprobe has replaced.

    Attributes:
        probe: the kretprobe's.
        leads_to: the return address, as the call has left it; that of the trampoline for all but
            one of several at a call.
    """

    probe: ServedProbe
    leads_to: int


class _ProbeMembers(Struct, frozen=True):
    """Offsets of members, by structure."""

    kprobe: dict[str, int]
    copy: dict[str, int]
    optimized: dict[str, int]
    buffer: dict[str, int]
    kretprobe: dict[str, int]
    events: dict[str, int]
    hooks: dict[str, int]


class ProbedPlaces:
    """The probed places of one machine's kernel."""

    def __init__(
        self,
        image: KernelImage,
        table: KprobeTable,
        members: _ProbeMembers,
        addresses: KernelAddresses,
    ) -> None:
        """Read nothing yet; see `probed_places`."""
        self._table, self._members = table, members
        self._addresses = addresses
        self._word: Callable[[int], tuple[int]] = addresses.reader(_WORD)
        find = image.names.find
        self._kretprobe = find("pre_handler_kretprobe")
        self._dispatchers = find("kprobe_dispatcher"), find("kretprobe_dispatcher")

    def addresses(self) -> set[int]:
        """The places that are probed now, whether the probes are on or not."""
        self._addresses.forget()
        found = set()
        try:
            for head, _ in self._table.pairs(self._word):
                found.add(self._at(head + self._members.kprobe["addr"]))
        except GuestFaultError:
            pass  # early in a boot the table is not there yet
        return found

    def address_of(self, probe: int) -> int:
        """The place of a `struct kprobe`; 0 where that cannot be read."""
        self._addresses.forget()
        try:
            return self._at(probe + self._members.kprobe["addr"])
        except GuestFaultError:
            return 0

    def place(self, address: int) -> ProbedPlace | None:
        """The probed place at an address; None where there is none, or no probe of it is on."""
        self._addresses.forget()
        probes, found = [], 0
        members = self._members.kprobe
        try:
            for head, probe in self._table.pairs(self._word):
                if self._at(head + members["addr"]) != address:
                    continue
                found = head
                if not self._at(probe + members["flags"]) & (_GONE | _DISABLED):
                    probes.append(self._probe(probe))
            return self._made(found, tuple(probes)) if probes else None
        except GuestFaultError:
            return None

    def returns(self, task: int, slot: int) -> tuple[CaughtReturn, ...]:
        """The calls of a task whose return address was at a place of its stack, newest first.

        Args:
            task: address of the task.
            slot: address of the return address.
        """
        self._addresses.forget()
        members, found = self._members.hooks, []
        if not members:
            return ()
        try:
            at = self._at(task + members["first"])
            for _ in range(_LIST_MOST):
                if not at:
                    break
                node = at - members["link"]
                if self._at(node + members["frame"]) == slot:
                    probe = self._at(self._at(node + members["rethook"]) + members["data"])
                    leads_to = self._at(node + members["ret_addr"])
                    found.append(CaughtReturn(self._probe(probe), leads_to))
                elif found:
                    break
                at = self._at(at)
        except GuestFaultError:
            pass
        return tuple(found)

    def _at(self, address: int) -> int:
        return self._word(address)[0]

    def _probe(self, probe: int) -> ServedProbe:
        handler = self._at(probe + self._members.kprobe["pre_handler"])
        returned = 0
        if handler == self._kretprobe:
            returned = self._at(probe + self._members.kretprobe["handler"])
        is_event = bool({handler, returned} & set(self._dispatchers))
        return ServedProbe(self._event(probe) if is_event else "", handler, returned)

    def _event(self, probe: int) -> str:
        """Group and name of the event that a kprobe belongs to."""
        members = self._members.events
        if not members:
            return ""
        event = self._at(probe - members["kprobe"] + members["event"])
        call = event + members["call"]
        group = self._at(self._at(call + members["class"]) + members["system"])
        name = self._at(call + members["name"])
        texts = (self._addresses.read_cstring(each, _NAME_MOST) for each in (group, name))
        return "/".join(text.decode(errors="replace") for text in texts)

    def _made(self, head: int, probes: tuple[ServedProbe, ...]) -> ProbedPlace:
        members, copy = self._members.kprobe, self._members.copy
        flags = self._at(head + members["flags"])
        own = head + members["ainsn"]
        post = self._at(head + members["post_handler"])
        detour, covered, moved = 0, b"", 0
        if self._table.is_aggregate(self._at(head + members["pre_handler"])):
            buffer = head + self._members.optimized["optinsn"]
            detour = self._at(buffer + self._members.buffer["insn"])
            moved = min(self._at(buffer + self._members.buffer["size"]), _COPY_MOST)
            covered = self._addresses.read(buffer + self._members.buffer["copied_insn"], 4)
        slot = self._at(own + copy["insn"])
        size = min(self._at(own + copy["size"]) & 0xFF, _COPY_MOST)
        return ProbedPlace(
            self._at(head + members["addr"]),
            probes,
            self._at(head + members["opcode"]) & 0xFF,
            slot,
            size,
            bool(slot) and self._addresses.read(slot + size, 1) == _JUMP,
            bool(self._at(own + copy["emulate_op"])),
            post,
            bool(flags & _OPTIMIZED),
            bool(flags & _FTRACE),
            detour,
            covered,
            moved,
        )


def probed_places(image: KernelImage, addresses: KernelAddresses) -> ProbedPlaces | None:
    """The probed places of a kernel; None where the image does not tell where they are.

    Kernels before 5.13 have no `emulate_op`, and step their slots by the trap flag: they are not
    followed.

    Args:
        image: the kernel.
        addresses: the memory as the kernel sees it.
    """
    table = kprobe_table(image)
    members = _members(image)
    if table is None or members is None:
        return None
    return ProbedPlaces(image, table, members, addresses)


def _members(image: KernelImage) -> _ProbeMembers | None:
    if image.btf is None:
        return None
    types = BtfTypes(image.btf)

    def offsets(structure: str, *names: str) -> dict[str, int]:
        layout = types.layout(structure) or {}
        found = {name: layout[name][0] for name in names if name in layout}
        return found if len(found) == len(names) else {}

    kprobe = offsets("kprobe", "addr", "pre_handler", "post_handler", "opcode", "ainsn", "flags")
    copy = offsets("arch_specific_insn", "insn", "size", "emulate_op")
    optimized = offsets("optimized_kprobe", "optinsn")
    buffer = offsets("arch_optimized_insn", "copied_insn", "insn", "size")
    kretprobe = offsets("kretprobe", "handler")
    if not all((kprobe, copy, optimized, buffer, kretprobe)):
        return None
    return _ProbeMembers(
        kprobe, copy, optimized, buffer, kretprobe, _of_events(offsets), _of_hooks(offsets)
    )


def _of_events(offsets: Callable[..., dict[str, int]]) -> dict[str, int]:
    """Members on the way from a kprobe to the name of its event; none where one is missing."""
    found = [
        offsets("trace_kprobe", "rp", "tp"),
        offsets("trace_probe", "event"),
        offsets("trace_probe_event", "call"),
        offsets("trace_event_call", "class", "name"),
        offsets("trace_event_class", "system"),
    ]
    if not all(found):
        return {}
    own, probe, event, call, group = found
    return {
        "kprobe": own["rp"],
        "event": own["tp"] + probe["event"],
        "call": event["call"],
        "class": call["class"],
        "name": call["name"],
        "system": group["system"],
    }


def _of_hooks(offsets: Callable[..., dict[str, int]]) -> dict[str, int]:
    """Members on the way from a task to its caught returns; none where one is missing."""
    found = [
        offsets("task_struct", "rethooks"),
        offsets("rethook_node", "llist", "rethook", "ret_addr", "frame"),
        offsets("rethook", "data"),
    ]
    if not all(found):
        return {}
    task, node, hook = found
    return {
        "first": task["rethooks"],
        "link": node["llist"],
        "rethook": node["rethook"],
        "ret_addr": node["ret_addr"],
        "frame": node["frame"],
        "data": hook["data"],
    }
