"""Return probes as the interface shows them: stops, phases, comparison, finish."""

from collections.abc import Iterator
from contextlib import contextmanager

import archkit
import pytest
from controlkit import Held, sample

from engine.arch.plan import Mode
from engine.message_text import counted
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import GuestView, HitView, RunState
from engine.unwind.compare import UNWINDERS

both = pytest.mark.parametrize("arch", archkit.EVERY)
modes = pytest.mark.parametrize("mode", list(Mode))
TRAMPOLINE = "kretprobe_trampoline"


@contextmanager
def guest_in(mode: Mode, arch: str, name: str = "recursion") -> Iterator[Held]:
    guest = Held(sample(arch, name), mode=mode)
    try:
        yield guest
    finally:
        guest.control.close()
        guest.terminal.close()


def stack_word(guest: Held) -> tuple[int, int]:
    """(stack pointer, the return address of a function that begins)."""
    session = guest.control.session
    roles, registers = session.arch.roles, guest.registers()
    sp = registers[roles.sp]
    if roles.link is not None:
        return sp, registers[roles.link]
    word: bytes = session.memory.read(sp, 8)
    return sp, int.from_bytes(word, "little")


def phases(guest: Held) -> Iterator[tuple[GuestView, HitView]]:
    while True:
        view = guest.do(cmd.StepPhase())
        assert view.hit is not None
        yield view, view.hit
        if not view.hit.next:
            return


def to_return(guest: Held) -> tuple[int, int]:
    """Run to the first return; stack pointer and return address that its call had."""
    calls: list[tuple[int, int]] = []
    for _ in range(200):
        view = guest.do(cmd.Continue())
        assert view.reason.startswith("probe 1: r:demo/r ackermann")
        if view.reason.endswith(" returns"):
            return calls[-1]
        assert view.location == "ackermann+0x0"
        calls.append(stack_word(guest))
    raise AssertionError("nothing returns")


# -- the comparison --------------------------------------------------------------------------


@both
@modes
def test_each_unwinder_is_compared_with_the_whole_backtrace(arch: str, mode: Mode) -> None:
    with guest_in(mode, arch) as guest:
        guest.do(cmd.Define("r:demo/r ackermann"), cmd.ToggleBreak("ackermann"))
        guest.do(*[cmd.Continue()] * 4)
        whole = guest.view
        assert [whole.unwinder, any(f.differs for f in whole.frames)] == ["full", False]
        taken = guest.control.sight.here.viewing.backtraces
        for comparison in UNWINDERS[1:]:
            view = guest.do(cmd.Unwind())
            assert view.unwinder == comparison.name
            expected = taken.take(unwinder=comparison.name)
            assert [f.pc for f in view.frames] == [f.pc for f in expected.frames]
            strange = [f.function for f in view.frames if f.differs]
            if comparison.name == "owens":
                assert set(strange) == {TRAMPOLINE}
            elif comparison.name == "naive":  # frame pointers may lead it on
                assert strange[0] == TRAMPOLINE
            kept = [f.pc for f in view.frames if not f.differs]
            rest = iter(f.pc for f in whole.frames)
            assert all(pc in rest for pc in kept), (
                "what is not marked is the whole one's, in order"
            )
            missing = len(whole.frames) - len(kept)
            assert (f"{counted(missing, 'frame')} of" in view.frames_end) == bool(missing)
        again = guest.do(cmd.Unwind())
        assert (again.unwinder, again.frames) == (whole.unwinder, whole.frames)
        assert guest.do(cmd.Unwind("owens")).unwinder == "owens"
        failed = guest.fail(cmd.Unwind("orc"))
        assert failed is not None
        assert "kernel-2005" in failed.text
        # The choice stays from stop to stop, and finish goes by the whole backtrace.
        caller = whole.frames[1].pc
        view = guest.do(cmd.ToggleBreak("ackermann"), cmd.Finish())
        assert (view.unwinder, view.reason, view.pc) == ("owens", "finished", caller)


# -- slow motion -----------------------------------------------------------------------------


@both
def test_the_entry_shows_the_return_address_replaced(arch: str) -> None:
    with guest_in(Mode.KERNEL, arch) as guest:
        guest.do(cmd.Define("r:demo/r ackermann", stops=True), cmd.Continue())
        sp, real = stack_word(guest)
        link = guest.control.session.arch.roles.link
        trampoline = guest.control.sight.here.viewing.backtraces.trampoline
        done = []
        for _, hit in phases(guest):
            assert hit.place == "ackermann+0x0"
            assert hit.returns_to is None
            done.append(hit.done[-1].name)
            phase = hit.done[-1]
            if phase.name == "pre-handlers":
                assert f"{real:#x} is replaced by {TRAMPOLINE}" in phase.text
                if link is not None:
                    assert (link, real, trampoline) in phase.registers
                else:
                    words = [(c.address, c.old, c.new, c.what) for c in phase.changes]
                    old, new = (v.to_bytes(8, "little") for v in (real, trampoline))
                    assert (sp, old, new, "stack") in words
        assert done[:3] == ["armed", "trap", "pre-handlers"]
        assert done[-1] == "resume"


