"""Rows are named by the program that their thread was in, whatever the panes show."""

from pathlib import Path

from compiled import build
from controlkit import held
from eventkit import INFOS, facts

from engine.session import GuestConfig
from engine.session.browse import Browser
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.rows import Names
from engine.session.protocol.views import ModuleView, RunState
from tui.calltree import CallTree
from tui.programs import Programs
from tui.store import EventStore

AGAIN = r"""
#include <unistd.h>
__attribute__((noinline)) int work(int n) { volatile int kept = n; return kept + 1; }
int main(int argc, char **argv)
{
    work(1);
    if (argc < 2) execl(argv[0], argv[0], "again", (char *)0);
    execl("/bin/true", "true", (char *)0);
    return 9;
}
"""


def named_by_number(address: int, files: object) -> str:
    """Stands for a browser: the name says which files it was asked for."""
    assert isinstance(files, list | tuple)
    return f"{files[0].path if files else 'none'}+0x0/0x4"


def mapped(program: int, path: str) -> ev.FileMapped:
    return ev.FileMapped(program, ModuleView(path, 0, 1 << 60, 0, False))


def test_each_row_by_its_own_program() -> None:
    """Three rows of one thread: the second one is of another program, the third of a library."""
    programs = Programs(named_by_number)
    store = EventStore(Names(programs.symbol), programs=programs)
    store.declare(INFOS)
    store.append(facts(3))
    rows = [store.event(number) for number in range(3)]
    thread = rows[0].thread_id
    assert {row.thread_id for row in rows} == {thread}
    assert len({row.time for row in rows}) == 3
    for program, path in enumerate(("first", "second")):
        programs.mapped(mapped(program, path))
    programs.began(ev.ProgramBegan(thread, rows[1].time, 1))
    programs.began(ev.ProgramBegan(thread, rows[2].time, 0))
    expected = ["first", "second", "first"]
    for order in (range(3), range(2, -1, -1)):
        for number in order:
            assert expected[number] in store.parts(number).place.decode()
            assert f"({expected[number]}+0x0/0x4" in store.text(number)
            assert store.program(number) == (number == 1)
    assert [
        next(filter(None, store.find(path, 0, 3, False)), 0) for path in ("second", "none")
    ] == [
        1,
        0,
    ]
    store.take_snapshot()
    found = "".join(store.snapshot_text()).splitlines()
    assert [path in line for path, line in zip(expected, found, strict=True)] == [True] * 3
    lines = CallTree(store)
    lines.step(1)
    assert [lines[index].program for index in range(len(lines))] == [0, 1, 0]
    assert programs.main(1) == "second"
    store.clear()
    assert (programs.main(1), programs.of(thread, rows[1].time)) == ("", 0)


def test_a_process_that_begins_other_programs(tmp_path: Path) -> None:
    """Both programs have ended when the rows are looked at, and /bin/true is in sight."""
    path = str(build(tmp_path, "again", AGAIN))
    browser = Browser(GuestConfig(path))
    programs = Programs(browser.symbol_text)
    store = EventStore(Names(programs.symbol), programs=programs)
    with held(path) as guest:
        guest.do(cmd.Define("p:g/w work"), cmd.Define("p:g/e _exit"))
        assert guest.do(cmd.Continue()).state is RunState.ENDED
        browser.update(guest.view)
        for event in guest.said:
            match event:
                case ev.Declared(infos):
                    store.declare(infos)
                case ev.Rows(data):
                    store.append(data)
                case ev.ProgramBegan():
                    programs.began(event)
                case ev.FileMapped():
                    programs.mapped(event)
                case _:
                    pass
        places = [store.parts(number).place.decode() for number in range(store.end)]
        assert [place.partition("+")[0] for place in places] == ["work", "work", "_exit"]
        assert [store.program(number) for number in range(store.end)] == [0, 1, 2]
        assert guest.view.program_in_sight == 2
        assert programs.main(2).endswith("/true")
