"""Uprobes on five-byte no-operations that become calls, as Linux 6.18 makes them."""

from pathlib import Path

import pytest
from compiled import build
from controlkit import held, sample
from guestrun import run
from jumpkit import NEVER, after
from probekit import CODE, DATA, NEAR, SP, STACK, PlainCode, ProbeGuest
from sessionkit import Guest, loaded

from engine.arch.base import TrapKind
from engine.arch.plan import Mode
from engine.arch.x86_64.nop_calls import NOP_CALLS
from engine.cpu.base import StopKind
from engine.cpu.ram import PAGE
from engine.image import ElfImage
from engine.image.symbols import SymbolTable
from engine.probes.detourroom import DetourRoom
from engine.probes.hit_machine import Phase, PhaseRecord, PhaseWatch
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.nop_call import NopCallTechnique
from engine.probes.point import ProbePoint
from engine.probes.regs import PtRegs
from engine.probes.site import FunctionCode
from engine.session.program.opening import OpenedProgram
from engine.session.program.verdicts import Verdicts
from engine.session.protocol import commands as cmd
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing

UPROBES = Path(__file__).parents[2] / "data" / "uprobes"
EXTRA = UPROBES / "kf_extra"
REDZONE = f"p:g/red {EXTRA}:0x1238"
NOP = bytes.fromhex("0f1f440000")
REGISTERS = "ax=%ax bx=%bx cx=%cx di=%di sp=%sp r11=%r11 ip=%ip flags=%flags top=+0(%sp)"


@pytest.fixture(scope="module")
def nops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose functions have no-operations of five bytes."""
    source = (UPROBES / "nops.S").read_text()
    return build(tmp_path_factory.mktemp("nops"), "nops", source, "-nostdlib", "-static")


def place(program: Path, name: str, more: int = 0) -> str:
    """PATH:OFFSET of a place behind a symbol."""
    image = ElfImage.open(program)
    found = SymbolTable(image).find(name)
    assert found is not None
    offset = image.file_offset(found.address + more)
    assert offset is not None
    return f"{program}:{offset:#x}"


def traced(
    program: Path,
    technique: str,
    *lines: str,
    args: tuple[str, ...] = (),
    kernel: bool = False,
    hits: int = NEVER,
) -> tuple[str, str, list[str]]:
    """A run's trace, its output, and what stood at its places in the end.

    From so many hits on they are recorded in the guest.
    """
    mode = Mode.KERNEL if kernel else Mode.STRICT
    with loaded(program, *args, technique=technique) as guest:
        after(guest, hits)
        tracing = guest.tracing(TraceOptions(mode=mode))
        for line in lines:
            tracing.definitions.define(line)
        guest.run(tracing)
        manager = guest.session.probes().manager
        assert manager.recorded is not None
        assert bool(manager.recorded) == (hits != NEVER)
        kinds = [point.technique for point in manager.placed()]
        return guest.text, guest.output.hex(), kinds


# -- as a kernel does it ------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "out"), [("kernel", "0 1 1"), ("strict", "0 0 0")])
def test_the_red_zone_is_damaged_as_by_a_live_kernel(mode: str, out: str) -> None:
    """Linux 6.18 printed "0 1 1": the first hit is a breakpoint's, the next ones are calls."""
    text, written, kinds = traced(
        EXTRA, "nop5", REDZONE, args=("redzone",), kernel=mode == "kernel"
    )
    assert bytes.fromhex(written).decode().strip() == out
    assert text.count("red: (0x401238)") == 3
    assert kinds == ["nop5" if mode == "kernel" else "breakpoint"]


def test_diff_shows_the_damage_and_its_cause() -> None:
    options = ("diff", "--technique", "nop5", "--mode", "kernel", "-e", REDZONE)
    damaged = run(*options, str(EXTRA), "redzone", cwd=UPROBES)
    assert damaged.code == 1
    assert "g/red: a call, which damages the program from the second hit on" in damaged.err
    assert "32 to 1 bytes below the stack pointer are read later" in damaged.err


