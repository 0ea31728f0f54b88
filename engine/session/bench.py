"""What a hit costs: a guest made for it, run with and without probes in this process.

The guest calls one function again and again; a hit is the CPU time of a probed run minus that of
the unprobed run with the clock on, over the calls, each the minimum of some runs.
"""

import gc
import math
import struct
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.arch.base import Arch
from engine.errors import EngineError
from engine.insn.asm import assemble
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session.config import GuestConfig
from engine.session.session import Session
from engine.session.tracing import TraceOptions, Tracing

_BASE: Final = 0x40_0000
_CODE: Final = 0x1000
_TEXT: Final = b"a string of thirty-one bytes ..\0"
_EVENT: Final = "bench"

# One instruction a line, so that every form has one text; `work` comes last.
_PROGRAMS: Final = {
    "x86_64": (
        "mov rbx, {count:#x}; again: mov rdi, rbx; lea rsi, [rbx + 1]; mov rdx, {text:#x}; "
        "mov rcx, rbx; mov r8, rbx; mov r9, rbx; call {work:#x}; dec rbx; jnz again; "
        "mov eax, 60; xor edi, edi; syscall",
        "mov rax, rdi; add rax, rsi; ret",
    ),
    "aarch64": (
        "movz x19, #{low:#x}; movk x19, #{high:#x}, lsl #16; again: mov x0, x19; "
        "add x1, x19, #1; movz x2, #{text_low:#x}; movk x2, #{text_high:#x}, lsl #16; "
        "mov x3, x19; mov x4, x19; bl #{work:#x}; sub x19, x19, #1; cbnz x19, again; "
        "mov x0, #0; mov x8, #93; svc #0",
        "add x5, x0, x1; mov x0, x5; ret",
    ),
}
_REGISTERS: Final = {
    "x86_64": ("%di", "%si", "%dx", "%cx", "%r8", "%r9", "%bp", "%bx"),
    "aarch64": ("%x0", "%x1", "%x2", "%x3", "%x4", "%x6", "%x7", "%x8"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured.

    Attributes:
        technique: "breakpoint", "jump" or "return" (a return probe).
        args: registers recorded.
        string: whether a string of 32 bytes is recorded too.
        filter_pass: percentage of hits that a filter lets pass; None without one.
    """

    technique: str
    args: int
    string: bool = False
    filter_pass: int | None = None


CASES: Final = (
    *(Case("jump", args) for args in (0, 1, 3, 8)),
    Case("jump", 3, string=True),
    *(Case("jump", 3, filter_pass=share) for share in (0, 10, 100)),
    *(Case("breakpoint", args) for args in (0, 1, 3, 8)),
    Case("breakpoint", 3, string=True),
    *(Case("breakpoint", 3, filter_pass=share) for share in (0, 10, 100)),
    Case("return", 0),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a case came to.

    Attributes:
        case: it.
        ns_per_hit: CPU nanoseconds over the unprobed run.
        detour_bytes: of the detour buffer; 0 without one.
    """

    case: Case
    ns_per_hit: float
    detour_bytes: int


def can_measure(arch: Arch) -> bool:
    """Whether there is a guest for an architecture."""
    return arch.name in _PROGRAMS


def program(arch: Arch, calls: int) -> bytes:
    """An ELF file that calls its function `work` so often."""
    start = _BASE + _CODE
    main, work = _PROGRAMS[arch.name]
    place = start + 0x100
    text = start + 0x200
    values = {
        "count": calls,
        "low": calls & 0xFFFF,
        "high": calls >> 16,
        "text": text,
        "text_low": text & 0xFFFF,
        "text_high": text >> 16,
        "work": place,
    }
    code = assemble(arch, start, main.format(**values)).ljust(0x100, b"\0")
    function = assemble(arch, place, work)
    body = code + function.ljust(0x100, b"\0") + _TEXT
    return _elf(arch, body, [("_start", start, 0x100), ("work", place, len(function))])


def _elf(arch: Arch, body: bytes, functions: list[tuple[str, int, int]]) -> bytes:
    """A static program of one segment, with a symbol table."""
    names, symbols = b"\0", bytes(24)
    for name, address, size in functions:
        symbols += struct.pack("<IBBHQQ", len(names), 0x12, 0, 1, address, size)
        names += name.encode() + b"\0"
    titles = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    end = _CODE + len(body)
    at = (end, end + len(symbols), end + len(symbols) + len(names))
    table = at[2] + len(titles)
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack("<HHIQQQI", 2, arch.elf_machine, 1, _BASE + _CODE, 64, table, 0)
    head += struct.pack("<6H", 64, 56, 1, 64, 5, 4)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, end, end, 0x1000)
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, 1, 6, _BASE + _CODE, _CODE, len(body), 0, 0, 16, 0),
        (7, 2, 0, 0, at[0], len(symbols), 3, 1, 8, 24),
        (15, 3, 0, 0, at[1], len(names), 0, 0, 1, 0),
        (23, 3, 0, 0, at[2], len(titles), 0, 0, 1, 0),
    ]
    rows = b"".join(struct.pack("<IIQQQQIIQQ", *section) for section in sections)
    return head.ljust(_CODE, b"\0") + body + symbols + names + titles + rows


