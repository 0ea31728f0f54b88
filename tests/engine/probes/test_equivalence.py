"""Every instruction form runs the same unprobed, probed by the fast executor, and by phases.

In place: one step of the bare CPU. The fast executor: the breakpoint's action, and the same with
handlers through the manager. The phases: a single step of the copy in its slot and the fix-ups.
Compared are all registers, data, stack, and kind and address of a fault. In the normal run this is
a sample; `KPROBE_TUI_FORMS=all` takes all kept forms and those of the sysroot's programs.
"""

import os
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from forms import State, aimed, collect, forms, state
from probekit import CODE, CODE_SIZE, DATA, DATA_SIZE, STACK, STACK_SIZE, ProbeGuest
from sysroot import SysrootUnavailable

from engine.arch.plan import Mode, Rules, Verdict
from engine.arch.x86_64.decode import decode
from engine.cpu.base import Stop, StopKind
from engine.errors import ProbeRejectedError
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.manager import Status
from engine.probes.phases import PhaseMachine

ALL = os.environ.get("KPROBE_TUI_FORMS") == "all"
SAMPLE = {"x86_64": 1500, "aarch64": 800}
SITES = {"x86_64": (CODE + 0x1000, CODE + 0x1FFD), "aarch64": (CODE + 0x1000, CODE + 0x1FFC)}
PAGE = 4096


@dataclass
class Result:
    """What one execution came to: where, what stopped it, and everything visible."""

    pc: int
    stop: tuple[object, ...]
    registers: dict[str, int]
    data: bytes
    stack: bytes

    def differences(self, other: "Result") -> list[str]:
        found = []
        if (self.pc, self.stop) != (other.pc, other.stop):
            found.append(f"{self.pc:#x} {self.stop} / {other.pc:#x} {other.stop}")
        found += [
            f"{name}: {value:#x} / {other.registers[name]:#x}"
            for name, value in self.registers.items()
            if value != other.registers[name]
        ]
        found += ["data"] * (self.data != other.data) + ["stack"] * (self.stack != other.stack)
        return found


@dataclass
class Tally:
    """Counts of forms and the differences found."""

    counts: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)


