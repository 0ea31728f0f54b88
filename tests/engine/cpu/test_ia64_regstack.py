"""What the register stack keeps back from memory is what a flush would write there."""

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arch.base import TrapKind
from engine.arch.ia64.rse import skip_up
from engine.cpu.base import RegisterStack
from engine.cpu.ia64.core import Ia64Cpu
from engine.cpu.pagetable import Region
from engine.cpu.ram import READ, WRITE, Ram

STORE = 0x6000_0000_0000_0000
SIZE = 1 << 16


def machine(ram: Ram) -> Ia64Cpu:
    """A core with memory for its backing store, full of other words."""
    cpu = Ia64Cpu(ram, classify_break=lambda immediate: TrapKind.OTHER)
    offset = ram.allocate(SIZE)
    assert offset is not None
    cpu.page_table.load([Region(STORE, STORE + SIZE, offset, READ | WRITE)])
    cpu.flush_tlb()
    cpu.write(STORE, b"\xa5" * SIZE)
    return cpu


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 62),
    st.integers(0, (1 << 63) - 1),
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 3)), min_size=1, max_size=12),
    st.integers(0, 200),
)
def test_words_in_registers_read_as_if_flushed(
    start: int, rnat: int, frames: list[tuple[int, int]], spilled: int
) -> None:
    ram = Ram(1 << 28)
    try:
        cpu = machine(ram)
        assert isinstance(cpu, RegisterStack)
        state = cpu.state
        cpu.write_register("bsp", STORE + 8 * start)
        cpu.write_register("rnat", rnat & (1 << start) - 1)
        value = 0x1000
        for size, nats in frames:
            state.alloc(size, size, 0)
            for number in range(32, 32 + size):
                value += 1
                cpu.write_register(f"r{number}", value)
                if nats and value % 5 < nats:
                    cpu.write_register(f"nat{number}", 1)
            state.call()
        state.spill(min(spilled, len(state.stack)))
        begin, end = state.bspstore, state.bsp
        whole = cpu.with_stack(STORE, cpu.read(STORE, SIZE))
        pieces = [cpu.with_stack(at, cpu.read(at, 24)) for at in range(STORE + 4, end + 64, 24)]
        cpu.state.flush()
        assert state.bspstore == end
        assert whole == cpu.read(STORE, SIZE)
        joined = b"".join(pieces)
        assert joined == cpu.read(STORE + 4, len(joined))
        assert begin <= end
    finally:
        ram.close()


def test_the_place_of_a_register_is_where_rse_arithmetic_says() -> None:
    ram = Ram(1 << 28)
    cpu = machine(ram)
    cpu.write_register("bsp", STORE + 8 * 60)
    cpu.state.alloc(8, 8, 0)
    for number in range(8):
        cpu.write_register(f"r{32 + number}", 100 + number)
    cpu.state.call()
    for number in range(8):
        at = skip_up(STORE + 8 * 60, number)
        word = cpu.with_stack(at, cpu.read(at, 8))
        assert int.from_bytes(word, "little") == 100 + number
    ram.close()