def measure(arch: Arch, calls: int, runs: int) -> Iterator[Cost]:
    """Measure all cases, one after the other.

    Args:
        arch: of the guest.
        calls: hits of a jump; the other techniques get a tenth of them.
        runs: of each, of which the quickest counts.

    Raises:
        EngineError: a probe was not hit at each call, or is not what it should be.
    """
    plain: dict[int, float] = {}
    for case in CASES:
        count = calls if case.technique == "jump" else max(calls // 10, 1)
        if count not in plain:
            plain[count] = min(_run(arch, count, None)[0] for _ in range(runs))
        quickest, size = math.inf, 0
        for _ in range(runs):
            spent, size = _run(arch, count, case)
            quickest = min(quickest, spent)
        yield Cost(case, (quickest - plain[count]) / count * 1e9, size)


def _definition(arch: Arch, case: Case) -> str:
    registers = _REGISTERS[arch.name]
    kind = "r" if case.technique == "return" else "p"
    words = [f"{kind}:{_EVENT} work"]
    words += [f"a{number}={name}" for number, name in enumerate(registers[: case.args])]
    if case.string:
        words.append(f"s=+0({registers[2]}):string")
    return " ".join(words)


def _run(arch: Arch, calls: int, case: Case | None) -> tuple[float, int]:
    """CPU seconds of a run, and the size of the detour."""
    technique = "jump" if case is not None and case.technique == "jump" else "breakpoint"
    sink = SinkStream(lambda data: None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench"
        path.write_bytes(program(arch, calls))
        path.chmod(0o755)
        config = GuestConfig(str(path), isolated=True, technique=technique, count_blocks=True)
        session = Session(config, (FeedStream(ended=True), sink, sink))
    try:
        if case is not None:
            tracing = Tracing(session, TraceOptions(output="/dev/null"))
            tracing.define(_definition(arch, case))
            if case.filter_pass is not None:
                limit = calls * case.filter_pass // 100
                tracing.set_filter("kprobes", _EVENT, f"a0 <= {limit}")
            tracing.start()
            session.at_end.append(tracing.finish)
        started = time.process_time()
        session.run()
        spent = time.process_time() - started
        return spent, _checked(session, case, technique, calls) if case is not None else 0
    finally:
        session.close()
        gc.collect()


def _checked(session: Session, case: Case, technique: str, calls: int) -> int:
    assert session.probing is not None, "a trace has been set up"
    (point,) = session.probing.manager.placed()
    hits = sum(probe.hits for probe in point.probes)
    if hits != calls:
        raise EngineError(f"{hits} hits of {calls}")
    if point.technique != technique and case.technique != "return":
        why = point.why.detail if point.why else "?"
        raise EngineError(f"the probe is a {point.technique}, no {technique}: {why}")
    return len(point.detour.code) if point.detour is not None else 0
