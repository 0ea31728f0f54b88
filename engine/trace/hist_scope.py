"""The hist triggers of one trace as a new one sees them: their variables, and synthetic events."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from engine.trace.hist_fields import HistExpressions, HistField
from engine.trace.histtable import HistTable
from engine.trace.rows import EventInfo
from engine.trace.synthetic import SyntheticEvent


class RegisteredHist(Struct, eq=False):
    """A hist trigger that an event has.

    Attributes:
        info: the event.
        table: what it counts into; events share it where the trigger has a name.
        condition: its filter's text.
    """

    info: EventInfo
    table: HistTable
    condition: str = ""


class HistScope:
    """Names that hist triggers of one trace can use.

    Attributes:
        synthetic: synthetic events by name.
        registered: the triggers, in the order they came.
    """

    def __init__(self, event: Callable[[str, str], EventInfo | None]) -> None:
        """Nothing is there; `event` finds an event by group and name."""
        self.event = event
        self.synthetic: dict[str, SyntheticEvent] = {}
        self.registered: list[RegisteredHist] = []
        self.add: Callable[[EventInfo, str], object] = lambda info, text: None
        """Gives an event a trigger: what `onmatch` takes of another event is a variable there."""

    def on(self, info: EventInfo) -> list[RegisteredHist]:
        """The triggers of an event, in their order."""
        return [one for one in self.registered if one.info.id == info.id]

    def variable(
        self, reader: HistExpressions, name: str, group: str = "", event: str = ""
    ) -> tuple[HistTable, int]:
        """The table that has a variable, and the variable's slot in it (find_event_var).

        Raises:
            ProbeSyntaxError: there is none, or there are several.
        """
        if not group:
            matched = [
                found
                for match in reader.matched
                if (found := self._of_event(*match, name)) is not None
            ]
            if len(matched) > 1:
                raise reader.fail("VAR_NOT_UNIQUE", name)
            if matched:
                return matched[0]
            owners = [one for one in self.registered if slot_of(one.table.variables, name) >= 0]
            if len({one.info.id for one in owners}) > 1:
                raise reader.fail("VAR_NOT_UNIQUE", name)
            if not owners:
                raise reader.fail("VAR_NOT_FOUND", name)
            group, event = owners[0].info.group, owners[0].info.name
        found = self._of_event(group, event, name)
        if found is None:
            raise reader.fail("VAR_NOT_FOUND", name)
        return found

    def _of_event(self, group: str, event: str, name: str) -> tuple[HistTable, int] | None:
        info = self.event(group, event)
        for one in self.on(info) if info is not None else ():
            slot = slot_of(one.table.variables, name)
            if slot >= 0:
                return one.table, slot
        return None

    def readers(self, table: HistTable) -> list[RegisteredHist]:
        """The other triggers that read variables of a table's."""
        return [
            one
            for one in self.registered
            if one.table is not table and any(each.owner is table for each in one.table.references)
        ]

    def compatible(self, info: EventInfo, keys: Iterable[HistField]) -> RegisteredHist | None:
        """The first trigger of an event whose keys are of such types (find_compatible_hist)."""
        wanted = [(key.ctype, aligned(key.size), key.signed) for key in keys]
        for one in self.on(info):
            theirs = [(key.ctype, aligned(key.size), key.signed) for key in one.table.spec.keys]
            if theirs == wanted:
                return one
        return None

    def defines(self, info: EventInfo, name: str) -> bool:
        """True if a trigger of an event sets a variable."""
        return any(slot_of(one.table.variables, name) >= 0 for one in self.on(info))


def aligned(size: int) -> int:
    """Bytes of a key of a size."""
    return size + 7 & ~7


def slot_of(variables: Iterable[HistField], name: str) -> int:
    """The index of the variable of a name among others; -1 if it is not there."""
    return next((at for at, one in enumerate(variables) if one.variable == name), -1)


def no_scope() -> HistScope:
    """The scope of an event that is alone."""
    return HistScope(lambda group, name: None)
