"""`kprobe-tui trace --boot`: what is recorded is what the kernel's own kprobes record inside."""

import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootkit import initrd, needs_host_code
from guestrun import Outcome, run
from kernelimages import AMD64_61, AMD64_612, fetched_modules, image_path

from engine.chapters import load_chapter

DEFINITIONS = """\
p:k/open do_sys_openat2 dfd=%di:s32 name=+0($arg2):ustring flags=+0(%dx):x64
r:k/opened do_sys_openat2 ret=$retval:s32
p:k/read vfs_read file=$arg1 count=$arg3:u64
r:k/was_read vfs_read ret=$retval:s64
p:k/inside vfs_read+INSIDE mode=+0x10(%di):x32 sp=$stack name=$comm
p:k/write vfs_write count=$arg3:u64 bytes=+0(%si):x8[4]
r:k/written vfs_write ret=$retval:s64 low=$retval:b4@0/64
p:k/exec bprm_execve bprm=$arg1
r:k/executed bprm_execve ret=$retval:s32
p:k/fork kernel_clone args=+0($arg1):x64
r:k/forked kernel_clone pid=$retval:s32
p:k/exit do_exit code=$arg1:s64
p:k/stat vfs_statx dfd=$arg1:s32
r:k/done_stat vfs_statx ret=$retval:s32
p:k/name getname_flags name=+0($arg1):ustring
r:k/named getname_flags name=+0(+0($retval)):string
p:k/map vm_mmap_pgoff length=$arg3:u64 prot=$arg4:x64
r:k/mapped vm_mmap_pgoff address=$retval:x64
p:k/fault handle_mm_fault address=$arg2:x64 flags=$arg3:x32
r:k/faulted handle_mm_fault ret=$retval:x32
p:k/walk path_openat flags=$arg3
p:k/pipe pipe_write iocb=$arg1
r:k/piped pipe_write ret=$retval:s64
p:k/dup ksys_dup3 old=$arg1:u32 new=$arg2:u32
r:k/duplicated ksys_dup3 ret=$retval:s32
p:k/put mmput mm=$arg1 caller=+0(%sp):symbol
p:k/flags ksys_write flags=%flags:x16 cs=%cs ss=%ss idle=@init_task:u64
r:k/slept do_nanosleep left=$retval:s32
"""
INIT = f"""#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
echo x86-tsc > trace_clock
echo 20000 > buffer_size_kb
while read -r line; do
    echo "$line" >> kprobe_events || echo "refused $line"
done << 'END'
{DEFINITIONS}END
echo 1 > events/k/enable
(echo one; echo two) | sort | cat > /tmp/lines
ls /proc/self > /dev/null
grep -c root /proc/1/status
sleep 0.1
echo 0 > tracing_on
echo "=== missed"
grep -v ' 0$' kprobe_profile
echo "=== trace"
cat trace
echo "=== end"
poweroff -f
"""
ROW = re.compile(r"^ *(?:.*)-(\d+) +\[000\] \S+ +(\d+): (\w+): (.*)$")
Row = tuple[int, str, str]


def trace(folder: Path, *words: str) -> Outcome:
    return run("trace", "--boot", *words, cwd=folder, deadline=600)


def rows(text: str) -> Iterator[tuple[int, Row]]:
    """The time, and thread, event and its values, of each line of a trace."""
    for line in text.splitlines():
        match = ROW.match(line)
        if match is not None:
            yield int(match[2]), (int(match[1]), match[3], match[4])


