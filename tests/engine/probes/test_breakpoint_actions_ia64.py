"""Out of line is in place: every form of IA-64's table, stepped, boosted and phase by phase."""

import random
from collections import Counter
from functools import cache

import pytest
from bundlekit import SITE, BundleGuest, Outcome, bundle_of, random_state, with_slot, words_of
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arch.ia64.analyze import analyze
from engine.arch.ia64.bundle import SIZE, Bundle
from engine.arch.ia64.decode import decode_slot
from engine.arch.ia64.encode import assemble, nop
from engine.arch.ia64.opcodes import Form, forms
from engine.arch.plan import Mode, Rules
from engine.cpu.base import Stop, StopKind
from engine.cpu.ram import PAGE
from engine.errors import ProbeRejectedError
from engine.probes.breakpoint_machine import BreakpointMachine
from engine.probes.current_hit import Status
from engine.probes.hit_machine import PhaseWatch
from engine.probes.kprobe import Kprobe, Uprobe

FORMS = forms()
TEMPLATES_WITHOUT_BRANCHES = (0x00, 0x01, 0x02, 0x08, 0x0A, 0x0C, 0x0E)


class Bench:
    """One guest on which bundles are tried."""

    def __init__(self, mode: Mode) -> None:
        self.guest = BundleGuest(mode)
        self.blank = self.guest.cpu.save()

    def in_place(self, slot: int, state: object, data: bytes) -> Outcome:
        """The instruction where it stands, without a probe."""
        self.guest.start(slot, state, data)
        stop = self.guest.cpu.single_step()
        return self.guest.outcome(stop)

    def probed(self, slot: int, state: object, data: bytes) -> Outcome:
        """The same with the probe that is there."""
        self.guest.start(slot, state, data)
        return self.guest.outcome(self.guest.run(SITE + slot))

    def phases(self, slot: int, state: object, data: bytes) -> Outcome:
        """The same in visible phases."""
        self.guest.start(slot, state, data)
        machine = BreakpointMachine(self.guest.manager.hits)
        PhaseWatch(machine).run()
        return self.guest.outcome(machine.stop)

    def idle(self) -> bool:
        manager = self.guest.manager
        return (
            manager.hits.current.status is Status.IDLE
            and not manager.area.busy
            and not manager.area.owners
        )


@cache
def bench(mode: Mode) -> Bench:
    return Bench(mode)


def kprobe(address: int) -> Kprobe:
    return Kprobe(addr=address, record=lambda thread: None)


def with_handlers(address: int) -> Kprobe:
    probe = kprobe(address)
    probe.pre_handler = lambda probe, regs: None
    probe.post_handler = lambda probe, regs, flags: None
    return probe


def uprobe(address: int) -> Uprobe:
    probe = Uprobe("/bin/true", 0, record=lambda thread: None)
    probe.addr = address
    return probe


def differences(wanted: Outcome, got: Outcome) -> list[str]:
    return [
        f"{name}: {getattr(wanted, name)} / {getattr(got, name)}"
        for name in ("pc", "stop", "registers", "data", "store")
        if getattr(wanted, name) != getattr(got, name)
    ]


