"""A user's own probe modules in a booted kernel: what they print is what a trace records.

The modules are built by Debian's headers of the kernel, and plant their own kprobes and a
kretprobe when they are loaded.
"""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootkit import initrd, needs_host_code
from guestrun import run
from kernelheaders import built_modules, kernel_sources
from kernelimages import AMD64_61, image_path

SOURCES = Path(__file__).parents[1] / "data" / "kernel" / "probemodule"
INSIDE = "0x21"
INIT = f"""#!/bin/sh
mount -t devtmpfs dev /dev
busybox modprobe entered inside={INSIDE} dumps=1
busybox modprobe returned dumps=1
(true)
for n in 1 2 3; do sleep 0.1 & done; wait
cat /init > /dev/null; echo written
busybox rmmod returned
busybox rmmod entered
echo "=== again"
busybox modprobe entered inside={INSIDE}
busybox modprobe returned
mount -t sysfs sys /sys
mount -t debugfs debug /sys/kernel/debug
cd /sys/kernel/debug/tracing
echo 'p:k/same vfs_read+{INSIDE}' >> kprobe_events
echo 'r:k/clone kernel_clone' >> kprobe_events
echo 'p:k/own returned:returned' >> kprobe_events
echo 'p:k/off vfs_statx+0x5' >> kprobe_events
echo 'p:k/jump vfs_llseek+0x5' >> kprobe_events
for name in same clone own jump; do echo 1 > events/k/$name/enable; done
sleep 0.2
cat ../kprobes/list > /tmp/list
echo "=== list"
cat /tmp/list
echo "=== end"
poweroff -f
"""
DEFINITIONS = f"""\
r:m/planted entered:start ret=$retval:s32
p:m/stopped unregister_kprobes
p:m/kernel_clone kernel_clone di=%di:x64 dx=%dx:x64
p:m/vfs_read vfs_read+{INSIDE} di=%di:x64 dx=%dx:x64
p:m/vfs_write vfs_write+{INSIDE} di=%di:x64 dx=%dx:x64
p:m/vfs_open vfs_open
p:m/before entered:before place=+0(+48(%di)):string di=+0x70(%si):x64 dx=+0x60(%si):x64
p:m/behind entered:behind place=+0(+48(%di)):string dx=+0x60(%si):x64
r:m/ready returned:start ret=$retval:s32
p:m/entered returned:entered
r:m/chosen returned:entered ret=$retval:s32
p:m/returned returned:returned ret=+0x50(%si):s32
r1:m/slept do_nanosleep ret=$retval:s32
p:m/dump show_stack
"""
PLACES = ("kernel_clone", "vfs_read", "vfs_write")
ROW = re.compile(r"^ *(?:.*)-(\d+) +\[000\] \S+ +(\d+): (\w+): \(.*?\) ?(.*)$")


def rows(text: str) -> Iterator[tuple[str, int, int, list[str]]]:
    """Event, thread, time, and the values, of each line of a trace."""
    for line in text.splitlines():
        match = ROW.match(line)
        if match is not None:
            values = [word.partition("=")[2].strip('"') for word in match[4].split()]
            yield match[3], int(match[1]), int(match[2]), values


def boot(folder: Path, init: str, modules: dict[str, Path], *words: str) -> tuple[str, str]:
    """Boot with modules of ours; what the console shows, and what is said beside it."""
    tree = folder / "modules" / AMD64_61.removeprefix("vmlinuz-") / "kernel"
    tree.mkdir(parents=True)
    for path in modules.values():
        shutil.copy(path, tree)
    disk = str(initrd(folder, init))
    more = folder / "more"
    (more / "sbin").mkdir(parents=True)
    (more / "sbin" / "modprobe").symlink_to("/bin/busybox")
    shutil.copy(folder / "init", more / "init")
    (more / "init").chmod(0o755)
    chosen = [word for name in modules for word in ("--module", name)]
    done = run(
        *("trace", "--boot", "--initrd", disk, "--init", str(more), "-o", "out", *words),
        *("--modules", str(folder / "modules"), *chosen, str(image_path(AMD64_61))),
        cwd=folder,
        deadline=600,
    )
    assert done.code == 0, done
    return re.sub(r"\r|\[ *\d+\.\d+\] ", "", done.out), done.err


