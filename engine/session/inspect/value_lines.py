"""Values as trees that open: each in one line, and what it is made of or leads to."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from engine.errors import CommandError, GuestFaultError, ImageError
from engine.image.datatypes import TypeKind
from engine.image.reader import DamagedError
from engine.language import value_types as ct
from engine.language.containers import Containers
from engine.language.languages import C
from engine.language.printing import Printer
from engine.language.quoting import quoted
from engine.language.reach import Reach
from engine.language.value_types import is_reference
from engine.language.values import TypedValue
from engine.session.inspect.frame_scope import FrameScope
from engine.session.protocol.frames import VariableView

FEW: Final = 8
"""Parts that stand in the line of what they are parts of."""
_CHARACTERS: Final = 64
"""Characters of a string that stand in a line."""
_NO_TARGET: Final = frozenset((TypeKind.VOID, TypeKind.FUNCTION, TypeKind.OTHER))

Part = tuple[str, TypedValue]
"""The name of a part, and it."""


class ValueLines:
    """Writes the values of one frame."""

    def __init__(self, scope: FrameScope) -> None:
        """Write what stands in a frame."""
        self._reach = Reach(scope)
        self._printer = Printer(scope, scope.symbol)
        self._containers = Containers(scope, _CHARACTERS)
        language = scope.language
        self._language = language
        # C's are written here; most programs need no others.
        self._forms = None if language is C else self._printer.forms

    def view(
        self, name: str, value: TypedValue, type_text: str = "", *, is_parameter: bool = False
    ) -> VariableView:
        """A value in one line; what cannot be read says so in its place.

        Args:
            name: of it.
            value: the value.
            type_text: its type where that is known better.
            is_parameter: it is one of a function's arguments.
        """
        leads, opens = "", False
        try:
            held = self._used(value)
            text = self._line(held, 0)
            opens = not held.missing and self._opens(held)
            if opens and held.type.resolved.kind is TypeKind.POINTER:
                leads = self._tried(lambda: self._line(self._reach.pointed(held), 0))
        except (CommandError, GuestFaultError, ImageError, DamagedError) as error:
            text = _trouble(error)
        if not type_text:
            kind, language = value.type, self._language
            type_text = kind.text if language is C else language.type_text(kind)
        return VariableView(name, text, type_text, is_parameter, opens=opens, leads=leads)

    def shown(self, name: str, value: TypedValue, letter: str) -> VariableView:
        """The same by a letter of `print`'s, "" for none."""
        view = self.view(name, value)
        if not letter:
            return view
        text = self._tried(lambda: self._printer.text(value, letter))
        return VariableView(name, text, view.type, opens=view.opens)

    def parts(self, value: TypedValue, first: int, count: int) -> tuple[list[Part], bool]:
        """So many parts of a value, from one on; True if there are more behind them.

        Raises:
            CommandError: it has none.
            GuestFaultError: they cannot be read.
        """
        found = list(islice(self._parts(self._used(value)), first, first + count + 1))
        return found[:count], len(found) > count

    def part(self, value: TypedValue, steps: Iterable[int]) -> TypedValue:
        """A part of a part of a value, by the number of each.

        Raises:
            CommandError: there is none.
            GuestFaultError: it cannot be read.
        """
        for step in steps:
            found, _ = self.parts(value, step, 1)
            if not found:
                raise CommandError("it is not there any more")
            value = found[0][1]
        return value

    # -- what there is in a value -----------------------------------------------------------

    def _used(self, value: TypedValue) -> TypedValue:
        return self._reach.used(value)

    def _opens(self, value: TypedValue) -> bool:
        if self._forms is not None:
            opens = self._forms.opens(value)
            if opens is not None:
                return opens
        kind = value.type.resolved
        match kind.kind:
            case TypeKind.POINTER:
                target = kind.target.resolved
                return bool(value.number) and target.kind not in (*_NO_TARGET, *ct.CHARS)
            case TypeKind.RECORD:
                if self._containers.knows(kind):
                    held = self._containers.held(value)
                    if held is not None:
                        return held.children is not None and any(True for _ in held.children())
                return bool(kind.members)
            case TypeKind.ARRAY:
                return bool(kind.count and kind.element.size)
        return False

    def _parts(self, value: TypedValue) -> Iterator[Part]:
        """The parts of a value; of a pointer those of its target, as gdb's varobj has it."""
        own = self._forms.parts(value) if self._forms is not None else None
        if own is not None:
            yield from own
            return
        kind = value.type.resolved
        match kind.kind:
            case TypeKind.POINTER:
                target = self._reach.pointed(value)
                if target.type.resolved.kind is TypeKind.RECORD:
                    _ = self._reach.at(ct.CHAR, value.number).raw  # else each part says the same
                    yield from self._parts(target)
                else:
                    yield "*", target
            case TypeKind.ARRAY:
                for index in range(kind.count or 0):
                    yield f"[{index}]", self._reach.element(value, index)
            case TypeKind.RECORD:
                held = self._containers.held(value) if self._containers.knows(kind) else None
                if held is not None and held.children is not None:
                    for number, (key, part) in enumerate(held.children()):
                        if isinstance(key, TypedValue):
                            yield f"[{self._tried(partial(self._line, key, 1))}]", part
                        else:
                            yield key or f"[{number}]", part
                else:
                    yield from self._members(value)

    def _members(self, value: TypedValue) -> Iterator[Part]:
        for member in value.type.resolved.members:
            part = self._reach.part(value, member)
            if member.name:
                yield member.name, part
            elif member.is_base:
                yield f"<{member.type.text}>", part
            elif member.type.resolved.kind is TypeKind.RECORD:
                yield f"<{member.type.resolved.keyword or 'struct'}>", part

    # -- texts ------------------------------------------------------------------------------

    def _tried(self, text: Callable[[], str]) -> str:
        try:
            return text()
        except (CommandError, GuestFaultError, ImageError, DamagedError) as error:
            return _trouble(error)

    def _line(self, value: TypedValue, depth: int) -> str:
        """A value in a line; what is inside of parts only hinted at."""
        if value.missing:
            return value.missing
        own = self._forms.brief(value) if self._forms is not None else None
        if own is not None:
            return own
        kind = value.type.resolved
        match kind.kind:
            case TypeKind.POINTER if is_reference(value.type):
                return self._line(self._used(value), depth)
            case TypeKind.POINTER if kind.target.kind in ct.CHARS and kind.target.size == 1:
                return self._pointed_text(value.number)
            case TypeKind.POINTER:
                return self._printer.address(value.number)
            case TypeKind.ARRAY if kind.element.kind in ct.CHARS and kind.element.size == 1:
                return self._printer.text(value)
            case TypeKind.RECORD | TypeKind.ARRAY:
                return self._whole(value, depth)
        return self._printer.text(value)

    def _pointed_text(self, address: int) -> str:
        text = self._printer.address(address)
        if not address:
            return text
        return (
            f"{text} {self._tried(lambda: self._printer.texts.string_at(address, _CHARACTERS)[0])}"
        )

    def _whole(self, value: TypedValue, depth: int) -> str:
        """A structure, a container or an array: its first parts."""
        title, named = "", value.type.resolved.kind is TypeKind.RECORD
        if named and self._containers.knows(value.type):
            held = self._containers.held(value)
            if held is not None and held.text is not None:
                return quoted(held.text) + ("..." if held.length > len(held.text) else "")
            if held is not None:
                title, named = held.title, held.named
        if depth:
            return title or "{...}"
        if value.address is not None and not value.is_loaded:
            _ = self._reach.at(ct.CHAR, value.address).raw  # else each part says the same
        found = list(islice(self._parts(value), FEW + 1))
        parts = [
            (f"{name} = " if named else "") + self._tried(partial(self._line, one, 1))
            for name, one in found[:FEW]
        ]
        if title and not parts:
            return title
        shown = "{" + ", ".join(parts) + ("..." if len(found) > FEW else "") + "}"
        return f"{title} = {shown}" if title else shown


def _trouble(error: Exception) -> str:
    """Why there is no value, in its place."""
    if isinstance(error, GuestFaultError):
        return f"<{error.address:#x} cannot be read>"
    if isinstance(error, CommandError):
        return f"<{error}>"
    return "<the debug information is damaged>"


def bare_pointer(text: str) -> str:
    """A pointer without its type in front, as in lists of arguments."""
    if not text.startswith("("):
        return text
    depth = 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if not depth:
            rest = text[at + 1 :].lstrip()
            return rest if rest.startswith(("0x", "@")) else text
    return text