def test_check_warns_of_it() -> None:
    done = run("check", "--technique", "nop5", "-e", REDZONE, str(EXTRA), cwd=UPROBES)
    assert "warning nop5-red-zone: from its second hit on Linux 6.18 damages" in done.out
    assert "no nop5: nop5-red-zone: the red zone is in use" in done.out


@pytest.mark.parametrize("technique", ["auto", "breakpoint", "nop5"])
def test_verdicts_tell_of_each_era(nops: Path, technique: str) -> None:
    """What is asked for comes first; each with its conditions."""
    program = OpenedProgram.open(GuestConfig(guest=str(nops)))
    verdicts = Verdicts(program.arch, program.inspected(), Mode.STRICT, technique)
    outcome = {}
    for name, more in (("calm_nop", 0), ("leaf", 10), ("entry", 5)):
        (found,) = verdicts.places.resolve(place(nops, name, more))
        placed = verdicts.judge(found)
        titles = ["Linux 6.18" in title for title, _ in placed.eras]
        assert titles == ([True, False] if technique == "nop5" else [False, True])
        checks = dict(zip(titles, (checks for _, checks in placed.eras), strict=True))[True]
        outcome[name] = [check.rule for check in checks if not check.ok]
        if technique == "nop5":
            assert placed.technique == ("breakpoint" if outcome[name] else "nop5")
    assert outcome == {"calm_nop": [], "leaf": ["nop5-red-zone"], "entry": ["nop5-nop"]}


# -- the same as a breakpoint -------------------------------------------------------------


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("hits", [NEVER, 1, 50])
def test_events_are_those_of_breakpoints(nops: Path, kernel: bool, hits: int) -> None:
    """Registers, stack, times and what the program computes; of several forms and probes."""
    calm = REGISTERS if hits == NEVER else REGISTERS.replace("flags=%flags", "")  # by the engine
    lines = [
        f"p:g/calm {place(nops, 'calm_nop')} {calm}",
        f"p:g/too {place(nops, 'calm_nop')} cx=%cx",
        f"p:g/entry {place(nops, 'entry')} {calm}",
        f"r:g/back {place(nops, 'entry')} v=$retval ip=%ip",
        f"p:g/wide {place(nops, 'many')} {calm}",
        f"p:g/wait {place(nops, 'many', 7)} {calm}",
    ]
    wanted = traced(nops, "breakpoint", *lines, kernel=kernel)
    text, out, kinds = traced(nops, "nop5", *lines, kernel=kernel, hits=hits)
    assert kinds.count("nop5") == 4
    assert text == wanted[0]
    assert out == wanted[1]


def test_calls_that_return_to_alike_addresses_have_code_of_their_own(tmp_path: Path) -> None:
    """There is room for stubs of so many; the others are left to the engine."""
    groups = 13
    group = ".balign 256, 0x90\n" + 3 * ".byte 0x0f, 0x1f, 0x44, 0, 0\nlea 1(%rax), %rax\n"
    source = f"""
        .globl _start
        .text
_start: mov $20, %ebx
1:      stc
        .balign 256, 0x90
        .globl first
first:  {groups * group}
        adc $0, %rsi
        dec %ebx
        jnz 1b
        mov $60, %eax
        xor %edi, %edi
        syscall
"""
    program = build(tmp_path, "alike", source, "-nostdlib", "-static")
    places = [256 * number + more for number in range(groups) for more in (0, 9, 18)]
    lines = [
        f"p:g/e{more:x} {place(program, 'first', more)} ax=%ax cx=%cx si=%si r11=%r11 sp=%sp"
        for more in places
    ]
    wanted = traced(program, "breakpoint", *lines)
    with loaded(program, technique="nop5") as guest:
        after(guest, 1)
        tracing = guest.tracing()
        for line in lines:
            tracing.definitions.define(line)
        guest.run(tracing)
        manager = guest.session.probes().manager
        assert {point.technique for point in manager.placed()} == {"nop5"}
        room = (PAGE - NOP_CALLS.stubs) // NOP_CALLS.stub_size
        assert manager.recorded is not None
        assert len(places) > len(manager.recorded) == room
        assert guest.text == wanted[0]
    assert wanted[0].count(": (") == 20 * len(places)


