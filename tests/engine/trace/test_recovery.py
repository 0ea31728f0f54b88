"""`FILE.ring` files that somebody else has written: an error of ours, or events."""

import json
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.errors import KprobeTuiError
from engine.session.headless.recovery import recovered_text
from engine.trace.ring_file import PLACES, RECORD, RingFile, describe

_ODD: tuple[Any, ...] = (
    *(0, -1, 1 << 63, 1 << 64, 1e400, float("nan"), None, True, "", "x" * 5000, [], {}, [[[]]]),
    *("9" * 5000, "u64", "string"),
)
EVENT = {
    "id": 1,
    "group": "g",
    "name": "e",
    "returns": False,
    "symbolic": True,
    "source": 0,
    "columns": [
        {"name": "n", "kind": 0, "size": 4, "count": 0, "width": 0, "offset": 0, "ctype": "s32"}
    ],
}


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = (
        range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
    )
    for key in keys:
        yield (*path, key)
        yield from spots(value[key], (*path, key))


@pytest.fixture
def ring(tmp_path: Path) -> bytes:
    """The bytes of a ring file, with a description and some rows."""
    file = RingFile(tmp_path / "t.ring", 1 << 16)
    file.describe({**describe((), "x86_64", {"format": "ftrace"}), "events": [EVENT]})
    file.install()
    data = (tmp_path / "t.ring").read_bytes()
    file.close()
    return data


def described(data: bytes, text: bytes) -> bytes:
    """The same ring with another description."""
    (turn,) = struct.unpack_from("<Q", data, 64)
    record = list(RECORD.unpack_from(data, PLACES[turn]))
    record[4:7] = len(data), len(text), zlib.crc32(text)
    raw = RECORD.pack(*record)[:-4]
    made = bytearray(data + text)
    made[PLACES[turn] : PLACES[turn] + RECORD.size] = raw + struct.pack("<I", zlib.crc32(raw))
    return bytes(made)


def test_mutants(ring: bytes, tmp_path: Path) -> None:
    """Bytes, and values of the description with the checksums that they have."""
    random.seed(2)
    base = {
        **describe((), "x86_64", {"format": "ftrace"}),
        "events": [EVENT],
        "symbols": {"4096": "main"},
    }
    refused = 0
    for number in range(400):
        if number % 3:
            value = json.loads(json.dumps(base))
            *path, last = random.choice(list(spots(value)))
            holder = value
            for key in path:
                holder = holder[key]
            holder[last] = random.choice(_ODD)
            made = described(ring, json.dumps(value).encode())
        else:
            flipped = bytearray(ring)
            flipped[random.randrange(4608)] = random.randrange(256)
            made = bytes(flipped)
        (tmp_path / "m.ring").write_bytes(made)
        try:
            recovered_text(str(tmp_path / "m.ring"), "ftrace")
        except KprobeTuiError:
            refused += 1
    assert 0 < refused < 400


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"events": 1e400}', b"9" * 5000, b"\xff"])
def test_descriptions_that_are_none(ring: bytes, tmp_path: Path, text: bytes) -> None:
    (tmp_path / "m.ring").write_bytes(described(ring, text))
    with pytest.raises(KprobeTuiError):
        recovered_text(str(tmp_path / "m.ring"))
