"""The breakpoint technique: a trap at the place, and the instruction carried out elsewhere.

Every point begins with it, and falls back to it. `breakpoint_actions` carries a hit out inside
the emulator, `hits` outside of it, `breakpoint_machine` one visible phase at a time.
"""

from typing import Final

from engine.probes.breakpoint_machine import BreakpointMachine
from engine.probes.technique_kind import TechniqueKind

BREAKPOINT: Final = TechniqueKind(
    name="breakpoint",
    help="",
    stands="breakpoint",
    usual=True,
    machine=BreakpointMachine,
    build=lambda host: None,
)