def test_a_filter_and_a_trigger_see_what_they_see_at_breakpoints(nops: Path) -> None:
    found = []
    for technique, hits in (("breakpoint", NEVER), ("nop5", NEVER), ("nop5", 1)):
        with loaded(nops, technique=technique) as guest:
            after(guest, hits)
            tracing = guest.tracing()
            tracing.definitions.define(f"p:g/calm {place(nops, 'calm_nop')} cx=%cx")
            tracing.set_filter("g", "calm", "cx < 100")
            guest.run(tracing)
            found.append(guest.text)
    assert found[0] == found[1] == found[2]
    assert 0 < found[0].count("calm: (") < 300


@pytest.mark.parametrize("name", ["threads", "fork"])
@pytest.mark.parametrize("hits", [NEVER, 2])
def test_threads_and_new_processes_are_as_with_breakpoints(
    tmp_path: Path, name: str, hits: int
) -> None:
    source = _SPOT + {"threads": _THREADS, "fork": _FORK}[name]
    program = build(tmp_path, name, source, "-O1", "-static", "-pthread")
    line = f"p:g/e {place(program, 'spot')} di=%di"
    wanted, out, _ = traced(program, "breakpoint", line)
    text, written, kinds = traced(program, "nop5", line, hits=hits)
    assert kinds == ["nop5"]
    assert (text, written) == (wanted, out)
    assert text.count(" e: (") == {"threads": 60, "fork": 30}[name]


@pytest.mark.parametrize("hits", [NEVER, 1])
def test_a_program_that_steps_itself_sees_its_own_instructions(tmp_path: Path, hits: int) -> None:
    program = build(tmp_path, "steps", _SPOT + _STEPS, "-O1", "-static", "-no-pie")
    _, out, _ = traced(program, "nop5", f"p:g/e {place(program, 'spot')} di=%di", hits=hits)
    told = bytes.fromhex(out).decode()
    seen, others = told.splitlines()
    assert others == "0 other", "nothing of the machinery's"
    if hits != NEVER:
        assert seen.split() == ["0", "5", "9"]


def test_a_new_process_has_the_calls_of_the_old_one(tmp_path: Path) -> None:
    """Its first hit is one, and damages what is below its stack pointer."""
    program = build(tmp_path, "leaf", _LEAF, "-O1", "-static")
    line = f"p:g/e {place(program, 'spot', 5)}"
    _, out, _ = traced(program, "nop5", line, kernel=True)
    assert bytes.fromhex(out) == b"1 0 0\n"


_SPOT = r"""
__asm__(".globl spot\n.type spot,@function\nspot: .byte 0x0f,0x1f,0x44,0,0\n"
        "lea 1(%rdi),%rax\nret\n.size spot,.-spot\n");
long spot(long);
"""
_THREADS = r"""
#include <pthread.h>
#include <stdio.h>
static void *work(void *a) { long s = 0; for (int i = 0; i < 20; i++) s += spot((long)a + i);
  return (void *)s; }
int main(void) { pthread_t t[3]; long sum = 0; void *one;
  for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, work, (void *)(i * 100));
  for (int i = 0; i < 3; i++) { pthread_join(t[i], &one); sum += (long)one; }
  printf("%ld\n", sum); }
"""
_STEPS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
extern char __executable_start, etext;
static volatile long other;
static void seen(int s, siginfo_t *i, void *c) {
  long pc = ((ucontext_t *)c)->uc_mcontext.gregs[REG_RIP], at = pc - (long)spot;
  if (0 <= at && at < 10) printf("%ld ", at);
  other += pc < (long)&__executable_start || pc > (long)&etext; }
int main(void) { struct sigaction a = {0}; a.sa_sigaction = seen; a.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &a, 0); for (int i = 0; i < 9; i++) spot(i);
  __asm__ volatile("pushf; orl $0x100,(%%rsp); popf" ::: "memory", "cc");
  spot(1);
  __asm__ volatile("pushf; andl $~0x100,(%%rsp); popf" ::: "memory", "cc");
  printf("\n%ld other\n", other); }
