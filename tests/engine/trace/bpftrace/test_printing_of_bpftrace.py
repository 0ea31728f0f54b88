"""What is printed, against the code of bpftrace that prints it.

Only if KPROBE_TUI_BPFTRACE_SOURCE names a checkout of it (0.26), where there is g++.
"""

import os
import random
import time
from pathlib import Path
from typing import Any, Final

import pytest
from bpftracesource import (
    BpftraceSource,
    built,
    map_words,
    type_words,
    value_words,
    words,
)

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.formats import PrintFormat
from engine.trace.bpftrace.json_lines import JsonOutput
from engine.trace.bpftrace.maps import SCALAR, ScriptMap
from engine.trace.bpftrace.printing import TextOutput
from engine.trace.bpftrace.sorting import rows_of
from engine.trace.bpftrace.type_rules import type_name
from engine.trace.bpftrace.value_names import ValueNames

SOURCE: Final = "KPROBE_TUI_BPFTRACE_SOURCE"
CASES: Final = int(os.environ.get("KPROBE_TUI_BPFTRACE_CASES", "2000"))
NAMES: Final = ValueNames(localtime=time.gmtime)
ENUM: Final = kinds.Enumeration("e", kinds.Integer(32, False), ((0, "NONE"), (7, "SEVEN")))
SERIES: Final = tuple(map(kinds.AGGREGATES.index, ("hist", "sum", "min", "max", "avg")))
NUMBER_LETTERS: Final = ("d", "i", "u", "o", "x", "X", "c", "p", "gr")

pytestmark = pytest.mark.skipif(not os.environ.get(SOURCE), reason=f"{SOURCE} is not set")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> BpftraceSource:
    return built(Path(os.environ[SOURCE]), tmp_path_factory.mktemp("bpftrace"))


class Values:
    """Makes types and values."""

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        # Without control characters: behind one in JSON, bpftrace prints counts in hexadecimal.
        self.letters = b'abcXYZ 0()%"\\\n\t'

    def simple_type(self) -> kinds.Type:
        choice = self.choice
        number = kinds.Integer(choice.choice((8, 16, 32, 64)), choice.random() < 0.7)
        others = (
            kinds.BOOL,
            kinds.TextType(choice.choice((4, 8, 64))),
            kinds.BufferType(16),
            ENUM,
        )
        return choice.choice((number, number, *others, kinds.Pointer(kinds.INT64)))

    def type(self, depth: int = 0) -> kinds.Type:
        choice = self.choice
        if depth > 2 or choice.random() < 0.6:
            return self.simple_type()
        parts = [self.type(depth + 1) for _ in range(choice.randrange(1, 4))]
        if choice.random() < 0.3:
            return kinds.Array(parts[0], choice.randrange(4))
        if choice.random() < 0.5:
            return kinds.Tuple(tuple(parts))
        return kinds.Record(tuple((f"f{at}", part) for at, part in enumerate(parts)))

    def value(self, kind: kinds.Type) -> Any:
        choice = self.choice
        match kind:
            case kinds.Integer():
                least = -(1 << kind.bits - 1) if kind.signed else 0
                most = (1 << kind.bits - kind.signed) - 1
                some = choice.choice(
                    (0, 1, -1, 5, 1000, least, most, choice.getrandbits(kind.bits))
                )
                return min(max(some, least), most)
            case kinds.Boolean():
                return choice.random() < 0.5
            case kinds.TextType():
                size = choice.choice((0, 3, kind.size - 1, kind.size))
                return bytes(choice.choice(self.letters) for _ in range(size))
            case kinds.BufferType():
                return choice.randbytes(choice.randrange(8))
            case kinds.Pointer():
                return choice.choice((0, 0x7FFF12345678, (1 << 64) - 1))
            case kinds.Enumeration():
                return choice.choice((0, 7, 8))
            case kinds.Tuple():
                return tuple(self.value(one) for one in kind.elements)
            case kinds.Record():
                return tuple(self.value(one) for _, one in kind.fields)
            case kinds.Array():
                return tuple(self.value(kind.element) for _ in range(kind.count))
            case _:
                raise AssertionError(kind)

    def map(self) -> ScriptMap:
        choice = self.choice
        kind = choice.choice((*kinds.AGGREGATES, "", ""))
        signed = choice.random() < 0.7
        parameters: tuple[int, ...] = ()
        if kind == "hist":
            parameters = (choice.randrange(6),)
        elif kind == "lhist":
            step = choice.choice((1, 3, 1024, 10))
            # Negative bounds with suffixes are huge numbers in bpftrace's JSON.
            least = choice.choice((0, 1024) if step == 1024 else (-4, 0, 1024))
            parameters = (least, least + step * choice.randrange(1, 20), step)
        elif kind == "tseries":
            interval = choice.choice((10**9, 10**7, 5 * 10**10, 3000, 7))
            parameters = (interval, choice.choice((1, 5, 12)), choice.choice(SERIES))
        value = kinds.Aggregate(kind, signed, parameters) if kind else self.type()  # type: ignore[arg-type]
        key = None if choice.random() < 0.3 else self.type()
        made = ScriptMap(choice.choice(("", "x", "a_b")), key, value)
        now = choice.choice((1_700_000_000, 86400 * 9)) * 10**9
        keys = [SCALAR] if key is None else [self.value(key) for _ in range(choice.randrange(6))]
        for one in keys:
            for _ in range(choice.choice((1, 1, 20))):
                number = choice.choice((choice.randrange(-9, 4000), choice.getrandbits(40)))
                number = number if signed or kind in ("hist", "lhist") else abs(number)
                now += choice.choice((0, 1, 3)) * (parameters[0] if kind == "tseries" else 0)
                self.update(made, one, number, now)
        if choice.random() < 0.1:
            made.zero()
        return made

    def update(self, made: ScriptMap, key: Any, number: int, now: int) -> None:
        match made.aggregate:
            case None:
                made.add(key, self.value(made.value))
            case kinds.Aggregate(kind="count"):
                made.count(key)
            case kinds.Aggregate(kind="sum"):
                made.sum(key, number)
            case kinds.Aggregate(kind="min"):
                made.minimum(key, number)
            case kinds.Aggregate(kind="max"):
                made.maximum(key, number)
            case kinds.Aggregate(kind="hist"):
                made.histogram(key, number)
            case kinds.Aggregate(kind="lhist"):
                made.linear(key, number)
            case kinds.Aggregate(kind="tseries"):
                made.series(key, number, now)
            case _:
                made.average(key, number)


