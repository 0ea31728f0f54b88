"""Return probes: instances, misses, tail calls, frames left by a jump; in both ways."""

from typing import Any

import pytest
from probekit import CODE, DATA, SP
from returnkit import (
    JUMP,
    RECURSION,
    TAIL,
    F,
    G,
    Seen,
    assembled,
    each,
    either,
    guest_of,
    registered,
)

from engine.arch.plan import Mode
from engine.errors import ProbeRejectedError
from engine.probes.current_hit import Status
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe, KretprobeInstance, Uretprobe, default_maxactive
from engine.probes.regs import PtRegs


@each
@either
def test_each_call_of_a_recursion_returns_once(arch: str, mode: Mode) -> None:
    guest = guest_of(arch, RECURSION[arch], mode, n=6)
    probe = Kretprobe(addr=F)
    seen = Seen(guest, probe)
    probe.capture = lambda: (guest[guest.arch.probes.arguments[0]],)
    guest.manager.register(probe)
    guest.run_to_trap()

    assert [row[2:] for row in seen.rows] == [(sum(range(n + 1)), n) for n in range(7)]
    inner = {row[1] for row in seen.rows[:-1]}
    assert len(inner) == 1
    assert CODE < seen.rows[-1][1] < F < inner.pop()
    assert (probe.hits, probe.nmissed, probe.active, probe.unwatched) == (7, 0, 0, 0)


@each
@either
@pytest.mark.parametrize("maxactive", [1, 3, 7])
def test_calls_without_a_free_instance_are_missed(arch: str, mode: Mode, maxactive: int) -> None:
    guest = guest_of(arch, RECURSION[arch], mode, n=9)
    probe = registered(guest, maxactive=maxactive)
    seen = Seen(guest, probe)
    guest.run_to_trap()

    assert (probe.hits, probe.nmissed) == (10, 10 - maxactive)
    assert len(seen.rows) == maxactive  # of the outermost calls
    assert [row[2] for row in seen.rows] == [sum(range(n + 1)) for n in range(10 - maxactive, 10)]
    assert guest.manager.hits.current.status == Status.IDLE


@each
@either
def test_hits_of_a_probe_beside_it_that_does_nothing_are_counted(arch: str, mode: Mode) -> None:
    guest = guest_of(arch, RECURSION[arch], mode, n=9)
    quiet, recording = Kprobe(addr=F), Kprobe(addr=F, record=lambda thread: None)
    guest.manager.register_all([quiet, recording])
    probe = registered(guest, maxactive=2)
    guest.run_to_trap()

    assert (quiet.hits, recording.hits, probe.hits, probe.nmissed) == (10, 10, 10, 8)


@each
def test_the_kernels_default_is_an_option_and_kernel_modes_rule(arch: str) -> None:
    for mode, asked, limit in (
        (Mode.STRICT, False, None),
        (Mode.STRICT, True, 10),
        (Mode.KERNEL, True, 10),
    ):
        guest = guest_of(arch, RECURSION[arch], mode, n=14)
        guest.manager.returns.pool.kernel_maxactive = asked
        probe = registered(guest)
        guest.run_to_trap()
        assert probe.limit == limit
        assert probe.nmissed == (0 if limit is None else 15 - limit)
    assert default_maxactive(8) == 16


@each
@either
def test_an_entry_handler_sees_the_real_registers_and_may_decline(arch: str, mode: Mode) -> None:
    guest = guest_of(arch, RECURSION[arch], mode, n=5)
    argument = guest.arch.probes.arguments[0]
    returned: list[tuple[int, int, int]] = []

    def enter(instance: KretprobeInstance, regs: PtRegs) -> int:
        assert regs.ip == F
        assert instance.rp is probe
        instance.data[:2] = regs[argument].to_bytes(2, "little")
        return int(regs[argument] % 2 == 0)

    def leave(instance: KretprobeInstance, regs: PtRegs) -> None:
        assert regs.ip == instance.ret_addr
        kept = int.from_bytes(instance.data[:2], "little")
        returned.append((kept, regs.retval, len(instance.data)))

    probe = registered(guest, handler=leave, entry_handler=enter, data_size=16)
    guest.run_to_trap()

    assert returned == [(n, sum(range(n + 1)), 16) for n in (1, 3, 5)]
    assert (probe.hits, probe.nmissed, probe.active) == (6, 0, 0)


