"""Function tracing of whole programs, against runs one instruction at a time and themselves."""

import random
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import archkit
import pytest
from archkit import FIRST_COMPILED
from graphkit import PROGRAMS, compiled, decoded, shape, traced
from sessionkit import loaded
from sysroot import CHECKOUT, SysrootUnavailable, sysroot
from unwindkit import Stepper, flow_at, session_of

from engine.arch.frames import Flow
from engine.arch.plan import Mode
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs
from engine.session import GuestConfig, Session
from engine.session.headless.effect import compared
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.graphing import Graphing
from engine.session.tracing.tracing import Tracing
from engine.trace.graph import EXIT, Calls, GraphProbe
from engine.trace.rows import Event

RETURNS = CHECKOUT / "tests" / "data" / "returns"
SAMPLES = CHECKOUT / "samples" / "bin"
GUESTS = [
    f"{arch}/unw-{kind}"
    for arch in map(archkit.debian, archkit.COMPILED)
    for kind in ("O0", "O2", "O2fp", "Os", "O2strip")
]


class Shadow:
    """The calls of a program that runs one instruction at a time."""

    def __init__(self, entries: dict[int, int]) -> None:
        self.entries = entries
        self.seen: list[tuple[str, int, int]] = []
        self._frames: list[list[int]] = [[]]
        self._depth = 0
        self._last = Flow.NEXT
        self._flows: dict[int, Flow] = {}

    def visit(self, now: Stepper) -> None:
        session = now.session
        pc = session.cpu.read_register(session.arch.roles.pc)
        if self._last is Flow.CALL:
            self._frames.append([])
        elif self._last is Flow.RETURN:
            for function in reversed(self._frames.pop()):
                self._depth -= 1
                self.seen.append(("<", function, self._depth))
        function = self.entries.get(pc, 0)
        if function:
            self.seen.append((">", function, self._depth))
            self._depth += 1
            self._frames[-1].append(function)
        if pc not in self._flows:
            self._flows[pc] = flow_at(session, pc)[0]
        self._last = self._flows[pc]


def entries_of(graphing: Graphing) -> dict[int, int]:
    found = {}
    for probe in graphing.probes.values():
        assert isinstance(probe, GraphProbe)
        found[probe.addr or 0] = probe.function
    return found


def compare(first: Session, second: Session, mode: Mode, patch: pytest.MonkeyPatch) -> int:
    """Trace one, step the other: how many calls and returns are the same."""
    done = traced(first, keep=TraceOptions(mode=mode))
    assert done.check() < 10
    shadow = Shadow(entries_of(done.graphing))
    Stepper(second).run(patch, shadow.visit)
    assert shape(done.events) == shadow.seen
    return len(shadow.seen)


