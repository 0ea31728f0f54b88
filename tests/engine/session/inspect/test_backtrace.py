"""Backtraces of a session: names, ends, and what other unwinders would print."""

import pytest
from controlkit import held, sample
from unwindkit import session_of

from engine.arch.plan import Mode
from engine.errors import CommandError
from engine.session.headless.backtraces import StoppedRun
from engine.session.inspect.backtrace import Backtrace, Backtraces
from engine.session.protocol import commands as cmd
from engine.session.protocol.frames import GuestFrame
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing
from engine.unwind.compare import UNWINDERS
from engine.unwind.unwinder import EndReason

CHAIN = ["leaf", "manyregs", "loopcall", "umain", "cstart", "_start"]
TRAMPOLINE = "kretprobe_trampoline"


def at_leaf(
    name: str, mode: Mode, unwinder: str, *, returns: bool = True, limit: int | None = None
) -> Backtrace:
    session = session_of(name)
    session.probes(mode)
    tracing = Tracing(session, TraceOptions(output="/dev/null", mode=mode))
    if returns:
        tracing.definitions.on_returns("*")
    stopped = StoppedRun(session, hit=3, unwinder=unwinder, limit=limit)
    stopped.at_place("leaf")
    tracing.start()
    session.run()
    tracing.finish()
    session.close()
    assert stopped.backtrace is not None
    assert stopped.hits == 3
    return stopped.backtrace


def names(backtrace: Backtrace) -> list[str]:
    return [frame.function for frame in backtrace.frames]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", ["amd64/unw-O2", "arm64/unw-O2fp"])
def test_pending_returns(name: str, mode: Mode) -> None:
    """With a return probe on every function, by each unwinder."""
    plain = at_leaf(name, mode, "full", returns=False)
    full = at_leaf(name, mode, "full")
    assert [(f.pc, f.cfa) for f in full.frames] == [(f.pc, f.cfa) for f in plain.frames]
    assert not any(frame.trampoline for frame in plain.frames)
    # The outermost return of AArch64 goes to a brk: nobody can watch it there.
    assert all(frame.trampoline for frame in full.frames[2:5])
    assert full.reason is EndReason.OUTERMOST

    assert names(at_leaf(name, mode, "kernel")) == CHAIN
    naive = at_leaf(name, mode, "naive")
    assert names(naive)[:3] == ["leaf", "manyregs", TRAMPOLINE]
    assert "loopcall" not in names(naive)
    # Frame pointers lead on from there, to a return that is caught or to the end.
    if name.startswith("amd64") or mode is Mode.KERNEL:
        assert naive.reason is not EndReason.OUTERMOST
    owens = names(at_leaf(name, mode, "owens"))
    assert [function for function in owens if function != TRAMPOLINE] == CHAIN
    assert owens[1:4] == ["manyregs", TRAMPOLINE, "loopcall"]
    scanned = names(at_leaf(name, mode, "kernel-2005"))
    assert scanned[:3] == ["leaf", "manyregs", TRAMPOLINE]
    assert "loopcall" not in scanned


@pytest.mark.parametrize("unwinder", [unwinder.name for unwinder in UNWINDERS])
def test_a_limit_is_an_end(unwinder: str) -> None:
    found = at_leaf("amd64/unw-O2", Mode.KERNEL, unwinder, limit=2)
    assert len(found.frames) == 2
    assert found.reason is EndReason.LIMIT
    assert list(found.lines())[-1] == "(end: the limit of 2 frames)"


def test_what_called_the_last_wanted_frame_is_left_out() -> None:
    with held(sample("x86_64", "structs")) as guest:
        guest.do(cmd.ToggleBreak("deposit"), cmd.Continue())
        backtraces = Backtraces(guest.control.session)
        whole = backtraces.take().frames
        assert [frame.function for frame in whole[:3]] == ["deposit", "transfer", "main"]
        assert len(whole) > 3
        asked: list[str] = []

        def is_last(frame: GuestFrame) -> bool:
            asked.append(frame.function)
            return frame.function == "main"

        assert backtraces.take(is_last=is_last).frames == whole[:3]
        assert asked == ["deposit", "transfer", "main"]
        assert backtraces.take(is_last=lambda frame: False).frames == whole


def test_an_unknown_unwinder() -> None:
    session = session_of("amd64/tiny")
    with pytest.raises(CommandError, match="no unwinder 'other'; there are full, naive"):
        Backtraces(session).take(unwinder="other")
    session.close()


def test_before_the_first_instruction() -> None:
    """A program without symbols, by its unwind table: the kernel entered it here."""
    session = session_of("amd64/tiny")
    found = Backtraces(session).take()
    assert [frame.source for frame in found.frames] == ["cfi"]
    assert found.reason is EndReason.OUTERMOST
    session.close()
