"""The contract of `kprobe-tui trace`: definitions, output, buffers, handlers, exit codes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import archkit
import pytest
from archkit import FIRST_COMPILED
from guestrun import Outcome, run
from sysroot import CHECKOUT

from engine.arch import by_name, names
from engine.image import ElfImage, SymbolTable
from engine.trace.kernel_rows import KernelEvent

SAMPLES = CHECKOUT / "samples" / "bin"
GUEST = str(SAMPLES / "x86_64" / "recursion")
CALLS = 987
"""Calls of fibonacci in the sample."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def trace(home: Path, *words: str, guest: str = GUEST) -> Outcome:
    return run("trace", *words, guest, cwd=home)


def events(text: str) -> list[str]:
    return re.findall(r"\] \.{5} +\d+: (.*)", text)


@pytest.mark.parametrize(
    ("definition", "caret", "text"),
    [
        ("p:x nosuch", "nosuch", "Invalid probed address or symbol"),
        ("p:x fibonacci n=%zz", "%zz", "Invalid register name"),
        ("p:x 0x10", "0x10", "outside all segments"),
        ("p:x /no/file:0x10", "/no/file", "Failed to find the given file"),
        ("p:x fibonacci+1", "fibonacci+1", "not on an instruction|boundary"),
    ],
)
def test_a_wrong_definition_is_shown_with_a_caret(
    home: Path, definition: str, caret: str, text: str
) -> None:
    done = trace(home, "-e", definition)

    assert (done.code, done.out) == (2, "")
    head, command, marks, *_ = done.err.splitlines()
    assert "error: " in head
    assert command == f"  Command: {definition}"
    assert marks.index("^") == command.index(caret)
    assert re.search(text, done.err)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "nothing to trace"),
        (("--overwrite", "-e", "p:x main"), "--overwrite needs --buffer"),
        (("-e", "@nofile"), "-e @nofile: No such file or directory"),
        (("-o", "/no/dir/file", "-e", "p:x main"), "-o /no/dir/file: No such file"),
        (("--handlers", "none.py"), "--handlers none.py: No such file"),
    ],
)
def test_usage(home: Path, words: tuple[str, ...], text: str) -> None:
    done = trace(home, *words)

    assert (done.code, done.out) == (2, "")
    assert text in done.err


def test_output_goes_where_it_is_told(home: Path) -> None:
    plain = trace(home, "-e", "p:x fibonacci n=%di:u32")
    file = trace(home, "-o", "out", "-e", "p:x fibonacci n=%di:u32")
    nothing = trace(home, "-o", "/dev/null", "-e", "p:x fibonacci n=%di:u32")

    assert plain.out == file.out == nothing.out != ""
    assert (file.code, file.err, nothing.code, nothing.err) == (0, "", 0, "")
    assert (home / "out").read_text() == plain.err
    assert len(events(plain.err)) == CALLS
    assert [path.name for path in home.iterdir()] == ["out"]


@pytest.mark.parametrize(
    "size",
    [3, CALLS, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, CALLS - 1, CALLS + 1))],
)
def test_a_buffer_says_exactly_what_it_lost(home: Path, size: int) -> None:
    rows = events(trace(home, "-e", "p:x fibonacci n=%di:u32").err)
    first = trace(home, "--buffer", str(size), "-e", "p:x fibonacci n=%di:u32")
    last = trace(home, "--buffer", str(size), "--overwrite", "-e", "p:x fibonacci n=%di:u32")

    kept = min(size, CALLS)
    for done in (first, last):
        lost = re.findall(r"^CPU:0 \[LOST (\d+) EVENTS\]$", done.err, re.MULTILINE)
        assert lost == ([str(CALLS - size)] if size < CALLS else [])
    assert events(first.err) == rows[:kept]
    assert events(last.err) == rows[-kept:]


def test_a_list_does_not_run(home: Path) -> None:
    done = trace(home, "--list", "-e", "p:g/x fibonacci n=%di:u32", "-e", "p main")

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["p:g/x fibonacci n=%di:u32", "p:kprobes/p_main_0 main"]


def test_a_description_is_a_format_file(home: Path) -> None:
    """Its tabs are tabs: readers of the kernel's files split lines at them.

    The offsets are those of `uprobe_events` with the same arguments (live, 6.18).
    """
    done = trace(home, "--describe", "-e", "p:g/x main a=%di:s32 s=+0(%si):string b=%dx:u8")

    assert (done.code, done.err) == (0, "")
    assert "\\" not in done.out.replace('\\"%s\\"', "")
    assert "\tfield:s32 a;\toffset:16;\tsize:4;\tsigned:1;\n" in done.out
    found = KernelEvent.of(done.out)
    assert {field.name: (field.offset, field.size) for field in found.fields.values()} == {
        "common_type": (0, 2),
        "common_flags": (2, 1),
        "common_preempt_count": (3, 1),
        "common_pid": (4, 4),
        "__probe_ip": (8, 8),
        "a": (16, 4),
        "s": (20, 4),
        "b": (24, 1),
    }


