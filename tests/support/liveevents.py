"""Made-up events in the running kernel: definitions, filters and triggers on a program of our own.

The program is assembly, so that every register and all memory are the same in each run; its
stack is its own. The trace goes to an instance of its own, and nothing is left behind.
"""

import errno
import os
import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TRACING: Final = Path("/sys/kernel/tracing")
PROGRAM: Final = """
.globl _start, f1, f2, f3, f4, stop
.text
_start:
    leaq stack_top(%rip), %rsp
    movl $0x1357, %eax
    movabsq $0x1122334455667788, %r12
    movabsq $-3, %r13
    leaq record(%rip), %r14
    movl $7, %r15d
    xorl %ebp, %ebp
    xorl %ebx, %ebx
1:  movq numbers(,%rbx,8), %rdi
    movq strings(,%rbx,8), %rsi
    leaq record(%rip), %rdx
    movq $0x41, %rcx
    movq %rbx, %r8
    movabsq $0xfedcba9876543210, %r9
    movl $0x8000, %r10d
    movl $0x33, %r11d
    call f1
    call f2
    movl $3, %edi
    call f3
    incq %rbx
    cmpq $4, %rbx
    jne 1b
    movl $60, %eax
    xorl %edi, %edi
    syscall
f1: leaq 5(%rdi,%rdi), %rax
    movq record+8(%rip), %r10
    nop
    cmpq $100, %rdi
    jl 2f
    negq %rax
2:  ret
f2: pushq %r12
    pushq %rsi
    movq %rdi, %rbp
    call f1
    popq %rsi
    popq %r12
    jmp f4
f3: decl %edi
    je 3f
    subq $24, %rsp
    call f3
    addq $24, %rsp
3:  leal 1(%rdi), %eax
    ret
f4: movzbl (%rsi), %eax
    rep ret
stop:
.data
.balign 16
record: .quad 0x0102030405060708, -2, text, numbers, record, 0
numbers: .quad 1, -7, 100, 0x7fffffff80000001
strings: .quad text, latin, empty, long
.quad 0x10, -8
text: .asciz "hello from .data"
latin: .ascii "caf\\xe9\\t\\"q\\"\\\\ \\x1b[1m"
.byte 0
empty: .byte 0
long: .fill 300, 1, 0x61
.byte 0
.bss
.balign 16
.skip 8192
stack_top: .skip 256
"""
_SPOTS: Final = ("f1", "f1", "f2", "f2", "f3", "f4")
# fmt: off
_BASES: Final = [
    "%di", "%di", "%si", "%dx", "%cx", "%ax", "%bx", "%r8", "%r9", "%r10", "%r11", "%r12", "%r13",
    "%r14", "%r15", "%bp", "%sp", "%ip", "%flags", "%cs", "%ss", "%orig_ax", "$stack", "$stack0",
    "$stack1", "$stack3", "$comm", "\\1", "\\-9", "\\200",
]
_POINTERS: Final = [
    "+0(%si)", "+0(%dx)", "+8(%dx)", "+0(+16(%dx))", "+0(+24(%dx))", "-0(%r14)", "+32(%r14)",
    "+0(+32(%r14))", "+0($stack)", "+8($stack)", "-8($stack)", "-16(%sp)", "+0(+0(+32(%dx)))",
    "@{record:#x}", "@{numbers:#x}", "@+{offset:#x}", "+4(%si)", "+u0(%si)", "+0(%r9)", "+16(%di)",
]
_NUMBERS: Final = [
    "", "", ":u8", ":u16", ":u32", ":u64", ":s8", ":s16", ":s32", ":s64", ":x8", ":x16", ":x32",
    ":x64", ":char", ":b1@0/8", ":b4@4/8", ":b12@3/16", ":b31@1/32", ":b60@2/64", ":b5@27/32",
]
_ARRAYS: Final = [
    ":u8[4]", ":s32[2]", ":x64[3]", ":char[6]", ":x16[5]", ":b3@2/8[4]", ":string[2]",
]
_TEXTS: Final = [":string", ":ustring"]
_VALUES: Final = ["0", "1", "-7", "100", "0x64", "7", "255", "-1", "0x41", "200", "3", "49"]
_PATTERNS: Final = ['"hello*"', '"*data"', '"*af*"', '"a*a"', '""', '"*"', '"events"', '"?ello*"']
# fmt: on


