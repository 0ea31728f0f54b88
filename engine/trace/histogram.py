"""Histograms of an event's fields as the kernel's hist trigger counts them: what one is.

`hist_parser` reads one, `histtable` counts and prints.
"""

from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from engine.errors import ProbeSyntaxError
from engine.trace.fields import FieldKind, find
from engine.trace.hist_errors import hist_error
from engine.trace.hist_fields import HITCOUNT, HistField, HistReference
from engine.trace.rows import EventInfo

if TYPE_CHECKING:
    from engine.trace.hist_actions import HistHandler
    from engine.trace.hist_fields import HistExpressions

DEFAULT_SIZE: Final = 2048


class SortKey(Struct, frozen=True):
    """The key of the order of rows: 0 is the hit count, then values, then keys."""

    index: int
    descending: bool = False


class HistSpec(Struct, frozen=True):
    """The request of a hist trigger.

    Attributes:
        command: its text, for errors.
        subsystem: who complains.
        keys: what an entry stands for.
        values: what is summed beside the hit count.
        sort: order of the entries.
        size: most entries.
        name: by which events share it, "" for none.
        action: "pause", "continue", "clear" or "".
        hitcount: whether the hit count is printed.
        variables: what each entry keeps of the last hit.
        handlers: what is done at a hit.
        references: variables that it reads.
        clock: of timestamps, "" where there are none.
        reader: reads what its handlers name.
    """

    command: str
    subsystem: str
    keys: tuple[HistField, ...]
    values: tuple[HistField, ...] = ()
    sort: tuple[SortKey, ...] = (SortKey(0),)
    size: int = DEFAULT_SIZE
    name: str = ""
    action: str = ""
    hitcount: bool = True
    variables: tuple[HistField, ...] = ()
    handlers: tuple["HistHandler", ...] = ()
    references: list[HistReference] = field(default_factory=list)
    clock: str = ""
    reader: "HistExpressions | None" = None

    @property
    def shape(self) -> tuple[object, ...]:
        """A key that two triggers have in common if they count the same."""
        return (
            tuple(one.shape for one in self.keys),
            tuple(one.shape for one in self.values),
            tuple(one.shape for one in self.variables),
            self.sort,
            tuple(one.shape for one in self.handlers),
        )

    def listing(self, condition: str = "", paused: bool = False) -> str:
        """The trigger's line in the event's `trigger` file and above its table."""
        name = f"name={self.name}:" if self.name else ""
        keys = ",".join(key.listing() for key in self.keys)
        counted = (HITCOUNT,) if self.hitcount else ()
        values = ",".join((*counted, *(value.listing() for value in self.values)))
        order = []
        for key in self.sort:
            fields = (None, *self.values, *self.keys)
            field = fields[key.index]
            text = HITCOUNT if field is None else field.listing()
            order.append(text + (".descending" if key.descending else ""))
        variables = ",".join(one.listing() for one in self.variables)
        between = f":{variables}" if variables else ""
        more = f":clock={self.clock}" if self.clock else ""
        more += "" if self.hitcount else ":nohitcount"
        more += "".join(one.listing() for one in self.handlers)
        more += f" if {condition}" if condition else ""
        state = "paused" if paused else "active"
        return (
            f"hist:{name}keys={keys}:vals={values}{between}:sort={','.join(order)}"
            f":size={self.size}{more} [{state}]"
        )

    def error(self, code: str, part: str = "", why: str = "") -> ProbeSyntaxError:
        """The kernel's error, with the caret under a part of the command."""
        return hist_error(self.command, self.subsystem, code, part, why)


def pointed_strings(spec: HistSpec, info: EventInfo) -> list[tuple[str, str]]:
    """The keys of a histogram that are pointers to strings, each with the field of the string.

    A system call's event has both: `filename` and `__filename_val`, as in
    kernel/trace/trace_syscalls.c.
    """
    pointers = [
        key.name
        for key in spec.keys
        if key.field is not None and key.field.kind is FieldKind.POINTER and not key.modifier
    ]
    found = [(name, f"__{name}_val") for name in pointers]
    return [(name, text) for name, text in found if find(info, text) is not None]
