"""A guest without a kernel: code, data, stack, the engine's windows, and a manager of probes."""

from collections.abc import Collection, Sequence

from engine.arch import by_name
from engine.arch.plan import Mode
from engine.cpu.base import Stop
from engine.cpu.ram import PAGE, Ram
from engine.cpu.unicorn_cpu import UnicornCpu
from engine.guest.memory import Memory
from engine.guest.text import TextOverlay
from engine.insn.disasm import Disassembler
from engine.probes.code_map import GoCode
from engine.probes.detourroom import DetourRoom
from engine.probes.manager import ProbeManager
from engine.probes.site import FunctionCode

CODE, DATA, STACK, NEAR = 0x400000, 0x440000, 0x480000, 0x4C0000
CODE_SIZE, DATA_SIZE, STACK_SIZE = 4 * PAGE, 16 * PAGE, 2 * PAGE
SP = STACK + PAGE
"""Where the stack pointer starts: a page above it and a page below."""
READ, WRITE, EXECUTE = 1, 2, 4


class PlainCode:
    """A file's code without names or neighbours."""

    bias = 0

    class image:  # noqa: N801 - what rules ask of a file
        load_segments = ()

    def read(self, address: int, size: int) -> bytes:
        return bytes(size)

    def names_at(self, address: int) -> list[str]:
        return []

    def functions_at(self, address: int) -> list[tuple[int, int, str]]:
        return []

    def neighbours(self, start: int, end: int) -> list[FunctionCode]:
        return []

    def show(self, address: int, raw: bytes) -> str:
        return raw.hex()


class Names:
    """A map of code from tables: symbols, functions, and what is no boundary."""

    def __init__(self) -> None:
        self.symbols: dict[str, int] = {}
        self.functions: list[tuple[int, int]] = []
        self.inside: set[int] = set()

    def symbol(self, name: str) -> int | None:
        return self.symbols.get(name)

    def function(self, address: int) -> tuple[int, int] | None:
        return next((f for f in self.functions if f[0] <= address < f[1]), None)

    def boundary(self, address: int) -> bool:
        return address not in self.inside

    def go_code(self, wanted: Collection[str]) -> Sequence[GoCode]:
        return ()


class ProbeGuest:
    """Runs code at CODE; every stop goes through the manager first."""

    def __init__(
        self,
        arch_name: str,
        code: bytes = b"",
        *,
        mode: Mode = Mode.STRICT,
        window: int = 16 * PAGE,
        near: int = 0,
        perms: int = READ | EXECUTE,
        room: DetourRoom | None = None,
        technique: str = "auto",
        returns: str = "auto",
    ) -> None:
        """`window` is the size of the window of slots; `near` of a second, beside the code."""
        self.arch = arch = by_name(arch_name)
        self.ram = Ram(size=1 << 28, budget=1 << 24)
        self.cpu = UnicornCpu(
            arch,
            self.ram,
            Disassembler(arch).decode,
            counter=lambda: 0x1234567890,
            entropy=lambda count: bytes(range(1, count + 1)),
            secret=bytes(range(80)),
        )
        self.memory = Memory(arch.plan, self.ram, self.cpu)
        self.memory.map(CODE, CODE_SIZE, perms, name="code")
        self.memory.map(DATA, DATA_SIZE, READ | WRITE, name="data")
        self.memory.map(STACK, STACK_SIZE, READ | WRITE, name="[stack]")
        start = arch.plan.xol[0]
        self.memory.map(start, window, 0, name="[xol]", reserved=True)
        windows = [(start, window)]
        page, size = arch.plan.trampoline
        self.memory.map(page, size, 0, name="[trampoline]", reserved=True)
        exempt = [(page, start + window - page)]
        if near:
            self.memory.map(NEAR, near, 0, name="[detour]", reserved=True)
            windows.append((NEAR, near))
            exempt.append((NEAR, near))
        self.overlay = TextOverlay(self.memory, self.cpu)
        self.names = Names()
        self.notices: list[str] = []
        self.manager = ProbeManager(
            arch,
            self.cpu,
            self.memory,
            self.overlay,
            self.names,
            windows,
            mode=mode,
            trampoline=page,
            returns=returns,
            notify=self.notices.append,
            room=room,
            technique=technique,
        )
        self.cpu.exempt(*exempt)
        self.memory.sync()
        self.load(code)

    def load(self, code: bytes, address: int = CODE) -> None:
        """Put code somewhere, stand in front of it, with the stack pointer at SP."""
        self.memory.poke(address, code)
        self.pc = address
        self.sp = SP

    @property
    def pc(self) -> int:
        """Program counter."""
        return self.cpu.read_register(self.arch.roles.pc)

    @pc.setter
    def pc(self, value: int) -> None:
        self.cpu.write_register(self.arch.roles.pc, value)

    @property
    def sp(self) -> int:
        """Stack pointer."""
        return self.cpu.read_register(self.arch.roles.sp)

    @sp.setter
    def sp(self, value: int) -> None:
        self.cpu.write_register(self.arch.roles.sp, value)

    def __getitem__(self, name: str) -> int:
        return self.cpu.read_register(name)

    def __setitem__(self, name: str, value: int) -> None:
        self.cpu.write_register(name, value)

    def run(self, quantum: int | None = None) -> Stop:
        """Run until a stop is left that is none of the probes' business."""
        while True:
            self.memory.sync()
            stop = self.manager.handle(self.cpu.run(quantum))
            if stop is None:
                continue
            opened = stop.access and self.overlay.refused(stop.address, stop.access, self.pc)
            if not opened:
                return stop

    def run_to_trap(self) -> int:
        """Run up to a breakpoint of the code's own; its address."""
        stop = self.run()
        assert stop.trap.name == "BREAKPOINT", stop
        return self.pc - (len(self.arch.breakpoint) if self.arch.trap_advances_pc else 0)

    def registers(self) -> dict[str, int]:
        """All registers but pc."""
        pc = self.arch.roles.pc
        return {
            item.name: self.cpu.read_register(item.name)
            for item in self.arch.registers
            if item.name != pc
        }
