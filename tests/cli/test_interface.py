"""Options of `kprobe-tui GUEST` that need no interface: --batch, -x, -ex."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cguest import CHECKOUT
from guestrun import called


def _batch(*words: str, cwd: Path | None = None) -> tuple[int, str, str]:
    done = called(*words, cwd=cwd or CHECKOUT)
    return done.returncode, done.stdout, done.stderr


SAMPLES = CHECKOUT / "samples" / "bin" / "x86_64"
STRUCTS = str(SAMPLES / "structs")


def test_files_and_commands_are_carried_out_in_their_order(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("# a remark\necho one\\n\n\nset $x = 5\n")
    two.write_text(f"source {one}\necho two\\n\n")
    code, out, err = _batch(
        *("--batch", "-ex", "echo zero\\n", "-x", str(two), "-ex", "print $x + 1"), STRUCTS
    )
    assert (code, out, err) == (0, "zero\none\ntwo\n$1 = 6\n", "")


def test_a_failing_command_ends_its_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "words"
    file.write_text("echo before\\n\nnosuchword\necho behind\\n\n")
    code, out, err = _batch("--batch", "-x", str(file), "-ex", "echo after\\n", STRUCTS)
    assert (code, out) == (0, "before\nafter\n")
    why = 'Undefined command: "nosuchword".  Try "help".'
    assert err == f"{file}:2: Error in sourced command file:\n{why}\n"


_REFUSED = (
    ("print nosuch", 'No symbol "nosuch" in current context.'),
    ("contine", 'Undefined command: "contine".  Did you mean "continue"?'),
    ("info registrs", 'Undefined info command: "registrs".  Did you mean "info registers"?'),
    ("next", "The program is not being run."),
    ("bt", "No stack."),
    ("break nosuch", 'Function "nosuch" not defined.'),
    ("break nosuch.c:5", "No source file named nosuch.c."),
    ("source /nonexistent", "/nonexistent: No such file or directory."),
    ("print/y 1", 'Undefined output format "y".'),
    ("print/i 1", 'Format letter "i" is meaningless in "print" command.'),
    ("condition 7 1", "No breakpoint number 7."),
    ("x/4xw 0", "Cannot access memory at address 0x0"),
)


def test_what_cannot_be_done_is_said_and_the_code_is_gdbs() -> None:
    words = [word for line, _ in _REFUSED for word in ("-ex", line)]
    code, out, err = _batch("--batch", *words, STRUCTS)
    assert code == 1
    asked = "Make breakpoint pending on future shared library load? (y or [n]) "
    answered = f"{asked}[answered N; input not from terminal]"
    assert out.splitlines() == [answered, answered, "0x0:\t"]
    assert err.splitlines() == [said for _, said in _REFUSED]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-ex", "run", STRUCTS), "-x and -ex go with --batch."),
        (("--batch", "-ex", "run"), "--batch needs a GUEST."),
        (("--batch", "-ex"), "Option '-ex' requires an argument."),
    ],
)
def test_wrong_options(words: tuple[str, ...], said: str) -> None:
    code, out, err = _batch(*words)
    assert (code, out) == (2, "")
    assert said in err


def test_the_guests_output_stands_where_it_is_written() -> None:
    code, out, err = _batch(
        *("--batch", "-ex", "break main", "-ex", "run", "-ex", "continue", "-ex", "print 1"),
        str(SAMPLES / "recursion"),
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("Breakpoint 1 at 0x")
    assert any(line.startswith("Breakpoint 1, main (") for line in lines)
    written = next(index for index, line in enumerate(lines) if "fibonacci(15) = 610" in line)
    assert lines[-2].endswith("exited normally]")
    assert lines[-1] == "$1 = 1"
    assert written < len(lines) - 2


def test_quit_ends_it() -> None:
    code, out, _ = _batch("--batch", "-ex", "quit", "-ex", "echo never\\n", STRUCTS)
    assert (code, out) == (0, "")


@pytest.mark.slow
def test_an_interrupt_ends_a_long_word_and_the_next_one_is_carried_out(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    structs = "".join(f"struct s{n} {{ int a; struct s{n} *b; }} v{n};\n" for n in range(4000))
    for number in range(6):
        (tmp_path / f"{number}.c").write_text(structs.replace(" v", f" v{number}_"))
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    sources = sorted(path.name for path in tmp_path.glob("*.c"))
    subprocess.run(["gcc", "-g", "-o", "p", *sources], cwd=tmp_path, check=True)
    # One step of two words: an interrupt that comes before the second has begun ends both.
    script = tmp_path / "words"
    script.write_text("echo begun\\n\ninfo variables v\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", "--batch", "-x", script, "-ex", "print 7", tmp_path / "p"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0
    assert err == f"{script}:2: Error in sourced command file:\nQuit\n"
    assert out.endswith("$1 = 7\n")  # some of what was found may stand in front
    assert "v5_3999;" not in out


@pytest.mark.slow
def test_an_interrupt_stops_the_guest_and_the_next_word_is_carried_out() -> None:
    words = ("--batch", "-ex", "run", "-ex", "info registers rip", "-ex", "print 7")
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", *words, "/bin/sh", "-c", "echo runs; while :; do :; done"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "runs\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    lines = out.splitlines()
    assert lines[1] == "Program received signal SIGINT, Interrupt."
    assert lines[-2].startswith("rip ")
    assert lines[-1] == "$1 = 7"


def test_the_program_has_a_terminal_of_its_own(tmp_path: Path) -> None:
    """Output goes there from the next run on, input comes from there."""
    master, slave = os.openpty()
    name = os.ttyname(slave)
    os.write(master, b"a needle\nnothing\n\x04")
    lines = str(SAMPLES / "lines")
    words = (f"tty {name}", "show inferior-tty", "run", "tty", "show inferior-tty")
    code, out, err = _batch(
        "--batch", *(w for word in words for w in ("-ex", word)), lines, "needle"
    )
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    os.close(slave)
    assert (code, err) == (0, "")
    said = 'Terminal for future runs of program being debugged is "{}".'
    ended = "[Inferior 1 (process 1000) exited normally]"
    assert out.splitlines() == [said.format(name), ended, said.format("")]
    assert "1 of 2 lines" in shown

    file = tmp_path / "out"
    code, out, err = _batch("--batch", "-ex", f"tty {file}", "-ex", "run", STRUCTS)
    assert (code, out, err) == (1, "", f"{file}: No such file or directory.\n")
    file.touch()
    code, out, err = _batch("--batch", "-ex", f"tty {file}", "-ex", "run", STRUCTS)
    assert (code, err) == (0, "")
    assert out == "[Inferior 1 (process 1000) exited with code 02]\n"
    assert file.read_text().startswith("payment 1001 -> 0")
