"""Hits phase by phase, backwards as forwards: the same states for every technique."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from compiled import build
from controlkit import Held, held, sample
from sysroot import CHECKOUT

from engine.arch.plan import Mode
from engine.guest.watched import WatchedRange
from engine.history import timeline as timelines
from engine.history.moment import Moment
from engine.image import ElfImage
from engine.image.symbols import SymbolTable
from engine.probes import arbitration
from engine.session.control.past.hits import FoundHits
from engine.session.control.past.search import WatchPlace
from engine.session.control.past.travel import Travel
from engine.session.guest.past import PastSession
from engine.session.guest.watchpoints import WatchEvent
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import GuestView, RunState

UPROBES = CHECKOUT / "tests" / "data" / "uprobes"


class State(NamedTuple):
    """What a user sees of a moment.

    Attributes:
        moment: tick and the program's own address.
        thread: that has the processor.
        pc: of the processor.
        phase: that was carried out last; "" outside of a hit.
        registers: all.
    """

    moment: tuple[int, int]
    thread: int
    pc: int
    phase: str
    registers: dict[str, int]


def state(guest: Held) -> State:
    view, travel = guest.view, guest.control.sight.place.travel
    assert travel is not None
    now = travel.now()
    phase = view.hit.done[-1].name if view.hit and view.hit.done else ""
    return State((now.clock, now.pc), view.thread, view.raw_pc, phase, guest.registers())


def following(view: GuestView) -> str:
    """The phase that comes next; "" where the hit is over."""
    assert view.hit is not None
    return view.hit.next


def played(guest: Held, hits: int) -> list[list[State]]:
    """The next hits: the state in front of each, and behind each of its phases."""
    found = []
    for number in range(hits):
        if not (number and guest.view.at_hit):
            guest.do(cmd.ContinueToHit())
        if guest.view.state is RunState.ENDED:
            break
        states = [state(guest)]
        while True:
            view = guest.do(cmd.StepPhase())
            states.append(state(guest))
            assert view.hit is not None
            if not view.hit.next:
                break
        found.append(states)
    return found


def check(guest: Held, hits: int, threads: set[int] | None = None) -> list[str]:
    """Hits forwards, backwards, and forwards again; the ways that they went, and in whom."""
    forth = played(guest, hits)
    if threads is not None:
        threads.update(states[0].thread for states in forth)
    assert len(forth) == hits
    behind: State | None = None
    for states in reversed(forth):
        # From elsewhere to behind the hit; where it ends in front of the next one that is there.
        if behind is not None and behind.moment != states[-1].moment:
            guest.do(cmd.PhaseBack())
            assert state(guest) == states[-1]
        for wanted in states[-2:0:-1]:
            guest.do(cmd.PhaseBack())
            assert state(guest) == wanted
        guest.do(cmd.PhaseBack())
        behind = state(guest)
        assert behind._replace(phase="") == states[0]._replace(phase="")
    assert guest.view.history is not None
    assert guest.view.history.past
    guest.do(cmd.Seek(*forth[0][0].moment))
    for wanted in forth[0][1:]:
        guest.do(cmd.StepPhase())
        assert state(guest) == wanted
    guest.do(cmd.Seek(*forth[0][0].moment))
    assert played(guest, hits) == forth
    assert guest.view.history is not None
    assert not guest.view.history.past
    return sorted({" ".join(each.phase for each in states[1:]) for states in forth})


BREAKPOINT = "armed trap pre-handlers out of line fix-up post-handlers resume"
EMULATED = "armed trap pre-handlers emulated post-handlers resume"


@contextmanager
def recorded(
    arch: str,
    name: str,
    *lines: str,
    args: tuple[str, ...] = (),
    technique: str = "auto",
    returns: str = "auto",
) -> Iterator[Held]:
    path = name if "/" in name else sample(arch, name)
    with held(path, *args, history=True, technique=technique, returns=returns) as guest:
        for line in lines:
            guest.do(cmd.Define(line, stops=technique in ("jump", "djprobe")))
        yield guest


@pytest.mark.parametrize(
    ("arch", "name", "line", "hits"),
    [
        ("x86_64", "structs", "p deposit", 2),
        pytest.param("aarch64", "structs", "p deposit", 4, marks=pytest.mark.slow),
        pytest.param("riscv64", "structs", "p deposit", 4, marks=pytest.mark.slow),
        pytest.param("ia64", "recursion", "p fibonacci", 5, marks=pytest.mark.slow),
    ],
)
def test_breakpoints(arch: str, name: str, line: str, hits: int) -> None:
    with recorded(arch, name, line) as guest:
        assert check(guest, hits) == [BREAKPOINT]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "name", "returns", "lines", "hits"),
    [
        ("x86_64", "structs", "watched", ("r deposit", "p deposit+3"), 4),
        ("x86_64", "structs", "mainline", ("r deposit", "p deposit+3", "r transfer"), 5),
        ("aarch64", "structs", "watched", ("r deposit", "r transfer"), 4),
        ("aarch64", "structs", "mainline", ("r deposit", "r transfer"), 4),
        ("riscv64", "structs", "mainline", ("r deposit", "r transfer"), 4),
        ("ia64", "recursion", "watched", ("r fibonacci",), 4),
        ("ia64", "recursion", "owens", ("r fibonacci",), 4),
    ],
)
def test_returns(arch: str, name: str, returns: str, lines: tuple[str, ...], hits: int) -> None:
    with recorded(arch, name, *lines, returns=returns) as guest:
        if name == "recursion":  # the first return comes late
            guest.do(*[cmd.ContinueToHit()] * 13)
        routes = check(guest, hits)
        assert (EMULATED in routes) == (returns != "watched")


@pytest.mark.parametrize(
    ("arch", "technique"),
    [
        pytest.param("x86_64", "jump", marks=pytest.mark.slow),
        pytest.param("aarch64", "jump", marks=pytest.mark.slow),
        pytest.param("x86_64", "djprobe", marks=pytest.mark.slow),
    ],
)
def test_jumps(arch: str, technique: str) -> None:
    """What detours keep in registers is the same, too: counters, places in the ring."""
    with recorded(arch, "recursion", "p fibonacci n=$arg1", technique=technique) as guest:
        routes = check(guest, 3)
        assert all("displaced" in route for route in routes)


@pytest.mark.slow
def test_jumps_of_return_probes() -> None:
    with recorded("x86_64", "recursion", "r fibonacci $retval", technique="jump") as guest:
        guest.do(*[cmd.ContinueToHit()] * 13)
        assert len(check(guest, 5)) > 1


@pytest.mark.slow
def test_uprobes() -> None:
    """Their slots are given out hit by hit."""
    where = uprobe_place(Path(sample("x86_64", "structs")), "deposit")
    with recorded("x86_64", "structs", f"p:u/d {where}", f"r:u/e {where}") as guest:
        assert check(guest, 3) == [BREAKPOINT]


def uprobe_place(program: Path, name: str) -> str:
    image = ElfImage.open(program)
    found = SymbolTable(image).find(name)
    assert found is not None
    offset = image.file_offset(found.address)
    assert offset is not None
    return f"{program}:{offset:#x}"


@pytest.mark.slow
def test_calls_in_place_of_no_operations(tmp_path: Path) -> None:
    """The first hit is a breakpoint's: backwards, too."""
    source = (UPROBES / "nops.S").read_text()
    program = build(tmp_path, "nops", source, "-nostdlib", "-static")
    where = uprobe_place(program, "calm_nop")
    with recorded("x86_64", str(program), f"p:g/calm {where} cx=%cx", technique="nop5") as guest:
        assert check(guest, 4) == ["armed call save syscall restore return", EMULATED]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "name", "lines", "passed", "hits", "threads"),
    [
        ("x86_64", "race", ("r think",), 196, 8, 2),
        ("aarch64", "race", ("r think",), 196, 8, 2),
        ("x86_64", "race", ("p rt_clone+13", "r worker"), 0, 7, 3),
        ("x86_64", "deadlock", ("p lock", "r unlock"), 0, 12, 1),
    ],
)
def test_threads(
    arch: str, name: str, lines: tuple[str, ...], passed: int, hits: int, threads: int
) -> None:
    """Other threads run between the hits, and in the middle of calls that return."""
    with recorded(arch, name, *lines, args=("3",), returns="mainline") as guest:
        guest.do(*[cmd.ContinueToHit()] * passed)
        seen: set[int] = set()
        check(guest, hits, seen)
        assert len(seen) >= threads


