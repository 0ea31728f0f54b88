"""`kprobe-tui trace --boot` with events that others make: synthetic ones, and event probes."""

import re
from pathlib import Path

import pytest
from bootkit import initrd, needs_host_code
from guestrun import Outcome, run
from kernelimages import AMD64_61, AMD64_612, image_path

SYNTHETIC = "lat u64 count; s64 done; int pid"
PROBES = ("p:k/read vfs_read count=$arg3:u64", "r:k/was_read vfs_read ret=$retval:s64")
FIRST = "hist:keys=common_pid:c=count"
SECOND = "hist:keys=common_pid:d=ret,was=$c:onmatch(k.read).lat($was,$d,common_pid)"


def traced_inside(*commands: str) -> str:
    """An init that sets events up by tracefs, has programs run, and prints the trace."""
    lines = "\n".join(f"{command} || echo refused" for command in commands)
    return f"""#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
{lines}
(echo one; echo twenty) | sort | cat > /tmp/lines
cat /proc/self/status > /dev/null
grep -c root /proc/1/status
echo 0 > tracing_on
echo "=== trace"
cat trace
echo "=== end"
poweroff -f
"""


INIT = traced_inside(
    f"echo '{SYNTHETIC}' > synthetic_events",
    *(f"echo '{line}' >> kprobe_events" for line in PROBES),
    f"echo '{FIRST}' > events/k/read/trigger",
    f"echo '{SECOND}' > events/k/was_read/trigger",
    "echo 1 > events/synthetic/lat/enable",
    "echo 1 > events/k/enable",
)
ROW = re.compile(r"^ *\S+-(\d+) +\[000\] \S+ +[\d.]+: (\w+): (.*)$", re.MULTILINE)


def trace(folder: Path, *words: str) -> Outcome:
    return run("trace", "--boot", *words, cwd=folder, deadline=600)


@needs_host_code
@pytest.mark.slow
@pytest.mark.parametrize("name", [AMD64_61, AMD64_612], ids=["6.1", "6.12"])
def test_the_kernels_own_triggers_make_the_same_events(name: str, tmp_path: Path) -> None:
    """In the same run: each synthetic event, its thread, its values, its place among others."""
    definitions = [word for line in (f"s:{SYNTHETIC}", *PROBES) for word in ("-e", line)]
    triggers = ("--trigger", f"k/read:{FIRST}", "--trigger", f"k/was_read:{SECOND}")
    words = ("--mode", "kernel", *definitions, *triggers, "-o", "ours")
    disk = initrd(tmp_path, INIT)
    done = trace(tmp_path, *words, "--initrd", str(disk), str(image_path(name)))
    assert done.code == 0, done.err
    assert "refused" not in done.out
    theirs = ROW.findall(re.split(r"=== \w+\r?\n", done.out.replace("\r", ""))[1])
    begin = next(at for at, row in enumerate(theirs) if row[1] == "read")
    ours = ROW.findall((tmp_path / "ours").read_text())
    expected = theirs[begin:]
    assert len([row for row in expected if row[1] == "lat"]) >= 9
    starts = [at for at, row in enumerate(ours) if row == expected[0]]
    assert expected in [ours[at : at + len(expected)] for at in starts]


@needs_host_code
@pytest.mark.slow
def test_probes_of_events_record_what_those_have(tmp_path: Path) -> None:
    lines = (
        *PROBES,
        "e:my/short k.was_read ret=$ret:s64 where=$__probe_ret_ip:x64 if ret > 0 && ret < 500",
        "e:my/all k.read n=$count:u32 who=$comm",
        "s:seen u64 n",
        "e:my/made synthetic.seen n=$n:u64",
    )
    definitions = [word for line in lines for word in ("-e", line)]
    triggers = ("--trigger", "k/read:hist:keys=common_pid:n=count:onmax($n).trace(seen,$n)")
    disk = initrd(tmp_path, INIT)
    words = (*definitions, *triggers, "--initrd", str(disk), "-o", "ours")
    done = trace(tmp_path, *words, str(image_path(AMD64_61)))
    assert done.code == 0, done.err
    found = ROW.findall((tmp_path / "ours").read_text())
    values: dict[str, list[tuple[str, str]]] = {}
    for thread, event, row in found:
        number = re.search(r"(?:count|ret|n)=(-?\d+)", row)
        assert number is not None
        values.setdefault(event, []).append((thread, number[1]))
    assert len(values["short"]) >= 3
    assert values["short"] == [one for one in values["was_read"] if 0 < int(one[1]) < 500]
    assert values["all"] == values["read"]
    assert values["made"] == values["seen"]
    assert any('who="grep"' in row for _, event, row in found if event == "all")


