"""What opens, what is refused with which words, and where addresses lead."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ImageError
from engine.image import ElfImage, Lines, SymbolTable, find_fde, function_ranges

PHDR = 64  # offset of the first program header of `tiny`; each has 56 bytes


def patched(data: bytes, *changes: tuple[int, bytes]) -> bytes:
    """Overwrite bytes at offsets."""
    copy = bytearray(data)
    for offset, replacement in changes:
        copy[offset : offset + len(replacement)] = replacement
    return bytes(copy)


def quad(value: int) -> bytes:
    return struct.pack("<Q", value)


def half(value: int) -> bytes:
    return struct.pack("<H", value)


def test_facts_of_a_static_program(guests: Path) -> None:
    image = ElfImage.open(guests / "amd64" / "tiny")
    assert (image.bits, image.byteorder, image.kind) == (64, "little", "exec")
    assert (image.machine, image.machine_name) == (62, "EM_X86_64")
    assert (image.entry, image.phoff, image.phentsize, image.phnum) == (0x401000, 64, 56, 4)
    assert [(s.offset, s.vaddr, s.memsz, s.flags) for s in image.load_segments] == [
        (0, 0x400000, 0x120, 4),
        (0x1000, 0x401000, 0x44, 5),
        (0x2000, 0x402000, 0x68, 4),
    ]
    assert (image.interpreter, image.stack_executable) == (None, False)
    assert (image.needed, image.soname, image.build_id) == ((), None, None)
    assert (image.low, image.high) == (0x400000, 0x402068)
    assert [section.name for section in image.sections][1:4] == [".text", ".rodata", ".eh_frame"]
    assert image.file_size == image.size == 8768
    assert image.damage.found() == ()


def test_addresses_and_offsets(guests: Path) -> None:
    image = ElfImage.open(guests / "amd64" / "unw-O2")
    assert image.file_offset(0x401010) == 0x1010
    assert image.vaddr_of(0x1010) == 0x401010
    assert image.file_offset(0x403000) is None, "bss is not stored"
    assert image.file_offset(0x500000) is None
    assert image.vaddr_of(0x4000) is None, "debug sections are not loaded"
    assert image.read_vaddr(0x401000, 4) == image.data(0x1000, 4)
    assert image.read_vaddr(0x403000, 100) == bytes(8), "the segment has 8 bytes"
    assert image.read_vaddr(0x500000, 4) == b""
    assert image.data(image.size - 2, 10) == image.data(image.size - 2, 2)


REFUSED = {
    "magic": ((0, b"\0"), "is not an ELF file"),
    "class": ((4, b"\3"), "class is 3"),
    "32-bit x86-64": ((4, b"\1"), "a 32-bit file for EM_X86_64"),
    "byte order": ((5, b"\0"), "byte order is 0"),
    "big-endian": ((5, b"\2"), "unknown type 0x200"),
    "object file": ((16, half(1)), "link it first"),
    "core dump": ((16, half(4)), "core dump"),
    "no phdrs": ((56, half(0)), "no program headers"),
    "phentsize": ((54, half(0)), "e_phentsize is 0, must be 56"),
    "many phdrs": ((56, half(0xFFFE)), "65534 program headers; Linux loads at most 1170"),
    "PN_XNUM": ((56, half(0xFFFF)), "65535 program headers"),
    "phoff": ((32, quad(0x2628)), "past the end of the file"),
    "phoff wraps": ((32, quad(2**64 - 56)), "past the end of the file"),
    "filesz": ((PHDR + 32, quad(0x200)), "program header 0: p_filesz 0x200 is larger than"),
    "wrap": ((PHDR + 16, quad(2**64 - 0x1000)), "wraps around the address space"),
    "offset": ((PHDR + 8, quad(1)), "program header 0: p_offset 0x1 and p_vaddr 0x400000 differ"),
    "big offset": ((PHDR + 8, quad(2**64 - 0x1000)), "is no file offset"),
    "PT_INTERP empty": ((PHDR, b"\3\0\0\0" + bytes(4) + bytes(24) + quad(0)), "a path of 0 bytes"),
    "PT_INTERP text": ((PHDR, b"\3" + bytes(31) + quad(3)), "does not end with a NUL"),
    "PT_INTERP long": ((PHDR, b"\3" + bytes(31) + quad(5002)), "a path of 5002 bytes"),
    "PT_INTERP outside": ((PHDR, b"\3" + bytes(7) + quad(0x2230)), "behind the end of the file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusal_names_file_and_place(tiny: bytes, case: str) -> None:
    change, words = REFUSED[case]
    with pytest.raises(ImageError) as caught:
        ElfImage.from_bytes(patched(tiny, change), "guest.elf")
    assert words in str(caught.value)
    assert str(caught.value).startswith("guest.elf: ")


IGNORED = {
    "EI_VERSION": (6, b"\0"),
    "OSABI": (7, b"\3"),
    "ET_DYN": (16, half(3)),
    "e_version": (20, b"\2"),
    "entry 0": (24, quad(0)),
    "e_ehsize": (52, half(0xFFFF)),
    "no flags": (PHDR + 4, bytes(4)),
    "huge bss": (PHDR + 40, quad(1 << 44)),
    "kernel address": (PHDR + 16, quad(0xFFFF_8000_0000_0000)),
    "odd alignment": (PHDR + 48, quad(3)),
    "foreign segment": (PHDR, b"\0\0\0\x70"),
}


@pytest.mark.parametrize("case", IGNORED)
def test_linux_accepts_it_and_so_do_we(tiny: bytes, case: str) -> None:
    image = ElfImage.from_bytes(patched(tiny, IGNORED[case]), "guest.elf")
    assert image.phnum == 4


SECTION_DAMAGE = {
    "e_shoff": (40, quad(2**64 - 1), "outside the file"),
    "e_shentsize": (58, half(63), "e_shentsize is 63"),
    "e_shnum": (60, half(0xFEFF), "outside the file"),
    "e_shstrndx": (62, half(0xFF), "no usable .shstrtab"),
}


@pytest.mark.parametrize("case", SECTION_DAMAGE)
def test_damaged_sections_only_cost_names(tiny: bytes, case: str) -> None:
    offset, value, words = SECTION_DAMAGE[case]
    image = ElfImage.from_bytes(patched(tiny, (offset, value)), "guest.elf")
    assert image.section(".text") is None
    assert words in image.damage.found()[0]
    assert len(SymbolTable(image)) == 0


def test_every_truncation_is_refused_or_opens(tiny: bytes) -> None:
    opened = []
    for size in range(400):
        try:
            opened.append(ElfImage.from_bytes(tiny[:size], "cut").size)
        except ImageError:
            continue
    assert opened == list(range(288, 400)), "64 + 4 * 56 bytes hold all headers"


def test_pages_behind_the_end_of_the_file_read_short(tiny: bytes) -> None:
    image = ElfImage.from_bytes(tiny[:0x1010], "cut")
    assert image.load_segments[1].offset + image.load_segments[1].filesz > image.file_size
    assert len(image.read_vaddr(0x401000, 0x44)) == 0x10
    assert image.read_vaddr(0x402000, 8) == b""


def test_user_space_limit(tiny: bytes) -> None:
    image = ElfImage.from_bytes(patched(tiny, (PHDR + 40, quad(1 << 46))), "big")
    image.validate_for_task(1 << 47)
    with pytest.raises(ImageError, match=r"program header 0: .* beyond user space"):
        image.validate_for_task(1 << 46)
    with pytest.raises(ImageError, match="beyond user space"):
        image.validate_for_task(1 << 47, base=1 << 46)


def test_the_last_stack_header_counts(tiny: bytes) -> None:
    executable = patched(tiny, (PHDR + 3 * 56 + 4, b"\7"))
    assert ElfImage.from_bytes(executable, "x").stack_executable is True
    without = patched(tiny, (PHDR + 3 * 56, bytes(4)))
    assert ElfImage.from_bytes(without, "x").stack_executable is None


def test_a_later_segment_lies_over_an_earlier_one(tiny: bytes) -> None:
    overlap = patched(tiny, (PHDR + 16, quad(0x401000)))
    image = ElfImage.from_bytes(overlap, "x")
    assert image.file_offset(0x401000) == 0x1000
    assert image.file_offset(0x401100) == 0x100


OTHER_FILES = {
    "empty": (b"", "the file is empty"),
    "one byte": (b"\x7f", "ends inside the ELF magic"),
    "script": (b"#!/bin/sh -e\necho\n", "is a script for /bin/sh -e; run that program"),
    "bare script": (b"#!\n", "without an interpreter"),
    "text": ("Grüße\n".encode(), "is a text file"),
    "binary": (b"\xff" * 512, "starts with ff ff ff ff"),
    "exe": (b"MZ\x90\0", "Windows"),
    "archive": (b"!<arch>\n", "archive of object files"),
}


@pytest.mark.parametrize("case", OTHER_FILES)
def test_other_files_are_recognised(tmp_path: Path, case: str) -> None:
    data, words = OTHER_FILES[case]
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ImageError) as caught:
        ElfImage.open(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, words in (
        (tmp_path, "is a directory"),
        (fifo, "no regular file"),
        (Path(os.devnull), "no regular file"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "a\0b", "null"),
    ):
        with pytest.raises(ImageError, match=words):
            ElfImage.open(path)


def use_everything(image: ElfImage) -> None:
    """Ask each part of the package; nothing may raise."""
    assert image.build_id is None or bytes.fromhex(image.build_id)
    assert isinstance(image.needed, tuple)
    assert image.soname is None or image.soname
    table = SymbolTable(image)
    functions = table.functions()
    for symbol in [*functions[:20], *table]:
        assert symbol.demangled
    for name in [*table.complete("", 20), "main", "ns::f(int)", "puts@plt", "func_0x401000"]:
        table.find(name)
    ranges = function_ranges(image)
    lines = Lines(image, debug_dirs=())
    for start, size in ranges[:40]:
        assert any(s.covers(start, size) for s in image.load_segments)
        for address in (start, start + size - 1):
            table.at(address)
            find_fde(image, address)
            lines.line_at(address)
    table.at(image.entry)
    lines.files()
    lines.addresses_of("unw.c", 40)
    assert all(isinstance(p, str) for p in image.damage.found())


MUTATION = st.tuples(
    st.integers(0, 1 << 15),
    st.one_of(
        st.binary(min_size=1, max_size=8),
        st.sampled_from([b"\xff" * 8, bytes(8), b"\x7f\xff", b"\x80", b"\xff\xff\xff\xff"]),
    ),
)


@given(st.lists(MUTATION, min_size=1, max_size=12), st.booleans())
@settings(max_examples=300, deadline=None)
def test_only_image_errors_escape(
    tiny: bytes, unwinding: bytes, mutations: list[tuple[int, bytes]], small: bool
) -> None:
    base = tiny if small else unwinding
    data = patched(base, *((at % len(base), value) for at, value in mutations))[: len(base)]
    try:
        image = ElfImage.from_bytes(data, "mutant")
    except ImageError:
        return
    use_everything(image)


@given(
    st.sampled_from([(0x2000, 0x240), (0x2297, 0xAA1), (0x2D38, 0x248), (0x2F80, 0x582)]),
    st.lists(st.tuples(st.integers(0, 1 << 12), MUTATION.map(lambda m: m[1])), min_size=1),
)
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_damage_in_unwind_and_debug_sections_is_no_information(
    unwinding: bytes, section: tuple[int, int], mutations: list[tuple[int, bytes]]
) -> None:
    start, size = section  # .eh_frame, .debug_info, .debug_abbrev, .debug_line
    changes = ((start + at % size, value[: size - at % size]) for at, value in mutations)
    use_everything(ElfImage.from_bytes(patched(unwinding, *changes), "mutant"))


@given(st.integers(0, 17608))
@settings(max_examples=60, deadline=None)
def test_truncated_program_with_debug_information(unwinding: bytes, size: int) -> None:
    try:
        image = ElfImage.from_bytes(unwinding[:size], "cut")
    except ImageError:
        return
    use_everything(image)
