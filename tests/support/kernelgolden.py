"""What kernels themselves said of their text: `tests/data/kernel/*`."""

import json
import lzma
from pathlib import Path

from kernelimages import DATA, GOLDEN


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def golden_patches(image: str) -> dict[int, bytes]:
    """Address of each place that differs in the running kernel, to the bytes there."""
    return golden_patches_of(DATA / GOLDEN[image])


def golden_patches_of(folder: Path) -> dict[int, bytes]:
    """The same by the folder of what the kernel said.

    The file has the first address, the bytes of the next part, pairs of (distance from the
    place before, size), and all bytes; or it is a list of (address, before, after) in JSON.
    """
    plain = folder / "text_patches.json.xz"
    if plain.is_file():
        rows = json.loads(lzma.decompress(plain.read_bytes()))
        return {
            int(row[0], 16) if isinstance(row[0], str) else row[0]: bytes.fromhex(row[2])
            for row in rows
        }
    data = lzma.decompress((folder / "text_patches.xz").read_bytes())
    address = int.from_bytes(data[:8], "little")
    text = end = 12 + int.from_bytes(data[8:12], "little")
    at = 12
    found: dict[int, bytes] = {}
    while at < end:
        distance, at = _varint(data, at)
        size, at = _varint(data, at)
        address += distance
        found[address] = data[text : text + size]
        text += size
    return found


def golden_blacklist(image: str) -> list[tuple[int, int, str]]:
    """Start, end and name of each line of kprobes/blacklist."""
    data = lzma.decompress((DATA / GOLDEN[image] / "kprobe_blacklist.txt.xz").read_bytes())
    found = []
    for line in data.decode().splitlines():
        places, name = line.split("\t")
        start, end = places.split("-")
        found.append((int(start, 16), int(end, 16), name))
    return found
