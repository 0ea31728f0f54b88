"""Runs a real command line natively and in a guest, and says in what they differ.

The lines are in tests/data/survey/lines.json; each begins in a directory of its own with the files
of `write_inputs`. A line is skipped where one of its programs is not on this machine.
"""

import hashlib
import json
import math
import os
import random
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sysroot import CHECKOUT

DATA: Final = CHECKOUT / "tests" / "data" / "survey"
USER: Final = 1000
"""The guest's user; root runs the native side as this one."""
_ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "HOME": "/tmp/kprobe-tui-survey-home",
    "TERM": "dumb",
    "OPENBLAS_NUM_THREADS": "1",
    "SOURCE_DATE_EPOCH": "0",
}
_SHELL: Final = re.compile(r"[|&;<>()$`*?\[\]{}~\n#]")
_WORDS: Final = (
    *("alpha", "beta", "gamma", "delta", "probe", "trace", "kernel", "guest", "signal", "socket"),
    *("thread", "fork", "exec", "wait", "pipe", "poll", "time", "clock"),
)
_TIME: Final = 1_000_000_000


@dataclass(frozen=True)
class Line:
    """A command line of the survey.

    Attributes:
        number: its place in the list.
        section: what kind of program it is about.
        command: the line; for a shell where it has a character that is one's own.
        needs: programs or files without which it says nothing.
        unstable: its output differs from run to run: exit code and files are compared.
        apart: files that differ from run to run, as a pattern.
        blurred: parts of the output that do, as a pattern.
        seconds: limit for the guest.
        options: further words for `kprobe-tui run`.
    """

    number: int
    section: str
    command: str
    needs: tuple[str, ...] = ()
    unstable: bool = False
    apart: str = "$^"
    blurred: str = "$^"
    seconds: int = 300
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """What a line has left: exit code, output, and files by path."""

    code: int
    out: str
    files: dict[str, str]


def lines() -> list[Line]:
    """All lines of the survey."""
    rows = json.loads((DATA / "lines.json").read_text())
    return [
        Line(number, **{**row, "needs": tuple(row.get("needs", ())),
                        "options": tuple(row.get("options", ()))})
        for number, row in enumerate(rows)
    ]  # fmt: skip


def missing(line: Line) -> str:
    """A program that the line needs and that is not here, "" for none."""
    words = shlex.split(line.command) if not _SHELL.search(line.command) else ["/bin/sh"]
    for need in (words[0], *line.needs):
        if not shutil.which(need, path=_ENVIRONMENT["PATH"]) and not os.path.exists(need):
            return need
    return ""


def natively(line: Line, folder: Path) -> Result:
    """Run a line on this machine, as an unprivileged user."""
    owner = USER if os.geteuid() == 0 else os.geteuid()
    write_inputs(folder, owner)
    home = Path(_ENVIRONMENT["HOME"])
    home.mkdir(exist_ok=True)
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    if os.geteuid() == 0:
        os.chown(home, USER, USER)
    words = [*(user if os.geteuid() == 0 else []), "timeout", "120", *_argv(line, folder)]
    return _finished(words, folder, _ENVIRONMENT, 130)


def in_guest(line: Line, folder: Path) -> Result:
    """Run a line in a guest that may write to the directory and reads all of this machine."""
    write_inputs(folder, os.geteuid())
    entries = (f"{key}={value}" for key, value in _ENVIRONMENT.items())
    environment = [word for entry in entries for word in ("--env", entry)]
    words = [
        *(sys.executable, "-m", "tui", "run", "--color", "never", "--timeout", str(line.seconds)),
        *("--root", "/", "--share", f"{folder}:rw", "--cwd", str(folder), "--memory", "3G"),
        *("--clean-env", *environment, *line.options, *_argv(line, folder)),
    ]
    return _finished(words, folder, {**os.environ}, line.seconds + 60)


def differences(line: Line, native: Result, guest: Result) -> list[str]:
    """In what a line in a guest is not as natively, in words."""
    found = []
    if native.code != guest.code:
        found.append(f"exit code {guest.code}, natively {native.code}")
    outs = [re.sub(line.blurred, "@", each.out) for each in (native, guest)]
    if outs[0] != outs[1] and not line.unstable:
        found.append(f"output {outs[1][-300:]!r}, natively {outs[0][-300:]!r}")
    names = {
        name
        for name in native.files.keys() | guest.files.keys()
        if native.files.get(name) != guest.files.get(name) and not re.search(line.apart, name)
    }
    if names:
        found.append(f"files {', '.join(sorted(names))}")
    return found


def _argv(line: Line, folder: Path) -> list[str]:
    if _SHELL.search(line.command):
        return ["/bin/sh", "-c", line.command]
    words = shlex.split(line.command)
    found = shutil.which(words[0], path=_ENVIRONMENT["PATH"])
    return [found or str(folder / words[0]), *words[1:]]


def _finished(words: list[str], folder: Path, environment: dict[str, str], limit: int) -> Result:
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=limit)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what it has left running
        except ProcessLookupError:
            pass
    return Result(process.returncode, out.decode("latin-1"), _files(folder))


def _files(folder: Path) -> dict[str, str]:
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[name] = f"{path.stat().st_mode & 0o777:o} {digest}"
        else:
            found[name] = "directory" if path.is_dir() else "special"
    return found


def write_inputs(folder: Path, owner: int) -> None:
    """Fill a directory anew with the files that lines read."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DATA / "inputs", folder)
    _write_made(folder)
    for path in (folder, *folder.rglob("*")):
        if os.geteuid() == 0:
            os.chown(path, owner, owner)
        os.utime(path, (_TIME, _TIME))


def _write_made(folder: Path) -> None:
    """Write files that a few lines of Python say better than their contents."""
    source = random.Random(7)
    text = "".join(" ".join(source.choice(_WORDS) for _ in range(8)) + "\n" for _ in range(800))
    (folder / "words.txt").write_text(text)
    changed = text.replace("gamma", "GAMMA").replace("probe trace", "probe\ntrace")
    (folder / "two.txt").write_text(changed)
    rows = (f"{n},{source.choice(_WORDS)},{source.random() * 100:.3f}\n" for n in range(300))
    (folder / "nums.csv").write_text("id,name,value\n" + "".join(rows))
    items = [
        {"id": n, "n": source.choice(_WORDS), "v": source.randrange(1000)} for n in range(100)
    ]
    (folder / "data.json").write_text(json.dumps({"items": items}))
    marks = "".join(f"<p n='{n}'>{source.choice(_WORDS)} &amp; {n}</p>" for n in range(50))
    (folder / "doc.xml").write_text(f"<doc>{marks}</doc>")
    width, height = 320, 200
    pixels = bytes(
        (x * y // 7 + k * 40) % 256 for y in range(height) for x in range(width) for k in range(3)
    )
    (folder / "p.ppm").write_bytes(b"P6\n%d %d\n255\n" % (width, height) + pixels)
    with wave.open(str(folder / "s.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(
            b"".join(
                struct.pack("<h", int(9000 * math.sin(n / 7) + source.randrange(-300, 300)))
                for n in range(8000)
            )
        )
