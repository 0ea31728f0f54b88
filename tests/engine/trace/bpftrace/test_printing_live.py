"""Maps, formats and arithmetic, against Debian's bpftrace (0.17) on the running kernel.

Only if KPROBE_TUI_LIVE_KERNEL is set, and as root. Made of what has not changed since: 0.17 puts a
space behind the name of a histogram and a line behind a map, and does not fill as C++ streams do.
"""

import os
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from engine.trace.bpftrace import arithmetic
from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.formats import PrintFormat
from engine.trace.bpftrace.maps import SCALAR, ScriptMap
from engine.trace.bpftrace.printing import TextOutput
from engine.trace.bpftrace.sorting import rows_of
from engine.trace.bpftrace.types import INT64, Aggregate, TextType, Tuple
from engine.trace.bpftrace.value_names import ValueNames

LIVE: Final = "KPROBE_TUI_LIVE_KERNEL"
PROGRAMS: Final = int(os.environ.get("KPROBE_TUI_LIVE_SCRIPTS", "20"))
NAMES: Final = ValueNames()
NAMED: Final = re.compile(r"(?m)^@.*:(?= *$)")

pytestmark = pytest.mark.skipif(
    not os.environ.get(LIVE) or shutil.which("bpftrace") is None,
    reason=f"{LIVE} is not set, or there is no bpftrace",
)


