"""An IA-64 guest without a kernel, whose single bundle is probed: in place against out of line."""

import random
from dataclasses import dataclass

from probekit import Names

from engine.arch.base import TrapKind
from engine.arch.ia64 import IA64
from engine.arch.ia64.bundle import SIZE, SLOT_MASK, Bundle, unpack
from engine.arch.ia64.decode import decode_slot
from engine.arch.ia64.opcodes import Form
from engine.arch.ia64.operands import IMMEDIATES
from engine.arch.plan import Mode
from engine.cpu.base import Stop, StopKind
from engine.cpu.ia64.core import Ia64Cpu
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE, Ram
from engine.errors import GuestFaultError
from engine.guest.memory import Memory
from engine.guest.text import TextOverlay
from engine.probes.manager import ProbeManager

CODE, DATA, STORE = 0x2000_0000_0040_0000, 0x6000_0000_0000_0000, 0x6000_0000_1000_0000
SITE = CODE + PAGE
"""Of the bundle that is looked at, with a page of code on either side."""
_STORE_SIZE = 16 * PAGE


def stop_here(immediate: int, qp: int = 0) -> int:
    """The word of a break, the same in M, I, F and B slots."""
    return IMMEDIATES["imm21"].put(immediate, qp)[0]


def with_slot(bundle: Bundle, slot: int, word: int) -> Bundle:
    """The same bundle with another word in one slot."""
    words = list(bundle.slots)
    words[slot] = word & SLOT_MASK
    return Bundle(bundle.template, (words[0], words[1], words[2]))


OTHER = stop_here(0x123)
"""What stands in slots that must not be executed."""
_SLOTS = {  # unit: (template, slot) that it may stand in
    "M": ((0x00, 0), (0x08, 1), (0x11, 0), (0x0E, 1)),
    "I": ((0x00, 1), (0x01, 2), (0x08, 2), (0x11, 1), (0x02, 1)),
    "F": ((0x0C, 1), (0x0E, 2), (0x1C, 1)),
    "B": ((0x10, 2), (0x16, 0), (0x16, 1), (0x16, 2), (0x12, 1), (0x13, 2)),
    "X": ((0x04, 1), (0x05, 1)),
}


@dataclass(frozen=True)
class Outcome:
    """Where an execution came to, what stopped it, all registers, and all memory."""

    pc: int
    stop: tuple[object, ...]
    registers: object
    data: bytes
    store: bytes


