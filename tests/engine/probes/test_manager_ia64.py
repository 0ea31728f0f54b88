"""Probes in the bundles of IA-64: what is planted, and that programs do not notice."""

import json
import os
import random
import re
from functools import partial
from pathlib import Path

import pytest
from guestrun import run
from sysroot import CHECKOUT

from engine.arch.ia64.analyze import analyze, patch
from engine.arch.ia64.bundle import SIZE, TEMPLATES, Bundle, unpack
from engine.arch.ia64.decode import decode_at
from engine.arch.ia64.encode import assemble, long_jump, nop
from engine.arch.plan import InsnPlan, Mode, Rules, Verdict
from engine.cpu.base import StopKind
from engine.linux.fs.stdio import SinkStream
from engine.probes.breakpoint_machine import BreakpointMachine
from engine.probes.hit_machine import Phase, PhaseWatch
from engine.probes.kprobe import Kprobe
from engine.probes.manager import ProbeManager
from engine.session import GuestConfig, Session
from engine.session.guest.probing import Probing

SAMPLES = CHECKOUT / "samples" / "bin" / "ia64"
GUESTS = CHECKOUT / "tests" / "data" / "ia64" / "guests"
AT = 0x4000
BREAK_ANY_LOW = 0x81


def plan(raw: bytes, slot: int, rules: Rules = Rules.KPROBE, mode: Mode = Mode.KERNEL) -> InsnPlan:
    return analyze(raw, AT + slot, rules, mode, b"")


def bundle(template: int, *words: int) -> bytes:
    return Bundle(template, (words[0], words[1], words[2])).pack()


def planted(raw: bytes, wanted: InsnPlan) -> bytes:
    """The bundle with a plan's break in it."""
    assert wanted.bits is not None
    value, mask = (int.from_bytes(part, "little") for part in wanted.bits)
    assert not value & ~mask
    return (int.from_bytes(raw, "little") & ~mask | value).to_bytes(SIZE, "little")


@pytest.mark.parametrize("template", [t for t, units in enumerate(TEMPLATES) if units])
def test_a_break_stands_in_every_slot_of_every_template(template: int) -> None:
    units = TEMPLATES[template]
    long = units == "MLX"
    words = [nop("M"), 0x1234, assemble("movl r9=0x123456789abcdef0", "X")[0]]
    raw = bundle(template, *(words if long else [nop(unit) for unit in units]))
    for slot in (0, 1) if long else (0, 1, 2):
        found = plan(raw, slot)
        assert (found.verdict, found.entry) == (Verdict.XOL, slot)
        insn = decode_at(planted(raw, found), slot)
        assert insn is not None
        assert insn.format in ("M37", "I19", "F15", "B9", "X1")
        assert (insn.word >> 18) & 0x3FFFF == BREAK_ANY_LOW  # the handler looks at imm >> 12
        before, after = unpack(raw), unpack(planted(raw, found))
        assert after.template == before.template
        kept = [at for at in range(3) if at != (2 if long and slot else slot)]
        assert [before.slots[at] for at in kept] == [after.slots[at] for at in kept]


def test_slot_1_keeps_the_bits_in_the_first_word() -> None:
    word = assemble("(p06) adds r9=1,r10", "I")[0]
    raw = bundle(0, nop("M"), word, nop("I"))
    assert planted(raw, plan(raw, 1))[:8] == raw[:8]


def test_the_predicate_is_kept_or_not_as_the_instruction_needs() -> None:
    plain = assemble("(p06) adds r9=1,r10", "M")[0]
    unc = assemble("(p06) cmp.eq.unc p7,p8=r9,r10", "M")[0]
    loop = assemble("(p16) br.wtop.sptk.few 0x4000", "B", AT)[0]
    raw = bundle(0x08, plain, nop("M"), nop("I"))
    assert unpack(planted(raw, plan(raw, 0))).slots[0] & 63 == 6
    raw = bundle(0x08, unc, nop("M"), nop("I"))
    assert unpack(planted(raw, plan(raw, 0))).slots[0] & 63 == 0
    raw = bundle(0x08, nop("M"), unc, nop("I"))
    refused = plan(raw, 1)
    assert (refused.verdict, refused.errno) == (Verdict.REJECTED, "EINVAL")
    assert "p6" in refused.reason
    raw = bundle(0x10, nop("M"), nop("I"), loop)
    assert unpack(planted(raw, plan(raw, 2, mode=Mode.STRICT))).slots[2] & 63 == 0
    linux = plan(raw, 2)
    assert unpack(planted(raw, linux)).slots[2] & 63 == 16
    assert "Linux passes its break over while p16 is false" in linux.reason


