"""Programs of Go with goroutines in all their states, and what others say of them.

`python tests/support/goroutinekit.py` asks delve, gdb and Go's own traceback anew and writes the
file of their answers, which are those for one release of Go: lines of its runtime are among them.
"""

import json
import os
import re
import signal
import subprocess
from functools import cache
from pathlib import Path
from time import sleep
from typing import Any, Final

import pytest
from builtonce import built_once
from compiled import tool

FOLDER: Final = Path(__file__).parents[1] / "data" / "goroutines"
_ANSWERS: Final = FOLDER / "answers.json"
_HEADING: Final = re.compile(r"^[* ] Goroutine \d+ - User: .*? (\S+) \(0x\w+\)(?:.*\[(.*)\])?")
_FRAME: Final = re.compile(r"^\t *\d+  0x\w+ in (.+)\n\t +at .*?:(\d+)$", re.MULTILINE)


@cache
def _built(name: str, flags: tuple[str, ...]) -> Path | str:
    found = built_once(name, (tool("go"), "build", *flags), f"{name}.go", cwd=FOLDER)
    return f"go cannot build {name}: {found}" if isinstance(found, str) else found


def go_program(name: str, *flags: str) -> str:
    """A program of tests/data/goroutines; skips the test without a compiler.

    Args:
        name: of the source, without its suffix.
        flags: for `go build`.
    """
    found = _built(name, flags)
    if isinstance(found, str):
        pytest.skip(found)
    return str(found)


def release() -> str:
    """The compiler's release: "go1.19.8"."""
    done = subprocess.run([tool("go"), "version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[2]


def answers() -> dict[str, Any]:
    """What the others said; skips the test with another release of Go."""
    found: dict[str, Any] = json.loads(_ANSWERS.read_text())
    if found["release"] != release():
        pytest.skip(f"delve was asked with {found['release']}")
    return found


def own(functions: list[str]) -> str:
    """The function of the program that a goroutine is known by; "" for those of the runtime."""
    return next((name for name in functions if name.startswith("main.")), "")


def _delve(program: str) -> dict[str, Any]:
    """The goroutines that delve lists at `main.place`, by their own function."""
    script = FOLDER / "asked.txt"
    script.write_text("break main.place\ncontinue\ngoroutines -t 40\nquit\n")
    try:
        command = ["dlv", "exec", "--check-go-version=false", f"--init={script}"]
        command += ["--allow-non-terminal-interactive=true", program]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    finally:
        script.unlink()
    found: dict[str, Any] = {}
    for block in re.split(r"^(?=[* ] Goroutine )", text, flags=re.MULTILINE):
        heading = _HEADING.match(block)
        frames = [[name, int(line)] for name, line in _FRAME.findall(block)]
        name = own([name for name, _ in frames])
        if heading is not None and name:
            found[name] = {"user": heading[1], "wait": heading[2] or "", "frames": frames}
    return found


def _traceback(program: str) -> dict[str, str]:
    """The words in brackets of Go's own traceback, by the goroutine's own function."""
    process = subprocess.Popen(
        [program, "wait"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "GOTRACEBACK": "all"},
    )
    sleep(1)
    process.send_signal(signal.SIGQUIT)
    text = process.communicate()[1]
    found: dict[str, str] = {}
    for status, frames in re.findall(r"^goroutine \d+ \[(.*)\]:\n((?:.+\n)+)", text, re.MULTILINE):
        name = own(re.findall(r"^(main\.\w+)\(", frames, re.MULTILINE))
        if name:
            found[name] = status
    return found


def _gdb(program: str, place: str) -> list[str]:
    """The functions of gdb's backtrace at a place."""
    words = ["handle SIGSEGV nostop noprint", f"break {place}", "run", "bt"]
    command = ["gdb", "-q", "-batch", *(part for word in words for part in ("-ex", word)), program]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^#\d+ +(?:0x\w+ in )?(\S+) \(", text, re.MULTILINE)


def main() -> None:
    """Ask all of them."""
    states, stacks = go_program("states"), go_program("stacks")
    said = {
        "release": release(),
        "delve": _delve(states),
        "traceback": _traceback(states),
        "gdb": _gdb(stacks, "main.rescued"),
    }
    _ANSWERS.write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()
