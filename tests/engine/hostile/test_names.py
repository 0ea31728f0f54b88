"""Names and strings of a guest that would reach for the terminal: none gets there.

A sample is patched: symbols, source files, sections and strings are replaced by others as long,
which have everything in them that a terminal obeys, and the file and so the process are named
likewise. Every command then writes to a terminal of its own.
"""

import os
import pty
import select
import termios
from pathlib import Path

import pytest
import warmed
from sysroot import CHECKOUT

PATCHES = (
    (b"fibonacci", b"\x1b]0;own\x07\n"),  # a title, and a line of its own
    (b"factorial", b"[red]x\x1b[m"),  # markup of Textual's
    (b"ackermann", b"\xe2\x80\xae\xc2\x9b2Jx\x7f"),  # turned around, C1, DEL
    (b"print_u64", b"\rforged\x08%"),
    (b"recursion.c", b"re\x1b[7msion\n"),
    (b".comment", b".\x1b[2Jcom"),
    (b"read_value", b"\x1b[31m\xffalue"),
)
TITLE, MARKUP, TURNED, FORGED = (new.decode(errors="surrogateescape") for _, new in PATCHES[:4])
NAME = "gu\x1b[31mest\n[red]"
HANDLERS = """
def before(probe, regs):
    pass


probes = [Kprobe(symbol_name="main", pre_handler=before)]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("\x1b[2Jhome\n")
    for name, new in (("recursion", NAME), ("crash", "cra\x9bsh")):
        data = (CHECKOUT / "samples" / "bin" / "x86_64" / name).read_bytes()
        for old, bad in PATCHES:
            assert len(old) == len(bad)
            data = data.replace(old, bad)
        (folder / new).write_bytes(data)
        (folder / new).chmod(0o755)
    (folder / "handlers\x1b.py").write_text(HANDLERS)
    (folder / "broken\x1b.py").write_text("probes = [1 / 0]")
    return folder


class Terminal:
    """A terminal that changes nothing of what is written to it."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        settings = termios.tcgetattr(self.slave)
        settings[1] &= ~termios.OPOST
        termios.tcsetattr(self.slave, termios.TCSANOW, settings)
        self.text = b""

    def read(self) -> None:
        """Take what is there."""
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 65536)

    def close(self) -> None:
        os.close(self.master)
        os.close(self.slave)


def on_terminal(home: Path, *words: str, guests_output: bool = False) -> tuple[int, str]:
    """Exit code and text of a command whose results and messages go to a terminal.

    Args:
        home: its directory.
        words: of the command.
        guests_output: whether standard output is the guest's, whose own it is what it writes.
    """
    terminal = Terminal()
    nothing = os.open(os.devnull, os.O_RDWR)
    out = nothing if guests_output else terminal.slave
    try:
        pid = warmed.fork(
            words, home, {**os.environ, "NO_COLOR": "1"}, (nothing, out, terminal.slave)
        )
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
            select.select([terminal.master], [], [], 0.1)
            terminal.read()
        terminal.read()
        return os.waitstatus_to_exitcode(ended[1]), terminal.text.decode()
    finally:
        os.close(nothing)
        terminal.close()


def check(text: str) -> None:
    """Nothing but printable characters, tabs and newlines."""
    bad = [line for line in text.split("\n") if not line.replace("\t", "").isprintable()]
    assert not bad