@dataclass
class Case:
    """What is asked: lines in order, filters, triggers.

    Attributes:
        lines: definitions.
        filters: event and text.
        triggers: event and text.
    """

    lines: list[str]
    filters: list[tuple[str, str]] = field(default_factory=list)
    triggers: list[tuple[str, str]] = field(default_factory=list)

    def smaller(self) -> Iterator["Case"]:
        """The same without one of its parts."""
        lines, filters, triggers = self.lines, self.filters, self.triggers
        for at in range(len(triggers)):
            yield Case(lines, filters, triggers[:at] + triggers[at + 1 :])
        for at in range(len(filters)):
            yield Case(lines, filters[:at] + filters[at + 1 :], triggers)
        for at in range(len(lines) if len(lines) > 1 else 0):
            yield Case(lines[:at] + lines[at + 1 :], filters, triggers)
        for at, line in enumerate(lines):
            words = line.split()
            for part in range(2, len(words)):
                less = " ".join(words[:part] + words[part + 1 :])
                yield Case([*lines[:at], less, *lines[at + 1 :]], filters, triggers)


@dataclass
class Recorded:
    """What came of a case.

    Attributes:
        taken: of each line, filter and trigger, in order, whether it was accepted.
        rows: of the trace, without task, CPU and time.
        shown: filter and trigger files of the events.
        hits: of each event's probes.
    """

    taken: list[bool] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    hits: list[tuple[str, int]] = field(default_factory=list)


class Cases:
    """Makes cases up; the same ones for a seed."""

    def __init__(self, program: Path, group: str, places: dict[str, list[int]], seed: int) -> None:
        """Use offsets of instructions by function, and addresses of data by name."""
        self._program = program
        self._group = group
        self._places = places
        self._random = random.Random(seed)

    def case(self) -> Case:
        """One more."""
        pick, chance = self._random.choice, self._random.random
        names = ["a", "b", "c", "d"][: pick([1, 1, 2, 2, 3, 4])]
        one = self._place()
        lines = []
        for name in names:
            place = one if chance() < 0.5 else self._place()
            head = "r" if chance() < 0.45 else "p"
            if head == "r":  # where the word on the stack is no register that is popped later
                function = pick(["f1", "f3", "f4", *_SPOTS])
                inside = function != "f2" and chance() < 0.2
                place = pick(self._places[function]) if inside else self._places[function][0]
            args = [f"v{number}={self._arg()}" for number in range(pick([0, 1, 2, 3, 5]))]
            words = [f"{head}:{self._group}/{name}", f"{self._program}:{place:#x}", *args]
            lines.append(" ".join(words))
            if chance() < 0.12:  # the same event at another place
                other = pick(["f1", "f3", "f4"])
                place = self._places[other][0] if head == "r" else self._place()
                words[1] = f"{self._program}:{place:#x}"
                lines.append(" ".join(words))
        case = Case(lines)
        for name in names:
            if chance() < 0.3:
                case.filters.append((name, self._filter()))
            if chance() < 0.3:
                case.triggers.append((name, self._trigger(names)))
            if chance() < 0.08:
                case.triggers.append((name, self._trigger(names)))
        return case

    def _place(self) -> int:
        return self._random.choice(self._places[self._random.choice(_SPOTS)])

    def _arg(self) -> str:
        pick, chance = self._random.choice, self._random.random
        if chance() < 0.5:
            base = pick(_BASES)
            return base if base == "$comm" else base + pick(_NUMBERS)
        pointer = pick(_POINTERS).format(**{k: v[0] for k, v in self._places.items()})
        kind = chance()
        return pointer + pick(_NUMBERS if kind < 0.5 else _ARRAYS if kind < 0.75 else _TEXTS)

    def _filter(self) -> str:
        pick = self._random.choice
        terms = []
        for _ in range(pick([1, 1, 2, 3])):
            name = pick(["v0", "v0", "v1", "v2", "common_pid", "COMM", "__probe_ip", "nosuch"])
            sign = pick(["==", "!=", "<", ">", "<=", ">=", "&", "~"])
            if name == "common_pid":  # another one each time
                sign = pick(["<", ">", "!=", "=="])
            value = pick(_PATTERNS) if sign == "~" or name == "COMM" else pick(_VALUES)
            terms.append(pick(["", "", "!"]) + f"{name} {sign} {value}")
        return pick([" && ", " || "]).join(terms) + pick(["", "", "", "", ")"])

    def _trigger(self, names: list[str]) -> str:
        pick, chance = self._random.choice, self._random.random
        kind = pick(["traceoff", "traceoff", "traceon", "enable_event", "disable_event"])
        text = kind
        if kind.endswith("event"):
            text += f":{self._group}:{pick(names)}"
        text += pick(["", "", ":1", ":2", ":3", ":0", ":x"])
        return text + (f" if {self._filter()}" if chance() < 0.5 else "")


