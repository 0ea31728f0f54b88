"""A booted kernel's own events in a trace: what is recorded is what its tracefs has inside."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootkit import initrd, needs_host_code
from guestrun import Outcome, run
from kernelimages import AMD64_61, AMD64_612, image_path

from engine.session.booted.kernel_events import EventCatalog
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import KernelChoice
from engine.trace.fields import format_text

DESCRIBED = (
    "sched/sched_switch sched/sched_process_fork printk/console irq/softirq_entry "
    "timer/itimer_state timer/tick_stop kmem/mm_page_free raw_syscalls/sys_enter "
    "signal/signal_generate syscalls/sys_enter_openat syscalls/sys_exit_read task/task_rename "
    "skb/kfree_skb workqueue/workqueue_queue_work block/block_dirty_buffer"
)
"""Events whose `format` files are compared."""
INIT = f"""#!/bin/sh
mount -t proc proc /proc
mount -t devtmpfs dev /dev
mount -t sysfs sys /sys
mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
echo x86-tsc > trace_clock
for name in {DESCRIBED}; do
    echo "=== format $name"
    cat events/$name/format
done
echo 1 > events/syscalls/enable
(echo one; echo two) | sort | cat > /tmp/lines
ls /proc/self > /dev/null
grep -c root /proc/1/status
echo said > /dev/kmsg
sh -c 'kill -USR1 $$'
sleep 0.05
echo 0 > tracing_on
echo "=== trace"
cat trace
echo "=== end"
poweroff -f
"""
ROW = re.compile(r"^ *(?:.*)-(\d+) +\[000\] \S+ +(\d+): (.*?)\s*$")
ADDRESS = re.compile(r"\b[0-9a-f]{16}\b")
Row = tuple[int, str]


def trace(folder: Path, *words: str) -> Outcome:
    return run("trace", "--boot", *words, cwd=folder, deadline=600)


def rows(text: str) -> Iterator[tuple[int, Row]]:
    """The time, and thread and text, of each line of a trace; a kernel hashes addresses."""
    for line in text.splitlines():
        match = ROW.match(line)
        if match is not None:
            yield int(match[2]), (int(match[1]), ADDRESS.sub("ADDRESS", match[3]))


@needs_host_code
@pytest.mark.slow
@pytest.mark.parametrize("name", [AMD64_61, AMD64_612], ids=["6.1", "6.12"])
def test_the_kernels_own_trace_is_the_same(name: str, tmp_path: Path) -> None:
    """In the same run: each event, its thread, its text, the order; and the `format` files."""
    groups = ("sched:*", "signal:*", "irq/*", "printk:*", "task:*", "workqueue:*", "timer:*")
    chosen = [word for group in (*groups, "syscalls:*") for word in ("-e", group)]
    disk, image = initrd(tmp_path, INIT), image_path(name)
    words = ("--mode", "kernel", "--append", "quiet", "--initrd", str(disk), "-o", "ours")
    done = trace(tmp_path, *words, *chosen, str(image))
    assert done.code == 0, done.err
    shown, inner = done.out.replace("\r", "").split("=== trace\n")
    theirs, ours = list(rows(inner)), list(rows((tmp_path / "ours").read_text()))
    # Up to where system calls are enabled inside there are others; from there on all are there.
    first = next(at for at, (_, row) in enumerate(theirs) if row[1].startswith("sys_"))
    time, row = theirs[first]
    begin = next(at for at, (now, one) in enumerate(ours) if one == row and time - now < 3000)
    expected = [row for _, row in theirs[first:]]
    assert [row for _, row in ours[begin : begin + len(expected)]] == expected
    called = Counter(text.partition("(")[0] for _, text in expected if "(" in text)
    assert len(expected) > 900
    assert {"sys_openat", "sys_read", "sys_rt_sigaction"} <= called.keys()
    late = [now - time for (now, _), (time, _) in zip(ours[begin:], theirs[first:], strict=False)]
    assert -3000 < min(late) <= max(late) < 3000

    kinds = Counter(text.partition(":")[0] for _, text in expected)
    assert {"sched_switch", "signal_generate", "console", "hrtimer_start"} <= kinds.keys()
    described = re.split(r"=== format (\S+)\n", shown)[1:]
    assert len(described) == 2 * len(DESCRIBED.split())
    events = EventCatalog(OpenedKernel.open(image, KernelChoice()))
    for event, text in zip(described[::2], described[1::2], strict=True):
        info = events.info(1, *event.split("/"), strings=False)
        made = format_text(info, narrow=True)
        fields, _, expression = text.partition("print fmt: ")
        mine, _, other = made.partition("print fmt: ")
        lines = [line.replace("\t\t", "\t") for line in fields.splitlines() if "\tfield:" in line]
        assert [line for line in mine.splitlines() if "\tfield:" in line] == lines, event
        if "vmemmap_base" not in expression:
            assert other.split() == expression.splitlines()[0].split(), event


@needs_host_code
@pytest.mark.slow
def test_events_have_filters_triggers_stacks_and_other_formats(tmp_path: Path) -> None:
    """Texts that system calls point to are recorded, which the kernel does not do itself."""
    init = "#!/bin/sh\necho said > /dev/null\ncat /init > /dev/null\npoweroff -f\n"
    image, disk = str(image_path(AMD64_61)), str(initrd(tmp_path, init))
    common = ("--append", "quiet", "--initrd", disk, "-e", "syscalls:sys_enter_openat")
    words = ("-e", "sched:sched_switch", "-e", "raw_syscalls:*", "-e", "printk:console", "--stack")
    done = trace(
        tmp_path,
        *(*common, *words, "-o", "out", "--profile"),
        *("--filter", 'sched/sched_switch:prev_comm == "cat" && next_pid == 1'),
        *("--filter", "raw_syscalls/sys_enter:id == 59"),
        *("--trigger", "raw_syscalls/sys_exit:hist:keys=id.syscall:vals=ret:sort=hitcount"),
        *("--filter", "raw_syscalls/sys_exit:ret == -1"),
        image,
    )
    assert done.code == 0, done.err
    text = (tmp_path / "out").read_text()
    assert re.search(r'cat-\d+ .* sys_openat\(dfd: 0xffffff9c, filename: 0x\w+ "/init"', text)
    (switch,) = re.findall(r"sched_switch: .*\n.*<stack trace>\n((?: => .*\n)+)", text)
    assert re.findall(r"=> (\w+)", switch)[:2] == ["__schedule", "do_task_dead"]
    calls = re.findall(r": sys_enter: NR (\d+) \(", text)
    assert set(calls) == {"59"}
    assert re.search(r"\{ id: (?:sys_)?execve +\[ 59\] \} hitcount: +\d+", text)
    counts = dict(re.findall(r"^  (\w+) +(\d+) +0$", text, re.MULTILINE))
    assert int(counts["sys_enter"]) > 50 > len(calls)
    assert int(counts["sched_switch"]) > 200

    done = trace(tmp_path, *common, *words[2:], "--format", "jsonl", "-o", "rows", image)
    assert done.code == 0, done.err
    found = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
    opens = [row["args"] for row in found if row["event"] == "syscalls/sys_enter_openat"]
    assert "/init" in [args["__filename_val"] for args in opens]
    raw = next(row["args"] for row in found if row["event"] == "raw_syscalls/sys_enter")
    assert len(raw["args"]) == 6
    assert "printk/console" in [row["event"] for row in found]


@needs_host_code
@pytest.mark.slow
def test_what_cannot_be_recorded_is_told_before_a_kernel_is_booted(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    for line, said in {
        "sched:no_such": "sched:no_such: this kernel has no such event; sched has: sched_kthread_",
        "*:[a-z]*s*": "events do not fit into the kernel's command line",
        "e:x syscalls/sys_enter_opens": "one of the kernel's own",
    }.items():
        done = trace(tmp_path, "-e", line, image)
        assert (done.code, done.out) == (2, ""), line
        assert said in done.err, (line, done.err)
    done = run("diff", "--boot", "-e", "sched:sched_switch", image, cwd=tmp_path, deadline=100)
    assert (done.code, done.out) == (2, "")
    assert "which is an effect of its own" in done.err
    words = ("-e", "syscalls:openat", "-e", "sched:sched_process_*", "-e", "p vfs_read", "--list")
    done = trace(tmp_path, *words, image)
    assert done.out.splitlines()[:4] == [
        *("p:kprobes/p_vfs_read_0 vfs_read", "syscalls:sys_enter_openat"),
        *("syscalls:sys_exit_openat", "sched:sched_process_exec"),
    ]
