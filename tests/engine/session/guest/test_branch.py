"""A live guest comes to any moment of a recorded run, with nothing but the recording."""

import random
from io import BytesIO
from pathlib import Path

import pytest
from compiled import build
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from guestrun import run
from historykit import state_of
from recordedkit import Recording, finish, recorded
from sessionkit import SAMPLES

from engine.history.hostfiles import LONGEST
from engine.history.reenacting import ReenactmentError

GUESTS = Path(__file__).parents[3] / "data" / "guests"
FEW = ("x86_64/forkserver",)
REST = (
    *("x86_64/crash", "x86_64/floats", "x86_64/leak", "x86_64/pipeline", "x86_64/race"),
    *("aarch64/forkserver", "aarch64/race", "aarch64/structs"),
    *("riscv64/forkserver", "riscv64/pipeline", "riscv64/race"),
    *("ia64/recursion", "ia64/pipeline"),
)
NAMES = [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in REST)]
RUNS = [
    pytest.param(arch, kind, marks=pytest.mark.slow)
    for arch, kinds in (
        ("amd64", ("threads", "exec", "smc", "signals", "fork", "thrsig")),
        ("arm64", ("threads", "segv", "signals", "fork")),
    )
    for kind in kinds
]


def _check(path: Path, count: int, stdin: bytes = b"") -> None:
    """Branches that change nothing are the rest of the recorded run."""
    held, choose = Recording(path, stdin=stdin), random.Random(1)
    try:
        held.timeline.end()
        end, final = held.past.cpu.blocks(), held.past.machine.exit
        output = dict.fromkeys(range(3), b"")
        for _, fd, data in held.journal.outputs():
            output[fd] += data
        for _ in range(count):
            held.timeline.seek_clock(choose.randrange(1, max(end, 2)))
            for _ in range(choose.randrange(4)):
                if held.past.machine.exit is None:
                    held.past.kernel.step()
            if held.past.machine.exit is not None:
                continue
            moment = held.timeline.now()
            with held.branch(moment) as (session, recorder):
                assert not held.streams.output  # it was written once
                assert state_of(session) == state_of(held.past), moment
                held.check_rest(session, recorder)
                assert (session.machine.exit, session.cpu.blocks()) == (final, end)
                held.timeline.seek_clock(max(end - 1, 1))
                assert output[1].endswith(held.streams.output)
                assert output[2].endswith(held.streams.errors)
                assert not session.view.refused.listed()
    finally:
        held.close()


@pytest.mark.parametrize("name", NAMES)
def test_samples(name: str, tmp_path: Path) -> None:
    _check(recorded(tmp_path, "--turns", "100-300", str(SAMPLES / name)), 2)


@pytest.mark.parametrize(("arch", "kind"), RUNS)
def test_guests(arch: str, kind: str, tmp_path: Path) -> None:
    """Signals, threads, processes, programs, code that changes itself."""
    _check(recorded(tmp_path, str(GUESTS / arch / "guests-static"), kind), 1)


def test_what_was_read_of_a_pipe_is_read_again(tmp_path: Path) -> None:
    """What came before the moment, and what the recorded run read behind it."""
    text = b"one two two\n" * 40
    _check(recorded(tmp_path, str(SAMPLES / "x86_64" / "lines"), "two", stdin=text), 1)


@pytest.mark.slow
def test_python_with_a_script_that_is_gone(tmp_path: Path) -> None:
    """Programs, libraries, files, listings, children: all of it comes from the recording."""
    (tmp_path / "data.txt").write_text("hello\n")
    (tmp_path / "s.py").write_text(
        "import os, subprocess, sys\n"
        "print(os.listdir('.'), os.stat('data.txt').st_mtime, os.getcwd())\n"
        "for line in sys.stdin: print('in', line)\n"
        "import json\n"
        "print(open('data.txt').read(), json.dumps({}))\n"
        "print(subprocess.run(['/bin/echo', 'child'], capture_output=True).stdout)\n"
        "open('/tmp/x', 'w').write('y'); print(open('/tmp/x').read())\n"
    )
    path = recorded(tmp_path, "/usr/bin/python3", "s.py", stdin=b"a\nb\n")
    assert path.stat().st_size < 15 << 20
    for name in ("data.txt", "s.py"):
        (tmp_path / name).unlink()
    _check(path, 2)


