"""Tables of breakpoints' actions, one for each address space."""

from barecpu import CODE, BareCpu

from engine.arch.base import TrapKind
from engine.cpu.base import LEAVE, StopKind
from engine.cpu.trap_actions import TrapActions


def test_a_table_finds_its_actions_by_what_the_processor_reports() -> None:
    planted: list[int] = []

    def noted() -> bool:
        planted.append(len(table.actions))
        return True

    table = TrapActions(1, noted)
    table.plant(0x1000, lambda: LEAVE, 0x1002)
    assert list(table.actions) == [0x1001]
    assert planted == [1]
    table.remove(0x1000)
    table.remove(0x1000)
    assert not table.actions


def test_each_address_space_has_its_own() -> None:
    """A breakpoint is dealt with by the table in use; elsewhere it is the program's own."""
    cpu = BareCpu("x86_64", bytes.fromhex("cc 90 90 cc"))
    seen: list[str] = []

    def hit(name: str) -> int:
        seen.append(name)
        return CODE + 2

    def run() -> int:
        cpu.write_register("rip", CODE)
        stop = cpu.run()
        assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.BREAKPOINT)
        return cpu.pc - CODE

    traps, other = cpu.traps, cpu.traps.another()
    traps.plant(CODE, lambda: hit("first"), CODE + 1)
    assert run() == 4
    traps.use(other)
    assert run() == 1
    other.plant(CODE, lambda: hit("second"), CODE + 1)
    assert run() == 4
    traps.use(traps)
    traps.remove(CODE)
    assert run() == 1
    traps.use(other)
    assert run() == 4
    assert seen == ["first", "second", "second"]
