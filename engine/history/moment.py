"""The moments of a run."""

from typing import NamedTuple


class Moment(NamedTuple):
    """A moment of a run, in front of an instruction; later ones are greater.

    Within a tick a program runs straight ahead, so that one tick has an address once.

    Attributes:
        at: entries of the journal before it.
        clock: the tick in which the instruction executes.
        pc: its address.
    """

    at: int
    clock: int
    pc: int
