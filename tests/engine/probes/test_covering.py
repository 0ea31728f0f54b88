"""A debugger inside the guest and a probe share an instruction, and each sees its own."""

import re
from pathlib import Path

import pytest
from cguest import CHECKOUT, compiled_from
from guestrun import run

_SOURCE = CHECKOUT / "tests" / "data" / "traced" / "debugger.c"


@pytest.mark.parametrize("technique", ["breakpoint", "jump"])
@pytest.mark.parametrize("words", [(), ("elsewhere",)])
def test_breakpoint_and_probe_on_one_instruction(
    technique: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    program = compiled_from(_SOURCE, "x86_64")
    plain = run("run", str(program), *words, cwd=tmp_path)
    done = run(
        *("trace", "--technique", technique, "-e", "p:in probed n=%di", "-e", "r:out probed"),
        *("-o", "trace", str(program), *words),
        cwd=tmp_path,
    )
    trace = (tmp_path / "trace").read_text()

    assert plain.out.splitlines()[-1] == "stops 5 end 15"
    assert "FALSE" not in plain.out
    assert done.out == plain.out
    assert re.findall(r" in: \(\S+\) n=(\w+)", trace) == ["0x0", "0x1", "0x2", "0x3", "0x4"]
    assert len(re.findall(r" out: ", trace)) == 5
