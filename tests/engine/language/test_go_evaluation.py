"""A program of Go in our words, against what delve 1.20 said of it (support/gokit.py)."""

import re
import subprocess
from typing import Final

import pytest
from compiled import tool
from gdbwords import said
from gokit import EXPRESSIONS, FOLDER, answers, go_program, line_in, masked

from engine.session.protocol.config import GuestConfig

pytestmark = pytest.mark.slow  # a program is linked with Go's runtime, and run

OTHERS: Final = {
    # delve computes with untyped numbers; Go's own results of these are ours.
    "^u8": ("55", "uint8"),
    "7/2": ("3", "int"),
    "bytes[1:3]": ("[]uint8 len: 2, cap: 4, [121,116]", "[]uint8"),
    "ints[:2]": ("[]int len: 2, cap: 3, [1,2]", "[]int"),
    "fixed[1:3]": ("[]int len: 2, cap: 3, [2,3]", "[]int"),
    # A constant has its name, as a variable with its value has.
    "blue": ("blue (2)", "main.color"),
    # delve calls what it takes from a string `byte`, and from everything else `uint8`.
    "short[0]": ("104", "uint8"),
    # delve shows a channel that is nil as an empty one in one place, and as nil in another.
    "none channels": ("chan int nil", "chan int"),
    "main.maps": ("main.maps", "func() int"),  # delve leaves the results out
    "p.nosuch": ("! main.pair has no member nosuch", ""),
    "ppp.A": ("! **main.pair has no member A", ""),
}
"""What we say otherwise, by expression, with its function's name where it stands in several."""
RETURNS: Final = {
    "one": "Value returned is $N = 42",
    "two": 'Values returned:\n    n: $N = 2\n    t: $N = "x!"',
    "flo": "Values returned:\n    ~r0: $N = 1.5\n    ~r1: $N = 2.5\n    ~r2: $N = (1 + -2i)",
    "str": "Value returned is $N = main.pt {X: 1, Y: 2}",
    "bigs": (
        "Values returned:\n    ~r0: $N = main.big {\n\tA: [4]int [2,2,3,4],}\n"
        '    ~r1: $N = error(*errors.errorString) *{s: "e1"}'
    ),
    "sm": (
        'Values returned:\n    ~r0: $N = main.small {A: -3, B: true, C: 0.5, S: "s"}\n'
        '    ~r1: $N = []int len: 2, cap: 2, [1,2]\n    ~r2: $N = map[string]int [\n\t"k": 1, \n]'
    ),
    "many": "Values returned:\n"
    + "\n".join(f"    {name}: $N = {number}" for number, name in enumerate("abcdefghij", 1)),
    "none": "",
    "iface": "Value returned is $N = interface {}(int) 5",
    "arr": (
        "Values returned:\n    ~r0: $N = [1]int [7]\n    ~r1: $N = [2]int [8,9]\n"
        "    ~r2: $N = struct {} {}"
    ),
    "ptr": (
        "Values returned:\n    ~r0: $N = *main.pt {X: 3, Y: 4}\n    ~r1: $N = main.one\n"
        "    ~r2: $N = chan int nil\n    ~r3: $N = -1\n    ~r4: $N = 65535\n    ~r5: $N = true"
    ),
}
"""What `finish` prints of the results that the source of each function returns."""
DAMAGED: Final = "�"


def config(*flags: str) -> GuestConfig:
    """The program, built so."""
    return GuestConfig(str(go_program(*flags)))


def asked(*lines: str) -> list[str]:
    """What follows each `echo @` in what the words print."""
    return [text.strip() for text in said(config(), *lines).split("@\n")[1:]]


def in_front(function: str) -> list[str]:
    """Words that run to the last call of `use` in a function."""
    return [f"break main.go:{line_in(function)}", "run"]


@pytest.fixture(scope="module")
def everything() -> dict[tuple[str, str], tuple[str, str]]:
    """`print` and `whatis` of all expressions, of one run."""
    lines = [f"break main.go:{line_in(name)}" for name in EXPRESSIONS]
    keys: list[tuple[str, str]] = []
    for number, (name, text) in enumerate(EXPRESSIONS.items()):
        lines.append("continue" if number else "run")
        for expression in text.split(";"):
            keys.append((name, expression))
            lines += ["echo @\\n", f"print {expression}", "echo @\\n", f"whatis {expression}"]
        keys.append((name, "locals"))
        lines += ["echo @\\n", "info locals", "echo @\\n"]
    texts = asked(*lines)
    values = [re.sub(r"^\$\d+ = ", "", masked(text)) for text in texts[::2]]
    types = [text.removeprefix("type = ").partition("\n")[0] for text in texts[1::2]]
    return dict(zip(keys, zip(values, types, strict=False), strict=False))


