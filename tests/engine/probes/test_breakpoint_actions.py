"""Every instruction form runs the same unprobed, probed by the fast executor, and by phases.

In place: one step of the bare CPU. The fast executor: the breakpoint's action, and the same with
handlers through the manager. The phases: a single step of the copy in its slot and the fix-ups.
Compared are all registers, data, stack, and kind and address of a fault. In the normal run this is
a sample; `KPROBE_TUI_FORMS=all` takes all kept forms and those of the sysroot's programs, and
`KPROBE_TUI_FORMS=c3,ff10` just those, from as many states.
"""

import multiprocessing
import os
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import pytest
from forms import State, aimed, collect, forms, state
from probekit import CODE, CODE_SIZE, DATA, DATA_SIZE, STACK, STACK_SIZE, ProbeGuest
from sysroot import SysrootUnavailable

from engine.arch.aarch64.decode import classify
from engine.arch.aarch64.operations import EMULATED
from engine.arch.plan import Mode, Rules, Verdict
from engine.arch.x86_64.decode import decode
from engine.cpu.base import Stop, StopKind
from engine.errors import EngineError, ProbeRejectedError
from engine.probes.breakpoint_machine import BreakpointMachine
from engine.probes.current_hit import Status
from engine.probes.hit_machine import PhaseWatch
from engine.probes.kprobe import Kprobe, Uprobe

WANTED = os.environ.get("KPROBE_TUI_FORMS", "")
ALL = bool(WANTED)
CHUNK = 100
SAMPLE = {"x86_64": 1500, "aarch64": 800, "riscv64": 500}
SITES = {
    "x86_64": (CODE + 0x1000, CODE + 0x1FFD),
    "aarch64": (CODE + 0x1000, CODE + 0x1FFC),
    "riscv64": (CODE + 0x1000, CODE + 0x1FFE),
}
PAGE = 4096
_BTYPE = 3 << 10
NEAR_PAGES = (16, 0)
"""Pages of slots beside the code, of one bench and of the other."""


@dataclass
class Result:
    """What one execution came to: where, what stopped it, and everything visible."""

    pc: int
    stop: tuple[object, ...]
    registers: dict[str, int]
    data: bytes = field(repr=False)
    stack: bytes = field(repr=False)

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

    def differ(self, raw: bytes, site: int, what: str) -> None:
        self.different.append(f"{raw.hex()} at {site:#x} {what}")

    def add(self, other: "Tally") -> None:
        self.counts += other.counts
        self.rejected += other.rejected
        self.different += other.different


