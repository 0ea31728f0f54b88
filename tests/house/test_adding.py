"""Things are added to a copy of the house: one file each, and one place to name them.

A format, a word, a pane, a lesson, a technique and a family of system calls.

Whatever else a new one needed would have to be added here, too.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from compiled import build
from controlkit import sample

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FORMAT = '''"""Names of events, a line each."""

from collections.abc import Collection
from typing import ClassVar

from engine.arch.program import EVENT_MOST, THREAD_MOST
from engine.trace.formats.base import Names
from engine.trace.rows import HEAD, EventTable, whole


class NamesFormat:
    """Prints what has happened, and nothing of it."""

    name: ClassVar[str] = "names"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = True
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        self._events = events

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        return b"names:\\n"

    def rows(self, data: bytes) -> bytes:
        lines, position = [], 0
        while position < len(data):
            event_id, words, thread = HEAD.unpack_from(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            lines.append(self._events[event_id].name.encode() + b"\\n")
            position += words * 8
        return b"".join(lines)

    def lost(self, count: int) -> bytes:
        return b""

    def end(self) -> bytes:
        return b"over\\n"

    def renamed(self, thread_id: int) -> None:
        pass

    def program(self, number: int) -> None:
        pass

    def state(self) -> object:
        return None
'''
WORD = '''"""A word that says where the guest stands."""

from engine.session.debugger.debugger import Debugger


class Whereabouts:
    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger

    def whereabouts(self, rest: str) -> None:
        """Say where the guest stands."""
        self._debugger.put(f"at {self._debugger.control.view().location}")
'''
PANE = '''"""A pane that says where the guest stands."""

from textual.widgets import Static

from engine.session.protocol.views import GuestView
from tui.widgets.pane import Pane


class PlacePane(Pane):
    TITLE = "Place"

    def __init__(self) -> None:
        super().__init__(Static("nowhere", id="told"))

    def show(self, view: GuestView) -> None:
        self.query_one("#told", Static).update(f"at {view.location}")
'''
TECHNIQUE = '''"""A jump that is written at the third hit of the breakpoint."""

from collections import Counter

from engine.probes.detourmap import DetourMap, LiveDetour
from engine.probes.jump import CONDITIONS, AtOnce, JumpsDone, jump_technique, scratch
from engine.probes.jump_machine import JumpMachine
from engine.probes.placement_rules import Check
from engine.probes.point import ProbePoint
from engine.probes.technique import TechniqueHost
from engine.probes.technique_kind import TechniqueKind


class AtThird(AtOnce):
    awaits = Check("third", False, "it was not hit three times yet")

    def __init__(self, host: TechniqueHost, detours: DetourMap, done: JumpsDone) -> None:
        self._hits: Counter[int] = Counter()
        self._waiting: dict[int, LiveDetour] = {}
        self._done = done
        self.told = ""

    def begin(self, live: LiveDetour) -> None:
        if live.zombie:
            self._done.reap()
        else:
            self._waiting[live.detour.address] = live

    def wants_hits(self, address: int) -> bool:
        return address in self._waiting

    def hit(self, point: ProbePoint) -> None:
        self._hits[point.address] += 1
        if self._hits[point.address] >= 3 and point.address in self._waiting:
            self._done.release(self._waiting.pop(point.address))


THIRD = TechniqueKind(
    name="third",
    help="a jump at the third hit",
    stands="jump",
    usual=False,
    machine=JumpMachine,
    build=lambda host: jump_technique(host, AtThird),
    conditions=CONDITIONS,
    scratch=scratch,
)
'''
THIRD = """
from jumpkit import opened

with opened("x86_64", "recursion", "third", "p fibonacci") as (guest, tracing):
    (point,) = guest.session.probes().manager.placed()
    (probe,) = point.probes
    tracing.start()
    for _ in range(2000):
        guest.session.kernel.step()
        if point.technique != "breakpoint":
            break
    print(point.technique, "at hit", probe.hits)
"""
FAMILY = '''"""Access rules of Landlock, in their simplest form."""

import errno

from engine.linux.context import SyscallTable
from engine.linux.thread import Thread


def landlock_create_ruleset(k: Thread, attributes: int, size: int, flags: int) -> int:
    """Return the version of the rules, or an error for anything else."""
    return 4 if flags == 1 and not attributes and not size else -errno.EINVAL


SYSCALLS: SyscallTable = {"landlock_create_ruleset": landlock_create_ruleset}
'''
CALLS = r"""
#include <stdio.h>
#include <unistd.h>

int main(void) {
    printf("%ld", syscall(444, 0, 0, 1));
    printf(" %ld", syscall(444, 0, 0, 0));
    return 0;
}
"""
USE = """
import asyncio
import sys

from engine.session import GuestConfig
from tui.app import KprobeApp


async def use():
    app = KprobeApp(GuestConfig(sys.argv[1]))
    async with app.run_test(size=(120, 40)) as pilot:
        while not app.view.registers:
            await pilot.pause(0.05)
        await pilot.press("W")
        await pilot.pause(0.3)
        pane = app.query_one("#place")
        print(pane.display, pane.query_one("#told").render())


asyncio.run(use())
"""


LESSON = """title = "A throwaway lesson"
about = "What a lesson needs"

