"""Strings of the guest against its bytes, while mappings come, go and change."""

import struct
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arch.x86_64 import X86_64
from engine.cpu.base import Cpu
from engine.cpu.pagetable import PageTable
from engine.cpu.ram import PAGE, READ, WRITE, Ram
from engine.errors import GuestFaultError
from engine.guest.memory import Memory

BASE = 0x10_0000
T = TypeVar("T")


class _Cpu:
    """As much of a processor as the address space asks for."""

    def __init__(self, ram: Ram) -> None:
        self.page_table = PageTable(ram)
        self.traps = None

    def invalidate(self, start: int, size: int) -> None:
        assert size > 0

    def flush_pages(self, start: int, size: int) -> None:
        return

    def flush_tlb(self) -> None:
        return


def plainly(memory: Memory, address: int, limit: int) -> bytes | None:
    """A byte at a time; None for a fault."""
    found = bytearray()
    try:
        while len(found) < limit:
            byte = memory.read(address + len(found), 1)
            if byte == b"\0":
                break
            found += byte
    except GuestFaultError:
        return None
    return bytes(found)


def attempt(read: Callable[[int], T], address: int) -> T | None:
    """None for a fault."""
    try:
        return read(address)
    except GuestFaultError:
        return None


_LIMITS = [0, 1, 63, 64, 65, 200, 4095]
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("map"), st.integers(0, 3)),
        st.tuples(st.just("unmap"), st.integers(0, 3)),
        st.tuples(st.just("hide"), st.integers(0, 3)),
        st.tuples(st.just("show"), st.integers(0, 3)),
        st.tuples(st.just("write"), st.integers(0, 4 * PAGE - 300), st.integers(1, 299)),
        st.tuples(
            st.just("read"),
            st.one_of(
                st.integers(-4, 4 * PAGE + 4),
                st.tuples(st.integers(0, 4), st.integers(-70, 3)).map(
                    lambda p: p[0] * PAGE + p[1]
                ),
            ),
            st.sampled_from(_LIMITS),
        ),
    ),
    max_size=40,
)


@given(_STEPS)
@settings(max_examples=300, deadline=None)
def test_a_string_is_its_bytes_up_to_the_nul(steps: list[tuple[str, int, int]]) -> None:
    ram = Ram(size=1 << 28, budget=1 << 22)
    try:
        memory = Memory(X86_64.plan, ram, cast(Cpu, _Cpu(ram)))
        memory.map(BASE, 4 * PAGE, READ | WRITE)
        memory.write(BASE, b"ab\0" * 4000)
        texts = {limit: memory.text_reader(limit) for limit in _LIMITS}
        structure = struct.Struct("<3s70s")
        whole = memory.reader(structure)
        for what, where, *more in steps:
            if what == "read":
                limit = more[0]
                found = attempt(partial(memory.read_cstring, limit=limit), BASE + where)
                expected = plainly(memory, BASE + where, limit)
                # What is cut at the limit may have been looked at page by page.
                assert found == expected or (found is None and len(expected or b"") == limit)
                assert not limit or found == attempt(texts[limit], BASE + where)
                parts = attempt(partial(memory.read, size=structure.size), BASE + where)
                assert attempt(whole, BASE + where) == (
                    None if parts is None else structure.unpack(parts)
                )
                continue
            page = BASE + where * PAGE
            mapped = memory.find(page) is not None
            if what == "map" and not mapped:
                memory.map(page, PAGE, READ | WRITE)
                memory.write(page, b"x" * PAGE)
            elif what == "unmap":
                memory.unmap(page, PAGE)
            elif what in ("hide", "show") and mapped:
                memory.protect(page, PAGE, 0 if what == "hide" else READ | WRITE)
            elif what == "write" and memory.accessible(BASE + where, more[0] + 1, write=True):
                memory.write(BASE + where, b"w" * more[0] + b"\0")
    finally:
        ram.close()
