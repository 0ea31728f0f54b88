"""Filters and formats, asked of the running kernel as well: verdict, text, caret, what passes.

Only if KPROBE_TUI_LIVE_KERNEL is set, and as root. The event has a group and a trace instance of
its own, and both are gone afterwards.
"""

import json
import os
import platform
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from sysroot import CHECKOUT

from engine.arch import by_name
from engine.arch.plan import Mode
from engine.arch.program import RecordLayout
from engine.fetch.predicate import PredicateContext, compile_predicate
from engine.trace.definition import Definition, parse
from engine.trace.fields import format_text
from engine.trace.filter import FilterMachine, FilterSyntaxError, parse_filter
from engine.trace.rows import HEAD, EventInfo
from engine.trace.syscalls import arguments, enter_info, exit_info

LIVE: Final = "KPROBE_TUI_LIVE_KERNEL"
TRACING: Final = Path("/sys/kernel/tracing")
COUNT: Final = int(os.environ.get("KPROBE_TUI_LIVE_FILTERS", "200"))
PLACE: Final = 0x1156
ARGS: Final = (
    "a=%di:s32 b=%si:s32 u=%si:u64 x=%di:x8 h=%dx:s16 ch=%di:char bits=%si:b3@0/8 "
    "s=@0x4040c0:string c=$comm two=@0x4040c0:u8[2] four=@0x4040c0:x16[4] three=@0x4040c0:u8[3]"
)
HITS: Final = ((1, 2, 3), (-7, 100, -1))
"""Arguments of the two calls of the function."""
TEXT: Final = b"hello from .data"
COMM: Final = b"kf_nopie"

pytestmark = pytest.mark.skipif(
    not os.environ.get(LIVE) or os.geteuid() != 0 or platform.machine() != "x86_64",
    reason=f"{LIVE} is not set, or this is no root on x86-64",
)


def info_of() -> EventInfo:
    parsed = parse(f"p:g/e /elf:{PLACE:#x} {ARGS}", by_name("x86_64"), mode=Mode.KERNEL)
    assert isinstance(parsed, Definition)
    return EventInfo.of(1, "g", "e", RecordLayout.of(parsed.args))


