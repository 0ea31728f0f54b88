"""Files that commands write: a command that is refused leaves the user's own as they were."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from guestrun import run
from sysroot import CHECKOUT

from engine.cli.main import main

GUEST = str(CHECKOUT / "samples" / "bin" / "x86_64" / "recursion")
RACE = str(CHECKOUT / "samples" / "bin" / "x86_64" / "race")

REFUSED = (
    ("trace -e p:x@nosuch", GUEST),
    ("trace -f nosuch*", GUEST),
    ("trace -f main --filter kprobes/nosuch:common_pid==1", GUEST),
    ("trace -f main --filter kprobes/main:nosuch==1", GUEST),
    ("trace -f main --trigger kprobes/main:nosuch", GUEST),
    ("trace -f main --option nosuch", GUEST),
    ("trace -f main --handlers nosuch.py", GUEST),
    ("trace -f main --handlers bad.py", GUEST),
    ("trace -f main --cwd /no/such/folder", GUEST),
    ("trace -f main --buffer 5 -e p:x@nosuch", GUEST),
    ("trace -f main --instance a -f nosuch* -o other", GUEST),
    ("trace -f main --instance a -f main -o no/such", GUEST),
    ("trace -f main --instance a -f main -o out", GUEST),
    ("trace -f main --instance a -f main -o ./plan", GUEST),
    ("trace -f main --instance a -f main -o guest", "./guest"),
    ("trace -f main --list", GUEST),
    ("trace -f main --describe", GUEST),
    ("trace -f main", "nosuch"),
    ("trace -f main", "bad.py"),
    ("graph -f nosuch*", GUEST),
    ("graph --option nosuch", GUEST),
    ("graph --list", GUEST),
    ("graph", "nosuch"),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with files that a trace before has left, and its ring file, as of a kill."""
    for name in ("out", "out.ring", "plan", "other"):
        (tmp_path / name).write_text(f"{name} of yesterday\n")
    (tmp_path / "bad.py").write_text("raise ValueError\n")
    (tmp_path / "guest").write_bytes(Path(GUEST).read_bytes())
    (tmp_path / "guest").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_process(*words: str) -> int:
    """Carry a command line out that runs no guest; its exit code."""

    def interface(*given: object, **named: object) -> int:
        raise AssertionError(given, named)

    return main(list(words), interface)


def contents(home: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(home.iterdir()):
        yield path.name, path.read_bytes()


@pytest.mark.parametrize(("words", "guest"), REFUSED)
def test_what_is_refused_touches_no_file(
    home: Path, capfd: pytest.CaptureFixture[str], words: str, guest: str
) -> None:
    before = list(contents(home))
    command, *rest = (word.replace("@", " ") for word in words.split())
    code = in_process(command, "-o", "out", "--record-schedule", "plan", *rest, guest)
    lists = bool({"--list", "--describe"} & set(rest))
    out, err = capfd.readouterr()
    assert (code, bool(out)) == ((0, True) if lists else (2, False)), err
    assert list(contents(home)) == before


@pytest.mark.parametrize(
    "words",
    [
        "run --record-schedule plan --cwd /no/such/folder",
        "run --record-schedule plan nosuch",
        "run --record-schedule ./guest ./guest",
        "explore --seeds 2 --record-schedule plan --stop-if nosuch==1",
        "explore --seeds 2 --record-schedule no/such",
    ],
)
def test_nor_do_commands_without_a_trace(home: Path, words: str) -> None:
    before = list(contents(home))
    assert in_process(*words.split(), GUEST) == 2
    assert list(contents(home)) == before


def test_what_is_accepted_replaces_them(home: Path) -> None:
    command = ("trace", "-e", "p:g/f fibonacci", "-o", "out", "--record-schedule", "plan")
    instance = ("--instance", "a", "-e", "p:g/main main", "-o", "other", "--buffer", "3")
    done = run(*command, *instance, GUEST, cwd=home)
    assert done.code == 0, done.err
    after = dict(contents(home))
    assert sorted(after) == ["bad.py", "guest", "other", "out", "plan"]
    assert after["out"].count(b" f: ") == 987
    assert after["other"].count(b" main: ") == 1
    assert after["plan"].startswith(b"# kprobe-tui schedule\n")


def test_one_file_for_two_things_is_refused(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "link").symlink_to("guest")
    for words, why in (
        ("-o ./link", "-o ./link: the run reads it, as ./guest"),
        ("-o out --instance a -f main -o ./out", "-o ./out: -o out writes it, too"),
        ("-o new --record-schedule new", "-o new: --record-schedule new writes it, too"),
    ):
        assert in_process("trace", "-f", "main", *words.split(), "./guest") == 2
        assert capfd.readouterr().err == f"kprobe-tui: {why}\n"
    assert not (home / "new").exists()


def test_a_schedule_that_cannot_be_written_is_told_behind_the_run(home: Path) -> None:
    done = run("run", "--turns", "1-20", "--record-schedule", "/dev/full", RACE, cwd=home)
    plain = run("run", "--turns", "1-20", RACE, cwd=home)
    assert (done.code, done.out) == (plain.code, plain.out)
    told = "--record-schedule /dev/full: No space left on device; the schedule is not whole"
    assert told in done.err
