"""The encoder of an architecture: the operations that recorders are made of.

Registers are the architecture's own numbers. An operation changes the register it is told to
change, and `RecorderRegisters.temporary` where that is none of its operands; it changes nothing
else, and no condition flag unless it says so. Offsets and addresses are in bytes, words have 64
bits and lie at multiples of 8.

Operations raise `engine.arch.recording.NotCompilableError` for operands that no instruction takes.
"""

from collections.abc import Mapping
from enum import IntEnum, auto
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from engine.arch.program import Compare


class Combination(IntEnum):
    """Operation that makes one register of two."""

    ADD = auto()
    SUB = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    AND_NOT = auto()
    """The first and the inverse of the second."""
    OR_NOT = auto()
    """The first or the inverse of the second."""


class Way(IntEnum):
    """Direction and kind of a shift."""

    LEFT = auto()
    RIGHT = auto()
    """With zeros from above."""
    ARITHMETIC = auto()
    """Right, with copies of the highest bit from above."""


class Shift(NamedTuple):
    """So many bits one way."""

    way: Way
    bits: int


class NumberTest(Struct, frozen=True):
    """A comparison of a number in a register with a constant.

    Attributes:
        compare: which comparison.
        register: its lowest bytes are the number.
        value: within the range of the number's type.
        size: of the number, 1, 2, 4 or 8 bytes.
        signed: whether the number is.
    """

    compare: Compare
    register: int
    value: int
    size: int
    signed: bool


class RecorderRegisters(Struct, frozen=True):
    """Registers as recorders use them.

    Attributes:
        names: those that fetches may name, to their numbers.
        pc: name of the program counter.
        sp: the stack pointer.
        result: where a function leaves its result.
        value: what is computed goes there.
        row: where the row stands once it is begun.
        others: further ones, in the order in which they are taken. With `value` and `row` they
            have the first words of the save area: there may be six.
        free: those of all these that the program does not need where a detour may be.
        temporary: one that any operation may change, free or entered; None if operations need
            none.
        popped: bytes by which a return moves the stack pointer up.
        vectors: vector registers that fetches may name, to their numbers.
        entered: those that are in the save area before the recorder begins, to their offsets
            there; `Encoder.end` gives them back.
    """

    names: Mapping[str, int]
    pc: str
    sp: int
    result: int
    value: int
    row: int
    others: tuple[int, ...]
    free: frozenset[int] = frozenset()
    temporary: int | None = None
    popped: int = 0
    vectors: Mapping[str, int] = field(default_factory=dict)
    entered: Mapping[int, int] = field(default_factory=dict)


