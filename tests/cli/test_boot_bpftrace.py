"""`kprobe-tui bpftrace --boot`: scripts on booted kernels see what the kernel itself records."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootkit import initrd, needs_host_code
from guestrun import run
from kernelimages import AMD64_61, AMD64_612, image_path

SCRIPT = r"""
tracepoint:sched:sched_switch {
    printf("%d sched_switch: %s %d %d %d ==> %s %d %d\n", tid, args.prev_comm, args.prev_pid,
        args.prev_prio, args.prev_state & 255, args.next_comm, args.next_pid, args.next_prio);
}
tracepoint:sched:sched_process_exec {
    printf("%d sched_process_exec: %s %d %d\n", tid, str(args.filename), args.pid, args.old_pid);
}
tracepoint:timer:hrtimer_start {
    printf("%d hrtimer_start: %llx %s %llu\n", tid, (uint64)args.hrtimer, ksym(args.function),
        args.expires);
}
rawtracepoint:sched_process_fork {
    printf("%d sched_process_fork: %s %d %s %d\n", tid, args.parent->comm, args.parent->pid,
        args.child->comm, args.child->pid);
}
tracepoint:raw_syscalls:sys_enter {
    printf("%d sys_enter: %d %llx %llx %llx %llx %llx %llx\n", tid, args.id, args.args[0],
        args.args[1], args.args[2], args.args[3], args.args[4], args.args[5]);
}
tracepoint:raw_syscalls:sys_exit { printf("%d sys_exit: %d %lld\n", tid, args.id, args.ret); }
tracepoint:syscalls:sys_enter_read {
    printf("%d sys_read: %x %llx %x\n", tid, args.fd, (uint64)args.buf, args.count);
}
tracepoint:syscalls:sys_exit_read { printf("%d sys_read_exit: %lld\n", tid, args.ret); }
kprobe:do_sys_openat2 {
    printf("%d opens: %d %s\n", tid, (int32)arg0, str(uptr(arg1)));
}
kretprobe:do_sys_openat2 { printf("%d opened: %d\n", tid, (int32)retval); }
fentry:vfs_read { printf("%d reading: %llx %d\n", tid, (uint64)args.file, args.count); }
fexit:vfs_read {
    printf("%d was_read: %lld\n%d after: %llx %d\n", tid, retval, tid, (uint64)args.file,
        args.count);
}
"""
INIT = r"""#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
echo 0 > tracing_on
echo 20000 > buffer_size_kb
echo > trace
echo 'p:k/opens do_sys_openat2 dfd=%di:s32 name=+0($arg2):ustring' > kprobe_events
echo 'r:k/opened do_sys_openat2 ret=$retval:s32' >> kprobe_events
echo 'p:k/reading vfs_read file=$arg1 count=$arg3:u64' >> kprobe_events
echo 'r:k/was_read vfs_read ret=$retval:s64' >> kprobe_events
echo 1 > events/k/enable
echo 1 > events/raw_syscalls/enable
echo 1 > events/syscalls/sys_enter_read/enable
echo 1 > events/syscalls/sys_exit_read/enable
echo 1 > events/sched/sched_process_fork/enable
echo 1 > tracing_on
(echo one; echo two) | sort | cat > /tmp/lines
ls /proc/self > /dev/null
grep -c root /proc/1/status
sleep 0.1
echo 0 > tracing_on
echo "=== trace"
cat trace
echo "=== end"
poweroff -f
"""
LINE = re.compile(r" *.*-(\d+) +\[000\] \S+ +[\d.]+: (\w+)(: | -> |\()(.*)")
EVENTS = {
    "sched_switch": (
        r"prev_comm=(.*) prev_pid=(\d+) prev_prio=(\d+) prev_state=(\S+) ==> "
        r"next_comm=(.*) next_pid=(\d+) next_prio=(\d+)"
    ),
    "sched_process_exec": r"filename=(.*) pid=(\d+) old_pid=(\d+)",
    "hrtimer_start": r"hrtimer=\w+ function=(\S+) expires=(\d+) ",
    "sched_process_fork": r"comm=(.*) pid=(\d+) child_comm=(.*) child_pid=(\d+)",
    "sys_enter": r"NR (-?\d+) \((\w+), (\w+), (\w+), (\w+), (\w+), (\w+)\)",
    "sys_exit": r"NR (-?\d+) = (-?\d+)",
    "sys_read": r"fd: (\w+), buf: (\w+), count: (\w+)",
    "sys_read_exit": r"0x(\w+)",
    "opens": r".* dfd=(-?\d+) name=\"(.*)\"",
    "opened": r".* ret=(-?\d+)",
    "reading": r".* file=0x(\w+) count=(\d+)",
    "was_read": r".* ret=(-?\d+)",
}
"""What the kernel's own text of an event has, by the name that the script gives it."""
STATES = {"R": 0, "R+": 0, "S": 1, "D": 2, "T": 4, "X": 16, "Z": 32, "P": 64, "I": 128}
Row = tuple[str, ...]