@pytest.mark.parametrize(
    ("text", "unit", "template", "slot"),
    [
        ("chk.s.i r9,0x4000", "I", 0x00, 1),
        ("mov r9=ip", "I", 0x00, 2),
        ("brp.sptk 0x4000,0x4020", "B", 0x10, 2),
    ],
)
def test_what_linux_refuses(text: str, unit: str, template: int, slot: int) -> None:
    words = [nop(at) for at in TEMPLATES[template]]
    words[slot] = assemble(text, unit, AT)[0]
    found = plan(bundle(template, *words), slot)
    assert (found.verdict, found.errno) == (Verdict.REJECTED, "EINVAL")
    strict = plan(bundle(template, *words), slot, mode=Mode.STRICT)
    assert strict.verdict is Verdict.XOL


def test_addresses_that_are_no_slot() -> None:
    raw = bundle(0, nop("M"), nop("I"), nop("I"))
    assert plan(raw, 3).rule == "ia64.slot"
    assert plan(raw[:8], 0).rule == "ia64.truncated"
    assert plan(raw, 0, Rules.UPROBE).errno == "EOPNOTSUPP"
    assert plan(raw, 0, Rules.UPROBE, Mode.STRICT).verdict is Verdict.XOL
    long = bundle(4, nop("M"), 0, assemble("movl r9=1", "X")[0])
    assert plan(long, 2).rule == "ia64.slot"
    assert plan(long, 1).next == AT + SIZE


def test_patch_covers_one_slot_only() -> None:
    whole = Bundle(0, (0, 0, 0))
    masks = [int.from_bytes(patch(whole, slot, 0)[1], "little") for slot in range(3)]
    assert [mask.bit_count() for mask in masks] == [41, 23, 41]
    assert masks[0] & masks[1] == masks[1] & masks[2] == masks[0] & masks[2] == 0


def session_of(path: Path) -> tuple[Session, ProbeManager, bytearray]:
    """A loaded guest whose probes are ready, and what it will have written."""
    out = bytearray()
    sink = SinkStream(lambda data: out.extend(data))
    streams = (SinkStream(lambda data: None), sink, sink)
    session = Session(GuestConfig(os.fspath(path)), streams)
    session.probing = session.probing or Probing(session)
    return session, session.probing.manager, out


def places(session: Session, manager: ProbeManager) -> list[int]:
    """Every slot of the program that takes a probe."""
    assert session.probing is not None
    return [
        placed.place.link for placed in session.probing.verdicts.of_all() if placed.judgement.ok
    ]


def test_probes_of_one_bundle_come_and_go_in_any_order() -> None:
    session, manager, _ = session_of(SAMPLES / "recursion")
    slots = places(session, manager)
    start, end = slots[0] & -SIZE, (slots[-1] & -SIZE) + SIZE
    plain = session.memory.read(start, end - start)
    random.seed(7)
    armed: dict[int, Kprobe] = {}
    for _ in range(400):
        address = random.choice(slots[:60])
        if address in armed:
            manager.unregister(armed.pop(address))
        else:
            armed[address] = Kprobe(addr=address)
            manager.register(armed[address])
        assert session.probing is not None
        assert session.probing.overlay.original(start, end - start) == plain
        data = session.memory.read(start, end - start)
        for at in range(0, 320, SIZE):
            wanted = plain[at : at + SIZE]
            for probe in armed:
                if probe & -SIZE == start + at:
                    wanted = planted(wanted, manager.points[probe].plan)
            assert data[at : at + SIZE] == wanted
    manager.unregister_all(list(armed.values()))
    assert session.memory.read(start, end - start) == plain
    session.close()


def note(hits: list[int], address: int, thread: int) -> None:
    hits.append(address)


