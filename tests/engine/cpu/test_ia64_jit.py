"""Machine code for the IA-64 core: when it is made, what it leaves to Python, when it ends."""

import random
import signal
from collections.abc import Iterator
from types import FrameType

import pytest
from ia64again import again, speculating
from ia64kit import CODE, DATA, BareIa64, Guest, code, program, trace

from engine.cpu.base import Stop, StopKind
from engine.cpu.ia64 import core as core_module
from engine.cpu.ia64 import jit as jit_module
from engine.cpu.ia64.alat import ENTRIES
from engine.cpu.ia64.core import Ia64Cpu
from engine.cpu.ia64.jit import Jit, JitEntry, available

_END = "M break.m 0x0"
needs_library = pytest.mark.skipif(not available(), reason="llvmlite is not installed")


def _loop(*lines: str) -> bytes:
    """Lines that are executed ar.lc + 1 times."""
    body = code(*lines)
    end = CODE + len(body)
    return body + code(f"B br.cloop.sptk.few {CODE:#x}", address=end) + code(_END)


def _jit(cpu: BareIa64) -> Jit:
    assert cpu._jits
    return cpu._jits[0]


@needs_library
def test_machine_code_is_made_once_a_block_has_run_often() -> None:
    cpu = BareIa64(_loop("M adds r8=1,r8"), jit_after=50)
    cpu.write_register("lc", 40)
    cpu.run()
    assert (cpu.read_register("r8"), _jit(cpu).compiled) == (41, 0)
    cpu.write_register("lc", 999_999)
    cpu.write_register("ip", CODE)
    cpu.run()
    assert (cpu.read_register("r8"), _jit(cpu).compiled) == (1_000_041, 1)


def test_everything_works_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_module, "available", lambda: False)
    cpu = BareIa64(_loop("M adds r8=1,r8"), jit_after=1)
    cpu.write_register("lc", 40)
    cpu.run()
    assert (cpu.read_register("r8"), cpu._jits) == (41, ())


@needs_library
def test_a_library_that_does_not_load_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_module, "compiler", lambda: None)
    cpu = BareIa64(_loop("M adds r8=1,r8"), jit_after=1)
    cpu.write_register("lc", 40)
    cpu.run()
    assert (cpu.read_register("r8"), _jit(cpu).compiled) == (41, 0)

    def fails() -> None:
        raise OSError("no such library")

    monkeypatch.undo()
    monkeypatch.setattr(jit_module, "Compiler", fails)
    assert jit_module.compiler.__wrapped__() is None


@needs_library
def test_a_region_that_does_not_pay_goes_back_to_python_for_a_while() -> None:
    cpu = BareIa64(_loop("M mov.m r9=ar.44", "M add r8=r8,r9"), jit_after=2, counter=lambda: 3)
    cpu.write_register("lc", 299)
    cpu.run()
    assert cpu.read_register("r8") == 900
    stands = [getattr(block, "__self__", block) for block in cpu._code.blocks[0].values()]
    assert any(isinstance(found, JitEntry) and found.level for found in stands)


@needs_library
@pytest.mark.parametrize("after", [1, 20])
def test_a_loop_that_rewrites_itself_runs_what_it_wrote(after: int) -> None:
    other = code("M adds r8=100,r8", address=CODE + 0x10)
    lines = ("I cmp.eq p6,p7=r9,r0", "M adds r8=1,r8", "M adds r9=-1,r9")
    stores = ("M (p06) st8 [r14]=r16", "M (p06) st8 [r15]=r17")
    cpu = BareIa64(_loop(*lines, *stores), jit_after=after, writable_code=True)
    values = {"r9": 60, "lc": 99, "r14": CODE + 0x10, "r15": CODE + 0x18}
    values |= {"r16": int.from_bytes(other[:8], "little")}
    values |= {"r17": int.from_bytes(other[8:], "little")}
    for name, value in values.items():
        cpu.write_register(name, value)
    cpu.run()
    assert cpu.read_register("r8") == 61 + 39 * 100


