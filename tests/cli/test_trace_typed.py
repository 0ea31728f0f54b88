"""Numbers with a point in definitions, and `trace --args`: from the command line to the text."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from archkit import COMPILED
from graphkit import compiled
from guestrun import Outcome, run
from runfolder import run_folder
from sysroot import locked

SOURCE = Path(__file__).resolve().parents[1] / "data" / "typed" / "floats.c"
LAST = (
    "a=2.1 b=2.5 i=2 x=1.25 y=-7.5 d=-0 w=4 c=1e+300 e=inf g=nan h=5 k=0.3333333333333333 "
    "global=2.25 row={0.1,1.5,-3e+20} z=1.5"
)
WORDS = "a b i x=p.x y=p.y d=m.d w=m.i c e g h k global row z=row[1]"
PIECES = {"x86_64": ("%xmm0", "%xmm1"), "aarch64": ("%v0", "%v1"), "riscv64": ("%fa0", "%fa1")}


@cache
def program(arch: str, level: str = "-O2", debug: str = "-g") -> Path:
    folder = run_folder(f"typed{level}{debug}")
    with locked(folder / "lock"):
        found = folder / f"floats.{arch}"
        return found if found.exists() else compiled(folder, SOURCE, arch, level, debug)


def trace(*words: str, guest: Path) -> Outcome:
    return run("trace", *words, str(guest), cwd=guest.parent)


def lines(text: str, event: str) -> list[str]:
    return re.findall(rf" {event}: \([^)]*\) ?(.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("arch", COMPILED)
def test_variables_with_a_point(arch: str, level: str) -> None:
    """Arguments in vector registers, on the stack, in parts of structures, and globals."""
    done = trace("-e", f"p:t/many many {WORDS}", guest=program(arch, level))
    assert lines(done.err, "many")[-1] == LAST
    assert "t/many: a, b, x, y, d" in done.err
    assert "--mode kernel refuses them" in done.err


@pytest.mark.parametrize("arch", COMPILED)
def test_registers_and_results(arch: str) -> None:
    first, second = PIECES[arch]
    done = trace(
        *("-e", f"p:t/e many a={first}:f64 b={second}:f32 bits={first}:x64 s={second}:x32"),
        *("-e", "r:t/r half $retval:f32 x"),
        *("-e", f"r:t/n many k was=$entry({first}):f64"),
        guest=program(arch),
    )
    assert lines(done.err, "e")[1] == "a=1.1 b=2.5 bits=0x3ff199999999999a s=0x40200000"
    assert lines(done.err, "r") == ["arg1=0 x=0", "arg1=0.15 x=0.3", "arg1=0.3 x=0.6"]
    assert lines(done.err, "n")[1] == "k=0.3333333333333333 was=1.1"


def test_code_in_the_guest_records_the_same() -> None:
    for arch in sorted({"x86_64", "aarch64"} & set(COMPILED)):
        words = "-e", "p:t/e many a b c e i", "-e", "r:t/r half $retval:f32 x"
        texts = {
            how: trace("--technique", how, *words, guest=program(arch)).err
            for how in ("breakpoint", "jump")
        }
        found = [line for line in texts["jump"].splitlines() if "many" in line]
        assert found
        assert [line for line in texts["breakpoint"].splitlines() if "many" in line] == found


def test_json_has_numbers(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    words = "-e", "p:t/e many a b row c e g", "--format", "jsonl", "-o", str(out)
    trace(*words, guest=program("x86_64"))
    found = json.loads(out.read_text().splitlines()[-1])["args"]
    assert found == {
        "a": 2.1,
        "b": 2.5,
        "row": [0.1, 1.5, -3e20],
        "c": 1e300,
        "e": "inf",
        "g": "nan",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mode", "kernel", "-e", "p many a=%xmm0:f64"), "Unknown type is specified"),
        (("--mode", "kernel", "-e", "p many a=%xmm0"), "Invalid register name"),
        (("--mode", "kernel", "-e", "p many a"), "This variable is not found"),
        (("-e", "p many a=%xmm16:f64"), "Invalid register name"),
        (("-e", "p many a=%st0:f64"), "Invalid register name"),
        (("-e", "p many a=%xmm0:f16"), "Unknown type is specified"),
        (("-e", "p many a=%xmm0:f80"), "Unknown type is specified"),
        (("-e", "p many a=%xmm0:string"), "String accepts only memory argument"),
        (("-e", "p many a=%xmm0:f64[2]"), "String accepts only memory argument"),
        (("-e", "p:t/e many a i", "--filter", "t/e:a > 1"), "filters compare whole numbers only"),
        (("-e", "p:t/e many a i", "--trigger", "t/e:hist:keys=a"), "cannot be counted"),
        (("-e", "p:t/e many a i", "--trigger", "t/e:hist:keys=i:vals=a"), "cannot be counted"),
        (("--args", "-e", "p many"), "--args is for the events of -f and -r"),
        (("--args", "-f", "many", "--mode", "kernel"), "leave out --mode kernel"),
        (("--args", "-f", "many", "--print", "elemnts=3"), "there is elements, repeats, depth"),
        (("--args", "-f", "many", "--print", "elements=-3"), "elements is a number"),
        (("--args", "-f", "many", "--print", "union=maybe"), "union is on or off"),
        (("--args", "-f", "many", "--prototypes", "/nowhere.h"), "No such file"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], said: str) -> None:
    done = trace(*words, guest=program("x86_64"))
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("arch", COMPILED)
def test_arguments_and_results_by_their_types(arch: str) -> None:
    done = trace("--args", *("-f", "*"), *("-r", "[ahn]*"), guest=program(arch, "-O0"))
    text = re.sub(r"0x[0-9a-f]+", "0x", done.err)
    (area,) = lines(text, "p_area_0")
    assert re.fullmatch(r'c=BLUE label=0x (<.*> )?"label" scale=1.5', area)
    assert lines(text, "r_area_0") == ["ret=36"]
    assert lines(text, "p_nothing_0") == ["on=true letter=113 'q' count=-3"]
    assert lines(text, "r_nothing_0") == [""]
    assert lines(text, "p_half_0")[1] == "x=0.300000012"
    assert lines(text, "r_half_0")[1] == "ret=0.150000006"
    (many, *_) = lines(text, "p_many_0")
    assert many.startswith("a=0.10000000000000001 b=2.5 i=0 p={x = 1.25, y = -7.5} m={d = -0, i")


def test_a_filter_counts_arguments() -> None:
    words = "--args", "-f", "nothing", "-f", "many", "--filter", "kprobes/p_many_0:i == 1"
    done = trace(*words, "--filter", "kprobes/p_nothing_0:count == -3", guest=program("x86_64"))
    assert [one.split()[2] for one in lines(done.err, "p_many_0")] == ["i=1"]
    assert len(lines(done.err, "p_nothing_0")) == 1


LIBRARY = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
volatile double two = 2;
struct box;
__attribute__((noinline)) int mine(const char *what, struct box *box, float f)
{ return strlen(what) + (box == 0) + (int)f; }
int main(int argc, char **argv) {
  char buffer[32];
  setenv("WHERE", "here", 1);
  snprintf(buffer, sizeof buffer, "%s-%d", getenv("WHERE"), atoi("42"));
  puts(buffer);
  return mine(buffer, 0, 2.5f) + (int)pow(two, 3) + (strtod("1e2", 0) > argc) - 17;
}
"""
CALLS = (
    'setenv(name="WHERE", value="here", overwrite=1); /* ret=0 */',
    'getenv(name="WHERE"); /* ret=0x "here" */',
    'atoi(nptr="42"); /* ret=42 */',
    'puts(s="here-42"); /* ret=8 */',
    'mine(what="here-42", box=0x0, f=2.5); /* ret=10 */',
    "pow(x=2, y=3); /* ret=8 */",
    'strtod(nptr="1e2", endptr=0x0); /* ret=100 */',
)