@pytest.mark.parametrize(
    ("arch", "name", "lines", "hits"),
    [
        pytest.param("x86_64", "forkserver", ("p rt_clone+15",), 3, marks=pytest.mark.slow),
        pytest.param(
            "x86_64", "forkserver", ("p rt_clone+15", "p sys_read+10"), 8, marks=pytest.mark.slow
        ),
        pytest.param(
            "aarch64", "forkserver", ("p rt_clone+24", "p sys_read"), 8, marks=pytest.mark.slow
        ),
        pytest.param("riscv64", "forkserver", ("r serve", "r fork"), 9, marks=pytest.mark.slow),
        pytest.param(
            "x86_64", "pipeline", ("p rt_clone+13", "p print"), 8, marks=pytest.mark.slow
        ),
    ],
)
def test_processes(arch: str, name: str, lines: tuple[str, ...], hits: int) -> None:
    """Hits of children; where both come out of the same call, and where one waits in another."""
    with recorded(arch, name, *lines, returns="mainline") as guest:
        seen: set[int] = set()
        check(guest, hits, seen)
        assert len(seen) > 1


AGAIN = """
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int total;
__attribute__((noinline)) int work(int n)
{
    for (int i = 0; i < n; i++)
        total += i;
    return total;
}
static void handler(int number) { work(number); }
int main(int argc, char **argv)
{
    if (argc > 1)
        return work(7) & 1;
    signal(SIGUSR1, handler);
    for (int i = 0; i < 2; i++) {
        int status, child = i ? vfork() : fork();
        if (!child) {
            work(3);
            execl("/proc/self/exe", "again", "child", (char *)0);
            _exit(9);
        }
        waitpid(child, &status, 0);
        raise(SIGUSR1);
    }
    return 0;
}
"""


