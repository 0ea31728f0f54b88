"""gdb's words here and in gdb itself: the same scripts, the same texts."""

import difflib
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from cguest import CHECKOUT

_DATA = CHECKOUT / "tests" / "data" / "debugger"
_OPTIMIZED = ("inlined",)
_TOOL = (sys.executable, "-m", "tui")


@cache
def _program(tmp: Path, name: str) -> Path:
    """A sample with debug information, compiled where its sources lie."""
    source = next(_DATA.glob(f"{name}.c*"))
    others = [other.name for other in _DATA.glob(f"{name}_*.c*")]
    compiler = "gcc" if source.suffix == ".c" else "g++"
    if shutil.which(compiler) is None or shutil.which("gdb") is None:
        pytest.skip(f"{compiler} or gdb is not installed")
    program = tmp / name
    libraries = sorted(_DATA.glob(f"lib{name}*.c"))
    for library in libraries:
        made = tmp / f"{library.stem}.so"
        options = ["-g", "-O0", "-shared", "-fPIC"]
        subprocess.run([compiler, *options, "-o", made, library.name], check=True, cwd=_DATA)
    linked = [f"-L{tmp}", f"-l{name}", "-Wl,-rpath,$ORIGIN"] if libraries else ["-static"]
    level = "-O2" if name in _OPTIMIZED else "-O0"
    sources = [source.name, *others]
    subprocess.run(
        [compiler, "-g", level, "-no-pie", "-o", program, *sources, *linked],
        check=True,
        cwd=_DATA,
    )
    return program


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("debugger")


def _words(script: str) -> list[str]:
    """The script's lines as -ex, each behind an echo that tells which it is.

    One with blocks is a file: gdb reads the lines of a block from its standard input else.
    """
    if re.search(r"^end$", (_DATA / script).read_text(), re.MULTILINE):
        return ["-x", str(_DATA / script)]
    words: list[str] = []
    for line in (_DATA / script).read_text().splitlines():
        words += ["-ex", f"echo >>> {line}\\n", "-ex", line]
    return words


def _gdb(program: Path, words: list[str]) -> tuple[str, int]:
    command = ["gdb", "-q", "--batch", "-nx", "-ex", "set confirm off", *words, str(program)]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
        env={"PATH": "/usr/bin:/bin", "LANG": "C", "HOME": "/nonexistent"},
    )
    if "Error disabling address space randomization" in done.stdout or "ptrace" in done.stdout:
        pytest.skip(f"gdb cannot run programs here: {done.stdout.splitlines()[0]}")
    if "Could not insert hardware" in done.stdout:
        pytest.skip("gdb has no watchpoints of the processor here")
    return done.stdout, done.returncode


def _ours(program: Path, words: list[str]) -> tuple[str, int]:
    seen = ["--share", str(program.parent)]  # the libraries beside it
    done = subprocess.run(
        [*_TOOL, "--batch", *seen, "-ex", "set confirm off", *words, str(program)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
        cwd=CHECKOUT,
    )
    return done.stdout, done.returncode


def _plain(text: str, program: Path) -> str:
    """Without what differs from run to run: stack and heap addresses, ids of processes."""
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    end = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" _end"))

    def address(match: re.Match[str]) -> str:
        number = int(match[0], 16)
        return "HEAP-OR-STACK" if end <= number < 1 << 47 and number > 1 << 22 else match[0]

    text = re.sub(r"0x[0-9a-f]{6,}", address, text)
    text = re.sub(r"^.*libthread_db.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"^warning: .*\n", "", text, flags=re.MULTILINE
    )  # how the program died, in our words
    text = re.sub(
        r"^\[Detaching after v?fork from child process \d+\]\n", "", text, flags=re.MULTILINE
    )
    return re.sub(r"(process) \d+", r"\1 N", text)


def _compare(program: Path, script: str) -> None:
    words = _words(script)
    theirs, ours = _gdb(program, words), _ours(program, words)
    want, got = (_plain(text, program).splitlines() for text, _ in (theirs, ours))
    if want != got:
        lines = difflib.unified_diff(want, got, "gdb", "ours", n=2, lineterm="")
        pytest.fail("\n".join(lines), pytrace=False)
    assert len(want) > len(words) // 4
    assert ours[1] == theirs[1]


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("lists", "lists.gdb"),
        pytest.param("lists", "walks.gdb", marks=pytest.mark.slow),
        ("shapes", "shapes.gdb"),
        pytest.param("calls", "calls.gdb", marks=pytest.mark.slow),
        pytest.param("calls", "search.gdb", marks=pytest.mark.slow),
        ("watched", "watched.gdb"),
        pytest.param("watched", "followed.gdb", marks=pytest.mark.slow),
        pytest.param("signals", "signals.gdb", marks=pytest.mark.slow),
        pytest.param("many", "many.gdb", marks=pytest.mark.slow),
        pytest.param("pending", "pending.gdb", marks=pytest.mark.slow),
        pytest.param("classes", "classes.gdb", marks=pytest.mark.slow),
        pytest.param("classes", "files.gdb", marks=pytest.mark.slow),
        pytest.param("thrown", "thrown.gdb", marks=pytest.mark.slow),
        pytest.param("printed", "printed.gdb", marks=pytest.mark.slow),
        pytest.param("skipped", "skipped.gdb", marks=pytest.mark.slow),
        pytest.param("skipped", "applied.gdb", marks=pytest.mark.slow),
        pytest.param("inlined", "inlined.gdb", marks=pytest.mark.slow),
    ],
)
def test_a_script_reads_as_in_gdb(folder: Path, name: str, script: str) -> None:
    _compare(_program(folder, name), script)