@pytest.mark.parametrize("arch", COMPILED)
def test_functions_without_debug_information(arch: str, tmp_path: Path) -> None:
    """As ltrace shows them: the names of the C library's are known, ours is in a header."""
    flags = "-O0", "-fno-builtin"
    (tmp_path / "source.c").write_text(LIBRARY)
    guest = tmp_path / "guest"
    made = compiled(tmp_path, tmp_path / "source.c", arch, *flags, "-Wl,--undefined=pow", "-lm")
    made.rename(guest)
    (tmp_path / "mine.h").write_text("int mine(const char *what, struct box *, float f);\n")
    functions = ("setenv", "getenv", "atoi", "puts", "mine", "pow", "strtod", "snprintf")
    done = run(
        *("graph", "--args", "--retval", "--max-depth", "1", "--prototypes", "mine.h"),
        *(word for name in functions for word in ("-f", name)),
        "guest",
        cwd=tmp_path,
    )
    text = re.sub(r"0x[1-9a-f][0-9a-f]*( <[^>]*>)?", "0x", done.err)
    found = [line.partition("|  ")[2] for line in text.splitlines() if "|  " in line]
    found = [re.sub(r"^_*(?:IO_|ieee754_)?(\w+?)(?:_fma)?\(", r"\1(", line) for line in found]
    wanted = [line.replace("box=0x0", "arg2=0x0") for line in CALLS]
    assert [line for line in wanted if line not in found] == []
    assert any(line.startswith('snprintf(str=0x, size=32, format="%s-%d", ...)') for line in found)
