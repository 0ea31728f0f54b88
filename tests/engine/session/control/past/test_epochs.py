"""The log of a recorded run that is made in stretches, by processes, is that of one run."""

import os
import random
import signal
import time
from collections.abc import Callable

import pytest
from controlkit import Given, held, sample
from refillkit import FIELDS, from_the_start, log, recorded

from engine.history import timeline
from engine.session.control.past import epochs, refill
from engine.session.control.past.epochs import ForkedProcess, Send
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the host has no fork")


@pytest.fixture(autouse=True)
def stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs have checkpoints and stretches, too, and two processors to work on."""
    monkeypatch.setattr(timeline, "_SECONDS", 0.0)
    monkeypatch.setattr(timeline, "_SHARE", 0)
    monkeypatch.setattr(timeline, "_SLICE", 1000)
    monkeypatch.setattr(epochs, "_FEWEST", 2)
    monkeypatch.setattr(epochs, "_FIRST", 1)
    monkeypatch.setattr(epochs, "_STRETCHES", 4)
    monkeypatch.setattr(epochs, "_processors", lambda: 2)
    monkeypatch.setattr(refill, "SHORT", 0)


WORDS = (
    cmd.Define("p:g/e print text=+0(%di):string"),
    cmd.Define("p print_char char=%di:u8"),
    cmd.TraceKernel(("write",), True, "syscalls"),
    cmd.SetFilter("g/e", 'text ~ "*a*"'),
)
RACE = (cmd.Define("p think %di"), cmd.TraceKernel(("*",), True, "syscalls"))
CASES = [
    ("x86_64", "words", WORDS, "auto"),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            ("x86_64", "race", RACE, "auto"),
            ("x86_64", "race", RACE, "breakpoint"),
            ("x86_64", "words", WORDS, "jump"),
            ("aarch64", "race", (cmd.Define("p think %x0"), RACE[1]), "auto"),
            ("ia64", "recursion", (cmd.Define("p factorial"),), "auto"),
        )
    ),
]


@pytest.mark.parametrize(("arch", "name", "commands", "technique"), CASES)
def test_stretches_are_the_run(
    arch: str, name: str, commands: tuple[cmd.Command, ...], technique: str
) -> None:
    """Placed at the end, and again while one stands in the past, where checkpoints are by now."""
    wanted, _ = from_the_start(arch, name, *commands, technique=technique)
    with recorded(arch, name, technique=technique) as guest:
        guest.do(cmd.Continue(), *commands)
        assert log(guest) == wanted
        assert len({event.stretch for event in guest.all(ev.StretchBegun)}) > 1
        for probe in guest.view.probes:
            rows = sum(f"{row[0]}/{row[1]}" == probe.event for row in wanted)
            assert probe.hits == rows or probe.row.rules.filter
        guest.do(cmd.Seek(guest.view.time // 2))
        moment = guest.view.pc, guest.view.time
        known = len(guest.all(ev.StretchBegun))
        guest.do(cmd.Refill())
        assert log(guest) == wanted
        begun = [event.stretch for event in guest.all(ev.StretchBegun)[known:]]
        assert begun == sorted(begun, reverse=True)
        assert (guest.view.pc, guest.view.time) == moment


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("words", (cmd.Define("p:g/e print"), cmd.ChangeTrigger("g/e", "hist:keys=common_pid"))),
        ("words", (cmd.Define("r print $retval"),)),
        pytest.param("forkserver", (cmd.Define("p print"),), marks=pytest.mark.slow),
    ],
)
def test_what_reaches_further_is_made_from_the_start(
    name: str, commands: tuple[cmd.Command, ...]
) -> None:
    """Calls that are under way, histograms, several processes."""
    wanted, _ = from_the_start("x86_64", name, *commands)
    with recorded("x86_64", name) as guest:
        guest.do(cmd.Continue())
        guest.do(*commands)
        assert log(guest) == wanted


def test_a_process_that_is_killed_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stretch is lived through again; where that fails as well, the run is from its start."""
    wanted, _ = from_the_start("x86_64", "words", *WORDS[:1])
    hear, killed = epochs.PastEpochs._hear, list[int]()

    def kill(times: int) -> Callable[[epochs.PastEpochs, epochs._EpochProcess], None]:
        def heard(self: epochs.PastEpochs, worker: epochs._EpochProcess) -> None:
            hear(self, worker)
            if worker in self._workers and len(killed) < times and not worker.stretch.done:
                os.kill(worker.process.pid, signal.SIGKILL)
                killed.append(worker.process.pid)

        return heard

    for times in (1, 1000):
        killed.clear()
        monkeypatch.setattr(epochs.PastEpochs, "_hear", kill(times))
        with recorded("x86_64", "words") as guest:
            guest.do(cmd.Continue(), WORDS[0])
            assert log(guest) == wanted
            assert not guest.all(ev.Notice)


def test_what_is_cut_short_is_as_it_was() -> None:
    """In the ticks that are told, the rows are those of before; then all is filled in."""
    wanted, _ = from_the_start("x86_64", "words", *WORDS[:2])
    with recorded("x86_64", "words") as guest:
        control = guest.control
        guest.do(WORDS[0], cmd.Continue())
        asked = iter([*[None] * 6, cmd.Halt()])
        control.queue.source = Given(lambda: next(asked, None))
        guest.do(WORDS[1])
        (before,) = [event.before for event in guest.all(ev.Refilled)]

        def old(tick: int) -> bool:
            return any(first <= tick <= last for first, last in before)

        assert log(guest) == [row for row in wanted if row[1] == "e" or not old(row[2])]
        guest.do(cmd.Refill())
        assert log(guest) == wanted


def test_a_forked_process_ends_with_its_work() -> None:
    def work(send: Send) -> None:
        send(b"a" * 100_000)
        send(b"")

    process = ForkedProcess(work)
    found, ended = list[bytes](), False
    while not ended:
        more, ended = process.messages()
        found += more
        time.sleep(0.001)
    process.end().join()
    assert found == [b"a" * 100_000, b""]
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, 0)


@pytest.mark.slow
def test_random_definitions() -> None:
    """30 definitions of places and values, with filters, placed late: the same rows."""
    choose = random.Random(5)
    with held(sample("x86_64", "sort")) as guest:
        functions = ("quick_sort", "swap", "print", "print_char", "main")
        known = [name for name in functions if guest.control.probes.address_of(name)]
    for number in range(6):
        commands: list[cmd.Command] = []
        for at in range(5):
            fetches = " ".join(
                f"a{index}={field}" for index, field in enumerate(choose.sample(FIELDS, 3))
            )
            commands.append(cmd.Define(f"p:g/e{at} {choose.choice(known)} {fetches}"))
        if choose.random() < 0.5:
            commands.append(cmd.SetFilter("g/e0", "common_pid == 1000"))
        wanted, _ = from_the_start("x86_64", "sort", *commands)
        with recorded("x86_64", "sort") as guest:
            guest.do(*commands[:2], cmd.Continue(), *commands[2:])
            assert log(guest) == wanted, (number, commands)