class BundleGuest:
    """Code around SITE, data, a backing store, the engine's windows."""

    def __init__(self, mode: Mode = Mode.STRICT) -> None:
        self.ram = Ram(size=1 << 28, budget=1 << 26)
        self.cpu = Ia64Cpu(self.ram, classify_break=IA64.classify_trap, counter=lambda: 0x1234)
        self.memory = Memory(IA64.plan, self.ram, self.cpu)
        self.memory.map(CODE, 4 * PAGE, READ | WRITE | EXECUTE, name="code")
        self.memory.map(DATA, 4 * PAGE, READ | WRITE, name="data")
        self.memory.map(STORE, _STORE_SIZE, READ | WRITE, name="store")
        start, size = IA64.plan.xol
        self.memory.map(start, size, 0, name="[xol]", reserved=True)
        self.overlay = TextOverlay(self.memory, self.cpu)
        self.manager = ProbeManager(
            IA64, self.cpu, self.memory, self.overlay, Names(), [(start, size)], mode=mode
        )
        self.cpu.exempt((start, size))
        self.fill = Bundle(0, (OTHER, OTHER, OTHER)).pack()
        self.memory.poke(CODE, self.fill * (4 * PAGE // SIZE))
        self.memory.sync()

    def place(self, raw: bytes) -> None:
        """Put a bundle at SITE."""
        self.memory.poke(SITE, raw)

    def start(self, slot: int, state: object, data: bytes) -> None:
        """Stand in front of a slot of it."""
        self.memory.sync()
        self.cpu.restore(state)
        self.memory.poke(DATA, data)
        self.memory.poke(STORE, bytes(_STORE_SIZE))
        self.cpu.write_register("ip", SITE + slot)

    def outcome(self, stop: Stop | None) -> Outcome:
        """How it stands now; that a place was reached which stops at once is no stop."""
        shown: tuple[object, ...] = ()
        if stop is not None:
            shown = (stop.kind, stop.trap, stop.number, stop.address, stop.access, stop.detail)
        pc = self.cpu.read_register("ip")
        self.cpu.write_register("ip", 0)
        return Outcome(
            pc,
            shown,
            self.cpu.save(),
            self.memory.read(DATA, 4 * PAGE),
            self.memory.read(STORE, _STORE_SIZE),
        )

    def run(self, at: int) -> Stop | None:
        """Run until a place is reached that stops at once (None), or something else stops.

        Args:
            at: where the instruction in question stands: it is no such place.
        """
        while True:
            self.memory.sync()
            stop = self.manager.handle(self.cpu.run())
            if stop is None:
                continue
            pc = self.cpu.read_register("ip")
            other = (
                stop.kind is StopKind.TRAP and stop.trap is TrapKind.OTHER and self._is_other(pc)
            )
            if pc != at and (stop.access == "execute" or other):
                return None
            return stop

    def _is_other(self, pc: int) -> bool:
        try:
            raw = self.overlay.original(pc & -SIZE, SIZE)
        except GuestFaultError:
            return False
        return unpack(raw).slots[pc & 3] == OTHER


def words_of(form: Form, rng: random.Random, tries: int = 200) -> tuple[str, int, int] | None:
    """(unit, word, L slot) of a random instruction of a form; None if none was met."""
    unit = rng.choice(form.units)
    for _ in range(tries):
        word = (form.value | rng.getrandbits(41) & ~form.mask) & SLOT_MASK
        extra = rng.getrandbits(41) if unit == "X" else 0
        if rng.random() < 0.5:
            word &= ~0x3F | form.mask
        if decode_slot(unit, word, extra).form is form:
            return unit, word, extra
    return None


def bundle_of(unit: str, word: int, extra: int, rng: random.Random) -> tuple[bytes, int]:
    """(bundle, slot) with an instruction somewhere that it may stand, breaks around it."""
    template, slot = rng.choice(_SLOTS[unit])
    if unit == "X":
        return Bundle(template, (OTHER, extra, word)).pack(), 1
    return with_slot(Bundle(template, (OTHER, OTHER, OTHER)), slot, word).pack(), slot


def random_state(cpu: Ia64Cpu, blank: object, rng: random.Random) -> object:
    """All registers: rotation, NaTs, predicates, advanced loads, a frame below."""
    cpu.restore(blank)
    put = cpu.write_register
    put("bsp", STORE + 8 * rng.randrange(1024))
    for _ in range(rng.randrange(3)):  # frames below: their registers may be called back
        cpu.state.set_cfm(rng.choice((8 | 5 << 7, 40 | 33 << 7)))
        cpu.state.a[64] = cpu.state.call()
    sor = rng.choice((0, 0, 8, 16))
    sof = rng.choice((96, 96, 48))
    gr = rng.randrange(sor) if sor else 0
    marker = sof | rng.choice((0, 8, sof)) << 7 | sor // 8 << 14
    put("cfm", marker | gr << 18 | rng.randrange(96) << 25 | rng.randrange(48) << 32)
    for number in range(1, 128):
        kind = rng.random()
        value = rng.getrandbits(64)
        if kind < 0.6:
            value = DATA + rng.randrange(2 * PAGE) & -rng.choice((16, 16, 8, 1))
        elif kind < 0.7:
            value = rng.randrange(64)
        put(f"r{number}", value)
    if rng.random() < 0.4:
        for number in rng.sample(range(1, 128), rng.choice((2, 40))):
            put(f"nat{number}", 1)
    for number in range(2, 128):
        put(f"f{number}", _float(rng))
    for number in range(1, 64):
        put(f"p{number}", rng.getrandbits(1))
    for number in range(8):
        put(f"b{number}", rng.choice((CODE, CODE + 64, SITE + SIZE, rng.getrandbits(64))))
    put("lc", rng.choice((0, 1, rng.getrandbits(64))))
    put("ec", rng.choice((0, 1, 2)))
    put("pfs", rng.choice((cpu.read_register("pfs"), 8 | 4 << 7, rng.getrandbits(64))))
    put("ccv", rng.getrandbits(64))
    put("unat", rng.getrandbits(64))
    put("fpsr", rng.choice((0x9804C0270033F, 0x9804C02700300, rng.getrandbits(58))))
    put("rsc", rng.choice((0, 3, 0xF)))
    for number in rng.sample(range(32, 128), 30):
        at = DATA + 8 * rng.randrange(512)
        cpu.alat.insert("f", number, at, 8)
        cpu.alat.insert("r", cpu.state.physical(number), at, 8)
    return cpu.save()


def _float(rng: random.Random) -> int:
    exponent = rng.choice((0, 1, 0xFFFF, 0x1003E, 0x1FFFE, 0x1FFFF, rng.getrandbits(17)))
    significand = rng.choice((0, 1 << 63, rng.getrandbits(64), 1 << 63 | rng.getrandbits(63)))
    return rng.getrandbits(1) << 81 | exponent << 64 | significand
