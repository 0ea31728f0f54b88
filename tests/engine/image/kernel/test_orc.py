"""ORC tables: layouts of all releases, order, damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelimages import AMD64_61, AMD64_612, kernel_image
from orckit import BASE, CALL, REGS, new, old, orc_image, orc_types

from engine.errors import ImageError
from engine.image.kernel.orc import ENTRIES, PLACES, LoadedOrc, OrcEntry, OrcKind, OrcTable

_SP, _BP, _PREV = 5, 4, 1


@pytest.mark.parametrize(
    ("split", "hints"),
    [
        (False, {"btf": orc_types(split=False)}),
        (False, {"banner": b"Linux version 6.1.0-9 (gcc)\0"}),
        (False, {"banner": b"vermagic=6.3.13 SMP\0"}),
        (True, {"btf": orc_types(split=True), "banner": b"Linux version 6.1.0 (gcc)\0"}),
        (True, {"header": bytes(20), "banner": b"Linux version 6.3.0 (gcc)\0"}),
        (True, {"banner": b"Linux version 6.4.0 (gcc)\0"}),
        (True, {}),
    ],
)
def test_the_file_says_which_layout_it_has(split: bool, hints: dict[str, bytes]) -> None:
    make = new if split else old
    kinds = (2, 3, 4) if split else (0, 1, 2)
    rows = [(16 * at, make(_SP, 8 + at, _PREV, -at, kind)) for at, kind in enumerate(kinds)]
    rows.append((0x80, new(0, 0, kind=1) if split else old(0, 0, end=1)))
    rows.append((0x90, make(0, 0, kind=0)))
    table = OrcTable(orc_image(rows, **hints))
    assert len(table) == 5
    found = [table.at(BASE + at) for at, _ in rows]
    assert [entry.kind for entry in found if entry] == [
        OrcKind.CALL,
        OrcKind.REGS,
        OrcKind.PARTIAL,
        OrcKind.END,
        OrcKind.UNKNOWN,
    ]
    assert found[2] == OrcEntry(OrcKind.PARTIAL, _SP, 10, _PREV, -2, not split)
    assert table.at(BASE - 1) is None
    assert table.at(BASE + 15) == found[0]
    assert table.at(BASE + 16) == found[1]


def test_of_two_at_one_address_the_last_counts_and_ends_come_first() -> None:
    """A module's tables are sorted when it is loaded."""
    rows = [
        (0x20, old(_SP, 8)),
        (0x40, old(0, 0)),
        (0x10, old(_SP, 24)),
        (0x20, old(0, 0)),
        (0x00, old(_SP, 16)),
    ]
    table = OrcTable(orc_image(rows, btf=orc_types(split=False)))
    assert list(table.addresses) == sorted(table.addresses)
    offsets = [entry.stack_offset for at in range(0, 0x50, 8) if (entry := table.at(BASE + at))]
    assert offsets == [16, 16, 24, 24, 8, 8, 8, 8, 0, 0]


def test_parts_that_do_not_fit_are_told() -> None:
    image = orc_image([(0, old(_SP, 8)), (8, old(_SP, 16)[:5])])
    with pytest.raises(ImageError, match=r"vmlinux: \.orc_unwind_ip of 8 bytes .* \.orc_unwind"):
        OrcTable(image)


def test_a_file_without_tables_has_no_entries() -> None:
    table = OrcTable(orc_image([]))
    assert (len(table), table.at(BASE)) == (0, None)


@given(st.lists(st.tuples(st.integers(0, 0xFFF), st.binary(min_size=6, max_size=6)), min_size=1))
def test_any_entries_are_read(rows: list[tuple[int, bytes]]) -> None:
    table = OrcTable(orc_image(rows, btf=orc_types(split=False)))
    assert all(table.at(BASE + at) is not None for at, _ in rows)


def test_damaged_types_leave_the_version() -> None:
    image = orc_image(
        [(0, old(_SP, 8, kind=REGS))], btf=b"\xff" * 40, banner=b"Linux version 6.1.0\0"
    )
    entry = OrcTable(image).at(BASE)
    assert entry is not None
    assert entry.kind is OrcKind.REGS
    assert any(".BTF" in text for text in image.damage.found())


@pytest.mark.parametrize(
    ("name", "count"),
    [(AMD64_61, 384849), pytest.param(AMD64_612, 450712, marks=pytest.mark.slow)],
)
def test_kernels(name: str, count: int) -> None:
    image = kernel_image(name)
    table = OrcTable(image.elf)
    assert len(table) == count
    start = image.symbol("vfs_write")
    assert start is not None
    first = table.at(start)
    assert first == OrcEntry(OrcKind.CALL, _SP, 8, 0, 0, False)


def test_entries_in_a_kernels_memory_are_those_of_its_file() -> None:
    image = kernel_image(AMD64_61)
    table, start = OrcTable(image.elf), image.symbol("vfs_write")
    places, entries = image.elf.section(PLACES), image.elf.section(ENTRIES)
    assert start is not None
    assert places is not None
    assert entries is not None
    data = image.elf.section_data(places), image.elf.section_data(entries)
    loaded = LoadedOrc(places.addr, *data, table.layout)
    assert [loaded.at(start + at) for at in range(200)] == [
        table.at(start + at) for at in range(200)
    ]
    assert loaded.at(0xFFFFFFFF_80000000) is None
    assert LoadedOrc(places.addr, b"", b"", table.layout).at(start) is None


def test_a_prologue_of_6_1() -> None:
    image = kernel_image(AMD64_61)
    table, start = OrcTable(image.elf), image.symbol("vfs_write")
    assert start is not None
    found = [table.at(start + at) for at in (0, 9, 15)]
    assert [(e.stack_offset, e.frame, e.frame_offset) for e in found if e] == [
        (8, 0, 0),
        (24, 0, 0),
        (56, _PREV, -48),
    ]
    assert CALL == 0