"""
_FORK = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) { long s = 0; for (int i = 0; i < 10; i++) s += spot(i);
  int status; pid_t p = fork(); for (int i = 0; i < 10; i++) s += spot(i);
  if (!p) _exit(s & 127);
  waitpid(p, &status, 0); printf("%ld %d\n", s, WEXITSTATUS(status)); }
"""
_LEAF = r"""
__asm__(".globl spot\n.type spot,@function\nspot: mov %rdi,-8(%rsp)\n"
        ".byte 0x0f,0x1f,0x44,0,0\nmov -8(%rsp),%rax\nret\n.size spot,.-spot\n");
long spot(long);
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) { int status, first = spot(5) == 5, second = spot(5) == 5;
  if (!fork()) _exit(spot(5) == 5);
  wait(&status); printf("%d %d %d\n", first, second, WEXITSTATUS(status)); }
"""


def test_forms_are_damaged_as_by_a_live_kernel(tmp_path: Path) -> None:
    """Each function keeps its argument below the stack pointer: 1 where it is found again.

    A running Linux 6.18 did the same to each form.
    """
    forms = {
        "nopl": ("0x0f,0x1f,0x44,0,0", "1 0 0"),
        "data": ("0x66,0x66,0x66,0x66,0x90", "1 0 0"),
        "wait": ("0xf3,0x66,0x66,0x66,0x90", "1 0 0"),
        "xchg": ("0x66,0x66,0x66,0x41,0x90", "1 0 0"),
        "rexr": ("0x44,0x0f,0x1f,0x40,0", "1 0 0"),
        "jump": ("0xe9,0,0,0,0", "1 1 1"),
        "lea": ("0x48,0x8d,0x64,0x24,0", "1 1 1"),
        "move": ("0x66,0x66,0x48,0x89,0xc0", "1 1 1"),
        "two_pages": ("0x0f,0x1f,0x44,0,0", "1 1 1"),
    }
    functions, calls = [], []
    for name, (code, _) in forms.items():
        where = ".balign 4096\\n.zero 4088\\n" if name == "two_pages" else ""
        functions.append(_LEAF_OF.format(name=name, code=code, where=where))
        calls.append(f"for (int i = 0; i < 3; i++) *p++ = '0' + (f_{name}(5) == 5);")
    program = build(
        tmp_path,
        "forms",
        "\n".join((*functions, _FORMS % " ".join(calls))),
        *("-O1", "-static", "-no-pie"),
    )
    lines = [f"p:g/{name} {place(program, f'f_{name}', 5)}" for name in forms]
    _, out, _ = traced(program, "nop5", *lines, kernel=True)
    printed = bytes.fromhex(out).decode()
    found = [printed[at : at + 3] for at in range(0, len(printed), 3)]
    wanted = {name: damage.replace(" ", "") for name, (_, damage) in forms.items()}
    assert dict(zip(forms, found, strict=True)) == wanted


_LEAF_OF = r"""
__asm__("{where}.globl f_{name}\n.type f_{name},@function\nf_{name}: mov %rdi,-8(%rsp)\n"
        ".byte {code}\nmov -8(%rsp),%rax\nret\n.size f_{name},.-f_{name}\n");
long f_{name}(long);
"""
_FORMS = r"""
#include <unistd.h>
int main(void) { char text[99], *p = text; %s
  write(1, text, p - text); return 0; }
"""


# -- phase by phase -----------------------------------------------------------------------


def _point(guest: Guest) -> ProbePoint:
    (point,) = guest.session.probes().manager.placed()
    return point


def _stepped(guest: Guest, tracing: Tracing) -> list[PhaseRecord]:
    """Come to the point, and through the hit there."""
    manager, kernel = guest.session.probes().manager, guest.session.kernel
    while manager.regs.ip != _point(guest).address:
        kernel.step()
    machine = manager.machine(_point(guest))
    assert machine.began == machine.point.address
    return PhaseWatch(machine).run()


