"""Printers that a user writes in Python: the file of `--printers`.

The file is an ordinary module with a dictionary `printers`: from the name of a type, in which `*`
stands for anything, to a function of a value of such a type. The function gives a text; or parts,
a dictionary with their names or a list; or both, `(text, parts)`.
"""

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.errors import CommandError, KprobeTuiError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.convenience_functions import string_of
from engine.language.held import Children, Held
from engine.language.reach import Reach
from engine.language.surroundings import Surroundings
from engine.language.user_types import bare_type, user_type
from engine.language.value_types import CType
from engine.language.values import TypedValue, made

_PARTS: Final = 1 << 16
"""Parts that a function of the user's gives at the most."""
_TEXT: Final = 200
"""Characters of an error's text that are shown."""

if TYPE_CHECKING:
    from engine.language.container_methods import ContainerMethods

UserPrinter = Callable[["UserValue"], Any]
"""A function of the user's."""


class UserPrinters:
    """The functions of one file."""

    def __init__(self, path: str) -> None:
        """Execute a file.

        Raises:
            CommandError: it cannot be read or fails, or defines no printers.
        """
        self._path = path
        try:
            source = Path(path).read_bytes()
        except OSError as error:
            raise CommandError(f"--printers {path}: {error.strerror}") from error
        names: dict[str, Any] = {"__name__": "printers", "__file__": path}
        try:
            exec(compile(source, path, "exec"), names)
        except Exception as error:  # the file's own doing, whatever it is
            raise CommandError(f"--printers {path}: {_told(error)}") from error
        found = names.get("printers")
        if not isinstance(found, dict) or not found:
            raise CommandError(f"--printers {path}: it defines no dictionary 'printers'")
        for name, function in found.items():
            if not isinstance(name, str) or not callable(function):
                raise CommandError(
                    f"--printers {path}: {name!r} in 'printers': a type's name and a function"
                    " are wanted"
                )
        self._functions: Mapping[str, UserPrinter] = found
        self._known: dict[str, UserPrinter | None] = {}

    def find(self, kind: CType) -> UserPrinter | None:
        """The function for a type: of its exact name, else of the first pattern that fits."""
        text = kind.resolved.text
        if text not in self._known:
            name = user_type(bare_type(text))
            exact = self._functions.get(name)
            fits = (one for key, one in self._functions.items() if fnmatchcase(name, key))
            self._known[text] = exact or next(fits, None)
        return self._known[text]

    def held(self, value: TypedValue, function: UserPrinter, around: Surroundings) -> Held:
        """The text and the parts that a function gives; of one that fails, the error."""
        try:
            given = function(UserValue(value, around))
            return _held(given, around)
        except Exception as error:  # the function's own doing, whatever it is
            return _plain(f"<printer of {user_type(value.type.text)}: {_told(error)}>")


def _told(error: Exception) -> str:
    text = f": {error}" if str(error) else ""
    return f"{type(error).__name__}{text}"[:_TEXT]


def _plain(text: str) -> Held:
    return Held(text, children=lambda: iter(()))


def _held(given: object, around: Surroundings) -> Held:
    """Contents that a function of the user's gave.

    Raises:
        TypeError: it is neither a text nor parts.
    """
    title: object = ""
    if isinstance(given, tuple) and len(given) == 2:
        title, given = given
    if isinstance(given, str) and not title:
        return _plain(given)
    if not isinstance(title, str) or not isinstance(given, dict | list):
        raise TypeError("a printer gives a text, a dictionary, a list or (text, parts)")
    named = isinstance(given, dict)
    pairs = given.items() if isinstance(given, dict) else (("", one) for one in given)
    parts = [(str(name), _value_of(one, around)) for name, one in islice(pairs, _PARTS)]
    at = None if named else (lambda number: parts[number][1])
    return Held(title, children=partial(_each, parts), named=named, count=len(parts), at=at)


def _each(parts: list[tuple[str, TypedValue]]) -> Children:
    return iter(parts)


