"""Return probes: instances, misses, tail calls, frames left by a jump; in both ways."""

from typing import Any

import pytest
from keystone import KS_ARCH_ARM64, KS_ARCH_X86, KS_MODE_64, KS_MODE_LITTLE_ENDIAN, Ks
from probekit import CODE, DATA, SP, ProbeGuest

from engine.arch.base import TrapKind
from engine.arch.plan import Mode
from engine.cpu.base import StopKind
from engine.errors import ProbeRejectedError
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe, KretprobeInstance, Uretprobe, default_maxactive
from engine.probes.manager import Status
from engine.probes.phases import Phase, PhaseMachine
from engine.probes.regs import PtRegs
from engine.probes.trampoline import NAME

F, G = CODE + 0x100, CODE + 0x200
ARCHES = ("x86_64", "aarch64")
each = pytest.mark.parametrize("arch", ARCHES)
either = pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)

RECURSION = {
    "x86_64": (
        "mov edi, {n}; call {F}; nop; int3",
        "test edi, edi; je L1; push rdi; dec edi; call {F}; pop rdi; add eax, edi; ret;"
        "L1: xor eax, eax; ret",
    ),
    "aarch64": (
        "mov x0, #{n}; bl {F}; nop; brk #0xf000",
        "cbz x0, L1; stp x29, x30, [sp, #-32]!; str x0, [sp, #16]; sub x0, x0, #1; bl {F};"
        "ldr x1, [sp, #16]; add x0, x0, x1; ldp x29, x30, [sp], #32; ret; L1: ret",
    ),
}
TAIL = {
    "x86_64": ("call {F}; nop; int3", "jmp {G}", "mov eax, 7; ret"),
    "aarch64": ("bl {F}; nop; brk #0xf000", "b {G}", "mov x0, #7; ret"),
}
# f jumps out of its frame to where it would have returned, but when rsi/x1 is 0.
JUMP = {
    "x86_64": (
        "mov esi, 1; L1: call {F}; test esi, esi; je L2; dec esi; jmp L1; L2: int3",
        "test esi, esi; je L1; pop rax; jmp rax; L1: ret",
    ),
    "aarch64": (
        "mov x1, #1; L1: bl {F}; cbz x1, L2; sub x1, x1, #1; b L1; L2: brk #0xf000",
        "cbz x1, L1; br x30; L1: ret",
    ),
}


def assembled(arch: str, text: str, at: int, **values: Any) -> bytes:
    kinds = {
        "x86_64": (KS_ARCH_X86, KS_MODE_64),
        "aarch64": (KS_ARCH_ARM64, KS_MODE_LITTLE_ENDIAN),
    }
    text = text.format(
        F=f"{'#' * (arch == 'aarch64')}{F}", G=f"{'#' * (arch == 'aarch64')}{G}", **values
    )
    code, _ = Ks(*kinds[arch]).asm(text, at)
    return bytes(code)


def guest_of(
    arch: str, parts: tuple[str, ...], mode: Mode = Mode.STRICT, **values: Any
) -> ProbeGuest:
    guest = ProbeGuest(arch, mode=mode)
    for text, at in zip(parts, (CODE, F, G), strict=False):
        code = assembled(arch, text, at, **values)
        guest.memory.poke(at, code)
        guest.names.functions.append((at, at + len(code)))
    guest.pc, guest.sp = CODE, SP
    return guest


class Seen:
    """What a probe's return event was given."""

    def __init__(
        self, guest: ProbeGuest, probe: Kretprobe, name: str = "", to: Any = None
    ) -> None:
        self.rows: list[Any] = [] if to is None else to
        self.name = name
        self.guest = guest
        probe.record_return = self.record

    def record(self, thread: int, ret_addr: int, entry: tuple[int, ...] = ()) -> None:
        value = self.guest[self.guest.arch.probes.retval]
        self.rows.append((self.name, ret_addr, value, *entry))


def registered(guest: ProbeGuest, address: int = F, **options: Any) -> Kretprobe:
    probe = Kretprobe(addr=address, **options)
    guest.manager.register(probe)
    return probe


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
    assert guest.manager.status == Status.IDLE