@pytest.mark.slow
def test_signals_and_programs_of_children(tmp_path: Path) -> None:
    """A hit at the very instruction to which the kernel has led the program."""
    program = build(tmp_path, "again", AGAIN, "-O1", "-static")
    where = uprobe_place(program, "work")
    for lines, hits in (("p work", "r handler"), 8), ((f"r:u/w {where}", "p raise"), 12):
        with recorded("x86_64", str(program), *lines, returns="mainline") as guest:
            seen: set[int] = set()
            check(guest, hits, seen)
            assert len(seen) == 3 if hits > 8 else 2


def test_from_outside_and_out_again() -> None:
    """From the middle of the present's hit, and back to it; what is no phase leaves the hit."""
    with recorded("x86_64", "structs", "p deposit") as guest:
        assert "no probe is hit before" in str(guest.fail(cmd.PhaseBack()))
        guest.do(cmd.ContinueToHit(), *[cmd.StepPhase()] * 3)
        present = state(guest)
        view = guest.do(cmd.PhaseBack(), cmd.PhaseBack(), cmd.PhaseBack())
        assert view.history is not None
        assert view.history.past
        assert "no probe is hit before" in str(guest.fail(cmd.PhaseBack()))
        guest.do(cmd.StepPhase(), cmd.StepPhase())
        assert "in the middle of a hit" in str(guest.fail(cmd.StepBack()))
        assert (guest.view.reason, following(guest.view)) == ("trap", "pre-handlers")
        view = guest.do(cmd.StepPhase())
        assert view.history is not None
        assert not view.history.past
        assert state(guest) == present
        while following(guest.do(cmd.StepPhase())):
            pass
        for _ in range(3):
            guest.do(cmd.ContinueToHit(), cmd.FinishHit())
        guest.do(cmd.Continue())
        assert guest.view.state is RunState.ENDED
        view = guest.do(cmd.PhaseBack())
        assert (following(view), view.reason, view.location) == ("", "resume", "deposit+0x3")
        view = guest.do(cmd.PhaseBack(), cmd.PhaseBack(), cmd.StepInsn())
        assert (view.location, following(view)) == ("deposit+0x3", "")
        view = guest.do(cmd.StepInsn())
        assert (view.location, view.hit) == ("deposit+0x5", None)
        view = guest.do(cmd.PhaseBack())
        assert (view.location, view.reason) == ("deposit+0x3", "resume")
        guest.do(cmd.StepBack())
        assert guest.view.location == "deposit+0x0"
        assert guest.do(cmd.StepPhase()).reason == "armed"
        guest.do(cmd.FinishHit(), cmd.Continue())
        assert guest.view.state is RunState.ENDED


