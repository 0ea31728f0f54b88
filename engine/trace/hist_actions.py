"""Handlers of hist triggers and what they do: `onmatch(GROUP.EVENT).SYNTH(...)`, `onmax($v)...`.

Read in two steps, as in kernel/trace/trace_events_hist.c: their words before the histogram's
fields (parse_actions), what they name once the trigger is known to be new (create_actions).
"""

from enum import Enum
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import ProbeError, ProbeSyntaxError, UnloggedError
from engine.trace.hist_fields import (
    MOST_VARIABLES,
    HistExpressions,
    HistField,
    HistReference,
)
from engine.trace.hist_scope import HistScope, slot_of
from engine.trace.histogram import HistSpec
from engine.trace.rows import EventInfo
from engine.trace.synthetic import MOST_FIELDS, SyntheticEvent, SyntheticField

MOST_HANDLERS: Final = 8


class HistMoment(Enum):
    """The moments at which something is done."""

    MATCH = "onmatch"
    MAX = "onmax"
    CHANGE = "onchange"


class Act(Enum):
    """The things that can be done."""

    SAVE = "save"
    SNAPSHOT = "snapshot"
    TRACE = "trace"


class HistHandler(Struct, frozen=True):
    """One handler as it was written.

    Attributes:
        when: its moment.
        act: what it does.
        name: the action's name, as written: a synthetic event's, or "trace" and the like.
        match: group and name of the event of `onmatch`.
        tracked: the variable of `onmax` and `onchange`, as written.
        params: of the action; without the event's name where `name` is "trace".
        synthetic: the synthetic event's name.
    """

    when: HistMoment
    act: Act
    name: str
    match: tuple[str, str] = ("", "")
    tracked: str = ""
    params: tuple[str, ...] = ()
    synthetic: str = ""

    def listing(self) -> str:
        """As a trigger's line shows it."""
        about = ".".join(self.match) if self.when is HistMoment.MATCH else self.tracked
        params = self.params
        if self.act is Act.TRACE and self.name != self.synthetic:
            params = (self.synthetic, *params)
        return f":{self.when.value}({about}).{self.name}({','.join(params)})"

    @property
    def shape(self) -> tuple[object, ...]:
        """The parts by which handlers are the same (actions_match)."""
        name = self.synthetic or self.name
        return self.when, self.act, self.params, name, self.match, self.tracked


class SavedField(Struct, frozen=True):
    """A field that an action keeps in a variable of its histogram.

    Attributes:
        name: as it was written.
        field: where its value comes from.
        slot: where it goes.
    """

    name: str
    field: HistField
    slot: int


class HistAction(Struct, eq=False):
    """A handler with all that it names found.

    Attributes:
        handler: as it was written.
        slot: where the highest, or the last, value of the tracked variable is.
        tracked: that variable.
        event: the synthetic event that is made.
        params: the variables that it is made of.
    """

    handler: HistHandler
    slot: int = -1
    tracked: HistReference | None = None
    event: SyntheticEvent | None = None
    params: tuple[HistReference, ...] = ()


class HistBinding(Struct, eq=False):
    """All handlers of a trigger with what they name.

    Attributes:
        actions: in their order.
        fields: fields that become variables at each hit.
        saved: fields that `save()` keeps.
        added: triggers that other events got for it, each with its event.
    """

    actions: list[HistAction] = field(default_factory=list)
    fields: list[SavedField] = field(default_factory=list)
    saved: list[SavedField] = field(default_factory=list)
    added: list[tuple[EventInfo, str]] = field(default_factory=list)


# -- words --------------------------------------------------------------------------------


def is_handler(part: str) -> bool:
    """True for a part of a trigger that is a handler."""
    return part.startswith(tuple(f"{each.value}(" for each in HistMoment))


