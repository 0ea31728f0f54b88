"""Words of gdb's in a debugger of their own: settings, arguments, names that are no text."""

import re
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from cguest import CHECKOUT

from engine.arch.plan import Mode
from engine.session.debugger.interpreter import batch
from engine.session.protocol.config import GuestConfig

HOSTILE = "ev\033[31mil\nforged"
STRUCTS = str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs")


def _said(*lines: str, guest: str = STRUCTS) -> tuple[int, str]:
    """The exit code, and what was said, complaints in their place."""
    said: list[str] = []
    code = batch(
        GuestConfig(guest),
        [("command", line) for line in lines],
        said.append,
        lambda text: said.append(f"! {text}\n"),
        Mode.KERNEL,
        lambda session, halt: nullcontext(),
    )
    return code, "".join(said)


@pytest.mark.parametrize(
    "line",
    ["confirm off", "pagination off", "width 0", "style enabled off", "print pretty off"],
)
def test_settings_that_change_nothing_are_taken(line: str) -> None:
    assert _said(f"set {line}") == (0, "")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("non-stop on", '"non-stop" is always off here.'),
        ("disassembly-flavor masm", 'Undefined item: "masm".'),
        ("print nosuch on", 'Undefined set print command: "nosuch on".  Try "help set print".'),
        ("print pretty foo", '"on" or "off" expected.'),
        ("print elements -1", "integer -1 out of range"),
        ("nosuch", 'No symbol "nosuch" in current context.'),
        ("args 'open", "'open: No closing quotation"),
        ("env", "Argument required (environment variable and value)."),
    ],
)
def test_settings_that_would_change_something_are_refused(line: str, why: str) -> None:
    assert _said(f"set {line}") == (1, f"! {why}\n")


def test_a_guest_has_the_arguments_and_the_environment_that_are_set(
    capfd: pytest.CaptureFixture[str],
) -> None:
    code, _ = _said(
        *("unset env", "set env PROBE=of mine", "run -c 'echo $0 $PROBE' name"), guest="/bin/sh"
    )
    assert (code, capfd.readouterr().out) == (0, "name of mine\n")


def test_names_of_a_program_do_not_reach_the_terminal_as_they_are(tmp_path: Path) -> None:
    source = tmp_path / "named.c"
    source.write_text("int evil = 1; int *at = &evil; int main(void) { return !at; }\n")
    program = tmp_path / "named"
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    subprocess.run(["gcc", "-g", "-static", "-no-pie", "-o", program, source], check=True)
    rename = f"evil={HOSTILE}"
    subprocess.run(["objcopy", "--redefine-sym", rename, program], check=True)
    code, text = _said("print at", "info symbol at", guest=str(program))
    assert code == 0
    assert "\033" not in text
    assert len(text.splitlines()) == 2


THREADS = """
#include <pthread.h>
#include <stdio.h>
static pthread_barrier_t both;
static void *work(void *arg) { pthread_barrier_wait(&both); return arg; }
int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&thread, 0, work, (void *)7);
    pthread_barrier_wait(&both);
    pthread_join(thread, 0);
    puts("over");
    return 0;
}
"""


@pytest.mark.slow
def test_threads_and_libraries_of_a_program_that_is_loaded_anywhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    source, program = tmp_path / "both.c", tmp_path / "both"
    source.write_text(THREADS)
    subprocess.run(["gcc", "-g", "-pie", "-fPIE", "-o", program, source, "-pthread"], check=True)
    words = ("break main", "run", "break work", "tbreak puts", "continue", "info threads")
    more = ("thread", "thread apply all print $_", "thread 1", "frame 0", "thread 9")
    code, text = _said(*words, *more, "continue", "continue", guest=str(program))
    assert code == 0
    assert f"Breakpoint 1, main () at {source}:9\n" in text
    assert f'Thread 2 "both" hit Breakpoint 2, work (arg=0x7) at {source}:5\n' in text
    rows = re.findall(r"^([* ]) (\d)    (\S+ [\d.]+) \"both\" +(\w+) \(", text, re.MULTILINE)
    assert [(mark, number, where) for mark, number, _, where in rows if where == "work"] == [
        ("*", "2", "work")
    ]
    assert len(rows) == 2
    assert text.index("Thread 2 (") < text.index("Thread 1 (")
    assert "! Unknown thread 9.\n" in text
    hit = r'^Thread 1 "both" hit Temporary breakpoint 3, .*puts \('
    assert re.search(hit, text, re.MULTILINE)
    assert capfd.readouterr().out == "over\n"