def test_a_hit_is_led_through_the_trampoline(nops: Path) -> None:
    """The first one is a breakpoint's; events, times and output are the same."""
    line = f"p:g/calm {place(nops, 'calm_nop')} {REGISTERS}"
    wanted = traced(nops, "breakpoint", line)
    with loaded(nops, technique="nop5") as guest:
        tracing = guest.tracing()
        tracing.definitions.define(line)
        tracing.start()
        first = _stepped(guest, tracing)
        assert [record.phase for record in first] == [
            *(Phase.ARMED, Phase.TRAP, Phase.PRE, Phase.EMULATED, Phase.POST, Phase.RESUME)
        ]
        assert "the first hit: e8 " in first[2].text
        for _ in range(3):
            records = _stepped(guest, tracing)
            assert [record.phase for record in records] == [
                *(Phase.ARMED, Phase.CALL, Phase.SAVE, Phase.SYSCALL, Phase.RESTORE),
                Phase.RETURN,
            ]
            assert records[-1].after == _point(guest).address + len(NOP)
            assert "32 bytes below the program's stack pointer" in records[2].text
            sp = guest.session.probes().manager.regs.sp
            changed_at = {address for address, old, new in records[2].memory if old != new}
            assert {sp - 32} <= changed_at <= {sp - 16, sp - 24, sp - 32}
            changed = {name for name, (old, new) in records[-1].registers.items() if old != new}
            assert changed == {"rsp"}
        guest.session.run()
        tracing.finish()
        assert (guest.text, guest.output.hex()) == wanted[:2]


def test_a_stop_stands_in_front_of_the_call(nops: Path) -> None:
    """Phases, the view of the trampoline, and a run from there: nothing is counted twice."""
    with held(str(nops), technique="nop5") as guest:
        guest.do(cmd.Define(f"p:g/calm {place(nops, 'calm_nop')} cx=%cx"))
        guest.do(cmd.StopOnHit((1,), on=True))
        for hits in (0, 1):
            assert guest.do(cmd.Continue()).location == "calm+0xa"
            assert len(guest.events) == hits
        assert guest.view.probes[0].technique == "nop5"
        for _ in range(3):
            view = guest.do(cmd.StepPhase())
        assert view.hit is not None
        assert view.hit.detour is not None
        assert (view.hit.how, view.hit.detour.what, view.hit.next) == (
            *("called", "called"),
            "syscall",
        )
        parts = {part.name: part for part in view.hit.detour.parts}
        assert view.hit.detour.at == parts["syscall"].start
        assert [text for _, text in parts["syscall"].code] == ["syscall"]
        assert view.location == "calm+0xa"
        while view.hit is not None and view.hit.next:
            view = guest.do(cmd.StepPhase())
        assert len(guest.events) == 2
        guest.do(cmd.StopOnHit((1,), on=False))
        assert guest.do(cmd.Continue()).exit_code == 0
        assert (len(guest.events), guest.view.probes[0].hits) == (300, 300)


# -- the machinery ------------------------------------------------------------------------

WINDOW = 64 * PAGE
LOOP = NOP + bytes.fromhex("ffcf 75f7 cc")  # dec edi; jnz back; int3


def bench(code: bytes = LOOP, mode: Mode = Mode.KERNEL, at: int = CODE) -> ProbeGuest:
    """A guest with one function."""
    found: list[FunctionCode] = []
    room = DetourRoom(
        (NEAR + 32 * PAGE, 32 * PAGE),
        (),
        lambda address: (PlainCode(), found[0], 0),  # type: ignore[arg-type,return-value]
    )
    guest = ProbeGuest("x86_64", near=WINDOW, room=room, technique="nop5", mode=mode)
    found.append(FunctionCode(guest.arch, at, code))
    guest.load(code, at)
    guest["rdi"] = 40
    return guest


def uprobe(guest: ProbeGuest, address: int = CODE, **words: object) -> Uprobe:
    """A registered uprobe."""
    probe = Uprobe("guest", address, **words)  # type: ignore[arg-type]
    probe.addr = address
    guest.manager.register(probe)
    return probe


