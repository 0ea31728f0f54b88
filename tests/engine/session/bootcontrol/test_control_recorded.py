"""A recorded boot under control: it goes as it went, to and fro, with probes of later days."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootcontrolkit import BootUser
from bootkit import initrd, needs_host_code
from guestrun import run
from kernelimages import AMD64_61, image_path

from engine.machine.machine import BootEnd
from engine.session.headless.boot_recordings import opened_boot_recording
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.kernels import BootRequest
from engine.session.protocol.probes import ProbeRow
from engine.session.protocol.views import RunState

pytestmark = [pytest.mark.slow, needs_host_code]
INIT = """#!/bin/sh
mount -t proc proc /proc
read line
echo it is $line
sleep 0.5
for n in 1 2 3 4 5 6 7 8; do cat /proc/uptime; done
"""
OPEN = "p:t/open do_sys_openat2 name=+0($arg2):ustring"
RETURN = "r:t/ret vfs_read $retval"


def recorded(folder: Path, end: str) -> tuple[Path, bytes]:
    """Record a boot that ends with a line of its script: the file, and the console's text."""
    path, written = folder / "boot.rec", bytearray()
    disk = str(initrd(folder, INIT + end))
    request = BootRequest(str(image_path(AMD64_61)), initrd=disk, append="quiet")
    (folder / "typed").write_bytes(b"42\n")
    stdin = os.open(folder / "typed", os.O_RDONLY)
    stops = b"stop here" if end.startswith("echo") else b"\0"

    def put(data: bytes) -> None:
        written.extend(data)
        if stops in written:
            made.booted.halt()

    with opened_boot_recording(request, str(path), put, stdin) as made:
        how = made.run().reason
    os.close(stdin)
    assert how is (BootEnd.HALTED if end.startswith("echo") else BootEnd.OFF)
    return path, bytes(written)


def is_past(user: BootUser) -> bool | None:
    return user.view.history.past if user.view.history is not None else None


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    return recorded(tmp_path_factory.mktemp("whole"), "poweroff -f\n")


@pytest.fixture
def user(whole: tuple[Path, bytes]) -> Iterator[BootUser]:
    user = BootUser.again(whole[0])
    yield user
    user.close()


