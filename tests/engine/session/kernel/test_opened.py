"""Kernel images that are cut short or damaged give one clear error, or answers with a remark."""

import random
import re
from contextlib import suppress
from pathlib import Path

import pytest
from kernelimages import AMD64_61, SLOW_ARM64, image_path

from engine.errors import KprobeTuiError
from engine.image.kernel.packing import unpacked
from engine.session.kernel.definition_answers import defined_rows
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import KernelChoice

LINES = ("p:a/b vfs_read", "p:a/c vfs_read+5 n=+8(%si):u64", "r:a/d vfs_write $retval")
DIGITS = re.escape(b"".join(b"%d\0" % digit for digit in range(10)))


def answers(path: Path) -> list[str]:
    """The answers to some definitions; the error in words where there are none."""
    try:
        opened = OpenedKernel.open(path, KernelChoice())
        return [row.reason for row in defined_rows(opened, LINES, sequence=False)]
    except KprobeTuiError as error:
        return [str(error).replace(str(path), "IMAGE")]


@pytest.fixture(scope="module")
def plain() -> bytes:
    """An image without its wrappers."""
    path = image_path(AMD64_61)
    return bytes(unpacked(path.read_bytes(), path.name)[:])


@pytest.mark.parametrize("name", [AMD64_61, SLOW_ARM64])
def test_an_image_cut_short_is_told(name: str, tmp_path: Path) -> None:
    whole = image_path(name).read_bytes()
    for part in (1, 100, 0x300, 5000, len(whole) // 2):
        (tmp_path / "cut").write_bytes(whole[:part])
        (told,) = answers(tmp_path / "cut")
        assert told.startswith("IMAGE: ")


def test_a_kallsyms_without_its_index_is_told(plain: bytes, tmp_path: Path) -> None:
    data = bytearray(plain)
    for match in re.finditer(DIGITS, plain):
        data[match.start()] ^= 1
    (tmp_path / "names").write_bytes(data)
    (told,) = answers(tmp_path / "names")
    assert told.startswith("IMAGE: kallsyms: no token table")


@pytest.mark.slow
def test_damaged_types_cost_types_alone(plain: bytes, tmp_path: Path) -> None:
    at = plain.index(b"\x9f\xeb\x01\x00\x18\x00\x00\x00")
    data = bytearray(plain)
    data[at + 40 : at + 20000] = b"\xff" * (20000 - 40)
    (tmp_path / "types").write_bytes(data)
    opened = OpenedKernel.open(tmp_path / "types", KernelChoice())
    rows = list(defined_rows(opened, LINES, sequence=False))
    assert [row.ok for row in rows] == [True, True, True]
    assert any(".BTF" in line for line in opened.image.elf.damage.found())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_bytes_at_random_are_never_a_traceback(seed: int, plain: bytes, tmp_path: Path) -> None:
    chance = random.Random(seed)
    data = bytearray(plain)
    for _ in range(chance.choice((100, 10_000, 300_000))):
        data[chance.randrange(len(data))] = chance.randrange(256)
    data[:64] = plain[:64]
    (tmp_path / "noise").write_bytes(data)
    with suppress(KprobeTuiError):
        opened = OpenedKernel.open(tmp_path / "noise", KernelChoice())
        for row in defined_rows(opened, LINES, sequence=True):
            assert row.reason
