"""The events of branches side by side: the first that differs, and how many there are."""

from collections import Counter

import pytest
from controlkit import Given, Held, held, sample

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState
from engine.trace.rows import Event


def to_end(guest: Held) -> None:
    while guest.view.state is not RunState.ENDED:
        guest.do(cmd.Continue())


def untimed(event: Event) -> tuple[object, ...]:
    return (event.name, event.thread_id, event.address, event.returned_to, event.values)


def parted(guest: Held, arch: str) -> tuple[list[Event], list[Event]]:
    """A run and a branch of it that calls a function otherwise; the events of both."""
    first = "rdi" if arch == "x86_64" else "x0"
    guest.do(cmd.RunTo(guest.address("fibonacci")), cmd.ContinueToHit())
    moment = guest.view.time, guest.view.pc
    to_end(guest)
    ours = guest.events
    guest.do(cmd.Seek(*moment), cmd.StartBranch("short"))
    early = sum(event.time < moment[0] for event in ours)
    assert 0 < early < len(ours)
    guest.do(cmd.WriteRegister(first, 5))
    to_end(guest)
    return ours, [*ours[:early], *guest.events[len(ours) :]]


def lines_of(guest: Held, one: str, other: str) -> list[str]:
    text = guest.control.loop.carry_out(cmd.CompareBranches(one, other))
    return text.split("they have come to:")[1].splitlines()[3:]


@pytest.mark.parametrize("arch", ["x86_64", pytest.param("aarch64", marks=pytest.mark.slow)])
def test_the_events_are_those_of_the_two_runs(arch: str) -> None:
    """Against what each has told while it ran: the first that differs, and the counts."""
    with held(sample(arch, "recursion"), history=True) as guest:
        guest.do(cmd.Define("p:a/call fibonacci n=$arg1:u32"), cmd.Define("r:a/back fibonacci"))
        guest.do(cmd.Define("p:a/once print"))
        ours, theirs = parted(guest, arch)
        pairs = zip(ours, theirs, strict=False)
        number = next(n for n, (one, two) in enumerate(pairs) if untimed(one) != untimed(two))
        lines = lines_of(guest, "main", "short")
        assert lines[0] == "the first event that differs:"
        for line, name, event in zip(
            lines[1:3], ("main ", "short"), (ours[number], theirs[number]), strict=True
        ):
            assert line.startswith(f"  {name}: {event.time} recursion-1000 {event.name}(")
        assert "n=14" in lines[1]
        assert lines[3].split() == ["events:", "main", "short"]
        counts = [Counter(event.name for event in events) for events in (ours, theirs)]
        counts[1]["back"] += 1  # of the call that is under way where the branch leaves
        found = {
            name: (int(one), int(two)) for name, one, two in (line.split() for line in lines[4:])
        }
        assert found == {
            f"a/{name}": (counts[0][name], counts[1][name]) for name in ("call", "back", "once")
        }
        assert [line.split()[0] for line in lines[4:]] == ["a/back", "a/call", "a/once"]
        # What is recorded now counts, and both are asked in the other order, too.
        guest.do(cmd.Delete((1, 2)))
        assert lines_of(guest, "short", "main") == [
            "no event differs, so far as both have come",
            "events:  short main",
            f"  a/once {counts[1]['once']:5} {counts[0]['once']:4}",
        ]
        guest.do(cmd.Delete((3,)))
        assert lines_of(guest, "short", "main") == []


def test_a_branch_that_has_not_come_as_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it may still record is no difference; an interrupt says what is not known."""
    with held(sample("x86_64", "recursion"), history=True) as guest:
        guest.do(cmd.Define("p:a/call fibonacci"))
        guest.do(*[cmd.ContinueToHit()] * 3)
        moment = guest.view.time, guest.view.pc
        to_end(guest)
        guest.do(cmd.Seek(*moment), cmd.StartBranch("young"))
        lines = lines_of(guest, "young", "main")
        assert lines[0] == "no event differs, so far as both have come"
        assert lines[2].split()[:2] == ["a/call", "2"]
        monkeypatch.setattr("engine.session.control.past.log._ASK", 0)
        commands: list[cmd.Command] = [cmd.Halt()]
        guest.control.queue.source = Given(lambda: commands.pop() if commands else None)
        assert any("interrupted" in line for line in lines_of(guest, "young", "main"))
