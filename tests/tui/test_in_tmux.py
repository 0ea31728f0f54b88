"""The command as a user has it: in a terminal (tmux), by keys, from its start to its exit code."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest
from sysroot import CHECKOUT
from warmed import SAME_CODE

TMUX = shutil.which("tmux")
COMMAND = f"{shlex.quote(sys.executable)} -m tui"
SAMPLE = "samples/bin/x86_64/recursion"

pytestmark = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")


class Terminal:
    """A shell in a tmux server of its own."""

    def __init__(self, folder: Path, term: str = "xterm-256color") -> None:
        assert TMUX is not None
        self._tmux = [TMUX, "-L", f"kt-{uuid.uuid4().hex[:12]}", "-f", os.devnull, "-u"]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PS1": "shell> ",
            **SAME_CODE,
            "KPROBE_TUI_CONFIG": str(folder / "config.toml"),
            "KPROBE_TUI_STATE": str(folder / "state"),
        }
        assigned = [f"{name}={value}" for name, value in environment.items()]
        shell = shlex.join(["env", "-i", f"TERM={term}", *assigned, "sh"])
        size = ["-x", "100", "-y", "30"]
        self._run("new-session", "-d", *size, "-c", str(CHECKOUT), shell)
        self.wait("shell>")

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], capture_output=True, text=True, timeout=120, check=True
        )
        return done.stdout

    def keys(self, *keys: str) -> None:
        """Press keys, as tmux names them."""
        self._run("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type characters."""
        self._run("send-keys", "-l", text)

    def line(self, text: str) -> None:
        """Type a line."""
        self.type(text)
        self.keys("Enter")

    def slowly(self, *keys: str) -> None:
        """Press keys as a hand does: Escape and a key at once are Alt and the key."""
        for key in keys:
            sleep(0.7)
            self.keys(key)

    @property
    def screen(self) -> str:
        """What stands there."""
        return self._run("capture-pane", "-p")

    def ask(self, what: str) -> str:
        """A variable of tmux about the terminal."""
        return self._run("display-message", "-p", f"#{{{what}}}").strip()

    def wait(self, pattern: str, seconds: float = 120) -> str:
        """The screen once something stands on it.

        Raises:
            AssertionError: it does not come.
        """
        end = monotonic() + seconds
        while monotonic() < end:
            if re.search(pattern, screen := self.screen):
                return screen
            sleep(0.05)
        raise AssertionError(f"{pattern!r} is not on the screen:\n{screen}")

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def finish(self, code: int) -> None:
        """The command has ended with this code, and the terminal is what it was."""
        self.wait(r"shell>\s*$")
        self.line("echo code=$?")
        assert f"code={code}\n" in self.wait(r"code=\d")
        assert self.ask("alternate_on") == "0"
        assert self.ask("cursor_flag") == "1"
        assert self.ask("mouse_any_flag") == "0"
        self.line("stty -a | tr ' ' '\\n' | grep -cx -e isig -e icanon -e echo; echo checked")
        assert re.search(r"^3$", self.wait(r"(?m)^checked$"), re.MULTILINE)

    def close(self) -> None:
        """End the server, and with it all that runs in it."""
        self._run("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def test_from_launch_to_the_hits_of_a_function(terminal: Terminal) -> None:
    terminal.line(f"{COMMAND} {SAMPLE}")
    terminal.wait(r"ready: loaded")
    terminal.keys("p")
    terminal.wait("Enter probe")
    terminal.type("fib")
    terminal.wait(r"fibonacci .*bytes")
    terminal.keys("Enter")
    terminal.wait(r"placed p")
    terminal.keys("c")  # six keys
    terminal.wait(r"p_fibonacci_0\(n=\d+\)")
    assert "exited with 0" in terminal.wait(r"987 . follow")
    terminal.keys("q")
    terminal.wait("987 events are in no file")
    terminal.line("y")
    terminal.finish(0)


@pytest.mark.slow
def test_keys_that_are_typed_while_it_starts_are_not_lost(terminal: Terminal) -> None:
    terminal.line(f"{COMMAND} {SAMPLE}")
    terminal.keys("p")
    terminal.type("fib")
    terminal.keys("Enter")  # which the terminal makes a newline, as long as it is a shell's
    terminal.keys("c")
    terminal.wait(r"p_fibonacci_0\(n=\d+\)")
    terminal.keys("q")
    terminal.wait("987 events are in no file")
    terminal.line("y")
    terminal.finish(0)


@pytest.mark.slow
def test_slow_motion_by_hand_and_through_all_sizes(terminal: Terminal) -> None:
    terminal.line(f"{COMMAND} samples/bin/aarch64/recursion")
    terminal.wait("ready: loaded")
    terminal.keys("b")
    terminal.wait("breakpoint at _start")
    terminal.keys(".", "4")
    assert "[armed]" in terminal.wait("1/7")
    terminal.resize(20, 5)
    terminal.wait(r"stopped")
    terminal.keys(".", ".")
    terminal.resize(200, 50)
    assert "[pre-handlers]" in terminal.wait(r"3/7")
    terminal.resize(80, 24)
    terminal.keys(".", ".", ".", ".")
    terminal.wait("7/7 +done")
    terminal.keys("q")
    terminal.wait("alive")
    terminal.line("y")
    terminal.finish(0)


@pytest.mark.slow
def test_ctrl_c_stops_a_guest_that_runs_on_and_on(terminal: Terminal) -> None:
    terminal.line(f"{COMMAND} samples/bin/x86_64/loop 2000000000")
    terminal.wait("ready: loaded")
    terminal.keys("c")
    terminal.wait("running")
    terminal.keys("C-c")
    terminal.wait("stopped")
    terminal.keys("i")
    terminal.wait("stopped: stepped")
    terminal.keys("c")
    terminal.wait("running")
    terminal.keys("q")
    terminal.wait("alive")
    terminal.line("y")
    terminal.finish(0)


@pytest.mark.slow
def test_what_is_typed_reaches_the_guest(terminal: Terminal) -> None:
    terminal.line(f"{COMMAND} samples/bin/x86_64/lines needle")
    terminal.wait("ready: loaded")
    terminal.keys("c")
    terminal.wait(r"waiting in read\(\)")
    terminal.wait("Esc keys are commands")
    terminal.line("hay and a needle")
    terminal.line("hay")
    terminal.slowly("C-d")
    terminal.wait("ended: exited")
    terminal.wait("1 of 2 lines")
    terminal.slowly("Escape", "q")
    terminal.finish(0)


@pytest.mark.slow
def test_sequences_of_the_guest_do_not_reach_the_terminal(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.line(f"{COMMAND} samples/bin/x86_64/lines E")
    terminal.wait("ready: loaded")
    terminal.keys("c")
    terminal.wait(r"waiting in read\(\)")
    title = terminal.ask("pane_title")
    for sequence in ("\x1b]0;stolen\x07", "\x1b[2J", "\x1b[?1049l", "\x1bc", "\x9b2J"):
        terminal.line(sequence + "HERE")
        sleep(0.7)
    terminal.wait("HERE")
    assert terminal.ask("pane_title") == title
    assert terminal.ask("alternate_on") == "1"
    assert "waiting in read()" in terminal.screen
    terminal.slowly("Escape", "q")
    terminal.wait("alive")
    terminal.line("y")
    terminal.finish(0)


@pytest.mark.parametrize("term", ["xterm-256color", "screen-256color", "linux"])
@pytest.mark.parametrize(
    "options",
    ["", *(pytest.param(each, marks=pytest.mark.slow) for each in ("NO_COLOR=1", "--ascii"))],
)
def test_kinds_of_terminals(term: str, options: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, term)
    try:
        variable, option = (options, "") if "=" in options else ("", options)
        terminal.line(f"{variable} {COMMAND} {option} {SAMPLE}")
        screen = terminal.wait("ready: loaded")
        assert "_start" in screen
        if option == "--ascii":
            assert screen.isascii()
        terminal.keys("b")
        terminal.wait("breakpoint at")
        terminal.keys("q")
        terminal.finish(0)
    finally:
        terminal.close()


def test_files_that_are_no_guests(terminal: Terminal, tmp_path: Path) -> None:
    strange = bytearray((CHECKOUT / SAMPLE).read_bytes())
    strange[18:20] = (2).to_bytes(2, "little")  # EM_SPARC
    (tmp_path / "other").write_bytes(strange)
    terminal.line(f"{COMMAND} {tmp_path}/other")
    screen = terminal.wait(r"kprobe-tui: .*")
    assert "sparc" in screen.lower()
    assert "Traceback" not in screen
    terminal.finish(2)


def test_without_a_terminal_it_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tui", SAMPLE],
        cwd=CHECKOUT,
        env={**os.environ, **SAME_CODE},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_stripped_binary_has_places_too(terminal: Terminal, tmp_path: Path) -> None:
    strip = shutil.which("strip")
    if strip is None:
        pytest.skip("no strip (binutils)")
    shutil.copy(CHECKOUT / SAMPLE, tmp_path / "bare")
    subprocess.run([strip, str(tmp_path / "bare")], check=True)
    terminal.line(f"{COMMAND} {tmp_path}/bare")
    terminal.wait("ready: loaded")
    terminal.keys("i", "i")
    terminal.wait(r"func_0x\w+\+0x5")
    terminal.keys("b")
    terminal.wait("breakpoint at")
    terminal.keys("c")
    terminal.wait("ended: exited with 0")
    terminal.keys("q")
    terminal.finish(0)


def test_the_picker_opens_what_is_chosen(terminal: Terminal) -> None:
    terminal.line(COMMAND)
    terminal.wait("These come with it")
    terminal.keys("j", "Enter")
    terminal.wait(r"recursion +aarch64 +ready: loaded")
    terminal.keys("q")
    terminal.finish(0)


@pytest.mark.slow
def test_which_call_writes_a_wrong_value(terminal: Terminal, tmp_path: Path) -> None:
    compiler = shutil.which("x86_64-linux-gnu-g++")
    if compiler is None:
        pytest.skip("no compiler for C++")
    source, program = CHECKOUT / "tests" / "data" / "tui" / "shop.cc", tmp_path / "shop"
    subprocess.run([compiler, "-g", "-O0", "-static", "-o", program, source], check=True)
    terminal.line(f"{COMMAND} {program}")
    terminal.wait("ready: loaded")
    terminal.line(":break main")
    terminal.wait("Breakpoint 1 at ")
    terminal.keys("c")
    terminal.wait("breakpoint 1: main")
    terminal.line(":next")
    terminal.wait(r'add\(s, "bread", 3\)')
    terminal.line(":watch s.total")
    terminal.wait("atchpoint 2: s.total")
    terminal.line(":condition 2 s.total < 0")
    terminal.wait("s.total")
    terminal.line(":continue")
    terminal.wait(r"New value = -\d+")
    terminal.line(":bt")
    screen = terminal.wait(r"#1 .* main \(\)")
    assert re.search(r"#0 .*discount", screen), screen
    terminal.line(":up")
    terminal.wait(r"#1 .* main \(\) at ")
    terminal.line(":print s.items")
    terminal.wait(r'std::vector of length 2, capacity 2 = \{\{name = "bread", price = 3\}')
    terminal.keys("q")
    terminal.wait("the program is alive")
    terminal.line("y")
    terminal.finish(0)