class Bench:
    """One guest on which forms are tried."""

    def __init__(self, arch: str, mode: Mode, near: int) -> None:
        self.guest = ProbeGuest(arch, mode=mode, near=near)
        self.arch = arch
        unit = self.guest.arch.breakpoint
        if arch == "aarch64":
            unit = bytes.fromhex("000020d4")  # not one of the kernel's
        elif arch == "riscv64":
            unit = bytes.fromhex("0290")
        self.fill = unit * (CODE_SIZE // len(unit))
        self.guest.load(self.fill)
        self.clean = self.guest.cpu.save()
        self.saved: dict[int, object] = {}
        self.where = " (slots near)" if near else " (slots far)"
        # Uprobes have the same slots on both benches.
        self.rules = (*Rules,) if near or not ALL else (Rules.KPROBE,)
        self.back = len(self.guest.arch.breakpoint) if self.guest.arch.trap_advances_pc else 0

    def place(self, raw: bytes, site: int) -> None:
        memory = self.guest.memory
        self.saved.clear()
        for at in SITES[self.arch]:
            memory.poke(at, self.fill[:16])
        memory.poke(site, raw)

    def set(self, values: State, site: int) -> None:
        guest = self.guest
        guest.memory.sync()
        if id(values) in self.saved:
            guest.cpu.restore(self.saved[id(values)])
        else:
            guest.cpu.restore(self.clean)
            for name, value in values.registers.items():
                guest.cpu.write_register(name, value)
            self.saved[id(values)] = guest.cpu.save()
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
        trapped = stop.kind is StopKind.TRAP and stop.trap.name == "BREAKPOINT"
        if trapped and pc - self.back != site:
            pc, stop = pc - self.back, None
        elif stop.access == "execute" and pc == reached:
            stop = None
        return self.result(pc, stop)

    def phases(self, values: State, site: int) -> Result:
        self.set(values, site)
        machine = BreakpointMachine(self.guest.manager.hits)
        PhaseWatch(machine).run()
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
        return (
            manager.hits.current.status is Status.IDLE
            and not manager.area.busy
            and not manager.area.owners
        )


def known(arch: str, raw: bytes, different: list[str]) -> str:
    """Why an instruction may end otherwise than the emulator's own, "" if it may not."""
    if arch == "aarch64" and classify(int.from_bytes(raw, "little")) in EMULATED:
        values = [line.removeprefix("cpsr: ").split(" / ") for line in different]
        if values and all(
            len(pair) == 2 and not (int(pair[0], 16) ^ int(pair[1], 16)) & ~_BTYPE
            for pair in values
        ):
            return "operations leave BTYPE alone, as Linux does; no page of a guest is guarded"
    insn = decode(raw) if arch == "x86_64" else None
    if insn is not None and insn.key in (0xF6, 0xF7) and insn.reg == 1 and insn.rip_relative:
        return "refused where it stands: the emulator would miss the address of f6 /1 and f7 /1"
    shifts = insn is not None and insn.key in (0x1A4, 0x1AC) and insn.rip_relative
    if shifts and all(line.startswith("eflags: ") for line in different):
        return "flags that shld and shrd leave undefined: software there, the emulator in a slot"
    return ""


def compare(bench: Bench, raw: bytes, site: int, rng: random.Random, tally: Tally) -> None:
    raw = aimed(bench.arch, raw, site)
    bench.place(raw, site)
    states = [state(bench.arch, raw, rng) for _ in range(3 if ALL else 2)]
    manager = bench.guest.manager
    plans = {}
    for rules in bench.rules:
        try:
            plans[rules] = manager.plan(site, rules, manager.mode)
        except ProbeRejectedError as error:
            tally.rejected[f"{rules.value}: {error.rule}"] += 1
    if not plans:
        tally.counts[f"forms rejected{bench.where}"] += 1
        return
    repeats = any(plan.repeats for plan in plans.values())
    wanted = [bench.in_place(values, site, repeats) for values in states]
    if all(result.stop and result.stop[0] is StopKind.TRAP for result in wanted):
        tally.counts[f"forms refused by the emulator in place too{bench.where}"] += 1
    for rules, plan in plans.items():
        if plan.raw != raw[: plan.size]:
            continue
        name = rules.value
        done = plan.verdict is Verdict.EMULATED
        for handlers in (False, True):
            probe = bench.probe(site, rules, handlers)
            manager.register(probe)
            if not handlers:
                how = "emulated" if done else manager.points[site].how
                tally.counts[f"forms {name} {how}{bench.where}"] += 1
            for values, expected in zip(states, wanted, strict=True):
                if site <= expected.pc < site + len(raw) and not expected.stop:
                    cause = known(bench.arch, raw, []) or "a branch into itself"
                    tally.counts[f"runs left out: {cause}"] += 1
                    continue
                how = f"{name} {'manager' if handlers else 'fast'}"
                check(bench, raw, how, values, site, expected, tally)
            if not handlers:
                for values, expected in zip(states, wanted, strict=True):
                    check(bench, raw, f"{name} phases", values, site, expected, tally)
            manager.unregister(probe)


def check(
    bench: Bench,
    raw: bytes,
    how: str,
    values: State,
    site: int,
    expected: Result,
    tally: Tally,
) -> None:
    """One run against what was expected.

    Raises:
        BenchBroken: the machinery is in no state to go on with other forms.
    """
    tally.counts[f"runs {how}"] += 1
    broken = ""
    try:
        if how.endswith("phases"):
            got = bench.phases(values, site)
        else:
            got = bench.fast(values, site, expected.pc)
    except EngineError as error:
        broken, different = repr(error), [repr(error)]
    else:
        different = expected.differences(got)
        if not bench.idle():
            broken = "not idle afterwards"
            different.append(broken)
    if different and (cause := known(bench.arch, raw, different)):
        tally.counts[f"runs known to differ: {cause}"] += 1
    elif different:
        tally.counts["runs that differ"] += 1
        if broken:
            different.append(f"from {shown(values)} to {expected}")
        tally.differ(raw, site, f"{how}: {'; '.join(different)}")
    if broken:
        tally.counts["runs that broke the machinery"] += 1
        raise BenchBroken


class BenchBroken(Exception):  # noqa: N818 - the finding of this test, not an error of ours
    """The bench must be built anew."""


def shown(values: State) -> str:
    registers = values.registers
    return " ".join(f"{name}={value:#x}" for name, value in registers.items() if value < 1 << 64)


def run(arch: str, pool: list[tuple[int, bytes]]) -> Tally:
    """Compare a part of the pool: numbers and instructions."""
    benches: dict[int, Bench] = {}
    tally = Tally()
    for index, raw in pool:
        tally.counts["forms"] += 1
        rng = random.Random(f"{arch} {raw.hex()}")
        site = SITES[arch][rng.random() < 0.2]
        for number in (0, 1) if ALL else (index % 2,):
            if number not in benches:
                benches[number] = Bench(arch, Mode.STRICT, NEAR_PAGES[number] * PAGE)
            try:
                compare(benches[number], raw, site, rng, tally)
            except BenchBroken:
                del benches[number]
            except EngineError as error:
                tally.differ(raw, site, repr(error))
                del benches[number]
    return tally


def run_all(arch: str, pool: list[tuple[int, bytes]]) -> Tally:
    """The whole pool, by as many processes as there are processors."""
    tally = Tally()
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as executor:
        chunks = [pool[at : at + CHUNK] for at in range(0, len(pool), CHUNK)]
        for number, part in enumerate(executor.map(run, [arch] * len(chunks), chunks), 1):
            tally.add(part)
            print(f"{arch}: {number} of {len(chunks)} parts", flush=True)
            for line in part.different:
                print(line, flush=True)
    return tally


def pool_of(arch: str) -> list[tuple[int, bytes]]:
    pool = forms(arch)
    if WANTED == "all":
        try:
            more, counts = collect(arch)
        except SysrootUnavailable as error:
            pytest.skip(str(error))
        for program, count in counts.items():
            print(f"{arch}: {count} forms in {program}")
        pool = sorted({*pool, *more})
        random.Random(3).shuffle(pool)  # all chunks take as long, and show all kinds early
    elif WANTED:
        pool = [bytes.fromhex(word) for word in WANTED.split(",")]
        pool = [raw for raw in pool if arch != "aarch64" or len(raw) == 4]
    else:
        extra = pool[: len(pool) - len(pool[150:])]
        pool = extra + random.Random(3).sample(pool[150:], SAMPLE[arch] - len(extra))
    return list(enumerate(pool))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_unprobed_fast_and_phases_agree(arch: str) -> None:
    pool = pool_of(arch)
    tally = (run_all if WANTED == "all" else run)(arch, pool)
    for what, count in sorted(tally.counts.items()):
        print(f"{arch}: {count} {what}")
    for rule, count in sorted(tally.rejected.items()):
        print(f"{arch}: {count} rejected by {rule}")
    assert not tally.different, f"{len(tally.different)} differ:\n" + "\n".join(tally.different)
    if not ALL or WANTED == "all":
        assert tally.counts["forms kprobe boosted (slots near)"] > 20
        assert tally.counts["forms uprobe xol (slots near)"] > 20
