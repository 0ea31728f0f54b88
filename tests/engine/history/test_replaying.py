"""A recorded run is lived through again to the same end, and says where it cannot be."""

import re
import signal
import threading
from pathlib import Path

import pytest
from compiled import build
from historykit import past, recorded, state_of
from sessionkit import SAMPLES

from engine.history.journal import EntryCause, Op
from engine.history.replaying import DivergenceError
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.linux.turns import Lengths
from engine.probes.techniques import chosen
from engine.session import GuestConfig, Session
from engine.session.guest.past import PastSession, record

GUESTS = Path(__file__).parents[2] / "data" / "guests"
FOLDERS = [
    f"{folder.name}/{guest.name}"
    for folder in sorted(SAMPLES.iterdir())
    for guest in sorted(folder.iterdir())
]
FEW = ("aarch64/race", "riscv64/forkserver", "ia64/syscalls")
NAMES = [
    name
    if name.startswith("x86_64/") or name in FEW
    else pytest.param(name, marks=pytest.mark.slow)
    for name in FOLDERS
]
STATIC = ("segv", "signals", "time", "threads", "fork", "exec", "atomics", "sync", "thrsig", "smc")


@pytest.mark.parametrize("name", NAMES)
def test_samples(name: str) -> None:
    with recorded(SAMPLES / name) as ran, past(ran) as again:
        assert again.run().exit_code == ran.exit
        assert state_of(again) == state_of(ran.session)
        assert again.kernel.at == len(ran.journal)


SLOW = [pytest.param(each, marks=pytest.mark.slow) for each in ("arm64", "riscv64")]


@pytest.mark.parametrize("arch", ["amd64", *SLOW])
@pytest.mark.parametrize("name", STATIC)
def test_guests(arch: str, name: str) -> None:
    """Signals, time, threads, processes, programs, code that changes itself."""
    guest = GUESTS / arch / "guests-static"
    if not guest.exists():
        guest = GUESTS / "amd64" / "guests-static"
    with recorded(guest, name, isolated=False) as ran, past(ran) as again:
        assert again.run().exit_code == ran.exit
        assert state_of(again) == state_of(ran.session)


LARGE = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#define EIGHT(x) x, x, x, x, x, x, x, x
#define MANY(x) EIGHT(EIGHT(EIGHT(EIGHT(EIGHT(EIGHT(x))))))
static const long table[4 << 16] = { MANY(11) };
static long data[4 << 16] = { MANY(5) };
static long sum(const volatile long *from)
{
    long all = 0;
    for (int at = 0; at < 4 << 16; at += 500)
        all += from[at];
    return all;
}
int main(int argc, char **argv)
{
    for (int child = 0; child < 6; child++) {
        data[child * 500] += child;
        if (!fork()) {
            data[child * 1000]++;
            printf("%d %ld %ld\n", child, sum(table), sum(data));
            if (child == 3 && argc == 1)
                execl("/proc/self/exe", argv[0], "again", (char *) 0);
            return 0;
        }
        wait(0);
    }
    return 0;
}
"""


def test_files_are_recorded_once(tmp_path: Path) -> None:
    """A fork copies what is there; who begins the same program again reads nothing new."""
    large = build(tmp_path, "large", LARGE, "-static")
    with recorded(large, isolated=False) as ran:
        journal = ran.journal
        forks = [entry for entry in journal if any(op[0] == Op.COPY for op in entry.ops)]
        assert len(forks) == 12
        for entry in forks:
            assert not any(op[0] in (Op.FILL, Op.CONTENT) for op in entry.ops)
        size = sum(map(len, journal.raw)) + sum(map(len, journal.contents.values()))
        assert size < 1.2 * large.stat().st_size
        with past(ran) as again:
            assert again.run().exit_code == ran.exit
            assert state_of(again) == state_of(ran.session)


TRACER = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* A tracer that changes the registers of a process, its system calls, and steps it. */
int main(int argc, char **argv)
{
	static const int requests[] = {
		PTRACE_CONT, PTRACE_SYSCALL, PTRACE_SYSEMU, PTRACE_SINGLESTEP, PTRACE_SYSEMU_SINGLESTEP
	};
	int way = requests[atoi(argv[1])], status, stops = 0;
	pid_t child = fork();

	if (!child) {
		register long kept asm("r12") = 5;
		char from[8] = "abcdefg", to[8];
		char *source = from, *target = to;
		long count = 8, turns = 4;

		ptrace(PTRACE_TRACEME, 0, 0, 0);
		asm volatile("int3" : "+r"(kept));
		asm volatile("1: loop 1b" : "+c"(turns)); /* each step leads to itself */
		asm volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(count) : : "memory");
		_exit(kept + (syscall(SYS_getppid) == 4242) + to[3] - 'd');
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status) && ++stops < 400) {
		struct user_regs_struct regs;
		struct user_fpregs_struct floats;

		ptrace(PTRACE_GETREGS, child, 0, &regs);
		if (stops == 1) {
			regs.r12 += 30;
			regs.eflags ^= 1;
			ptrace(PTRACE_SETREGS, child, 0, &regs);
			ptrace(PTRACE_GETFPREGS, child, 0, &floats);
			floats.xmm_space[0] = 7;
			ptrace(PTRACE_SETFPREGS, child, 0, &floats);
		}
		if ((long)regs.orig_rax == SYS_getppid)
			ptrace(PTRACE_POKEUSER, child, 8 * 10, 4242); /* rax */
		if ((long)regs.orig_rax == SYS_exit_group)
			way = PTRACE_CONT;
		ptrace(way, child, 0, 0);
	}
	printf("%d stops, %x\n", stops, status);
	return WEXITSTATUS(status);
}
"""


