"""Displaced instructions of all kinds: a window that is jumped over ends as it does in place."""

import random
from collections import Counter

import pytest
from forms import State, aimed, forms, state
from probekit import (
    CODE,
    CODE_SIZE,
    DATA,
    DATA_SIZE,
    NEAR,
    STACK,
    STACK_SIZE,
    PlainCode,
    ProbeGuest,
)

from engine.arch.plan import Mode
from engine.arch.program import (
    Base,
    Compare,
    FetchArg,
    FieldType,
    Operand,
    PredicateOp,
    RecordLayout,
    Source,
    ValueKind,
)
from engine.arch.recording import Recording
from engine.cpu.ram import PAGE
from engine.errors import ProbeRejectedError
from engine.probes.detourroom import DetourRoom
from engine.probes.kprobe import Kprobe
from engine.probes.site import FunctionCode
from engine.trace.staging import Staging

SITE = CODE + 0x1000
SAMPLE = {"x86_64": 350, "aarch64": 250}
NOPS = {"x86_64": b"\x90" * 8, "aarch64": bytes.fromhex("1f2003d5") * 2}
WINDOW = 8 << 20
_BTYPE = 3 << 10
UNSEEN = {"x86_64": (), "aarch64": ("x16", "x17")}


def recordings(arch: str) -> list[Recording]:
    """Nothing; a filter of registers, passed and not; memory, filtered, that may fault; text."""
    first = Base(Source.REGISTER, "rdi" if arch == "x86_64" else "x3")
    number, loaded = FieldType(ValueKind.UNSIGNED, 4), FieldType(ValueKind.BITFIELD, 4, 0, 5, 3)
    plain = RecordLayout.of((FetchArg("a", "a", first, (), number),))
    memory = RecordLayout.of((FetchArg("a", "a", Base(Source.STACK_POINTER), (16,), loaded),))
    second = Base(Source.REGISTER, "rsi" if arch == "x86_64" else "x1")
    word = FieldType(ValueKind.HEX, 8)
    texts = (
        FetchArg("m", "m", first, (), word),
        FetchArg("n", "n", second, (), word),
        FetchArg("a", "a", first, (0,), FieldType(ValueKind.STRING, 0)),
        FetchArg("b", "b", Base(Source.STACK_POINTER), (8,), FieldType(ValueKind.STRING, 0)),
        FetchArg("c", "c", Base(Source.COMM), (), FieldType(ValueKind.STRING, 0)),
    )
    some = PredicateOp(Operand.NUMBER, Compare.LT, 24, 4, value=1 << 31, target=2)
    none = PredicateOp(Operand.NUMBER, Compare.GT, 24, 4, value=(1 << 32) - 1, target=2)
    shapes = [
        (RecordLayout.of(()), ()),
        (plain, (some,)),
        (plain, (none,)),
        (memory, (some,)),
        (RecordLayout.of(texts), ()),
    ]
    return [Recording(1, layout, SITE, 0, SITE, ops) for layout, ops in shapes]