def compare(form: Form, seed: int, counts: Counter[str]) -> None:
    """One random instruction of a form from one random state."""
    rng = random.Random(f"{form.format} {form.mnemonic} {seed}")
    found = words_of(form, rng)
    if found is None:
        counts["not met"] += 1
        return
    here = bench(Mode.STRICT)
    raw, slot = bundle_of(*found, rng)
    guest = here.guest
    guest.place(raw)
    state = random_state(guest.cpu, here.blank, rng)
    data = rng.randbytes(4 * PAGE)
    wanted = here.in_place(slot, state, data)
    if wanted.pc == SITE + slot and not wanted.stop:
        counts["a branch to itself"] += 1
        return
    for make in (kprobe, with_handlers, uprobe):
        probe = make(SITE + slot)
        try:
            guest.manager.register(probe)
        except ProbeRejectedError as error:
            counts[f"refused: {error.rule}"] += 1
            return
        plan = guest.manager.points[SITE + slot].plan
        try:
            holds = not plan.predicate or plan.predicate in _true(guest, state)
            runs = [("run", here.probed)] + [("phases", here.phases)] * holds
            for name, run in runs:
                got = run(slot, state, data)
                how = f"{form.format} {plan.reason} {raw.hex()} {make.__name__} {name}"
                assert not differences(wanted, got), (how, differences(wanted, got))
                assert here.idle(), how
                counts[f"{make.__name__} {name} {plan.verdict.value}"] += 1
                counts["hits"] += probe.hits > 0
                counts["stops"] += bool(got.stop)
                assert (probe.hits > 0) == holds
                probe.hits = 0
        finally:
            guest.manager.unregister(probe)


def _true(guest: BundleGuest, state: object) -> frozenset[str]:
    """Predicates that hold in a state."""
    guest.cpu.restore(state)
    return frozenset(f"p{at}" for at in range(64) if guest.cpu.read_register(f"p{at}"))


@pytest.mark.slow
def test_every_form_of_the_table() -> None:
    counts: Counter[str] = Counter()
    for form in FORMS:
        compare(form, 1, counts)
    print(counts)
    assert counts["not met"] <= 3
    assert counts["kprobe run xol"] > 0.9 * len(FORMS)
    assert counts["hits"] > counts["stops"] > 0


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FORMS), st.integers(0, 1 << 64))
def test_any_instruction_from_any_state(form: Form, seed: int) -> None:
    compare(form, seed, Counter())


# -- several probes in one bundle, boosted or not ---------------------------------------------


def whole_bundle(rng: random.Random) -> bytes | None:
    """A bundle of three instructions; the last may be a branch. Kernel calls are left out."""
    template = rng.choice((*TEMPLATES_WITHOUT_BRANCHES, *TEMPLATES_WITHOUT_BRANCHES, 0x10, 0x18))
    bundle = Bundle(template, (0, 0, 0))
    for slot, unit in enumerate(bundle.units):
        wanted = [form for form in FORMS if unit in form.units and "break" not in form.mnemonic]
        found = words_of(rng.choice(wanted), rng)
        if found is None or found[0] == "X":
            return None
        word = found[1]
        if decode_slot(unit, word).form is None:
            return None
        bundle = with_slot(bundle, slot, word)
    return bundle.pack()


def walk(here: Bench, raw: bytes, state: object, data: bytes) -> tuple[Outcome, list[int]] | None:
    """Through the bundle in place: how it ends, and how often each slot would be hit."""
    guest = here.guest
    guest.start(0, state, data)
    hits = [0, 0, 0]
    at = SITE
    while True:
        plan = analyze(raw, at, Rules.KPROBE, Mode.STRICT, b"")
        holds = not plan.predicate or guest.cpu.read_register(plan.predicate)
        hits[at - SITE] += bool(holds)
        stop = guest.cpu.single_step()
        came = guest.cpu.read_register("ip")
        if stop is not None or not SITE <= came < SITE + SIZE:
            return guest.outcome(stop), hits
        if came <= at:
            return None
        at = came