@needs_host_code
@pytest.mark.slow
def test_lines_are_refused_before_the_boot(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    read = ("-e", PROBES[0])
    refused = {
        ("-e", "s:bad u64"): "synthetic_events: error: ",
        ("-e", "s:a u64 n", "-e", "s:a u64 n"): "Event already exists",
        ("-e", "e:my/x k.read n=$count", *read): "Attached event does not exist",
        (*read, "-e", "e:my/x k.read n=$no"): "k/read has $__probe_ip, $count",
        (*read, "-e", "e:my/x k.read n=$count if n >"): "Field not found",
        (*read, "-e", "e:k/read k.read n=$count"): "already used by another event",
        ("--mode", "kernel", *read, "-e", "e:my/x k.read n=$count"): "no event probe stands on",
        (*read, "--trigger", "k/read:hist:keys=count:onmax(count).trace(none,count)"): "onmax(x)",
        (
            "-e",
            "e:x sched.sched_switched n=$prev_pid",
        ): "define it before, or",
        (*read, "-e", "s:k u64 n", "-e", "!s:no"): "!s:no",
        ("-e", "s:read u64 n", "-e", "p:synthetic/read vfs_read"): "already",
    }
    for words, text in refused.items():
        done = trace(tmp_path, *words, image)
        assert (done.code, done.out) == (2, ""), (words, done.err)
        assert text in done.err, (words, done.err)
        assert "Traceback" not in done.err


@needs_host_code
@pytest.mark.slow
def test_they_are_listed(tmp_path: Path) -> None:
    lines = (PROBES[0], "s:lat u64 count;int pid", "e:my/all k.read n=$count:u32")
    words = [word for line in lines for word in ("-e", line)]
    image = str(image_path(AMD64_61))
    done = trace(tmp_path, *words, "--list", image)
    assert done.code == 0, done.err
    assert done.out == (
        "p:k/read vfs_read count=$arg3:u64\n"
        "s:synthetic/lat\\tu64 count; int pid\n"
        "e:my/all k.read n=$count:u32\n"
    )
    gone = ("-e", "!lat", "-e", "-:my/all")
    done = trace(tmp_path, *words, *gone, "--list", image)
    assert (done.code, done.out) == (0, "p:k/read vfs_read count=$arg3:u64\n"), done.err


OWN = (
    "e:my/forked sched.sched_process_fork child=$child_pid:s32 who=$parent_comm:string",
    "e:my/opened syscalls.sys_enter_openat flags=$flags:x64 name=+0($filename):ustring",
    "e:my/few raw_syscalls.sys_exit ret=$ret:s64 if id == 1 && ret > 3",
)
OWN_INIT = traced_inside(
    *(f"echo '{line}' >> dynamic_events" for line in OWN), "echo 1 > events/my/enable"
)


@needs_host_code
@pytest.mark.slow
def test_the_kernels_own_event_probes_on_its_events_record_the_same(tmp_path: Path) -> None:
    """In the same boot; the events that probes stand on are not recorded themselves."""
    definitions = [word for line in OWN for word in ("-e", line)]
    disk = initrd(tmp_path, OWN_INIT)
    words = ("--mode", "kernel", *definitions, "-o", "ours", "--initrd", str(disk))
    done = trace(tmp_path, *words, str(image_path(AMD64_612)))
    assert (done.code, done.err) == (0, "")
    assert "refused" not in done.out
    theirs = ROW.findall(re.split(r"=== \w+\r?\n", done.out.replace("\r", ""))[1])
    expected = [row for row in theirs if row[1] in ("forked", "opened", "few")]
    assert {row[1] for row in expected} == {"forked", "opened", "few"}
    ours = ROW.findall((tmp_path / "ours").read_text())
    assert {row[1] for row in ours} == {"forked", "opened", "few"}
    starts = [at for at, row in enumerate(ours) if row == expected[0]]
    assert expected in [ours[at : at + len(expected)] for at in starts]
    told = trace(tmp_path, "-e", "e:my/x sched.sched_nothing a=$a", str(image_path(AMD64_612)))
    assert told.code == 2
    assert "one of the kernel's own" in told.err