@needs_host_code
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "inside"), [(AMD64_61, "0x21"), (AMD64_612, "0x25")], ids=["6.1", "6.12"]
)
def test_the_kernels_own_kprobes_record_the_same(name: str, inside: str, tmp_path: Path) -> None:
    """In the same run, with the same definitions: each event, its thread, its values, the order.

    Names of threads are not compared: the kernel prints those that they have at the end. All
    events are on when the shell forks for the first time; what comes last is of switching off.
    """
    definitions = tmp_path / "definitions"
    definitions.write_text(DEFINITIONS.replace("INSIDE", inside))
    disk = initrd(tmp_path, INIT.replace("INSIDE", inside))
    words = ("--mode", "kernel", "-e", f"@{definitions}", "--initrd", str(disk))
    done = trace(tmp_path, *words, "-o", "ours", "--profile", str(image_path(name)))
    assert done.code == 0, done.err
    assert "refused" not in done.out
    missed, inner = re.split(r"=== \w+\r?\n", done.out)[1:3]
    assert missed.strip() == ""
    theirs = list(rows(inner))
    begin = next(time for time, row in theirs if row[:2] == (1, "fork"))
    last = next(time for time, row in reversed(theirs) if row[1] == "slept")
    expected = [row for time, row in theirs if begin <= time <= last]
    ours = list(rows((tmp_path / "ours").read_text()))
    first = max(at for at, (time, row) in enumerate(ours) if row == expected[0] and time <= begin)
    found = [row for _, row in ours[first : first + len(expected)]]
    assert len(expected) > 1000
    assert len(Counter(event for _, event, _ in expected)) == len(DEFINITIONS.splitlines())
    assert found == expected


@needs_host_code
@pytest.mark.slow
def test_a_trace_changes_nothing_and_shows_who_has_called(tmp_path: Path) -> None:
    """Console, blocks and time are those of a boot without; stacks go through an interrupt.

    The lines of the chapter's example are recorded, too, but for their times.
    """
    example = load_chapter("booting").text.split("sed -n '11,16p' out.txt\n")[1].split("```")[0]
    image, disk = str(image_path(AMD64_61)), str(initrd(tmp_path, None))
    plain = run("boot", "--debug", "--initrd", disk, image, cwd=tmp_path, deadline=600)
    done = trace(
        tmp_path,
        *("--debug", "--initrd", disk, "-o", "out", "--profile", "--stack"),
        *("-e", "p:tick tick_periodic", "-f", "ksys_w*", "-r", "vfs_op*"),
        *("-e", "p:page handle_mm_fault", "--filter", "kprobes/page:common_pid==1"),
        *("-e", "p:idle schedule_idle", "--trigger", "kprobes/idle:hist:keys=common_pid"),
        *("-e", "p:open do_sys_openat2 dfd=%di:s32 name=+0($arg2):ustring"),
        *("-e", "r:opened do_sys_openat2 ret=$retval:s32"),
        image,
    )
    assert (done.code, done.out) == (0, plain.out)
    assert re.findall(r"(\d+ blocks, .* time)", done.err) == re.findall(
        r"(\d+ blocks, .* time)", plain.err
    )
    text = (tmp_path / "out").read_text()
    assert len(example.splitlines()) == 6
    assert [row for _, row in rows(example) if row not in [row for _, row in rows(text)]] == []
    stacks = text.split("<stack trace>\n")
    tick = next(stack for stack in stacks if stack.startswith(" => tick_periodic\n"))
    names = re.findall(r"=> (\S+)", tick)
    through = ["timer_interrupt", "asm_common_interrupt", "start_kernel"]
    assert [name for name in names if name in through] == through
    pages = re.findall(r"-(\d+) .*: page: ", text)
    assert set(pages) == {"1"}
    assert re.search(r"-> |<- vfs_open\)", text)
    counts = dict(re.findall(r"^  (\w+) +(\d+) +0$", text, re.MULTILINE))
    assert int(counts["page"]) > len(pages)
    assert re.search(r"(?s)# event: kprobes/idle\n.*\{ common_pid: +0 \} hitcount: +\d+", text)


@needs_host_code
@pytest.mark.slow
def test_planted_breakpoints_record_what_is_told(tmp_path: Path) -> None:
    """The same definitions: the same output, console, blocks and time to the byte."""
    init = "#!/bin/sh\nmount -t proc proc /proc\n(echo one; echo two) | sort\nls /proc/self\n"
    disk = str(initrd(tmp_path, init + "sleep 0.1\npoweroff -f\n"))
    definitions = tmp_path / "definitions"
    definitions.write_text(
        DEFINITIONS.replace("INSIDE", "0x21")
        + "p:k/lock mutex_lock+42 f=%flags:x32 sp=$stack\n"
        + "p:k/tick tick_periodic\n"
    )
    found = []
    for technique in ("told", "breakpoint"):
        words = ("--technique", technique, "-e", f"@{definitions}", "--initrd", disk, "--debug")
        done = trace(tmp_path, *words, "--stack", "-o", technique, str(image_path(AMD64_61)))
        assert done.code == 0, done.err
        figures = re.findall(r"(\d+ blocks, .* time)", done.err)
        found.append((done.out, figures, (tmp_path / technique).read_bytes()))
    assert len(list(rows(found[0][2].decode()))) > 1000
    assert found[0] == found[1]


