"""Registers, the register stack and rotation.

Generated code works on the logical view: `g[32]` is r32 of the current frame as rotation has
it. Calls, returns and rotations move values, so that nothing is renamed at each access.
The stacked registers below the frame that are not in memory yet are in `stack`, the oldest
first: a register stack engine that spills only when it must. Source: the manual, volume 2,
chapter 6, and volume 1, sections 3.1 and 4.5.
"""

from typing import Final

from engine.arch.ia64.floatformats import Float
from engine.cpu.ia64.memory import Ia64Memory
from engine.cpu.ia64.stops import Illegal, NatAppears

MASK: Final = 0xFFFFFFFFFFFFFFFF
PFM: Final = (1 << 38) - 1
RSC, BSP, BSPSTORE, RNAT, CSD, CCV, UNAT, FPSR = 16, 17, 18, 19, 25, 32, 36, 40
PFS, LC, EC = 64, 65, 66

ZERO: Final[Float] = (0, 0, 0)
ONE: Final[Float] = (0, 0xFFFF, 1 << 63)
NATVAL: Final[Float] = (0, 0x1FFFE, 0)

SOF, SOL, SOR, RRB_GR, RRB_FR, RRB_PR = range(6)
_PHYSICAL: Final = 96
_SPILL_AT: Final = 4096
"""Stacked registers kept before the oldest half goes to memory."""


def slots_up(bsp: int, count: int) -> int:
    """Words of the backing store that `count` registers from `bsp` upwards take."""
    return count + ((bsp >> 3 & 63) + count) // 63


def slots_down(bsp: int, count: int) -> int:
    """Words of the backing store that `count` registers below `bsp` take."""
    return count + (62 - (bsp >> 3 & 63) + count) // 63