def compare_bundle(seed: int, counts: Counter[str]) -> None:
    rng = random.Random(f"bundle {seed}")
    raw = whole_bundle(rng)
    if raw is None:
        return
    here = bench(Mode.STRICT)
    guest = here.guest
    guest.place(raw)
    state = random_state(guest.cpu, here.blank, rng)
    data = rng.randbytes(4 * PAGE)
    walked = walk(here, raw, state, data)
    if walked is None:
        return
    wanted, visits = walked
    armed: dict[int, Kprobe] = {}
    make = rng.choice((kprobe, kprobe, uprobe))  # uprobes of one bundle share a slot
    for slot in rng.choices((0, 1, 2), k=6):  # they come and go in any order
        if slot in armed:
            guest.manager.unregister(armed.pop(slot))
            continue
        try:
            probe = make(SITE + slot)
            guest.manager.register(probe)
        except ProbeRejectedError:
            continue
        armed[slot] = probe
        points = [guest.manager.points[SITE + at] for at in sorted(armed)]
        assert not any(point.boosted for point in points[:-1])
        for probe in armed.values():
            probe.hits = 0
        guest.start(0, state, data)
        got = guest.outcome(guest.run(-1))
        assert not differences(wanted, got), (raw.hex(), sorted(armed), differences(wanted, got))
        assert {at: probe.hits for at, probe in armed.items()} == {at: visits[at] for at in armed}
        counts["boosted"] += points[-1].boosted and visits[max(armed)] > 0
        counts["stops in boosted copies"] += points[-1].boosted and bool(got.stop)
        counts["several"] += len(armed) > 1
    guest.manager.unregister_all(list(armed.values()))


@pytest.mark.slow
def test_several_probes_in_one_bundle() -> None:
    counts: Counter[str] = Counter()
    for seed in range(300):
        compare_bundle(seed, counts)
    print(counts)
    assert counts["boosted"] > 50
    assert counts["stops in boosted copies"] > 20
    assert counts["several"] > 100


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 64))
def test_any_bundle_with_any_probes(seed: int) -> None:
    compare_bundle(seed, Counter())


# -- what Linux left wrong ---------------------------------------------------------------------


def went(mode: Mode, unit: str, text: str, **registers: int) -> tuple[int, int]:
    """(where a probed instruction led, link register b3 behind it)."""
    here = bench(mode)
    guest = here.guest
    word, extra = assemble(text, unit, SITE)
    raw, slot = bundle_of(unit, word, extra, random.Random(1))
    guest.place(raw)
    guest.start(slot, here.blank, b"")
    guest.cpu.write_register("cfm", 96)
    for name, value in registers.items():
        guest.cpu.write_register(name, value)
    probe = kprobe(SITE + slot)
    guest.manager.register(probe)
    copy = guest.manager.points[SITE + slot].slot
    guest.run(SITE + slot)
    found = guest.cpu.read_register("ip"), guest.cpu.read_register("b3")
    guest.manager.unregister(probe)
    assert copy is not None
    pc, link = (at - copy if at - copy in range(-64, 64) else at for at in found)
    return pc, link


@pytest.mark.parametrize(
    ("unit", "text", "registers"),
    [
        ("X", f"brl.cond.sptk.few {SITE + 32:#x}", {}),
        ("M", f"chk.s.m r9,{SITE + 32:#x}", {"nat9": 1}),
        ("M", f"chk.a.nc r9,{SITE + 32:#x}", {}),
        ("F", f"fchkf.s1 {SITE + 32:#x}", {"fpsr": 0x9804C0270033F | 1 << 26}),
    ],
)
def test_targets_that_linux_leaves_at_the_copy(
    unit: str, text: str, registers: dict[str, int]
) -> None:
    assert went(Mode.STRICT, unit, text, **registers)[0] == SITE + 32
    assert went(Mode.KERNEL, unit, text, **registers)[0] == 32  # from the copy
    raw, slot = bundle_of(unit, *assemble(text, unit, SITE), random.Random(1))
    linux = analyze(raw, SITE + slot, Rules.KPROBE, Mode.KERNEL, b"")
    assert linux.rule == "ia64.astray"
    assert "Linux leaves its target relative to the copy" in linux.reason


@pytest.mark.parametrize(("unit", "text"), [("B", "br.call"), ("X", "brl.call")])
def test_links_that_linux_does_not_know(unit: str, text: str) -> None:
    text = f"{text}.sptk.few b3={SITE + 32:#x}"
    assert went(Mode.STRICT, unit, text) == (SITE + 32, SITE + SIZE)
    assert went(Mode.KERNEL, unit, text)[1] == SIZE  # behind the copy


