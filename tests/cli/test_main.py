"""The command group: its list of subcommands, and what a start imports."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from guestrun import run

from engine.cli import COMMANDS
from engine.cli.main import cli


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_commands_say(name: str) -> None:
    command = getattr(import_module(f"engine.cli.{name}"), name)
    assert isinstance(command, click.Command)
    assert command.name == name
    listed = click.Command(name, help=COMMANDS[name])
    for limit in (30, 60, 200):
        assert command.get_short_help_str(limit) == listed.get_short_help_str(limit)


def test_every_command_is_in_the_list() -> None:
    folder = Path(sys.modules["engine.cli"].__path__[0])
    found = set()
    for file in folder.glob("*.py"):
        command = getattr(import_module(f"engine.cli.{file.stem}"), file.stem, None)
        if isinstance(command, click.Command) and file.stem not in ("main", "interface"):
            found.add(file.stem)
    assert found == set(COMMANDS)


def test_the_list_is_sorted_and_unknown_names_are_refused() -> None:
    context = click.Context(cli)
    assert cli.list_commands(context) == sorted(cli.list_commands(context))
    assert cli.get_command(context, "nosuch") is None


def loaded_by(*words: str) -> set[str]:
    """Modules that a command line has imported when it is done."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('\\n'.join(sys.modules), file=sys.stderr))\n"
        f"sys.argv = ['kprobe-tui', *{words!r}]\n"
        "from tui.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_and_version_need_no_engine(words: tuple[str, ...]) -> None:
    loaded = loaded_by(*words)
    assert "engine.cli.main" in loaded
    ours = {name for name in loaded if name.startswith("engine.")}
    assert ours == {
        "engine.cli",
        "engine.cli.console",
        "engine.cli.main",
        "engine.errors",
        "engine.escaping",
    }


def test_a_plain_run_needs_no_probes() -> None:
    guest = Path(__file__).parents[2] / "samples" / "bin" / "x86_64" / "words"
    loaded = loaded_by("run", "--isolated", str(guest), "a")
    assert "engine.session.guest.session" in loaded
    for package in ("engine.probes", "engine.trace", "engine.unwind", "engine.fetch"):
        assert not {name for name in loaded if name.startswith(package)}, package
    for other in ("elftools", "keystone", "textual", "rich"):
        assert other not in loaded


def test_a_plain_run_opens_no_disassembler() -> None:
    """Its library takes five megabytes, and nothing of most programs has to be disassembled."""
    code = (
        "import sys\n"
        f"sys.argv = ['kprobe-tui', 'run', '--isolated', {str(SAMPLE)!r}, 'a']\n"
        "from tui.__main__ import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print(open('/proc/self/maps').read())\n"
    )
    maps = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert "libunicorn" in maps
    assert "libcapstone" not in maps


SAMPLE = Path(__file__).parents[2] / "samples" / "bin" / "x86_64" / "words"

NEVER = (
    *("asyncio", "_hashlib", "importlib.metadata", "logging", "multiprocessing", "subprocess"),
    *("capstone", "elftools", "keystone", "llvmlite", "platformdirs", "pydemumble", "pygments"),
    *("rich", "textual", "typing_extensions", "unicorn"),
)
"""Expensive modules that none of the commands below needs."""


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (9, ("--help",)),
        (209, ("run", "--isolated", str(SAMPLE), "a")),
        (284, ("check", "-f", "main", str(SAMPLE))),
        (429, ("trace", "-e", "p:x main", "-o", "/dev/null", "--isolated", str(SAMPLE), "a")),
        (506, ("bpftrace", "-e", "uprobe:main { @ = count(); }", "--isolated", "--", str(SAMPLE))),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_a_command_loads_has_a_limit(budget: int, words: tuple[str, ...]) -> None:
    """Each module of ours costs a quarter of a millisecond; the limits may only be lowered."""
    loaded = loaded_by(*words)
    ours = {name for name in loaded if name.partition(".")[0] in ("engine", "tui")}
    assert "tui.__main__" in ours
    assert len(ours) <= budget, sorted(ours)
    assert not loaded & {*NEVER}


def test_words_of_a_wrong_command_line_stay_on_their_line(tmp_path: Path) -> None:
    done = run("check", "main", "\x1b[1m\nkprobe-tui: no effect", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1] == (
        "Error: Got unexpected extra argument (\\33[1m\\nkprobe-tui: no effect)"
    )
    assert "Try 'kprobe-tui check --help' for help." in done.err.splitlines()