@needs_host_code
@pytest.mark.slow
@pytest.mark.parametrize("ends", ["signal", "panic"])
def test_what_was_recorded_up_to_the_end_is_written(ends: str, tmp_path: Path) -> None:
    """The last events before a signal, or before a panic; the machine ends in no other way."""
    init = "#!/bin/sh\necho ready\n" + (
        "while :; do :; done\n" if ends == "signal" else "exit 3\n"
    )
    disk = str(initrd(tmp_path, init))
    command = [
        *(sys.executable, "-m", "tui", "trace", "--boot", "--initrd", disk, "-o", "out"),
        *("-e", "p:tick tick_periodic", "-e", "p:die do_exit code=$arg1:s64"),
        *("--buffer", "5", "--overwrite", str(image_path(AMD64_61))),
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip() != b"ready":
            assert process.poll() is None
        if ends == "signal":
            # SIGINT is ignored where a shell has begun the tests in the background.
            process.send_signal(signal.SIGTERM)
        try:
            _, said = process.communicate(timeout=300)
        finally:
            process.kill()
    text = (tmp_path / "out").read_text()
    assert re.search(r"entries-in-buffer/entries-written: 5/\d\d\d", text)
    events = [event for _, (_, event, _) in rows(text)]
    assert len(events) == 5
    if ends == "signal":
        assert process.returncode == 128 + signal.SIGTERM
        assert set(events) <= {"tick", "die"}
    else:
        assert process.returncode == 1
        assert b"the kernel has panicked: Attempted to kill init! exitcode=0x00000300" in said
        assert events[-1] == "die"
        assert "die: (do_exit+0x0/0x" in text
        assert "code=768" in text


@needs_host_code
@pytest.mark.slow
def test_other_tools_read_the_events_of_a_boot(tmp_path: Path) -> None:
    """A kernel without a ramdisk panics: that is recorded, with its callers."""
    image = str(image_path(AMD64_61))
    words = ("--append", "quiet", "-e", "p:panicked panic text=+0($arg1):string", "--stack")
    done = trace(tmp_path, *words, "--format", "jsonl", "-o", "events", image)
    assert done.code == 1
    event, stack = map(json.loads, (tmp_path / "events").read_text().splitlines())
    assert (event["event"], event["args"]) == (
        "kprobes/panicked",
        {"text": "VFS: Unable to mount root fs on %s"},
    )
    assert (event["comm"], event["pid"], event["cpu"]) == ("swapper/0", 1, 0)
    assert event["time"] > 10**9
    assert "mount_block_root" in json.dumps(stack)
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    assert trace(tmp_path, *words, "--format", "perf.data", "-o", "perf.data", image).code == 1
    shown = subprocess.run(
        ["perf", "script", "-i", "perf.data"], cwd=tmp_path, capture_output=True, check=True
    )
    assert b"kprobes:panicked: (" in shown.stdout
    assert b'text="VFS: Unable to mount root fs on %s"' in shown.stdout


@needs_host_code
@pytest.mark.slow
def test_lines_begin_at_the_left_of_a_terminal_that_passes_all_keys_on(tmp_path: Path) -> None:
    disk = str(initrd(tmp_path, "#!/bin/sh\necho ready\npoweroff -f\n"))
    ours, theirs = pty.openpty()
    command = [
        *(sys.executable, "-m", "tui", "trace", "--boot", "--initrd", disk),
        *("-e", "p:exec bprm_execve", "--stack", "--comm", "in?t", str(image_path(AMD64_61))),
    ]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # the terminal's other end is closed
            while data := os.read(ours, 1 << 16):
                seen += data
    os.close(ours)
    assert process.returncode == 0
    assert b": exec: (bprm_execve+0x0/0x650)\r\n" in seen
    assert b"\r\n => bprm_execve\r\n" in seen
    assert re.search(rb"(?<!\r)\n", seen) is None
    assert set(re.findall(rb"(\S+)-\d+ .*: exec: ", seen)) == {b"init"}


@needs_host_code
@pytest.mark.slow
def test_a_trace_ends_though_nobody_reads_the_console(tmp_path: Path) -> None:
    """The machine waits in a write while the command ends, and its thread with it."""
    words = ("-e", "p:tick tick_periodic", "-o", "out", "--timeout", "5")
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with subprocess.Popen(
        [sys.executable, "-m", "tui", "trace", "--boot", *words, str(image_path(AMD64_61))],
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        os.close(writing)
        _, said = process.communicate(timeout=120)
    os.close(reading)
    assert process.returncode == 124
    assert said.startswith(b"kprobe-tui: stopped: the time limit (--timeout) ran out\n")
    assert b"Traceback" not in said


@pytest.mark.slow
@needs_host_code
def test_definitions_are_refused_in_the_kernels_words_before_it_is_booted(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    caret = "\n  Command: {}\n"
    said = {
        "p:x no_such": "Invalid probed address or symbol" + caret.format("p:x no_such"),
        "p do_int3": "do_int3 is on the kernel's blacklist",
        "p vfs_read+1": "inside of the instruction at 0xffffffff813669e0",
        "p vfs_read $arg": "Invalid $-variable specified",
        "p vfs_read x=$retval": "$retval is not available",
        "sched:no_such": "this kernel has no such event",
        "t:x sched_switch": "a definition is p[:[GRP/]EVENT] PLACE [ARG...]",
        "p:x nowhere.c:12": "no debug information of this kernel is found",
    }
    for line, text in said.items():
        done = trace(tmp_path, "-e", line, image)
        assert (done.code, done.out) == (2, ""), line
        assert text in done.err, (line, done.err)
    done = trace(tmp_path, "-e", "t:x sched_switch", str(image_path(AMD64_612)))
    assert (done.code, done.out) == (2, "")
    assert "no probes stand on tracepoints; their events are recorded" in done.err
    for words, text in {
        ("-f", "no_such_*"): "-f no_such_*: no function matches",
        ("-e", "p vfs_read", "--filter", "kprobes/x:1"): "there is no event kprobes/x",
        ("-e", "p vfs_read", "-o", "/no/such"): "-o /no/such: No such file or directory",
        ("-e", "p vfs_read", "--share", "/tmp"): "No such option '--share'",
        ("-e", "p vfs_read", "--format", "perfetto", "--initrd", "none"): "none: No such file",
        (): "nothing to trace",
    }.items():
        done = trace(tmp_path, *words, image)
        assert (done.code, done.out) == (2, ""), words
        assert text in done.err, (words, done.err)


@needs_host_code
def test_definitions_are_listed_as_the_kernel_lists_them(tmp_path: Path) -> None:
    words = ("-e", "p:a vfs_read n=%dx:u32", "-e", "r3:g/b vfs_write $retval", "-e", "-:a")
    done = trace(tmp_path, *words, "-f", "vfs_getatt?", "--list", str(image_path(AMD64_61)))
    assert done.code == 0, done.err
    assert done.out == (
        "r3:g/b vfs_write arg1=$retval\np:kprobes/p_vfs_getattr_0 vfs_getattr+0x0\n"
    )


def test_boot_is_a_flag_in_front_of_the_guest_alone(tmp_path: Path) -> None:
    """Behind the guest the word is the guest's."""
    done = run("trace", "-e", "p main", "/bin/true", "--boot", cwd=tmp_path)
    assert "KERNEL" not in done.err
    done = run("trace", "--boot", "--help", cwd=tmp_path)
    assert done.code == 0
    assert "Usage: kprobe-tui trace --boot [OPTIONS] KERNEL" in done.out


def values_of(row: Row) -> Row:
    """A row without its place."""
    return row[0], row[1], row[2].partition(") ")[2]


MODULE_DEFINITIONS = """\
p:m/fill binfmt_misc:bm_fill_super sb=%di silent=%dx:s32
r:m/filled binfmt_misc:bm_fill_super ret=$retval:s32
p:m/status binfmt_misc:bm_status_read size=%dx:u64 name=$comm
p:m/inside binfmt_misc:bm_status_read+OFFSET size=%dx:u64
r:m/was_read binfmt_misc:bm_status_read ret=$retval:s64
p:m/none binfmt_misc:no_such_function
"""
MODULE_INIT = f"""#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs tracefs /sys/kernel/tracing
echo x86-tsc > /sys/kernel/tracing/trace_clock
while read -r line; do
    echo "$line" >> /sys/kernel/tracing/kprobe_events || echo "refused $line"
done << 'END'
{MODULE_DEFINITIONS}END
echo 1 > /sys/kernel/tracing/events/m/enable
for round in 1 2; do
    modprobe binfmt_misc
    mount -t binfmt_misc none /mnt
    cat /mnt/status
    umount /mnt
    [ $round = 2 ] || rmmod binfmt_misc
done
echo "=== trace"
cat /sys/kernel/tracing/trace
echo "=== end"
poweroff -f
"""


@needs_host_code
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "offset"), [(AMD64_61, "0x5"), (AMD64_612, "0x9")], ids=["6.1", "6.12"]
)
def test_probes_of_a_module_are_placed_whenever_it_is_loaded(
    name: str, offset: str, tmp_path: Path
) -> None:
    """In front of its init, at whichever addresses, as the kernel's own kprobes are."""
    definitions, tree = tmp_path / "definitions", tmp_path / "modules"
    definitions.write_text(MODULE_DEFINITIONS.replace("OFFSET", offset))
    kernel = tree / name.removeprefix("vmlinuz-") / "kernel"
    kernel.mkdir(parents=True)
    (path,) = fetched_modules(name, ("binfmt_misc",))
    shutil.copy(path, kernel)
    disk = initrd(tmp_path, MODULE_INIT.replace("OFFSET", offset))
    busybox = tmp_path / "more"
    for folder in ("sbin", "mnt"):
        (busybox / folder).mkdir(parents=True)
    for word in ("modprobe", "rmmod", "umount"):
        (busybox / "sbin" / word).symlink_to("/bin/busybox")
    shutil.copy(tmp_path / "init", busybox / "init")
    (busybox / "init").chmod(0o755)
    words = ("--initrd", str(disk), "--init", str(busybox), "--modules", str(tree))
    more = ("--mode", "kernel", "-e", f"@{definitions}", "-f", "binfmt_misc:bm_get_*")
    image = str(image_path(name))
    done = trace(tmp_path, *words, *more, "-o", "ours", "--stack", image)
    assert done.code == 0, done
    theirs = [row for _, row in rows(re.split(r"=== \w+\r?\n", done.out)[1])]
    ours = [row for _, row in rows((tmp_path / "ours").read_text())]
    assert Counter(event for _, event, _ in theirs)["status"] == 4
    mine = [row for row in ours if not row[1].startswith("p_bm_")]
    assert [values_of(row) for row in mine] == [values_of(row) for row in theirs]
    # The kernel has forgotten what was where in a module that is gone when its trace is read.
    assert mine[-3:] == theirs[-3:]
    places = {text.partition(")")[0] for _, event, text in mine if event == "status"}
    assert places == {
        text.partition(")")[0] for _, event, text in theirs[-3:] if event == "status"
    }
    assert " [binfmt_misc]" in next(iter(places))
    assert any(text.startswith("(vfs_read+0x") for _, event, text in mine if event == "was_read")
    assert {text.partition(" <- ")[2] for _, event, text in mine if event == "was_read"} == {
        *("bm_status_read) ret=8", "bm_status_read) ret=0"),
    }
    assert Counter(event for _, event, _ in ours)["p_bm_get_tree_0"] == 2
    assert "binfmt_misc:no_such_function: the module has no such function" in done.err


GRAPHED = (
    *("vfs_read", "vfs_write", "path_openat", "lookup_fast", "do_dentry_open", "filp_close"),
    *("handle_mm_fault", "__handle_mm_fault", "kmem_cache_alloc", "vm_mmap_pgoff", "bprm_execve"),
)
GRAPH_INIT = f"""#!/bin/sh
mount -t sysfs sys /sys
mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
echo 20000 > buffer_size_kb
echo nofuncgraph-irqs > trace_options
for name in {" ".join(GRAPHED)}; do echo $name >> set_ftrace_filter; done
echo function_graph > current_tracer
(echo one; echo two) | sort | cat > /tmp/lines
ls / > /dev/null
echo 0 > tracing_on
echo "=== graph"
cat trace
echo "=== end"
poweroff -f
"""


def calls_of(text: str) -> list[str]:
    """The calls and ends of calls of a function graph, with their depth."""
    found = re.findall(r"(?m)^ 0\)[^|]*\|(  .*?)(?:\r)?$", text)
    return [re.sub(r" /\*.*", "", line).rstrip() for line in found]


@needs_host_code
@pytest.mark.slow
def test_the_kernels_own_function_graph_shows_the_same_calls(tmp_path: Path) -> None:
    """The guest's calls come one after the other in ours, which is of the whole boot."""
    image, disk = str(image_path(AMD64_61)), str(initrd(tmp_path, GRAPH_INIT))
    words = [word for name in GRAPHED for word in ("-f", name)]
    done = run(
        *("graph", "--boot", "--retval", "-o", "graph", "--initrd", disk, *words, image),
        cwd=tmp_path,
        deadline=600,
    )
    assert (done.code, done.err) == (0, "")
    theirs = calls_of(re.split(r"=== \w+\r?\n", done.out)[1])
    text = (tmp_path / "graph").read_text()
    ours = calls_of(text)
    begins = next(at for at, line in enumerate(theirs) if line == "  bprm_execve() {")
    ends = max(at for at, line in enumerate(theirs) if line == "  }")
    expected = theirs[begins : ends + 1]
    assert len(expected) > 500
    assert {name for name in GRAPHED for line in expected if f" {name}()" in line} == {*GRAPHED}
    assert "\n".join(expected) in "\n".join(ours)
    assert re.search(r"(?m)\| +vfs_write\(\); /\* ret=0x\w+ \*/$", text)


@needs_host_code
@pytest.mark.slow
def test_a_report_of_a_boot_counts_the_calls_of_its_graph(tmp_path: Path) -> None:
    image, disk = str(image_path(AMD64_61)), str(initrd(tmp_path, None))
    words = ("-f", "vfs_open", "-f", "vfs_mknod", "-f", "vfs_*mount", "--initrd", disk, image)
    texts = []
    for more in ((), ("--report", "--json"), ("--callers", "vfs_get_tree", "--callees", "vfs_*")):
        done = run("graph", "--boot", *more, "-o", "out", *words, cwd=tmp_path, deadline=600)
        assert done.code in (0, 1), done.err
        texts.append((tmp_path / "out").read_text())
    report = json.loads(texts[1])
    assert report["unit"] == "ns"
    counted = {one["name"]: one["calls"] for one in report["functions"]}
    assert len(counted) > 2
    assert counted == {name: len(re.findall(rf" {name}\(\)", texts[0])) for name in counted}
    assert "# times in nanoseconds since power-on" in texts[2]
    assert re.search(r"(?m)^ +\d+ :  ?\(\d+\) vfs_open$", texts[2])


@needs_host_code
def test_a_graph_of_a_boot_names_its_functions(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    for words, text in {
        (): "nothing to trace: give -f GLOB",
        ("-f", "no_such_*"): "-f no_such_*: no function matches",
        ("-f", "vfs_read", "--under", "no_such"): "--under no_such: no function matches",
        ("-f", "do_int3"): "-f do_int3: no function that matches takes a probe",
        ("-f", "vfs_read", "--tracer", "function", "--retval"): "--retval is for calls",
        ("-f", "vfs_read", "--args"): "No such option '--args'",
    }.items():
        done = run("graph", "--boot", *words, image, cwd=tmp_path)
        assert (done.code, done.out) == (2, ""), words
        assert text in done.err, (words, done.err)