# In kernel mode a call that does not move the stack pointer ends its caller's instance on AArch64,
# as in Linux (arch_uretprobe_is_alive): `_start` counts as left.
@pytest.mark.parametrize(
    ("name", "mode"),
    [(name, mode) for name in GUESTS for mode in Mode if mode is Mode.STRICT or "amd" in name],
)
def test_as_one_instruction_at_a_time(
    name: str, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compare(session_of(name), session_of(name), mode, monkeypatch) > 250


def fresh(path: Path, *args: str, root: str | None = None) -> Session:
    """A session that `Stepper` closes."""
    sink = SinkStream(lambda data: None)
    config = GuestConfig(str(path), args=args, root=root, isolated=True)
    return Session(config, (FeedStream(b"", ended=True), sink, sink))


@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize("name", ["recursion", "sort", "words"])
@pytest.mark.slow
def test_samples_one_instruction_at_a_time(
    arch: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = SAMPLES / arch / name
    with loaded(path) as first:
        assert compare(first.session, fresh(path), Mode.STRICT, monkeypatch) > 100


GLOBS = {"sqlite3": ("*", "libsqlite3.so.0:*"), "python3": ("PyDict_*", "_PyEval_*", "PyList_*")}
"""What is traced where it is not all of the program's own."""


def program(name: str, arch: str) -> tuple[Path, Path, tuple[str, ...]]:
    """(program, its tree, arguments)."""
    try:
        root = sysroot(arch)
    except SysrootUnavailable as error:
        pytest.skip(str(error))
    path, *args = PROGRAMS[name]
    if not (root / path[1:]).exists():
        pytest.skip(f"no {name} for {arch}")
    return root / path[1:], root, tuple(args)


@pytest.mark.slow
@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_busybox_one_instruction_at_a_time(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, root, _ = program("busybox", arch)
    words = ("printf", "%s-%d\\n", "a", "7")
    with loaded(path, *words, root=str(root)) as one:
        second = fresh(path, *words, root=str(root))
        assert compare(one.session, second, Mode.STRICT, monkeypatch) > 100
        assert one.out == "a-7\n"


@pytest.mark.slow
@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_and_returns_are_balanced(name: str, arch: str) -> None:
    path, root, args = program(name, arch)
    globs = GLOBS.get(name, ("*",))
    with loaded(path, *args, root=str(root)) as plain:
        plain.run()
        wanted = plain.out
    with loaded(path, *args, root=str(root)) as guest:
        done = traced(guest.session, *globs)
        assert guest.out == wanted
        assert done.check() <= 5
        calls = done.graphing.calls
        assert calls is not None
        assert calls.exits > 2_000
        hits = sum(probe.hits for probe in done.graphing.probes.values())
        assert calls.entries == hits


@pytest.mark.slow
@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize("name", ["busybox", "lua", "sqlite3"])
def test_every_function_traced_has_no_effect(name: str, arch: str) -> None:
    """Output, system calls, clock and memory are those of a plain run."""
    path, root, args = program(name, arch)
    config = GuestConfig(str(path), args=args, root=str(root), isolated=True)
    seen: list[Calls] = []

    def place(session: Session) -> None:
        graphing = Graphing(Tracing(session, TraceOptions(output="/dev/null")))
        graphing.add("*")
        assert graphing.calls is not None
        seen.append(graphing.calls)

    effect = compared(config, place, lambda session: nullcontext())
    assert not effect.lines
    assert seen[0].entries > 20


def moment(event: Event) -> tuple[str, int, int, int | None]:
    """What an event tells but for depths; that a call was left is seen at the next event."""
    left = event.name == EXIT and event.values[2]
    return event.name, event.address, 0 if left else event.time, event.returned_to


@pytest.mark.slow
@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_functions_come_and_go(arch: str) -> None:
    """A thousand changes at random moments of a run lose nothing and invent nothing."""
    path, root, args = program("lua", arch)
    with loaded(path, *args, root=str(root)) as guest:
        reference = traced(guest.session)
        names = {
            probe.function: str(probe).partition("+")[0]
            for probe in reference.graphing.probes.values()
            if isinstance(probe, GraphProbe)
        }
        called = sorted({names[event.address] for event in reference.events})
    chosen = random.Random(arch)
    rows: list[bytes] = []
    log: list[tuple[int, frozenset[str]]] = [(-1, frozenset())]
    with loaded(path, *args, root=str(root)) as guest:
        session = guest.session
        tracing = Tracing(session, TraceOptions(), consumer=rows.append)
        graphing = Graphing(tracing)
        now: set[str] = set()

        def change(probe: Kprobe, regs: PtRegs) -> int:
            if len(log) <= 1000 and chosen.random() < 0.7:
                name = chosen.choice(called)
                if name in now:
                    assert graphing.remove(name) == 1
                    now.remove(name)
                elif chosen.random() < 0.002:
                    assert graphing.clear() == len(now)
                    now.clear()
                else:
                    assert graphing.add(name).count == 1
                    now.add(name)
                log.append((session.cpu.now(), frozenset(now)))
            return 0

        changers = chosen.sample(called, len(called) // 2)
        session.probes().manager.register_all(
            [Kprobe(symbol_name=name, pre_handler=change) for name in changers]
        )
        tracing.start()
        session.run()
        tracing.finish()
        events = decoded(tracing, b"".join(rows))
    assert len(log) == 1001
    wanted, stack, at = [], [], 0
    for event in reference.events:
        while at + 1 < len(log) and log[at + 1][0] < event.time:
            at += 1
        if event.name != EXIT:
            stack.append(names[event.address] in log[at][1])
        if stack.pop() if event.name == EXIT else stack[-1]:
            wanted.append(moment(event))
    assert list(map(moment, events)) == wanted
    assert len(wanted) > 1000


LEFT = ("left.c", "thrown.cpp")


@pytest.mark.slow
@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize("source", LEFT)
def test_functions_left_without_a_return(source: str, arch: str, tmp_path: Path) -> None:
    """The guests count their own returns: longjmp, exceptions, signal handlers."""
    guest = compiled(tmp_path, RETURNS / source, arch, "-O2")
    with loaded(guest) as plain:
        plain.run()
        known = {row.split()[0]: int(row.split()[1]) for row in plain.out.splitlines()}
    with loaded(guest) as run:
        done = traced(run.session, *known)
        names = {
            p.function: str(p).partition("+")[0]
            for p in done.graphing.probes.values()
            if isinstance(p, GraphProbe)
        }
        assert done.check() < 10
        ends = [e for e in done.events if e.name == EXIT]
        returned = Counter(names[e.address] for e in ends if not e.values[2])
        assert returned == {name: count for name, count in known.items() if count}
        assert sum(1 for e in ends if e.values[2]) > 0
    with loaded(guest) as run:
        done = traced(run.session)
        assert done.check() < 10


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_a_handler_on_a_stack_of_its_own(arch: str, tmp_path: Path) -> None:
    guest = compiled(tmp_path, ALTSTACK, arch, "-O1", "-fno-optimize-sibling-calls")
    with loaded(guest) as run:
        done = traced(run.session, "main", "handler", "inner", "work", "jump")
        assert done.reports.exit_code == 0
        names = {
            p.function: str(p).partition("+")[0]
            for p in done.graphing.probes.values()
            if isinstance(p, GraphProbe)
        }
        assert [(sign, names[at], depth) for sign, at, depth in shape(done.events)] == [
            (">", "main", 0),
            (">", "work", 1),
            (">", "handler", 2),
            (">", "inner", 3),
            ("<", "inner", 3),
            ("<", "handler", 2),
            ("<", "work", 1),
            (">", "jump", 1),
            (">", "handler", 2),
            (">", "inner", 3),
            ("!", "inner", 3),
            ("!", "handler", 2),
            (">", "work", 2),
            ("<", "work", 2),
            ("<", "jump", 1),
            ("<", "main", 0),
        ]


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_coroutines_on_the_heap(arch: str, tmp_path: Path) -> None:
    """Two stacks in one mapping: what lies below the stack pointer there is not gone."""
    guest = compiled(tmp_path, COROUTINES, arch, "-O1", "-fno-optimize-sibling-calls")
    with loaded(guest) as run:
        done = traced(run.session, "main", "first", "second", "hop", "leaf")
        assert run.out == "12\n"
    calls = done.graphing.calls
    assert calls is not None
    assert (calls.entries, calls.exits, calls.left, calls.late, calls.pending) == (21, 19, 0, 0, 2)


COROUTINES = """
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static ucontext_t m, a, b;
static int n;
#define N __attribute__((noinline))
N void leaf(void) { n++; }
N void hop(ucontext_t *from, ucontext_t *to) { leaf(); swapcontext(from, to); leaf(); }
N void first(void) { for (int i = 0; i < 3; i++) hop(&a, &b); }
N void second(void) { for (int i = 0; i < 3; i++) hop(&b, &a); }
static void make(ucontext_t *c, void (*f)(void)) {
  getcontext(c);
  c->uc_stack.ss_sp = malloc(65536);
  c->uc_stack.ss_size = 65536;
  c->uc_link = &m;
  makecontext(c, f, 0);
}
int main(void) {
  make(&a, first);
  make(&b, second);
  swapcontext(&m, &a);
  leaf();
  printf("%d\\n", n);
  return 0;
}
"""

ALTSTACK = """
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
static char stack[65536];
static sigjmp_buf env;
static volatile int leaves;
#define N __attribute__((noinline))
N void inner(void) { leaves += 0; if (leaves) siglongjmp(env, 1); }
N void handler(int s) { inner(); leaves += 0; }
N int work(int send) { if (send) raise(SIGUSR1); return 1; }
N int jump(void) { leaves = 1; if (!sigsetjmp(env, 1)) raise(SIGUSR1); return work(0); }
int main(void) {
  stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  sigaltstack(&own, 0);
  sigaction(SIGUSR1, &a, 0);
  return work(1) + jump() - 2;
}
"""
