"""Callers and callees of functions from a function graph, as `uftrace graph FUNC` shows them.

The backtrace part has the ways on which a function was called, the call graph part what it called
and how long that took. A call within another call of such a function belongs to the outer one, as
in `start_graph` of uftrace's cmds/graph.c. Options are words: `callers=GLOB` and `callees=GLOB`,
again and again, `unit=UNIT`, `demangle=STYLE` and `json`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Final, cast

import msgspec
from msgspec import Struct, field

from engine.arch.program import EVENT_MOST
from engine.trace.finishedcalls import EndedCall, FinishedCalls, ThreadCalls
from engine.trace.formats.base import Names
from engine.trace.formats.report import UNITS, FunctionNames, ReportWords, take_rows
from engine.trace.rows import EventTable

DEEPEST: Final = 128
"""Levels of the call graph, and frames of a backtrace: what lies deeper counts as the last of
them. Else a recursion of n calls would have n lines of up to n columns."""
WAYS_MOST: Final = 1 << 16
"""Backtraces, and functions of the call graph, that are told apart: guests may have any number."""
_OTHERS: Final = ("(others)",)
_TIME: Final = 10


class _CallPath(Struct):
    """A backtrace: its functions, the outermost first, how often it was met, time in the last."""

    path: tuple[str, ...]
    hits: int = 0
    time: int = 0


class _Callee(Struct):
    """A function in the call graph, on one way to it."""

    name: str
    parent: int
    level: int
    calls: int = 0
    time: int = 0
    children: dict[str, int] = field(default_factory=dict)


class CallGraphFormat:
    """Counts the ways to functions and the calls in them; everything comes at the end."""

    name: ClassVar[str] = "callgraph"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table.

        Raises:
            CommandError: there is no such option.
        """
        words = ReportWords.of(options)
        self._words = words
        self._named = FunctionNames(names, words.demangle)
        self._ways: dict[tuple[str, ...], _CallPath] = {}
        self._nodes = [_Callee("", 0, 0)]
        self._lost = 0
        self._is_called = _matcher(words.callers)
        self._calls_others = _matcher(words.callees)
        self._calls = FinishedCalls(events, self._named.name, self._ended, self._began)

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """Nothing."""
        return b""

    def rows(self, data: bytes) -> bytes:
        """Nothing yet."""
        take_rows(self._calls, data)
        return b""

    def lost(self, count: int) -> bytes:
        """A line at the end will say how many."""
        self._lost += count
        return b""

    def end(self) -> bytes:
        """Both parts, as far as they are asked for."""
        self._calls.finish()
        if self._words.json:
            out = msgspec.json.encode(self._plain())
            out = msgspec.json.format(out) + b"\n"
        else:
            out = ("\n".join(self._lines()) + "\n").encode(errors="backslashreplace")
        self._ways.clear()
        self._nodes = [_Callee("", 0, 0)]
        self._lost = 0
        return out

    def renamed(self, thread_id: int) -> None:
        """Threads are not told apart."""

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._named.program(number)

    def state(self) -> object:
        """All that was counted, and calls that are open."""
        ways = [[*msgspec.structs.astuple(way)] for way in self._ways.values()]
        nodes = [[one.name, one.parent, one.level, one.calls, one.time] for one in self._nodes]
        return [ways, nodes, self._lost, self._calls.state()]

    def restore(self, state: object) -> None:
        """Go on counting."""
        ways, nodes, lost, calls = cast("Any", state)
        self._ways = {}
        for path, hits, time in ways:
            names = tuple(map(str, path))
            self._ways[names] = _CallPath(names, int(hits), int(time))
        self._nodes = [
            _Callee(str(name), int(parent), int(level), int(called), int(time))
            for name, parent, level, called, time in nodes
        ]
        for at, one in enumerate(self._nodes):
            if at:
                self._nodes[one.parent].children[one.name] = at
        self._lost = int(lost)
        self._calls.restore(calls)

    # -- calls ----------------------------------------------------------------------------

    def _began(self, around: ThreadCalls) -> None:
        call = around.calls[-1]
        outer = around.calls[-2].node if len(around.calls) > 1 else 0
        if outer or self._calls_others(call.name):
            call.node = self._child(outer, call.name)
            self._nodes[call.node].calls += 1

    def _child(self, outer: int, name: str) -> int:
        """The node of a call of a function in a node, or in none, which is 0."""
        parent = self._nodes[outer]
        if parent.level >= DEEPEST or parent.name == _OTHERS[0]:
            return outer
        if len(self._nodes) > WAYS_MOST and name not in parent.children:
            name = _OTHERS[0]
        found = parent.children.get(name)
        if found is None:
            found = parent.children[name] = len(self._nodes)
            self._nodes.append(_Callee(name, outer, parent.level + 1))
        return found

    def _ended(self, thread: int, ended: EndedCall, around: ThreadCalls) -> None:
        call = ended.call
        if call.node and (not around.calls or around.calls[-1].node != call.node):
            self._nodes[call.node].time += ended.total
        if self._is_called(call.name) and not any(map(self._is_called, around.names)):
            path = (*(each.name for each in around.calls[-DEEPEST + 1 :]), call.name)
            if len(self._ways) >= WAYS_MOST and path not in self._ways:
                path = _OTHERS
            way = self._ways.get(path)
            if way is None:
                way = self._ways[path] = _CallPath(path)
            way.hits += 1
            way.time += ended.total

    # -- text -----------------------------------------------------------------------------

    def _lines(self) -> Iterator[str]:
        words = self._words
        asked = " ".join(dict.fromkeys((*words.callers, *words.callees)))
        yield f"# function call graph for '{asked}'"
        if self._lost:
            yield f"# {self._lost} events lost: times and calls are those of the others"
        yield f"# times in {UNITS.get(words.unit, words.unit)}"
        if words.callers:
            yield "=============== BACKTRACE ==============="
            for at, way in enumerate(self._ways.values()):
                yield f" backtrace #{at}: hit {way.hits}, time {way.time}"
                yield from (f"   [{index}] {name}" for index, name in enumerate(way.path))
                yield ""
            if not self._ways:
                yield " no call of such a function"
                yield ""
        if words.callees:
            yield "========== FUNCTION CALL GRAPH =========="
            yield "# TOTAL TIME   FUNCTION"
            roots = self._nodes[0].children.values()
            for at in roots:
                yield from self._tree(at, " ")
                yield ""
            if not roots:
                yield " no call of such a function"

    def _tree(self, at: int, front: str, sign: str = "", rest: str = "") -> Iterator[str]:
        """The lines of a node and of what is below it.

        Args:
            at: the node.
            front: what stands before its line.
            sign: what leads to it; "" where nothing else is called beside it.
            rest: what stands in the same place in the lines below it.
        """
        node = self._nodes[at]
        yield f" {node.time:>{_TIME}} :{front}{sign}({node.calls}) {node.name}"
        front += rest
        below = list(node.children.values())
        if len(below) == 1:
            yield from self._tree(below[0], front)
            return
        for child in below:
            last = child == below[-1]
            yield from self._tree(child, f"{front} ", "+-", "  " if last else "| ")
            if not last:
                yield f" {'':{_TIME}} :{front} |"

    def _plain(self) -> dict[str, object]:
        found: dict[str, object] = {"unit": self._words.unit}
        if self._words.callers:
            found["callers"] = [
                {"path": way.path, "calls": way.hits, "time": way.time}
                for way in self._ways.values()
            ]
        if self._words.callees:
            found["callees"] = [self._plain_tree(at) for at in self._nodes[0].children.values()]
        return found

    def _plain_tree(self, at: int) -> dict[str, object]:
        node = self._nodes[at]
        return {
            "name": node.name,
            "calls": node.calls,
            "time": node.time,
            "calls_to": [self._plain_tree(child) for child in node.children.values()],
        }


def _matcher(globs: Iterable[str]) -> Callable[[str], bool]:
    """Make a test of names: True where one of some patterns fits. Answers are remembered."""
    patterns = tuple(globs)
    known: dict[str, bool] = {}

    def matches(name: str) -> bool:
        found = known.get(name)
        if found is None:
            found = known[name] = any(fnmatchcase(name, glob) for glob in patterns)
        return found

    return matches
