"""The core's registers as words of one buffer, for machine code; copied in and out.

Generated Python works on lists because they are more than twice as quick for it as a view of a
buffer; machine code needs a buffer. A stretch of machine code is long enough to pay for copies.
"""

import ctypes
import struct
from typing import Final

from engine.arch.ia64.floatformats import Float
from engine.cpu.ia64.alat import ENTRIES as ALAT_ENTRIES
from engine.cpu.ia64.alat import Alat
from engine.cpu.ia64.clock import Ia64Clock
from engine.cpu.ia64.state import (
    CCV,
    CSD,
    EC,
    FPSR,
    LC,
    PFS,
    UNAT,
    State,
    slots_down,
    slots_up,
)

PR, BRANCH = 32, 33
SOF_WORD, SOL_WORD, SOR_WORD, RRB_GR_WORD, RRB_FR_WORD, RRB_PR_WORD = range(49, 55)
TURN = 55
"""Rotations of the floating-point registers since they were copied in, modulo 96."""
TOP, BOTTOM, LIMIT, LOW = range(56, 60)
"""Addresses in the buffer: of r32, of the oldest stacked register that was copied in, the last
`TOP` at which a call need not spill, and the lowest `TOP` so far."""
EXPECTED, TICKS, END, LEFT, LEFT_BEFORE, LEFT_FOR = range(60, 66)
"""The block clock: see `engine.cpu.ia64.clock.Ia64Clock`."""
FUEL, HALT = 66, 67
"""Transfers until Python is asked again; not 0 if the core is to stop."""
UM = 47
APPLICATION: Final = {LC: 41, EC: 42, PFS: 43, UNAT: 44, CCV: 45, FPSR: 46, CSD: 48}
"""Words of application registers."""
SIGNIFICANDS, EXPONENTS = 128, 256
"""Words of the floating-point registers: significands, signs and exponents."""
STACK: Final = 512
"""The stacked registers, oldest first; the frame's come behind those below it."""
_DEEPEST: Final = 4096  # stacked registers at which a call spills
_COPIED: Final = 128  # stacked registers below the frame that are copied in
FILL_READ, FILL_WRITE, ASSIST, FUSED, ALAT_INSERT, ALAT_TAKE, ALAT_STORED = range(68, 75)
"""Addresses of what machine code calls."""
ALAT_COUNT, ALAT_FILTER = 75, 76
"""Entries of the ALAT, and which eighths of 512 bytes any of them lies in."""
ENTRIES: Final = 1024
READ_TABLE: Final = STACK + _DEEPEST + 4 * 96
WRITE_TABLE: Final = READ_TABLE + 2 * ENTRIES
"""Pages that may be accessed: (page number, host address minus guest address), by
`(page ^ page >> 43) % ENTRIES`."""
PLACES: Final = 4096
PLACE_TABLE: Final = WRITE_TABLE + 2 * ENTRIES
"""Regions: (entry, function), by `(entry >> 4 ^ entry >> 16) % PLACES`."""
CELLS: Final = 1 << 16
CELL_TABLE: Final = PLACE_TABLE + 2 * PLACES
"""Functions of regions that other regions go on at, 0 where there is none."""
ALAT_TABLE: Final = CELL_TABLE + CELLS
"""The ALAT: (register, address, address behind), the oldest first."""
NATS: Final = ALAT_TABLE + 3 * ALAT_ENTRIES
"""Distance to the word that says if a general register is a NaT."""
_WORDS: Final = NATS + READ_TABLE
FLOAT_KEY: Final = 1 << 62
"""Added to the number of a floating-point register; a stacked one has its word's address >> 3."""

GRANTED: Final = 1 << 20
"""Transfers between regions, or backward branches, until Python may see to its signals."""

_FIXED: Final = struct.Struct("=32Q")
_MIXED: Final = struct.Struct(f"={FUEL + 1 - PR}Q")
_FRAME: Final = struct.Struct("=96Q")
_BITS_IN: Final = bytes(0x30 + (at & 1) for at in range(256))
_BITS_OUT: Final = bytes(at & 1 for at in range(256))