def test_rows_are_those_of_a_replay(
    user: BootUser, whole: tuple[Path, bytes], tmp_path: Path
) -> None:
    """With stops, the way back, seeks into times at which it waits; and for probes of later."""
    out = tmp_path / "out.txt"
    done = run("replay", "-e", OPEN, "-e", RETURN, "-o", str(out), str(whole[0]), cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    traced = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    assert len(traced) > 12
    user.control.refresh()
    history = user.view.history
    assert history is not None
    assert (user.view.time, history.now) == (0, 0)
    end = history.end
    assert end > 1_900_000_000
    user.do(cmd.Define(OPEN))
    user.do(cmd.ToggleBreak("do_sys_openat2"))
    first = user.do(cmd.Continue())
    assert first == "breakpoint 2 at do_sys_openat2+0x0"
    there = user.view
    user.do(cmd.StepInsn(5))
    assert user.do(cmd.ContinueBack()) == first
    assert (user.view.time, user.view.frames) == (there.time, there.frames)
    user.do(cmd.SetMark("there"))
    user.do(cmd.Delete((2,)))
    # A time that was not come to, in the half second in which nothing runs.
    told = user.do(cmd.Seek(1_600_000_000))
    assert told == "1600000000 ns after power-on"
    assert user.view.location.startswith("native_safe_halt+")
    assert is_past(user) is False
    assert user.do(cmd.Seek(1_550_000_000)) == "1550000000 ns after power-on"
    assert is_past(user) is True
    assert user.do(cmd.Continue()) == "the machine is switched off"
    assert (user.view.state, user.view.time, user.view.exit_code) == (RunState.ENDED, end, 0)
    assert user.output == whole[1].decode().replace("\r\n", "\n")
    assert "it is 42" in user.output
    assert user.of(ev.Remark) == []  # it has ended as it had: output, memory, registers
    opens = [line for line in traced if " open: " in line]
    rows = user.rows()
    assert len(rows) == len(opens) > 5
    names = [name.decode() for _, name in user.values("open")]
    for row, name, line in zip(rows, names, opens, strict=True):
        assert f"{row.time}: open: " in line
        assert f'name="{name}"' in line
    # Another probe, as if it had been there.
    assert user.do(cmd.SeekMark("there")).startswith(str(there.time))
    assert user.do(cmd.Seek()) == "the machine is switched off"
    user.do(cmd.Define(RETURN))
    user.told.clear()
    assert user.do(cmd.Refill()) == "the machine is switched off"
    assert user.of(ev.Remark) == user.of(ev.Output) == []
    again = [(row.time, row.name) for row in user.rows()]
    assert again == [
        (int(line.split()[3].rstrip(":")), line.split()[4].rstrip(":")) for line in traced
    ]
    assert user.do(cmd.SeekMark("there")).startswith(str(there.time))
    user.do(cmd.Restart())
    assert user.view.time == 0
    assert user.do(cmd.Continue()) == "the machine is switched off"
    assert user.of(ev.Remark) == []


def test_who_has_written(user: BootUser) -> None:
    """The last writer of a variable of the kernel, from the end."""
    user.do(cmd.Continue())
    assert user.word("print (int)system_state") == "$1 = 4"
    address = int(user.word("print/x (long)&system_state").split()[-1], 16)
    assert "writes here next" in user.do(cmd.LastWrite(address, 4))
    assert user.word("print (int)system_state") == "$3 = 3"
    before = user.view
    assert is_past(user)
    user.do(cmd.StepInsn())
    assert user.word("print (int)system_state") == "$4 = 4"
    user.do(cmd.StepBack())
    assert (user.view.time, user.view.pc) == (before.time, before.pc)


def test_it_cannot_be_changed(user: BootUser) -> None:
    user.do(cmd.ToggleBreak("do_sys_openat2"))
    user.do(cmd.Continue())
    why = "a recorded boot goes as it went: its probes can be changed"
    assert user.do(cmd.WriteRegister("rbx", 7)) == why
    assert user.do(cmd.WriteMemory(user.view.pc, b"x")) == why
    assert user.word("set var $rbx = 7") == why
    assert user.word("print *(char *)$rsp = 7") == why
    assert "what was typed when" in user.do(cmd.Input(b"x"))
    late = user.do(cmd.Define("sched:sched_switch"))
    assert "record it with --append 'trace_event=sched:sched_switch'" in late
    user.do(cmd.Restart())
    assert user.do(cmd.Define("sched:sched_switch")) == late
    last = [ProbeRow(7, "p", line, True, False) for line in ("sched:sched_switch", OPEN)]
    assert user.do(cmd.Restore(tuple(last))) == "1 thing of the last time"
    (notice,) = user.of(ev.Notice)
    assert notice.text == f"sched:sched_switch: {late}"
    assert [probe.row.line for probe in user.view.probes] == ["do_sys_openat2", OPEN]
    assert user.do(cmd.Continue()) == "breakpoint 1 at do_sys_openat2+0x0"


def test_one_that_was_stopped(tmp_path: Path) -> None:
    """It ends where it was stopped, is stepped up to there, and goes back from there."""
    path, _ = recorded(tmp_path, "echo stop here\nwhile :; do :; done\n")
    user = BootUser.again(path)
    front = "the recording ends here: the machine was stopped at "
    told = user.do(cmd.Continue())
    assert told.startswith(front)
    assert user.of(ev.Remark) == []
    end = user.view
    assert (end.state, end.exit_code) == (RunState.ENDED, 0)
    for _ in range(4):
        user.do(cmd.StepBack())
        assert user.view.state is RunState.STOPPED
    for _ in range(3):
        user.do(cmd.StepInsn())
        assert user.view.state is RunState.STOPPED
    assert user.do(cmd.StepInsn()) == told
    assert (user.view.time, user.view.pc) == (end.time, end.pc)
    assert "the recording is over" in user.do(cmd.Continue())
    user.do(cmd.Seek(1_000_000_000))
    assert user.do(cmd.Continue()) == told
    assert (user.view.time, user.view.pc) == (end.time, end.pc)
    assert user.output.endswith("stop here\n")
    user.close()
    # One that was cut off says so, and goes as far as it is known.
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    user = BootUser.again(path)
    (notice,) = user.of(ev.Notice)
    assert "cut off at byte" in notice.text
    assert user.do(cmd.Continue()).startswith(front)
    assert 0 < user.view.time <= end.time
    user.close()
