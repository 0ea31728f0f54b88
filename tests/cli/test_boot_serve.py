"""`kprobe-tui serve --boot`: bad usage is one clear error."""

from pathlib import Path

import pytest
from guestrun import run
from kernelimages import AMD64_61, image_path


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("serve", "--boot", "KERNEL"), "Missing option '--gdb'"),
        (("serve", "--boot", "--gdb", "stdio", "KERNEL"), "give gdb an address"),
        (("serve", "--boot", "--gdb", "unix:socket", "/bin/true"), "no kernel image"),
        (("serve", "--boot", "--gdb", "unix:socket", "missing"), "missing"),
        (
            ("serve", "--boot", "--gdb", "unix:socket", "--memory", "1M", "KERNEL"),
            "--memory: a machine has",
        ),
    ],
)
def test_bad_usage(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    """Exit code 2, without a traceback."""
    kernel = str(image_path(AMD64_61)) if "KERNEL" in words else ""
    done = run(*(kernel if word == "KERNEL" else word for word in words), cwd=tmp_path)
    assert done.code == 2
    assert told in done.err
    assert "Traceback" not in done.err
