"""The same seed and input give the same run: every system call, every result, every block."""

import os
from dataclasses import dataclass
from pathlib import Path

import archkit
import pytest
from goldenruns import GUESTS
from sysroot import CHECKOUT, SysrootUnavailable, sysroot

from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session

SAMPLES = CHECKOUT / "samples" / "bin"
HOSTILE = CHECKOUT / "tests" / "data" / "hostile"
TEXT = b"the quick brown fox\njumps over the lazy dog\n" * 20
PROGRAMS = (
    *(("guests-static", mode) for mode in ("alarm", "time", "env", "ipc", "files", "signals")),
    *(("guests-static", mode) for mode in ("segv", "setjmp", "smc", "mem", "stdin")),
    *((name, "") for name in ("words", "sort", "structs", "loop", "floats", "crash")),
)
CASES = [(arch, program, mode) for arch in archkit.COMPILED for program, mode in PROGRAMS]


@dataclass(frozen=True)
class Trail:
    """All that a run did."""

    calls: list[tuple[object, ...]]
    blocks: int
    exit: object
    output: bytes


def _path(arch: str, program: str) -> Path:
    if program == "guests-static":
        return GUESTS / archkit.debian(arch) / program
    if program in ("process", "files"):
        return HOSTILE / arch / program
    return SAMPLES / arch / program


def _trail(
    arch: str,
    program: str,
    *args: str,
    seed: int = 0,
    cwd: Path | None = None,
    root: Path | None = None,
) -> Trail:
    before = os.getcwd()
    os.chdir(cwd or before)
    try:
        return _recorded(arch, program, args, seed, isolated=cwd is None, root=root)
    finally:
        os.chdir(before)


def _recorded(
    arch: str, program: str, args: tuple[str, ...], seed: int, *, isolated: bool, root: Path | None
) -> Trail:
    output: list[bytes] = []
    source = FeedStream()
    source.feed(TEXT)
    source.end()
    sink = SinkStream(output.append)
    config = GuestConfig(
        os.fspath(root / "usr/bin" / program if root else _path(arch, program)),
        args,
        root=os.fspath(root) if root else None,
        argv0=program,
        env=("HOME=/", "LANG=C"),
        isolated=isolated,
        seed=seed,
        count_blocks=True,
    )
    session = Session(config, (source, sink, sink))
    calls: list[tuple[object, ...]] = []
    session.hooks.syscall_enter = lambda *what: calls.append(what)
    session.hooks.syscall_exit = lambda *what: calls.append(what)
    try:
        session.run()
        return Trail(calls, session.cpu.blocks(), session.process.exit, b"".join(output))
    finally:
        session.close()


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("arch", "program", "mode"), CASES)
def test_two_runs_are_the_same_whatever_the_host_is_like(
    arch: str, program: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = [mode] if mode else []
    first = _trail(arch, program, *args)
    other = tmp_path / "elsewhere"
    other.mkdir()
    monkeypatch.chdir(other)
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("LD_PRELOAD_OF_NOBODY", "1" * 500)

    second = _trail(arch, program, *args)

    assert first.blocks > 0
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize(("arch", "program", "mode"), CASES)
def test_portable_callbacks_give_the_same_run(
    arch: str, program: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = [mode] if mode else []
    native = _trail(arch, program, *args)
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")

    assert _trail(arch, program, *args) == native


@pytest.mark.parametrize("arch", archkit.HOSTILE)
def test_the_seed_decides_what_is_random(arch: str) -> None:
    same = [_trail(arch, "process", "self", seed=7) for _ in range(2)]
    other = _trail(arch, "process", "self", seed=8)

    assert same[0] == same[1]
    ours, theirs = (trail.output.splitlines() for trail in (same[0], other))
    changed = [index for index, line in enumerate(ours) if line != theirs[index]]
    assert [ours[index][:2] for index in changed] == [b"0x", b"0x"], "AT_RANDOM and getrandom"


@pytest.mark.parametrize("arch", archkit.HOSTILE)
def test_order_of_a_host_directory_does_not_matter(arch: str, tmp_path: Path) -> None:
    listings = []
    for name, order in (("one", "abcdefgh"), ("two", "hgfedcba")):
        folder = tmp_path / name
        folder.mkdir()
        for letter in order:
            (folder / letter).touch()
        listings.append(_trail(arch, "files", "list", ".", cwd=folder).output)

    # Inode numbers are the host's, which gives them in the order of creation.
    first, second = ([line.split()[1:] for line in text.splitlines()] for text in listings)
    assert first == second
    assert b"".join(line[-1:] for line in listings[0].splitlines()) == b"3..abcdefgh"


@pytest.mark.sysroot
@pytest.mark.parametrize("arch", archkit.FIRST_COMPILED)
def test_a_real_program_runs_the_same(arch: str) -> None:
    try:
        root = sysroot(archkit.debian(arch))
    except SysrootUnavailable as error:
        pytest.skip(str(error))
    trails = [_trail(arch, "busybox", "sh", "-c", "sort | sha256sum", root=root) for _ in "12"]

    assert trails[0] == trails[1]