@needs_host_code
@pytest.mark.slow
def test_probes_of_a_module_are_hit_as_it_says(tmp_path: Path) -> None:
    """What its handlers print: places, tasks, registers, returned values, in the same order.

    The trace has the same hits at the same places, and each in front of the module's handler. The
    stacks of handlers are those that the kernel itself prints of them in the same moment, and go
    on where it guesses (in a detour) or prints the trampoline's address.
    """
    sources = {path.stem: path.read_text() for path in sorted(SOURCES.glob("*.c"))}
    built = tmp_path / "built"
    built.mkdir()
    modules = built_modules(AMD64_61, sources, built)
    definitions = tmp_path / "definitions"
    definitions.write_text(DEFINITIONS)
    words = ("--profile", "--option", "sym-offset", "--trigger", "m/dump:stacktrace", "--kprobes")
    shown, beside = boot(tmp_path, INIT, modules, *words, "-e", f"@{definitions}")
    console, _, again = shown.partition("=== again\n")
    text = (tmp_path / "out").read_text()
    recorded = list(rows(text))
    assert console.count("planted: 0") == 2

    said = re.findall(r"entered: before (\w+) (\d+) (\w+) (\w+)", console)
    assert {name for name, *_ in said} == set(PLACES)
    begin, end = (
        next(at for at, row in enumerate(recorded) if row[0] == name)
        for name in ("planted", "stopped")
    )
    recorded = recorded[:end]
    hits = [row for row in recorded[begin:end] if row[0] in PLACES]
    handled = [row for row in recorded if row[0] == "before"]
    as_said = [[name, int(pid), *(int(word, 16) for word in words)] for name, pid, *words in said]
    assert [[name, pid, *(int(word, 16) for word in words)] for name, pid, _, words in hits] == (
        as_said
    )
    assert [[at, pid, int(di, 16), int(dx, 16)] for _, pid, _, (at, di, dx) in handled] == as_said
    for hit, handler in zip(hits, handled, strict=True):
        assert 0 < handler[2] - hit[2] < 10_000
    behind = re.findall(r"entered: behind (\w+) (\d+) (\w+)", console)
    assert {name for name, *_ in behind} == {"kernel_clone", "vfs_read"}
    assert [
        (at, str(pid), f"{int(dx, 16):x}")
        for name, pid, _, (at, dx) in (row for row in recorded if row[0] == "behind")
    ] == behind
    assert any(name == "vfs_open" for name, *_ in recorded[begin:end])
    assert not any(values[0] == "vfs_open" for *_, values in handled)

    # One instance: of three that sleep at a time the module sees the first, and so does the trace.
    ((pid, value, took),) = re.findall(r"returned: returned (\d+) (-?\d+) (\d+)", console)
    (came,) = (row for row in recorded if row[0] == "returned")
    (slept,) = (row for row in recorded[:end] if row[0] == "slept")
    entered = [row for row in recorded if row[0] == "entered"]
    assert (came[1], came[3], slept[1], slept[3]) == (int(pid), [value], int(pid), [value])
    assert [(row[1], row[3]) for row in recorded if row[0] == "chosen"] == [(int(pid), ["0"])]
    assert [row[1] for row in entered] == [int(pid)]
    assert abs(came[2] - entered[0][2] - int(took)) < 1000
    assert 100_000_000 < int(took) < 110_000_000
    assert "returned: missed 2\n" in console
    assert re.search(r"(?m)^  slept +\d+ +2$", text)

    checked = compared_stacks(console, text)
    # By ftrace, by a breakpoint, by Linux's trampoline of return probes, by a jump.
    assert [names[2] for names in checked] == [
        *("kprobe_ftrace_handler", "kprobe_int3_handler"),
        *("kretprobe_rethook_handler", "opt_pre_handler"),
    ]
    checked_list(again, beside)


def checked_list(console: str, beside: str) -> None:
    """Compare the kernel's list of its kprobes with the one that is read from its memory."""
    theirs = re.findall(r"(?m)^f{8}\w{8}  .*$", console)
    ours = re.findall(r"(?m)^f{8}\w{8}  .*$", beside)
    assert "the kernel's own kprobes:\n" + ours[0] in beside
    assert ours == theirs
    assert len(ours) == 10
    # At kernel_clone and at vfs_read two probes each are an aggregate.
    assert {line.split("  ")[1] for line in ours} == {"k", "r"}
    assert any("returned+0x0  returned [FTRACE]" in line for line in ours)
    for text in (" [OPTIMIZED]", " [FTRACE]", " [DISABLED]", " [DISABLED][FTRACE]"):
        assert any(line.endswith(text) for line in ours), text


FRAME = re.compile(r"(?m)^ (?: RIP: 0010:| +)?(\? )?(\S+\+0x\w+/0x\w+(?: \[\w+\])?|0xf\w+)\s*$")


