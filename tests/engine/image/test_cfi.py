"""Unwind records: fields, encodings, lookups with and without a table, and damage."""

import gc
import struct
import weakref
from pathlib import Path

import pytest

from engine.image import ElfImage, find_fde, function_ranges, range_at, signal_frames
from engine.image.cfi import span_at, starts_between
from engine.image.frames import PE_OMIT, FrameArea, FrameParser
from engine.image.reader import DamagedError, Reader

SECTION = 0x2000  # offset of .eh_frame in amd64/unw-O2; its address is 0x402000


def leb(value: int) -> bytes:
    """Encode a signed LEB128 number."""
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        done = value == -(byte >> 6)
        out.append(byte if done else byte | 0x80)
        if done:
            return bytes(out)


def record(body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<I", len(body)) + body


def cie(letters: bytes, data: bytes, version: int = 1, extra: bytes = b"") -> bytes:
    head = struct.pack("<IB", 0, version) + letters + b"\0" + extra + b"\x01" + leb(-8) + b"\x10"
    sized = leb(len(data)) + data if letters.startswith(b"z") else data
    return record(head + sized + b"\x0c\x07\x08\x90\x01")


def area(*records: bytes, address: int = 0x5000) -> FrameArea:
    data = b"".join(records)
    return FrameArea(".eh_frame", data, 0, len(data), address, bounded=True)


def test_fields_of_a_real_entry(guests: Path) -> None:
    image = ElfImage.open(guests / "amd64" / "unw-O2")
    fde = find_fde(image, image.entry + 3)
    assert fde is not None
    assert (fde.start, fde.size, fde.lsda) == (0x401000, 12, None)
    assert (fde.cie.section, fde.cie.version, fde.cie.augmentation) == (".eh_frame", 1, "zR")
    assert (fde.cie.code_alignment, fde.cie.data_alignment, fde.cie.return_register) == (1, -8, 16)
    assert fde.cie.instructions[:5] == bytes.fromhex("0c07089001")
    stored = image.read_vaddr(fde.instructions_address, len(fde.instructions))
    assert stored == fde.instructions
    assert find_fde(image, 0x400FFF) is None
    assert find_fde(image, 0x1) is find_fde(image, 0x500000) is None


@pytest.mark.parametrize("program", ["unw-O2", "unw-O2dbgframe"])
@pytest.mark.parametrize("walked", [False, True])
def test_spans_of_one_answer(guests: Path, program: str, walked: bool) -> None:
    image = ElfImage.open(guests / "amd64" / program)
    if walked:
        function_ranges(image)
    for address in range(0x400FF0, 0x401400):
        low, high = span_at(image, address)
        assert low <= address < high
        found = range_at(image, address)
        assert found == range_at(image, low) == range_at(image, high - 1)


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_debug_frame_says_the_same_functions(guests: Path, arch: str) -> None:
    image = ElfImage.open(guests / arch / "unw-O2dbgframe")
    assert image.section(".eh_frame") is None
    assert len(function_ranges(image)) == 17
    for start, size in function_ranges(image):
        fde = find_fde(image, start + size - 1)
        assert fde is not None
        assert (fde.start, fde.size) == (start, size)
        assert (fde.cie.section, fde.cie.fde_encoding) == (".debug_frame", 0)
        assert fde.instructions_address == 0


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_the_search_table_and_the_records_agree(guests: Path, arch: str) -> None:
    image = ElfImage.open(guests / arch / "guests-static")
    ranges = function_ranges(image)
    assert len(ranges) > 1000
    for start, size in ranges[::7]:
        for address in (start, start + size - 1):
            fde = find_fde(image, address)
            assert fde is not None
            assert (fde.start, fde.size) == (start, size)


def test_augmentations() -> None:
    parser = FrameParser(64, "<")
    letters = b"zPLRSB"
    data = b"\x9b" + struct.pack("<i", 0x100) + b"\x1b" + b"\x1b"
    common = parser.cie(area(cie(letters, data)), 0)
    assert (common.augmentation, common.fde_encoding, common.lsda_encoding) == ("zPLRSB", 27, 27)
    # pc-relative to its own place: 4 length, 4 id, 1 version, 7 letters, 5 numbers, 1 encoding
    assert common.personality == 0x5000 + 4 + 4 + 1 + 7 + 3 + 1 + 1 + 0x100
    assert common.personality_indirect
    assert common.signal_frame
    assert common.b_key
    assert common.instructions[:5] == bytes.fromhex("0c07089001")

    plain = parser.cie(area(cie(b"", b""), address=0x6000), 0)
    assert plain == parser.cie(area(cie(b"", b"")), 0), "parsed once"


def test_language_data_and_encodings() -> None:
    common = cie(b"zLR", b"\x1b\x03")
    start, size, lsda = 0x1234, 0x40, 0x80
    body = struct.pack("<III", len(common) + 4, start, size) + b"\x04" + struct.pack("<i", lsda)
    parser = FrameParser(64, "<")
    fde = parser.fde(area(common, record(body + b"\x41\x0e\x10")), len(common))
    place = 0x5000 + len(common) + 4 + 12 + 1
    assert (fde.start, fde.size, fde.lsda) == (start, size, place + lsda)
    assert fde.augmentation_data == struct.pack("<i", lsda)
    assert fde.instructions[:3] == b"\x41\x0e\x10"
    assert fde.instructions_address == place + 4

    none = struct.pack("<III", len(common) + 4, start, size) + b"\x04" + bytes(4)
    assert parser.fde(area(common, record(none)), len(common)).lsda is None


@pytest.mark.parametrize(
    ("encoding", "stored", "value"),
    [
        (0x00, struct.pack("<Q", 0x1234), 0x1234),
        (0x01, leb(0x1234), 0x1234),
        (0x02, struct.pack("<H", 0x1234), 0x1234),
        (0x04, struct.pack("<Q", 0x1234), 0x1234),
        (0x09, leb(-2), 2**64 - 2),
        (0x0A, struct.pack("<h", -2), 2**64 - 2),
        (0x0C, struct.pack("<q", 0x1234), 0x1234),
        (0x10, struct.pack("<Q", 0x34), 0x5034),
        (0x1A, struct.pack("<h", -2), 0x4FFE),
        (0x50, bytes(8), 0),
    ],
)
def test_pointer_encodings(encoding: int, stored: bytes, value: int) -> None:
    frames = area(stored)
    reader = Reader(frames.data, 0, frames.end, "<")
    assert FrameParser(64, "<").pointer(reader, encoding, 0x5000, None) == value


@pytest.mark.parametrize("encoding", [0x05, 0x0F, 0x20, 0x30, 0x40, 0x60, PE_OMIT])
def test_encodings_without_a_base_are_damage(encoding: int) -> None:
    frames = area(bytes(16))
    reader = Reader(frames.data, 0, frames.end, "<")
    with pytest.raises(DamagedError):
        FrameParser(64, "<").pointer(reader, encoding, 0, None)


DAMAGE = {
    "CIE length 0": (0, bytes(4)),
    "CIE length huge": (0, b"\xf0\xff\xff\x7f"),
    "64-bit length": (0, b"\xff\xff\xff\xff" + b"\xff" * 8),
    "unknown augmentation": (9, b"qq"),
    "FDE names itself": (0x18 + 4, b"\x04\0\0\0"),
    "CIE before the section": (0x18 + 4, b"\xff\xff\xff\x7f"),
    "all zero": (0, bytes(0x240)),
    "all ones": (0, b"\xff" * 0x240),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_loses_entries_only(unwinding: bytes, case: str) -> None:
    offset, value = DAMAGE[case]
    data = bytearray(unwinding)
    data[SECTION + offset : SECTION + offset + len(value)] = value
    image = ElfImage.from_bytes(bytes(data), case)
    ranges = function_ranges(image)
    assert len(ranges) < 17
    for start, size in ranges:
        fde = find_fde(image, start)
        assert fde is None or (fde.start, fde.size) == (start, size)


def test_a_wrong_search_table_is_dropped(binary: Path) -> None:
    whole = ElfImage.open(binary)
    header = whole.section(".eh_frame_hdr")
    if header is None:
        pytest.skip(f"{binary} was linked without .eh_frame_hdr")
    data = bytearray(whole.data(0, whole.size))
    data[header.offset + 12 : header.offset + header.size] = bytes(header.size - 12)
    image = ElfImage.from_bytes(bytes(data), "zero table")
    for start, size in function_ranges(whole)[::50]:
        fde = find_fde(image, start)
        assert fde is not None
        assert fde.size == size


def test_without_section_headers_the_segment_leads_to_the_table(binary: Path) -> None:
    whole = ElfImage.open(binary)
    if whole.section(".eh_frame_hdr") is None or whole.bits == 32:
        pytest.skip(f"{binary} was linked without .eh_frame_hdr")
    data = bytearray(whole.data(0, whole.size))
    data[40:48] = bytes(8)  # e_shoff
    image = ElfImage.from_bytes(bytes(data), "no sections")
    assert image.sections == ()
    start, size = function_ranges(whole)[-1]
    fde = find_fde(image, start)
    assert fde is not None
    assert fde.size == size
    assert function_ranges(image) == function_ranges(whole)


def test_ranges_and_signal_frames_are_those_of_the_entries(binary: Path) -> None:
    searched, walked = ElfImage.open(binary), ElfImage.open(binary)
    ranges = function_ranges(walked)
    marked = []
    for number, (start, size) in enumerate(ranges):
        fde = find_fde(searched, start)
        if fde is not None and fde.cie.signal_frame:
            marked.append((fde.start, fde.size))
        if number % 20 == 0:
            for address in (start - 1, start, start + size - 1, start + size):
                at = find_fde(searched, address)
                expected = None if at is None else (at.start, at.size)
                assert range_at(searched, address) == range_at(walked, address) == expected
    assert signal_frames(ElfImage.open(binary)) == tuple(marked)
    if binary.name.startswith("libc.so"):
        assert marked, "a C library returns from signal handlers"


@pytest.mark.parametrize("program", ["kf_nopie", "kf_pie"])
@pytest.mark.parametrize("damaged", range(-1, 5))
def test_starts_between_addresses(guests: Path, program: str, damaged: int) -> None:
    """Few of them are looked up in the search table, whose damage sends to the records."""
    data = bytearray((guests.parent / "uprobes" / program).read_bytes())
    header = ElfImage.from_bytes(bytes(data), "whole").section(".eh_frame_hdr")
    assert header is not None
    if damaged >= 0:
        data[header.offset + 12 + 8 * damaged] ^= 4  # the start in an entry of the table
    walked = ElfImage.from_bytes(bytes(data), "walked")
    starts = [start for start, _ in function_ranges(walked)]
    lows = {at + beside for at in starts for beside in (-4, -1, 0, 1, 4)}
    for low in sorted(lows):
        for size in (1, 8, 0x40):
            expected = [start for start in starts if low <= start < low + size]
            assert starts_between(walked, low, low + size) == expected
            fresh = ElfImage.from_bytes(bytes(data), "fresh")
            assert starts_between(fresh, low, low + size) == expected


def test_an_image_is_not_kept_alive(tiny: bytes) -> None:
    image = ElfImage.from_bytes(tiny, "tiny")
    assert len(function_ranges(image)) == 2
    gone = weakref.ref(image)
    del image
    gc.collect()
    assert gone() is None
