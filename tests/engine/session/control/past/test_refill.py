"""A probe that is placed late fills the log for the whole recorded past."""

import random

import pytest
from controlkit import Given, held, sample
from msgspec.structs import replace
from refillkit import FIELDS, from_the_start, log, recorded

from engine.errors import ImageError
from engine.session.control.past.travel import Travel
from engine.session.guest.past import PastSession
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState
from engine.trace.rows import decode, renumbered

CASES = [
    ("x86_64", "race", "think", "auto"),
    ("x86_64", "forkserver", "print", "auto"),
    ("ia64", "recursion", "factorial", "auto"),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            ("aarch64", "race", "think", "auto"),
            ("riscv64", "pipeline", "print", "auto"),
            ("x86_64", "race", "think", "breakpoint"),
            ("x86_64", "race", "think", "jump"),
        )
    ),
]


@pytest.mark.parametrize(("arch", "name", "function", "technique"), CASES)
def test_late_is_early(arch: str, name: str, function: str, technique: str) -> None:
    """Entries, returns, system calls: placed at the end, in the middle and in the past."""
    commands = (
        cmd.Define(f"p {function}"),
        cmd.Define(f"r:back {function} ret=$retval"),
        cmd.TraceKernel(("write",), True, "syscalls"),
    )
    wanted, _ = from_the_start(arch, name, *commands, technique=technique)
    assert len(wanted) > 10
    with recorded(arch, name, technique=technique) as guest:
        guest.do(cmd.Continue(), *commands)
        assert log(guest) == wanted
        end = guest.view.time
        guest.do(cmd.Seek(end // 2), cmd.Delete((1,)))
        assert log(guest) == [row for row in wanted if row[1] not in ("", f"p_{function}_0")]
        guest.do(cmd.Undo())
        assert log(guest) == wanted
        assert guest.view.history is not None
        assert guest.view.history.past
        assert guest.probe(1).hits == sum(row[1] == f"p_{function}_0" for row in wanted)


def test_in_the_middle_and_on() -> None:
    """The run goes on behind what was filled in; a stop's own hit is not yet there."""
    wanted, _ = from_the_start("x86_64", "words", cmd.Define("p:e print text=+0(%di):string"))
    with recorded("x86_64", "words") as guest:
        guest.do(cmd.ToggleBreak("print"), *[cmd.Continue()] * 5)
        guest.do(cmd.Define("p:e print text=+0(%di):string"))
        assert log(guest) == wanted[:4]
        guest.do(cmd.Continue(), cmd.StepInsn())
        assert log(guest) == wanted[:6]
        guest.do(cmd.Delete((1,)), cmd.Continue())
        assert guest.control.state is RunState.ENDED
        assert log(guest) == wanted
        assert guest.probe(2).hits == len(wanted)
        guest.do(cmd.Enable((2,), False))
        assert not log(guest)
        guest.do(cmd.Enable((2,), True))
        assert log(guest) == wanted


def test_filters_histograms_and_graphs() -> None:
    """They hold for the whole run, too."""
    line, filter_ = "p:g/e print_char char=%di:u8", "char > 109"
    changes = (cmd.SetFilter("g/e", filter_), cmd.ChangeTrigger("g/e", "hist:keys=char"))
    wanted, _ = from_the_start("x86_64", "words", cmd.Define(line), *changes)
    with recorded("x86_64", "words") as guest:
        guest.do(cmd.Define(line), cmd.Continue())
        everything = log(guest)
        guest.do(*changes)
        assert log(guest) == wanted
        assert 0 < len(wanted) < len(everything)
        guest.do(cmd.SetFilter("g/e", ""))
        assert log(guest) == everything
        guest.do(cmd.SetFilter("g/e", filter_))
        graph = cmd.TraceFunctions(("print*",), True, 0)
        guest.do(graph)
        both = log(guest)
        assert [row for row in both if row[0] == "g"] == wanted
        texts = guest.view.histograms
    with recorded("x86_64", "words") as guest:
        guest.do(cmd.Define(line), *changes, graph, cmd.Continue())
        assert log(guest) == both
        assert guest.view.histograms == texts
        assert "Hits: " in texts[0]


@pytest.mark.parametrize("trigger", ["stacktrace", "traceoff"])
def test_rows_that_a_trigger_has_caused_go_with_it(trigger: str) -> None:
    """Stacks of other events' kind, and rows that were not written."""
    lines = (cmd.Define("p:g/a print"), cmd.Define("p:g/b print_char"))
    wanted, _ = from_the_start("x86_64", "words", lines[1])
    with recorded("x86_64", "words") as guest:
        guest.do(*lines, cmd.ChangeTrigger("g/a", trigger), cmd.Continue())
        assert log(guest) != wanted
        guest.do(cmd.Delete((1,)))
        assert log(guest) == wanted


def test_a_run_that_cannot_be_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is said, and the log stays as it was."""
    with recorded("x86_64", "words") as guest:
        guest.do(cmd.Define("p:a print"), cmd.Continue())
        before = log(guest)

        def fails(travel: Travel) -> PastSession:
            raise ImageError("it is gone")

        monkeypatch.setattr(Travel, "fresh", fails)
        guest.do(cmd.Define("p:b print_char"))
        (notice,) = guest.all(ev.Notice)
        assert "it is gone" in notice.text
        assert log(guest) == before


def test_it_can_be_ended_and_taken_up_again() -> None:
    """What was there before stays behind the tick where it was cut."""
    lines = (cmd.Define("p:a print"), cmd.Define("p:b print_char"))
    wanted, _ = from_the_start("x86_64", "words", *lines)
    with recorded("x86_64", "words") as guest:
        control = guest.control
        guest.do(lines[0], cmd.Continue())
        before = log(guest)
        asked = iter([None, cmd.Refresh(), cmd.Halt()])
        control.queue.source = Given(lambda: next(asked, None))
        guest.do(lines[1])
        (cut,) = [event.before for event in guest.all(ev.Refilled)]
        if cut:  # else it was quicker
            ((upto, _),) = cut
            assert (
                log(guest) == [row for row in wanted if row[1] == "a" or row[2] < upto]
                or log(guest) == before
            )
        guest.do(cmd.Refill())
        assert log(guest) == wanted


def test_rows_with_other_numbers() -> None:
    _, guest = from_the_start("x86_64", "words", cmd.Define("p:a print"))
    rows = next(event.data for event in guest.all(ev.Rows))
    info = guest.table[1]
    for number in (2, 0xFFFF, 0x10001, 0xFF0007):
        there = {number: replace(info, id=number)}
        other = renumbered(rows, {1: number})
        assert len(other) == len(rows)
        assert decode(there, other).id == number
        assert renumbered(other, {number: 1}) == rows


@pytest.mark.slow
def test_random_definitions() -> None:
    """100 definitions of places and values, with filters, placed late: the same rows."""
    choose = random.Random(24)
    functions = ("quick_sort", "swap", "print", "print_char", "main", "next_random")
    with held(sample("x86_64", "sort")) as guest:
        known = [name for name in functions if guest.control.probes.address_of(name)]
    for number in range(20):
        commands: list[cmd.Command] = []
        for at in range(5):
            fetches = " ".join(
                f"a{index}={field}" for index, field in enumerate(choose.sample(FIELDS, 3))
            )
            kind = choose.choice("pr")
            commands.append(cmd.Define(f"{kind}:g/e{at} {choose.choice(known)} {fetches}"))
        if choose.random() < 0.5:
            commands.append(cmd.SetFilter("g/e0", "common_pid == 1000"))
        wanted, _ = from_the_start("x86_64", "sort", *commands)
        with recorded("x86_64", "sort") as guest:
            cut = choose.randrange(len(commands))
            guest.do(*commands[:cut], cmd.Continue(), *commands[cut:])
            assert log(guest) == wanted, (number, commands)