@pytest.mark.parametrize("word", ["--list", "--describe", "--list-as=perf"])
def test_a_list_leaves_the_file_of_a_trace_alone(word: str, home: Path) -> None:
    kept = home / "kept"
    kept.write_text("precious")
    done = trace(home, word, "-e", "p main", "-o", str(kept))
    assert (done.code, done.err, kept.read_text()) == (0, "", "precious")
    assert "main" in done.out


def test_lines_of_one_option_are_as_many_writes(home: Path) -> None:
    """As of one write to `kprobe_events`: comments end with their lines, lines run in order."""
    text = "p:g/x fibonacci # remark\n\n  # nothing\np:g/y main\n-:g/x\np:g/z factorial n=%di\n"
    done = trace(home, "--list", "-e", text)

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["p:g/y main", "p:g/z factorial n=%di"]
    wrong = trace(home, "-e", "p:g/x fibonacci\np:g/y nosuch\np:g/z main")
    assert wrong.code == 2
    assert "p:g/y nosuch" in wrong.err


def test_a_uprobe_beyond_the_end_of_its_file(home: Path) -> None:
    """Linux takes the definition (live, 6.18); enabling it fails, and it is never hit."""
    size = Path(GUEST).stat().st_size
    for offset, why in ((size + 1, "cannot be enabled (EINVAL)"), (size, "will not be hit")):
        words = ("-e", f"p:g/x {GUEST}:{offset:#x}")
        listed = trace(home, "--mode", "kernel", "--list", *words)
        assert (listed.code, listed.out.count("\n")) == (0, 1)
        assert why in listed.err
        plain = run("run", GUEST, cwd=home)
        done = trace(home, "--mode", "kernel", *words)
        assert (done.out, done.code) == (plain.out, plain.code)
        assert why in done.err
        check = run("check", "--mode", "kernel", *words, GUEST, cwd=home)
        assert check.code == 2
        assert why in check.err
        strict = trace(home, *words)
        assert strict.code == 2
        assert "Invalid uprobe offset" in strict.err


def test_a_file_of_lines(home: Path) -> None:
    (home / "lines").write_text("# remark\np:x fibonacci\n\n-:x\np:y main\n")
    done = trace(home, "-e", "@lines", "-e", "p:z main")

    rows = events(done.err)
    assert sorted(row.split(":")[0] for row in rows) == ["y", "z"]


def test_a_probe_on_the_system_call(home: Path) -> None:
    listing = run("disasm", GUEST, "sys_write", cwd=home).out
    place = re.search(r"^(0x\w+) <sys_write\+0x\w+>: 0f 05 +syscall$", listing, re.MULTILINE)
    assert place is not None
    plain = run("run", GUEST, cwd=home)
    words = ("-e", f"p:s {place[1]} nr=%ax:u32 fd=%di:u32 first=+0(%si):char n=%dx:u32")
    done = trace(home, *words)

    assert (done.out, done.code) == (plain.out, plain.code)
    values = [row.partition(") ")[2] for row in events(done.err)]
    assert values == [
        f"nr=1 fd=1 first='{line[0]}' n={len(line)}"
        for line in plain.out.splitlines(keepends=True)
    ]


@pytest.mark.parametrize("mode", ["strict", "kernel"])
@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_the_same_place_as_kprobe_and_as_uprobe(home: Path, arch: str, mode: str) -> None:
    """Newest first at every hit; a kprobe's line has the symbol, a uprobe's the address.

    On x86 Linux hands a kprobe the address behind the int3, and kernel mode does.
    """
    guest = str(SAMPLES / arch / "recursion")
    image = ElfImage.open(guest)
    at = next(s.address for s in SymbolTable(image).find_all("fibonacci"))
    offset = image.file_offset(at)
    number, ip = archkit.argument(arch), archkit.pc(arch)
    values = f"n={number}:u32 ip={ip}"
    words = ("-e", f"p:k {at:#x} {values}", "-e", f"p:u {guest}:{offset:#x} {values}")
    rows = events(trace(home, "--mode", mode, *words, guest=guest).err)

    behind = int(mode == "kernel" and by_name(arch).trap_advances_pc)
    kprobe = re.compile(rf"k: \(fibonacci\+0x0/0x\w+\) n=(\d+) ip={at + behind:#x}")
    uprobe = re.compile(rf"u: \({at:#x}\) n=(\d+) ip={at:#x}")
    newer = [uprobe.fullmatch(row) for row in rows[::2]]
    older = [kprobe.fullmatch(row) for row in rows[1::2]]
    assert len(newer) == len(older) == CALLS
    numbers = [match and int(match[1]) for match in newer]
    assert numbers == [match and int(match[1]) for match in older]
    assert numbers[:3] == [15, 14, 13]  # the first calls of fibonacci(15)


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_a_killed_guest_keeps_its_trace(home: Path, arch: str) -> None:
    guest = str(SAMPLES / arch / "crash")
    streamed = trace(home, "-o", "out", "-f", "*", guest=guest)
    kept = trace(home, "--buffer", "100", "-f", "*", guest=guest)

    assert (streamed.code, kept.code) == (139, 139)
    rows = events((home / "out").read_text())
    assert rows[0].startswith("p__start_0: (_start+0x0/")
    assert any(row.startswith("p_read_value_0: ") for row in rows)
    assert events(kept.err) == rows
    assert "killed by SIGSEGV" in streamed.err