def _value_of(thing: object, around: Surroundings) -> TypedValue:
    """A value of the program's, or one of Python's as one."""
    if isinstance(thing, UserValue):
        return thing.value
    if isinstance(thing, bool):
        return made(ct.BOOL, thing, around.order)
    if isinstance(thing, int):
        return made(ct.LONG, thing, around.order)
    if isinstance(thing, float):
        return made(ct.DOUBLE, thing, around.order)
    if isinstance(thing, str):
        raw = thing.encode() + b"\0"
        kind = ct.array_of(ct.CHAR, len(raw))
        return TypedValue(kind, lambda: raw, order=around.order)
    raise TypeError(f"{type(thing).__name__} is no value that is printed")


class UserValue:
    """A value of the program as a printer sees it.

    `value["name"]` is a member, `value[3]` an element, `int()`, `float()`, `bool()`, `str()` and
    `bytes()` are what it is in Python; `str()` of a pointer to characters, of an array of them
    and of a string is its text. `len()` and iteration are for containers and arrays.

    Attributes:
        value: it, as the debugger has it.
    """

    def __init__(self, value: TypedValue, around: Surroundings) -> None:
        """Take a value and the place that it is from."""
        self._reach = Reach(around)
        self._around = around
        self.value = self._reach.used(value)

    @property
    def type(self) -> str:
        """The name of its type."""
        return user_type(self.value.type.text)

    @property
    def address(self) -> int | None:
        """The address of its first byte; None where it is not in memory."""
        return self.value.address

    @property
    def target(self) -> "UserValue":
        """The value that a pointer or a smart pointer leads to.

        Raises:
            CommandError: it leads nowhere.
        """
        inner = self._methods.pointed(self.value) or self._reach.pointed(self.value)
        return UserValue(inner, self._around)

    @property
    def _methods(self) -> "ContainerMethods":
        from engine.language.container_methods import ContainerMethods  # which needs printers

        return ContainerMethods(self._around)

    def __getitem__(self, key: "str | int") -> "UserValue":
        """A member by name, or an element by number."""
        if isinstance(key, str):
            found = self._reach.member(self.value, key)
        else:
            number = made(ct.LONG, key, self._around.order)
            inner = self._methods.element(self.value, number)
            found = self._reach.element(self.value, key) if inner is None else inner
        return UserValue(found, self._around)

    def __len__(self) -> int:
        """The number of things in a container or an array."""
        kind = self.value.type.resolved
        if kind.kind is TypeKind.ARRAY:
            return kind.count or 0
        size = self._methods.method(self.value, "size")
        if size is None:
            raise TypeError(f"{self.type} has no size")
        return int(size([]).number)

    def __iter__(self) -> Iterator["UserValue"]:
        """The things in a container or an array; of a map the values."""
        held = self._methods.held(self.value)
        if held is not None and held.children is not None:
            for _, part in held.children():
                yield UserValue(part, self._around)
            return
        for number in range(len(self)):
            yield self[number]

    def __int__(self) -> int:
        """A number, a pointer or an enumerator."""
        return self.value.number

    def __index__(self) -> int:
        """The same."""
        return self.value.number

    def __float__(self) -> float:
        """A number."""
        return self.value.real

    def __bool__(self) -> bool:
        """True if it is not zero."""
        return self.value.truth

    def __bytes__(self) -> bytes:
        """The value's bytes in memory."""
        return self.value.raw

    def __str__(self) -> str:
        """A text; else what `print` shows."""
        held = self._methods.held(self.value)
        if held is not None and held.text is not None:
            return held.text.decode(errors="replace")
        kind = self.value.type.resolved
        if kind.kind in (TypeKind.ARRAY, TypeKind.POINTER) and kind.target.kind in ct.CHARS:
            try:
                return string_of(self._around, self.value).decode(errors="replace")
            except KprobeTuiError as error:
                return f"<{error}>"
        from engine.language.printing import Printer  # which needs printers

        return Printer(self._around, lambda address: "").text(self.value)
