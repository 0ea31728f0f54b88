"""Lines are completed by names of the source, members, registers, files and numbers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import build
from controlkit import Held, held

from engine.session.debugger.console import Console
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev

_SOURCE = """
#include <map>
#include <string>
namespace park {
struct Named { int tag; union { int wide; short narrow; }; };
struct List : Named {
    List *next; std::map<int, int> held;
    void push(int value) { held[value] = tag; }
    ~List() { next = nullptr; }
};
template <typename T> struct Pair { T left, right; T sum() { return left + right; } };
}
int counted, countless;
int work(park::List &list, int depth) { list.push(depth); return depth + counted; }
int main() {
    park::List list{};
    park::List *where = &list;
    park::Pair<int> pair{1, 2};
    return work(*where, 3) + pair.sum() > 100;
}
"""
# Each line, and what it may become: what `complete` says in gdb 13 where it says no more.
_BEFORE = {
    "b wo": ["b work"],
    "b park::Li": ["b park::List::push", "b park::List::~List"],
    "b pus": ["b park::List::push"],
    "b park::Pair<": ["b park::Pair<int>::sum"],
    "tbreak listed.c": ["tbreak listed.cc:"],
    "info sc": ["info scope"],
    "info scope wo": ["info scope work"],
    "set print elem": ["set print elements"],
    "set con": ["set confirm"],
    "p $ri": ["p $rip"],
    "p count": ["p counted", "p countless"],
    "x/4x &countl": ["x/4x &countless"],
    "ptype park::Na": ["ptype park::Named"],
    "advanc": ["advance"],
    "b nothing_at_all": [],
    "p 1 + ": [],
}
_STOPPED = {
    "p li": ["p list"],
    "p list.": [
        "p list.tag",
        "p list.wide",
        "p list.narrow",
        "p list.next",
        "p list.held",
        "p list.push",
    ],
    "p list.pu": ["p list.push"],
    "p list.next->t": ["p list.next->tag"],
    "p 2*list.ne": ["p 2*list.next"],
    "b 14 if dep": ["b 14 if depth"],
    "b park::List::push if v": ["b park::List::push if value"],
    "delete ": ["delete 1", "delete breakpoints", "delete display"],
    "condition 1 dep": ["condition 1 depth"],
    "p $wan": ["p $wanted"],
    "frame 1": ["frame 1"],
    "p work(list,1).t": [],
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of C++."""
    folder = tmp_path_factory.mktemp("listed")
    return build(folder, "listed", _SOURCE, "-g", "-O0", compiler="g++")


@pytest.fixture
def guest(program: Path) -> Iterator[Held]:
    with held(str(program)) as found:
        Console(found.control, found._tell)
        yield found


def _completed(guest: Held, line: str) -> list[str]:
    guest.do(cmd.CompleteLine(line))
    answer = guest.all(ev.LineCompleted)[-1]
    assert answer.line == line
    return list(answer.lines)


def test_names_before_the_start_and_where_the_program_stands(guest: Held) -> None:
    for line, expected in _BEFORE.items():
        assert _completed(guest, line) == expected, line
    guest.do(cmd.TypedLine("break work"), cmd.TypedLine("set $wanted = 1"), cmd.Continue())
    for line, expected in _STOPPED.items():
        assert _completed(guest, line)[: len(expected) or None] == expected, line


def test_files_of_the_host(guest: Held, tmp_path: Path) -> None:
    (tmp_path / "script.gdb").write_text("")
    (tmp_path / "scripts").mkdir()
    found = _completed(guest, f"source {tmp_path}/scr")
    assert found == [f"source {tmp_path}/script.gdb", f"source {tmp_path}/scripts/"]


def test_what_list_is_offered_it_takes(guest: Held) -> None:
    assert _completed(guest, "list listed.cc:wo") == ["list listed.cc:work"]
    guest.do(cmd.TypedLine("list listed.cc:work"))
    assert "int work(park::List &list, int depth)" in guest.all(ev.Done)[-1].text


def test_lines_in_each_other_are_completed_so_far(guest: Held) -> None:
    assert _completed(guest, "taas thread apply all info sy") == [
        "taas thread apply all info symbol"
    ]
    assert _completed(guest, "taas " * 3000 + "info sy") == []


def test_the_word_prints_them(guest: Held) -> None:
    guest.do(cmd.TypedLine("complete info sy"))
    assert guest.all(ev.Done)[-1].text == "info symbol"
    guest.do(cmd.TypedLine("complete set print pretty "))  # its last blank asks for the next word
    assert guest.all(ev.Done)[-1].text == "set print pretty off\nset print pretty on"


def test_scripts_of_bpftrace(guest: Held, tmp_path: Path) -> None:
    assert _completed(guest, "bpftrace upr") == ["bpftrace uprobe:"]
    assert _completed(guest, "bpftrace uprobe:mai") == ["bpftrace uprobe:main"]
    line = "bpftrace begin { @one = 1; printf(@o"
    assert _completed(guest, line) == [f"{line}ne"]
    assert _completed(guest, "bpftrace begin { @one = mal") == []
    (tmp_path / "sizes.bt").write_text("")
    assert _completed(guest, f"bpftrace {tmp_path}/si") == [f"bpftrace {tmp_path}/sizes.bt"]
