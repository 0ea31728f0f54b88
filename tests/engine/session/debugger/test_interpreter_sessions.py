"""Sessions as users of gdb have them: each command's answer beside gdb's own."""

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from cguest import CHECKOUT

_DATA = CHECKOUT / "tests" / "data" / "debugger" / "sessions"
_BUILDS = {
    "ledger": ("gcc", "ledger.c", "-O0"),
    "tight": ("gcc", "tight.c", "-O2"),
    "layouts": ("g++", "layouts.cpp", "-O0"),
    "queue": ("gcc", "queue.c", "-O0"),
    "fast": ("gcc", "queue.c", "-O2"),
    "lean": ("gcc", "ledger.c", "-O2"),
    "macros": ("gcc", "macros.c", "-O0"),
}
_BLOCK = re.compile(r"\s*(commands|define|document|if|while)\b")
_GARBAGE = "locals that are not set yet hold what the stack held before"
_AFTER = "registers and memory of a program that has ended can be looked at here"
_OTHER = "the program runs in an emulator"
_STRANGE = "there are no expressions of this language"
_ADA = "gdb takes names with a number of the compiler's for Ada's and leaves the number out"
_KNOWN = {
    ("ledger_examined", "info locals"): _GARBAGE,
    ("ledger_kept", "info locals"): _GARBAGE,
    ("ledger_scripted", "x/i $pc"): _AFTER,
    ("ledger_scripted", "p first"): _AFTER,
    ("ledger_scripted", "p total_calls"): _AFTER,
    ("fast_tail", "frame function middle_link"): "gdb finds no such frame by its name",
    ("ledger_held", "info locals"): _GARBAGE,
    ("lean_held", "info locals"): _GARBAGE,
    ("queue_first", "info locals"): _GARBAGE,
    ("queue_first", "p pending.count"): _AFTER,
    ("queue_first", "x/i $pc"): _AFTER,
    ("fast_first", "p pending.count"): _AFTER,
    ("fast_first", "x/i $pc"): _AFTER,
    ("queue_second", "info inferiors"): _OTHER,
    ("fast_second", "info inferiors"): _OTHER,
    ("queue_second", "set language pascal"): _STRANGE,
    ("fast_second", "set language pascal"): _STRANGE,
    ("queue_second", "info variables prime"): _ADA,
    ("fast_second", "info variables prime"): _ADA,
    ("fast_second", "info watchpoints"): "gdb steps for what lies behind a register",
    ("tight", "disassemble /s lost"): "gdb starts with the line before the first one, too",
}
"""Commands whose answers may differ, and why."""
_LEAST = 0.95


@cache
def _program(folder: Path, name: str) -> Path:
    compiler, source, level = _BUILDS[name]
    if shutil.which(compiler) is None or shutil.which("gdb") is None:
        pytest.skip(f"{compiler} or gdb is not installed")
    program = folder / name
    command = [compiler, "-g3", level, "-no-pie", "-static", "-o", str(program), source]
    subprocess.run(command, check=True, cwd=_DATA)
    return program


def _commands(script: str) -> list[str]:
    """The commands of a script; those with blocks are several lines."""
    script = script.replace("fast", "queue").replace("lean", "ledger")
    found: list[str] = []
    lines = iter((_DATA / f"{script}.gdb").read_text().splitlines())
    for line in lines:
        block, depth = [line], int(_BLOCK.match(line) is not None)
        while depth:
            inner = next(lines)
            block.append(inner)
            depth += (_BLOCK.match(inner) is not None) - (inner.strip() == "end")
        found.append("\n".join(block))
    return found


def _answers(tool: list[str], commands: list[str], program: Path, folder: Path) -> list[str]:
    """What a debugger says to each command."""
    words = ["-ex", "set confirm off", "-ex", "set width 0"]
    for number, command in enumerate(commands):
        words += ["-ex", f"echo @@@{number}\\n"]
        if "\n" in command:
            file = folder / f"block{number}"
            file.write_text(command + "\n")
            words += ["-x", str(file)]
        else:
            words += ["-ex", command]
    done = subprocess.run(
        [*tool, *words, program],
        cwd=CHECKOUT,
        env={"PATH": "/usr/bin:/bin", "LANG": "C", "HOME": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=300,
    )
    said = done.stdout.decode(errors="replace")
    if "Error disabling address space randomization" in said or "ptrace" in said:
        pytest.skip(f"gdb cannot run programs here: {said.splitlines()[0]}")
    if "Could not insert hardware" in said:
        pytest.skip("gdb has no watchpoints of the processor here")
    parts = re.split(r"@@@\d+\n", said)[1:]
    return [_plain(part) for part in parts]


def _plain(text: str) -> str:
    """Without addresses, numbers of processes, columns as wide as these, and remarks of ours."""
    text = re.sub(r"^(warning: |.*libthread_db).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"0x[0-9a-f]{7,16}",
        lambda match: "ADDRESS" if int(match[0], 16) > 0x500000 else match[0],
        text,
    )
    text = re.sub(r"\$\d+ = ", "$N = ", text)
    text = re.sub(r"(process|LWP) \d+", "process N", text)
    if "Target Id" in text:
        text = re.sub(" +", " ", text)
    return re.sub(r"^\S*block\d+:\d+: ", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "script",
    [
        "layouts",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                *("ledger_looked", "ledger_examined", "ledger_changed", "ledger_scripted"),
                *("ledger_asked", "ledger_kept", "tight", "tight_kept"),
                *("queue_first", "queue_second", "queue_tail"),
                *("fast_first", "fast_second", "fast_tail", "macros"),
                *("ledger_held", "lean_held"),
            )
        ),
    ],
)
def test_each_command_is_answered_as_gdb_does(tmp_path: Path, script: str) -> None:
    program = _program(tmp_path, script.partition("_")[0])
    commands = _commands(script)
    theirs = _answers(["gdb", "-q", "--batch", "-nx"], commands, program, tmp_path)
    ours = _answers([sys.executable, "-m", "tui", "--batch"], commands, program, tmp_path)
    assert len(theirs) == len(ours) == len(commands)
    differing = [
        (command, want, got)
        for command, want, got in zip(commands, theirs, ours, strict=True)
        if want != got
    ]
    unknown = [one for one in differing if (script, one[0]) not in _KNOWN]
    assert not unknown
    assert len(differing) <= round((1 - _LEAST) * len(commands))
