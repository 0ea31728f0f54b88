"""What names in a filter mean to a trace's events."""

from engine.arch.plan import Mode
from engine.probes.code_map import CodeMap
from engine.session.program.places import PlaceError
from engine.trace.filter import FilterMachine
from engine.trace.rows import EventInfo, EventSource


class FilterNames:
    """Says what the filter of an event is parsed for; called with the event."""

    def __init__(self, mode: Mode, code_map: CodeMap) -> None:
        """Set up.

        Args:
            mode: kernel mode has the kernel's pointers only.
            code_map: finds functions.
        """
        self._strict = mode is not Mode.KERNEL
        self._placement = code_map

    def __call__(self, info: EventInfo) -> FilterMachine:
        """The names that a filter of an event may use."""
        if not info.symbolic and info.source is EventSource.PROBE:
            return FilterMachine(kernel_pointers=not self._strict)
        return FilterMachine(functions=self._function, kernel_pointers=not self._strict)

    def _function(self, name: str | int) -> tuple[int, int] | None:
        """Where a function of the guest is, by its name or an address in it."""
        try:
            address = self._placement.symbol(name) if isinstance(name, str) else name
        except PlaceError:
            return None
        return None if address is None else self._placement.function(address)
