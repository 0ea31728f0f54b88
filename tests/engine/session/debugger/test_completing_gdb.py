"""Completions beside those that gdb 13 gave for the same lines of the same programs.

`tests/data/debugger/completed.json` has gdb's answers at a stop, with the symbols of libraries
left out (`nosharedlibrary`): the program's own names are all that is offered here while it has
one. gdb lists overloads with their parameters; a bare name here means all of them.
"""

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, Final

import pytest
from compiled import build
from sysroot import CHECKOUT

from engine.arch.plan import Mode
from engine.errors import KprobeTuiError
from engine.message_text import bare_name
from engine.session import GuestConfig
from engine.session.control.control import Control
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.interpreter import HaltWish, Interpreter

_DATA: Final = CHECKOUT / "tests" / "data" / "debugger"
_GOLDEN: Final[dict[str, Any]] = json.loads((_DATA / "completed.json").read_text())
_FRONT: Final = re.compile(
    r"(?:(?:b|tbreak|rbreak|until|list|p|print|ptype|whatis|x|display|watch|rwatch|call"
    r"|set var|set|if|while|find|printf|condition 1|info \w+|-\w+)(?:/\w+)? )+"
)
_HERE: Final[dict[str, dict[str, list[str]]]] = {
    "lists": {
        "p o.": ["o.inner", "o.x", "o.y", "o.u", "o.fn", "o.text", "o.grid"],  # gdb: no x, y
        "p (char)gl": ["(char)global"],
        "p -gl": ["-global"],  # gdb waits for options
        "b twice if n": ["n", "node_t"],  # the variables of the place
        'dprintf twice,"%d",res': ["result"],
        "ptype struct ": ["node", "outer"],  # gdb: every symbol
        "p $ra": ["$rax"],  # gdb: functions behind a dollar
        "p $_str": ["$_strlen", "$_streq"],
        "info registers ri": ["rip"],
        "b wordex": ["wordexp"],  # a library's, as the program has none
        "tbreak printf": ["printf"],
        "print -pretty -- o.te": ["o.text"],
        "print -pr": ["-pretty"],
        "set print pretty ": ["off", "on"],
        "set pri": ["print"],
        "set disassembly-flavor i": ["intel"],
        "set env": ["environment"],
        "catch sysc": ["syscall"],
        "catch syscall epoll_create": ["epoll_create", "epoll_create1"],
        "handle SIGINT nopa": ["nopass"],
        "frame fu": ["function"],
        "thread apply all bac": ["backtrace"],
        "delete ": ["1", "breakpoints", "display"],
        "enable on": ["once"],
        "tb": ["tbreak"],
        "b twice thread ": ["1"],
        "step ": [],
        "list lists.c:su": ["lists.c:sum"],
    },
    "names": {
        "b park::List::push(": ["park::List::push(double)", "park::List::push(int)"],
        "b sum": ["park::Box<int>::sum"],
        "b hidden_s": ["(anonymous namespace)::hidden_step"],
        "b park::List::operator ": ["bool", "delete", "new"],
        "p hidden_c": ["hidden_count"],
        "p list.nothing": [],
        "p static_cast<park::Na": ["static_cast<park::Named"],  # gdb: functions, too
        "p push": [],  # an expression has no part of a path
        "b park::List::push if v": ["value", "void"],
        "ptype struct park::N": ["park::Named"],
        "ptype park::Box<i": ["park::Box<int>", "park::Box<int>::as<long>", "park::Box<int>::sum"],
    },
    "macros": {
        "p LIMI": ["LIMIT", "LIMITED("],
        "p queue.u.": ["queue.u.raw", "queue.u.bytes"],
        "ptype enum st": ["state"],
    },
}


@pytest.fixture(scope="module", params=_GOLDEN)
def stopped(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Interpreter]]:
    """A program by name, standing where gdb was asked."""
    name = request.param
    golden = _GOLDEN[name]
    folder = tmp_path_factory.mktemp(name)
    source = (_DATA / golden["source"]).read_text()
    compiler = "g++" if golden["source"].endswith(".cc") else "gcc"
    flag = "-g3" if name == "macros" else "-g"
    program = build(folder, name, source, flag, "-O0", "-w", compiler=compiler)
    control = Control(
        GuestConfig(str(program)),
        lambda event: None,
        mode=Mode.STRICT,
        source=HaltWish(),
        is_shown=False,
    )
    debugger = Debugger(control, lambda text: None, nullcontext)
    interpreter = Interpreter(debugger)
    for line in golden["start"]:
        interpreter.line(line)
    yield name, interpreter
    control.close()


def _plain(line: str) -> str:
    """A line without parameters, stubs' marks and blanks."""
    front = _FRONT.match(line)
    start = front.end() if front else 0
    start = len(line) - len(line[start:].lstrip("&*!({["))
    if line[start - 1 : start] == "(" and line[start:].startswith("anonymous"):
        start -= 1
    return re.sub(r"\s+", "", line[:start] + bare_name(line[start:]))


def _shown(lines: list[str]) -> list[str]:
    """Lines as both spell them: gdb has no colon behind a file, and lambdas behind brackets."""
    files = (line.rstrip(":") for line in lines if "{lambda" not in line)
    return sorted({_plain(line) for line in files})


@pytest.mark.slow
def test_lines_become_what_gdb_says(stopped: tuple[str, Interpreter]) -> None:
    name, interpreter = stopped
    for line, expected in _GOLDEN[name]["lines"].items():
        found = interpreter.completing.lines(line)
        assert _shown(found) == _shown(expected), line


@pytest.mark.slow
def test_lines_where_gdb_has_more_or_less(stopped: tuple[str, Interpreter]) -> None:
    name, interpreter = stopped
    for line, expected in _HERE[name].items():
        front = line[: len(line) - len(line.rpartition(" ")[2])]
        found = [one.removeprefix(front) for one in interpreter.completing.lines(line)]
        assert [one.rpartition(",")[2] for one in found] == expected, line


_TAKEN: Final = re.compile(r"(b|tbreak|p|ptype|whatis|info scope|list) ")
_UNKNOWN: Final = re.compile(r"not defined|No symbol|no member|syntax error|Undefined|No \w+ type")


@pytest.mark.slow
def test_no_completion_is_refused(stopped: tuple[str, Interpreter]) -> None:
    """Whatever is offered as a name is one to the word that it is offered to."""
    name, interpreter = stopped
    stops = interpreter._debugger.stops.all
    for line in (*_GOLDEN[name]["lines"], *_HERE[name]):
        if not _TAKEN.match(line) or "gl=" in line or "+" in line:
            continue
        for one in interpreter.completing.lines(line)[:8]:
            if one[-1] in ":(" or "if" in one or " -" in one or not _is_whole(one):
                continue
            before = set(stops)
            trouble = ""
            try:
                interpreter.line(one)
            except KprobeTuiError as error:
                trouble = str(error)
            assert not _UNKNOWN.search(trouble), one
            for number in set(stops) - before:
                interpreter.line(f"delete {number}")


def _is_whole(line: str) -> bool:
    """True if no bracket is open, nor a cast begun."""
    return "_cast<" not in line and all(
        line.count(left) == line.count(right) for left, right in ("()", "[]", "{}")
    )
