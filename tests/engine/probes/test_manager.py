"""Registration, aggregation, slots, the overlay, and what goes wrong in the middle of a hit."""

from collections.abc import Callable

import pytest
from probekit import CODE, DATA, EXECUTE, READ, WRITE, ProbeGuest

from engine.arch.plan import Mode
from engine.cpu.base import StopKind
from engine.errors import ProbeRejectedError
from engine.probes.current_hit import Status
from engine.probes.kprobe import Kprobe, ProbeFlags, Uprobe
from engine.probes.regs import PtRegs
from engine.probes.slots import SlotState

PAGE = 4096
MOVES = b"\x48\x89\xd8" * 8 + b"\xcc"  # mov rax, rbx, boostable
LOOPS = {
    # mov ecx, 5; l: add rax, rcx; call f; dec rcx; jnz l; rep stosb; int3; f: ret
    "x86_64": bytes.fromhex("b905000000 4801c8 e80b000000 48ffc9 75f3 b103 f3aa 90 cc c3"),
    # mov x1, 5; l: add x0, x0, x1; bl f; subs x1, x1, 1; b.ne l; brk 0; f: ret
    "aarch64": bytes.fromhex(
        "a10080d2 0000018b 04000094 210400f1 a1ffff54 000020d4 c0035fd6".replace(" ", "")
    ),
}


def refused(guest: ProbeGuest, probe: Kprobe) -> str:
    with pytest.raises(ProbeRejectedError) as caught:
        guest.manager.register(probe)
    return caught.value.errno


def counter(addr: int) -> Kprobe:
    return Kprobe(addr=addr, record=lambda thread: None)


def test_errors_of_registration() -> None:
    guest = ProbeGuest("x86_64", MOVES)
    guest.names.inside = {CODE + 1}
    assert refused(guest, Kprobe()) == "EINVAL"
    assert refused(guest, Kprobe(addr=CODE, symbol_name="f")) == "EINVAL"
    assert refused(guest, Kprobe(symbol_name="nowhere")) == "ENOENT"
    assert refused(guest, Kprobe(addr=CODE + 1)) == "EILSEQ"
    assert refused(guest, Kprobe(addr=DATA)) == "EINVAL"
    assert refused(guest, Kprobe(addr=1 << 40)) == "EINVAL"
    assert refused(guest, Kprobe(addr=guest.arch.plan.xol[0])) == "EINVAL"
    assert refused(guest, Kprobe(addr=0)) == "EINVAL"
    with pytest.raises(ProbeRejectedError, match="EINVAL"):
        guest.manager.register_all([])
    probe = counter(CODE)
    guest.manager.register(probe)
    assert refused(guest, probe) == "EINVAL"
    guest.manager.unregister(probe)
    with pytest.raises(ProbeRejectedError, match="EINVAL"):
        guest.manager.unregister(probe)
    assert guest.memory.read(CODE, len(MOVES)) == MOVES


def test_only_disabled_counts_of_the_flags_given() -> None:
    """register_kprobe drops the others in silence."""
    guest = ProbeGuest("x86_64", MOVES)
    for given in ProbeFlags.GONE, ProbeFlags.GONE | ProbeFlags.DISABLED, ProbeFlags.DISABLED:
        probe = Kprobe(addr=CODE, flags=given)
        guest.manager.register(probe)
        assert probe.flags == given & ProbeFlags.DISABLED
        guest.manager.unregister(probe)


def test_a_batch_is_all_or_nothing() -> None:
    guest = ProbeGuest("x86_64", MOVES)
    with pytest.raises(ProbeRejectedError):
        guest.manager.register_all([counter(CODE), counter(CODE + 3), counter(DATA)])
    assert not guest.manager.points
    assert guest.memory.read(CODE, len(MOVES)) == MOVES
    guest.manager.register_all([counter(CODE), counter(CODE + 3)])
    assert len(guest.manager.points) == 2


