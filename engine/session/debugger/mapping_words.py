"""The words that show the memory map: `info proc mappings`, `vmmap`."""

from collections.abc import Iterable

from engine.errors import CommandError, KprobeTuiError
from engine.guest.mapping import Mapping
from engine.session.debugger.debugger import NOT_RUN, Debugger


class MappingWords:
    """Shows mappings with their permissions and files."""

    def __init__(self, debugger: Debugger) -> None:
        """Show those of a debugger's program."""
        self._debugger = debugger

    def info_mappings(self, rest: str) -> None:
        """The memory map."""
        self._show(self._mappings())

    def vmmap(self, rest: str) -> None:
        """Show the memory map, or a part: vmmap [FILE | PERMISSIONS | ADDRESS].

        A part of a file's name, permissions as the map writes them ("rwx", "r-x"), or an
        expression whose value is an address.
        """
        wanted, mappings = rest.strip(), self._mappings()
        if not wanted:
            self._show(mappings)
            return
        named = [] if wanted[:1].isdigit() else mappings
        found = [each for each in named if wanted in each.name]
        found = found or [each for each in named if _perms(each).startswith(wanted)]
        if not found:
            try:
                address = self._debugger.value(wanted).as_address
            except KprobeTuiError as error:
                raise CommandError(f'Nothing mapped is called "{wanted}", and: {error}') from error
            found = [each for each in mappings if each.start <= address < each.end]
            if not found:
                raise CommandError(f"Nothing is mapped at {address:#x}.")
        self._show(found)

    def _mappings(self) -> list[Mapping]:
        debugger = self._debugger
        if not debugger.started:
            raise CommandError(NOT_RUN)
        every = debugger.frames.seen.memory.mappings
        return [each for each in every if each.perms or not each.reserved]

    def _show(self, mappings: Iterable[Mapping]) -> None:
        put = self._debugger.put
        put("          Start Addr           End Addr       Size     Offset  Perms  objfile")
        for each in mappings:
            put(
                f"{each.start:#20x} {each.end:#18x} {each.size:#10x} "
                f"{each.offset:#10x}  {_perms(each)}   {each.name}".rstrip()
            )


def _perms(mapping: Mapping) -> str:
    """Permissions as /proc/PID/maps has them: "r-xp", "rw-s"."""
    letters = ((1, "r"), (2, "w"), (4, "x"))
    perms = "".join(letter if mapping.perms & bit else "-" for bit, letter in letters)
    return perms + ("s" if mapping.shared else "p")