@each
@either
def test_a_return_handler_may_change_the_result(arch: str, mode: Mode) -> None:
    guest = guest_of(arch, TAIL[arch], mode)

    def leave(instance: KretprobeInstance, regs: PtRegs) -> None:
        regs.retval = 99

    registered(guest, handler=leave)
    guest.run_to_trap()
    assert guest[guest.arch.probes.retval] == 99


@each
@either
def test_a_tail_call_returns_with_its_caller_callee_first(arch: str, mode: Mode) -> None:
    guest = guest_of(arch, TAIL[arch], mode)
    rows: list[Any] = []
    for address, name in ((F, "f"), (G, "g")):
        Seen(guest, registered(guest, address), name, rows)
    guest.run_to_trap()
    assert [(name, value) for name, _, value in rows] == [("g", 7), ("f", 7)]
    assert len({ret_addr for _, ret_addr, _ in rows}) == 1


@each
@either
def test_probes_on_one_function(arch: str, mode: Mode) -> None:
    """The newest kretprobe is entered first and returns last; a uprobe's newest comes first."""
    for kind, order in ((Kretprobe, ["old", "new"]), (Uretprobe, ["new", "old"])):
        guest = guest_of(arch, TAIL[arch], mode)
        rows: list[Any] = []
        for name in ("old", "new"):
            probe = Kretprobe(addr=F) if kind is Kretprobe else Uretprobe("/bin/true", 0)
            probe.addr = F
            Seen(guest, probe, name, rows)
            guest.manager.register(probe)
        entries: list[int] = []
        guest.manager.register(Kprobe(addr=F, record=entries.append))
        guest.run_to_trap()
        assert [row[0] for row in rows] == order
        assert len(entries) == 1


@each
@pytest.mark.parametrize("way", ["call", "stub"])
def test_the_next_call_of_a_place_is_no_tail_call(arch: str, way: str) -> None:
    """f is left three times by a jump elsewhere; the fourth call, from the same place, returns."""
    main = {
        "x86_64": (
            "mov esi, 3; L1: call {target}; nop; jmp L2; nop; nop; dec esi; jmp L1; L2: nop; int3",
            "test esi, esi; je L1; pop rax; add rax, {skip}; jmp rax; L1: ret",
            "jmp {F}",
        ),
        "aarch64": (
            "mov x1, #3; L1: bl {target}; nop; b L2; nop; nop; sub x1, x1, #1; b L1; L2: nop;"
            "brk #0xf000",
            "cbz x1, L1; add x2, x30, {skip}; br x2; L1: ret",
            "b {F}",
        ),
    }[arch]
    number = "{}" if arch == "x86_64" else "#{}"
    target = number.format(F if way == "call" else G)
    skip = number.format(3 if arch == "x86_64" else 8)
    guest = guest_of(arch, main, target=target, skip=skip)
    probe = registered(guest)
    seen = Seen(guest, probe)
    guest.run_to_trap()
    assert (probe.hits, probe.active) == (4, 0)
    assert len(seen.rows) == 1


@each
def test_a_frame_left_by_a_jump_has_no_return(arch: str) -> None:
    """Control reaches the return address, with the right stack pointer, but not by a return."""
    guest = guest_of(arch, JUMP[arch])
    probe = registered(guest, maxactive=1)
    seen = Seen(guest, probe)
    guest.run_to_trap()
    assert (probe.hits, probe.nmissed, probe.active) == (2, 0, 0)
    assert len(seen.rows) == 1