class Bench:
    """One guest on which forms are tried."""

    def __init__(self, arch: str, mode: Mode, near: int) -> None:
        self.guest = ProbeGuest(arch, mode=mode, near=near)
        self.arch = arch
        unit = self.guest.arch.breakpoint
        if arch == "aarch64":
            unit = bytes.fromhex("000020d4")  # not one of the kernel's
        self.fill = unit * (CODE_SIZE // len(unit))
        self.guest.load(self.fill)
        self.clean = self.guest.cpu.save()
        self.back = len(self.guest.arch.breakpoint) if self.guest.arch.trap_advances_pc else 0

    def place(self, raw: bytes, site: int) -> None:
        memory = self.guest.memory
        for at in SITES[self.arch]:
            memory.poke(at, self.fill[:16])
        memory.poke(site, raw)

    def set(self, values: State, site: int) -> None:
        guest = self.guest
        guest.cpu.restore(self.clean)
        guest.memory.sync()
        for name, value in values.registers.items():
            guest.cpu.write_register(name, value)
        guest.memory.poke(DATA, values.data)
        guest.memory.poke(STACK, values.stack)
        guest.pc = site

    def result(self, pc: int, stop: Stop | None) -> Result:
        memory = self.guest.memory
        shown: tuple[object, ...] = ()
        if stop is not None:
            shown = (stop.kind, stop.trap, stop.number, stop.address, stop.access)
        return Result(
            pc,
            shown,
            self.guest.registers(),
            memory.read(DATA, DATA_SIZE),
            memory.read(STACK, STACK_SIZE),
        )

    def in_place(self, values: State, site: int, repeats: bool) -> Result:
        self.set(values, site)
        while True:
            stop = self.guest.cpu.step()
            if stop is not None or self.guest.pc != site or not repeats:
                break
        if stop is not None and stop.access == "execute" and self.guest.pc != site:
            stop = None  # a branch was carried out; its target cannot be executed
        return self.result(self.guest.pc, stop)

    def fast(self, values: State, site: int, reached: int) -> Result:
        """Run on to the trap behind, which is where the instruction was meant to go."""
        self.set(values, site)
        stop: Stop | None = self.guest.run()
        assert stop is not None
        pc = self.guest.pc
        if stop.kind is StopKind.TRAP and stop.trap.name == "BREAKPOINT" and pc != site:
            pc, stop = pc - self.back, None
        elif stop.access == "execute" and pc == reached:
            stop = None
        return self.result(pc, stop)

    def phases(self, values: State, site: int) -> Result:
        self.set(values, site)
        machine = PhaseMachine(self.guest.manager)
        machine.run()
        return self.result(self.guest.pc, machine.stop)

    def probe(self, site: int, rules: Rules, handlers: bool) -> Kprobe:
        if rules is Rules.KPROBE:
            probe = Kprobe(addr=site, record=lambda thread: None)
            if handlers:
                probe.pre_handler = lambda probe, regs: None
                probe.post_handler = lambda probe, regs, flags: None
            return probe
        uprobe = Uprobe("/bin/true", 0, record=lambda thread: None)
        uprobe.addr = site
        if handlers:
            uprobe.handler = lambda probe, regs: None
        return uprobe

    def idle(self) -> bool:
        manager = self.guest.manager
        return manager.status is Status.IDLE and not manager.area.busy and not manager.area.owners


def known(arch: str, raw: bytes, different: list[str]) -> str:
    """Why an instruction may end otherwise than the emulator's own, "" if it may not."""
    if arch == "aarch64" and int.from_bytes(raw, "little") & 0xFFDFFC1F == 0xD61F0000:
        values = [line.removeprefix("cpsr: ").split(" / ") for line in different]
        if all(
            len(pair) == 2 and int(pair[0], 16) & ~0xC00 == int(pair[1], 16) for pair in values
        ):
            return (
                "operations leave BTYPE at 0 after br and blr; the emulated pages are not guarded"
            )
    insn = decode(raw) if arch == "x86_64" else None
    if insn is not None and not insn.encoding and insn.key in (0xC2, 0xCA) and raw[-1] & 0x80:
        return "the emulator takes the immediate of ret for signed"
    if insn is not None and insn.key in (0x1A4, 0x1AC) and insn.rip_relative:
        return "the emulator forgets the immediate of shld and shrd in an address relative to rip"
    return ""


def compare(bench: Bench, raw: bytes, site: int, rng: random.Random, tally: Tally) -> None:
    raw = aimed(bench.arch, raw, site)
    bench.place(raw, site)
    text = raw.hex()
    states = [state(bench.arch, raw, rng) for _ in range(4 if ALL else 2)]
    manager = bench.guest.manager
    plans = {}
    for rules in Rules:
        try:
            plans[rules] = manager.plan(site, rules, manager.mode)
        except ProbeRejectedError as error:
            tally.rejected[f"{rules.value}: {error.rule}"] += 1
    tally.counts["forms"] += 1
    if not plans:
        tally.counts["rejected by both rules"] += 1
        return
    repeats = any(plan.repeats for plan in plans.values())
    wanted = [bench.in_place(values, site, repeats) for values in states]
    if all(result.stop and result.stop[0] is StopKind.TRAP for result in wanted):
        tally.counts["refused by the emulator in place too"] += 1
    jobs = [(rules, plan) for rules, plan in plans.items() if plan.raw == raw[: plan.size]]

    def check(how: str, values: State, expected: Result, got: Result) -> None:
        tally.counts[f"runs {how}"] += 1
        different = expected.differences(got)
        if different and (cause := known(bench.arch, raw, different)):
            tally.counts[f"known to differ: {cause}"] += 1
        elif different:
            tally.different.append(f"{text} {how}: {'; '.join(different)}")
        if not bench.idle():
            tally.different.append(f"{text} {how}: not idle afterwards")

    for rules, plan in jobs:
        name = rules.value
        done = plan.verdict is Verdict.EMULATED
        for handlers in (False, True):
            probe = bench.probe(site, rules, handlers)
            manager.register(probe)
            point = manager.points[site]
            if not handlers:
                tally.counts[f"{name} {'emulated' if done else point.how}"] += 1
            for values, expected in zip(states, wanted, strict=True):
                if expected.pc == site and not expected.stop:
                    tally.counts["branches to itself"] += 1
                    continue
                how = f"{name} {'manager' if handlers else 'fast'}"
                check(how, values, expected, bench.fast(values, site, expected.pc))
            if not handlers:
                for values, expected in zip(states, wanted, strict=True):
                    check(f"{name} phases", values, expected, bench.phases(values, site))
            manager.unregister(probe)


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_unprobed_fast_and_phases_agree(arch: str) -> None:
    pool = forms(arch)
    if ALL:
        try:
            pool = sorted({*pool, *collect(arch)})
        except SysrootUnavailable as error:
            print(error)
    else:
        extra = pool[: len(pool) - len(pool[150:])]
        pool = extra + random.Random(3).sample(pool[150:], SAMPLE[arch] - len(extra))
    benches = [Bench(arch, Mode.STRICT, 16 * PAGE), Bench(arch, Mode.STRICT, 0)]
    tally = Tally()
    for index, raw in enumerate(pool):
        rng = random.Random(f"{arch} {raw.hex()}")
        site = SITES[arch][rng.random() < 0.2]
        for bench in benches if ALL else benches[index % 2 :][:1]:
            compare(bench, raw, site, rng, tally)
    for what, count in sorted(tally.counts.items()):
        print(f"{arch}: {count} {what}")
    for rule, count in sorted(tally.rejected.items()):
        print(f"{arch}: {count} rejected by {rule}")
    assert not tally.different, f"{len(tally.different)} differ:\n" + "\n".join(tally.different)
    assert tally.counts["kprobe boosted"] > 20
    assert tally.counts["uprobe xol"] > 20
