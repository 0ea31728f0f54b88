"""Arguments as a frame's line has them, with what the function was called with (gdb/stack.c)."""

from collections.abc import Callable, Iterator
from enum import Enum

from engine.errors import CommandError, GuestFaultError
from engine.image.scopes import Variable
from engine.language.values import TypedValue
from engine.session.inspect.frame_scope import FrameScope


class EntryRule(Enum):
    """Which values of an argument are shown: `set print entry-values`."""

    NO = "no"
    ONLY = "only"
    PREFERRED = "preferred"
    IF_NEEDED = "if-needed"
    BOTH = "both"
    COMPACT = "compact"
    DEFAULT = "default"


def argument_texts(
    rule: EntryRule,
    scope: FrameScope,
    variable: Variable,
    text: Callable[[TypedValue], str],
) -> Iterator[str]:
    """The texts `n=5`, `n@entry=5` or `n=n@entry=5` of one argument.

    Args:
        rule: which values are shown.
        scope: the frame.
        variable: the argument.
        text: writes a value.
    """
    name, value = variable.name, scope.of_variable(variable)
    lost = bool(value.missing)
    entry = None
    if rule is not EntryRule.NO and (rule is not EntryRule.IF_NEEDED or lost):
        entry = scope.entry_value(variable)
    if entry is None:
        alone = rule is EntryRule.ONLY or (rule is EntryRule.PREFERRED and lost)
        if not alone:
            yield f"{name}={text(value)}"
        if alone or rule is EntryRule.BOTH:
            yield f"{name}@entry=<optimized out>"
        return
    shown = f"{name}@entry={text(entry)}"
    if rule in (EntryRule.COMPACT, EntryRule.DEFAULT) and _same(value, entry):
        yield f"{name}={shown}"
        return
    hidden = rule in (EntryRule.ONLY, EntryRule.PREFERRED)
    if not hidden and not (lost and rule in (EntryRule.COMPACT, EntryRule.IF_NEEDED)):
        yield f"{name}={text(value)}"
    yield shown


def _same(value: TypedValue, entry: TypedValue) -> bool:
    try:
        return not value.missing and value.raw == entry.raw
    except (CommandError, GuestFaultError):
        return False