def test_forwards_something_else_may_stop() -> None:
    """A watched access comes before the next hit; behind the last hit there is the present."""
    with recorded("x86_64", "structs", "p deposit") as guest:
        guest.do(*[cmd.ContinueToHit()] * 2)
        end = state(guest)
        module = guest.control.session.modules.main
        assert module is not None
        watched_one = module.symbols.find("grace")
        assert watched_one is not None
        arrived: list[WatchEvent] = []
        watched = WatchedRange(watched_one.address, watched_one.size)
        place = WatchPlace(
            (watched,),
            lambda event: True,
            "watchpoint 1",
            lambda event, back: arrived.append(event),
        )
        guest.do(cmd.Seek(0))
        first = guest.do(cmd.ContinueToHit())
        assert (first.reason, first.at_hit, first.location) == (
            "in front of a hit",
            True,
            "deposit+0x0",
        )
        guest.control.questions.watches = lambda: (place,)
        view = guest.do(cmd.ContinueToHit())
        assert (view.reason, view.at_hit, len(arrived)) == ("watchpoint 1", False, 1)
        assert first.time <= view.time <= end.moment[0]
        guest.control.questions.watches = lambda: ()
        guest.do(cmd.Seek(*end.moment), cmd.StepBack())
        view = guest.do(cmd.ContinueToHit())
        assert view.history is not None
        assert (view.history.past, state(guest).moment) == (False, end.moment)


def test_behind_a_hit_a_phase_is_an_instruction() -> None:
    """Where no probe is, `.` and `i` do the same, and both can be gone back from."""
    with recorded("x86_64", "structs", "p deposit") as guest:
        guest.do(cmd.Continue())
        last = guest.do(cmd.PhaseBack()).reason
        by_steps = [state(guest)]
        for _ in range(6):
            guest.do(cmd.StepInsn())
            by_steps.append(state(guest))
        assert len({each.moment for each in by_steps}) == 7
        assert guest.do(cmd.PhaseBack()).reason == last
        mixed = [state(guest)]
        for command in (cmd.StepPhase(), cmd.StepPhase(), cmd.StepInsn()) * 2:
            guest.do(command)
            mixed.append(state(guest))
        assert mixed == by_steps
        guest.do(cmd.StepBack())
        assert state(guest) == by_steps[-2]
        guest.do(cmd.PhaseBack())
        assert (state(guest), guest.view.reason) == (by_steps[0], last)


def test_what_another_way_of_the_hit_comes_to() -> None:
    """A probe that was placed late may be hit as a breakpoint where it would be a jump by then."""
    with held(sample("x86_64", "recursion"), history=True, technique="nop5") as guest:
        guest.do(cmd.ToggleBreak("fibonacci"), cmd.Continue(), cmd.StepPhase(), cmd.StepPhase())
        seen = guest.view
        assert guest.control.sight.place.hits is not None
        guest.control.probes.delete([1])
        assert "does not come about" in str(guest.fail(cmd.PhaseBack()))
        assert (guest.view.raw_pc, guest.view.reason) == (seen.raw_pc, seen.reason)
        assert guest.view.history is not None
        assert not guest.view.history.past


_LONGER = ("recursion", "race")


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> list[Moment | None]:
    """There are checkpoints everywhere; where guests of the past have begun."""
    for setting, value in (("_SLICE", 20), ("_SECONDS", 0.0), ("_SHARE", 0)):
        monkeypatch.setattr(timelines, setting, value)
    found: list[Moment | None] = []
    begun = Travel.begun

    def told(travel: Travel, mark: Moment | None) -> PastSession:
        found.append(mark)
        return begun(travel, mark)

    monkeypatch.setattr(Travel, "begun", told)
    return found


