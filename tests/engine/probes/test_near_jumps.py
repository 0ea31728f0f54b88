"""All that looks like a near jump, found by where it goes."""

import random
import re
import struct

import pytest

from engine.image import ElfImage
from engine.image.headers import PF_R, PF_X
from engine.probes import near_jumps as subject
from engine.probes.near_jumps import NearJumps

_START = 0x40_0000
_JUMP = re.compile(rb"\xe9|\x0f[\x80-\x8f]")


def _file(code: bytes, flags: int = PF_R | PF_X) -> ElfImage:
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\2\1\1",
        *(2, 62, 1, _START, 64, 0, 0, 64, 56, 1, 64, 0, 0),
    )
    size = len(code)
    head += struct.pack("<IIQQQQQQ", 1, flags, 0x1000, _START, _START, size, size, 0x1000)
    return ElfImage.from_bytes(head.ljust(0x1000, b"\0") + code, "jumps")


def _all(code: bytes) -> list[tuple[int, int]]:
    found = []
    for match in _JUMP.finditer(code):
        at = match.end()
        distance = int.from_bytes(code[at : at + 4], "little", signed=True)
        target = at + 4 + distance
        if 0 <= target < len(code):
            found.append((_START + target, _START + match.start()))
    return sorted(found)


def _jumping(size: int, seed: int) -> bytes:
    """Code with jumps of both forms to all parts of it, some of them to nowhere."""
    chance = random.Random(seed)
    code = bytearray(b"\x90" * size)
    for _ in range(size // 16):
        at = chance.randrange(size - 6)
        opcode = chance.choice((b"\xe9", b"\x0f\x84"))
        distance = chance.randrange(-size, size)
        code[at : at + len(opcode) + 4] = opcode + struct.pack("<i", distance)
    return bytes(code)


@pytest.mark.parametrize("piece", [1 << 20, 1000])
def test_they_are_found_by_their_targets(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any range, over borders of parts and of pieces, in order."""
    monkeypatch.setattr(subject, "_PIECE", piece)
    monkeypatch.setattr(subject, "_PART", 12)
    monkeypatch.setattr(subject, "_TARGET", (1 << 12) - 1)
    code = _jumping(20_000, 1)
    expected, found = _all(code), NearJumps(_file(code))
    assert len(expected) > 400
    chance = random.Random(2)
    ends = [(chance.randrange(-50, 21_000), chance.choice((0, 1, 7, 5000))) for _ in range(300)]
    for begin, size in [(0, 20_000), *ends]:
        start, end = _START + begin, _START + begin + size
        wanted = [row for row in expected if start <= row[0] < end]
        assert found.into(start, end) == wanted


def test_a_file_without_code_has_none() -> None:
    """Nor has an empty range."""
    data = _file(b"\xe9\0\0\0\0" + bytes(8), PF_R)
    assert NearJumps(data).into(0, 1 << 40) == []
    code = _file(b"\xe9\0\0\0\0" + bytes(8))
    assert NearJumps(code).into(_START + 5, _START + 5) == []
    assert NearJumps(code).into(0, 1 << 40) == [(_START + 5, _START)]
