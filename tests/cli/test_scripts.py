"""Scripts as GUEST: their interpreters run them, as a kernel would start them."""

from pathlib import Path

import pytest
from guestrun import guest, run

PROGRAM = Path(guest("x86_64", "process"))
"""With `echo` as its first argument it prints the others, one a line."""


def script(path: Path, line: str) -> None:
    path.write_text(f"#!{line}\nanything\n")
    path.chmod(0o755)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with an interpreter, and a script for it."""
    path = tmp_path / "home"
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "program").write_bytes(PROGRAM.read_bytes())
    (path / "bin" / "program").chmod(0o755)
    script(path / "plain", f" {path}/bin/program\techo ")
    return path


def lines(home: Path, *words: str) -> list[str]:
    done = run("run", *words, cwd=home)
    assert (done.code, done.err) == (0, "")
    return done.out.splitlines()


def test_the_interpreter_gets_the_scripts_path_and_the_arguments(home: Path) -> None:
    assert lines(home, "./plain", "a", "b c", "--help") == ["./plain", "a", "b c", "--help"]
    assert lines(home, "plain") == ["plain"]


def test_a_mere_name_is_looked_up_in_path(home: Path) -> None:
    env = {"PATH": f"/none:{home}/bin:/usr/bin"}
    words = ("run", "program", "echo", "x")
    assert run(*words, cwd=home, env=env).out == "x\n"
    assert run("run", "program", "self", cwd=home, env=env).out.splitlines()[0] == "program"
    tree = ("run", "--root", ".", "program", "self")
    assert run(*tree, cwd=home, env={"PATH": "/sbin:/bin"}).out.splitlines()[0] == "program"
    script(home / "program", f"{home}/bin/program echo")
    assert run(*words, cwd=home, env=env).out.splitlines() == ["program", "echo", "x"]
    done = run("run", "program2", cwd=home, env=env)
    assert (done.code, done.out) == (2, "")


def test_one_argument_of_its_own(home: Path) -> None:
    script(home / "self", f"{home}/bin/program self")
    script(home / "two", f"{home}/bin/program  echo  two ")

    assert lines(home, "./self", "x")[0] == f"{home}/bin/program"
    assert (
        run("run", "./two", cwd=home).out == run("run", "bin/program", "echo  two", cwd=home).out
    )


def test_an_interpreter_may_be_a_script(home: Path) -> None:
    script(home / "twice", f"{home}/plain more")

    assert lines(home, "./twice", "x") == [f"{home}/plain", "more", "./twice", "x"]


def test_in_a_tree_the_interpreter_is_the_trees(home: Path) -> None:
    script(home / "inside", "/bin/program echo")
    (home / "link").symlink_to("/inside")

    assert lines(home, "--root", ".", "./link", "x") == ["/link", "x"]


def test_isolated_it_sees_the_script(home: Path) -> None:
    assert lines(home, "--isolated", "./plain", "x") == [f"{home}/plain", "x"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/no/such", "./bad: its interpreter /no/such is not there"),
        ("{home}/bad", "./bad: its interpreters are scripts themselves, again and again"),
        ("", "./bad: is a script without an interpreter; give the program that runs it as GUEST"),
    ],
)
def test_what_cannot_be_run_is_refused(home: Path, line: str, message: str) -> None:
    script(home / "bad", line.format(home=home))

    done = run("run", "./bad", cwd=home)

    assert (done.code, done.out) == (2, "")
    assert message in done.err