@pytest.mark.parametrize("function", EXPRESSIONS)
def test_values_and_types_are_those_of_delve(
    everything: dict[tuple[str, str], tuple[str, str]], function: str
) -> None:
    wrong: list[str] = []
    for expression, value, *kind in answers()[function]:
        if expression == "locals":
            continue
        ours = everything[function, expression]
        told = kind[0].removeprefix("! ") if kind else ""
        wanted = value, (ours[1] if not told or value.startswith("!") else told)
        if value.startswith("!"):
            ours = ours[0].partition("\n")[0], wanted[1]
        others = OTHERS.get(f"{expression} {function}") or OTHERS.get(expression)
        if others is not None:
            wanted = others[0], others[1] or wanted[1]
        if ours != wanted:
            wrong.append(f"{expression}: {ours} and not {wanted}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("function", EXPRESSIONS)
def test_locals_are_those_of_delve(
    everything: dict[tuple[str, str], tuple[str, str]], function: str
) -> None:
    theirs = next(row[1] for row in answers()[function] if row[0] == "locals")
    # What is no UTF-8 is shown by delve as other characters, and its length is wrong then.
    known = {line for line in theirs.splitlines() if DAMAGED not in line}
    assert known <= set(everything[function, "locals"][0].splitlines())


def test_arguments_are_those_of_delve() -> None:
    ours = asked("break main.results", "run", "echo @\\n", "info args", "echo @\\n", "bt")
    theirs = answers()["results"][0][1].splitlines()[:7]
    assert ours[0].splitlines()[:7] == theirs
    arguments = ", ".join(line.replace(" = ", "=", 1) for line in theirs)
    first, second = (line.rpartition(" at ")[0] for line in ours[1].splitlines())
    assert first == f"#0  main.results ({arguments})"
    assert second.endswith(" in main.main ()")


@pytest.mark.parametrize(
    ("flags", "names"),
    [((), list(RETURNS)), (("-ldflags=",), ["bigs", "sm", "many"])],
    ids=["plain", "optimised"],
)
def test_finish_tells_all_results(flags: tuple[str, ...], names: list[str]) -> None:
    lines = [f"break main.{name}" for name in names]
    lines += [
        "set print thread-events off",
        "run",
        *["echo @\\n", "finish", "continue"] * len(names),
    ]
    parts = said(config(*flags), *lines).split("@\n")[1:]
    for name, text in zip(names, parts, strict=True):
        wanted = RETURNS[name]
        start = text.find("Value")
        shown = text[start : text.find("\n\nThread")] if start >= 0 else ""
        shown = re.sub(r"\n\[Inferior.*|\ndone.*", "", re.sub(r"\$\d+", "$N", shown)).strip()
        assert shown.split("\n1 2 x!")[0] == wanted, name


def test_closures_show_what_they_have_captured() -> None:
    line = next(
        number
        for number, text in enumerate((FOLDER / "main.go").read_text().splitlines(), 1)
        if text == "\t\tuse(name)"
    )
    shown = asked(f"break main.go:{line}", "run", "echo @\\n", "info locals", "p total + by")
    assert shown[0].splitlines() == ['name = "closure"', "total = 15", "$1 = 20"]


def test_a_number_is_assigned_and_a_function_is_not_called() -> None:
    shown = asked(
        *in_front("structs"),
        "echo @\\n",
        "p p.A = 77",
        "p *pp",
        "p p.sum(1)",
        "ptype pp",
        "p/x p",
        "p (*main.pair)(0).A",
    )[0].splitlines()
    assert shown == [
        "$1 = 77",
        '$2 = *main.pair {A: 77, S: "three"}'.replace("*main", "main"),
        "! Functions of Go are not called: the runtime could move stacks or collect garbage "
        "meanwhile.",
        "type = *main.pair struct {",
        "    A int",
        "    S string",
        "}",
        '$3 = main.pair {A: 0x4d, S: "three"}',
        "! nil pointer dereference",
    ]


def test_functions_are_broken_behind_the_check_of_the_stack() -> None:
    names = [
        *("main.main", "main.use", "main.(*pair).grow", "main.pair.sum", "main.closures.func1"),
        *("main.(*outer).describe", "fmt.Sprint", "values/geo.Rect.Area", "main.results"),
        *("values/geo.(*Circle).Area", "runtime.gopark", "main.flo"),
    ]
    program = go_program()
    words = [word for name in names for word in ("-ex", f"break '{name}'")]
    command = [tool("gdb"), "-nx", "-batch", "-iex", "set auto-load no", *words, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    places = re.findall(r"^Breakpoint \d+ at (0x[0-9a-f]+)", done.stdout, re.MULTILINE)
    ours = said(config(), *(f"break {name}" for name in names))
    assert re.findall(r"^Breakpoint \d+ at (0x[0-9a-f]+)", ours, re.MULTILINE) == places
    assert len(places) == len(names)
