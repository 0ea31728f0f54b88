"""The kernel's own kprobes by its memory: what a hostile kernel writes there ends a list.

What Debian's kernels have in the table is compared in tests/cli/test_boot_trace_probe_module.py.
"""

import struct
from collections.abc import Callable
from typing import cast

import pytest
from kernelimages import AMD64_61, SLOW_612, UML_61, kernel_image

from engine.errors import GuestFaultError
from engine.machine.addresses import KernelAddresses
from engine.machine.kernelprobes import KprobeTable, RegisteredProbe, kprobe_table

TABLE, AGGREGATE, RETURN = 0x1000, 0xA, 0xB
MEMBERS = (0, 16, 40, 64, 120)


class Words:
    """Memory of words; all others are 0, and there is none from 0x100000 on."""

    def __init__(self, words: dict[int, int]) -> None:
        self.words = words

    def reader(self, layout: struct.Struct) -> Callable[[int], tuple[int]]:
        def word(address: int) -> tuple[int]:
            if address >= 0x100000:
                raise GuestFaultError(address, "read")
            return (self.words.get(address, 0),)

        return word


def read(words: dict[int, int]) -> list[RegisteredProbe]:
    probes = KprobeTable(TABLE, (AGGREGATE, RETURN), MEMBERS)
    return list(probes.read(cast(KernelAddresses, Words(words))))


def test_lists_without_an_end_end() -> None:
    assert read({}) == []
    itself = {TABLE: 0x4000, 0x4000: 0x4000, 0x4028: 0xFF, 0x4040: RETURN, 0x4078: 5}
    found = read(itself)
    assert len(found) == 1 << 16
    assert found[0].line("f+0x1   ") == "00000000000000ff  r  f+0x1    [GONE][OPTIMIZED]"
    assert found[0].line("") == "00000000000000ff  r  0xff [GONE][OPTIMIZED]"
    children = {TABLE: 0x4000, 0x4040: AGGREGATE, 0x4010: 0x5010, 0x5010: 0x5010}
    assert len(read(children)) < 1 << 16
    with pytest.raises(GuestFaultError):
        read({TABLE + 8 * 63: 0x100000})


@pytest.mark.parametrize("name", [AMD64_61, SLOW_612])
def test_kernels_tell_where_the_table_is(name: str) -> None:
    assert kprobe_table(kernel_image(name)) is not None


def test_a_kernel_without_kprobes_has_none() -> None:
    assert kprobe_table(kernel_image(UML_61)) is None
