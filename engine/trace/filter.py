"""The kernel's filter language (kernel/trace/trace_events_filter.c): texts to predicate ops.

`FIELD OP VALUE` joined by `&&` and `||`, negated by `!`, grouped by parentheses. Texts of errors
and the column of the caret are those of Linux 6.18. Columns count bytes, as there.
"""

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.program import PredicateOp
from engine.trace.filterterms import SPACES, FilterMachine, FilterSyntaxError, TermParser
from engine.trace.rows import EventInfo

__all__ = ["EventFilter", "FilterMachine", "FilterSyntaxError", "parse_filter"]

_INVERT, _AND, _OR = 1, 2, 4


class EventFilter(Struct, frozen=True):
    """A filter that was understood.

    Attributes:
        text: as its file shows it; "none" for one that was cleared.
        ops: the predicate; empty for one that lets everything pass.
    """

    text: str
    ops: tuple[PredicateOp, ...]


def parse_filter(text: str, info: EventInfo, machine: FilterMachine | None = None) -> EventFilter:
    """Understand a filter for an event; `0` clears it.

    Raises:
        FilterSyntaxError: the kernel would refuse it.
    """
    text = text.rstrip(SPACES)
    if text.lstrip(SPACES) == "0":
        return EventFilter("none", ())
    raw = text.encode(errors="surrogateescape").decode("latin-1")
    return EventFilter(text, _FilterParser(raw, text, info, machine or FilterMachine()).parse())


class _FilterEntry(Struct):
    """One step of the program while it is made; `target` counts as the kernel counts."""

    op: PredicateOp
    invert: bool
    target: int
    when: bool = False


class _FilterParser:
    def __init__(self, text: str, shown: str, info: EventInfo, machine: FilterMachine) -> None:
        self._text = text + "\0"
        self._shown = shown
        self._terms = TermParser(self._text, shown, info, machine)

    def _fail(self, code: str, column: int, errno: str = "EINVAL") -> FilterSyntaxError:
        return FilterSyntaxError(code, self._shown, column, errno)

    # -- structure ------------------------------------------------------------------------

    def parse(self) -> tuple[PredicateOp, ...]:
        """First what `calc_stack` refuses, then the three passes of `predicate_parse`."""
        if not self._count():
            raise self._fail("ERRNO", 0)
        entries = self._first_pass()
        count = len(entries)
        entries[-1].target, entries[-1].when = count, False
        for index in range(count - 2, -1, -1):
            entry = entries[index]
            if entry.target < 0:
                continue
            later = entries[entry.target] if entry.target < count else None
            if later is not None and entry.when == later.when:
                entry.target = later.target
        if any(entry.target <= index for index, entry in enumerate(entries)):
            # An operator behind which nothing stands, after one of lower rank.
            raise self._fail("ERRNO", 0)
        return tuple(
            replace(entry.op, when=entry.when is not entry.invert, target=entry.target + 1)
            for entry in entries
        )

    def _count(self) -> int:
        """Number of terms; parentheses and quotes match."""
        text = self._text[:-1]
        quote, last_quote, terms, depth, inside = "", 0, 0, 1, False
        for index, char in enumerate(text):
            if char in SPACES:
                continue
            if quote:
                quote = "" if char == quote else quote
                continue
            if char in "'\"":
                quote, last_quote = char, index
            elif char in "|&" and self._text[index + 1] == char:
                inside = False
                continue
            elif char in "()":
                inside = False
                if char == ")" and depth == 1:
                    raise self._fail("TOO_MANY_CLOSE", index, "EPERM")
                depth += 1 if char == "(" else -1
                continue
            if not inside:
                terms, inside = terms + 1, True
        if quote:
            raise self._fail("MISSING_QUOTE", last_quote, "ESRCH")
        if depth != 1:
            raise self._fail("TOO_MANY_OPEN", self._bad_open(text, depth), "ENOENT")
        return terms

    @staticmethod
    def _bad_open(text: str, depth: int) -> int:
        level, quote = depth, ""
        for index in range(len(text) - 1, 0, -1):
            char = text[index]
            if quote:
                quote = "" if char == quote else quote
            elif char == "(":
                if level == depth:
                    return index
                level -= 1
            elif char == ")":
                level += 1
            elif char in "'\"":
                quote = char
        return 0

    def _first_pass(self) -> list[_FilterEntry]:
        text = self._text
        entries: list[_FilterEntry] = []
        stack = [0]
        invert = False
        at = 0
        while text[at] != "\0":
            here, at = at, at + 1
            char = text[here]
            if char in SPACES:
                continue
            if char == "(":
                stack.append(int(invert))
                continue
            if char == "!" and text[here + 1] not in "=~":
                invert = not invert
                continue
            op, length = self._terms.term(here)
            entries.append(_FilterEntry(op, invert, len(entries) - 1))
            at = here + length
            invert, at, ended = self._join(entries, stack, at)
            if ended:
                break
        if len(stack) != 1:
            raise self._fail("TOO_MANY_OPEN", at, "EPERM")
        if not entries:
            raise self._fail("NO_FILTER", at)
        return entries

    def _join(
        self, entries: list[_FilterEntry], stack: list[int], at: int
    ) -> tuple[bool, int, bool]:
        """The end of a term: (invert, place to go on, True if the text has ended)."""
        text = self._text
        last = len(entries) - 1
        while True:
            here, at = at, at + 1
            char = text[here]
            if char in SPACES:
                continue
            if char in "&|" and text[here + 1] == char:
                at += 1
            elif char not in ")\0":
                raise self._fail("TOO_MANY_PREDS", here, "EPERM")
            invert = bool(stack[-1] & _INVERT)
            if stack[-1] & _AND:
                _update(entries, last, invert)
                stack[-1] &= ~_AND
            if char == "&":
                stack[-1] |= _AND
                return invert, at, False
            if stack[-1] & _OR:
                _update(entries, last, not invert)
                stack[-1] &= ~_OR
            if char == "|":
                stack[-1] |= _OR
                return invert, at, False
            if char == "\0":
                return invert, at, True
            if len(stack) == 1:
                raise self._fail("TOO_MANY_CLOSE", at, "EPERM")
            stack.pop()


def _update(entries: list[_FilterEntry], last: int, when: bool) -> None:
    """`update_preds`: the entry that waits for this one learns where to go."""
    waiting = entries[last].target
    before = entries[waiting].target
    entries[waiting].when = when
    entries[waiting].target = last
    entries[last].target = before