class Words:
    """The buffer.

    Attributes:
        words: its words.
        address: where it is.
    """

    def __init__(self, state: State, clock: Ia64Clock, alat: Alat) -> None:
        self._state, self._clock, self._alat = state, clock, alat
        self._buffer = (ctypes.c_uint64 * _WORDS)()
        self.address = ctypes.addressof(self._buffer)
        self.words = memoryview(self._buffer).cast("B").cast("Q")
        self._floats = self.words[SIGNIFICANDS : SIGNIFICANDS + 256]
        self._known: list[Float] = []
        self._seen = b""  # the words of those that are known
        self._start = 0

    def load(self) -> None:
        """Copy all registers in."""
        s, clock, buffer = self._state, self._clock, self._buffer
        g, a, stack, at = s.g, s.a, s.stack, STACK
        kept = len(stack)
        if kept > _COPIED:
            struct.pack_into(f"={_COPIED}Q", buffer, 8 * at, *stack[-_COPIED:])
            at += _COPIED
        elif kept:
            struct.pack_into(f"={kept}Q", buffer, 8 * at, *stack)
            at += kept
        _FIXED.pack_into(buffer, 0, *g[:32])
        _FRAME.pack_into(buffer, 8 * at, *g[32:])
        self._start = at
        if s.nats:
            self._load_nats(at)
        top, base = self.address + 8 * at, self.address
        limit = self.address + 8 * (STACK + _DEEPEST - kept + at - STACK)
        _MIXED.pack_into(
            buffer,
            8 * PR,
            int(bytes(s.p)[::-1].translate(_BITS_IN), 2),
            *s.b,
            *(a[LC], a[EC], a[PFS], a[UNAT], a[CCV], a[FPSR], s.um[0], a[CSD]),
            *s.frame,
            *(0, top, base + 8 * STACK, limit, top),
            *(clock.expected[0], clock.ticks, clock.end, *clock.last_branches),
            GRANTED,
        )
        if s.f != self._known:
            self._load_floats()
        self.load_alat()

    def _load_nats(self, at: int) -> None:
        """The same for NaT bits; the frame is at a word."""
        n, buffer, below = self._state.n, self._buffer, at - STACK
        if below:
            struct.pack_into(
                f"={below}Q", buffer, 8 * (NATS + STACK), *self._state.stack_nats[-below:]
            )
        _FIXED.pack_into(buffer, 8 * NATS, *n[:32])
        _FRAME.pack_into(buffer, 8 * (NATS + at), *n[32:])

    def _store_nats(self, at: int, lowest: int) -> None:
        n, buffer, nats = self._state.n, self._buffer, self._state.stack_nats
        n[:32] = _FIXED.unpack_from(buffer, 8 * NATS)
        n[32:] = _FRAME.unpack_from(buffer, 8 * (NATS + at))
        if lowest < self._start:
            del nats[lowest - self._start :]
        if at > lowest:
            nats += self.words[NATS + lowest : NATS + at].tolist()

    def _load_floats(self) -> None:
        known, floats = self._known, self._floats
        if not known:
            known[:] = [(-1, 0, 0)] * 128
        for at, value in enumerate(self._state.f):
            if value is not known[at]:
                known[at] = value
                floats[at] = value[2]
                floats[128 + at] = value[0] << 17 | value[1]
        self._seen = floats.tobytes()

    def store(self) -> int:
        """Copy all registers out; how many transfers there were."""
        s, clock, buffer, words = self._state, self._clock, self._buffer, self.words
        g, a, frame = s.g, s.a, s.frame
        mixed = _MIXED.unpack_from(buffer, 8 * PR)
        (pr, *s.b[:]) = mixed[:9]
        a[LC], a[EC], a[PFS], a[UNAT], a[CCV], a[FPSR], s.um[0], a[CSD] = mixed[9:17]
        frame[:] = mixed[17:23]
        turn, top, _, _, low = mixed[23:28]
        clock.expected[0], clock.ticks = mixed[28:30]
        clock.last_branches[0], clock.last_branches[1], clock.last_branches[2] = mixed[31:34]
        s.p[:] = f"{pr:064b}".encode()[::-1].translate(_BITS_OUT)
        at, lowest = (top - self.address) >> 3, (low - self.address) >> 3
        g[:32] = _FIXED.unpack_from(buffer, 0)
        g[32:] = _FRAME.unpack_from(buffer, 8 * at)
        start = self._start
        if lowest < start:
            del s.stack[lowest - start :]
        if at > lowest:
            s.stack += words[lowest:at].tolist()
        if s.nats:
            self._store_nats(at, lowest)
        moved = at - start
        if moved > 0:
            s.bsp = s.bsp + 8 * slots_up(s.bsp, moved)
        elif moved:
            s.bsp = s.bsp - 8 * slots_down(s.bsp, -moved)
        s.below += moved
        self.store_alat()
        if turn or self._floats.tobytes() != self._seen:
            self._store_floats(turn)
        return GRANTED - int(mixed[34])

    def _store_floats(self, turn: int) -> None:
        f, known, floats = self._state.f, self._known, self._floats
        if turn:
            rotating = slice(32 + turn, 128), slice(32, 32 + turn)
            for first in (0, 128):
                part = floats[first : first + 128].tolist()
                both = part[rotating[0]] + part[rotating[1]]
                floats[first + 32 : first + 128] = memoryview(struct.pack("=96Q", *both)).cast("Q")
        low, high = floats[:128].tolist(), floats[128:].tolist()
        for at in range(128):
            value = (high[at] >> 17, high[at] & 0x1FFFF, low[at])
            if turn or value != known[at]:
                f[at] = known[at] = value
        self._seen = floats.tobytes()

    # -- the ALAT -------------------------------------------------------------------------------

    def load_alat(self) -> None:
        """Copy the entries in; `TOP` is up to date."""
        words, at = self.words, ALAT_TABLE
        words[ALAT_COUNT] = len(self._alat)
        words[ALAT_FILTER] = 0
        if not self._alat:
            return
        stacked, filled = self._first_stacked(), 0
        for (kind, register), (start, end) in self._alat.items():
            # More frames may have been left than entered: numbers of stacked ones go down then.
            key = register if 0 <= register < 32 else register + stacked
            words[at] = key if kind == "r" else register | FLOAT_KEY
            words[at + 1], words[at + 2] = start, min(end, (1 << 64) - 1)
            for place in range(start >> 3, (end - 1 >> 3) + 1):
                filled |= 1 << (place & 63)
            at += 3
        words[ALAT_FILTER] = filled

    def store_alat(self) -> None:
        """Copy the entries out; the state's frame is up to date with `TOP`."""
        words, alat = self.words, self._alat
        count = words[ALAT_COUNT]
        if not count and not alat:
            return
        alat.clear()
        stacked = self._first_stacked()
        for at in range(ALAT_TABLE, ALAT_TABLE + 3 * count, 3):
            key = words[at]
            if key & FLOAT_KEY:
                name = ("f", key ^ FLOAT_KEY)
            else:
                name = ("r", key if key < 32 else key - stacked)
            alat[name] = words[at + 1], words[at + 2]

    def _first_stacked(self) -> int:
        """Key of a stacked register minus the number that the state has for it."""
        return (self.words[TOP] >> 3) - self._state.below - 1024

    # -- single registers, for what Python does for machine code ----------------------------

    def read_float(self, register: int) -> None:
        """Bring one floating-point register of the state up to date."""
        at = self._physical(register)
        sign = self._floats[128 + at]
        value = (sign >> 17, sign & 0x1FFFF, self._floats[at])
        self._state.f[register] = self._known[register] = value
        self._seen = b""

    def write_float(self, register: int) -> None:
        """Bring one floating-point register of the buffer up to date."""
        at = self._physical(register)
        value = self._known[register] = self._state.f[register]
        sign, exponent, self._floats[at] = value
        self._floats[128 + at] = sign << 17 | exponent

    def _physical(self, register: int) -> int:
        if register < 32:
            return register
        return 32 + (register - 32 + self.words[TURN]) % 96

    def general(self, register: int) -> int:
        """The index of a general register's word."""
        if register < 32:
            return register
        return ((self.words[TOP] - self.address) >> 3) + register - 32
