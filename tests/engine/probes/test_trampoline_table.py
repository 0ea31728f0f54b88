"""Where hits of calls in a trampoline go to: the table and its stubs, read as they stand."""

import struct
from collections.abc import Iterable
from typing import cast

import capstone
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arch.x86_64.nop_calls import NOP_CALLS
from engine.cpu.ram import PAGE
from engine.guest.memory import Memory
from engine.probes.trampoline_table import TrampolineTable

START = 0x7FFF0000
ROOM = (PAGE - NOP_CALLS.stubs) // NOP_CALLS.stub_size


class Page:
    """The page that the trampoline stands in."""

    def __init__(self) -> None:
        self.data = bytearray(PAGE)

    def patch(self, address: int, data: bytes) -> None:
        at = address - START
        assert at >= NOP_CALLS.table
        assert at + len(data) <= PAGE
        self.data[at : at + len(data)] = data

    def goes_to(self, returns: int) -> int:
        """Where a hit goes in the end: to code, or to the engine's trap."""
        entry = NOP_CALLS.table + 8 * (returns & 0xFF)
        at = int.from_bytes(self.data[entry : entry + 8], "little")
        for _ in range(ROOM + 1):
            if at == START + NOP_CALLS.slow:
                return at
            key, elsewhere, code = self._stub(at)
            if key == returns:
                return code
            at = elsewhere
        raise AssertionError("it goes in circles")

    def _stub(self, at: int) -> tuple[int, int, int]:
        assert (at - START - NOP_CALLS.stubs) % NOP_CALLS.stub_size == 0
        raw = self.data[at - START : at - START + NOP_CALLS.stub_size]
        (negative,) = struct.unpack_from("<q", raw, 2)
        engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        lines = [(name, text) for _, _, name, text in engine.disasm_lite(bytes(raw), at)]
        assert [name for name, _ in lines] == [
            *("movabs", "lea", "jrcxz", "jmp", "pop", "pop", "pop", "lea", "jmp")
        ]
        jumps = [int(text, 16) for name, text in lines if name.startswith("j")]
        assert jumps[0] == at + 21, "to the first pop"
        return -negative, jumps[1], jumps[2]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0x401005, 0x401105, 0x401205, 0x55, 0x401006]), st.booleans()),
        max_size=30,
    )
)
def test_each_goes_to_its_code(steps: Iterable[tuple[int, bool]]) -> None:
    page = Page()
    table = TrampolineTable(cast(Memory, page), NOP_CALLS, START)
    led: dict[int, int] = {}
    for number, (returns, on) in enumerate(steps):
        if on:
            assert table.lead(returns, START + PAGE + 64 * number)
            led[returns] = START + PAGE + 64 * number
        else:
            table.leave(returns)
            led.pop(returns, None)
        for one in (0x401005, 0x401105, 0x401205, 0x55, 0x401006, 0x402005):
            assert page.goes_to(one) == led.get(one, START + NOP_CALLS.slow)


def test_without_room_the_engine_serves_it() -> None:
    page = Page()
    table = TrampolineTable(cast(Memory, page), NOP_CALLS, START)
    for number in range(ROOM):
        assert table.lead(0x1000 * number + 5, START)
    assert not table.lead(0x123, START)
    table.leave(0x2005)
    for far in (-1 << 31, (1 << 31) + PAGE):
        assert not table.lead(0x2005, START + far)
    assert page.goes_to(0x2005) == START + NOP_CALLS.slow
    assert table.lead(0x2005, START)
    assert page.goes_to(0x123) == START + NOP_CALLS.slow
    table.leave(0x3005)
    assert table.lead(0x123, START + PAGE)
    assert page.goes_to(0x123) == START + PAGE
    assert page.goes_to(0x3005) == START + NOP_CALLS.slow
    assert page.goes_to(0x4005) == START
