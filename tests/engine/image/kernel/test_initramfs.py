"""The files of an initramfs, as cpio writes them."""

import gzip
import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ImageError
from engine.image.kernel.initramfs import initramfs_files

_FILES = {"/bin/one": b"one", "/bin/two": b"t" * 5000, "/init": b"#!/bin/sh\n", "/lib/x": b"xyzw"}


def _entry(name: str, data: bytes, mode: int = 0o100755) -> bytes:
    """An archived file, by the definition of the format."""
    raw = name.encode() + b"\0"
    fields = (1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields)
    named = head + raw
    named += bytes(-len(named) % 4)
    return named + data + bytes(-len(data) % 4)


def _archive(files: dict[str, bytes]) -> bytes:
    return b"".join(_entry(name, data) for name, data in files.items()) + _entry("TRAILER!!!", b"")


def _found(data: bytes) -> dict[str, bytes]:
    return {file.path: bytes(file.data) for file in initramfs_files(data, "initrd")}


def _written(folder: Path, *, names: str = "find . | sort") -> bytes:
    """The same files as cpio archives them."""
    if shutil.which("cpio"):
        cpio = "cpio"
    elif shutil.which("busybox"):
        cpio = "busybox cpio"
    else:
        pytest.skip("there is no cpio")
    for path, data in _FILES.items():
        place = folder / path[1:]
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(data)
    (folder / "bin" / "link").symlink_to("one")
    command = f"{names} | {cpio} -o -H newc"
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, check=True
    ).stdout


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_what_cpio_archives(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    assert _found(pack(_written(tmp_path))) == _FILES


def test_archives_stand_one_behind_the_other() -> None:
    early, late = _archive({"kernel/microcode": b"m" * 9}), _archive({"./init": b"late"})
    wanted = {"/kernel/microcode": b"m" * 9, "/init": b"late"}
    assert _found(early + bytes(512) + late) == wanted
    assert _found(early + bytes(512) + gzip.compress(late)) == wanted
    assert _found(bytes(8)) == _found(b"") == {}


def test_what_is_damaged_ends_it() -> None:
    whole = _archive({"a": b"1", "b": b"2222"})
    assert _found(whole[: len(whole) // 2]) == {"/a": b"1"}
    assert _found(whole.replace(b"070701", b"070707")) == {}
    huge = _entry("a", b"1").replace(b"%08X" % 1 + b"0" * 8, b"FFFFFFF0" + b"0" * 8, 1)
    assert _found(huge) in ({}, {"/a": b"1"})
    with pytest.raises(ImageError, match="initrd: gzip"):
        _found(gzip.compress(whole)[:-20])


def test_an_archive_that_unpacks_to_itself_ends() -> None:
    data = _archive({"a": b"1"})
    for _ in range(5):
        data = gzip.compress(data)
    assert _found(data) == {}


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes(noise: bytes, at: int) -> None:
    whole = _archive({"a": b"1" * 20, "b": b"2" * 30})
    for path, data in _found(whole[:at] + noise + whole[at:]).items():
        assert path.startswith("/")
        assert len(data) <= len(whole) + len(noise)
