"""Conditions of steps: each is true where it should be, and false elsewhere."""

import pytest

from engine.session.protocol.probes import EventTexts, ProbeRow, ProbeView
from engine.session.protocol.views import (
    DetourCounts,
    GuestView,
    HistoryView,
    HitView,
    PhaseView,
    RegisterView,
    RunState,
)
from tui.lessons.checks import CHECKS, Seen, holds

ROW = ProbeRow(1, "p", "r4:demo/f f ret=$retval", stops=True, rules=EventTexts("n > 1"))
PROBE = ProbeView(ROW, "r", "demo/f", "f+0x0", technique="jump", hits=9, misses=2)
WHOLE = ProbeView(ProbeRow(2, "p", "p g+4"), "p", "g/g", "g+0x4", hits=5)
HIT = HitView(
    64,
    "f+0x0",
    ("p",),
    ("armed", "trap"),
    (PhaseView("armed", "", 64, 64), PhaseView("out of line", "", 64, 64)),
    "",
    "boosted",
    "",
    b"",
    b"",
    "",
)
VIEW = GuestView(
    state=RunState.STOPPED,
    reason="probe 1: it returns",
    location="f+0x0",
    registers=(RegisterView("rdi", 16),),
    hit=HIT,
    at_hit=True,
    probes=(PROBE, WHOLE),
    unwinder="owens",
    thread=1002,
    threads=3,
    time=33,
    events=7,
    exit_code=3,
    detours=DetourCounts(2, 1, (), 4),
    history=HistoryView(33, 90, True, branches=("main", "b1")),
)
SEEN = Seen(VIEW, "f+0x7", "code", "VerdictScreen", ("watch n",), "uprobe:/bin/f", "$1 = 3\nmore")

# True of what is seen; false of it.
CASES = {
    "at": ("at g f", "at main"),
    "branch": ("branch", ""),
    "complete": ("complete g+0x4 5", "complete f 1"),
    "copied": ("copied uprobe:", "copied kprobe:"),
    "cursor": ("cursor 'f\\+0x7'", "cursor f"),
    "defined": ("defined ^r4:", "defined ^p:"),
    "detours": ("detours 2", "detours 3"),
    "dialog": ("dialog VerdictScreen", "dialog HelpScreen"),
    "events": ("events 7", "events 8"),
    "exit": ("exit 3", "exit 0"),
    "filtered": ("filtered", ""),
    "frame": ("", "frame main"),
    "frames": ("frames 0", "frames 1"),
    "freed": ("freed 4", "freed 5"),
    "hit": ("hit f", "hit g"),
    "hits": ("hits f 9", "hits f 10"),
    "location": ("location f+0x0", "location f+0x1"),
    "misses": ("misses f 2", "misses g+0x4 1"),
    "pane": ("pane code events", "pane events"),
    "past": ("past", ""),
    "phase": ("phase 'out of line'", "phase armed"),
    "printed": ("printed '= 3\\b'", "printed '= 4'"),
    "probe": ("probe r f", "probe p f"),
    "reason": ("reason returns", "reason SIGSEGV"),
    "register": ("register rdi 0x10", "register rdi 0"),
    "route": ("route boosted", "route called"),
    "state": ("state stopped ended", "state ended"),
    "stops": ("stops f", "stops g+0x4"),
    "technique": ("technique f jump", "technique f breakpoint"),
    "thread": ("thread 1002", "thread 1001"),
    "threads": ("threads 3", "threads 4"),
    "tick": ("tick 33", "tick 34"),
    "typed": ("typed watch", "typed goto"),
    "unwinder": ("unwinder owens", "unwinder full"),
    "zombies": ("zombies 1", "zombies 2"),
}


def test_every_condition_has_a_case() -> None:
    assert set(CASES) == set(CHECKS)


@pytest.mark.parametrize("name", CASES)
def test_a_condition(name: str) -> None:
    true, false = CASES[name]
    assert not true or holds(true, SEEN)
    assert not true or not holds(f"!{true}", SEEN)
    assert not false or not holds(false, SEEN)
    bare = Seen(GuestView())
    if name in ("branch", "filtered", "past", "phase", "route", "hit"):
        assert not holds(true, bare)


def test_a_condition_that_means_nothing_is_an_error() -> None:
    with pytest.raises(KeyError):
        holds("nonsense 1", SEEN)