@needs_library
def test_a_page_that_is_taken_away_is_refused() -> None:
    cpu = BareIa64(_loop("M st8 [r14]=r8", "M adds r8=1,r8"), jit_after=1)
    cpu.write_register("r14", DATA)
    cpu.write_register("lc", 9)
    cpu.run()
    assert cpu.read(DATA, 1) == b"\x09"
    cpu.map([cpu.regions[0], cpu.regions[2]])
    cpu.write_register("ip", CODE)
    assert cpu.run() == Stop(StopKind.FAULT, address=DATA, access="write")


@needs_library
def test_a_step_action_is_not_passed_by_in_a_region() -> None:
    cpu = BareIa64(_loop("M adds r8=1,r8", f"B br.few {CODE + 0x20:#x}"), jit_after=1)
    cpu.write_register("lc", 9)
    cpu.run()
    seen: list[int] = []

    def action(came: int) -> int:
        seen.append(came)
        return came

    cpu.step_at(CODE + 0x20, action)
    cpu.write_register("lc", 9)
    cpu.write_register("ip", CODE)
    cpu.run()
    assert seen == [CODE + 0x21] * 10


@needs_library
def test_an_exception_while_machine_code_asks_python_comes_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpu = BareIa64(code("M nop.m 0x0", "M ld8 r8=[r14]", _END), jit_after=1)
    cpu.write_register("r14", DATA)

    def fails(page: int, write: int) -> int:
        raise RuntimeError("asked")

    monkeypatch.setattr(_jit(cpu), "_fill", fails)
    with pytest.raises(RuntimeError, match="asked"):
        cpu.run()
    assert cpu.read_register("ip") == CODE + 0x10
    monkeypatch.undo()
    assert cpu.run().kind is StopKind.TRAP


@pytest.fixture
def alarm() -> Iterator[list[BareIa64]]:
    """Cores that the signals of a timer halt."""
    cores: list[BareIa64] = []

    def handler(number: int, frame: FrameType | None) -> None:
        for cpu in cores:
            cpu.halt()

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)  # again: the first may come before the run
    yield cores
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@needs_library
def test_a_signal_of_the_host_is_seen_in_an_endless_loop(alarm: list[BareIa64]) -> None:
    cpu = BareIa64(code("M adds r8=1,r8", f"B br.few {CODE:#x}"), jit_after=1)
    alarm.append(cpu)
    for _ in range(100):  # a signal may come before the run has got anywhere
        assert cpu.run() == Stop(StopKind.HALTED)
        if cpu.read_register("r8") > 1000:
            break
    assert cpu.read_register("r8") > 1000


def _everything(cpu: Ia64Cpu) -> tuple[object, ...]:
    names = [
        *(f"{kind}{at}" for kind in "rf" for at in range(128)),
        *("pr", "cfm", "bsp", "pfs", "lc", "ec", "unat", "fpsr", "ip"),
    ]
    return cpu.read_registers(names), dict(cpu.alat)