def test_slots_run_out() -> None:
    guest = ProbeGuest("x86_64", b"\x48\x89\xd8" * 300, window=2 * PAGE)
    guest.manager.register_all([counter(CODE + 3 * index) for index in range(256)])
    assert refused(guest, counter(CODE + 3 * 256)) == "ENOMEM"
    assert len(guest.manager.points) == 256
    assert CODE + 3 * 256 not in guest.overlay


def test_newest_first_and_the_first_to_move_pc_ends_it() -> None:
    guest = ProbeGuest("x86_64", MOVES)
    order: list[str] = []

    def handler(name: str, result: int) -> Callable[[Kprobe, PtRegs], int]:
        def pre(probe: Kprobe, regs: PtRegs) -> int:
            order.append(name)
            if result:
                regs.ip = CODE + 24
            return result

        return pre

    probes = [Kprobe(addr=CODE, pre_handler=handler(name, name == "b")) for name in "abc"]
    for probe in probes:
        guest.manager.register(probe)
    assert guest.run_to_trap() == CODE + 24
    assert order == ["c", "b"]
    assert guest.manager.hits.current.status is Status.IDLE
    guest.manager.disable(probes[1])
    guest.pc = CODE
    guest.run_to_trap()
    assert order == ["c", "b", "c", "a"]


def test_disabled_probes_are_disarmed() -> None:
    guest = ProbeGuest("x86_64", MOVES)
    probe = counter(CODE)
    probe.flags = ProbeFlags.DISABLED
    guest.manager.register(probe)
    assert guest.memory.read(CODE, 1) == b"\x48"
    guest.manager.enable(probe)
    assert guest.memory.read(CODE, 1) == b"\xcc"
    guest.run_to_trap()
    guest.manager.disable(probe)
    guest.pc = CODE
    guest.run_to_trap()
    assert probe.hits == 1


def test_a_handler_that_runs_the_guest_misses_other_probes() -> None:
    guest = ProbeGuest("x86_64", MOVES)
    served: list[int] = []
    inner = Kprobe(addr=CODE + 3, pre_handler=lambda probe, regs: served.append(regs.ip))

    def pre(probe: Kprobe, regs: PtRegs) -> None:
        regs.ip = CODE + 3
        assert guest.run_to_trap() == CODE + 24
        assert (inner.hits, inner.nmissed, served) == (1, 1, [])
        regs.ip = CODE

    outer = Kprobe(addr=CODE, pre_handler=pre)
    guest.manager.register_all([inner, outer])
    assert guest.run_to_trap() == CODE + 24
    assert (inner.hits, inner.nmissed, served) == (2, 1, [CODE + 3])
    assert (outer.hits, outer.nmissed) == (1, 0)
    assert guest.manager.hits.current.status is Status.IDLE


def test_boosted_until_a_post_handler_comes_and_dirty_afterwards() -> None:
    guest = ProbeGuest("x86_64", MOVES, near=16 * PAGE)
    manager = guest.manager
    quiet = counter(CODE)
    manager.register(quiet)
    point = manager.points[CODE]
    assert point.boosted
    slot = point.slot
    seen: list[int] = []
    loud = Kprobe(addr=CODE, post_handler=lambda probe, regs, flags: seen.append(regs.ip))
    manager.register(loud)
    assert not point.boosted
    guest.run_to_trap()
    assert seen == [CODE + 3]
    manager.unregister(loud)
    assert manager.points[CODE].boosted
    manager.unregister(quiet)
    assert slot is not None
    assert all(slots.state(slot) is SlotState.CLEAN for slots in manager.slots)


def test_a_probe_may_take_itself_out() -> None:
    guest = ProbeGuest("x86_64", MOVES)
    guest["rbx"] = 4
    probe = Kprobe(addr=CODE, pre_handler=lambda probe, regs: guest.manager.unregister(probe))
    guest.manager.register(probe)
    assert guest.run_to_trap() == CODE + 24
    assert (probe.hits, guest["rax"]) == (1, 4)
    uprobe = Uprobe("/bin/true", 0, handler=lambda probe, regs: Uprobe.REMOVE)
    uprobe.addr = CODE
    guest.manager.register(uprobe)
    guest.pc = CODE
    guest.run_to_trap()
    assert CODE not in guest.manager.points
    assert guest.memory.read(CODE, 1) == b"\x48"


