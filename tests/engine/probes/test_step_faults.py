"""Programs that Linux's uprobes damage: kernel mode ends them as a running Linux 6.18 did."""

from pathlib import Path

import pytest
from compiled import build
from guestrun import run

from engine.image import ElfImage
from engine.image.symbols import SymbolTable

SOURCE = Path(__file__).parents[2] / "data" / "uprobes" / "faults.S"
PLACES = {
    # name: (arguments, exit code without a probe, with a uprobe under Linux)
    "step": (1, 20, 133),
    "stay": (2, 30, 30),
    "lost_at": (3, 40, 139),
    "skip_at": (4, 52, 51),
    "push_at": (5, 60, 68),
}
TRAP = (6, 133, 70)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = SOURCE.read_text().partition("*/\n")[2]
    return build(tmp_path_factory.mktemp("faults"), "faults", source, "-nostdlib", "-static")


def uprobe(program: Path, name: str) -> str:
    image = ElfImage.open(program)
    found = SymbolTable(image).find(name)
    assert found is not None
    return f"p:g/e {program}:{image.file_offset(found.address):#x}"


@pytest.mark.parametrize("name", PLACES)
def test_kernel_mode_damages_as_a_running_kernel(program: Path, name: str) -> None:
    count, plain, damaged = PLACES[name]
    words = (
        "trace",
        "-o",
        "/dev/null",
        "-e",
        uprobe(program, name),
        str(program),
        *"abcdef"[:count],
    )
    strict = run(*words, cwd=program.parent)
    assert strict.code == 2
    assert "x86.uprobe-vex-" in strict.err
    kernel = run(words[0], "--mode", "kernel", *words[1:], cwd=program.parent)
    assert kernel.code == damaged
    assert "Linux accepts it, but takes opcode byte" in kernel.err
    with_mark = [word.replace("p:g/e", "!p:g/e") for word in words]
    assert run(*with_mark, cwd=program.parent).code == damaged
    assert run("run", *words[5:], cwd=program.parent).code == plain


def test_a_kprobe_is_no_uprobe(program: Path) -> None:
    for mode in ("strict", "kernel"):
        words = ("trace", "-o", "/dev/null", "--mode", mode, "-e", "p:g/e step")
        assert run(*words, str(program), "a", cwd=program.parent).code == 20


def test_a_breakpoint_in_two_bytes_with_a_uprobe_in_the_program(program: Path) -> None:
    count, plain, damaged = TRAP
    arguments = (str(program), *"abcdef"[:count])
    words = ("-o", "/dev/null", "-e", uprobe(program, "push"), *arguments)
    assert run("trace", *words, cwd=program.parent).code == plain
    assert run("trace", "--mode", "kernel", *words, cwd=program.parent).code == damaged
    kprobe = ("-o", "/dev/null", "-e", "p:g/e push", *arguments)
    assert run("trace", "--mode", "kernel", *kprobe, cwd=program.parent).code == plain


def test_check_says_so(program: Path) -> None:
    words = ("check", "-e", uprobe(program, "push"), "-e", uprobe(program, "step"), str(program))
    told = run(*words, cwd=program.parent)
    assert told.code == 1
    assert "warning x86.uprobe-int3: its file has `int $3` in two bytes" in told.out
    assert "rejected x86.uprobe-vex-popf: under a uprobe Linux takes opcode byte 9d" in told.out
    kernel = run("check", "--mode", "kernel", *words[1:], cwd=program.parent)
    assert kernel.code == 0
    assert (
        "error corrupts: Linux accepts it, but takes opcode byte 9d for that of popf" in kernel.out
    )