def test_handlers_run_before_and_after(home: Path) -> None:
    (home / "h.py").write_text(
        "seen = []\n"
        "def pre(p, regs):\n    seen.append(regs['di'] & 0xffffffff)\n"
        "def post(p, regs, flags):\n    seen.append(regs.ip - p.addr)\n"
        "probe = Kprobe(symbol_name='fibonacci', pre_handler=pre, post_handler=post)\n"
        "probes = [probe]\n"
        "def exit():\n    print(probe.hits, len(seen), seen[0], seen[1] > 0)\n"
    )
    done = trace(home, "--handlers", "h.py", "-e", "p:x fibonacci n=%di:u32")

    rows = events(done.err)
    first = rows[0].rpartition("=")[2]
    assert (done.code, len(rows)) == (0, CALLS)
    assert done.out.splitlines()[-1] == f"{CALLS} {2 * CALLS} {first} True"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("x = 1\n1/0\n", "line 2: ZeroDivisionError: division by zero"),
        ("probes = [\n", "SyntaxError"),
        ("x = 1\n", "it defines no list 'probes'"),
        ("probes = [1]\n", "1 in 'probes' is no probe"),
        ("probes = [Kprobe(symbol_name='nosuch')]\n", "no symbol 'nosuch'"),
        ("probes = [Kprobe(symbol_name='main')]\ndef init():\n  {}['k']\n", "line 3: KeyError"),
        ("probes = [Kprobe(symbol_name='main')]\ndef exit():\n  {}['k']\n", "line 3: KeyError"),
    ],
)
def test_an_error_in_handlers(home: Path, source: str, text: str) -> None:
    (home / "h.py").write_text(source)
    done = trace(home, "--handlers", "h.py")

    assert done.code == 2
    assert text in done.err


def test_the_trace_goes_to_descriptors_and_pipes(home: Path) -> None:
    """As a shell's `-o >(command)` names them: nothing is beside them, nothing is overwritten."""
    command = [sys.executable, "-m", "tui", "trace", "-e", "p:g/f factorial"]
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        with (home / "both").open("wb") as both:
            both.write(b"before\n")
            both.flush()
            subprocess.run([*command, "-o", name, GUEST], cwd=home, stdout=both, check=True)
        lines = (home / "both").read_text().splitlines()
        assert lines[0] == "before"
        assert any(" f: (factorial+0x0/" in line for line in lines)
        assert [line for line in lines if line.startswith("fibonacci(15)")]
    reading, writing = os.pipe()
    words = [*command, "-o", f"/dev/fd/{writing}", GUEST]
    subprocess.run(words, cwd=home, pass_fds=(writing,), stdout=subprocess.DEVNULL, check=True)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert b" f: (factorial+0x0/" in pipe.read()
    assert [path.name for path in home.iterdir() if ".ring" in path.name] == []


@pytest.mark.parametrize(
    "words",
    [
        ("trace", "-e", "p nosuch"),
        ("trace", "--handlers", "wrong.py"),
        ("trace", "-e", "p main", "--filter", "kprobes/p_main_0:nosuch == 1"),
        ("graph", "-f", "nosuch"),
    ],
)
def test_what_never_starts_leaves_no_ring(home: Path, words: tuple[str, ...]) -> None:
    (home / "wrong.py").write_text("1 / 0\n")
    assert run(*words, "-o", "out", GUEST, cwd=home).code == 2
    assert [path.name for path in home.iterdir() if path.suffix == ".ring"] == []


def test_an_error_at_a_hit_keeps_the_trace(home: Path) -> None:
    (home / "h.py").write_text(
        "def pre(p, regs):\n    raise ValueError('boom')\n"
        "probes = [Kprobe(symbol_name='fibonacci', pre_handler=pre)]\n"
    )
    done = trace(home, "--handlers", "h.py", "-e", "p:x main")

    assert done.code == 2
    assert "--handlers h.py: line 2: ValueError: boom" in done.err
    assert len(events(done.err)) == 1


def test_a_file_that_is_never_mapped(home: Path) -> None:
    other = SAMPLES / "x86_64" / "sort"
    done = trace(home, "--share", str(other), "-e", f"p:x {other}:0x229", "-e", "p:m main")

    assert done.code == 0
    assert len(events(done.err)) == 1
    assert f"never placed, as their file was not mapped:\nkprobe-tui:   {other}:0x229" in done.err


@pytest.mark.parametrize("technique", ["jump", "auto"])
@pytest.mark.parametrize("arch", names())
def test_a_technique_that_cannot_be_had_is_told(home: Path, arch: str, technique: str) -> None:
    guest = str(SAMPLES / arch / "recursion")
    done = trace(home, "--technique", technique, "-e", "p:g/e fibonacci", guest=guest)
    assert done.code == 0
    missing = technique == "jump" and by_name(arch).jumps is None
    assert (f"jump probes cannot be had in this guest ({arch})" in done.err) == missing
    assert len(events(done.err)) > 100  # and it is traced all the same
