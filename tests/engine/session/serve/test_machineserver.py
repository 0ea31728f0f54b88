"""gdb drives a booted kernel: its own backtraces are ours, and the way back leads where it was."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bootkit import initrd, needs_host_code
from kernelimages import AMD64_61, image_path

GDB = shutil.which("gdb")
STOPS = (
    *("vfs_read", "vfs_write", "do_user_addr_fault", "tick_sched_timer", "wake_up_process"),
    *("kfree", "rcu_core", "do_filp_open", "schedule_timeout", "try_to_wake_up"),
)
COUNT = 40
MANY = 9
"""Hits of each place that are passed between two stops."""


def driven(tmp_path: Path, disk: Path, *words: str, options: tuple[str, ...] = ()) -> str:
    """What gdb prints for words, with the kernel's server at the other end."""
    if GDB is None:
        pytest.skip("needs gdb")
    socket = tmp_path / "socket"
    serving = [sys.executable, "-P", "-m", "tui", "serve", "--boot", "--gdb", f"unix:{socket}"]
    serving += [*options, "--initrd", str(disk), str(image_path(AMD64_61))]
    script = tmp_path / "script"
    script.write_text(
        "\n".join(("set pagination off", "set confirm off", f"target remote {socket}", *words))
    )
    with subprocess.Popen(
        serving, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as server:
        assert server.stderr is not None
        assert b"listening" in server.stderr.readline()
        environment = {**os.environ, "DEBUGINFOD_URLS": ""}
        found = subprocess.run(
            [GDB, "-nx", "-batch", "-x", str(script)],
            capture_output=True, text=True, check=False, timeout=300, env=environment,
        )  # fmt: skip
        server.communicate(timeout=60)
        assert server.returncode == 0
    return found.stdout + found.stderr


@pytest.mark.slow
@needs_host_code
def test_backtraces_of_gdb_are_those_of_the_kernels_own_tables(tmp_path: Path) -> None:
    """Stops in system calls, interrupts and page faults of a boot, 40 of them."""
    words = ["tbreak *run_init_process", "continue", *(f"break *{name}" for name in STOPS)]
    words += ["python", f"for number in range({COUNT}):", "    gdb.execute('continue')"]
    words += [f"    [gdb.execute(f'ignore {{n + 2}} {MANY}') for n in range({len(STOPS)})]"]
    words += [
        "    for name in ('bt', 'monitor bt'):",
        "        print('==', name)",
        "        print(gdb.execute(name, to_string=True))",
        *("    print('== end')", "end", "kill"),
    ]
    output = driven(tmp_path, initrd(tmp_path, None), *words)
    stops = re.findall(r"== bt\n(.*?)== monitor bt\n(.*?)== end", output, re.DOTALL)
    assert len(stops) == COUNT, output[-3000:]
    crossed = 0
    for by_gdb, by_tables in stops:
        gdb = re.findall(r"^#\d+ +(?:0x\S+ in )?(<signal handler called>|\S+)", by_gdb, re.M)
        ours = re.findall(r"^#\d+ +0x[0-9a-f]+ in ([^+\n]+)", by_tables, re.M)
        crossed += "<signal handler called>" in gdb[: len(ours) - 1]
        for theirs, own in zip(gdb, ours, strict=False):
            same = own.startswith(theirs)  # gdb leaves the number of .part.0 out
            assert same or theirs == "<signal handler called>", (by_gdb, by_tables)
        assert len(gdb) >= len(ours)
    assert crossed >= COUNT // 10


@pytest.mark.slow
@needs_host_code
def test_the_way_back_from_a_panic_leads_to_its_cause(tmp_path: Path) -> None:
    """A boot without its init panics; gdb goes back to the call before, and forward again.

    Who has written to a variable last is found by a watchpoint on the way back.
    """
    disk = initrd(tmp_path, "#!/bin/sh\nexit 3\n")
    output = driven(
        tmp_path,
        disk,
        "continue",
        "print $_siginfo",
        "break *do_exit",
        "reverse-continue",
        'printf "code %x\\n", $rdi',
        "info threads",
        "reverse-stepi",
        "info symbol $pc",
        "stepi",
        "info symbol $pc",
        "monitor moment",
        "monitor task",
        "monitor seek 1000",
        "monitor seek 1",
        "maintenance flush register-cache",
        'printf "early %lx\\n", $rip',
        "monitor seek 999999999999",
        "monitor seek x",
        "monitor nothing",
        "monitor help",
        "delete",
        "watch *(int *)&system_state",
        "continue",
        "continue",
        "continue",
        "info symbol $pc",
        "reverse-continue",
        "x/i $pc",
        "delete",
        "continue",
        "monitor bt",
        "set $rax = 0x1234",
        'printf "rax %x\\n", $rax',
        "set *(int *)$rsp = 77",
        'printf "stack %d\\n", *(int *)$rsp',
        "reverse-stepi",
        "kill",
        options=("--record",),
    )
    assert "the kernel has panicked: Attempted to kill init! exitcode=0x00000300" in output
    assert "code 300" in output
    assert '"init 1"' in output
    assert "do_group_exit" in output
    symbols = re.findall(r"^(\S+) (?:\+ \d+ )?in section", output, re.M)
    assert symbols[1] == "do_exit"
    assert symbols[0] != "do_exit"
    values = re.findall(r"^Old value = (\S+)\nNew value = (\d+)", output, re.M)
    assert values == [("<unreadable>", "1"), ("1", "2"), ("2", "3"), ("3", "2")]
    assert symbols[2] == "kernel_init"
    assert re.search(r"<kernel_init\+\d+>:\tmovl +\$0x3,0x", output)
    assert len(re.findall("SIGABRT", output)) == 2
    assert re.search(r"^\d{9}\.\d+, \d\.\d{9} s$", output, re.M)
    assert re.search(r"^init 1$", output, re.M)
    assert "1000.0, " in output
    assert re.search("^early 1000[0-9a-f]{3}$", output, re.M)
    assert re.search(r"^1\.0, 0\.0", output, re.M)
    assert "block 999999999999 is not between 0 and " in output
    assert "monitor seek BLOCKS or BLOCKS.INSTRUCTIONS" in output
    assert "there is no nothing: monitor help" in output
    assert "monitor task              the task that runs" in output
    assert "rax 1234" in output
    assert "stack 77" in output
    assert "No more reverse-execution history" in output
    assert re.search(r"^#\d+ +0x[0-9a-f]+ in panic\+", output, re.M)


@pytest.mark.slow
@needs_host_code
def test_a_machine_stops_where_its_kernel_panics(tmp_path: Path) -> None:
    """gdb has no breakpoint there; what is caught is a signal, and the boot goes on from it."""
    output = driven(
        tmp_path,
        initrd(tmp_path, "#!/bin/sh\nexit 3\n"),
        *("continue", "bt 1", "monitor catch", "monitor catch nothing", "monitor catch warn oops"),
        *("monitor catch off", "continue", "monitor bt", "kill"),
        options=("--catch", "panic"),
    )
    assert "caught a panic: Attempted to kill init! exitcode=0x%08x" in output
    assert re.search(r"SIGABRT.*\n.* in panic \(\)", output)
    assert re.search(r"^#0 +0x[0-9a-f]+ in panic \(\)", output, re.M)
    assert "caught: panic\n" in output
    assert "catch nothing: there are oops, panic, warn" in output
    assert "caught: warn, oops\n" in output
    assert "caught: nothing\n" in output
    assert "the kernel has panicked: Attempted to kill init!" in output
