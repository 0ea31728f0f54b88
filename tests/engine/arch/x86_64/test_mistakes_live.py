"""Instructions under a uprobe of the running kernel, and without: the table explains differences.

Only if KPROBE_TUI_LIVE_KERNEL is set, and as root on a processor with AVX-512. The event has a
group and a trace instance of its own, and both are gone afterwards. KPROBE_TUI_LIVE_FORMS is how
many forms are tried (20,000 in a minute; there are about 390,000), KPROBE_TUI_LIVE_SEED which.
"""

import json
import os
import random
import re
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from compiled import build
from insnforms import every_form
from livekernel import LIVE_KERNEL, TRACING

from engine.arch.plan import Mode, Rules
from engine.arch.x86_64.analyze import analyze
from engine.image import ElfImage
from engine.image.symbols import SymbolTable

DATA: Final = Path(__file__).parents[3] / "data" / "uprobes"
COUNT: Final = int(os.environ.get("KPROBE_TUI_LIVE_FORMS", "4000"))
SEED: Final = int(os.environ.get("KPROBE_TUI_LIVE_SEED", "618"))
FLAGS: Final = (0x202, 0xAC7)
BATCH: Final = 2000
RECORD: Final = struct.Struct("<iIQ17Q")
RSP: Final = 4
KNOWN: Final = frozenset({"x86.syscall", "x86.indirect-call", "x86.uprobe-opcode"})
"""Rules of instructions that differ and whose plans do not say so: rcx and r11 behind `syscall`,
call with prefix 66, and int3, at which a uprobe is refused too late: the program hangs."""

pytestmark = pytest.mark.skipif(
    not os.environ.get(LIVE_KERNEL)
    or os.geteuid() != 0
    or "avx512vl" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"),
    reason=f"{LIVE_KERNEL} is not set, or this is no root on x86-64 with AVX-512",
)


def source_of(forms: Sequence[str]) -> str:
    lines = [".text"]
    for number, form in enumerate(forms):
        code = ",".join(f"{byte:#x}" for byte in bytes.fromhex(form))
        lines.append(f".fill 136,1,0x50\n.globl c{number}\nc{number}: .byte {code}")
        lines.append(".fill 140,1,0x50\njmp epilogue")
    lines += [".data", ".globl cases, ncases", "cases:"]
    lines += [f".quad c{number}" for number in range(len(forms))]
    return "\n".join((*lines, f"ncases: .long {len(forms)}", (DATA / "forms_run.S").read_text()))


Outcome = tuple[int, ...]


def outcomes(program: Path, flags: int) -> list[Outcome]:
    """Status, sum of the state and registers, form by form."""
    done = subprocess.run([program, hex(flags)], capture_output=True, timeout=300, check=True)
    return [*RECORD.iter_unpack(done.stdout)]


def append(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)  # which cannot be sought in
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


@contextmanager
def uprobes(program: Path, forms: int) -> Iterator[Path]:
    """The file `trace` of an instance, with a uprobe on each form enabled."""
    image = ElfImage.open(program)
    symbols = SymbolTable(image)
    group = f"kprobe_tui_{os.getpid()}"
    instance = TRACING / "instances" / group
    instance.mkdir()
    enable = instance / "events" / group / "e" / "enable"
    try:
        for number in range(forms):
            symbol = symbols.find(f"c{number}")
            assert symbol is not None
            offset = image.file_offset(symbol.address)
            append(TRACING / "uprobe_events", f"p:{group}/e {program}:{offset:#x}\n")
        (instance / "buffer_size_kb").write_text("16000")
        enable.write_text("1")
        yield instance / "trace"
    finally:
        if enable.exists():
            enable.write_text("0")
        instance.rmdir()
        append(TRACING / "uprobe_events", f"-:{group}/e\n")


def compared(folder: Path, forms: Sequence[str]) -> Iterator[tuple[str, int, Outcome, Outcome]]:
    """(form, flags, without a probe, with one) of those that differ, and differ always."""
    folder.mkdir()
    (folder / "run.c").write_text((DATA / "forms_run.c").read_text())
    options = (str(folder / "run.c"), "-static", "-no-pie", "-O1", "-w", "-Wl,-z,noexecstack")
    program = build(folder, "forms", source_of(forms), *options)
    for flags in FLAGS:
        plain, again = outcomes(program, flags), outcomes(program, flags)
        with uprobes(program, len(forms)) as trace:
            probed = outcomes(program, flags)
            hits = re.findall(r": e: \(", trace.read_text(errors="replace"))
        assert hits
        for form, one, two, other in zip(forms, plain, again, probed, strict=True):
            if one[:3] == two[:3] != other[:3]:
                yield form, flags, one, other


def plan_of(form: str) -> tuple[str, bool]:
    raw = bytes.fromhex(form).ljust(16, b"\x50")
    found = analyze(raw, 0x401000, Rules.UPROBE, Mode.KERNEL, b"")
    return found.rule, bool(found.wrong)


@pytest.mark.slow
def test_the_table_explains_what_differs_under_a_uprobe(tmp_path: Path) -> None:
    every = every_form()
    forms = random.Random(SEED).sample(every, min(COUNT, len(every)))
    unexplained = []
    for start in range(0, len(forms), BATCH):
        part = forms[start : start + BATCH]
        for form, flags, _, _ in compared(tmp_path / str(start), part):
            rule, wrong = plan_of(form)
            if not wrong and rule not in KNOWN:
                unexplained.append((form, hex(flags)))
    assert not unexplained


@pytest.mark.slow
def test_the_kernel_still_does_what_is_written_down(tmp_path: Path) -> None:
    wanted = json.loads((DATA / "damage-6.18.json").read_text(encoding="utf-8"))["forms"]
    found: dict[str, dict[str, list[int]]] = {}
    for form, flags, _, other in compared(tmp_path / "known", list(wanted)):
        stack = other[3 + RSP] if other[0] == 0 else 0
        found.setdefault(form, {})[hex(flags)] = [other[0], stack]
    assert found == wanted
