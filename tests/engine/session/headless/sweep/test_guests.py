"""What a sweep knows of a file before it runs."""

import hashlib
import os
from pathlib import Path

import pytest

from engine.session.headless.sweep.guests import architecture, content_digest

SAMPLES = Path(__file__).parents[5] / "samples"


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_programs_have_an_architecture(arch: str) -> None:
    path = SAMPLES / "bin" / arch / "words"
    assert architecture(str(path)) == arch
    assert content_digest(str(path)) == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("at", "data"),
    [(0, b"\x7fELG"), (4, b"\1"), (5, b"\2"), (5, b"\7"), (16, b"\1\0"), (18, b"\xff\xff")],
    ids=["magic", "class", "order", "no order", "object file", "machine"],
)
def test_other_files_have_none(at: int, data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a"
    head = bytearray((SAMPLES / "bin" / "x86_64" / "words").read_bytes()[:64])
    head[at : at + len(data)] = data
    file.write_bytes(head)
    assert architecture(str(file)) is None
    file.write_bytes(head[:19])
    assert architecture(str(file)) is None


def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "fifo"):
        assert architecture(str(path)) is None
        with pytest.raises(OSError, match="not a plain file"):
            content_digest(str(path))
