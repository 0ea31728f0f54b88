"""Variables, synthetic events and handlers of hist triggers, as far as a kernel accepts them.

`hist:keys=K:v=FIELD[,w=$v-...]:onmatch(GROUP.EVENT).trace(SYNTH,...)` is checked for names that
are not there, as kernel/trace/trace_events_hist.c does; programs' histograms have none of it.
"""

import re
from typing import Final

from msgspec import Struct, field

from engine.errors import ProbeSyntaxError, UnloggedError
from engine.fetch.compile import is_identifier
from engine.trace.fields import find
from engine.trace.rows import EventInfo

TEXTS: Final[dict[str, str]] = {
    "DUPLICATE_VAR": "Variable already defined",
    "EMPTY_ASSIGNMENT": "Empty assignment",
    "FIELD_NOT_FOUND": "Couldn't find field",
    "VAR_NOT_FOUND": "Couldn't find variable",
    "HIST_NOT_FOUND": "Matching event histogram not found",
    "ONX_NOT_VAR": "For onmax(x) or onchange(x), x must be a variable",
    "ONX_VAR_NOT_FOUND": "Couldn't find onmax or onchange variable",
    "SYNTH_EVENT_NOT_FOUND": "Couldn't find synthetic event",
    "SYNTH_COUNT_MISMATCH": "Param count doesn't match synthetic event field count",
    "PARAM_NOT_FOUND": "Couldn't find param",
    "NO_CLOSING_PAREN": "No closing paren found",
    "ACTION_NOT_FOUND": "No action specified",
}
_KEYWORDS: Final = frozenset(
    ("key", "keys", "val", "vals", "values", "sort", "name", "size", "clock")
)
_HANDLER: Final = re.compile(
    r"on(?P<when>match|max|change)\((?P<what>[^)]*)(?P<closed>\)?)(?P<rest>.*)"
)
_ACTION: Final = re.compile(r"\.(?P<name>\w+)\((?P<params>[^)]*)(?P<closed>\)?)")
_OPERAND: Final = re.compile(r"[+*/-]")
_GENERIC: Final = frozenset(
    ("common_timestamp", "common_cpu", "common_comm", "common_stacktrace", "hitcount", "cpu")
)


class TriggerNames(Struct):
    """Names that the triggers of a kernel's events can refer to.

    Attributes:
        variables: names of variables, by the event (group and name) that sets them.
        synthetic: number of fields of synthetic events.
    """

    variables: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    synthetic: dict[str, int] = field(default_factory=dict)

    def define(self, line: str) -> None:
        """A line of synthetic_events.

        Raises:
            UnloggedError: it is none.
        """
        name, _, rest = line.partition(" ")
        fields = [one.split() for one in rest.split(";") if one.strip()]
        if not is_identifier(name) or not all(len(words) > 1 for words in fields):
            raise UnloggedError(f"{line}: a synthetic event is NAME TYPE FIELD; ...")
        if name in self.synthetic:
            raise UnloggedError(f"{name}: there is one", "EEXIST")
        self.synthetic[name] = len(fields)

    def knows(self, name: str) -> bool:
        """True if any event sets a variable."""
        return any(name in known for known in self.variables.values())


class HistVariables:
    """The parts of one hist trigger that are no keys, values or their order."""

    def __init__(self, info: EventInfo, command: str, names: TriggerNames) -> None:
        """Nothing is known of the trigger yet.

        Args:
            info: the event.
            command: the trigger with its condition, for errors.
            names: what it may refer to.
        """
        self._info = info
        self._command = command
        self._names = names
        self.defined: set[str] = set()
        """Variables that it sets."""

    def plain(self, text: str) -> str:
        """The parts of a trigger that are left; `text` is what stands before the condition.

        Raises:
            ProbeSyntaxError: the kernel refuses the others.
        """
        left: list[str] = []
        handlers: list[str] = []
        for part in text.split(":"):
            key, equals, _ = part.partition("=")
            if part.startswith(("onmatch(", "onmax(", "onchange(")):
                handlers.append(part)
            elif equals and key not in _KEYWORDS:
                self._assign(part)
            else:
                left.append(part)
        for handler in handlers:
            self._handler(handler)
        return ":".join(left)

    def _fail(self, code: str, part: str) -> ProbeSyntaxError:
        where = max(self._command.find(part), 0)
        owner = f"hist:{self._info.group}:{self._info.name}"
        return ProbeSyntaxError(code, TEXTS[code], self._command, where, owner)

    def _assign(self, part: str) -> None:
        for one in part.split(","):
            name, _, value = one.partition("=")
            if not value:
                raise self._fail("EMPTY_ASSIGNMENT", part)
            if name in self.defined:
                raise self._fail("DUPLICATE_VAR", name)
            for operand in _OPERAND.split(value):
                self._value(operand, "FIELD_NOT_FOUND")
            self.defined.add(name)

    def _value(self, text: str, code: str) -> None:
        """Refuse a field or variable that is not there."""
        if text.startswith("$"):
            name = text[1:].rpartition(".")[2]
            if name not in self.defined and not self._names.knows(name):
                raise self._fail("VAR_NOT_FOUND", text)
            return
        name = text.partition(".")[0]
        if name.isdecimal() or name in _GENERIC or find(self._info, name) is not None:
            return
        raise self._fail(code, text)

    def _handler(self, part: str) -> None:
        match = _HANDLER.match(part)
        if match is None or not match["closed"]:
            raise self._fail("NO_CLOSING_PAREN", part)
        action = _ACTION.match(match["rest"])
        if action is None:
            raise self._fail("ACTION_NOT_FOUND", part)
        what = match["what"]
        if match["when"] == "match":
            group, _, name = what.partition(".")
            if (group, name) not in self._names.variables:
                raise self._fail("HIST_NOT_FOUND", what)
        elif not what.startswith("$"):
            raise self._fail("ONX_NOT_VAR", what)
        elif what[1:] not in self.defined and not self._names.knows(what[1:]):
            raise self._fail("ONX_VAR_NOT_FOUND", what)
        self._action(action)

    def _action(self, action: re.Match[str]) -> None:
        params = [one for one in action["params"].split(",") if one]
        name = action["name"]
        if name == "snapshot":
            return
        if name == "trace":
            name, params = (params[0], params[1:]) if params else ("", [])
        if name != "save":
            fields = self._names.synthetic.get(name)
            if fields is None:
                raise self._fail("SYNTH_EVENT_NOT_FOUND", name)
            if fields != len(params):
                raise self._fail("SYNTH_COUNT_MISMATCH", name)
        for one in params:
            self._value(one, "PARAM_NOT_FOUND")