@each
@either
def test_a_frame_that_is_gone_gives_its_instance_back(arch: str, mode: Mode) -> None:
    """f drops its caller's frame too: what is pending below the stack pointer is gone."""
    out = {
        "x86_64": (
            "lea rbp, [rsp]; mov esi, 3; L1: call {F}; nop; L3: dec esi; jne L1;"
            "call {G}; nop; int3",
            "sub rsp, 64; mov rsp, rbp; jmp {back}",
            "mov eax, 7; ret",
        ),
        "aarch64": (
            "mov x29, sp; mov x1, #3; L1: bl {F}; nop; L3: subs x1, x1, #1; b.ne L1; bl {G}; nop;"
            "brk #0xf000",
            "sub sp, sp, #64; mov sp, x29; b #{back}",
            "mov x0, #7; ret",
        ),
    }[arch]
    head = {
        "x86_64": "lea rbp, [rsp]; mov esi, 3; L1: call {F}; nop",
        "aarch64": "nop; nop; nop; nop",
    }
    back = CODE + len(assembled(arch, head[arch], CODE))
    guest = guest_of(arch, out, mode, back=back)
    f = registered(guest, F, maxactive=1)
    g = registered(guest, G, maxactive=1)
    seen_f, seen_g = Seen(guest, f), Seen(guest, g)
    guest.run_to_trap()
    assert (f.hits, f.nmissed, seen_f.rows) == (3, 0, [])
    assert (g.hits, g.nmissed, len(seen_g.rows)) == (1, 0, 1)


@each
@either
def test_a_call_in_a_handler_is_missed(arch: str, mode: Mode) -> None:
    guest = guest_of(arch, TAIL[arch], mode)
    probe = registered(guest, entry_handler=lambda instance, regs: 0)
    seen = Seen(guest, probe)
    guest.manager.hits.current.status = Status.HIT_ACTIVE
    guest.run_to_trap()
    assert (probe.hits, probe.nmissed, seen.rows) == (1, 1, [])
    guest.manager.hits.current.status = Status.IDLE


@each
def test_what_follows_a_call_that_ends_its_function_is_left_alone(arch: str) -> None:
    """It need not be code."""
    main = {"x86_64": "call {F}", "aarch64": "bl {F}"}[arch]
    stop = {"x86_64": "nop; int3", "aarch64": "nop; brk #0xf000"}[arch]
    guest = guest_of(arch, (main, stop))
    probe = registered(guest)
    behind = CODE + len(assembled(arch, main, CODE))
    guest.memory.poke(behind, b"\1\2\3\4")
    guest.run_to_trap()
    assert guest.memory.read(behind, 4) == b"\1\2\3\4"
    assert (probe.hits, probe.unwatched, probe.nmissed) == (1, 1, 0)


@each
@either
def test_an_unregistered_probe_sees_no_return(arch: str, mode: Mode) -> None:
    guest = guest_of(arch, RECURSION[arch], mode, n=3)
    before = guest.memory.read(CODE, 0x300)
    probe = registered(guest)
    seen = Seen(guest, probe)
    ends: list[int] = []
    last = Kprobe(addr=F, pre_handler=lambda p, regs: ends.append(1) or 0)  # type: ignore[func-returns-value]
    guest.manager.register(last)
    while len(ends) < 4:
        guest.memory.sync()
        assert guest.manager.handle(guest.cpu.run()) is None
    guest.manager.unregister_all([probe, last])
    guest.run_to_trap()
    assert guest[guest.arch.probes.retval] == 6
    assert seen.rows == []
    assert guest.memory.read(CODE, 0x300) == before
    assert guest.manager.placed() == []


@each
def test_what_is_refused(arch: str) -> None:
    guest = guest_of(arch, RECURSION[arch], n=1)
    with pytest.raises(ProbeRejectedError) as refused:
        registered(guest, F + 4 if arch == "aarch64" else F + 2)
    assert refused.value.errno == "EINVAL"
    for size in (4097, -1):  # a size_t
        with pytest.raises(ProbeRejectedError) as refused:
            registered(guest, data_size=size)
        assert refused.value.errno == "E2BIG"
    assert guest.manager.points == {}


@each
@either
def test_a_place_that_is_probed_and_returned_to(arch: str, mode: Mode) -> None:
    """The return comes first."""
    guest = guest_of(arch, TAIL[arch], mode)
    rows: list[Any] = []
    Seen(guest, registered(guest), "return", rows)
    size = {"x86_64": 5, "aarch64": 4}[arch]
    for _ in range(2):
        there = Kprobe(addr=CODE + size, record=lambda thread: rows.append(("place",)))
        guest.manager.register(there)
        guest.pc, guest.sp = CODE, SP
        guest.run_to_trap()
        guest.manager.unregister(there)
    assert [row[0] for row in rows] == ["return", "place"] * 2
    assert DATA not in guest.manager.points