class Encoder(Protocol):
    """Machine code with labels, added to operation by operation.

    A recorder is begun by `begin`, then flags are held and registers kept; it ends with
    `give_back` and `end`. Nothing but `value` and free registers may change before `keep`.
    """

    @property
    def registers(self) -> RecorderRegisters:
        """The architecture's registers."""

    @property
    def pieces(self) -> tuple[int, ...]:
        """Bytes that `jump_if_bytes` takes, the most first."""

    # -- a recorder's beginning and end ---------------------------------------------------

    def flags_free(self, window: bytes) -> bool:
        """Tell whether a recorder in front of some instructions may leave flags changed.

        That is so where they overwrite them all, and where no operation changes any.
        """

    def begin(self) -> None:
        """Save `value` in the first word of the save area, unless it is free or entered."""

    def hold_flags(self) -> None:
        """Keep flags, in `value` if need be; from here on operations may change them.

        `value` must not change from here to `keep` or `end`.
        """

    def keep(self, saved: Mapping[int, int], *, flags: bool) -> None:
        """Save registers at offsets in the save area; `value` has been saved by `begin`.

        Args:
            saved: registers to offsets.
            flags: they are held: save them too.
        """

    def give_back(self, saved: Mapping[int, int], *, flags: bool) -> None:
        """The reverse of `keep`: flags are held afterwards, `value` is not given back yet."""

    def end(self, *, flags: bool) -> None:
        """Give flags back, if they are held, and `value`.

        Entered registers are given back, and free ones must not be left with what depends on the
        host's time.
        """

    def finished(self) -> bytes:
        """The code with its jumps filled in."""

    # -- control --------------------------------------------------------------------------

    def label(self, name: str, /) -> int:
        """Give a name to what follows; its offset."""

    def jump(self, name: str, /) -> None:
        """Go to a label."""

    def jump_if_zero(self, register: int, name: str, /, *, zero: bool = True) -> None:
        """Go to a label if a register is 0 (`zero` False: if it is not). Flags may change."""

    def fits(self, value: int, size: int) -> bool:
        """Tell whether `jump_if` compares numbers of so many bytes with a value as it stands.

        Only then it leaves its `spare` alone.
        """

    def jump_if(self, what: NumberTest, name: str, *, outcome: bool, spare: int) -> None:
        """Go to a label if a comparison has an outcome.

        Flags and `spare` may change; the number does not.
        """

    def jump_if_bytes(
        self, base: int, offset: int, piece: bytes, name: str, *, equal: bool, spare: int
    ) -> None:
        """Go to a label if memory has some bytes, or has not. Flags may change.

        Args:
            base: the memory's address less `offset`.
            offset: as `reach` has returned it, plus a multiple of the piece's size.
            piece: as many as one of `pieces` says.
            name: the label.
            equal: whether to go there if they are the same.
            spare: a register that may change.
        """

    def trap(self) -> None:
        """The breakpoint at which the engine goes on."""

    # -- registers ------------------------------------------------------------------------

    def constant(self, register: int, value: int) -> None:
        """Set a register; only the value's lowest 64 bits count."""

    def move(self, target: int, source: int) -> None:
        """Copy a register, which may be the stack pointer."""

    def move_vector(self, target: int, source: int) -> None:
        """Copy the lowest 64 bits of a vector register."""

    def add(self, target: int, source: int, value: int) -> None:
        """Set a register to another one plus a constant."""

    def combine(
        self, how: Combination, target: int, one: int, other: int, shift: Shift | None = None
    ) -> None:
        """Set a register to a combination of two. Flags may change, but for ADD without a shift.

        Args:
            how: the combination.
            target: the register that is set; it may be one of the two.
            one: the first; it may be the stack pointer for ADD and SUB.
            other: the second; if it is shifted it may stay shifted.
            shift: what is done to it first.
        """

    def combine_constant(self, how: Combination, register: int, value: int, spare: int) -> None:
        """Combine a register with a constant by AND or XOR; `spare` and flags may change."""

    def extract(
        self, target: int, source: int, low: int, width: int, *, signed: bool = False
    ) -> None:
        """Set a register to some bits of another, from `low` on, as a signed number perhaps.

        Flags may change.
        """

    def count_bytes(self, register: int) -> None:
        """Set a register to the number of zero bytes at its low end. Flags may change."""

    def return_address(self, register: int) -> int:
        """The register that has the return address at a function's entry.

        Where no register of the architecture's has it, it is put into the one given.
        """

    # -- memory ---------------------------------------------------------------------------

    def load(self, register: int, base: int, offset: int, size: int = 8) -> None:
        """Load 1, 2, 4 or 8 bytes, with zeros above them; the base may be the stack pointer."""

    def store(self, register: int, base: int, offset: int) -> None:
        """Store a word at an offset from 0 on; not of the stack pointer."""

    def load_pair(self, first: int, second: int, base: int) -> None:
        """Load the two words at a base, which stays as it is."""

    def store_pair(self, first: int, second: int, base: int) -> None:
        """Store two words at a base."""

    def differ(self, target: int, base: int, offset: int, size: int, value: int) -> None:
        """Set a register to 4 or 8 bytes of memory XOR a constant. Flags may change."""

    def reach(self, register: int, offset: int) -> int:
        """Prepare loads at and behind a register plus an offset; changes it if need be.

        Returns:
            The offset that is left.
        """

    def read(self, register: int, address: int, size: int = 8) -> None:
        """Load 4 or 8 bytes at an address that detours share."""

    def write(self, address: int) -> None:
        """Store `value` at an address that detours share."""

    def increment(self, address: int) -> None:
        """Add 1 to a word that detours share; `value` may change."""

    def clock(self, time: int, spare: int) -> None:
        """Set `value` to the time: a word at an address less the one behind it.

        `spare` may change; it is not `value`.
        """
