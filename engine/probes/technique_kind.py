"""Kinds of techniques: what is known of one before it is at work in a guest."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from engine.arch.base import Arch
from engine.probes.hit_machine import HitMachine
from engine.probes.hits import HitDispatcher
from engine.probes.jumpplace import JumpPlace
from engine.probes.placement_rules import Check
from engine.probes.technique import Technique, TechniqueHost


def _nothing(arch: Arch) -> tuple[str, ...]:
    return ()


class TechniqueConditions(Struct, frozen=True):
    """The conditions of a technique at a place, as far as files tell.

    Attributes:
        title: what may come of a place that meets them, in words.
        checklist: all that apply and how each came out.
        failing: id of the first one that is not met, "" if all are.
        failing_in: the same of each instruction of the function around a place, without a guest.
        fitting: other addresses of the function that meet them, the nearest first.
    """

    title: str
    checklist: Callable[[JumpPlace], tuple[Check, ...]]
    failing: Callable[[JumpPlace], str]
    failing_in: Callable[[JumpPlace], Sequence[str]]
    fitting: Callable[[JumpPlace], Iterator[int]]


class TechniqueKind(Struct, frozen=True):
    """A kind of technique.

    Attributes:
        name: as a user chooses it.
        help: what choosing it does, for the command line; "" for what needs no words.
        stands: what people are told stands where it has taken a breakpoint's place.
        usual: it is used if none is chosen.
        machine: carries out, a phase at a time, a hit where it stands.
        build: sets it up in a guest; None where that guest cannot have it, or where there is
            nothing to set up as it replaces no breakpoint.
        conditions: of it at a place; None where a breakpoint has no other ones.
        scratch: registers that it may leave changed on an architecture.
    """

    name: str
    help: str
    stands: str
    usual: bool
    machine: Callable[[HitDispatcher], HitMachine]
    build: Callable[[TechniqueHost], Technique | None]
    conditions: TechniqueConditions | None = None
    scratch: Callable[[Arch], tuple[str, ...]] = _nothing
