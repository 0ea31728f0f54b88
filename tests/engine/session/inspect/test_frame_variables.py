"""Variables of frames: as gdb sees them in the same program at the same place."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from archkit import FIRST_COMPILED
from controlkit import held, sample

from engine.arch import by_name
from engine.session.protocol import commands as cmd
from engine.session.protocol.frames import GuestFrame
from engine.session.protocol.views import GuestView

SOURCE = r"""
#include <stdlib.h>
enum colour { RED, GREEN = 5, BLUE };
struct pair { int a, b; };
volatile long sink;
__attribute__((noinline)) void stop(const char *why, unsigned char small) { sink += small + *why; }
__attribute__((noinline)) int inner(int depth, enum colour hue, double ratio, struct pair *both)
{
    char name[8] = "abc";
    _Bool last = depth == 0;
    long long wide = -3LL * (depth + 1);
    if (last)
        stop("the end", 200);
    else
        inner(depth - 1, GREEN, ratio / 2, both);
    sink += wide + name[depth & 1] + both->a + (long)ratio + hue;
    return last;
}
int main(int argc, char **argv)
{
    struct pair both = { argc, 7 };
    short shorter = -12;
    int done = inner(3, RED, 1.5, &both);
    sink += shorter;
    return done;
}
"""

ASK = r"""
import gdb, json
gdb.execute("set confirm off")
gdb.execute("break stop")
gdb.execute("run")
frames, frame = [], gdb.newest_frame()
while frame is not None and frame.is_valid():
    found, block = {}, None
    try:
        block = frame.block()
    except RuntimeError:
        pass
    while block is not None and block.function is None:
        block = block.superblock
    for symbol in block if block is not None else ():
        if symbol.is_argument or symbol.is_variable:
            value = symbol.value(frame)
            kind = value.type.strip_typedefs().code
            if value.is_optimized_out:
                found[symbol.name] = None
            elif kind in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM):
                found[symbol.name] = int(value)
            elif kind == gdb.TYPE_CODE_FLT:
                found[symbol.name] = float(value)
    frames.append((frame.name(), found))
    if frame.name() == "main":
        break
    frame = frame.older()
print("FRAMES " + json.dumps([gdb.newest_frame().pc(), frames]))
"""

ENUM = {"RED": 0, "GREEN": 5, "BLUE": 6, "false": 0, "true": 1}


def shown(frame: GuestFrame) -> dict[str, float | None]:
    """The numbers of a frame; None for those that cannot be told."""
    found: dict[str, float | None] = {}
    for variable in frame.variables:
        word = variable.value.split(" ")[0]
        if variable.value.startswith("<"):
            found[variable.name] = None
        elif word in ENUM:
            found[variable.name] = ENUM[word]
        elif not variable.value.startswith(("{", '"')):
            found[variable.name] = float(int(word, 0) if "." not in word else float(word))
    return found


def stopped(program: str, place: str) -> GuestView:
    """The guest at a place."""
    with held(program) as guest:
        return guest.do(cmd.ToggleBreak(place), cmd.Continue())


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_the_same_values_as_gdb(level: str, tmp_path: Path) -> None:
    compiler, debugger = shutil.which("gcc"), shutil.which("gdb")
    if compiler is None or debugger is None:
        pytest.skip("no gcc or no gdb")
    source, program, script = (tmp_path / name for name in ("a.c", "a", "ask.py"))
    source.write_text(SOURCE)
    script.write_text(ASK)
    subprocess.run(
        [compiler, level, "-g", "-static", "-no-pie", "-o", program, source], check=True
    )
    done = subprocess.run(
        [debugger, "-nx", "-batch", "-x", script, program],
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("FRAMES ")]
    if not told:
        pytest.skip(f"gdb cannot run it here: {done.stderr[-200:]}")
    pc, wanted = json.loads(told[0].removeprefix("FRAMES "))  # gdb stops behind the prologue
    view = stopped(str(program), f"{pc:#x}")
    compared = 0
    for number, (name, values) in enumerate(wanted):
        frame = view.frames[number]
        assert frame.function == name
        got = shown(frame)
        for variable, value in values.items():
            if value is None or got.get(variable) is None:
                # What a caller passed can be known to gdb from its call sites; never a guess.
                continue
            assert got[variable] == pytest.approx(value), (number, variable)
            compared += 1
    assert compared >= {"-O0": 22, "-O1": 5, "-O2": 3}[level]


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_arguments_at_each_hit(arch: str) -> None:
    first, second = by_name(arch).probes.arguments[:2]
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.ToggleBreak("ackermann"))
        for _ in range(5):
            view = guest.do(cmd.Continue())
            registers = guest.registers()
            values = {item.name: item.value for item in view.frames[0].variables}
            assert values["m"] == str(registers[first] & 0xFFFFFFFF)
            assert values["n"] == str(registers[second] & 0xFFFFFFFF)
            assert [item.is_parameter for item in view.frames[0].variables[:2]] == [True, True]