@both
def test_the_trampoline_is_a_hit_that_says_where_it_goes_on(arch: str) -> None:
    with guest_in(Mode.KERNEL, arch) as guest:
        guest.do(cmd.Define("r:demo/r ackermann", stops=True))
        _, real = to_return(guest)
        view = guest.view
        trampoline = guest.control.sight.here.viewing.backtraces.trampoline
        assert (view.raw_pc, view.pc) == (trampoline, real)
        frames, seen = view.frames, []
        for view, hit in phases(guest):
            seen.append(hit.done[-1].name)
            assert (hit.address, hit.place, hit.returns_to) == (trampoline, TRAMPOLINE, real)
            assert hit.probes == (TRAMPOLINE, "demo/r")
            assert hit.slot is None
            assert view.pc == real
            assert view.frames == frames
            assert view.location.startswith(("ackermann+", "main+"))
            if seen[-1] == "emulated":
                assert "1 instance" in hit.done[-1].text
                assert hit.done[-1].text.endswith(f"pc becomes {real:#x}")
        assert seen == ["armed", "trap", "pre-handlers", "emulated", "post-handlers", "resume"]
        assert view.raw_pc == real
        assert [event.returned_to for event in guest.events] == [real]


@pytest.mark.parametrize("arch", archkit.FIRST_COMPILED)
def test_a_phase_step_over_the_return_instruction_leads_to_the_trampoline(arch: str) -> None:
    with guest_in(Mode.KERNEL, arch) as guest:
        guest.do(cmd.Define("r:demo/r fibonacci"))
        guest.do(cmd.RunTo(guest.address("fibonacci")))
        _, real = stack_word(guest)
        for _ in phases(guest):
            pass
        trampoline = guest.control.sight.here.viewing.backtraces.trampoline
        for _ in range(200_000):
            view = guest.view
            if (
                archkit.returns(guest.control.session, view.pc) and view.frames[1].trampoline
            ):  # a call that was not missed
                break
            guest.do(cmd.StepInsn())
        real = view.frames[1].pc
        assert guest.do(cmd.StepPhase()).raw_pc == trampoline
        assert guest.view.pc == real
        # A whole step passes the trampoline: it is no instruction of the program.
        assert guest.do(cmd.StepInsn()).raw_pc == real


@both
def test_in_strict_mode_the_watched_return_address_is_hit(arch: str) -> None:
    with guest_in(Mode.STRICT, arch) as guest:
        guest.do(cmd.Define("r:demo/r ackermann", stops=True))
        _, real = to_return(guest)
        assert (guest.view.raw_pc, guest.view.pc) == (real, real)
        seen = []
        for _, hit in phases(guest):
            seen.append(hit.done[-1].name)
            assert (hit.address, hit.returns_to) == (real, real)
            assert hit.probes == (f"return to {real:#x}", "demo/r")
            if seen[-1] == "pre-handlers":
                assert "1 instance waited for this return" in hit.done[-1].text
        assert seen[:3] == ["armed", "trap", "pre-handlers"]
        assert seen[-1] == "resume"
        assert [event.returned_to for event in guest.events] == [real]


@both
@modes
@pytest.mark.slow
def test_a_return_probe_stops_at_each_entry_and_each_return(arch: str, mode: Mode) -> None:
    with guest_in(mode, arch) as guest:
        guest.do(cmd.Define("r:demo/r ackermann"), cmd.Continue())
        assert guest.view.state is RunState.ENDED
        calls, out = guest.probe(1).hits, guest.out
    with guest_in(mode, arch) as guest:
        guest.do(cmd.Define("r:demo/r ackermann", stops=True))
        pending: list[tuple[int, int]] = []
        entries = returns = 0
        while guest.do(cmd.Continue()).state is not RunState.ENDED:
            if guest.view.reason.endswith(" returns"):
                _, real = pending.pop()
                assert guest.view.pc == real
                returns += 1
            else:
                pending.append(stack_word(guest))
                if pending[-1][1] == guest.control.sight.here.viewing.backtraces.trampoline:
                    pending[-1] = pending[-1][0], pending[-2][1]  # a tail call
                entries += 1
        assert (entries, returns, pending) == (calls, calls, [])
        assert (len(guest.events), guest.out) == (calls, out)


@both
@modes
def test_stops_can_be_had_and_given_up_in_the_middle_of_a_call(arch: str, mode: Mode) -> None:
    with guest_in(mode, arch) as guest:
        guest.do(cmd.Define("r:demo/r ackermann"), cmd.ToggleBreak("ackermann"))
        guest.do(*[cmd.Continue()] * 3)
        guest.do(cmd.ToggleBreak("ackermann"), cmd.StopOnHit((1,)))
        # The calls that are pending already stop as well.
        while not guest.do(cmd.Continue()).reason.endswith(" returns"):
            assert guest.view.state is RunState.STOPPED
        guest.do(cmd.StopOnHit((1,), False), cmd.Continue())
        assert guest.view.state is RunState.ENDED
        assert len(guest.events) == guest.probe(1).hits


# -- finish ----------------------------------------------------------------------------------


@both
@modes
@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.slow
def test_finish_ends_at_the_return_of_this_very_call(arch: str, mode: Mode, probed: bool) -> None:
    with guest_in(mode, arch) as guest:
        if probed:
            guest.do(cmd.Define("r:demo/r ackermann"))
        guest.do(cmd.ToggleBreak("ackermann"))
        for depth in (2, 4, 7):
            guest.do(cmd.Restart(), *[cmd.Continue()] * depth)
            sp, real = stack_word(guest)
            outer = guest.view.frames[1:]
            linked = guest.control.session.arch.roles.link is not None
            guest.do(cmd.Enable((guest.view.probes[-1].row.id,), on=False), cmd.Finish())
            view = guest.view
            assert (view.reason, view.pc, view.raw_pc) == ("finished", real, real)
            assert guest.registers()[guest.control.session.arch.roles.sp] == sp + (
                0 if linked else 8
            )
            assert [(f.pc, f.cfa) for f in view.frames] == [(f.pc, f.cfa) for f in outer]
            guest.do(cmd.Enable((guest.view.probes[-1].row.id,)))
