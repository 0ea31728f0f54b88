"""A decoder of Protocol Buffers' wire format, for what the engine writes."""

from collections.abc import Iterator
from typing import Any


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of a message's fields: numbers, or bytes."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        else:
            assert tag & 7 == 2
            size = number()
            yield tag >> 3, data[at : at + size]
            at += size
    assert at == len(data)


def packets(data: bytes) -> list[dict[int, Any]]:
    found = []
    for number, packet in fields(data):
        assert number == 1
        found.append(dict(fields(packet)))
    return found
