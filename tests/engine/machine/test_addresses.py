"""Addresses of a kernel: through its tables, and refused where nothing is."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machinekit import PRESENT, TABLE, WRITABLE, bare, map_page, word

from engine.cpu import native
from engine.cpu.unicorn_system import SystemCpu
from engine.errors import GuestFaultError
from engine.machine.addresses import KernelAddresses
from engine.machine.machine import BareMachine

pytestmark = pytest.mark.skipif(
    not native.possible(), reason="host code is for x86-64 hosts without KPROBE_TUI_PORTABLE"
)
LARGE = 1 << 7


def machine_with(*pages: tuple[int, int]) -> tuple[BareMachine, KernelAddresses]:
    """A machine whose pages at some addresses below 2 MB are others."""
    machine = bare(b"\xf4")
    for address, physical in pages:
        map_page(machine, address, physical, PRESENT | WRITABLE)
    return machine, KernelAddresses(machine.cpu)


def test_bytes_strings_and_words_across_pages() -> None:
    machine, addresses = machine_with((0x40000, 0x90000), (0x41000, 0x50000))
    machine.cpu.memory[0x90FFC:0x91000] = b"abcd"
    machine.cpu.memory[0x50000:0x50006] = b"efgh\0i"
    assert addresses.read(0x40FFC, 10) == b"abcdefgh\0i"
    assert addresses.read_cstring(0x40FFC) == b"abcdefgh"
    assert addresses.read_cstring(0x40FFC, 6) == b"abcdef"
    assert addresses.text_reader(3)(0x41002) == b"gh"
    (value,) = addresses.reader(struct.Struct("<Q"))(0x40FFC)
    assert value == int.from_bytes(b"abcdefgh", "little")


def test_large_pages_and_the_upper_half() -> None:
    machine, addresses = machine_with()
    word(machine, 0x1000 + 8 * 511, 0x2000 | PRESENT)
    word(machine, 0x2000 + 8 * 510, PRESENT | LARGE)  # a gigabyte at 0
    word(machine, 0x3000 + 8 * 3, 0x400000 | PRESENT | LARGE)
    machine.cpu.memory[0x123456:0x123459] = b"one"
    machine.cpu.memory[0x412345:0x412348] = b"two"
    assert addresses.read(0xFFFF_FFFF_8012_3456, 3) == b"one"
    assert addresses.read(0x612345, 3) == b"two"
    with pytest.raises(GuestFaultError):  # the gigabyte goes on behind the memory
        addresses.read(0xFFFF_FFFF_8100_0000, 1)


@pytest.mark.parametrize(
    "address", [0x200000, 0x8000_0000_0000, 0x7FFF_FFFF_F000, (1 << 64) - 1, 1 << 70]
)
def test_what_is_not_mapped_is_refused(address: int) -> None:
    _, addresses = machine_with()
    with pytest.raises(GuestFaultError):
        addresses.read(address, 1)
    with pytest.raises(GuestFaultError):
        addresses.read_cstring(address)


def test_a_string_that_runs_into_nothing_is_refused() -> None:
    machine, addresses = machine_with()
    assert addresses.read(0x41000, 1) == b"\0"
    map_page(machine, 0x41000, 0, 0)
    addresses.forget()
    machine.cpu.memory[0x40FF0:0x41000] = b"x" * 16
    with pytest.raises(GuestFaultError):
        addresses.read_cstring(0x40FF0)


def test_an_address_without_an_entry_is_empty_and_a_page_that_is_elsewhere_is_not() -> None:
    machine, addresses = machine_with((0x41000, 0x90000))
    assert not addresses.is_empty(0x41000)
    map_page(machine, 0x41000, 0, 0)
    assert addresses.is_empty(0x41000)
    map_page(machine, 0x41000, 0x5000, WRITABLE)  # swapped out
    assert not addresses.is_empty(0x41000)
    assert addresses.is_empty(0x7FFF_FFFF_F000)
    machine.cpu.memory[0x90000:0x90003] = b"one"
    assert addresses.read_physical(0x90000, 3) == b"one"
    with pytest.raises(GuestFaultError):
        addresses.read_physical(len(machine.cpu.memory) - 2, 3)


def test_isolated_tables_are_left_once() -> None:
    """Tables of programs stand a page behind the kernel's, and lack its addresses."""
    machine, _ = machine_with((0x41000, 0x90000))
    machine.cpu.memory[0x90000:0x90003] = b"one"
    assert not KernelAddresses(_WithTables(machine, 0xA0000)).leave_program()
    tables = machine.cpu.tables & -0x1000
    copied = bytes(machine.cpu.memory[tables : tables + 0x1000])
    machine.cpu.memory[0xA0000:0xA1000] = copied
    machine.cpu.memory[0xA1000:0xA2000] = bytes(0x1000)
    isolated = KernelAddresses(_WithTables(machine, 0xA1000))
    with pytest.raises(GuestFaultError):
        isolated.read(0x41000, 3)
    assert isolated.leave_program()
    assert isolated.read(0x41000, 3) == b"one"
    assert not isolated.leave_program()


class _WithTables(SystemCpu):
    """The processor of a machine, with other tables."""

    tables = 0

    def __init__(self, machine: BareMachine, tables: int) -> None:
        self.memory = machine.cpu.memory
        self.tables = tables


@given(
    st.lists(st.tuples(st.integers(0, 2047), st.integers(0, (1 << 64) - 1)), max_size=40),
    st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=20),
    st.integers(1, 9000),
)
def test_damaged_tables_lead_nowhere_but_to_memory(
    entries: list[tuple[int, int]], asked: list[int], size: int
) -> None:
    """Whatever the tables hold, an answer has the bytes that were asked for, or is a fault."""
    machine, addresses = machine_with()
    try:
        for number, value in entries:
            word(machine, (0x1000, 0x2000, 0x3000, TABLE)[number // 512] + number % 512 * 8, value)
        for address in asked:
            try:
                assert len(addresses.read(address, size)) == size
            except GuestFaultError:
                continue
            assert len(addresses.read_cstring(address, 10)) <= 10
    finally:
        machine.close()