def compared(requests: list[str], ours: list[bytes], source: BpftraceSource) -> None:
    theirs = source.answers(requests)
    assert len(theirs) == len(ours)
    for request, one, other in zip(requests, ours, theirs, strict=True):
        assert one == other, request


def test_values_are_shown_as_there(source: BpftraceSource) -> None:
    made = Values(1)
    made.letters += b"\x01\x1f"
    requests: list[str] = []
    ours: list[bytes] = []
    for _ in range(CASES):
        kind = made.type()
        value = made.value(kind)
        shown = value_words(kind, value)
        requests += [f"text {words('')} P {shown}", f"json {words('')} P {shown}"]
        TextOutput(ours.append, ours.append, NAMES).value(kind, value)
        JsonOutput(ours.append, NAMES).value(kind, value)
    compared(requests, ours, source)


def test_maps_are_shown_as_there(source: BpftraceSource) -> None:
    made = Values(2)
    requests: list[str] = []
    ours: list[bytes] = []
    for _ in range(CASES):
        one = made.map()
        if not one.entries and one.key is None:
            continue
        top, div = made.choice.choice((0, 0, 2)), 1
        if one.aggregate is not None and one.aggregate.kind == "hist":
            # Where a division leaves no count at all, bpftrace divides by zero, and aborts.
            rows = [cell for _, cell in rows_of(one)]
            div = min([made.choice.choice((1, 3)), *(max(cell.values()) for cell in rows)]) or 1
        shown = map_words(one, top, div)
        for name in ("text", "json"):
            parts: list[bytes] = []
            output = (
                TextOutput(parts.append, parts.append, NAMES)
                if name == "text"
                else JsonOutput(parts.append, NAMES)
            )
            output.map(one, top, div)
            requests.append(f"{name} {words(one.title)} {shown}")
            ours.append(b"".join(parts))
    compared(requests, ours, source)


def test_formats_are_filled_in_as_there(source: BpftraceSource) -> None:
    made = Values(3)
    choice = made.choice
    requests: list[str] = []
    ours: list[bytes] = []
    for _ in range(2 * CASES):
        types, form = [], choice.choice(("", "a%%b ", "100% of %", "%5%", "%y"))
        for _ in range(choice.randrange(4)):
            kind = made.type()
            letter = "s"
            if isinstance(kind, kinds.BufferType):
                letter = choice.choice(("r", "rx", "rh", "s"))
            elif isinstance(kind, kinds.Integer | kinds.Boolean | kinds.Pointer):
                letter = choice.choice((*NUMBER_LETTERS, "d", "s"))
            if letter == "gr" and isinstance(kind, kinds.Boolean):
                letter = "d"
            flags = "".join(flag for flag in "-+ #0" if choice.random() < 0.2)
            width = choice.choice(("", "", "1", "5", "12", "30"))
            precision = choice.choice(("", "", ".3"))
            length = choice.choice(("", "", "h", "hh", "l", "ll", "j", "z", "t", "lll"))
            form += f"%{flags}{width}{precision}{length}{letter}{choice.choice(('', ' ', '|'))}"
            types.append(kind)
        values = [made.value(kind) for kind in types]
        format_ = PrintFormat.of(form.encode())
        if format_.error(types) is not None:
            continue
        shown = [value_words(kind, value) for kind, value in zip(types, values, strict=True)]
        requests.append(" ".join(("format", words(form), str(len(shown)), *shown)))
        ours.append(format_.renderer(types, NAMES)(values))
    assert len(requests) > CASES
    compared(requests, ours, source)


def test_formats_are_refused_as_there(source: BpftraceSource) -> None:
    made = Values(4)
    choice = made.choice
    requests: list[str] = []
    ours: list[bytes] = []
    letters = (*NUMBER_LETTERS, "r", "rx", "rh", "s", "f", "e", "g", "n", "a", "G", "y")
    for _ in range(CASES):
        types = [made.type() for _ in range(choice.randrange(4))]
        many = choice.choice((len(types), len(types), choice.randrange(4)))
        form = " ".join(f"%{choice.choice(letters)}" for _ in range(many))
        if choice.random() < 0.1 and types:
            types[0] = kinds.VOID
        shown = [type_words(kind, type_name(kind)) for kind in types]
        requests.append(" ".join(("check", words(form), str(len(shown)), *shown)))
        ours.append((PrintFormat.of(form.encode()).error(types) or "").encode())
    assert sum(map(bool, ours)) > CASES // 4
    compared(requests, ours, source)