def parse_handler(part: str, reader: HistExpressions) -> HistHandler:
    """The words of one handler.

    Raises:
        ProbeSyntaxError, UnloggedError: the kernel would refuse it.
    """
    when = next(each for each in HistMoment if part.startswith(f"{each.value}("))
    about, paren, rest = part.removeprefix(f"{when.value}(").partition(")")
    match = "", ""
    if when is HistMoment.MATCH:
        if not paren:
            raise reader.fail("NO_CLOSING_PAREN", about)
        group, dot, event = about.partition(".")
        if not dot:
            raise reader.fail("SUBSYS_NOT_FOUND", group)
        if reader.scope.event(group, event) is None:
            raise reader.fail("INVALID_SUBSYS_EVENT", event)
        match = group, event
    elif not paren:
        raise UnloggedError(f"{part}: the parenthesis is not closed")
    _, dot, action = rest.partition(".")
    name, opened, behind = action.partition("(")
    if not dot or not opened:
        raise reader.fail("ACTION_NOT_FOUND")
    inside, closed, _ = behind.partition(")")
    tracked = "" if when is HistMoment.MATCH else about
    if name.startswith("save"):
        params = _params(inside, reader)
        if when is HistMoment.MATCH:
            raise reader.fail("ACTION_MISMATCH", name)
        return HistHandler(when, Act.SAVE, name, match, tracked, params)
    if name.startswith("snapshot"):
        if not closed:
            raise reader.fail("NO_CLOSING_PAREN", inside)
        if when is HistMoment.MATCH:
            raise reader.fail("ACTION_MISMATCH", name)
        return HistHandler(when, Act.SNAPSHOT, name, match, tracked)
    params = _params(inside, reader)
    if name.startswith("trace"):
        return HistHandler(when, Act.TRACE, name, match, tracked, params[1:], params[0])
    return HistHandler(when, Act.TRACE, name, match, tracked, params, name)


def _params(text: str, reader: HistExpressions) -> tuple[str, ...]:
    found: list[str] = []
    for one in text.split(","):
        if len(found) > MOST_FIELDS:
            raise reader.fail("TOO_MANY_PARAMS")
        param = one.strip()
        if len(param) < 2:
            why = "a parameter has two letters at least"
            raise reader.fail("INVALID_PARAM", param, why)
        found.append(param)
    return tuple(found)


# -- what they name -----------------------------------------------------------------------


