"""Histograms of an event's fields as the kernel's hist trigger counts them.

Syntax and errors are those of kernel/trace/trace_events_hist.c without variables, expressions,
synthetic events and handlers. `histtable` counts and prints.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import ProbeSyntaxError, UnloggedError
from engine.fetch.numbers import signed, unsigned
from engine.trace.fields import Field, FieldKind, find
from engine.trace.rows import EventInfo

TEXTS: Final[dict[str, str]] = {
    "NAMED_MISMATCH": "Named hist trigger doesn't match existing named trigger "
    "(includes variables)",
    "TRIGGER_EEXIST": "Hist trigger already exists",
    "TRIGGER_ENOENT_CLEAR": "Can't clear or continue a nonexistent hist trigger",
    "BAD_FIELD_MODIFIER": "Invalid field modifier",
    "FIELD_NOT_FOUND": "Couldn't find field",
    "EMPTY_ASSIGNMENT": "Empty assignment",
    "INVALID_SORT_MODIFIER": "Invalid sort modifier",
    "EMPTY_SORT_FIELD": "Empty sort field",
    "TOO_MANY_SORT_FIELDS": "Too many sort fields (Max = 2)",
    "INVALID_SORT_FIELD": "Sort field must be a key or a val",
    "NEED_NOHC_VAL": "Specify value(s) if nohitcount is used",
    "SYNTAX": "Invalid argument",
}
HITCOUNT: Final = "hitcount"
DEFAULT_SIZE: Final = 2048
_BITS: Final = range(7, 18)
_KEYS_MAX, _VALUES_MAX, _SORT_MAX = 3, 3, 2
_KEY_ONLY: Final = ("sym", "sym-offset", "syscall", "execname", "log2", "buckets", "stacktrace")
_VALUE_ONLY: Final = ("percent", "graph")
_PLAIN: Final = ("hex", *(name for name in (*_KEY_ONLY, *_VALUE_ONLY) if name != "buckets"))
_STACK_NAMES: Final = ("stacktrace", "common_stacktrace", "STACKTRACE")


class HistField(Struct, frozen=True):
    """A key or a value.

    Attributes:
        name: of the field, as printed.
        field: where its number or string is; None for a count, a time, a CPU, a stack.
        modifier: how it is counted or printed, "" for plain.
        buckets: width of a bucket.
    """

    name: str
    field: Field | None
    modifier: str = ""
    buckets: int = 0

    @property
    def is_string(self) -> bool:
        """True if its values are strings; pointers to strings are numbers here."""
        if self.name == "common_comm":
            return True
        return self.field is not None and self.field.kind in (FieldKind.STRING, FieldKind.COMM)

    def listing(self) -> str:
        """As a trigger's line shows it."""
        if self.name == "common_stacktrace":
            return self.name
        text = f"{self.name}.{self.modifier}" if self.modifier else self.name
        return f"{text}={self.buckets}" if self.buckets else text


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

    @property
    def shape(self) -> tuple[object, ...]:
        """A key that two triggers have in common if they count the same."""
        keys = tuple(replace(key, field=_plain(key.field)) for key in self.keys)
        values = tuple(replace(value, field=_plain(value.field)) for value in self.values)
        return keys, values, self.sort

    def listing(self, condition: str = "", paused: bool = False) -> str:
        """The trigger's line in the event's `trigger` file and above its table."""
        name = f"{self.name}:" if self.name else ""
        keys = ",".join(key.listing() for key in self.keys)
        values = ",".join((HITCOUNT, *(value.listing() for value in self.values)))
        order = []
        for key in self.sort:
            fields = (None, *self.values, *self.keys)
            field = fields[key.index]
            text = HITCOUNT if field is None else field.listing()
            order.append(text + (".descending" if key.descending else ""))
        more = "" if self.hitcount else ":nohitcount"
        more += f" if {condition}" if condition else ""
        state = "paused" if paused else "active"
        return (
            f"hist:{name}keys={keys}:vals={values}:sort={','.join(order)}:size={self.size}"
            f"{more} [{state}]"
        )

    def error(self, code: str, part: str = "", why: str = "") -> ProbeSyntaxError:
        """The kernel's error, with the caret under a part of the command."""
        return _error(self.command, self.subsystem, code, part, why)


def _plain(field: Field | None) -> Field | None:
    """The field without its place: named histograms may count it elsewhere."""
    return None if field is None else replace(field, row=0, offset=0, column=None)


def _error(command: str, subsystem: str, code: str, part: str, why: str) -> ProbeSyntaxError:
    at = command.find(part) if part else 0
    error = ProbeSyntaxError(code, TEXTS[code], command, max(at, 0), subsystem)
    if why:
        error.explain(why)
    return error


def parse_hist(text: str, command: str, info: EventInfo) -> HistSpec:
    """Understand what stands between `hist:` and the condition.

    Args:
        text: what stands there: keys, values, sort and size.
        command: it with the condition, for errors.
        info: the event.

    Raises:
        ProbeSyntaxError: the kernel would refuse it, or it is a part we do not have.
    """
    return _HistogramParser(text, f"hist:{command}", info).parse()