def technique(guest: ProbeGuest) -> NopCallTechnique:
    """The calls of a guest."""
    (found,) = guest.manager.techniques.replacing
    assert isinstance(found, NopCallTechnique)
    return found


@pytest.mark.parametrize("served", [False, True])
def test_bytes_change_in_the_order_of_the_kernels(
    monkeypatch: pytest.MonkeyPatch, served: bool
) -> None:
    """int3; behind it the call's end, then its first byte; int3 first on the way back."""
    guest = bench()
    written: list[tuple[int, bytes]] = []
    patch = guest.memory.patch

    def seen(address: int, data: bytes, **words: bool) -> None:
        if CODE <= address < CODE + len(NOP):
            written.append((address - CODE, data))
        patch(address, data, **words)

    monkeypatch.setattr(guest.memory, "patch", seen)
    calls: list[tuple[int, int]] = []
    probe = uprobe(guest, record=lambda thread: None)
    if served:
        probe.handler = lambda probe, regs: calls.append((regs.ip, regs.sp))
        guest.manager.refresh(guest.manager.points[CODE])
    point = guest.manager.points[CODE]
    assert (point.technique, point.why and point.why.rule) == ("breakpoint", "nop5-hit")
    assert guest.memory.read(CODE, 5) == b"\xcc" + NOP[1:]
    assert guest.run_to_trap() == CODE + len(LOOP) - 1
    assert probe.hits == 40
    assert set(calls) == ({(CODE, SP)} if served else set())
    assert point.technique == "nop5"
    call = guest.memory.read(CODE, 5)
    page = technique(guest).code.pages[0]
    assert call == NOP_CALLS.call(CODE, page)
    assert guest.memory.read(page + 19 - 1, 1) == b"\xcc"
    assert guest.overlay.original(page, 19) == NOP_CALLS.code
    assert written[-2:] == [(1, call[1:]), (0, call[:1])]
    written.clear()
    guest.manager.unregister(probe)
    assert written[:2] == [(0, b"\xcc"), (1, NOP[1:])]
    assert guest.memory.read(CODE, 5) == NOP
    uprobe(guest)
    assert guest.memory.read(CODE, 1) == b"\xcc"
    assert technique(guest).code.pages == (page,)  # it stays


def test_a_second_probe_leaves_the_call_and_a_stop_stands_in_front_of_it() -> None:
    guest = bench()
    first = uprobe(guest, record=lambda thread: None)
    guest.run_to_trap()
    second = uprobe(guest, record=lambda thread: None)
    assert guest.manager.points[CODE].technique == "nop5"
    assert guest.memory.read(CODE, 1) == b"\xe8"
    guest.pc, guest["rdi"] = CODE, 5
    guest.run_to_trap()
    assert (first.hits, second.hits) == (45, 5)


def test_what_handlers_leave_is_the_programs() -> None:
    """Registers that the trampoline saves too, the stack pointer, and where to go on."""
    guest = bench(LOOP[:-1] + b"\x90\xcc")
    seen: list[int] = []

    def handler(probe: Uprobe, regs: PtRegs) -> None:
        seen.append(regs["rcx"])
        regs["rax"], regs["rcx"], regs["r11"] = 1 + regs["rax"], 2 + regs["rcx"], 3
        if len(seen) == 5:
            regs.ip = CODE + len(LOOP) - 1

    uprobe(guest, handler=handler)
    guest["rax"] = guest["rcx"] = 0
    assert guest.run_to_trap() == CODE + len(LOOP)
    assert (guest["rax"], guest["rcx"], guest["r11"], guest.sp) == (5, 10, 3, SP)
    assert seen == [0, 2, 4, 6, 8]


def test_a_probe_that_is_taken_out_by_its_handler_is_gone() -> None:
    guest = bench()
    probe = uprobe(guest)
    left = iter([0, 0, Uprobe.REMOVE])
    probe.handler = lambda probe, regs: next(left)
    guest.manager.refresh(guest.manager.points[CODE])
    guest.run_to_trap()
    assert probe.hits == 3
    assert guest.memory.read(CODE, 5) == NOP