def rows(info: EventInfo, number: int, thread: int) -> list[bytes]:
    """What the two calls record."""
    out = []
    for a, b, c in HITS:
        end = info.words * 8
        strings = [TEXT + b"\0", COMM + b"\0"]
        words: list[int] = [a, b, b, a, c, a, b & 7]
        for text in strings:
            words.append(end | len(text) << 32)
            end += len(text)
        words += [*TEXT[:2], *struct.unpack("<4H", TEXT[:8]), *TEXT[:3]]
        data = struct.pack("<QQ", 5, 0x401156)
        data += b"".join(struct.pack("<Q", word & 2**64 - 1) for word in words)
        data += b"".join(strings)
        data += bytes(-len(data) % 8)
        out.append(HEAD.pack(number, len(data) // 8 + 1, thread) + data)
    return out


def terms(pick: random.Random) -> str:
    numbers = ["0", "1", "2", "3", "-7", "100", "0x64", "0144", "-1", "255", "249", "0xf9", "7",
               "25960", "4294967295", "18446744073709551615", "99999999999999999999", "12ab",
               "-0x7", "08", "26725", "6581362", "0x7266206f6c6c6568"]  # fmt: skip
    texts = ['"hello*"', '"*data"', '"*from*"', '"h?llo*"', '"hello from .data"', '"[gh]ello*"',
             '"[!h]*"', '"!x*"', '"kf_nopie"', '"*pie"', '"kf*pie"', '"*"', '""', '"1*"',
             "'*lo fr*'", '"hel*data"', '"x', "hello", '"*.d?ta"', '"[a-h]*"']  # fmt: skip
    field = pick.choice(["a", "b", "u", "x", "h", "ch", "bits", "s", "c", "two", "four", "three",
                         "COMM", "comm", "cpu", "CPU", "common_pid", "__probe_ip", "nosuch",
                         "common_type"])  # fmt: skip
    sign = pick.choice(["==", "!=", "<", "<=", ">", ">=", "&", "~", "=", "=="])
    if field in ("s", "c", "COMM", "comm") and pick.random() < 0.8:
        value = pick.choice(texts)
        sign = pick.choice(["==", "!=", "~", "~", "~", sign])
    elif pick.random() < 0.08:
        value = pick.choice(["CPUS{0}", "CPUS{0-1}", "CPUS{1}", "CPUS{}", "CPUS{x}", "CPUS0"])
    else:
        value = pick.choice(numbers if pick.random() < 0.9 else texts)
    blank = pick.choice(["", " ", "  "])
    return f"{field}{blank}{sign}{blank}{value}"


def generated(pick: random.Random) -> str:
    """A filter, most of them good."""

    def group(depth: int) -> str:
        kind = pick.random()
        if depth > 2 or kind < 0.45:
            return pick.choice(["", "", "", "!", "! ", "!!"]) + terms(pick)
        if kind < 0.6:
            return f"{pick.choice(['', '!'])}({group(depth + 1)})"
        return group(depth + 1) + pick.choice([" && ", "&&", " || ", "||"]) + group(depth + 1)

    text = group(0)
    if pick.random() < 0.08:
        at = pick.randrange(len(text))
        text = text[:at] + pick.choice(["(", ")", '"', "&", "|", ""]) + text[at + 1 :]
    return text


class Kernel:
    """The event in the running kernel."""

    def __init__(self, program: Path) -> None:
        self.group = f"kprobe_tui_{os.getpid()}"
        self.program = program
        self.instance = TRACING / "instances" / self.group
        self.folder = self.instance / "events" / self.group / "e"
        self._run = ["setarch", "-R", str(program)]

    def __enter__(self) -> "Kernel":
        append(f"p:{self.group}/e {self.program}:{PLACE:#x} {ARGS}")
        self.instance.mkdir()
        (self.folder / "enable").write_text("1")
        return self

    def __exit__(self, *_: object) -> None:
        (self.folder / "enable").write_text("0")
        self.instance.rmdir()
        append(f"-:{self.group}/e")

    @property
    def number(self) -> int:
        """The kernel's id of the event."""
        return int((self.folder / "id").read_text())

    def ask(self, text: str) -> tuple[bool, str, list[int]]:
        """Whether it is accepted, what its file shows, `a` of the hits that passed."""
        accepted = True
        file = os.open(self.folder / "filter", os.O_WRONLY)
        try:
            os.write(file, text.encode())
        except OSError:
            accepted = False
        finally:
            os.close(file)
        shown = (self.folder / "filter").read_text()
        (self.instance / "trace").write_text("")
        subprocess.run(self._run, env={}, capture_output=True, check=True)
        trace = (self.instance / "trace").read_bytes().decode(errors="replace")
        passed = re.findall(r" e: \(0x\w+\) a=(-?\d+)", trace)
        return accepted, shown.rstrip("\n"), [int(a) for a in passed]


def append(line: str) -> None:
    events = os.open(TRACING / "uprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(events, f"{line}\n".encode())
    finally:
        os.close(events)


@pytest.fixture
def tracefs() -> Iterator[Path]:
    """The tracing file system, mounted for the time if it is not."""
    mounted = (TRACING / "uprobe_events").exists()
    if not mounted:
        words = ["mount", "-t", "tracefs", "tracefs", str(TRACING)]
        if subprocess.run(words, capture_output=True).returncode:
            pytest.skip("tracefs cannot be mounted")
    try:
        yield TRACING
    finally:
        if not mounted:
            subprocess.run(["umount", str(TRACING)], check=True)


@pytest.fixture
def kernel(tmp_path: Path, tracefs: Path) -> Iterator[Kernel]:
    program = tmp_path / "kf_nopie"
    shutil.copy(CHECKOUT / "tests" / "data" / "uprobes" / "kf_nopie", program)
    program.chmod(0o755)
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0})  # as the guest, the program only knows CPU 0
    try:
        with Kernel(program) as found:
            yield found
    finally:
        os.sched_setaffinity(0, cpus)


def test_generated_filters_are_the_kernels(kernel: Kernel, tmp_path: Path) -> None:
    pick = random.Random(20)
    info = info_of()
    machine = FilterMachine(cpus=os.cpu_count() or 1)
    context = PredicateContext(comm=lambda thread: COMM)
    both = rows(info, kernel.number, 4711)
    differ: list[dict[str, object]] = []
    verdicts = [0, 0]
    for _ in range(COUNT):
        text = generated(pick)
        theirs = kernel.ask(text)
        try:
            found = parse_filter(text, info, machine)
            test = compile_predicate(found.ops, context)
            ours = (True, found.text, [a for (a, _, _), row in zip(HITS, both, strict=True)
                                       if test(row, 0)])  # fmt: skip
        except FilterSyntaxError as error:
            ours = (False, error.readback, [a for a, _, _ in HITS])
        verdicts[ours[0]] += 1
        if ours != theirs:
            differ.append({"filter": text, "ours": ours, "kernel": theirs})
    assert not differ, json.dumps(differ, indent=1)
    assert min(verdicts) > COUNT // 10, "all of one kind"


def test_system_calls_have_the_kernels_formats(tracefs: Path) -> None:
    """But for what they point to, which Linux records since 6.19, and our own numbers."""
    arch = by_name("x86_64")
    compared = 0
    for call in arch.linux.syscalls.values():
        fields = arguments(call, arch.linux.clone_backwards)
        for info in (
            (enter_info(1, call, fields), exit_info(1, call)) if fields is not None else ()
        ):
            file = tracefs / "events" / "syscalls" / info.name / "format"
            if not file.exists():
                continue
            theirs = re.sub(r"^ID: .*$", "ID: 1", file.read_text(), flags=re.MULTILINE)
            ours = format_text(info)
            ours = re.sub(r"\tfield:__data_loc char\[\] __\w+_val;.*\n", "", ours)
            ours = re.sub(r" \\\"%s\\\"|, __get_str\(\w+\)", "", ours)
            assert ours == theirs
            compared += 1
    assert compared > 500
