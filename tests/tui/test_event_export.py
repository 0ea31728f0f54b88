"""`:export`: the events of the log as a file of each format."""

import json
from pathlib import Path

import pytest
from controlkit import sample
from flowkit import User, flow
from sessionkit import loaded

from engine.errors import CommandError
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import TraceOptions
from engine.session.protocol.views import RunState
from engine.trace.formats import FORMAT_NAMES
from tui.event_selection import EventSelection
from tui.filters import compile_filter
from tui.lineindex import Fold

DEFINITIONS = ("p:demo/fib fibonacci n=%di:u32", "r:demo/back fibonacci v=$retval")
GUEST = sample("x86_64", "recursion")
PLAIN = [name for name in FORMAT_NAMES if name not in ("folded", "pprof")]
"""Formats that need no call stacks."""


def _contents(path: Path) -> dict[str, bytes]:
    """The bytes of a file, or of the files in a directory."""
    if path.is_dir():
        return {each.name: each.read_bytes() for each in sorted(path.iterdir())}
    return {"": path.read_bytes()}


async def _to_the_end(user: User) -> None:
    for line in DEFINITIONS:
        await user.command(line)
    await user.until(lambda: len(user.probes) == len(DEFINITIONS), "probes")
    await user.command("c")
    await user.state(RunState.ENDED)
    store = user.panes.events.store
    await user.until(lambda: store.end == user.view.events > 0, "all events")
    await user.says("exited normally")  # it would take the place of what is said next


def _traced(name: str, path: Path, *lines: str) -> dict[str, bytes]:
    """The same run's events as a trace writes them."""
    with loaded(GUEST, isolated=False) as guest:
        options = TraceOptions(name, str(path), buffer=1_000_000)
        tracing = guest.tracing(options)
        for line in lines:
            tracing.definitions.define(line)
        guest.run(tracing)
    return _contents(path)


@pytest.mark.slow
def test_each_format_is_as_a_trace_writes_it(tmp_path: Path) -> None:
    async def steps(user: User) -> None:
        await _to_the_end(user)
        for name in PLAIN:
            await user.command(f"export --format {name} {tmp_path / name}")
            await user.until(lambda: user.app.controls.export.idle, name)
        for name in ("a.jsonl", "b.pftrace", "c.dat"):
            await user.command(f"export {tmp_path / name}")
            await user.until(lambda: user.app.controls.export.idle, name)

    flow(steps, config=GuestConfig(GUEST))
    for name in PLAIN:
        wanted = _traced(name, tmp_path / f"trace-{name}", *DEFINITIONS)
        assert _contents(tmp_path / name) == wanted, name
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "jsonl").read_bytes()
    assert (tmp_path / "b.pftrace").read_bytes() == (tmp_path / "perfetto").read_bytes()
    assert (tmp_path / "c.dat").read_bytes() == (tmp_path / "trace.dat").read_bytes()


def test_formats_of_call_stacks_have_those_that_a_trigger_records(tmp_path: Path) -> None:
    names = ("folded", "pprof")

    async def steps(user: User) -> None:
        await user.command(DEFINITIONS[0])
        await user.until(lambda: user.probes, "a probe")
        await user.command("trigger demo/fib stacktrace")
        await user.command("c")
        await user.state(RunState.ENDED)
        store = user.panes.events.store
        await user.until(lambda: store.end == user.view.events > 0, "all events")
        for name in names:
            await user.command(f"export {tmp_path / ('x.' + name)}")
            await user.until(lambda: user.app.controls.export.idle, name)

    flow(steps, config=GuestConfig(GUEST))
    for name in names:
        wanted = _traced(name, tmp_path / f"trace-{name}", DEFINITIONS[0])
        assert _contents(tmp_path / f"x.{name}") == wanted


def test_the_filter_says_which_unless_all_are_wanted(tmp_path: Path) -> None:
    async def steps(user: User) -> None:
        await _to_the_end(user)
        store = user.panes.events.store
        store.filter = compile_filter("n < 3", store.events)
        store.fold = Fold.EVENT
        for name, words in (("some", ""), ("all", "--all")):
            await user.command(f"export {words} --format jsonl '{tmp_path / name} of them'")
            await user.until(lambda: user.app.controls.export.idle, name)
        assert len((tmp_path / "all of them").read_text().splitlines()) == user.view.events
        some = [json.loads(line) for line in (tmp_path / "some of them").read_text().splitlines()]
        assert 0 < len(some) < user.view.events
        assert all(row["args"]["n"] < 3 for row in some)

    flow(steps)


def test_it_can_be_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EventSelection, "look", lambda self, seconds: True)

    async def steps(user: User) -> None:
        await _to_the_end(user)
        export = user.app.controls.export
        file = tmp_path / "x.jsonl"
        export.run(str(file))
        assert not export.idle
        with pytest.raises(CommandError, match="is being written; Ctrl-C stops that"):
            export.run("y")
        await user.press("ctrl+c")
        await user.says("is given up")
        assert export.idle
        assert not file.exists()

    flow(steps)


WRONG = (
    ("", "export needs a FILE"),
    ("a b", "export needs a FILE"),
    ("--format", "--format: it takes"),
    ("--some x", "--some: it takes"),
    ("'x", "No closing quotation"),
    ("--format no x", "there is no format 'no'; there are ftrace, jsonl"),
    ("x.pprof", "none were recorded"),
    ("/nowhere/x.jsonl", "No such file or directory"),
    ("/dev/full", "No space left on device"),
)


@pytest.mark.slow
def test_what_is_wrong_is_said_in_one_line() -> None:
    async def steps(user: User) -> None:
        await _to_the_end(user)
        for words, wrong in WRONG:
            await user.command(f"export {words}")
            await user.says(wrong)
            assert user.app.controls.export.idle

    flow(steps)