def test_a_program_in_the_trampoline_by_itself_goes_on() -> None:
    """As on Linux the system call does nothing there; without a stack it is illegal."""
    guest = bench()
    uprobe(guest)
    guest.run_to_trap()
    (page,) = technique(guest).code.pages
    end = CODE + len(LOOP) - 1
    guest.sp = SP - 8
    guest.memory.write(SP - 8, end.to_bytes(8, "little"))
    guest.pc, guest["rcx"] = page, 7
    assert guest.run_to_trap() == end
    assert (guest["rcx"], guest.sp) == (7, SP)
    guest.pc, guest.sp = page + NOP_CALLS.syscall, DATA - PAGE
    stop = guest.run()
    assert stop.trap is TrapKind.ILLEGAL


def test_a_full_stack_stops_the_program_at_its_probe() -> None:
    guest = bench()
    uprobe(guest)
    guest.run_to_trap()
    guest.pc, guest.sp, guest["rax"] = CODE, STACK + 16, 9
    stop = guest.run()
    assert (stop.kind, stop.address) == (StopKind.FAULT, STACK - 8)
    assert (guest.pc, guest.sp, guest["rax"]) == (CODE, STACK + 16, 9)


def test_it_gives_way_to_a_probe_inside_its_bytes() -> None:
    guest = bench()
    uprobe(guest)
    guest.run_to_trap()
    inside = uprobe(guest, CODE + 2)
    point = guest.manager.points[CODE]
    assert (point.technique, point.why and point.why.rule) == ("breakpoint", "other-probe")
    guest.manager.unregister(inside)
    assert point.technique == "nop5"


# -- conditions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "at", "kprobe", "rule"),
    [
        (LOOP, CODE, True, "nop5-uprobe"),
        (b"\x90" + LOOP, CODE, False, "nop5-nop"),
        (LOOP, CODE + PAGE - 4, False, "nop5-page"),
        (LOOP, CODE + PAGE - 5, False, "nop5-hit"),
        (bytes.fromhex("6666664190") + LOOP, CODE, False, "nop5-idle"),
        (bytes.fromhex("89 7c 24 f8") + NOP + bytes.fromhex("8b 44 24 f8 cc"), CODE, False, ""),
    ],
)
def test_it_stays_a_breakpoint_and_says_why(code: bytes, at: int, kprobe: bool, rule: str) -> None:
    mode = Mode.STRICT if rule in ("", "nop5-idle") else Mode.KERNEL
    guest = bench(code, mode, at)
    address = at if rule else at + 4
    if kprobe:
        guest.manager.register(Kprobe(addr=address))
    else:
        uprobe(guest, address)
    point = guest.manager.points[address]
    assert point.technique == "breakpoint"
    assert point.why is not None
    assert point.why.rule == (rule or "nop5-red-zone")
    told = any("stays a breakpoint" in text for text in guest.notices)
    assert told is (rule != "nop5-hit")


def test_other_architectures_say_that_there_is_none() -> None:
    with loaded(sample("aarch64", "recursion"), technique="nop5") as guest:
        notices = guest.session.probes().notices
    assert notices == ["all stay breakpoints: nop5 probes cannot be had in this guest (aarch64)"]


@pytest.mark.parametrize(
    ("code", "nop"),
    [
        ("0f1f440000", True),
        ("6666666690", True),
        ("6666664890", True),
        ("f366666690", True),  # pause
        ("6666664190", True),  # xchg rax, r8: Linux is wrong about it
        ("440f1f4000", True),
        ("410f1f4000", True),
        ("e900000000", False),
        ("488d642400", False),
        ("66664889c0", False),
        ("0f1f4c0000", False),
        ("0f1f00", False),
        ("662e0f1f840000000000", False),
    ],
)
def test_what_linux_takes_for_a_no_operation(code: str, nop: bool) -> None:
    """As a live 6.18 has shown: it calls from none of the others."""
    assert NOP_CALLS.is_nop(bytes.fromhex(code)) is nop
