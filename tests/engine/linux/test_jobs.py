"""Job control: a shell with jobs says the same on the host's kernel and on ours."""

import fcntl
import os
import pty
import re
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import warmed

_JOBS = """
sleep 1000 &
jobs
kill -STOP %1
while [ "$(jobs -s)" = "" ]; do :; done
bg %1
jobs -r
{ kill -TERM %1; wait $!; } 2> /dev/null; echo status $?
sh -c 'kill -TSTP $$; echo resumed'
jobs
fg %1
jobs
{ read -r line; exit $?; } &
while [ "$(jobs -s)" = "" ]; do :; done
kill -CONT %1
while [ "$(jobs -s)" = "" ]; do :; done
jobs -s
{ kill -KILL %1; wait %1; } 2> /dev/null
true | false | true
echo ${PIPESTATUS[@]}
(trap 'echo int; exit 3' INT; kill -INT 0; echo never)
echo $?
stty -echo; stty echo
exec 3</dev/tty; echo $?
tty < /dev/tty > /dev/null; echo $?
tty > /dev/null; echo $?
exit 7
"""

_INTERRUPTED = """
trap 'echo outer' INT
sh -c 'trap "echo inner; exit 5" INT; echo ready; while :; do :; done'
echo $?
exit 6
"""


def _at_terminal(words: list[str], cwd: Path, keys: dict[bytes, bytes]) -> tuple[str, int]:
    """What a command says on a terminal that controls its session, and its exit code.

    `keys` are typed once the texts before them have been seen.
    """
    master, slave = pty.openpty()
    process = subprocess.Popen(
        words,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "LANG": "C", "TERM": "dumb", **warmed.SAME_CODE},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    said, waiting = b"", dict(keys)
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        said += piece
        for text in [each for each in waiting if each in said]:
            os.write(master, waiting.pop(text))
    os.close(master)
    return said.decode().replace("\r\n", "\n"), process.wait()


def _facts(said: str) -> list[str]:
    """Lines without process ids, and without what depends on when a shell looks at its jobs."""
    lines = [line for line in said.splitlines() if line and not re.match(r"\[1\] \d+$", line)]
    lines = [line for line in lines if "Killed " not in line and "Terminated " not in line]
    return [line for at, line in enumerate(lines) if not at or lines[at - 1] != line]


@pytest.mark.parametrize("option", [pytest.param("-mc", marks=pytest.mark.slow), "-ic"])
@pytest.mark.parametrize(
    ("script", "keys"), [(_JOBS, {}), (_INTERRUPTED, {b"ready": b"\x03"})], ids=["jobs", "keys"]
)
def test_a_shell_with_jobs(
    option: str, script: str, keys: dict[bytes, bytes], tmp_path: Path
) -> None:
    bash = shutil.which("bash", path="/usr/bin:/bin")
    if bash is None or os.uname().machine != "x86_64":
        pytest.skip("the oracle is bash on an x86-64 host")
    words = [bash, "--norc", option, script]
    limit = shutil.which("timeout")
    want, code = _at_terminal(
        [*([limit, "--foreground", "50"] if limit else []), *words], tmp_path, keys
    )
    command = [sys.executable, "-m", "tui", "run", "--root", "/", "--clean-env", "--timeout", "50"]
    for entry in ("PATH=/usr/bin:/bin", "LANG=C", "TERM=dumb"):
        command += ["--env", entry]
    got, ours = _at_terminal([*command, "--", *words], tmp_path, keys)
    assert _facts(got) == _facts(want)
    assert ours == code