def test_what_linux_refuses_is_stepped_in_strict_mode() -> None:
    assert went(Mode.STRICT, "I", f"chk.s.i r9,{SITE + 32:#x}", nat9=1)[0] == SITE + 32
    assert went(Mode.STRICT, "I", "mov r9=ip")[0] != SITE
    assert bench(Mode.STRICT).guest.cpu.read_register("r9") == SITE
    for unit, text in (
        ("I", f"chk.s.i r9,{SITE + 32:#x}"),
        ("I", "mov r9=ip"),
        ("B", f"brp.sptk {SITE:#x},{SITE + 32:#x}"),
    ):
        with pytest.raises(ProbeRejectedError):
            went(Mode.KERNEL, unit, text)


# -- boosting while other probes come and go, and while the guest changes its code ------------


def test_boosted_only_while_no_probe_is_run_past() -> None:
    guest = bench(Mode.STRICT).guest
    word = assemble("adds r9=1,r9", "M")[0]
    guest.place(Bundle(0x08, (word, word, word)).pack())
    manager = guest.manager
    probes = [kprobe(SITE + slot) for slot in range(3)]

    def boosted() -> list[bool]:
        return [
            manager.points[SITE + at].boosted for at in range(3) if SITE + at in manager.points
        ]

    manager.register(probes[0])
    assert boosted() == [True]
    manager.register(probes[2])
    assert boosted() == [False, True]
    manager.register(probes[1])
    assert boosted() == [False, False, True]
    manager.disable(probes[2])
    assert [manager.points[SITE + at].boosted for at in (0, 1)] == [False, True]
    manager.disable(probes[1])
    assert manager.points[SITE].boosted
    manager.enable(probes[1])
    assert not manager.points[SITE].boosted
    probes[1].post_handler = lambda probe, regs, flags: None
    manager.unregister_all(probes)
    probes[1].flags = probes[1].flags.NONE
    manager.register_all([probes[0], probes[1]])
    assert boosted() == [False, False]
    manager.unregister_all(probes[:2])


def test_boosted_copies_follow_what_the_guest_writes() -> None:
    """Into another slot of the bundle, which is in the copy, too."""
    here = bench(Mode.STRICT)
    guest = here.guest
    one, two = (assemble(f"adds r9={number},r9", "M")[0] for number in (1, 2))
    guest.place(Bundle(0x08, (one, one, one)).pack())
    probe = kprobe(SITE)
    guest.manager.register(probe)
    for words, total in (((one, one, one), 3), ((one, one, two), 4)):
        guest.memory.write(SITE, Bundle(0x08, words).pack())
        guest.start(0, here.blank, b"")
        assert guest.run(-1) is None
        assert guest.cpu.read_register("r9") == total
        assert guest.manager.points[SITE].boosted
    assert probe.hits == 2
    guest.manager.unregister(probe)


def test_places_in_a_slot_are_the_programs_own() -> None:
    """A fault in what a boosted copy runs on in, and its neighbours."""
    here = bench(Mode.STRICT)
    guest = here.guest
    word, load = assemble("adds r9=1,r9", "M")[0], assemble("ld8 r8=[r10]", "M")[0]
    guest.place(Bundle(0x08, (word, load, nop("I"))).pack())
    probe = kprobe(SITE)
    guest.manager.register(probe)
    point = guest.manager.points[SITE]
    assert point.boosted
    assert point.slot is not None
    found = [guest.manager.original_pc(point.slot + at) for at in (0, 1, 2, 16, 17)]
    assert found == [SITE, SITE + 1, SITE + 2, SITE + 16, SITE + 16]
    guest.start(0, here.blank, b"")
    guest.cpu.write_register("r10", 0x1230)
    stop = guest.run(-1)
    assert stop == Stop(StopKind.FAULT, address=0x1230, access="read")
    assert guest.cpu.read_register("ip") == SITE + 1
    assert guest.cpu.read_register("r9") == 1
    guest.manager.unregister(probe)