@needs_library
@pytest.mark.parametrize(
    ("name", "times"),
    [("sha_O3", 2), ("sha_O0", 1), ("intdiv_O2", 2), ("a_rse", 40), ("a_rot", 60), ("a_spec", 60)],
)
def test_programs_that_divide_and_speculate_are_the_same(
    name: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their main runs again, so that what it has left behind is met."""
    seen = []
    for after in (0, 20):
        monkeypatch.setattr("ia64kit.JIT_AFTER", after)
        guest = again(program(name), times)
        assert guest.run() is None
        seen.append((guest.exit, guest.output, _everything(guest.cpu)))
        assert after == 0 or sum(jit.compiled for jit in guest.cpu._jits) > 3
    assert seen[0] == seen[1]


@needs_library
def test_data_speculation_stays_in_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    entered = _entries(monkeypatch)
    cores = [speculating(3000, after) for after in (0, 20)]
    assert cores[0].run() == cores[1].run()
    assert _everything(cores[0]) == _everything(cores[1])
    assert len(cores[1].alat) == 1
    assert len(entered) < 5


def _entries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where machine code was entered."""
    entered: list[int] = []
    enter = Jit.enter

    def noted(jit: Jit, entry: JitEntry) -> int:
        entered.append(entry.ip)
        return enter(jit, entry)

    monkeypatch.setattr(Jit, "enter", noted)
    return entered


@needs_library
@pytest.mark.parametrize(
    "line", ["I (p7) break.i 0x1", "M (p7) break.m 0x1", "B (p7) break.b 0x1"]
)
def test_a_break_that_does_not_happen_is_passed(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = _entries(monkeypatch)
    cpu = BareIa64(_loop("M adds r8=1,r8", line, "M adds r9=1,r9"), jit_after=20)
    cpu.write_register("lc", 2999)
    cpu.run()
    assert (cpu.read_register("r8"), cpu.read_register("r9")) == (3000, 3000)
    assert len(entered) < 5
    cpu.write_register("p7", 1)
    cpu.write_register("ip", CODE)
    stop = cpu.run()
    assert (stop.kind, cpu.read_register("ip") & ~15) == (StopKind.TRAP, CODE + 16)
    assert (cpu.read_register("r8"), cpu.read_register("r9")) == (3001, 3000)


@needs_library
def test_blocks_that_run_together_are_made_machine_code_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modules: list[int] = []
    compile_ = jit_module.Compiler.compile

    def noted(compiler: jit_module.Compiler, text: str, *names: str) -> tuple[object, object]:
        modules.append(len(names))
        return compile_(compiler, text, *names)

    monkeypatch.setattr(jit_module.Compiler, "compile", noted)
    calls = [f"B br.call.sptk.few b0={CODE + 0x400 + 0x20 * at:#x}" for at in range(4)]
    leaves = b"".join(
        code("M adds r8=1,r8", "B br.ret.sptk.many b0", address=CODE + 0x400 + 0x20 * at)
        for at in range(4)
    )
    loop = _loop(*calls)
    cpu = BareIa64(loop + bytes(0x400 - len(loop)) + leaves, jit_after=40)
    cpu.write_register("lc", 499)
    cpu.run()
    assert cpu.read_register("r8") == 2000
    assert _jit(cpu).compiled >= 8
    assert len(modules) <= 3


def _near(source: random.Random) -> tuple[int, int, int]:
    """Factors and a number of about their product's size, most of the time."""
    x, y, z = (
        source.getrandbits(1) << 81
        | 0xFFFF + source.randrange(-3, 4) << 64
        | 1 << 63
        | source.choice((0, (1 << 63) - 1, source.getrandbits(63)))
        for _ in range(3)
    )
    significands = x & (1 << 64) - 1, y & (1 << 64) - 1
    exponents = (x >> 64 & 0x1FFFF) + (y >> 64 & 0x1FFFF) - 0xFFFF
    product = significands[0] * significands[1]
    kind = source.random()
    if kind < 0.3:  # the product but for its last bits
        exponents += product.bit_length() - 127
        top = (product >> product.bit_length() - 64) + source.choice((0, 0, 1, -1))
        z = source.getrandbits(1) << 81 | exponents << 64 | min(max(top, 1 << 63), (1 << 64) - 1)
    elif kind < 0.7:  # at all distances
        far = source.choice((0, 1, 2, *range(60, 67), *range(125, 130), 190, 192))
        exponents += source.choice((far, -far))
        z = z & (1 << 81 | (1 << 64) - 1) | exponents << 64
    elif kind < 0.8:  # an integer, to be brought into the usual form
        x, y, z = (
            0x1003E << 64 | source.getrandbits(source.randrange(64)),
            0xFFFF << 64 | 1 << 63,
            0,
        )
    return x, y, z


@needs_library
@pytest.mark.parametrize(
    "text", ["fma.s1 f8=f6,f7,f9", "fnma.s1 f8=f6,f7,f9", "fms.d.s0 f8=f6,f7,f9"]
)
def test_fused_operations_are_the_same(text: str) -> None:
    cores = [BareIa64(code(f"F {text}", _END), jit_after=after) for after in (0, 1)]
    source = random.Random(text)
    for _ in range(400):
        numbers = _near(source)
        fpsr = 0x9804C0270033F | source.choice((0, 0x22 << 26, 0x3F << 26))
        for cpu in cores:
            for name, value in zip(("f6", "f7", "f9"), numbers, strict=True):
                cpu.write_register(name, value)
            cpu.write_register("fpsr", fpsr)
            cpu.write_register("ip", CODE)
            cpu.run()
        first, second = (cpu.read_registers(("f8", "fpsr")) for cpu in cores)
        assert first == second, [hex(value) for value in numbers]


@needs_library
def test_registers_that_only_python_writes_do_not_hinder() -> None:
    cpu = BareIa64(_loop("M adds r8=1,r8", "M mov.m ar.rsc=r9", "M adds r10=1,r10"), jit_after=5)
    cpu.write_register("r9", 3)
    cpu.write_register("lc", 99)
    cpu.run()
    assert cpu.read_registers(("r8", "r10")) == (100, 100)


@needs_library
def test_the_oldest_entry_of_the_alat_goes() -> None:
    lines = [f"M ld8.a r{at}=[r9]" for at in range(32, 72)]
    seen = []
    for after in (0, 1):
        cpu = BareIa64(code(*lines, _END), jit_after=after)
        cpu.write_register("cfm", 50)
        cpu.write_register("r9", DATA)
        cpu.run()
        seen.append([register for _, register in cpu.alat])
    assert seen[0] == seen[1]
    assert len(seen[0]) == ENTRIES
    assert seen[0] == sorted(seen[0])


@needs_library
def test_the_time_of_a_long_run_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    elf = program("deep_O2")
    start = next(trace("a_rp"))
    start["ip"] = f"{int.from_bytes(elf[24:32], 'little'):x}"
    seen = []
    for after in (0, 100):
        monkeypatch.setattr("ia64kit.JIT_AFTER", after)
        guest = Guest(elf, start)
        guest.cpu.count_blocks(True)
        assert guest.run() is None
        seen.append((guest.exit, guest.output, guest.cpu.blocks(), list(guest.cpu.last_branches)))
    assert seen[0] == seen[1]


@needs_library
def test_entries_of_frames_below_the_first_one() -> None:
    """More frames may be left than were entered: as where a program switches its stacks."""
    seen = []
    for after in (0, 1):
        cpu = BareIa64(code("M ld8.a r32=[r9]", "M ld8.c.nc r32=[r9]", _END), jit_after=after)
        cpu.write_register("cfm", 8)
        cpu.write_register("r9", DATA)
        cpu.state.below = -2000
        for _ in range(2):
            cpu.write_register("ip", CODE)
            cpu.run()
        seen.append(dict(cpu.alat))
    assert seen[0] == seen[1] == {("r", 1024 - 2000): (DATA, DATA + 8)}


_KEEPING = (
    "M st8.spill [r10]=r20",
    "M ld8.fill r21=[r10]",
    "I tnat.z p7,p6=r21",
    "M (p6) add r22=r21,r8",
    "I (p6) adds r8=1,r8",
    "I chk.s.i r9,{far:#x}",
    "B br.call.sptk.few b0={leaf:#x}",
)
_LEAF = (
    "M alloc r34=ar.pfs,4,3,0",
    "M adds r35=1,r9",
    "I mov.i ar.pfs=r34",
    "B br.ret.sptk.many b0",
)


@needs_library
@pytest.mark.parametrize("clocked", [False, True])
def test_code_with_a_nat_in_a_register_stays_in_machine_code(
    clocked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is spilled and filled, asked for, and left in a frame below; r9 is none."""
    entered = _entries(monkeypatch)
    places = {"far": CODE + 0x400, "leaf": CODE + 0x800}
    loop = _loop(*(line.format(**places) for line in _KEEPING))
    leaf = code(*_LEAF, address=places["leaf"])
    seen = []
    for after in (0, 20):
        cpu = BareIa64(loop + bytes(0x800 - len(loop)) + leaf, jit_after=after)
        cpu.count_blocks(clocked)
        for name, value in {"cfm": 8 | 6 << 7, "r10": DATA, "lc": 2999}.items():
            cpu.write_register(name, value)
        for name in ("nat20", "nat33", "nat2"):
            cpu.write_register(name, 1)
        stop = cpu.run()
        seen.append((stop, _everything(cpu), cpu.blocks()))
        assert cpu.read_registers(("r8", "nat21", "nat22", "nat33")) == (3000, 1, 1, 1)
    assert seen[0] == seen[1]
    assert len(entered) < 20


@needs_library
@pytest.mark.parametrize(
    "line",
    [
        *("M add r8=r8,r20", "M ld8 r8=[r20]", "M st8 [r10]=r20", "I tbit.z p6,p7=r20,3"),
        *("I mov b6=r20", "M setf.sig f8=r20", "I chk.s.i r20,0x4000000000000400"),
    ],
)
def test_reading_a_nat_is_seen(line: str) -> None:
    body = _loop("M adds r9=1,r9", "I cmp.eq p8,p9=50,r9", f"{line[0]} (p8){line[1:]}")
    seen = []
    for after in (0, 1, 10):
        cpu = BareIa64(body + bytes(0x400 - len(body)) + code(_END), jit_after=after)
        for name, value in {"nat20": 1, "lc": 99, "r10": DATA}.items():
            cpu.write_register(name, value)
        stop = cpu.run()
        nats = cpu.read_registers([f"nat{at}" for at in range(128)])
        seen.append((stop, _everything(cpu), nats))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("clocked", [False, True])
def test_a_nat_that_nothing_can_read_any_more_is_forgotten(clocked: bool) -> None:
    """It lies beyond the frame, once its function has returned."""
    lines = ("M adds r8=1,r8", f"B br.call.sptk.few b0={CODE + 0x800:#x}")
    loop = _loop(*lines)
    leaf = code(
        *("M alloc r34=ar.pfs,4,3,0", "M ld8.fill r35=[r10]", "I mov.i ar.pfs=r34"),
        "B br.ret.sptk.many b0",
        address=CODE + 0x800,
    )
    cpu = BareIa64(loop + bytes(0x800 - len(loop)) + leaf)
    cpu.count_blocks(clocked)
    cpu.write_register("cfm", 8 | 6 << 7)
    cpu.write_register("r10", DATA)
    cpu.write_register("unat", (1 << 64) - 1)
    cpu.write_register("lc", 2)
    cpu.run()
    assert cpu.read_registers([f"nat{at}" for at in range(128)]) == (0,) * 128
    assert cpu.state.nats
    cpu.write_register("unat", 0)
    cpu.write_register("lc", 999)
    cpu.write_register("ip", CODE)
    cpu.run()
    assert not cpu.state.nats


@needs_library
def test_what_python_executes_for_a_region_knows_of_its_rotation() -> None:
    """A pair of one register that rotates and one that does not is legal every other time."""
    body = code("M ldfps f6,f33=[r10]", "M adds r8=1,r8")
    loop = body + code(f"B br.ctop.sptk.few {CODE:#x}", address=CODE + len(body)) + code(_END)
    seen = []
    for after in (0, 1):
        cpu = BareIa64(loop, jit_after=after)
        cpu.write_register("r10", DATA)
        cpu.write_register("lc", 9)
        seen.append((cpu.run(), _everything(cpu)))
    assert seen[0] == seen[1]
    assert cpu.read_register("r8") == 1