class _HistogramParser:
    def __init__(self, text: str, command: str, info: EventInfo) -> None:
        self._text = text
        self._command = command
        self._info = info
        self._subsystem = f"hist:{info.group}:{info.name}"

    def _fail(self, code: str, part: str = "", why: str = "") -> ProbeSyntaxError:
        return _error(self._command, self._subsystem, code, part, why)

    def parse(self) -> HistSpec:
        given: dict[str, str] = {}
        action, hitcount = "", True
        for part in self._text.split(":"):
            key, equals, value = part.partition("=")
            if equals:
                if not value:
                    raise self._fail("EMPTY_ASSIGNMENT", part)
                known = {"key": "keys", "val": "vals", "values": "vals"}.get(key, key)
                if known not in ("keys", "vals", "sort", "name", "size", "clock"):
                    raise self._fail("SYNTAX", part, "variables are not part of this version")
                given[known] = value
            elif part in ("nohitcount", "NOHC"):
                hitcount = False
            elif part in ("pause", "cont", "continue", "clear"):
                action = {"cont": "continue"}.get(part, part)
            else:
                raise self._fail("SYNTAX", part, "handlers are not part of this version")
        if "keys" not in given:
            raise UnloggedError("a histogram counts by keys=...")
        keys = self._keys(given["keys"])
        values = self._values(given.get("vals", ""), hitcount)
        return HistSpec(
            self._command,
            self._subsystem,
            keys,
            values,
            self._sort(given.get("sort", ""), keys, values),
            self._size(given["size"]) if "size" in given else DEFAULT_SIZE,
            given.get("name", ""),
            action,
            hitcount,
        )

    def _keys(self, text: str) -> tuple[HistField, ...]:
        names = text.split(",")
        if len(names) > _KEYS_MAX:
            raise self._fail("SYNTAX", text, f"more than {_KEYS_MAX} keys")
        return tuple(self._field(name, key=True) for name in names)

    def _values(self, text: str, hitcount: bool) -> tuple[HistField, ...]:
        names = [name for name in text.split(",") if name] if text else []
        found = [self._field(name) for name in names if name != HITCOUNT]
        if len(found) >= _VALUES_MAX:
            raise self._fail("SYNTAX", text, f"more than {_VALUES_MAX - 1} values")
        if not hitcount and not found:
            raise self._fail("NEED_NOHC_VAL")
        return tuple(found)

    def _field(self, text: str, *, key: bool = False) -> HistField:
        name, dot, modifier = text.partition(".")
        buckets = 0
        if dot:
            modifier, buckets = self._modifier(name, modifier, key)
        if name in _STACK_NAMES or modifier == "stacktrace":
            if not key or modifier:
                raise self._fail("BAD_FIELD_MODIFIER", modifier or text)
            return HistField("common_stacktrace", None)
        if name in ("common_cpu", "cpu", "CPU"):
            return HistField("common_cpu", None, modifier, buckets)
        if name == "common_timestamp":
            return HistField(name, None, modifier, buckets)
        if name == "common_comm":
            return HistField(name, None)
        if name == HITCOUNT:
            return HistField(name, None, modifier)
        if any(sign in name for sign in "+-*/"):
            raise self._fail("SYNTAX", text, "expressions are not part of this version")
        field = find(self._info, name)
        if field is None:
            raise self._fail("FIELD_NOT_FOUND", name)
        if field.kind is FieldKind.COMM:
            return HistField("common_comm", None)
        if field.kind is not FieldKind.STRING and field.size not in (1, 2, 4, 8):
            raise self._fail("SYNTAX", name, "arrays cannot be counted")
        if field.kind is FieldKind.STRING and not key:
            raise self._fail("SYNTAX", name, "a value must be a number")
        if field.column is not None and field.column.type.count:
            raise self._fail("SYNTAX", name, "arrays cannot be counted")
        if field.is_float:
            raise self._fail("SYNTAX", name, "numbers with a point cannot be counted")
        return HistField(name, field, modifier, buckets)

    def _modifier(self, name: str, modifier: str, key: bool) -> tuple[str, int]:
        if modifier.startswith("bucket"):
            rest = modifier.removeprefix("bucket").removeprefix("s")
            width = unsigned(rest[1:], 64) if rest.startswith("=") else None
            if not width or not key:
                raise self._fail("BAD_FIELD_MODIFIER", modifier)
            return "buckets", width
        good = modifier in _PLAIN and modifier not in (_VALUE_ONLY if key else _KEY_ONLY)
        if not good or (modifier == "execname" and name != "common_pid"):
            raise self._fail("BAD_FIELD_MODIFIER", modifier)
        return modifier, 0

    def _sort(
        self, text: str, keys: tuple[HistField, ...], values: tuple[HistField, ...]
    ) -> tuple[SortKey, ...]:
        if not text:
            return (SortKey(0),)
        found: list[SortKey] = []
        names = [HITCOUNT, *(value.name for value in values), *(key.name for key in keys)]
        parts = text.split(",")
        for number, part in enumerate(parts):
            if not part:
                raise self._fail("EMPTY_SORT_FIELD", "sort=")
            if number == _SORT_MAX - 1 and len(parts) > _SORT_MAX:
                raise self._fail("TOO_MANY_SORT_FIELDS", "sort=")
            name, dot, order = part.partition(".")
            if not name:
                raise self._fail("EMPTY_SORT_FIELD", "sort=")
            if dot and order not in ("ascending", "descending"):
                raise self._fail("INVALID_SORT_MODIFIER", order)
            name = "common_stacktrace" if name in _STACK_NAMES else name
            name = "common_cpu" if name in ("cpu", "CPU") else name
            name = "common_comm" if name in ("comm", "COMM") else name
            if name not in names:
                raise self._fail("INVALID_SORT_FIELD", part)
            found.append(SortKey(names.index(name), order == "descending"))
        return tuple(found)

    def _size(self, text: str) -> int:
        size = signed(text, 32)
        bits = (max(size, 1) - 1).bit_length() if size is not None else -1
        if bits not in _BITS:
            raise self._fail("SYNTAX", text, "the size goes from 65 to 131072")
        return 1 << bits


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
