"""The contract of `kprobe-tui live` on a machine that it may not use: one line, exit code 2."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from sysroot import CHECKOUT
from warmed import SAME_CODE

from engine.cli.diff import diff
from engine.cli.live import live
from engine.errors import CommandError

SAMPLES = CHECKOUT / "samples" / "bin"
SORT = str(SAMPLES / "x86_64" / "sort")
PLACES_NOTHING = ("-f", "no_function_has_this_name")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((SORT,), "nothing to trace: give -e DEF, -f GLOB or -r GLOB"),
        (("-f", "main", "--pid", "x"), "'x' is no id"),
        (("-f", "main", "--duration", "0", SORT), "--duration"),
        (("-f", "main", "--kernel-buffer", "1", SORT), "--kernel-buffer"),
    ],
)
def test_usage(words: tuple[str, ...], text: str) -> None:
    done = CliRunner().invoke(live, words)
    assert done.exit_code == 2
    assert text in done.output


def test_no_file_and_no_image_of_the_running_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.session.headless.live._IMAGES", ("/nowhere/vmlinuz-{}",))
    with pytest.raises(CommandError, match=r"a definition names the file .* give it as GUEST"):
        CliRunner().invoke(live, ["-f", "main"], catch_exceptions=False)


@pytest.mark.parametrize("option", [("--served",), ("--isolated",), ("--root", "/")])
def test_a_comparison_takes_nothing_that_only_a_guest_has(option: tuple[str, ...]) -> None:
    done = CliRunner().invoke(diff, ["--live", "-f", "main", *option, SORT])
    assert done.exit_code == 2
    assert f"not with {option[0]}" in done.output


AS_NOBODY = """
import difflib, os, sys  # click asks for the first one later, which nobody may read
import engine.cli.live
from engine.cli.main import main
if os.geteuid() == 0:
    os.setuid(65534)
sys.exit(main(sys.argv[1:], None))
"""


def test_who_may_not_is_told_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, "live", *PLACES_NOTHING, SORT],
        cwd=tmp_path,
        env={**os.environ, **SAME_CODE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "kprobe-tui: live changes the running kernel's tracing: only root may do so\n"
    )


def test_a_machine_without_tracefs(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        pytest.skip("needs root for a mount namespace without tracefs")
    words = (*PLACES_NOTHING, SORT)
    script = 'umount -a -t tracefs; exec "$@"'
    done = subprocess.run(
        [*(unshare, "-m", "sh", "-c", script, "sh", sys.executable, "-m", "tui", "live"), *words],
        cwd=tmp_path,
        env={**os.environ, **SAME_CODE},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "kprobe-tui: no tracefs is mounted: mount -t tracefs nodev /sys/kernel/tracing"
    )
