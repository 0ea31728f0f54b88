"""The techniques that there are, and who of them a user has asked for."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.probes.breakpoint import BREAKPOINT
from engine.probes.djprobe import DJPROBE
from engine.probes.jump import JUMP
from engine.probes.nop5 import NOP5
from engine.probes.technique_kind import TechniqueKind

TECHNIQUES: Final[tuple[TechniqueKind, ...]] = (BREAKPOINT, JUMP, DJPROBE, NOP5)
"""All of them: first the one that every point begins with, then the preferred ones first."""

AUTO: Final = "auto"


def technique_names() -> tuple[str, ...]:
    """Names that a user may choose from; "auto": those that are usual, where they pay."""
    return (AUTO, *(kind.name for kind in TECHNIQUES))


class TechniqueChoice(Struct, frozen=True):
    """The techniques of a user's choice.

    Attributes:
        kinds: the techniques that are used, first the one that every point begins with.
        at_once: a technique was asked for by name: points need not be hit first, nor need it pay.
    """

    kinds: tuple[TechniqueKind, ...]
    at_once: bool

    @property
    def replaces(self) -> bool:
        """True if anything is to take the place of breakpoints."""
        return len(self.kinds) > 1

    def scratch(self, arch: Arch) -> frozenset[str]:
        """Registers that may be left changed on an architecture."""
        return frozenset(name for kind in self.kinds for name in kind.scratch(arch))


def chosen(name: str) -> TechniqueChoice:
    """The techniques that one of `technique_names` stands for."""
    first, *others = TECHNIQUES
    if name == AUTO:
        kinds: Iterable[TechniqueKind] = (kind for kind in others if kind.usual)
    else:
        kinds = (kind for kind in others if kind.name == name)
    choice = (first, *kinds)
    return TechniqueChoice(choice, at_once=name != AUTO and len(choice) > 1)
