"""Event probes in an interface's run: chosen, silenced, and there again in a fresh run."""

from collections import Counter
from pathlib import Path

from controlkit import Held, held

from engine.session.protocol import commands as cmd

TARGET = str(Path(__file__).parents[3] / "data" / "events" / "eprobe_target")
SHUT = "e:shut syscalls/sys_enter_close fd=$fd:s32"
ON_PROBE = "e:g/on my.begin $id"


def counts(guest: Held) -> Counter[str]:
    """The events of this run by name."""
    guest.do(cmd.Continue())
    return Counter(event.name for event in guest.events)


def test_event_probes_come_and_go_and_a_restart_keeps_them() -> None:
    with held(TARGET) as guest:
        guest.do(cmd.Define(f"p:my/begin {TARGET}:0x1000 id=%di:s32"))
        guest.do(cmd.TraceKernel((SHUT, ON_PROBE), group="eprobes"))
        assert counts(guest) == {"begin": 6, "shut": 6, "on": 6}
        guest.do(cmd.Restart())
        assert counts(guest) == {"begin": 6, "shut": 6, "on": 6}
        guest.do(cmd.Restart(), cmd.TraceKernel((ON_PROBE,), on=False, group="eprobes"))
        # Other system calls are chosen: the one that the probe stands on stays unseen.
        guest.do(cmd.TraceKernel(("getpid",)), cmd.TraceKernel(("sys_exit_getpid",), on=False))
        found = counts(guest)
        assert found["shut"] == 6
        assert found.keys() >= {"begin", "shut", "sys_enter_getpid"}
        assert not found.keys() & {"on", "sys_enter_close"}
        guest.do(cmd.Restart(), cmd.TraceKernel(on=False, group="eprobes"))
        assert "shut" not in counts(guest)


def test_one_that_is_refused_says_why() -> None:
    with held(TARGET) as guest:
        failure = guest.fail(
            cmd.TraceKernel(("e:x syscalls/sys_enter_close $no",), group="eprobes")
        )
        assert failure is not None
        assert "syscalls/sys_enter_close has $__syscall_nr, $fd" in failure.text