@pytest.mark.parametrize(
    ("arch", "name", "technique", "line", "hits"),
    [
        ("x86_64", "structs", "auto", "p deposit", 3),
        pytest.param("x86_64", "structs", "auto", "p:u/d {where}", 3, marks=pytest.mark.slow),
        pytest.param("x86_64", "recursion", "auto", "p fibonacci", 5, marks=pytest.mark.slow),
        pytest.param("x86_64", "recursion", "jump", "p fibonacci", 4, marks=pytest.mark.slow),
        pytest.param("aarch64", "structs", "auto", "p deposit", 4, marks=pytest.mark.slow),
        pytest.param("ia64", "recursion", "auto", "p fibonacci", 5, marks=pytest.mark.slow),
    ],
)
def test_from_checkpoints_on(
    lent: list[Moment | None], arch: str, name: str, technique: str, line: str, hits: int
) -> None:
    if "{" in line:
        line = line.format(where=uprobe_place(Path(sample(arch, name)), "deposit"))
    with recorded(arch, name, line, technique=technique) as guest:
        guest.control.loop.refills = True
        check(guest, hits)
    assert any(lent)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "name", "line", "passed", "threads"),
    [
        ("x86_64", "race", "p think", 98, 2),
        ("aarch64", "race", "p think", 98, 2),
        ("riscv64", "race", "p think", 98, 2),
        ("x86_64", "deadlock", "p lock", 0, 1),
    ],
)
def test_threads_from_checkpoints_on(
    lent: list[Moment | None], arch: str, name: str, line: str, passed: int, threads: int
) -> None:
    with recorded(arch, name, line, args=("3",), technique="breakpoint") as guest:
        guest.control.loop.refills = True
        guest.do(*[cmd.ContinueToHit()] * passed)
        seen: set[int] = set()
        check(guest, 4, seen)
        assert len(seen) >= threads
    assert any(lent)


@pytest.mark.parametrize(
    "name", ["structs", *(pytest.param(name, marks=pytest.mark.slow) for name in _LONGER)]
)
def test_hits_are_found_from_checkpoints_on(lent: list[Moment | None], name: str) -> None:
    """The same ones as from the start on."""
    choose = random.Random(2)
    symbol, more = {
        "structs": ("deposit", 3),
        "recursion": ("fibonacci", 4),
        "race": ("think", 3),
    }[name]
    with recorded("x86_64", name, f"p {symbol}", f"p {symbol}+{more}") as guest:
        guest.do(cmd.Continue())
        place = guest.control.sight.place
        travel, hits = place.travel, place.hits
        assert travel is not None
        assert hits is not None
        hits._goes_on = lambda: True  # nobody is there to say anything
        guest.do(cmd.StepBack())
        known = FoundHits(travel.fresh(), hits._probes.entries, Mode.STRICT)
        end = travel.now()
        known.has(end, lambda: True)
        assert len(known.moments) >= 6
        asked = [*choose.sample(known.moments, 4)]
        for clock in choose.sample(range(end.clock), 6):
            guest.do(cmd.Seek(clock))
            asked.append(travel.now())
        for moment in sorted(asked, reverse=True):
            assert hits.before(moment) == known.before(moment, lambda: True)
            assert hits.is_at(moment) == (moment in known.moments)
        known.close()
    assert any(lent)


@pytest.mark.slow
@pytest.mark.parametrize("after", [3, 1000])
def test_as_a_jump_or_as_a_breakpoint(
    lent: list[Moment | None], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """It depends on the hits before, though they lie in front of the checkpoint."""
    monkeypatch.setattr(arbitration, "AFTER", after)
    seen = []
    for seconds in (0.0, 1e9):
        if seconds:
            monkeypatch.setattr(Travel, "lendable", lambda travel, moment, distance: None)
        lent.clear()
        with recorded("x86_64", "recursion", "p fibonacci") as guest:
            guest.control.loop.refills = True
            guest.do(cmd.Continue())
            assert guest.view.state is RunState.ENDED
            assert (guest.view.probes[0].technique == "jump") == (after == 3)
            seen.append([(guest.do(cmd.PhaseBack()), state(guest))[1] for _ in range(12)])
        assert any(lent) == (not seconds)
    assert seen[0] == seen[1]


def test_without_a_recording() -> None:
    with held(sample("x86_64", "structs")) as guest:
        assert "not recorded" in str(guest.fail(cmd.PhaseBack()))
