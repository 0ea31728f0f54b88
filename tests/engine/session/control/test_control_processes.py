"""Breakpoints and stops of a user in all processes of a guest, and where they show."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import build
from controlkit import Held, held

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState

TREE = r"""
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { volatile int kept = n; return kept + 1; }
int main(int argc, char **argv)
{
    if (argc > 1) return work(7) != 8;
    work(1);
    if (!fork()) {
        work(2);
        execl(argv[0], argv[0], "again", (char *)0);
    }
    wait(0);
    execl("/bin/true", "true", (char *)0);
    return 9;
}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tree"), "tree", TREE)


@pytest.fixture
def guest(tree: Path) -> Iterator[Held]:
    with held(str(tree)) as found:
        yield found


def stops(guest: Held) -> list[tuple[int, str]]:
    """(thread, reason) of all stops until the guest has ended."""
    found = []
    while (view := guest.do(cmd.Continue())).state is not RunState.ENDED:
        assert view.location.startswith(("work+0x", "main+0x"))
        found.append((view.thread, view.reason))
    return found


def test_a_breakpoint_stops_every_process(guest: Held) -> None:
    guest.do(cmd.ToggleBreak("work"))
    assert stops(guest) == [
        (1000, "breakpoint 1: work"),
        (1001, "breakpoint 1: work in process 1001 (tree)"),
        (1001, "breakpoint 1: work in process 1001 (tree)"),
    ]
    assert guest.probe(1).hits == 3
    assert guest.view.exit_code == 0
    assert guest.all(ev.Notice) == []


@pytest.mark.parametrize("returns", ["hijacked", "watched"])
def test_so_do_a_probe_and_a_return(tree: Path, returns: str) -> None:
    with held(str(tree), returns=returns) as guest:
        guest.do(cmd.Define("r:g/w work r=$retval", None, True))
        found = stops(guest)
    said = "probe 1: r:g/w work r=$retval"
    child = " in process 1001 (tree)"
    assert found == [
        *((1000, said + rest) for rest in ("", " returns")),
        *((1001, said + rest + child) for rest in ("", " returns") * 2),
    ]
    assert len(guest.events) == 3


def test_one_that_goes_is_gone_everywhere(guest: Held) -> None:
    guest.do(cmd.ToggleBreak("work"), cmd.Continue(), cmd.Continue())
    assert guest.view.thread == 1001
    guest.do(cmd.Enable((1,), False))
    assert guest.do(cmd.Continue()).state is RunState.ENDED
    guest.do(cmd.Restart(), cmd.Enable((1,), True), cmd.Continue(), cmd.Continue())
    guest.do(cmd.ToggleBreak("work"))
    assert guest.do(cmd.Continue()).state is RunState.ENDED


def test_one_that_comes_late_is_in_all_processes(guest: Held) -> None:
    guest.do(cmd.ToggleBreak("work"), cmd.Continue(), cmd.Continue(), cmd.Delete((1,)))
    guest.do(cmd.ToggleBreak("main"))
    assert [(view.thread, view.reason) for view in [guest.do(cmd.Continue())]] == [
        (1001, "breakpoint 2: main in process 1001 (tree)")
    ]


def test_a_hit_stays_behind_in_its_process(guest: Held) -> None:
    guest.do(cmd.ToggleBreak("work"), cmd.Continue(), cmd.Continue())
    assert guest.view.thread == 1001
    assert guest.view.hit is None
    assert guest.do(cmd.StepInsn()).hit is not None


def test_without_following_it_stops_in_the_first_alone(tree: Path) -> None:
    with held(str(tree), follow=False) as guest:
        guest.do(cmd.ToggleBreak("work"))
        assert stops(guest) == [(1000, "breakpoint 1: work")]


def test_marks_are_of_the_program_in_sight(guest: Held) -> None:
    """The first process goes on as /bin/true, where libc's `_exit` is probed and `work` is not."""
    guest.do(cmd.ToggleBreak("work"), cmd.ToggleBreak("_exit"))
    work, leave = guest.view.probes
    assert (len(work.addresses), leave.addresses, leave.pending) == (1, (), True)
    view = guest.do(cmd.Continue())
    while view.thread != 1000 or not view.program_in_sight:
        assert view.probes[0].addresses == work.addresses
        view = guest.do(cmd.Continue())
    assert (view.thread, view.reason) == (1000, "breakpoint 2: _exit")
    assert "/true" in view.modules[0].path
    assert (view.probes[1].addresses, view.probes[1].pending) == ((view.pc,), False)
    assert view.pc in view.planted
    assert (view.probes[0].addresses, view.probes[0].hits) == ((), 3)


def test_a_breakpoint_in_a_file_of_another_program(tree: Path) -> None:
    """It waits as far as the first program goes, and stands where its file is."""
    with held("/bin/bash", "-c", "true | cat") as guest:
        guest.do(cmd.ToggleBreak("libc.so.6:read"))
        view = guest.do(cmd.Continue())
        while not view.program_in_sight:
            view = guest.do(cmd.Continue())
        main = view.modules[0]
        assert main.path.endswith("/cat")
        place = next(f.pc for f in view.frames if main.start <= f.pc < main.end) - main.bias
        guest.do(cmd.ToggleBreak(f"{main.path}:{place:#x}"))
        found = guest.probe(2)
        assert (found.addresses, found.pending) == ((place + main.bias,), False)
        guest.do(cmd.ChooseThread(1000))
        found = guest.probe(2)
        assert (found.addresses, found.pending) == ((), True)