class HandlerBinder:
    """Finds what the handlers of a new trigger name."""

    def __init__(self, spec: HistSpec, reader: HistExpressions) -> None:
        """Nothing has been found.

        Args:
            spec: the trigger.
            reader: of its fields.
        """
        self._spec = spec
        self._reader = reader
        self._scope: HistScope = reader.scope
        self._slots = len(spec.variables)
        self._binding = HistBinding()

    def bind(self) -> HistBinding:
        """Find everything.

        Raises:
            ProbeError: something is not there; triggers that were added to other events for it
                are to be taken away again: they are in `added`.
        """
        for handler in self._spec.handlers:
            if handler.when is HistMoment.MATCH:
                self._binding.actions.append(self._act(handler, HistAction(handler)))
            else:
                self._binding.actions.append(self._track(handler))
        return self._binding

    @property
    def added(self) -> list[tuple[EventInfo, str]]:
        """Triggers that other events got so far."""
        return self._binding.added

    def _slot(self) -> int:
        if self._slots >= MOST_VARIABLES:
            raise UnloggedError("a histogram has 16 variables at the most")
        self._slots += 1
        return self._slots - 1

    def _track(self, handler: HistHandler) -> HistAction:
        reader = self._reader
        if not handler.tracked.startswith("$"):
            raise reader.fail("ONX_NOT_VAR", handler.tracked)
        name = handler.tracked[1:]
        at = slot_of(self._spec.variables, name)
        if at < 0:
            raise reader.fail("ONX_VAR_NOT_FOUND", name)
        found = reader.refer(None, self._spec.variables[at], at)
        try:
            slot = self._slot()
        except UnloggedError as error:
            raise reader.fail("ONX_VAR_CREATE_FAIL") from error
        return self._act(handler, HistAction(handler, slot, found.reference))

    def _act(self, handler: HistHandler, action: HistAction) -> HistAction:
        if handler.act is Act.TRACE:
            self._trace(handler, action)
        elif handler.act is Act.SAVE:
            if self._binding.saved:
                raise self._reader.fail("TOO_MANY_SAVE_ACTIONS")
            for param in handler.params:
                try:
                    self._binding.saved.append(self._saved(param))
                except ProbeError as error:
                    raise self._again("FIELD_VAR_CREATE_FAIL", param, error) from error
        return action

    def _again(self, code: str, part: str, error: ProbeError) -> ProbeSyntaxError:
        """An error that the kernel logs behind another one, which tells more."""
        text = error.text if isinstance(error, ProbeSyntaxError) else str(error)
        return self._reader.fail(code, part, f"{text}: {part}")

    def _saved(self, name: str) -> SavedField:
        """A field of the event as a variable (create_field_var)."""
        if len(self._binding.fields) >= MOST_FIELDS:
            raise self._reader.fail("TOO_MANY_FIELD_VARS", name)
        try:
            value = self._reader.atom(name)
        except ProbeError as error:
            raise self._again("FIELD_VAR_PARSE_FAIL", name, error) from error
        taken = slot_of(self._spec.variables, name) >= 0
        if taken or self._scope.defines(self._reader.info, name):
            why = f"there is a variable {name}: write ${name}"
            raise self._reader.fail("VAR_CREATE_FIND_FAIL", name, why)
        try:
            return SavedField(name, value, self._slot())
        except UnloggedError as error:
            raise self._again("VAR_CREATE_FIND_FAIL", name, error) from error

    def _trace(self, handler: HistHandler, action: HistAction) -> None:
        reader = self._reader
        event = self._scope.synthetic.get(handler.synthetic)
        if event is None:
            why = f"'s:{handler.synthetic} TYPE FIELD; ...' defines one"
            raise reader.fail("SYNTH_EVENT_NOT_FOUND", handler.synthetic, why)
        params: list[HistReference] = []
        for position, text in enumerate(handler.params):
            group, dot, rest = text.partition(".")
            name = text
            if dot:
                name_of, dot, name = rest.partition(".")
                if not dot:
                    raise UnloggedError(f"{text}: write GROUP.EVENT.FIELD")
            else:
                group = name_of = ""
            if name.startswith("$"):
                found = self._variable(handler, name[1:], group, name_of)
            else:
                found = self._field(handler, name, group, name_of)
            wanted = event.fields[position] if position < len(event.fields) else None
            if wanted is None or not _fits(wanted, found):
                why = "it has no more fields" if wanted is None else wanted.listing()
                why = f"{event.name}: {why}" if wanted is None else f"{why} takes no {found.ctype}"
                raise reader.fail("SYNTH_TYPE_MISMATCH", name, why)
            assert found.reference is not None
            params.append(found.reference)
        if len(params) != len(event.fields):
            raise reader.fail("SYNTH_COUNT_MISMATCH", event.name)
        action.event, action.params = event, tuple(params)

    def _variable(self, handler: HistHandler, name: str, group: str, event: str) -> HistField:
        """A variable as a parameter (trace_action_find_var)."""
        info = self._reader.info
        if not group or (group, event) == (info.group, info.name):
            at = slot_of(self._spec.variables, name)
            if at >= 0:
                return self._reader.refer(None, self._spec.variables[at], at)
        if not group and handler.when is HistMoment.MATCH:
            group, event = handler.match
        try:
            return self._reader.reference(name, group, event)
        except ProbeSyntaxError as error:
            why = "" if error.code == "VAR_NOT_FOUND" else error.text
            raise self._reader.fail("PARAM_NOT_FOUND", name, why) from error

    def _field(self, handler: HistHandler, name: str, group: str, event: str) -> HistField:
        """A field as a parameter: of this event, or of the one of `onmatch`."""
        info, first = self._reader.info, None
        if not group or (group, event) == (info.group, info.name):
            try:
                saved = self._saved(name)
            except ProbeSyntaxError as error:
                first = error
            else:
                self._binding.fields.append(saved)
                variable = _as_variable(saved)
                return self._reader.refer(None, variable, saved.slot)
        if not group and handler.when is HistMoment.MATCH:
            group, event = handler.match
        if not event:
            assert first is not None
            raise first
        return self._elsewhere(name, group, event)

    def _elsewhere(self, name: str, group: str, event: str) -> HistField:
        """A variable that another event gets for its field (create_field_var_hist)."""
        reader, scope = self._reader, self._scope
        info = scope.event(group, event)
        if info is None:
            raise reader.fail("EVENT_FILE_NOT_FOUND", name)
        found = scope.compatible(info, self._spec.keys)
        if found is None:
            why = f"{info} needs a histogram with the same keys"
            raise reader.fail("HIST_NOT_FOUND", name, why)
        variable = f"synthetic_{name}"
        if not scope.defines(info, variable):
            keys = ",".join(key.name for key in found.table.spec.keys)
            text = f"hist:keys={keys}:{variable}={name}"
            text += f" if {found.condition}" if found.condition else ""
            try:
                scope.add(info, text)
            except ProbeError as error:
                raise self._again("HIST_CREATE_FAIL", name, error) from error
            self._binding.added.append((info, text))
        return reader.reference(variable, group, event)


def _as_variable(saved: SavedField) -> HistField:
    """The variable that keeps a field: its number has no sign (create_var)."""
    return replace(saved.field, signed=False, variable=saved.name)


def _fits(wanted: SyntheticField, found: HistField) -> bool:
    """True if a variable can be a synthetic event's field (check_synth_field)."""
    if "char[" in found.ctype and wanted.is_string and wanted.dynamic:
        return True
    if "long[" in found.ctype and wanted.is_stack:
        return True
    if wanted.ctype == found.ctype:
        return True
    same_sign = wanted.is_string or wanted.signed == found.signed
    return wanted.size == found.size and same_sign and not found.is_stack