def test_the_area_is_first_fit_and_finite() -> None:
    guest = ProbeGuest("x86_64", MOVES, mode=Mode.KERNEL)
    area = guest.manager.area
    taken = [area.take(bytes([index]), first_fit=True) for index in range(area.count - 1)]
    assert taken[0] == area.page + area.slot_size
    assert area.take(b"x", first_fit=True) is None
    area.release(taken[3] or 0)
    assert area.take(b"x", first_fit=True) == taken[3]


def test_the_guest_reads_breakpoints_in_its_text() -> None:
    guest = ProbeGuest("x86_64", b"\x8a\x03" + MOVES)  # mov al, [rbx]
    guest.manager.register(counter(CODE + 2))
    guest["rbx"] = CODE + 2
    guest.cpu.step()
    assert guest["rax"] == 0xCC
    assert guest.overlay.original(CODE + 2, 3) == MOVES[:3]


@pytest.mark.parametrize(("new", "kept"), [(b"\x48\x89\xd9", True), (b"\x0f\x0b\x90", False)])
def test_rewritten_code_is_probed_again_or_given_up(new: bytes, kept: bool) -> None:
    guest = ProbeGuest("x86_64", MOVES, perms=READ | WRITE | EXECUTE)
    probe = counter(CODE)
    guest.manager.register(probe)
    guest.run_to_trap()
    guest.memory.write(CODE, new)
    assert len(guest.notices) == 1
    assert (CODE in guest.manager.points) == kept
    assert (ProbeFlags.GONE in probe.flags) != kept
    if kept:
        guest.pc, guest["rbx"] = CODE, 3
        guest.run_to_trap()
        assert (probe.hits, guest["rcx"]) == (2, 3)


def test_unmapped_code_takes_its_probes_along() -> None:
    guest = ProbeGuest("x86_64", MOVES)
    probe = counter(CODE)
    guest.manager.register(probe)
    guest.memory.unmap(CODE, PAGE)
    guest.overlay.unmapped(CODE, PAGE)
    assert ProbeFlags.GONE in probe.flags
    assert CODE not in guest.manager.points
    with pytest.raises(ProbeRejectedError, match="EINVAL"):
        guest.manager.enable(probe)


@pytest.mark.parametrize("near", [0, 16 * PAGE])
def test_a_fault_in_a_slot_is_the_originals(near: int) -> None:
    guest = ProbeGuest("x86_64", b"\x48\x8b\x03\xcc", near=near)  # mov rax, [rbx]
    guest.manager.register(counter(CODE))
    stop = guest.run()
    assert (stop.kind, stop.address, guest.pc) == (StopKind.FAULT, 0, CODE)
    assert guest.manager.hits.current.status is Status.IDLE
    assert not guest.manager.busy()
    guest["rbx"] = DATA
    assert guest.run_to_trap() == CODE + 3


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("near", [0, 16 * PAGE])
@pytest.mark.parametrize("handlers", [False, True])
def test_the_clock_does_not_see_probes(arch: str, near: int, handlers: bool) -> None:
    ticks, results = [], []
    for probed in (False, True):
        guest = ProbeGuest(arch, LOOPS[arch], near=near)
        if arch == "x86_64":
            guest["rdi"] = DATA
        places = []
        at = 0
        while at < len(LOOPS[arch]):
            size = guest.arch.probes.length(LOOPS[arch][at : at + 15])
            places.append(CODE + at)
            at += size
        if probed:
            for place in places:
                probe = counter(place)
                if handlers:
                    probe.post_handler = lambda probe, regs, flags: None
                try:
                    guest.manager.register(probe)
                except ProbeRejectedError:
                    assert guest.memory.read(place, 1) in (b"\xcc", b"\x00")
        guest.cpu.count_blocks(True)
        guest.run_to_trap()
        ticks.append(guest.cpu.blocks())
        results.append(guest.registers())
    assert ticks[0] == ticks[1] > 5
    assert results[0] == results[1]
