"""Reads hist triggers: what stands between `hist:` and the condition.

Parts are read in the order in which parse_hist_trigger_attrs and create_hist_data of
kernel/trace/trace_events_hist.c read them, so that of several faults the same one is told.
"""

from typing import Final

from engine.errors import UnloggedError
from engine.fetch.numbers import unsigned
from engine.trace.hist_actions import MOST_HANDLERS, HistHandler, is_handler, parse_handler
from engine.trace.hist_errors import number_error
from engine.trace.hist_fields import (
    HITCOUNT,
    MOST_VARIABLES,
    HistExpressions,
    HistField,
    left_word,
    root_operator,
)
from engine.trace.hist_scope import HistScope, aligned, no_scope
from engine.trace.histogram import DEFAULT_SIZE, HistSpec, SortKey
from engine.trace.rows import EventInfo

_BITS: Final = range(7, 18)
_KEYS_MAX, _VALUES_MAX, _SORT_MAX = 3, 3, 2
_KEY_BYTES: Final = 256 + 128
_ATTRIBUTES: Final = {
    "key": "keys",
    "keys": "keys",
    "val": "vals",
    "vals": "vals",
    "values": "vals",
    "sort": "sort",
    "name": "name",
    "size": "size",
    "clock": "clock",
}
_STATES: Final = {"pause": "pause", "cont": "continue", "continue": "continue", "clear": "clear"}
_STACK_NAMES: Final = ("stacktrace", "STACKTRACE")


def parse_hist(
    text: str,
    command: str,
    info: EventInfo,
    scope: HistScope | None = None,
    *,
    removing: bool = False,
) -> HistSpec:
    """Understand what stands between `hist:` and the condition.

    Args:
        text: what stands there: keys, values, sort and size.
        command: it with the condition, for errors.
        info: the event.
        scope: what it can name; None for an event that is alone.
        removing: it is to go: its variables are there.

    Raises:
        ProbeSyntaxError, UnloggedError: the kernel would refuse it.
    """
    reader = HistExpressions(info, f"hist:{command}", scope or no_scope())
    return _HistParser(text, reader, removing).parse()


