"""Single instructions on odd values: the emulator against the host's own processor, or qemu.

Seeded, so that a failure can be looked at again. Features that CPUID does not offer a guest are
left out, and so are flags and results that the manuals leave undefined.
"""

import os
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import a64snippets
import pytest
import rvsnippets
import snippets
from compiled import build, tool
from snippets import Case, differences

from engine.cpu import native

SOURCE = Path(__file__).parents[1] / "data" / "snippets" / "x86_64.c"
RUNS = int(os.environ.get("KPROBE_TUI_SNIPPETS", "1"))
"""Multiple of what the slow tests try, and the seed of another lot."""
QUICK, LONG = 1000, 30_000 * RUNS
needs_host = pytest.mark.skipif(
    not native.possible(), reason="the host is no x86-64 to ask, or its code is not wanted"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snippets")
    return build(folder, "snippets", SOURCE.read_text(), "-static", "-no-pie", "-O1")


def compare(
    program: Path, cases: list[Case], variables: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Nothing differs; otherwise the first few are shown."""
    folder = program.parent
    ours = snippets.run(program, folder, cases, *snippets.EMULATOR, variables=variables)
    theirs = snippets.run(program, folder, cases)
    found = differences(cases, ours, theirs)
    shown = [(case.name, case.code.hex(), difference) for case, difference in found[:5]]
    assert not found, f"{len(found)} of {len(cases)} differ (ours, theirs): {shown}"


def x87(seed: int, count: int, *, exact: bool = False) -> list[Case]:
    random_ = random.Random(seed)
    kinds = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.15), (0.5, 0.1))
    return [
        snippets.x87(random_, unmasked=unmasked, empty=empty, exact=exact)
        for unmasked, empty in (random_.choice(kinds) for _ in range(count))
    ]


@needs_host
def test_x87(program: Path) -> None:
    compare(program, x87(87, QUICK))


@needs_host
@pytest.mark.slow
def test_x87_without_the_host(program: Path) -> None:
    compare(program, x87(78, QUICK, exact=True), snippets.PORTABLE)


def sse(seed: int, count: int, *, plain: bool = False, unusual: bool = False) -> list[Case]:
    random_ = random.Random(seed)
    return [
        snippets.sse(random_, unmasked=random_.choice((0, 0.4)), plain=plain, unusual=unusual)
        for _ in range(count)
    ]


def integer(seed: int, count: int) -> list[Case]:
    random_ = random.Random(seed)
    return [snippets.integer(random_) for _ in range(count)]


@needs_host
def test_sse(program: Path) -> None:
    compare(program, sse(42, QUICK))


@needs_host
@pytest.mark.slow
def test_sse_without_the_host(program: Path) -> None:
    cases = sse(24, QUICK, plain=True) + sse(25, QUICK // 3, unusual=True)
    compare(program, cases, snippets.PORTABLE)


@needs_host
def test_integers_and_strings(program: Path) -> None:
    compare(program, integer(86, QUICK))


@needs_host
@pytest.mark.slow
def test_sse_long(program: Path) -> None:
    compare(program, sse(4242 * RUNS, LONG))


@needs_host
@pytest.mark.slow
def test_sse_without_the_host_long(program: Path) -> None:
    cases = sse(2424 * RUNS, LONG // 16, plain=True) + sse(2425 * RUNS, LONG // 16, unusual=True)
    compare(program, cases, snippets.PORTABLE)


@needs_host
@pytest.mark.slow
def test_integers_and_strings_long(program: Path) -> None:
    compare(program, integer(8086 * RUNS, LONG // 8))


@needs_host
@pytest.mark.slow
def test_x87_long(program: Path) -> None:
    compare(program, x87(8087 * RUNS, LONG))


@needs_host
@pytest.mark.slow
def test_x87_without_the_host_long(program: Path) -> None:
    compare(program, x87(7808 * RUNS, LONG // 16, exact=True), snippets.PORTABLE)


needs_vectors = pytest.mark.skipif(
    not native.lends(), reason="the host has no AVX2 to lend, or its code is not wanted"
)


@pytest.fixture(scope="module")
def avx_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("avx_snippets")
    options = ("-static", "-no-pie", "-O1", "-mavx")
    return build(folder, "snippets", SOURCE.read_text(), *options)


def vex(seed: int, count: int) -> list[Case]:
    random_ = random.Random(seed)
    return [snippets.vex(random_, unmasked=random_.choice((0, 0.3))) for _ in range(count)]


@needs_vectors
def test_vex(avx_program: Path) -> None:
    compare(avx_program, vex(256, QUICK // 4))


@needs_vectors
@pytest.mark.slow
def test_vex_long(avx_program: Path) -> None:
    compare(avx_program, vex(2562 * RUNS, LONG // 10))


@pytest.fixture(scope="module")
def arm_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("a64snippets") / "snippets"
    source = SOURCE.with_name("aarch64.c")
    command = [tool("aarch64-linux-gnu-gcc"), "-static", "-O1", "-w", "-ffixed-x18", "-o"]
    subprocess.run([*command, program, source], check=True)
    return program


def compare_arm(program: Path, seed: int, count: int, *, integers: bool = False) -> None:
    """Nothing differs from what qemu makes of it."""
    random_ = random.Random(seed)
    cases = [a64snippets.case(random_, number, integers=integers) for number in range(count)]
    names = ("code", "states")
    for name, content in zip(names, a64snippets.files(cases), strict=True):
        (program.parent / name).write_bytes(content)
    ours, theirs = (
        subprocess.run(
            [*under, program, *names], cwd=program.parent, capture_output=True, check=True
        ).stdout
        for under in (snippets.EMULATOR, (tool("qemu-aarch64"), "-cpu", "max"))
    )
    found = a64snippets.differences(cases, ours, theirs)
    shown = [(case.name, hex(case.word), difference) for case, difference in found[:5]]
    assert not found, f"{len(found)} of {count} differ (ours, theirs): {shown}"


def test_arm_floats_and_vectors(arm_program: Path) -> None:
    compare_arm(arm_program, 64, QUICK)


def test_arm_integers_and_memory(arm_program: Path) -> None:
    compare_arm(arm_program, 65, QUICK, integers=True)


@pytest.mark.slow
def test_arm_integers_and_memory_long(arm_program: Path) -> None:
    compare_arm(arm_program, 6565 * RUNS, LONG // 2, integers=True)


@pytest.mark.slow
def test_arm_floats_and_vectors_long(arm_program: Path) -> None:
    compare_arm(arm_program, 6464, LONG // 4)


@pytest.fixture(scope="module")
def riscv_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("rvsnippets") / "snippets"
    source = SOURCE.with_name("riscv64.c")
    command = [tool("riscv64-linux-gnu-gcc"), "-static", "-O1", "-w", "-o"]
    subprocess.run([*command, program, source], check=True)
    return program


def compare_riscv(program: Path, seed: int, count: int) -> None:
    """Nothing differs from what qemu makes of it."""
    random_ = random.Random(seed)
    cases = [rvsnippets.case(random_, number) for number in range(count)]
    names = ("code", "states")
    for name, content in zip(names, rvsnippets.files(cases), strict=True):
        (program.parent / name).write_bytes(content)
    ours, theirs = (
        subprocess.run(
            [*under, program, *names], cwd=program.parent, capture_output=True, check=True
        ).stdout
        for under in (snippets.EMULATOR, (tool("qemu-riscv64"),))
    )
    found = rvsnippets.differences(cases, ours, theirs)
    shown = [(case.name, case.code.hex(), difference) for case, difference in found[:5]]
    assert not found, f"{len(found)} of {count} differ (ours, theirs): {shown}"


def test_riscv_integers_and_memory(riscv_program: Path) -> None:
    compare_riscv(riscv_program, 5, QUICK)


@pytest.mark.slow
def test_riscv_integers_and_memory_long(riscv_program: Path) -> None:
    compare_riscv(riscv_program, 55 * RUNS, LONG // 3)