def compared_stacks(console: str, text: str) -> list[list[str]]:
    """Compare the stacks that a kernel has printed with those of a trace; names of the frames."""
    checked = []
    printed = re.findall(r"(?s)Call Trace:\n(.*?)</TASK>", console)
    recorded = re.findall(r"<stack trace>\n((?: => .*\n)+)", text)
    for theirs, ours in zip(printed, recorded, strict=True):
        frames = [line.removeprefix(" => ") for line in ours.splitlines()]
        found = [
            (bool(doubt), name) for doubt, name in FRAME.findall(theirs.replace("RIP", "  RIP"))
        ]
        assert frames.pop(0).startswith("show_stack+")
        expected = [name for doubt, name in found if not doubt]
        if any(name.startswith("arch_rethook_trampoline+") for name in frames):
            at = expected.index("arch_rethook_trampoline+0x2c/0x60") + 1
            assert frames[at].startswith("hrtimer_nanosleep+")
            expected[at] = frames[at]  # the one in front of the trampoline
        if any(name.startswith("optimized_callback+") for name in frames):
            guessed = [name for doubt, name in found if doubt]
            expected += frames[len(expected) :]
            assert [name for name in guessed if name in expected] == frames[-4:]
        assert frames == expected
        assert frames[-1].startswith("entry_SYSCALL_64_after_hwframe+")
        names = [name.partition("+")[0] for name in frames]
        checked.append([name for name in names if name != "aggr_pre_handler"])
    return checked


EXAMPLES = "KPROBE_TUI_LINUX_SOURCE"
"""Environment variable that has Linux's sources fetched, 140 MB."""
EXAMPLES_INIT = """#!/bin/sh
mount -t devtmpfs dev /dev
busybox modprobe kprobe_example
busybox modprobe kretprobe_example
(true)
(true)
busybox rmmod kretprobe_example
busybox rmmod kprobe_example
poweroff -f
"""
EXAMPLES_DEFINITIONS = """\
r:m/planted kprobe_example:kprobe_init ret=$retval:s32
p:m/stopped unregister_kprobe
p:m/clone kernel_clone flags=%flags:x64
r:m/cloned kernel_clone ret=$retval:u64
p:m/pre kprobe_example:handler_pre flags=+0x90(%si):x64
p:m/post kprobe_example:handler_post flags=+0x90(%si):x64
p:m/entry kretprobe_example:entry_handler
p:m/ret kretprobe_example:ret_handler ret=+0x50(%si):u64
"""


@needs_host_code
@pytest.mark.skipif(not os.environ.get(EXAMPLES), reason=f"set {EXAMPLES}=1 to fetch the sources")
def test_linuxs_own_examples_are_hit_as_they_say(tmp_path: Path) -> None:
    """samples/kprobes of Linux, as Debian's sources have them."""
    for name in ("source", "built"):
        (tmp_path / name).mkdir()
    top = kernel_sources(AMD64_61, ("samples/kprobes",), tmp_path / "source")
    names = ("kprobe_example", "kretprobe_example")
    sources = {name: (top / "samples/kprobes" / f"{name}.c").read_text() for name in names}
    modules = built_modules(AMD64_61, sources, tmp_path / "built")
    definitions = tmp_path / "definitions"
    definitions.write_text(EXAMPLES_DEFINITIONS)
    console, _ = boot(tmp_path, EXAMPLES_INIT, modules, "-e", f"@{definitions}")
    recorded = list(rows((tmp_path / "out").read_text()))
    begin = next(at for at, row in enumerate(recorded) if row[0] == "planted")
    end = max(at for at, row in enumerate(recorded) if row[0] == "stopped")
    for kind in ("pre", "post"):
        said = re.findall(rf"handler_{kind}: <kernel_clone> .*flags = (\w+)", console)
        assert len(said) > 2
        assert [row[3] for row in recorded if row[0] == kind] == [[word] for word in said]
        assert len(said) == sum(row[0] == "clone" for row in recorded[begin:end])
    came = re.findall(r"kernel_clone returned (\d+) and took (\d+) ns", console)
    assert len(came) > 2
    handled = [row for row in recorded if row[0] == "ret"]
    assert [row[3] for row in handled] == [[value] for value, _ in came]
    mine = [row[3] for row in recorded[begin:end] if row[0] == "cloned"]
    assert [value for value, _ in came] == [
        value
        for (value,) in mine[-len(came) - 1 : -1]  # the last one is of the second rmmod
    ]
    entered = [
        row for row in recorded if row[0] == "entry" and row[1] != 2
    ]  # kthreadd is left out
    for row, start, (_, took) in zip(handled, entered, came, strict=True):
        assert abs(row[2] - start[2] - int(took)) < 1000
    assert "Missed probing 0 instances of kernel_clone" in console
