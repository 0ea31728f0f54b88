"""Probes in programs of a booted system record what the kernel's own uprobes record inside."""

import re
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootkit import BUSYBOX, needs_host_code
from compiled import build
from guestrun import Outcome, run
from kernelimages import AMD64_61, AMD64_612, image_path
from programsource import FLAGS, SOURCE

from engine.image.elf import ElfImage
from engine.image.symbols import SymbolTable

pytestmark = [needs_host_code, pytest.mark.slow]
EVENTS = """\
p:u/twice {static}:<twice> n=%di:s64 ip=%ip name=$comm
r:u/twiced {static}:<twice> ret=$retval:s64 ip=%ip
p:u/tail {static}:<tail> n=%di sp=%sp
r:u/tailed {static}:<tail> ret=$retval
p:u/fib {static}:<fib> n=%di:u32 flags=%flags:x8
r:u/fibbed {static}:<fib> ret=$retval:u64
p:u/greet {static}:<greet> name=+0(%di):string second=+8(%si):u64 all=+0(%si):u64[4] top=$stack0
p:u/leap {static}:<leap> n=%di
r:u/leapt {static}:<leap> ret=$retval
p:u/touch {static}:<touch> page=%di:x64
p:u/faults {static}:<touch+1> page=%di:x64
p:u/inside {static}:<touch+4> page=+1(%di):u8
r:u/touched {static}:<touch> ret=$retval
r:u/forked {static}:<forked> ret=$retval
p:u/lazy {static}:<lazy> a=+0(%di):string b=+0(%si):string c=+0(%dx):string d=+0(%cx):u8
p:u/moved {pie}:<fib> n=%di first=@+DATA:u64 no=@0xffffffff82000000:u64
r:u/removed {pie}:<fib> ret=$retval:s32
p:u/lost {pie}:<lazy> a=+0(%di):string b=+0(%si):string c=+0(%dx):string d=+0(%cx):u8
p:u/shell /bin/sh:START sp=%sp count=+0(%sp):u64
p:u/busy /bin/busybox:START
"""
INIT = """\
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
echo x86-tsc > trace_clock
echo 20000 > buffer_size_kb
while read -r line; do
    echo "$line" >> uprobe_events || echo "refused $line"
done << 'END'
EVENTS
END
/static before
ENABLE
/static one
/pie two
(echo one; echo two) | sort | cat > /tmp/lines
/static
/pie
echo 0 > tracing_on
echo "=== trace"
cat trace
echo "=== end"
poweroff -f
"""
ROW = re.compile(r"^ *(?:.*)-(\d+) +\[000\] \S+ +(\d+): (\w+): (.*)$")
Row = tuple[int, str, str]


def offset(image: ElfImage, name: str) -> int:
    """The offset in a file of FUNCTION+NUMBER."""
    function, _, more = name.partition("+")
    symbol = SymbolTable(image).find(function)
    assert symbol is not None
    found = image.file_offset(symbol.address)
    assert found is not None
    return found + int(more or "0")


