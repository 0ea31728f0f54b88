"""The names of real kernels are those that the kernels themselves print."""

import lzma
import random
from contextlib import suppress

import pytest
from kallsymskit import LAYOUTS, TEXT, expected, image, symbols
from kernelimages import (
    AMD64_61,
    DATA,
    GOLDEN,
    SLOW_612,
    SLOW_ARM64,
    UML_61,
    image_path,
    kernel_image,
)

from engine.errors import ImageError
from engine.image import ElfImage, SymbolTable
from engine.image.kernel.kallsyms import read_kallsyms


@pytest.mark.parametrize("name", [AMD64_61, SLOW_612, SLOW_ARM64, UML_61])
def test_names_are_the_kernels_own(name: str) -> None:
    names = kernel_image(name).names
    path = DATA / GOLDEN[name] / "kallsyms.txt.xz"
    told = lzma.decompress(path.read_bytes()).decode().splitlines()
    own = [line for line in told if "\t" not in line]
    assert list(names.lines()) == own


def test_a_kernel_that_is_a_program_has_them_as_symbols() -> None:
    image = ElfImage.open(image_path(UML_61))
    assert image.section(".symtab") is None
    table = image.once(SymbolTable)
    path = DATA / GOLDEN[UML_61] / "kallsyms.txt.xz"
    rows = [line.split() for line in lzma.decompress(path.read_bytes()).decode().splitlines()]
    own = [(int(row[0], 16), row[2]) for row in rows if len(row) == 3]
    text = image.section(".text")
    assert text is not None
    for address, name in random.Random(1).sample(own, 300):
        assert address in {symbol.address for symbol in table.find_all(name)}
        if text.holds(address):
            found = table.at(address)
            assert found is not None
            assert found.is_function
            assert found.address == address
    schedule = table.find("__schedule")
    assert schedule is not None
    assert [one.name for one in table.covering(schedule.address)] == [
        "__schedule",
        "__sched_text_start",
    ]
    assert table.at(schedule.address) == schedule  # as the kernel itself prints it
    read = table.find("vfs_read")
    assert read is not None
    assert table.at(read.address + read.size - 1) == read
    assert read in list(table.functions())


def test_what_has_no_names_is_told() -> None:
    with pytest.raises(ImageError, match=r"x: kallsyms: no token table"):
        read_kallsyms(bytes(100_000), "x")


@pytest.mark.parametrize("title", LAYOUTS)
@pytest.mark.parametrize("count", [700, 2000])
def test_every_layout_since_4_6(title: str, count: int) -> None:
    layout, rows = LAYOUTS[title], symbols(count)
    data = image(rows, layout)
    found = read_kallsyms(
        data,
        title,
        layout.order,
        inside=lambda address: address < 64 or TEXT <= address < TEXT + len(data),
        address_of=lambda position: TEXT + position,
    )
    assert list(found.lines()) == expected(rows, layout)


@pytest.mark.parametrize("title", LAYOUTS)
def test_a_damaged_table_is_told_or_found_whole(title: str) -> None:
    layout, rows = LAYOUTS[title], symbols(700)
    data, chance = image(rows, layout), random.Random(title)
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 20, 400))):
            changed[chance.randrange(len(data))] = chance.randrange(256)
        del changed[chance.choice((len(data), len(data) - 5000, len(data) // 2)) :]
        with suppress(ImageError):
            found = read_kallsyms(bytes(changed), title, layout.order)
            assert len(found.names) == len(found.addresses) == len(found.types) == 700