class LiveEvents:
    """The running kernel, with a trace instance of our own."""

    def __init__(self, program: Path, group: str) -> None:
        self._program = program
        self._group = group
        self._instance = TRACING / "instances" / group
        self._events = self._instance / "events" / group

    def record(self, case: Case) -> Recorded:
        """Carry a case out."""
        found = Recorded()
        try:
            for line in case.lines:
                found.taken.append(_write(TRACING / "uprobe_events", line + "\n", append=True))
            for name in self._names():  # in this order they are called
                _write(self._events / name / "enable", "1")
            for name, text in case.filters:
                found.taken.append(_write(self._events / name / "filter", text))
            waiting: set[str] = set()
            for name, text in case.triggers:
                taken = _write(self._events / name / "trigger", text)
                found.taken.append(taken)
                target = re.split("[: ]", text)[2:3]
                if taken and text.startswith("enable_event") and target != [name]:
                    waiting.update(target)
            (self._instance / "trace").write_text("")
            (self._instance / "tracing_on").write_text("1")
            for name in waiting:
                _write(self._events / name / "enable", "0")
            subprocess.run(["setarch", "-R", self._program], env={}, check=True)
            trace = (self._instance / "trace").read_bytes()
            found.rows = rows(trace, self._program.name)
            for name in self._names():
                for file in ("filter", "trigger"):
                    shown = (self._events / name / file).read_text(errors="surrogateescape")
                    found.shown[f"{name}/{file}"] = shown.rstrip("\n")
            found.hits = self._hits()
        finally:
            self.clear()
        return found

    def _names(self) -> list[str]:
        """In the order of definition."""
        text = (TRACING / "uprobe_events").read_text(errors="surrogateescape")
        return list(dict.fromkeys(re.findall(rf"^[pr]:{self._group}/(\w+) ", text, re.MULTILINE)))

    def _hits(self) -> list[tuple[str, int]]:
        text = (TRACING / "uprobe_profile").read_text(errors="surrogateescape")
        lines = (line.split() for line in text.splitlines())
        return sorted((w[-2], int(w[-1])) for w in lines if w and w[0] == str(self._program))

    def clear(self) -> None:
        """Delete what is left of a case."""
        for name in self._names():
            for line in (self._events / name / "trigger").read_text().splitlines():
                if not line.startswith("#"):
                    _write(self._events / name / "trigger", "!" + _written(line))
        for name in self._names():
            _write(self._events / name / "enable", "0")
        for name in self._names():
            _write(TRACING / "uprobe_events", f"-:{self._group}/{name}\n", append=True)


def _written(listed: str) -> str:
    """A trigger as it is written, from how it is listed."""
    return re.sub(r":(?:unlimited|count=\d+)", "", listed)


def rows(trace: bytes, comm: str) -> list[bytes]:
    """The events of a trace's text; strings in them may have line ends."""
    head = rb"(?:^|\n) *" + re.escape(comm.encode()) + rb"-\d+ +\[\d+\] \S{5} +[\d.]+: "
    return [row.rstrip(b"\n") for row in re.split(head, trace)[1:]]


@contextmanager
def live_events(program: Path, group: str) -> Iterator[LiveEvents]:
    """The running kernel; nothing is left in it afterwards.

    Raises:
        OSError: there is none to ask.
    """
    if not (TRACING / "uprobe_events").exists():
        raise OSError(f"no {TRACING}/uprobe_events")
    instance = TRACING / "instances" / group
    instance.mkdir()
    kernel = LiveEvents(program, group)
    try:
        yield kernel
    finally:
        kernel.clear()
        instance.rmdir()


def _write(path: Path, text: str, *, append: bool = False) -> bool:
    try:
        file = os.open(path, os.O_WRONLY | (os.O_APPEND if append else 0))
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return False  # the event was not taken
    try:
        os.write(file, text.encode(errors="surrogateescape"))
    except OSError:
        return False
    finally:
        os.close(file)
    return True