def bpftrace(folder: Path, actions: list[str]) -> list[str]:
    """The lines that bpftrace prints for the actions, without empty ones and its own."""
    script = folder / "script.bt"
    script.write_text(
        "BEGIN {\n" + "\n".join(f"  {one};" for one in [*actions, "exit()"]) + "\n}\n"
    )
    done = subprocess.run(["bpftrace", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines()[1:] if line]


class Script:
    """Actions of a script, and the maps that they make."""

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        self.actions: list[str] = []
        self.maps: list[ScriptMap] = []

    def add_map(self, name: str) -> None:
        choice = self.choice
        kind = choice.choice(("count", "sum", "avg", "min", "max", "hist", "lhist", ""))
        parameters: tuple[int, ...] = ()
        if kind == "lhist":
            least, step = choice.choice(((0, 7), (5, 7), (0, 1024), (1024, 1024), (100, 100)))
            parameters = (least, least + step * choice.randrange(1, 30), step)
        elif kind == "hist":
            parameters = (0,)
        value: kinds.Type = Aggregate(kind, True, parameters) if kind else INT64  # type: ignore[arg-type]
        key = choice.choice((None, INT64, TextType(64), Tuple((TextType(64), INT64))))
        of = ScriptMap(name, key, value)
        actions = []
        keys = [self.key(key) for _ in range(1 if key is None else choice.randrange(1, 4))]
        for _ in range(choice.randrange(1, 9)):
            written, held = choice.choice(keys)
            # Histograms and smallest numbers of 0.17 end at 32 bits.
            large = choice.getrandbits(31 if kind in ("hist", "min") else 40)
            number = choice.choice((choice.randrange(3000), large))
            if kind in ("hist", "lhist", "sum", "avg", "") and choice.random() < 0.3:
                number = -number
            call = f"{kind}({', '.join(map(str, (number, *parameters)))})" if kind else f"{number}"
            call = "count()" if kind == "count" else f"hist({number})" if kind == "hist" else call
            actions.append(f"@{name}{written} = {call}")
            self.update(of, held, number)
        shown = [cell for _, cell in rows_of(of)]
        totals = [sum(one.values()) if isinstance(one, dict) else one for one in shown]
        averages = [one[1] // one[0] if isinstance(one, list) else one for one in totals]
        if len(set(map(str, averages))) == len(averages):  # else bpftrace leaves the order open
            self.actions += actions
            self.maps.append(of)

    def key(self, kind: kinds.Type | None) -> tuple[str, Any]:
        number = self.choice.choice((0, 1, -1, 7, 1 << 40))
        text = self.choice.choice(("a", "b c", "", "long" * 10))
        if kind is None:
            return "", SCALAR
        if kind is INT64:
            return f"[{number}]", number
        if isinstance(kind, TextType):
            return f'["{text}"]', text.encode()
        return f'["{text}", {number}]', (text.encode(), number)

    def update(self, of: ScriptMap, key: Any, number: int) -> None:
        match of.aggregate:
            case None:
                of.add(key, number)
            case Aggregate(kind="count"):
                of.count(key)
            case Aggregate(kind="sum"):
                of.sum(key, number)
            case Aggregate(kind="min"):
                of.minimum(key, number)
            case Aggregate(kind="max"):
                of.maximum(key, number)
            case Aggregate(kind="hist"):
                of.histogram(key, number)
            case Aggregate(kind="lhist"):
                of.linear(key, number)
            case _:
                of.average(key, number)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_maps_are_printed_as_natively(seed: int, tmp_path: Path) -> None:
    script = Script(seed)
    for number in range(12):
        script.add_map(f"m{number:02}")
    parts: list[bytes] = []
    TextOutput(parts.append, parts.append, NAMES).final(script.maps)
    ours = [line for line in b"".join(parts).decode().splitlines() if line]
    theirs = bpftrace(tmp_path, script.actions)
    assert ours == [line.rstrip(" ") if NAMED.match(line) else line for line in theirs]
    assert len(ours) > 5


def test_formats_are_filled_in_as_natively(tmp_path: Path) -> None:
    choice = random.Random(1)
    actions, ours = [], []
    for _ in range(60):
        form = "|"
        types: list[kinds.Type] = []
        written: list[str] = []
        values: list[Any] = []
        for _ in range(choice.randrange(1, 5)):
            if choice.random() < 0.3:
                text = choice.choice(("", "a", "some text"))
                form += f"%{choice.choice(('', '-', '3', '-12', '12'))}s|".replace("%-s", "%s")
                types.append(TextType(64))
                written.append(f'"{text}"')
                values.append(text.encode())
                continue
            number = choice.choice((0, 9, choice.getrandbits(31), choice.getrandbits(62)))
            width = choice.choice(("", "5", "-20", "020", "20"))
            letter = choice.choice(
                ("d", "u", "x", "X", "lld", "llu", "llx", "hhx", "hx", "ld", "o")
            )
            form += f"%{width}{letter}|"
            if letter == "d":
                number &= 0x7FFFFFFF
            types.append(INT64)
            written.append(str(number))
            values.append(number)
        actions.append(f'printf("{form}\\n", {", ".join(written)})')
        ours.append(PrintFormat.of(form.encode()).renderer(types, NAMES)(values).decode())
    assert ours == bpftrace(tmp_path, actions)


def test_arithmetic_is_that_of_the_kernel(tmp_path: Path) -> None:
    choice = random.Random(2)
    actions, ours = [], []
    operators: dict[str, Any] = {
        "+": lambda left, right: arithmetic.wrap(left + right, INT64),
        "-": lambda left, right: arithmetic.wrap(left - right, INT64),
        "*": lambda left, right: arithmetic.wrap(left * right, INT64),
        "/": lambda left, right: arithmetic.divide(left, right, INT64),
        "%": lambda left, right: arithmetic.modulo(left, right, INT64),
        "<<": lambda left, right: arithmetic.wrap(left << (right & 63), INT64),
        ">>": lambda left, right: arithmetic.shift_right(left, right, INT64),
        "&": lambda left, right: left & right,
        "|": lambda left, right: left | right,
        "^": lambda left, right: left ^ right,
    }
    for _ in range(80):
        left, right = (
            choice.choice((1, -1, -7, 3, 70, choice.getrandbits(62), -choice.getrandbits(62)))
            for _ in range(2)
        )
        operator = choice.choice(tuple(operators))
        # Of maps, so that nothing is known before the script runs.
        actions += [f"@a = {left}", f"@b = {right}", f'printf("%lld\\n", @a {operator} @b)']
        ours.append(str(operators[operator](left, right)))
    theirs = bpftrace(tmp_path, [*actions, "clear(@a)", "clear(@b)"])
    assert ours == theirs