[guest]
sample = "x86_64/recursion"

[[step]]
text = "A step."
do = "Press `c`."
check = ["state ended"]
right = "Ended."
hint = "`c` continues."
"""


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all copies stand, one after the other, so that they share their bytecode."""
    return tmp_path_factory.mktemp("ground")


@pytest.fixture
def house(ground: Path) -> Path:
    """A copy of the packages."""
    copy = ground / "house"
    shutil.rmtree(copy, ignore_errors=True)
    for package in ("engine", "tui"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, copy / package, ignore=ignored)
    return copy


def add(house: Path, path: str, text: str, registry: str, before: str, *lines: str) -> None:
    """Put a file into the house, and lines in front of one of a single other file."""
    target = house / path
    assert not target.exists()
    target.write_text(text)
    place = house / registry
    old = place.read_text()
    assert old.count(before) == 1, f"{before!r} in {registry}"
    (house / registry).write_text(old.replace(before, "\n".join((*lines, before))))


def said(house: Path, *words: str) -> str:
    """Run Python on these packages and return what it prints; errors fail."""
    paths = os.pathsep.join((str(house), *filter(None, sys.path)))
    # What a test changes has another size than before, so no bytecode of it is taken for its own.
    bytecode = str(house.with_name("bytecode"))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-P", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=house,
        env=environment,
    )
    assert not done.returncode, done.stderr
    return done.stdout + done.stderr


def test_an_output_format(house: Path) -> None:
    line = '    "names": "throwaway.NamesFormat",'
    registry = "engine/trace/formats/__init__.py"
    add(house, "engine/trace/formats/throwaway.py", FORMAT, registry, '    "jsonl":', line)
    words = ["-m", "tui", "trace", "-e", "p:g/first factorial", "--format", "names"]
    told = said(house, *words, sample("x86_64", "recursion"))
    assert "names:\nfirst\nover\n" in told
    assert "names" in said(house, "-m", "tui", "trace", "--help")


def test_a_word_of_gdb(house: Path) -> None:
    """The word and its class; what carries it out is made where it stands."""
    before = '            Word(("up",), looking.up, remote=True),'
    line = '            Word(("whereabouts",), Whereabouts(debugger).whereabouts),'
    registry = "engine/session/debugger/command_table.py"
    add(house, "engine/session/debugger/throwaway.py", WORD, registry, before, line)
    words = house / registry
    first = "from engine.session.debugger.watchpoint_words import Watching\n"
    module = "from engine.session.debugger.throwaway import Whereabouts\n"
    words.write_text(words.read_text().replace(first, module + first))
    options = ["--batch", "-ex", "break fibonacci", "-ex", "run", "-ex", "whereabouts"]
    told = said(house, "-m", "tui", *options, sample("x86_64", "recursion"))
    assert "\nat fibonacci+" in told
    listed = said(
        house, "-m", "tui", "--batch", "-ex", "help whereabouts", sample("x86_64", "recursion")
    )
    assert "Say where the guest stands." in listed


@pytest.mark.slow
def test_a_pane(house: Path) -> None:
    before = '    PaneSpec("threads", "T",'
    line = '    PaneSpec("place", "W", "Place", lambda s: PlacePane(), True, "interface"),'
    add(house, "tui/panes/throwaway.py", PANE, "tui/panes/registry.py", before, line)
    registry = house / "tui" / "panes" / "registry.py"
    first = "from tui.panes.threads import ThreadsPane\n"
    registry.write_text(
        registry.read_text().replace(first, first + "from tui.panes.throwaway import PlacePane\n")
    )
    assert said(house, "-c", USE, sample("x86_64", "recursion")).strip() == "True at _start+0x0"


def test_a_lesson(house: Path) -> None:
    line = '    "throwaway",'
    add(
        house, "tui/lessons/throwaway.toml", LESSON, "tui/lessons/__init__.py", '    "race",', line
    )
    listed = said(house, "-m", "tui", "learn")
    assert " 8  throwaway      A throwaway lesson\n" in listed
    assert " 9  race " in listed


def test_a_technique(house: Path) -> None:
    """A jump that waits for three hits is chosen by its name, told in the help and at work."""
    registry = house / "engine" / "probes" / "techniques.py"
    registry.write_text(
        registry.read_text()
        .replace("(BREAKPOINT, JUMP,", "(BREAKPOINT, THIRD, JUMP,")
        .replace(
            "from engine.probes.technique_kind",
            "from engine.probes.third import THIRD\nfrom engine.probes.technique_kind",
        )
    )
    (house / "engine" / "probes" / "third.py").write_text(TECHNIQUE)
    assert "third: a jump at the third hit" in " ".join(
        said(house, "-m", "tui", "trace", "--help").split()
    )
    assert said(house, "-c", THIRD) == "jump at hit 3\n"


def test_a_family_of_system_calls(house: Path, tmp_path: Path) -> None:
    line = '    "landlock": "landlock_create_ruleset",'
    before = '    "ldt": "modify_ldt",'
    add(house, "engine/linux/landlock.py", FAMILY, "engine/linux/table.py", before, line)
    guest = str(build(tmp_path, "calls", CALLS, "-static"))
    assert "4 -1" in said(house, "-m", "tui", "run", guest)