def system(folder: Path, *, inside: bool = True) -> tuple[Path, Path]:
    """A folder that becomes the root, and a file of definitions."""
    root, made = folder / "root", folder / "definitions"
    for name in ("bin", "proc", "sys", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    for name in ("sh", "cat", "mount", "poweroff", "sort"):
        (root / "bin" / name).symlink_to("busybox")
    paths = {"static": "/static", "pie": "/pie"}
    images = {}
    for kind in paths:
        program = build(
            folder, kind, SOURCE, *FLAGS, f"-{'static-pie' if kind == 'pie' else kind}"
        )
        shutil.copy(program, root / kind)
        images[kind] = ElfImage.open(str(program))
    busybox = ElfImage.open(BUSYBOX)
    start = busybox.file_offset(busybox.entry)
    lines = []
    for line in EVENTS.splitlines():
        image = images["pie" if "{pie}" in line else "static"]
        line = line.format(**paths)
        for name in re.findall("<(.*?)>", line):
            line = line.replace(f"<{name}>", f"{offset(image, name):#x}")
        line = line.replace("START", f"{start:#x}")
        lines.append(line.replace("DATA", f"{offset(image, 'data'):#x}"))
    text = "\n".join(lines)
    made.write_text(f"{text}\n")
    enable = "echo 1 > events/u/enable" if inside else ""
    init = root / "init"
    init.write_text(INIT.replace("EVENTS", text if inside else "").replace("ENABLE", enable))
    init.chmod(init.stat().st_mode | stat.S_IXUSR)
    (root / "data").write_bytes(b"x" * 4090 + b"across two pages" + bytes(4096))
    return root, made


def booted(command: str, folder: Path, *words: str) -> Outcome:
    return run(command, "--boot", *words, cwd=folder, deadline=600)


def rows(text: str) -> Iterator[tuple[int, Row]]:
    """The time, and thread, event and its values, of each line of a trace."""
    for line in text.splitlines():
        match = ROW.match(line)
        if match is not None:
            yield int(match[2]), (int(match[1]), match[3], match[4])


@pytest.mark.parametrize(
    ("name", "append"),
    [(AMD64_61, "quiet"), (AMD64_612, "quiet mitigations=auto pti=on")],
    ids=["6.1", "6.12"],
)
def test_the_kernels_own_uprobes_record_the_same(name: str, append: str, tmp_path: Path) -> None:
    """In the same run: each event, its thread, its values, the order.

    The 6.12 kernel has page tables of their own for programs. What comes last is of switching off.
    """
    root, definitions = system(tmp_path)
    words = ("--mode", "kernel", "-e", f"@{definitions}", "--init", str(root), "--append", append)
    done = booted("trace", tmp_path, *words, "-o", "ours", "--profile", str(image_path(name)))
    assert done.code == 0, done.err
    assert "refused" not in done.out
    theirs = list(rows(re.split(r"=== \w+\r?\n", done.out)[1]))
    assert len(theirs) > 400
    assert len(Counter(row[1] for _, row in theirs)) == len(EVENTS.splitlines())
    text = (tmp_path / "ours").read_text()
    ours = list(rows(text))
    first = next(at for at, (_, row) in enumerate(ours) if row == theirs[0][1])
    first += next(at for at, (time, _) in enumerate(ours[first:]) if theirs[0][0] - time < 10**5)
    found = [row for _, row in ours[first : first + len(theirs)]]
    assert found == [row for _, row in theirs]
    assert any('b="across two pages"' in row[2] for row in found)
    before = [row[1] for _, row in ours[:first]]
    assert before.count("fib") == 46  # when nothing was enabled inside
    profile = re.search(r"^  fib +(\d+) +0$", text, re.MULTILINE)
    assert profile is not None
    assert int(profile[1]) == 46 * 3


def test_probes_in_programs_change_nothing(tmp_path: Path) -> None:
    root, definitions = system(tmp_path, inside=False)
    words = ("-e", f"@{definitions}", "-e", "p:k/open do_sys_openat2", "--init", str(root))
    done = booted("diff", tmp_path, *words, str(image_path(AMD64_61)))
    assert done.code == 0, done.err
    assert done.err.endswith("kprobe-tui: no effect\n")
    places = re.search(r"(\d+) probed places, (\d+) hits", done.err)
    assert places is not None
    assert int(places[1]) == 15
    assert int(places[2]) > 400


NAMED = """p:u/twice /static:twice n
r:u/twiced /static:twice ret=$retval n
p:u/fib /pie:fib $arg* first=data[1] marked=given:string
p:u/greet /static:greet name:string numbers[2]
perf: -x /pie main:1 argc
p:u/lazy /pie:lazy a:string c:string
"""


def test_variables_of_programs_have_the_values_that_a_trace_of_them_reads(tmp_path: Path) -> None:
    """By name, with the program's debug information, in the booted system and without one."""
    root, _ = system(tmp_path, inside=False)
    (root / "init").write_text("#!/bin/sh\n/static\n/pie\npoweroff -f\n")
    for kind in ("static", "pie"):
        link = "-static-pie" if kind == "pie" else "-static"
        shutil.copy(build(tmp_path, f"{kind}-g", SOURCE, *FLAGS, "-g", link), root / kind)
    words = [word for line in NAMED.splitlines() for word in ("-e", line)]
    words += ["--init", str(root), "--append", "quiet", "-o", "booted", str(image_path(AMD64_61))]
    done = booted("trace", tmp_path, *words)
    assert done.code == 0, done.err
    found = [row[1:] for _, row in rows((tmp_path / "booted").read_text())]
    assert {name for name, _ in found} == {
        *("twice", "twiced", "fib", "greet", "main_L1", "lazy"),
    }
    wanted = []
    for kind in ("static", "pie"):
        program = str(root / kind)
        lines = [line for line in NAMED.splitlines() if f"/{kind}" in line]
        each = [word for line in lines for word in ("-e", line.replace(f"/{kind}", program))]
        alone = run("trace", *each, "-o", f"{kind}.txt", program, cwd=tmp_path)
        assert alone.code == 0, alone.err
        wanted += [row[1:] for _, row in rows((tmp_path / f"{kind}.txt").read_text())]
    assert [_values(row) for row in found] == [_values(row) for row in wanted]


def _values(row: tuple[str, str]) -> tuple[str, str]:
    """A row's event with its values: addresses of code differ."""
    return row[0], row[1].partition(") ")[2]


SCRIPT = r"""
uprobe:/static:twice { printf("%d twice(%d) %s %s\n", pid, arg0, func, probe); }
uretprobe:/static:twice { printf("%d twiced %d\n", pid, retval); }
uprobe:/static:fib /arg0 == 7/ { @stack = ustack(2); }
uretprobe:/pie:fib { @fib[comm] = sum(retval); }
uprobe:/pie:t[aw]i* { @[probe] = count(); }
uprobe:/pie:greet {
    printf("%s, %d, %s\n", str(arg0), *(int64 *)uaddr("data"), usym(*(uint64 *)reg("sp")));
}
uprobe:/pie:lazy { @late[str(arg0), str(arg1)] = count(); }
uprobe:/static:main { @started[comm] = count(); }
usdt:/pie:prog:touching { @marked[arg1, arg2, arg0 == reg("di")] = count(); }
uprobe:/static:none { @none = count(); }
config = { missing_probes = "warn" }
"""


NAMING = r"""
uprobe:/static:greet { printf("%s %d\n", str(args.name), args.numbers == 0 ? 0 : *args.numbers); }
uretprobe:/static:fib { @sum = sum(retval); }
uprobe:/static:fib { @least = min(args.n); @depth[args.n] = count(); }
uprobe:/static@static.c:LINE { @lines = count(); }
"""


def test_a_script_names_arguments_and_lines(tmp_path: Path) -> None:
    root, _ = system(tmp_path, inside=False)
    (root / "init").write_text("#!/bin/sh\n/static\npoweroff -f\n")
    shutil.copy(build(tmp_path, "static", SOURCE, *FLAGS, "-g", "-static"), root)
    line = next(at for at, text in enumerate(SOURCE.splitlines(), 1) if "long fib(" in text)
    (tmp_path / "script.bt").write_text(NAMING.replace("LINE", str(line)))
    words = ("--init", str(root), "--append", "quiet", "-o", "out", "script.bt", "--")
    done = booted("bpftrace", tmp_path, *words, str(image_path(AMD64_61)))
    assert done.code == 0, done.err
    text = (tmp_path / "out").read_text()
    assert text.startswith("nobody 11\n 0\n")
    assert f"@sum: {sum(_returned(7)) + sum(_returned(3))}\n" in text
    assert "@least: 0\n" in text
    assert "@depth[7]: 1\n" in text
    assert "@lines: 46\n" in text


def test_a_script_sees_programs(tmp_path: Path) -> None:
    root, _ = system(tmp_path, inside=False)
    lines = SCRIPT.strip().splitlines()
    script = tmp_path / "script.bt"
    script.write_text("\n".join((lines[-1], *lines[:-1])))
    words = ("--init", str(root), "--append", "quiet", "-o", "out", str(script), "--")
    done = booted("bpftrace", tmp_path, *words, str(image_path(AMD64_61)))
    assert done.code == 0, done.err
    assert "No matches for uprobe /static:none. Skipping." in done.err
    text = (tmp_path / "out").read_text()
    twice = re.findall(r"(\d+) twice\((\d+)\) twice uprobe:/static:twice\n\1 twiced (\d+)", text)
    called = (5, 21, 201, 202, 203, 205, 100)  # not 204: MREMAP_DONTUNMAP takes the probe along
    assert [(int(n), int(value)) for _, n, value in twice] == 3 * [(n, 2 * n) for n in called]
    assert re.search(r"@stack: \n +fib\+0\n +main\+\d+\n", text)
    # 13 and what leads to it, and 2 of a child, twice.
    total = sum(_returned(7)) + sum(_returned(3))
    assert f"@fib[pie]: {2 * total}\n" in text
    assert "@[uprobe:/pie:tail]: 2\n" in text
    assert "@[uprobe:/pie:twice]: 14\n" in text
    assert re.findall(r"^(\w*), 11, main$", text, re.MULTILINE) == ["two", "", "nobody", ""]
    assert "@late[a late string, ]: 2\n" in text
    assert "@late[, across two pages]: 2\n" in text
    assert "@marked[11, -7, true]: 8\n" in text
    assert "@started[static]: 3\n" in text


def _returned(n: int) -> list[int]:
    """The values that all calls of fib(n) return."""
    if n < 2:
        return [n]
    one, other = _returned(n - 1), _returned(n - 2)
    return [*one, *other, one[-1] + other[-1]]
