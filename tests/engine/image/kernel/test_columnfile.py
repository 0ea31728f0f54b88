"""Columns come back as they were, and what is damaged is told."""

import random
from array import array
from contextlib import suppress

import pytest

from engine.image.kernel.columnfile import Column, columns_of, pack_columns, read_columns

STAMP = bytes(range(32))
COLUMNS: dict[str, Column] = {
    "addresses": array("Q", [1 << 63, 7, 8]),
    "offsets": array("I", range(1000)),
    "text": b"abc",
    "none": b"",
}


def packed() -> bytes:
    return b"".join(pack_columns(COLUMNS, STAMP))


def test_columns_come_back() -> None:
    found = read_columns(packed(), STAMP)
    assert list(found.numbers("addresses")) == [1 << 63, 7, 8]
    assert list(found.numbers("offsets")) == list(range(1000))
    assert (found.bytes("text"), found.bytes("none")) == (b"abc", b"")
    same = columns_of(COLUMNS)
    assert list(same.numbers("offsets")) == list(found.numbers("offsets"))


def test_columns_of_other_code_are_not_taken() -> None:
    with pytest.raises(ValueError, match="another version"):
        read_columns(packed(), bytes(32))


def test_no_damage_goes_by() -> None:
    whole, chance = packed(), random.Random(1)
    for size in range(0, len(whole), 17):
        with pytest.raises(ValueError, match=r"."):
            read_columns(whole[:size], STAMP)
    for _ in range(400):
        data = bytearray(whole)
        data[at := chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        with suppress(ValueError):
            found = read_columns(bytes(data), STAMP)
            # Only padding may differ.
            assert list(found.numbers("offsets")) == list(range(1000)), at
            assert found.bytes("text") == b"abc"