class Bench:
    """A guest with one function of some instructions, and jumps."""

    def __init__(self, arch: str) -> None:
        start = NEAR + PAGE * 64
        room = DetourRoom(
            (start, NEAR + WINDOW - start),
            (),
            lambda address: (PlainCode(), self.function, 0),  # type: ignore[arg-type,return-value]
        )
        self.guest = guest = ProbeGuest(
            arch, mode=Mode.STRICT, near=WINDOW, room=room, technique="jump"
        )
        unit = guest.arch.breakpoint if arch == "x86_64" else bytes.fromhex("000020d4")
        self.fill = unit * (CODE_SIZE // len(unit))
        guest.load(self.fill)
        self.back = len(guest.arch.breakpoint) if guest.arch.trap_advances_pc else 0
        self.function = FunctionCode(guest.arch, SITE, b"")
        cpu = guest.cpu
        self.rows = 0
        guest.manager.techniques.attach(Staging(self.count), lambda: b"forms")
        self.clean = cpu.save()

    def count(self, rows: bytes) -> None:
        self.rows += len(rows) // 24

    def put(self, code: bytes) -> None:
        self.guest.memory.poke(SITE, self.fill[:64])
        self.guest.memory.poke(SITE, code)
        self.function = FunctionCode(self.guest.arch, SITE, code)

    def run(self, values: State) -> tuple[object, ...]:
        """Where it stops, why, the registers, data, stack and the ticks that it took."""
        guest = self.guest
        guest.memory.sync()
        guest.cpu.restore(self.clean)
        for name, value in values.registers.items():
            guest.cpu.write_register(name, value)
        guest.memory.poke(DATA, values.data)
        guest.memory.poke(STACK, values.stack)
        guest.pc = SITE
        guest.cpu.expect(SITE)  # a fetch that was refused leaves its tick to what comes next
        before = guest.cpu.blocks()
        stop = guest.run()
        pc = guest.pc
        if stop.trap.name == "BREAKPOINT":
            pc -= self.back
        registers = guest.registers()
        for name in UNSEEN[guest.arch.name]:
            del registers[name]
        if "cpsr" in registers:
            registers["cpsr"] &= ~_BTYPE
        memory = guest.memory
        data = memory.read(DATA, DATA_SIZE), memory.read(STACK, STACK_SIZE)
        why = (stop.kind, stop.trap, stop.address, stop.access)
        return pc, why, registers, data, guest.cpu.blocks() - before


def test_a_program_that_steps_itself() -> None:
    """With the trap flag set each of its instructions traps once, a window's too."""
    code = bytes.fromhex("9c 81042400010000 9d 90 4889f8 4801f0 90 90")
    bench = Bench("x86_64")
    guest = bench.guest

    def steps() -> list[int]:
        bench.put(code)
        guest.cpu.restore(bench.clean)
        guest.pc, guest.sp = SITE, STACK + PAGE
        found = []
        while guest.run().trap.name == "SINGLE_STEP":
            found.append(guest.pc - SITE)
        return found

    wanted = steps()
    assert wanted == [10, 13, 16, 17, 18]
    bench.put(code)
    bench.function = FunctionCode(guest.arch, SITE + 10, code[10:])
    probe = Kprobe(addr=SITE + 10, record=lambda thread: None)
    probe.recording = Recording(1, RecordLayout.of(()), SITE + 10, 0, SITE + 10)
    guest.manager.register(probe)
    assert guest.manager.points[SITE + 10].technique == "jump"
    guest.cpu.restore(bench.clean)
    guest.pc, guest.sp = SITE, STACK + PAGE
    found = []
    while (stop := guest.run()).trap.name == "SINGLE_STEP":
        found.append(guest.pc - SITE)
        guest.manager.busy()  # as before the guest goes on
    assert stop.trap.name == "BREAKPOINT"
    assert found == wanted


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_windows_end_as_in_place(arch: str) -> None:
    bench = Bench(arch)
    guest, manager = bench.guest, bench.guest.manager
    guest.cpu.count_blocks(True)
    rng = random.Random(7)
    pool = forms(arch)
    pool = [*pool[:150], *rng.sample(pool[150:], SAMPLE[arch])]
    counts: Counter[str] = Counter()
    different: list[str] = []
    runs = 0
    for raw in pool:
        front = rng.choice((b"", NOPS[arch][:4])) if arch == "x86_64" else b""
        raw = aimed(arch, raw, SITE + len(front))
        bench.put(front + raw + NOPS[arch])
        states = [state(arch, raw, rng) for _ in range(2)]
        wanted = [bench.run(values) for values in states]
        probe = Kprobe(addr=SITE, record=lambda thread: None)
        probe.recording = rng.choice(recordings(arch))
        try:
            manager.register(probe)
        except ProbeRejectedError:
            counts["no probe"] += 1
            continue
        point = manager.points[SITE]
        if point.replacement is None:
            assert point.why is not None
            counts[f"no jump: {point.why.rule}"] += 1
        else:
            counts["jumps"] += 1
            for values, expected in zip(states, wanted, strict=True):
                got = bench.run(values)
                runs += 1
                if got != expected:
                    names = ("pc", "stop", "registers", "memory", "ticks")
                    parts = zip(names, got, expected, strict=True)
                    odd = ", ".join(name for name, one, two in parts if one != two)
                    where = f"{got[0]:#x} {got[1]} / {expected[0]:#x} {expected[1]}"
                    different.append(f"{front.hex()} {raw.hex()}: {odd}: {where}")
                    break
        manager.unregister(probe)
    print(arch, dict(counts), runs)
    assert not different, "\n".join(different)
    assert counts["jumps"] > 150