def kernels_rows(text: str) -> Iterator[Row]:
    """The rows of the kernel's own trace."""
    for line in text.splitlines():
        found = LINE.match(line)
        if found is None:
            continue
        thread, name, sign, rest = found.groups()
        if sign == " -> ":
            name += "_exit"
        match = re.match(EVENTS[name], rest)
        assert match is not None, line
        values = list(match.groups())
        if name == "sched_switch":
            values[3] = str(STATES.get(values[3], values[3]))
        if name == "sys_read_exit":
            value = int(values[0], 16)
            values[0] = str(value - (value >> 63 << 64))
        yield (thread, name, *values)


def scripts_rows(text: str) -> Iterator[Row]:
    """The rows of the script's output."""
    for line in text.splitlines():
        thread, _, rest = line.partition(" ")
        name, colon, rest = rest.partition(": ")
        if not colon or name not in (*EVENTS, "after"):
            continue
        rest = rest.replace(" ==>", "")
        if name == "hrtimer_start":
            rest = rest.partition(" ")[2]
        yield (thread, name, *rest.split(" "))


@pytest.mark.slow
@needs_host_code
@pytest.mark.parametrize("kernel", [AMD64_61, AMD64_612])
def test_a_script_sees_what_the_kernel_records(kernel: str, tmp_path: Path) -> None:
    """Tracepoints, system calls, kprobes and fentry, row by row in the kernel's own order."""
    script = tmp_path / "all.bt"
    script.write_text(SCRIPT)
    done = run(
        *("bpftrace", "--boot", "--initrd", str(initrd(tmp_path, INIT)), "--append", "quiet"),
        *("-q", "-o", str(tmp_path / "out"), str(script), "--", str(image_path(kernel))),
        cwd=tmp_path,
        deadline=600,
    )
    assert done.code == 0, done
    text = done.out.partition("=== trace")[2].partition("=== end")[0]
    theirs = list(kernels_rows(text))
    ours = list(scripts_rows((tmp_path / "out").read_text()))
    for name in EVENTS:
        wanted = [row for row in theirs if row[1] == name]
        found = [row for row in ours if row[1] == name]
        assert wanted, name
        starts = [at for at in range(len(found)) if found[at : at + len(wanted)] == wanted]
        assert starts, (name, len(wanted), wanted[:3], found[-3:])
    entered = {(row[0], *row[2:]) for row in ours if row[1] == "reading"}
    assert entered >= {(row[0], *row[2:]) for row in ours if row[1] == "after"} != set()


@pytest.mark.slow
@needs_host_code
def test_what_there_is_in_a_kernel(tmp_path: Path) -> None:
    """Lists of a kernel: everything, names by a glob, the probes of a script, types of BTF."""

    def listed(*words: str) -> list[str]:
        found = run("bpftrace", "--boot", *words, "--", str(image_path(AMD64_61)), cwd=tmp_path)
        assert found.code == 0, found.err
        return found.out.splitlines()

    functions = ["fentry:vmlinux:do_nanosleep", "fexit:vmlinux:do_nanosleep"]
    functions += ["kprobe:do_nanosleep", "kretprobe:do_nanosleep"]
    assert listed("-l", "*do_nanosleep*") == functions
    assert {*functions, "interval:ms:", "tracepoint:sched:sched_switch"} <= {*listed("-l")}
    script = "fentry:vmlinux:vfs_rea[cd] { } p:hz:9 { } end { }"
    assert listed("-l", "-e", script) == ["fentry:vmlinux:vfs_read", "profile:hz:"]
    assert listed("-lv", "struct path") == [
        "struct path {",
        "    struct vfsmount *mnt;",
        "    struct dentry *dentry;",
        "}",
    ]


@pytest.mark.slow
@needs_host_code
def test_a_path_without_room_has_its_end(tmp_path: Path) -> None:
    """As d_path of Linux leaves it: names are put in front of each other from the last one on."""
    script = (
        'fentry:security_file_open { if (path(args.file.f_path) == "/init") {'
        " print((path(args.file.f_path, 5), path(args.file.f_path, 4))); exit(); } }"
    )
    done = run(
        *("bpftrace", "--boot", "--initrd", str(initrd(tmp_path, INIT)), "--append", "quiet"),
        *("-q", "-o", str(tmp_path / "out"), "-e", script, "--", str(image_path(AMD64_61))),
        cwd=tmp_path,
        deadline=600,
    )
    assert done.code == 0, done
    assert (tmp_path / "out").read_text().strip() == "(init, nit)"