class _HistParser:
    def __init__(self, text: str, reader: HistExpressions, removing: bool) -> None:
        # The '-' is no operator.
        self._text = text.replace(".sym-offset", ".symXoffset")
        self._reader = reader
        self._removing = removing
        self._fail = reader.fail
        self._given: dict[str, str] = {}
        self._assignments: list[str] = []
        self._handlers: list[str] = []
        self._action = ""
        self._hitcount = True

    def parse(self) -> HistSpec:
        for part in self._text.split(":"):
            self._part(part)
        given, reader = self._given, self._reader
        if "keys" not in given:
            raise UnloggedError("a histogram counts by keys=...")
        handlers = tuple(self._handler(part) for part in self._handlers)
        reader.matched = [one.match for one in handlers if one.match[0]]
        definitions = self._definitions()
        values = self._values(given.get("vals", ""))
        variables = self._variables(definitions)
        keys = self._keys(given["keys"])
        return HistSpec(
            reader.command,
            reader.subsystem,
            keys,
            values,
            self._sort(given.get("sort", ""), keys, values),
            self._size(given["size"]) if "size" in given else DEFAULT_SIZE,
            given.get("name", ""),
            self._action,
            self._hitcount,
            variables,
            handlers,
            reader.references,
            given.get("clock", "global").strip() if reader.timed else "",
            reader,
        )

    def _part(self, part: str) -> None:
        name, equals, value = part.partition("=")
        if equals:
            if not value:
                raise self._fail("EMPTY_ASSIGNMENT", part)
            known = _ATTRIBUTES.get(name)
            if known is not None:
                self._given[known] = value
                if known == "size":
                    self._size(value)
            elif len(self._assignments) == MOST_VARIABLES:
                raise self._fail("TOO_MANY_VARS", part)
            else:
                self._assignments.append(part)
        elif part in ("nohitcount", "NOHC"):
            self._hitcount = False
        elif part in _STATES:
            self._action = _STATES[part]
        elif is_handler(part) and len(self._handlers) < MOST_HANDLERS:
            self._handlers.append(part)
        else:
            why = "too many handlers" if is_handler(part) else "no part of a histogram"
            raise UnloggedError(f"{part!r}: {why}")

    def _handler(self, part: str) -> HistHandler:
        return parse_handler(part, self._reader)

    def _definitions(self) -> list[tuple[str, str]]:
        """Variables as written, each with its expression (parse_var_defs)."""
        found: list[tuple[str, str]] = []
        for part in self._assignments:
            for one in part.split(",")[:MOST_VARIABLES]:
                name, equals, text = one.partition("=")
                if not equals:
                    raise self._fail("MALFORMED_ASSIGNMENT", name)
                if len(found) == MOST_VARIABLES:
                    raise self._fail("TOO_MANY_VARS", name)
                found.append((name, text))
        for name, text in reversed(found):
            self._alias(name, text)
        return found

    def _values(self, text: str) -> tuple[HistField, ...]:
        found: list[HistField] = []
        counted = 0
        names = text.split(",") if text else []
        taken = 0
        while taken < min(len(names), _VALUES_MAX) and len(found) + 1 < _VALUES_MAX:
            name = names[taken]
            taken += 1
            if name == HITCOUNT:
                counted += 1
                if counted == 1:
                    continue
            found.append(self._reader.value(name))
        left = ",".join(names[taken:])
        if not found and not self._hitcount:
            raise self._fail("NEED_NOHC_VAL")
        if names[taken:] and left != HITCOUNT:
            raise UnloggedError(f"vals={text}: more than {_VALUES_MAX - 1} values")
        return tuple(found)

    def _variables(self, definitions: list[tuple[str, str]]) -> tuple[HistField, ...]:
        found: list[HistField] = []
        for name, text in definitions:
            again = any(one.variable == name for one in found)
            again = again or self._reader.scope.defines(self._reader.info, name)
            if again and not self._removing:
                raise self._fail("DUPLICATE_VAR", name)
            found.append(self._reader.value(text, name))
            # The kernel's parser has cut the text: what is left of it may be a field by now.
            self._alias(name, left_word(text))
        return tuple(found)

    def _alias(self, name: str, text: str) -> None:
        """`$NAME` stands for a field if that is all there is of it (field_name_from_var)."""
        if not root_operator(text)[0] and not text.startswith("$"):
            self._reader.aliases.setdefault(name, text)

    def _keys(self, text: str) -> tuple[HistField, ...]:
        names = text.split(",")
        found: list[HistField] = []
        size = 0
        for name in names[:_KEYS_MAX]:
            key = self._reader.key(name)
            size += aligned(key.size)
            if size > _KEY_BYTES:
                raise UnloggedError(f"keys={text}: a key has {_KEY_BYTES} bytes at the most")
            found.append(key)
        if len(names) > _KEYS_MAX:
            raise UnloggedError(f"keys={text}: more than {_KEYS_MAX} keys")
        return tuple(found)

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
            if name not in names and name in _STACK_NAMES:
                name = "common_stacktrace"
            if name not in names:
                raise self._fail("INVALID_SORT_FIELD", part.partition(".")[0])
            if dot and order not in ("ascending", "descending"):
                raise self._fail("INVALID_SORT_MODIFIER", order)
            found.append(SortKey(names.index(name), order == "descending"))
        return tuple(found)

    @staticmethod
    def _size(text: str) -> int:
        size = unsigned(text, 64)
        if size is None:
            raise number_error(text)
        bits = (max(size, 1) - 1).bit_length()
        if bits not in _BITS:
            raise UnloggedError(f"size={text}: the size goes from 65 to 131072")
        return 1 << bits
