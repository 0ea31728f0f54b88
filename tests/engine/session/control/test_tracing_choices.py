"""Filters and triggers from a front end: given and taken, kept in a fresh run, undone."""

import re
from pathlib import Path

import archkit
import pytest
from archkit import FIRST_COMPILED
from controlkit import Given, Held, held, sample
from guestrun import run

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState
from engine.trace.rows import Value

both = pytest.mark.parametrize("arch", FIRST_COMPILED)


def define(arch: str, event: str = "fib") -> cmd.Define:
    return cmd.Define(f"p:demo/{event} fibonacci n={archkit.argument(arch)}:u32")


def values(guest: Held) -> list[Value]:
    return [event.values[0] for event in guest.events]


@both
def test_a_filter_drops_events_and_a_fresh_run_keeps_it(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        view = guest.do(define(arch), cmd.SetFilter("demo/fib", "n > 13"), cmd.Continue())
        assert values(guest) == [15, 14]
        assert view.probes[0].row.rules.filter == "n > 13"
        view = guest.do(cmd.Restart(), cmd.Continue())
        assert values(guest) == [15, 14]
        assert view.probes[0].row.rules.filter == "n > 13"
        guest.do(cmd.SetFilter("demo/fib", ""), cmd.Restart())
        view = guest.do(cmd.Continue())
        assert len(guest.events) == view.probes[0].hits
        assert view.probes[0].row.rules.filter == ""


HIST = "hist:keys=n:vals=hitcount:sort=hitcount.descending if n < 9"


def tables(text: str) -> str:
    """What a trace on the command line prints of histograms."""
    return text[text.index("# event: ") :].rstrip("\n")


@both
def test_a_histogram_reads_as_the_command_line_prints_it(arch: str, tmp_path: Path) -> None:
    program = sample(arch, "recursion")
    words = ("-e", define(arch).line, "--trigger", f"demo/fib:{HIST}")
    done = run("trace", *words, "--trigger", "demo/fib:hist:keys=n.log2", program, cwd=tmp_path)
    with held(program) as guest:
        guest.do(
            define(arch),
            cmd.ChangeTrigger("demo/fib", HIST),
            cmd.ChangeTrigger("demo/fib", "hist:keys=n.log2"),
        )
        assert all("Hits: 0" in text for text in guest.view.histograms)
        view = guest.do(cmd.Continue())
        assert "\n\n".join(view.histograms) == tables(done.err)
        again = guest.do(cmd.Restart())
        assert all("Hits: 0" in text for text in again.histograms)
        assert guest.do(cmd.Continue()).histograms == view.histograms
        assert again.probes[0].row.rules.triggers == (HIST, "hist:keys=n.log2")


def test_triggers_go_by_what_they_are_and_come_back_with_undo() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(define("x86_64"), cmd.ChangeTrigger("demo/fib", "hist:keys=n"))
        guest.do(cmd.ChangeTrigger("demo/fib", "hist:keys=n:pause"))  # the same one rests
        assert guest.probe(1).row.rules.triggers == ("hist:keys=n",)
        assert "[paused]" in guest.view.histograms[0]
        view = guest.do(cmd.ChangeTrigger("demo/fib", "!hist:keys=n:sort=hitcount"))
        assert (view.probes[0].row.rules.triggers, view.histograms) == ((), ())
        view = guest.do(cmd.Undo())
        assert view.probes[0].row.rules.triggers == ("hist:keys=n",)
        assert len(view.histograms) == 1
        assert guest.do(cmd.Redo()).histograms == ()


def test_a_deleted_probe_comes_back_with_its_filter() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(define("x86_64"), cmd.SetFilter("demo/fib", "n == 3"), cmd.Delete((1,)))
        guest.do(define("x86_64"))
        assert guest.probe(2).row.rules.filter == ""  # another one of that name begins without
        guest.do(cmd.Undo(), cmd.Undo())
        assert guest.probe(1).row.rules.filter == "n == 3"
        guest.do(cmd.Continue())
        assert set(values(guest)) == {3}


def test_a_filter_holds_for_all_probes_of_an_event() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(define("x86_64"), cmd.SetFilter("demo/fib", "n > 14"))
        guest.do(cmd.Define("p:demo/fib factorial n=%di:u32"))
        assert [probe.row.rules.filter for probe in guest.view.probes] == ["n > 14"] * 2
        guest.do(cmd.Delete((1,)), cmd.Restart(), cmd.Continue())
        assert values(guest) == [20]  # of `factorial`


def test_a_changed_definition_keeps_the_filter_that_fits_it() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(define("x86_64"), cmd.SetFilter("demo/fib", "n > 14"))
        view = guest.do(cmd.Define("p:demo/other fibonacci n=%di:u64", replaces=1))
        assert view.probes[0].row.rules.filter == "n > 14"
        guest.do(cmd.Define("p:demo/other fibonacci m=%di:u64", replaces=1))
        assert guest.probe(1).row.rules.filter == ""
        assert "Field not found" in guest.all(ev.Done)[-1].text
        assert guest.do(cmd.Undo()).probes[0].row.rules.filter == "n > 14"


@pytest.mark.parametrize(
    ("command", "at", "text"),
    [
        (cmd.SetFilter("demo/fib", "n > 3 && m == 1"), "== 1", "Field not found"),
        (cmd.ChangeTrigger("demo/fib", "hist:keys=nosuch"), "nosuch", "Couldn't find field"),
        (cmd.ChangeTrigger("demo/fib", "stacktrace if k == 1"), "== 1", "Field not found"),
        (cmd.ChangeTrigger("demo/fib", "nosuch"), None, "there is no 'nosuch'"),
        (cmd.ChangeTrigger("demo/fib", "!stacktrace"), None, "there is no such trigger"),
        (cmd.ChangeTrigger("demo/fib", " "), None, "which trigger?"),
        (cmd.SetFilter("demo/nosuch", "n > 3"), None, "there is no event demo/nosuch"),
        (cmd.SetFilter("nosuch", "n > 3"), None, "GROUP/NAME"),
    ],
)
def test_a_mistake_changes_nothing_and_has_its_column(
    command: cmd.SetFilter | cmd.ChangeTrigger, at: str | None, text: str
) -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(define("x86_64"), cmd.SetFilter("demo/fib", "n > 14"))
        failure = guest.fail(command)
        assert failure is not None
        assert text in failure.text
        if at is not None:
            assert failure.column is not None
            assert failure.source[failure.column :].startswith(at)
        assert (guest.probe(1).row.rules.filter, guest.probe(1).row.rules.triggers) == (
            "n > 14",
            (),
        )
        guest.do(cmd.Continue())
        assert values(guest) == [15]


def test_call_stacks_from_a_trigger_are_declared_and_recorded() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(define("x86_64"), cmd.RunTo(guest.address("fibonacci")))
        guest.do(cmd.ChangeTrigger("demo/fib", "stacktrace:1 if n == 14"), cmd.Continue())
        stacks = [event for event in guest.events if event.name == "user_stack"]
        assert len(stacks) == 1


def test_rules_change_while_the_guest_runs() -> None:
    with held(sample("x86_64", "loop"), "20000") as guest:
        guest.do(cmd.Define("p:demo/mix mix i=%si:u32"), cmd.SetFilter("demo/mix", "i == 20000"))
        given: list[cmd.Command] = [
            cmd.ChangeTrigger("demo/mix", "hist:keys=common_pid"),
            cmd.SetFilter("demo/mix", ""),
        ]
        guest.control.queue.source = Given(lambda: given.pop() if given else None)
        guest.control.sight.attention()
        view = guest.do(cmd.Continue())
        assert view.state is RunState.ENDED
        assert not guest.all(ev.Failed)
        assert 0 < len(guest.events) <= 20_000
        hits = re.search(r"Hits: (\d+)", view.histograms[0])
        assert hits is not None
        assert 0 < int(hits[1]) <= 20_000