@each
def test_the_kernels_default_is_an_option_and_kernel_modes_rule(arch: str) -> None:
    for mode, asked, limit in (
        (Mode.STRICT, False, None),
        (Mode.STRICT, True, 10),
        (Mode.KERNEL, True, 10),
    ):
        guest = guest_of(arch, RECURSION[arch], mode, n=14)
        guest.manager.kernel_maxactive = asked
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
    guest.manager.status = Status.HIT_ACTIVE
    guest.run_to_trap()
    assert (probe.hits, probe.nmissed, seen.rows) == (1, 1, [])
    guest.manager.status = Status.IDLE


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
@either
def test_phases_do_what_the_fast_executor_does(arch: str, mode: Mode) -> None:
    outcomes = []
    for stepped in (False, True):
        guest = guest_of(arch, RECURSION[arch], mode, n=4)
        guest.cpu.count_blocks(True)
        probe = registered(guest)
        seen = Seen(guest, probe)
        texts: list[str] = []
        if stepped:
            walk(guest, texts)
        else:
            guest.run_to_trap()
        outcomes.append((seen.rows, guest.registers(), guest.memory.read(SP - 256, 512)))
        assert (probe.hits, probe.active) == (5, 0)
        if stepped:
            what = NAME if mode is Mode.KERNEL else "wait for the return"
            assert sum(what in text for text in texts) >= 5
    assert outcomes[0] == outcomes[1]


def walk(guest: ProbeGuest, texts: list[str]) -> None:
    """Run to the trap with every hit carried out phase by phase."""
    points = guest.manager.points
    while True:
        point = points.get(guest.pc)
        if point is not None and point.armed:
            texts += [
                f"{row.phase.value}: {row.text}" for row in PhaseMachine(guest.manager).run()
            ]
            continue
        guest.memory.sync()
        stop = guest.cpu.step()
        if stop is not None and stop.kind is StopKind.TRAP:
            return


@each
def test_the_trampoline(arch: str) -> None:
    """In kernel mode the return address is replaced; who asks is told the real one."""
    guest = guest_of(arch, TAIL[arch], Mode.KERNEL)
    manager = guest.manager
    registered(guest)
    guest.memory.sync()
    while guest.pc != F:
        assert guest.cpu.step() is None
    phases = {row.phase: row for row in PhaseMachine(manager).run()}
    assert "replaced" in phases[Phase.PRE].text
    link = guest.arch.roles.link
    start, end = manager.trampoline() or (0, 0)
    slot = guest.sp
    read = guest[link] if link else int.from_bytes(guest.memory.read(slot, 8), "little")
    assert start == read < end
    real = manager.resolve_return(read, slot)
    assert real is not None
    assert CODE < real < F
    assert manager.resolve_return(read, slot + 64) is None
    assert manager.resolve_return(real, slot) is None
    assert [one.ret_addr for one in manager.returns.pending(slot)] == [real]
    assert manager.name(start) == NAME
    assert manager.original_pc(start) == real
    while guest.pc != start:
        assert guest.cpu.step() is None
    assert manager.busy()
    rows = PhaseMachine(manager).run()
    assert [row.phase for row in rows][-4:] == [
        Phase.PRE,
        Phase.EMULATED,
        Phase.POST,
        Phase.RESUME,
    ]
    assert guest.pc == real
    assert not manager.busy()


@each
def test_a_return_to_the_trampoline_that_nobody_made_is_illegal(arch: str) -> None:
    guest = guest_of(arch, TAIL[arch], Mode.KERNEL)
    registered(guest)
    guest.pc = (guest.manager.trampoline() or (0, 0))[0]
    stop = guest.run()
    assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.ILLEGAL)


@either
@pytest.mark.parametrize("leave", ["hint #29; ret", ".long 0xd65f0bff"])
def test_a_function_that_signs_its_return_address(mode: Mode, leave: str) -> None:
    parts = (
        "bl {F}; nop; brk #0xf000",
        f"hint #25; stp x29, x30, [sp, #-16]!; mov x0, #5; ldp x29, x30, [sp], #16; {leave}",
    )
    guest = guest_of("aarch64", parts, mode)
    seen = Seen(guest, registered(guest))
    guest.run_to_trap()
    assert [row[2] for row in seen.rows] == [5]


@each
def test_what_is_refused(arch: str) -> None:
    guest = guest_of(arch, RECURSION[arch], n=1)
    with pytest.raises(ProbeRejectedError) as refused:
        registered(guest, F + 4 if arch == "aarch64" else F + 2)
    assert refused.value.errno == "EINVAL"
    with pytest.raises(ProbeRejectedError) as refused:
        registered(guest, data_size=4097)
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
