"""A booted kernel under control: it moves to and fro, and is asked things in between."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bootcontrolkit import BootUser
from bootkit import needs_host_code
from kernelimages import AMD64_61

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState, StopCause

pytestmark = [pytest.mark.slow, needs_host_code]
READ = "p:t/read vfs_read count=$arg3:u64"
READ_RETURN = "r:t/ret vfs_read $retval"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("boot")


@pytest.fixture
def user(folder: Path) -> Iterator[BootUser]:
    user = BootUser(AMD64_61, folder)
    yield user
    user.close()


def test_a_whole_boot_with_probes_and_the_way_back(user: BootUser) -> None:
    """Rows come once, however often the machine goes back; a hit is a hit when it returns."""
    user.control.refresh()
    assert (user.view.state, user.view.time) == (RunState.READY, 0)
    assert user.do(cmd.Define(READ)) == f"placed {READ}"
    assert user.do(cmd.Define(READ_RETURN)) == f"placed {READ_RETURN}"
    assert user.do(cmd.ToggleBreak("do_sys_openat2")) == "breakpoint at do_sys_openat2"
    assert user.do(cmd.Continue()) == "breakpoint 3 at do_sys_openat2+0x0"
    first = user.view
    assert (first.state, first.cause) == (RunState.STOPPED, StopCause.HIT)
    assert first.location == "do_sys_openat2+0x0"
    assert [frame.function for frame in first.frames] == [
        *("do_sys_openat2", "__x64_sys_openat", "do_syscall_64"),
        "entry_SYSCALL_64_after_hwframe",
    ]
    assert user.rows() == []
    assert user.do(cmd.Continue()) == "breakpoint 3 at do_sys_openat2+0x0"
    second = user.view
    rows = user.rows()
    assert len(rows) > 0
    assert second.time > first.time
    # Back, and forth again: the same moment, and no row twice.
    assert user.do(cmd.ContinueBack()) == "breakpoint 3 at do_sys_openat2+0x0"
    there = user.view
    assert (there.time, there.pc, there.frames) == (first.time, first.pc, first.frames)
    values = {one.name: one.value for one in there.registers}
    assert values == {one.name: one.value for one in first.registers}
    history = there.history
    assert history is not None
    assert (history.now, history.end, history.past) == (first.time, second.time, True)
    assert user.do(cmd.Continue()) == "breakpoint 3 at do_sys_openat2+0x0"
    again = user.view
    assert (again.time, again.pc) == (second.time, second.pc)
    assert again.probes[2].hits == 2
    assert user.rows() == rows
    # A fresh stop where a function is entered, and where it returns.
    user.do(cmd.Delete((3,)))
    user.do(cmd.StopOnHit((1,)))
    assert user.do(cmd.Continue()) == "probe t/read at vfs_read+0x0"
    entered, count = user.view, len(user.rows())
    user.do(cmd.StopOnHit((1,), on=False))
    user.do(cmd.StopOnHit((2,)))
    told = user.do(cmd.Continue())
    assert told == "probe t/ret at ksys_read+0x6b"
    assert len(user.rows()) > count
    rax = next(one.value for one in user.view.registers if one.name == "rax")
    assert user.values("ret")[-1] == (user.view.thread, rax)
    count = len(user.rows())
    user.do(cmd.StopOnHit((2,), on=False))
    # Steps: one instruction back and forth, a call as a whole, out of a function.
    here = user.view.pc
    user.do(cmd.StepBack())
    assert user.view.location.startswith("vfs_read+")
    user.do(cmd.StepInsn())
    assert user.view.pc == here
    user.do(cmd.StepBack(over=True))
    assert user.view.location.startswith("ksys_read+")
    user.do(cmd.StepOver())
    assert user.view.pc == here
    read = [row for row in user.rows() if row.name == "read"][-1]
    user.do(cmd.Seek(read.time, read.address))
    assert (user.view.time, user.view.pc) == (entered.time, entered.pc)
    assert user.view.location == "vfs_read+0x0"
    signed = rax - (1 << 64) if rax >> 63 else rax
    assert user.do(cmd.Finish(tells=True)) == f"Value returned is $1 = {signed}"
    assert user.view.pc == here
    assert len(user.rows()) == count
    # To the end of the boot, and from there back.
    assert user.do(cmd.Continue()) == "the machine is switched off"
    assert (user.view.state, user.view.exit_code) == (RunState.ENDED, 0)
    assert "end of tasks" in user.output
    counted = [(probe.hits, probe.misses) for probe in user.view.probes]
    reads, returns = user.values("read"), user.values("ret")
    assert counted == [(len(reads), 0), (len(returns), 0)]
    assert len(reads) == len(returns) > 20
    assert "over" in user.do(cmd.Continue())
    user.do(cmd.StepBack())
    assert user.view.exit_code is None
    end = user.output
    user.do(cmd.Seek())
    assert (user.view.state, user.output) == (RunState.ENDED, end)
    assert len(user.values("read")) == len(reads)


def test_rows_are_those_of_a_trace(user: BootUser, folder: Path, tmp_path: Path) -> None:
    """The same definitions over the same boot: `trace --boot` records the same, row for row."""
    import subprocess
    import sys

    from kernelimages import image_path

    lines = (READ, READ_RETURN, "p:t/mid vfs_read+5 sp=%sp", "syscalls/sys_enter_openat")
    out = tmp_path / "out.txt"
    words = [sys.executable, "-P", "-m", "tui", "trace", "--boot", "--append", "quiet"]
    words += ["--initrd", str(folder / "initrd.gz"), "-o", str(out)]
    for line in lines:
        words += ["-e", line]
    subprocess.run([*words, str(image_path(AMD64_61))], check=True, stdin=subprocess.DEVNULL,
                   capture_output=True)  # fmt: skip
    traced = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    for line in lines:
        assert user.do(cmd.Define(line)) == f"placed {line}", line
    user.do(cmd.ToggleBreak("__x64_sys_openat"))
    for _ in range(3):
        user.do(cmd.Continue())
        user.do(cmd.StepInsn(3))
    user.do(cmd.ContinueBack())
    user.do(cmd.Delete((5,)))
    assert user.do(cmd.Continue()) == "the machine is switched off"
    rows = user.rows()
    assert len(rows) == len(traced) > 50
    for row, line in zip(rows, traced, strict=True):
        assert f" {row.name.removeprefix('sys_enter_')}" in line.replace("sys_", ""), (row, line)
    counted = {name: sum(f" {name}: " in line for line in traced) for name in ("read", "mid")}
    assert counted == {"read": len(user.values("read")), "mid": len(user.values("mid"))}


def test_probes_while_it_stands(user: BootUser) -> None:
    """Placed, changed, switched and taken out in the middle of a boot; refusals have carets."""
    user.do(cmd.ToggleBreak("vfs_read"))
    user.do(cmd.Continue())
    assert user.do(cmd.Define("p:t/mid vfs_read+5")) == "placed p:t/mid vfs_read+5"
    bad = user.do(cmd.Define("p:t/bad vfs_read+6"))
    assert "not an instruction boundary" in bad
    failed = user.of(ev.Failed)[-1]
    assert failed.column == len("p:t/bad ")
    assert user.do(cmd.Define("p:t/none no_such_function")).startswith("trace_kprobe: error")
    user.do(cmd.SetFilter("t/mid", "common_pid == 77"))
    user.do(cmd.Continue())
    assert user.values("mid") == []
    user.do(cmd.SetFilter("t/mid", ""))
    user.do(cmd.ChangeTrigger("t/mid", "hist:keys=common_pid"))
    for _ in range(3):
        user.do(cmd.Continue())
    some = len(user.values("mid"))
    assert some > 0
    (table,) = user.view.histograms
    assert f"    Hits: {some}\n" in table
    user.do(cmd.Enable((2,), on=False))
    user.do(cmd.Continue())
    assert len(user.values("mid")) == some
    user.do(cmd.Enable((2,)))
    user.do(cmd.Define("p:t/mid2 vfs_read+7 sp=%sp", replaces=2))
    assert [probe.event for probe in user.view.probes] == ["", "t/mid2"]
    user.do(cmd.Define("-:t/mid2"))
    assert [probe.kind for probe in user.view.probes] == ["b"]
    user.do(cmd.Define("p:t/mid vfs_read+5"))
    user.do(cmd.Restart())
    assert user.view.time == 0
    assert [probe.row.line for probe in user.view.probes] == [
        "vfs_read",
        "p:t/mid vfs_read+5",
    ]
    assert "vfs_read" in user.do(cmd.Continue())


def test_it_hears_while_it_moves(user: BootUser) -> None:
    """A halt stops it, a question is answered on the way, a wrong command is refused."""
    user.source.give = [cmd.ReadMemory(0xFFFFFFFF81000000, 16, original=True)]
    user.do(cmd.ToggleBreak("start_kernel"))
    user.control._moves = True
    user.control.attention(cmd.Refresh())
    user.do(cmd.Continue())
    assert user.of(ev.MemoryRead)
    user.source.give = [cmd.Halt()]
    user.control._moves = True
    user.control.attention(cmd.Halt())
    assert user.do(cmd.Continue()) == "interrupted"
    assert user.view.cause is StopCause.INTERRUPTED
    assert "types" in user.do(cmd.ReadLayout("init_task"))
    assert user.do(cmd.SeekMark("x")) == "there is no bookmark x"


def test_memory_and_registers_are_changed(user: BootUser) -> None:
    user.do(cmd.ToggleBreak("do_sys_openat2"))
    user.do(cmd.Continue())
    sp = next(one.value for one in user.view.registers if one.name == "rsp")
    assert user.do(cmd.WriteMemory(sp - 64, b"probe")) == f"5 bytes at {sp - 64:#x}"
    user.do(cmd.ReadMemory(sp - 64, 5))
    (read,) = user.of(ev.MemoryRead)
    assert read.pieces == ((sp - 64, b"probe"),)
    assert user.do(cmd.WriteRegister("rbx", 77)) == "rbx = 0x4d"
    assert next(one.value for one in user.view.registers if one.name == "rbx") == 77
    assert user.do(cmd.WriteMemory(8, b"x")) == "0x8: no memory there"
    user.do(cmd.SetMark("here"))
    time = user.view.time
    user.do(cmd.StepInsn(20))
    assert user.do(cmd.SeekMark("here")) == f"{time} ns after power-on"
    assert user.view.history is not None
    assert user.view.history.past
    assert "past cannot be changed" in user.do(cmd.WriteRegister("rbx", 1))
    assert user.do(cmd.LastWrite(sp - 64, 8)) != ""


def test_watched_memory(user: BootUser) -> None:
    """Each change of a variable of the kernel stops it, on the way back too; so do reads."""
    assert "unknown type" in user.word("watch system_state")
    watched = "*(int *)&system_state"
    assert user.word(f"watch {watched}") == f"Hardware watchpoint 1: {watched}"
    forwards = [user.do(cmd.Continue()) for _ in range(3)]
    front = f"watchpoint 1: {watched}, "
    assert forwards[0].startswith(f"{front}? -> 0x1, at rest_init+")
    assert forwards[1].startswith(f"{front}0x1 -> 0x2, at kernel_init+")
    assert forwards[2].startswith(f"{front}0x2 -> 0x3, at kernel_init+")
    assert user.word("print (int)system_state") == "$1 = 3"
    (probe,) = user.view.probes
    assert (probe.row.line, probe.hits) == (f"watch {watched}", 3)
    assert "kernel_init+" in user.do(cmd.ContinueBack())
    assert user.word("print (int)system_state") == "$2 = 2"
    assert "kernel_init+" in user.do(cmd.ContinueBack())
    assert user.word("print (int)system_state") == "$3 = 1"
    assert user.view.probes[0].hits == 3
    user.do(cmd.Delete((1,)))
    assert user.word(f"rwatch {watched}") == f"Hardware watchpoint 2: {watched}"
    told = user.do(cmd.Continue())
    assert told.startswith(f"watchpoint 2: {watched}, read: 0x")
    user.do(cmd.Delete((2,)))
    user.do(cmd.ToggleBreak("do_sys_openat2"))
    assert user.do(cmd.Continue()) == "breakpoint 3 at do_sys_openat2+0x0"
    address = user.control._boot.opened.image.names.find("system_state")
    assert address is not None
    assert user.do(cmd.LastWrite(address, 4)).startswith("kernel_init+")
    assert user.word("print (int)system_state") == "$4 = 2"


def test_probes_over_a_boot_that_has_been(user: BootUser, folder: Path) -> None:
    """A probe that is placed later has the rows that it would have had from power-on."""
    user.do(cmd.ToggleBreak("ksys_read"))
    for _ in range(9):
        user.do(cmd.Continue())
    user.do(cmd.ContinueBack())
    stood, output = user.view, user.output
    assert stood.history is not None
    assert user.do(cmd.Define(READ)) == f"placed {READ}"
    assert user.do(cmd.Define(READ_RETURN)) == f"placed {READ_RETURN}"
    assert user.rows() == []
    user.do(cmd.Refill())
    assert user.of(ev.Refilling)[0].done == 0
    assert user.of(ev.Refilled)
    view = user.view
    assert (view.time, view.pc, view.frames) == (stood.time, stood.pc, stood.frames)
    assert view.history == stood.history
    assert user.output == output
    assert view.probes[0].hits == 9
    rows = user.rows()
    assert len(rows) > 4
    user.do(cmd.Seek())
    assert user.rows() == rows
    whole = BootUser(AMD64_61, folder)
    whole.do(cmd.Define(READ))
    whole.do(cmd.Define(READ_RETURN))
    whole.do(cmd.ToggleBreak("ksys_read"))
    for _ in range(9):
        whole.do(cmd.Continue())
    assert whole.rows() == rows
    whole.close()


def test_stops_only_where_something_holds(user: BootUser) -> None:
    """Once, under a condition, and where the filter of a probe's event lets a hit pass."""

    def count() -> int:
        return next(one.value for one in user.view.registers if one.name == "rdx")

    assert user.word("tbreak start_kernel").startswith("Temporary breakpoint 1 at 0x")
    assert user.do(cmd.Continue()) == "breakpoint 1 at start_kernel+0x0"
    assert not user.view.probes
    user.word("break vfs_read if count == 1024")
    assert [probe.only for probe in user.view.probes] == ["if count == 1024"]
    assert user.do(cmd.Continue()) == "breakpoint 2 at vfs_read+0x0"
    assert (count(), [probe.hits for probe in user.view.probes]) == (1024, [1])
    user.word("delete 2 2")
    user.word("break vfs_read if nothing_such")
    told = user.do(cmd.Continue())
    assert told == (
        "breakpoint 3 at vfs_read+0x0; error in its condition: "
        'No symbol "nothing_such" in current context.'
    )
    user.do(cmd.Restart())
    user.do(cmd.Delete((3,)))
    user.do(cmd.Define(READ, stops=True))
    user.do(cmd.Define(READ_RETURN, stops=True))
    user.do(cmd.SetFilter("t/read", "count == 1024"))
    user.do(cmd.SetFilter("t/ret", "arg1 == 0"))
    assert user.do(cmd.Continue()) == "probe t/read at vfs_read+0x0"
    assert count() == 1024
    assert [row.values for row in user.rows()] == [(1024,)]
    user.do(cmd.StopOnHit((user.view.probes[0].row.id,), on=False))
    assert user.do(cmd.Continue()).startswith("probe t/ret at ksys_read+")
    assert [values[1] for values in user.values("ret")] == [0]
