"""A CPU with a few mapped pages and no kernel: what CPU tests run code on."""

from engine.arch import by_name
from engine.cpu.pagetable import Region
from engine.cpu.ram import PAGE, Ram
from engine.cpu.unicorn_cpu import UnicornCpu
from engine.insn.disasm import Disassembler

CODE, DATA = 0x400000, 0x7F0000


class BareCpu(UnicornCpu):
    """Code at CODE (read, execute), data at DATA (read, write); one page in front is free."""

    def __init__(self, arch_name: str, code: bytes = b"", *, budget: int = 1 << 24) -> None:
        arch = by_name(arch_name)
        self.memory = Ram(size=1 << 28, budget=budget)
        super().__init__(
            arch,
            self.memory,
            Disassembler(arch).decode,
            counter=lambda: 0x1234567890,
            entropy=lambda count: bytes(range(1, count + 1)),
            secret=bytes(range(80)),
        )
        self.regions = [
            Region(CODE, CODE + 4 * PAGE, self._take(4), 5),
            Region(DATA, DATA + 4 * PAGE, self._take(4), 3),
        ]
        self.page_table.load(self.regions)
        self.flush_tlb()
        self.write(CODE, code)
        self.write_register(arch.roles.pc, CODE)
        self.write_register(arch.roles.sp, DATA + 2 * PAGE)

    def _take(self, pages: int) -> int:
        offset = self.memory.allocate(pages * PAGE)
        assert offset is not None
        return offset

    def patch(self, address: int, code: bytes) -> None:
        """Change code from outside, as the engine does."""
        self.write(address, code)
        self.invalidate(address, len(code))

    @property
    def pc(self) -> int:
        """Program counter."""
        return self.read_register(self.arch.roles.pc)