class State:
    """All that a program can see but memory.

    Attributes:
        g: r0 to r127 of the current frame.
        n: their NaT bits; all 0 while `nats` is False, and beyond the frame.
        p: predicates, in the rotated view.
        f: floating-point registers, in the rotated view.
        b: branch registers.
        a: application registers by number; bsp, bspstore and rnat are attributes.
        frame: sof, sol, sor (in registers), and the three rename bases.
        um: (psr.um,): the user mask in a list.
        ip: bundle address plus slot.
        nats: whether any NaT exists: generated code comes in two versions.
    """

    def __init__(self, memory: Ia64Memory) -> None:
        self.memory = memory
        self.g = [0] * 128
        self.n = [0] * 128
        self.p: list[int] = [1] + [0] * 63
        self.f: list[Float] = [ZERO, ONE] + [ZERO] * 126
        self.b = [0] * 8
        self.a = [0] * 128
        self.frame = [0] * 6
        self.um = [0]
        self.ip = 0
        self.nats = False
        self.bsp = 0
        self.bspstore = 0
        self.rnat = 0
        self.stack: list[int] = []
        self.stack_nats: list[int] = []
        self.below = 0  # registers ever pushed: makes numbers of physical registers

    # -- current frame marker ---------------------------------------------------------------

    @property
    def cfm(self) -> int:
        """The current frame marker."""
        sof, sol, sor, gr, fr, pr = self.frame
        return sof | sol << 7 | sor // 8 << 14 | gr << 18 | fr << 25 | pr << 32

    def _settle(self) -> None:
        """Undo the rotation of the views: the rename bases become 0."""
        _, _, sor, gr, fr, pr = self.frame
        if gr:
            self._turn(self.g, 32, sor, -gr)
            if self.nats:
                self._turn(self.n, 32, sor, -gr)
        if fr:
            self._turn(self.f, 32, 96, -fr)
        if pr:
            self._turn(self.p, 16, 48, -pr)
        self.frame[RRB_GR:] = [0, 0, 0]

    @staticmethod
    def _turn(values: list, start: int, size: int, by: int) -> None:  # type: ignore[type-arg]
        part = values[start : start + size]
        values[start : start + size] = part[by:] + part[:by]

    def set_cfm(self, value: int) -> None:
        """Replace the frame marker; the registers below stay where they are."""
        sof, sol, sor = value & 127, value >> 7 & 127, (value >> 14 & 15) * 8
        gr, fr, pr = value >> 18 & 127, value >> 25 & 127, value >> 32 & 63
        if sof > _PHYSICAL or sol > sof or sor > sof or fr >= 96 or pr >= 48 or gr >= (sor or 1):
            raise Illegal("the frame marker has reserved values")
        self._settle()
        if gr:
            self._turn(self.g, 32, sor, gr)
            if self.nats:
                self._turn(self.n, 32, sor, gr)
        if fr:
            self._turn(self.f, 32, 96, fr)
        if pr:
            self._turn(self.p, 16, 48, pr)
        self.frame[:] = [sof, sol, sor, gr, fr, pr]
        if self.nats:
            self._forget_nats(sof)

    def clear_rrb(self, only_predicates: bool) -> None:
        """`clrrrb`."""
        if not only_predicates:
            self._settle()
        elif self.frame[RRB_PR]:
            self._turn(self.p, 16, 48, -self.frame[RRB_PR])
            self.frame[RRB_PR] = 0

    def rotate(self) -> None:
        """One rotation: the contents of r32 are found in r33 from now on."""
        frame = self.frame
        sor = frame[SOR]
        if sor:
            self.g.insert(32, self.g.pop(31 + sor))
            if self.nats:
                self.n.insert(32, self.n.pop(31 + sor))
            frame[RRB_GR] = (frame[RRB_GR] or sor) - 1
        self.f.insert(32, self.f.pop())
        self.p.insert(16, self.p.pop())
        frame[RRB_FR] = (frame[RRB_FR] or 96) - 1
        frame[RRB_PR] = (frame[RRB_PR] or 48) - 1

    def counted(self) -> bool:
        """`br`.ctop and br.cexit: whether the loop goes on."""
        a, p = self.a, self.p
        if a[LC]:
            a[LC] -= 1
            p[63] = 1
            self.rotate()
            return True
        return self._epilogue()

    def while_loop(self, qp: int) -> bool:
        """`br`.wtop and br.wexit: whether the loop goes on."""
        if self.p[qp]:
            self.p[63] = 0
            self.rotate()
            return True
        return self._epilogue()

    def _epilogue(self) -> bool:
        a = self.a
        self.p[63] = 0
        if not a[EC]:
            return False
        a[EC] -= 1
        self.rotate()
        return a[EC] != 0

    # -- predicates as one register -----------------------------------------------------------

    def predicates(self) -> int:
        """All predicates as `mov r=pr` reads them: not rotated."""
        p, by = self.p, self.frame[RRB_PR]
        if by:
            p = list(p)
            self._turn(p, 16, 48, -by)
        return sum(1 << at for at, value in enumerate(p) if value)

    def set_predicates(self, value: int, mask: int) -> None:
        """Write those predicates that the mask has, not rotated."""
        p, by = self.p, self.frame[RRB_PR]
        if by:
            self._turn(p, 16, 48, -by)
        for at in range(1, 64):
            if mask >> at & 1:
                p[at] = value >> at & 1
        if by:
            self._turn(p, 16, 48, by)

    # -- register stack -----------------------------------------------------------------------

    def physical(self, register: int) -> int:
        """A number for a general register that no other frame's register has."""
        if register < 32:
            return register
        sor = self.frame[SOR]
        at = register - 32
        if at < sor:
            at = (at + self.frame[RRB_GR]) % sor
        return 1024 + self.below + at

    def call(self) -> int:
        """A taken call: the caller's locals go below; what ar.pfs becomes."""
        frame, stack = self.frame, self.stack
        sof, sol = frame[SOF], frame[SOL]
        if frame[RRB_GR] | frame[RRB_FR] | frame[RRB_PR]:
            pfs = self.cfm | self.a[EC] << 52 | 3 << 62
            self._settle()
        else:
            pfs = sof | sol << 7 | frame[SOR] << 11 | self.a[EC] << 52 | 3 << 62
        if len(stack) > _SPILL_AT:
            self.spill(_SPILL_AT // 2)
        if sol:
            self._push(sol)
        frame[:3] = [sof - sol, 0, 0]
        return pfs

    def _push(self, count: int) -> None:
        g = self.g
        kept = g[32 : 32 + count]
        self.stack += kept
        g[32:] = g[32 + count :] + kept
        if self.nats:
            n = self.n
            self.stack_nats += n[32 : 32 + count]
            n[32:] = n[32 + count :] + [0] * count
        self.bsp += 8 * slots_up(self.bsp, count)
        self.below += count

    def _pull(self, count: int) -> None:
        if len(self.stack) < count:
            self.fill(count - len(self.stack))
        g = self.g
        g[32:] = self.stack[-count:] + g[32 : 128 - count]
        del self.stack[-count:]
        if self.nats:
            n = self.n
            n[32:] = self.stack_nats[-count:] + n[32 : 128 - count]
            del self.stack_nats[-count:]
        self.bsp -= 8 * slots_down(self.bsp, count)
        self.below -= count

    def leave(self) -> None:
        """A taken return: the caller's frame comes back from ar.pfs."""
        pfs, frame = self.a[PFS], self.frame
        sof, sol = pfs & 127, pfs >> 7 & 127
        if pfs & PFM & ~0x3FFFF or sof > _PHYSICAL or sol > sof or pfs >> 11 & 0x78 > sof:
            return self._leave_rotated(pfs)
        if frame[RRB_GR] | frame[RRB_FR] | frame[RRB_PR]:
            if len(self.stack) < sol:
                self.fill(sol - len(self.stack))
            self._settle()
        if sol:
            self._pull(sol)
        frame[:3] = [sof, sol, pfs >> 11 & 0x78]
        if self.nats:
            self._forget_nats(sof)
        self.a[EC] = pfs >> 52 & 63
        return None

    def _leave_rotated(self, pfs: int) -> None:
        sol = pfs >> 7 & 127
        if sol > pfs & 127 or pfs & 127 > _PHYSICAL:
            raise Illegal("ar.pfs has reserved values")
        if len(self.stack) < sol:
            self.fill(sol - len(self.stack))
        self._settle()
        if sol:
            self._pull(sol)
        self.set_cfm(pfs & PFM)
        self.a[EC] = pfs >> 52 & 63

    def alloc(self, sof: int, sol: int, sor: int) -> int:
        """Resize the frame; the value of ar.pfs."""
        frame = self.frame
        if sor != frame[SOR] and (frame[RRB_GR] | frame[RRB_FR] | frame[RRB_PR]):
            raise Illegal("alloc changes the rotating registers while they are rotated")
        old = frame[SOF]
        if sof > old:
            self.g[32 + old : 32 + sof] = [0] * (sof - old)
        if self.nats:
            self._forget_nats(min(old, sof))
        frame[:3] = [sof, sol, sor]
        return self.a[PFS]

    def cover(self) -> None:
        """The frame goes below; the new one is empty."""
        self._settle()
        sof = self.frame[SOF]
        if sof:
            self._push(sof)
        self.frame[:3] = [0, 0, 0]

    def spill(self, count: int) -> None:
        """Write the oldest `count` stacked registers to memory."""
        store, at, rnat = self.memory.store, self.bspstore, self.rnat
        nats = self.stack_nats if self.nats else None
        for index in range(count):
            store(at, 8, self.stack[index])
            bit = 1 << (at >> 3 & 63)
            rnat = rnat | bit if nats is not None and nats[index] else rnat & ~bit
            at += 8
            if at >> 3 & 63 == 63:
                store(at, 8, rnat)
                at += 8
        self.bspstore, self.rnat = at, rnat
        del self.stack[:count]
        if nats is not None:
            del nats[:count]

    def flush(self) -> None:
        """`flushrs`: all stacked registers below the frame are in memory."""
        self.spill(len(self.stack))

    def fill(self, count: int) -> None:
        """Load `count` registers from below bspstore."""
        load, at, rnat = self.memory.load, self.bspstore, self.rnat
        values: list[int] = []
        nats: list[int] = []
        for _ in range(count):
            at -= 8
            if at >> 3 & 63 == 63:
                rnat = load(at, 8)
                at -= 8
            values.append(load(at, 8))
            nats.append(rnat >> (at >> 3 & 63) & 1)
        if any(nats) and not self.nats:
            raise NatAppears
        self.bspstore, self.rnat = at, rnat
        self.stack[:0] = values[::-1]
        if self.nats:
            self.stack_nats[:0] = nats[::-1]

    def loadrs(self) -> None:
        """Make just the bytes that rsc.loadrs says below bsp dirty."""
        size = self.a[RSC] >> 16 & 0x3FF8
        if size and self.frame[SOF]:
            raise Illegal("loadrs with a frame that is not empty")
        want = self.bsp - size
        if want < self.bspstore:
            words = (self.bspstore - want) // 8
            first = want >> 3
            collections = (first + words + 0) // 64 - first // 64  # words at ...1f8 passed
            self.fill(words - collections)
            self.bspstore = want
            return
        drop = (want - self.bspstore) // 8
        first = self.bspstore >> 3
        drop -= (first + drop) // 64 - first // 64
        del self.stack[:drop]
        if self.nats:
            del self.stack_nats[:drop]
        self.bspstore = want

    def set_bspstore(self, value: int) -> None:
        """`mov` ar.bspstore: the registers not yet in memory move along."""
        if self.a[RSC] & 3:
            raise Illegal("ar.bspstore is written while ar.rsc.mode is not 0")
        self.bspstore = value & ~7
        self.bsp = self.bspstore + 8 * slots_up(self.bspstore, len(self.stack))

    def place_stack(self, bsp: int) -> None:
        """Set bsp from outside: nothing below it is in registers any more."""
        self.stack.clear()
        self.stack_nats.clear()
        self.bsp = self.bspstore = bsp & ~7

    def physical_float(self, register: int) -> int:
        """A number for a floating-point register that rotation does not change."""
        return register if register < 32 else 32 + (register - 32 + self.frame[RRB_FR]) % 96

    def odd_and_even(self, first: int, second: int) -> bool:
        """True if two floating-point registers may be the targets of a pair load."""
        return bool((self.physical_float(first) ^ self.physical_float(second)) & 1)

    # -- NaT bits -----------------------------------------------------------------------------

    def _forget_nats(self, sof: int) -> None:
        """No stacked register from this one on is a NaT: nothing beyond the frame is kept."""
        self.n[32 + sof :] = [0] * (96 - sof)

    def watch_nats(self) -> None:
        """From now on NaT bits are kept."""
        if not self.nats:
            self.nats = True
            self.n[:] = [0] * 128
            self.stack_nats = [0] * len(self.stack)

    def any_nat(self) -> bool:
        """True if any register is a NaT."""
        return any(self.n) or any(self.stack_nats)

    def ignore_nats(self) -> bool:
        """Stop keeping NaT bits if there are none; whether that is so."""
        if self.nats and not self.any_nat():
            self.nats = False
            self.stack_nats = []
        return not self.nats