RUNNING = (
    ("trace", "-f", "*", NAME),
    ("trace", "-f", "print*", "-r", MARKUP, "--stack", "--profile", NAME),
    ("trace", "-e", "p:demo/p print text=+0(%di):string where=%ip:symbol", NAME),
    ("trace", "-e", "p:demo/p print text=+0(%di):string", "--option", "fields", NAME),
    ("trace", "-e", "p:demo/p print c=+0(%di):char a=+0(%di):char[3]", NAME),
    ("trace", "-e", "p:demo/p print text=+0(%di):string", "--format", "jsonl", NAME),
    ("trace", "-f", "*", "--format", "folded", NAME),
    ("trace", "-f", "print", "--format", "perfetto", NAME),
    ("trace", "-f", "print", "--option", "bin", NAME),
    ("trace", "-e", "syscalls/write", NAME),
    ("trace", "-e", "p:demo/p print text=+0(%di):string", "--mode", "kernel", NAME),
    ("trace", "-e", "p:demo/p print", "--buffer", "5", "--overwrite", NAME),
    ("trace", "-e", "p:demo/p print t=+0(%di):string", "--trigger", "demo/p:hist:keys=t", NAME),
    (
        *("trace", "-e", "p:demo/p print at=%ip", "--trigger", "demo/p:hist:keys=at.sym"),
        *("--trigger", "demo/p:hist:keys=common_stacktrace", NAME),
    ),
    ("trace", "-e", "p:demo/p print", "--trigger", "demo/p:hist:keys=common_comm", NAME),
    ("trace", "--handlers", "handlers\x1b.py", "--profile", NAME),
    ("trace", "--handlers", "broken\x1b.py", NAME),
    ("graph", NAME),
    ("graph", "--args", "--retval", "--option", "funcgraph-proc", NAME),
    ("graph", "--option", "funcgraph-retaddr", "--option", "funcgraph-tail", "--summary", NAME),
    ("graph", "--tracer", "function", NAME),
    ("run", "cra\x9bsh"),
    ("run", "--debug", NAME),
    ("run", "--share", "no\x1bwhere", NAME),
    ("run", "--root", "no\x1bwhere", NAME),
    ("run", "handlers\x1b.py"),
    ("run", "no such\nguest"),
    ("trace", "-e", f"p:demo/p {TITLE}nothing", NAME),
    ("trace", "-e", "p:demo/p main a=%\x1b[31m", NAME),
    ("trace", "-e", "p:demo/p main", "--filter", "demo/p:\x1b[31m == 2", NAME),
    ("trace", "-e", "p:demo/p main", "--trigger", "demo/p:\x1b[31m", NAME),
    ("trace", "-e", "@no\x1bfile", NAME),
    ("trace", "-f", "no\x1bfunction", NAME),
    ("trace", "-f", "main", "-o", "no\x1bfolder/x", NAME),
    ("trace", "--\x1bno", NAME),
    ("diff", "-f", "*", NAME),
)
ASKING = (
    ("check", "--all", NAME),
    ("check", "-f", "*", NAME),
    ("check", "-f", "*", "--json", NAME),
    ("check", "--summary", NAME),
    ("check", "-e", f"p {TURNED}+1", NAME),
    ("disasm", NAME),
    ("disasm", NAME, MARKUP),
    ("disasm", NAME, "no\x1bplace"),
    ("bt", "--at", MARKUP, NAME),
    ("bt", "--at", MARKUP, "--registers", NAME),
    ("bt", "--at", MARKUP, "--json", NAME),
    ("trace", "-e", f"p:demo/p {TITLE}", "--list", NAME),
    ("trace", "-f", "*", "--describe", NAME),
    ("trace", "-e", f"p:demo/p {TITLE}", "--list-as", "tracefs", NAME),
    ("trace", "-e", f"p:demo/p {TITLE}", "--list-as", "perf", NAME),
    ("trace", "-e", f"p:demo/p {TITLE}", "--list-as", "bpftrace", NAME),
    ("recover", "no\x1bring"),
)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(
            words,
            id=ascii(" ".join(words))[1:60],
            marks=[pytest.mark.slow] if number % 2 else [],
        )
        for number, words in enumerate(RUNNING)
    ],
)
def test_a_run_writes_nothing_that_acts(home: Path, words: tuple[str, ...]) -> None:
    code, text = on_terminal(home, *words, guests_output=True)

    check(text)
    assert text
    assert code != 125


@pytest.mark.parametrize("words", ASKING, ids=lambda words: ascii(" ".join(words))[1:60])
def test_answers_have_nothing_that_acts(home: Path, words: tuple[str, ...]) -> None:
    code, text = on_terminal(home, *words)

    check(text)
    assert text
    assert code != 125


def test_names_stay_readable(home: Path) -> None:
    _, text = on_terminal(home, "graph", NAME, guests_output=True)

    for name in (r"[red]x\33[m();", r"\33]0;own\7\n() {", r"\rforged\10%();"):
        assert name in text


def test_a_string_forges_no_line_in_a_file(home: Path) -> None:
    definition = "p:demo/p print text=+0(%di):string"
    on_terminal(home, "trace", "-e", definition, "-o", "strict", NAME, guests_output=True)
    words = ("trace", "-e", definition, "-o", "exact", "--mode", "kernel", NAME)
    on_terminal(home, *words, guests_output=True)

    strict, exact = ((home / name).read_bytes() for name in ("strict", "exact"))
    assert rb'text="\n\33]0;own\7\n(15) = "' in strict
    assert b'text="\n\x1b]0;own\x07\n(15) = "' in exact
    assert strict.replace(b"\n", b"").decode().isprintable()
