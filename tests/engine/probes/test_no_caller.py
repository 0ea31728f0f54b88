"""Return probes by a trampoline on code that nobody calls."""

from pathlib import Path

import pytest
from compiled import build
from controlkit import sample
from guestrun import run

SOURCE = Path(__file__).parents[2] / "data" / "uprobes" / "faults.S"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = SOURCE.read_text().partition("*/\n")[2]
    return build(tmp_path_factory.mktemp("faults"), "faults", source, "-nostdlib", "-static")


def test_returns_of_code_that_nobody_calls(program: Path) -> None:
    words = ("trace", "-o", "/dev/null", "-e", "r:g/e _start", str(program))
    assert run(*words, cwd=program.parent).code == 1  # its argc: returns are watched
    refused = run(words[0], "--returns", "mainline", *words[1:], cwd=program.parent)
    assert refused.code == 2
    assert "return-no-caller: nobody calls an entry point" in refused.err
    pattern = ("trace", "--returns", "mainline", "-o", "/dev/null", "-r", "_start", str(program))
    left_out = run(*pattern, cwd=program.parent)
    assert left_out.code == 1
    assert "no probe on _start" in left_out.err
    kernel = run(words[0], "--mode", "kernel", *words[1:], cwd=program.parent)
    assert kernel.code == 0  # the lowest byte of the trampoline's address
    assert "at an entry point that is argc (return-no-caller)" in kernel.err


@pytest.mark.parametrize("name", ["aarch64", "riscv64"])
def test_a_link_register_holds_nothing_there(name: str) -> None:
    program = str(sample(name, "recursion"))
    words = ("trace", "--returns", "mainline", "-o", "/dev/null", "-e", "r:g/e _start", program)
    done = run(*words, cwd=Path(program).parent)
    assert done.code == 0
    assert "return-no-caller" not in done.err