READER = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
volatile int wanted;
static void show(const char *path)
{
    char text[64];
    int fd = open(path, O_RDONLY), size;
    if (fd < 0) {
        printf("%s: %d\n", path, errno);
        return;
    }
    size = read(fd, text, sizeof(text));
    printf("%s: %.*s\n", path, size, text);
    close(fd);
}
int main(int argc, char **argv)
{
    int at;
    for (at = 1; at < argc; at++)
        if (access(argv[at], F_OK) == 0)
            show(argv[at]);
    printf("now\n");
    fflush(stdout);
    for (at = 1; at <= (wanted & 7); at++)
        show(wanted & 8 ? "/granted/later" : getenv("LATER"));
    fflush(stdout);
    return 0;
}
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a program that has read `known`, looked for `absent`, and gone."""
    folder = tmp_path_factory.mktemp("reader")
    program = build(folder, "reader", READER, "-static", "-O1")
    (folder / "known").write_text("as it was")
    words = ("--env", f"LATER={folder}/later", str(program), "known", "absent")
    path = recorded(folder, *words)
    (folder / "known").write_text("another")
    return path


def _wanted(held: Recording) -> int:
    program = ELFFile(BytesIO(bytes(held.opened.image.buffer)))
    table = program.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    found = table.get_symbol_by_name("wanted")
    assert found is not None
    return int(found[0]["st_value"])


@pytest.mark.parametrize("way", ["nothing", "share", "root"])
def test_the_future_sees_what_it_is_granted(reader: Path, way: str, tmp_path: Path) -> None:
    """A file beyond the recording is not there, and that is told once; or it is the granted."""
    folder = reader.parent
    later = folder / "later"
    shares: tuple[tuple[str, bool], ...] = ()
    root = None
    if way == "share":
        later.write_text("granted")
        shares = ((str(later), False),)
    elif way == "root":
        root = str(tmp_path)
        (tmp_path / "granted").mkdir()
        (tmp_path / "granted/later").write_text("granted")
    held = Recording(reader, root=root, shares=shares)
    try:
        with held.branch(held.call(b"now")) as (session, _):
            wanted = 2 + 8 * (way == "root")
            session.memory.write(_wanted(held), wanted.to_bytes(4, "little"))
            finish(session)
            said = bytes(held.streams.output)
            refused = session.view.refused
            missing = [item.path for item in refused.listed()]
        if way == "nothing":
            assert said.count(b"later: 2\n") == 2
            assert missing == [str(later)]
            assert refused.why == "not in the recording, nor visible"
        else:
            assert said.count(b"later: granted\n") == 2
            assert not missing
    finally:
        held.close()
        later.unlink(missing_ok=True)


def test_files_are_as_they_were(reader: Path) -> None:
    """What the recording has wins over what is granted; so does what was not there."""
    folder = reader.parent
    (folder / "absent").write_text("new")
    held = Recording(reader, shares=((str(folder), False),))
    try:
        with held.branch(held.call(b"now")) as (session, recorder):
            held.check_rest(session, recorder)
    finally:
        held.close()
        (folder / "absent").unlink()


def test_a_branch_of_a_branch(reader: Path) -> None:
    """It sees from where the first one began to live what that one has seen."""
    folder = reader.parent
    (folder / "later").write_text("granted")
    held = Recording(reader, shares=((str(folder / "later"), False),))
    try:
        with held.branch(held.call(b"now")) as (first, recorder):
            with recorder.edited():
                first.memory.poke(_wanted(held), (1).to_bytes(4, "little"))
            finish(first)
            assert b"later: granted\n" in held.streams.output
            held.follow(first, recorder)
            moment = held.call(b"later: granted")
            with held.branch(moment, first) as (second, again):
                assert state_of(second) == state_of(held.past)
                held.check_rest(second, again)
    finally:
        held.close()
        (folder / "later").unlink()


def test_what_others_have_changed_is_told_with_both_sides(
    reader: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Recording(reader)
    outside = held.opened.outside
    contents = {
        key: data.replace(b"as it was", b"as it is!") for key, data in outside.contents.items()
    }
    monkeypatch.setattr(outside, "contents", contents)
    try:
        with (
            pytest.raises(
                ReenactmentError,
                match=r"in read: .*recorded was 'was' from byte 6 of 9 .*now it is 'is!'",
            ) as told,
            held.branch(held.call(b"now")),
        ):
            pass
        assert "others changed while it ran" in told.value.hint
    finally:
        held.close()


def test_a_file_that_is_too_long_is_named(tmp_path: Path) -> None:
    program = build(tmp_path, "reader", READER, "-static", "-O1")
    long = tmp_path / "long"
    with long.open("wb") as file:
        file.truncate(LONGEST + 1)
    held = Recording(recorded(tmp_path, str(program), "long"))
    assert (tmp_path / "run.rec").stat().st_size < 1 << 20
    try:
        moment = held.call(b"now")
        with (
            pytest.raises(ReenactmentError, match=f"files over 64 MB are not in it: {long}"),
            held.branch(moment),
        ):
            pass
    finally:
        held.close()


def test_it_is_refused_under_the_hosts_clock(tmp_path: Path) -> None:
    guest = str(SAMPLES / "x86_64" / "words")
    recorded(tmp_path, "--clock", "host", guest)
    done = run(
        "--batch", "-ex", "run", "-ex", "goto 50%", "-ex", "branch", "run.rec", cwd=tmp_path
    )
    assert "no branch can be made of this run: --clock host goes on meanwhile" in done.err
