"""Places of a booted kernel by a user's names: FUNCTION, FUNCTION+OFF, an address, $register."""

import re
from typing import Final

from engine.errors import CommandError
from engine.session.bootcontrol.boot import ControlledBoot
from engine.session.bootcontrol.telescope import MachineTelescope
from engine.session.booted.program_places import is_of_program
from engine.trace.tracepoints import selection

_MOST: Final = 1 << 64
_PLACE: Final = re.compile(r"([A-Za-z_.][\w.$]*)(?:\+(0[xX][0-9a-fA-F]+|\d+))?")


class KernelPlaceNames:
    """The names of places in one boot."""

    def __init__(self, boot: ControlledBoot) -> None:
        """Take the names of the boot's kernel and modules."""
        self._boot = boot

    def address(self, text: str) -> int:
        """The address of a place.

        Raises:
            CommandError: there is none such.
        """
        text = text.strip().removeprefix("*").removeprefix("&")
        if text.startswith("$"):
            return self._register(text[1:])
        try:
            return int(text, 0) % _MOST
        except ValueError:
            pass
        found = _PLACE.fullmatch(text)
        if found is None:
            raise CommandError(f"{text}: no place: FUNCTION, FUNCTION+OFFSET, an address, $rip")
        at = self._named(found[1])
        return (at + int(found[2] or "0", 0)) % _MOST

    def _register(self, name: str) -> int:
        arch, machine = self._boot.opened.arch, self._boot.machine
        name = {"pc": arch.roles.pc, "sp": arch.roles.sp}.get(name, name)
        if not machine.has_register(name):
            raise CommandError(f"${name}: the machine has no such register")
        return machine.register(name)

    def _named(self, name: str) -> int:
        found = self._boot.opened.image.names.find(name)
        if found is not None:
            return found
        modules = self._boot.machine.modules
        if modules is not None:
            modules.look()
            for module in modules.loaded.values():
                function = module.find(name)
                if function is not None:
                    return function.start
        raise CommandError(f"the kernel has no symbol {name}")

    def text(self, address: int) -> str:
        """A place in words."""
        return MachineTelescope(self._boot).named(address)[0] or f"{address:#x}"

    def is_outside(self, line: str) -> bool:
        """True for a definition that stands in a program, or on other events."""
        return selection(line) is not None or is_of_program(line)