@pytest.fixture(scope="module")
def tracer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tracer"), "tracer", TRACER, "-static", "-O1")


@pytest.mark.parametrize(("way", "end"), [(0, 35), (1, 36), (2, 36), (3, 36), (4, 36)])
def test_tracers_inside(tracer: Path, way: int, end: int) -> None:
    """Registers that a tracer writes, calls that it answers, and single steps."""
    with recorded(tracer, str(way)) as ran, past(ran) as again:
        assert again.run().exit_code == ran.exit
        assert state_of(again) == state_of(ran.session)
        assert again.kernel.at == len(ran.journal)
    assert ran.exit == end


@pytest.mark.parametrize("seed", range(3))
def test_schedules(seed: int) -> None:
    turns = Lengths(10, 300)
    with (
        recorded(SAMPLES / "x86_64" / "race", seed=seed, turns=turns) as ran,
        past(ran) as again,
    ):
        switched = [entry for entry in ran.journal for op in entry.ops if op[0] == Op.SWITCH]
        assert len(switched) > 2
        again.run()
        assert state_of(again) == state_of(ran.session)


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64", "ia64"])
@pytest.mark.parametrize("technique", ["auto", "breakpoint"])
def test_probes_do_not_change_it(arch: str, technique: str) -> None:
    """The same entries fit a run with probes on each function, entry and return."""
    from engine.session.protocol.requests import ProbeRequest, TraceOptions
    from engine.session.tracing.tracing import Tracing

    with recorded(SAMPLES / arch / "recursion", technique=technique) as ran, past(ran) as again:
        tracing = Tracing(again, TraceOptions(output="/dev/null"))
        tracing.definitions.place(ProbeRequest(entries=("*",), returns=("*",)))
        tracing.start()
        assert again.run().exit_code == ran.exit
        tracing.finish()
        assert again.probing is not None
        again.probing.collect()
        assert sum(p.hits for point in again.probing.manager.placed() for p in point.probes) > 50
        left_out = chosen("auto").scratch(again.arch)
        assert state_of(again, left_out) == state_of(ran.session, left_out)


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05])
def test_a_signal_of_the_users(delay: float) -> None:
    """It comes wherever the program happens to be, and there again."""
    guest = GUESTS / "amd64" / "guests-static"
    sink = SinkStream(lambda data: None)
    config = GuestConfig(str(guest), ("sync",), history=True, count_blocks=True, isolated=True)
    session = Session(config, (FeedStream(b"", ended=True), sink, sink))
    try:
        recording = record(session)
        timer = threading.Timer(delay, session.interrupt, (signal.SIGINT,))

        def begin() -> None:
            timer.start()
            if not delay:
                timer.join()

        reports = session.run(begin)
        timer.join()
        again = PastSession(config, recording.journal, session.ram.size, session.opened)
        try:
            assert again.run().exit_code == reports.exit_code
            assert state_of(again) == state_of(session)
        finally:
            again.close()
    finally:
        session.close()


def test_a_difference_is_told_with_both_sides() -> None:
    with recorded(SAMPLES / "x86_64" / "words") as ran, past(ran) as again:
        again.cpu.write_register("rdi", 5)
        again.memory.poke(again.thread.pc(), b"\x0f\x05\x90\x90\x90\x90\x90")  # syscall
        with pytest.raises(DivergenceError) as error:
            again.run()
    text = str(error.value)
    assert re.search(r"recorded was a system call at tick \d+, pc 0x[0-9a-f]+, thread 1000", text)
    assert re.search(r"replayed is a system call \(\w+\) at tick \d+, pc 0x[0-9a-f]+", text)


def test_a_run_that_goes_on_is_a_difference() -> None:
    with recorded(SAMPLES / "x86_64" / "words") as ran:
        entry = next(entry for entry in ran.journal if entry.cause == EntryCause.SYSCALL)
        index = list(ran.journal).index(entry)
        ran.journal.raw[index] = _encoded(entry._replace(clock=entry.clock - 1))
        with past(ran) as again, pytest.raises(DivergenceError, match="comes to the end of that"):
            again.run()


@pytest.mark.parametrize(
    "op",
    [
        (Op.FILL, 1 << 60, b"x"),
        (Op.CONTENT, 0, bytes(32)),
        (Op.ZERO, -4096, 4096),
        (Op.COPY, 0, 1 << 50, 4096),
        (Op.REGISTER, "nothing", 1),
        (Op.BLOCK, ("rax",), 8, b"x" * 100),
        (Op.WRITE, "text", b"x"),
        (Op.SWITCH, 77),
        (Op.RESTORE, 9),
        (Op.MAPPINGS, 0, 0, 4096, ((0, 4096, 3, 1 << 60, "", 0, False, 0, 0, False, 0, 0, -1),)),
        (Op.ENDED, 12),
        (999,),
    ],
)
def test_entries_that_make_no_sense(op: tuple[object, ...]) -> None:
    """Whoever made the journal: the host's memory is not reached, and no traceback shown."""
    with recorded(SAMPLES / "x86_64" / "words") as ran:
        entry = ran.journal[1]
        ran.journal.raw[1] = _encoded(entry._replace(ops=[op, *entry.ops]))
        with past(ran) as again, pytest.raises(DivergenceError, match="makes no sense"):
            again.run()


def _encoded(entry: tuple[object, ...]) -> bytes:
    import msgspec

    return msgspec.msgpack.encode(entry)
