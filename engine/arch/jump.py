"""An architecture's part in jump probes: instructions moved, jumps written, detours made.

A jump probe overwrites the whole instructions of a window at its place with a jump to a detour
buffer: code of the engine that records the hit, carries the displaced instructions out, and jumps
back behind the window. `ArchJumps.relocate` answers whether an instruction can be displaced
(a query without effect) and emits it at another place (the second step).
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from engine.arch.recorder.encoder import Encoder


class Leaves(Enum):
    """Ways in which control leaves an instruction."""

    NEVER = auto()
    """Behind it."""
    PERHAPS = auto()
    """Behind it or elsewhere (a conditional branch), or elsewhere and back (a call)."""
    ALWAYS = auto()
    """Elsewhere."""


class Movable(Struct, frozen=True):
    """An instruction rewritten for another place, where it does what it does in place.

    Attributes:
        size: bytes of the code that stands for it, wherever that is.
        emit: (place) to that code, None where something it names is out of reach from there.
        leaves: where control goes from it. What leaves must be the last one of a window.
        copied: whether it is the instruction itself, but for a displacement.
        scratch: whether the code changes one of `ArchJumps.scratch`.
    """

    size: int
    emit: Callable[[int], bytes | None]
    leaves: Leaves = Leaves.NEVER
    copied: bool = True
    scratch: bool = False


class ArchJumps(Struct, frozen=True):
    """An architecture's part in jump probes.

    Attributes:
        least: bytes of a jump to a detour: a window has at least so many.
        most: bytes that the instructions of a window may have.
        reach: how far from its window a detour may be.
        movable: (instruction, its address) to how it is moved, or the reason why it cannot be.
            Whether it can, and where control goes from it, depends on its bytes alone.
        jump: (place, target, size) to a jump of exactly `size` bytes; None beyond its reach.
        copyable: whether Linux would copy an instruction into a detour.
        indirect: whether an instruction jumps to an address that it does not name itself.
        fixed: whether such a jump goes through one fixed pointer (a linkage table's).
        needs: (bytes of a function, its address) to what a detour lacks in it, "" for nothing.
        encoder: (address of the save area) to an encoder of recorders, with no code so far.
        led_encoder: the same for code that a breakpoint leads to, where `scratch` has been saved
            at `engine.arch.recording.SCRATCH` and is given back.
        scratch: registers, side by side in a processor's state, that a detour leaves changed
            where a jump leads there: the ABI lets any call change them, and `needs` refuses
            functions that use them.
        linux: whether Linux has jump probes on this architecture.
    """

    least: int
    most: int
    reach: int
    movable: Callable[[bytes, int], "Movable | str"]
    jump: Callable[[int, int, int], bytes | None]
    copyable: Callable[[bytes], bool]
    indirect: Callable[[bytes], bool]
    fixed: Callable[[bytes], bool]
    needs: Callable[[bytes, int], str]
    encoder: "Callable[[int], Encoder]"
    led_encoder: "Callable[[int], Encoder]"
    linux: bool
    scratch: tuple[str, ...] = ()