def test_phases_leave_what_the_fast_way_leaves() -> None:
    """Both executors at every slot of a function, over a whole run."""
    ends = []
    for slowly in (False, True):
        session, manager, _ = session_of(SAMPLES / "pipeline")
        hits: list[int] = []
        for address in places(session, manager)[:200]:
            manager.register(Kprobe(addr=address, record=partial(note, hits, address)))
        session.memory.sync()
        states: list[tuple[int, list[int]]] = []
        while len(states) < 300:
            pc = manager.regs.ip
            point = manager.points.get(pc)
            if point is not None and slowly and manager.traps(point):
                machine = BreakpointMachine(manager.hits)
                assert PhaseWatch(machine).run()[3].phase in (Phase.SLOT, Phase.EMULATED)
                stop = machine.stop
            else:
                stop = None
                while stop is None:
                    stop = session.cpu.step()
                    stop = manager.handle(stop) if stop is not None else None
                    if not manager.code.inside(manager.regs.ip):
                        break
            if stop is not None:
                assert stop.kind is StopKind.SYSCALL
                session.kernel.take(stop)
            states.append(
                (pc, [session.cpu.read_register(r.name) for r in session.arch.registers])
            )
        ends.append((hits, states))
        session.close()
    assert ends[0][0] == ends[1][0]
    for fast, slow in zip(ends[0][1], ends[1][1], strict=True):
        assert fast == slow
    assert len(ends[0][0]) > 50


@pytest.mark.parametrize(
    "path",
    [pytest.param(SAMPLES / "syscalls", marks=pytest.mark.slow), GUESTS / "fptr_pie.elf"],
    ids=lambda path: str(path.name),
)
def test_a_probe_on_every_slot_changes_nothing(path: Path, tmp_path: Path) -> None:
    done = run("diff", "--every-insn", "*", str(path), cwd=tmp_path)
    assert done.err.endswith("kprobe-tui: no effect\n"), done.err
    found = re.search(r"(\d+) probed places, (\d+) hits", done.err)
    assert found is not None
    assert int(found[2]) > 300


def test_events_have_arguments_on_the_register_stack(tmp_path: Path) -> None:
    done = run(
        *("trace", "-e", "p:in fibonacci n=%r32 b0=%b0", "-e", "p:mid fibonacci+0x1"),
        *("-e", "p:last fibonacci+0x2", str(SAMPLES / "recursion")),
        cwd=tmp_path,
    )
    assert done.code == 0
    order = re.findall(r": (in|mid|last): ", done.err)
    assert order == ["in", "mid", "last"] * 1973  # calls that fibonacci(15) makes
    assert "in: (fibonacci+0x0/0x90) n=0xf b0=0x" in done.err


def test_kernel_mode_says_what_linux_leaves_wrong(tmp_path: Path) -> None:
    """In the report of `check`: accepted there, and nothing to say in strict mode."""
    guest = str(GUESTS / "a_spec.elf")
    rows = {}
    for mode in ("kernel", "strict"):
        done = run("check", "--mode", mode, "--all", "--json", guest, cwd=tmp_path)
        rows[mode] = {row["address"]: row for row in json.loads(done.out)}
    wrong = {
        address: finding["message"]
        for address, row in rows["kernel"].items()
        for finding in row["lint"]
        if finding["rule"] == "corrupts"
    }
    checks = [address for address in wrong if "leaves its target" in wrong[address]]
    assert len(checks) >= 3
    for address in checks:
        assert rows["kernel"][address]["verdict"] == rows["strict"][address]["verdict"] == "ok"
        assert not any(found["rule"] == "corrupts" for found in rows["strict"][address]["lint"])


@pytest.mark.parametrize("distance", [0x40, -0x40, 0x7_0000_0000, -0x3FFF_FFFF_FFFF_F000])
def test_the_boost_is_the_kernels_bundle(distance: int) -> None:
    """Bit by bit as set_brl_inst and BRL_INST have it, whose comment only says .clr."""
    place = 0x4000_0000_0000_0000
    far = distance >> 4
    made = unpack(long_jump(place, place + distance))
    assert made.template == 5
    assert made.slots[0] == 1 << 27
    assert made.slots[1] == (far >> 20 & 0x7F_FFFF_FFFF) << 2
    assert made.slots[2] == 0xC << 37 | (far >> 59 & 1) << 36 | (far & 0xFFFFF) << 13 | 1 << 12
