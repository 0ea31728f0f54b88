"""Arguments and results of traced functions by their types in the source.

A number in a general register or on the stack is recorded as it is, by code in the guest where
that is possible, and gets its text when somebody looks at it. Of all other values - strings,
numbers with a point, structures, references - the text is made at the hit: what they lead to is
there only then.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from engine.arch.program import Base, FetchArg, FieldType, Source, ValueKind
from engine.errors import CommandError, GuestFaultError, ImageError
from engine.fetch.variables import VariableError
from engine.image.datatypes import DataType, TypeKind
from engine.image.expressions import VariableLocation, Where
from engine.image.reader import DamagedError
from engine.image.variants import RUST
from engine.language import value_types as ct
from engine.language.enumerators import named
from engine.language.memory_texts import marked_error
from engine.language.print_options import DEFAULT, PrintOptions
from engine.language.printing import Printer
from engine.language.value_types import is_reference
from engine.language.values import TypedValue
from engine.session.guest.session import Session
from engine.session.inspect.frame_scope import FrameScope
from engine.session.inspect.program_files import Files
from engine.session.inspect.value_lines import bare_pointer
from engine.session.protocol.frames import GuestFrame
from engine.trace.fieldtypes import FLOAT_SIZES
from engine.trace.graph import Shown
from engine.trace.rows import FormKind, ValueForm
from engine.trace.variables import ScopeVariables

_ARGUMENTS_MAX: Final = 16
_LONGEST: Final = 1000
"""Bytes of a text; gdb has no limit but those of elements and depth."""
_WORD: Final = 8
_TEXT: Final = FieldType(ValueKind.STRING, 0)
_NOTHING: Final = ValueForm(FormKind.NOTHING)
_AS_TEXT: Final = ValueForm(FormKind.TEXT)
_NUMBERS: Final = {
    TypeKind.SIGNED: FormKind.NUMBER,
    TypeKind.UNSIGNED: FormKind.NUMBER,
    TypeKind.BOOL: FormKind.TRUTH,
    TypeKind.CHAR: FormKind.CHARACTER,
    TypeKind.UNSIGNED_CHAR: FormKind.CHARACTER,
    TypeKind.ENUM: FormKind.ENUMERATION,
    TypeKind.POINTER: FormKind.POINTER,
    TypeKind.FLOAT: FormKind.REAL,
}
_ADDRESSED: Final = re.compile(r'^0x[0-9a-f]+ (?:<[^>]*> )?(?=")')
_TROUBLE: Final = (CommandError, GuestFaultError, ImageError, DamagedError)


class TypedResult(Struct, frozen=True):
    """A function's result.

    Attributes:
        type: of the recorded word, or of a text.
        form: how it is shown.
        kind: the type of a value whose text is made at the return; None for a plain number.
        language: DW_LANG_* of the function.
    """

    type: FieldType
    form: ValueForm
    kind: DataType | None = None
    language: int = 0


class TypedArguments(Struct, frozen=True):
    """A function's arguments.

    Attributes:
        columns: name, type and form of each.
        fetches: what reads them where all are numbers; None where texts are among them.
        places: type and place at the function's entry, in the same order.
        brief: texts stand without the addresses that lead to them.
    """

    columns: tuple[Shown, ...]
    fetches: tuple[FetchArg, ...] | None
    places: tuple[tuple[DataType, VariableLocation], ...]
    brief: bool = False


def typed_arguments(scope: ScopeVariables) -> TypedArguments | None:
    """The arguments of a function; None where nothing is known of them, or none are there."""
    try:
        found = scope.entry_places()[:_ARGUMENTS_MAX]
        is_rust = scope.result()[1] == RUST
        if not found:
            return None
        columns: list[Shown] = []
        fetches: list[FetchArg] = []
        for variable, where in found:
            name = variable.name
            shown = number_form(variable.type, is_rust=is_rust)
            fetch = None if shown is None else _fetch(scope, name, where, shown[0])
            if shown is None or fetch is None:
                columns.append((name, _TEXT, _AS_TEXT))
            else:
                columns.append((name, *shown))
                fetches.append(fetch)
        places = tuple((variable.type, where) for variable, where in found)
    except (VariableError, ImageError, DamagedError):
        return None
    numbers = tuple(fetches) if len(fetches) == len(columns) else None
    return TypedArguments(tuple(columns), numbers, places)


def typed_result(scope: ScopeVariables, *, reals: bool = False) -> TypedResult | None:
    """The result of a function; None where nothing is known of it.

    Args:
        scope: of the function.
        reals: a number with a point may be recorded as it is: the text of any other is made.
    """
    try:
        kind, language = scope.result()
        if kind.kind is TypeKind.VOID or not kind.size:
            return TypedResult(FieldType(ValueKind.HEX, _WORD), _NOTHING)
        shown = number_form(kind, is_rust=language == RUST)
    except (VariableError, ImageError, DamagedError):
        return None
    if shown is not None and (reals or shown[1].kind is not FormKind.REAL):
        return TypedResult(*shown)
    return TypedResult(_TEXT, _AS_TEXT, kind, language)


def number_form(kind: DataType, *, is_rust: bool) -> tuple[FieldType, ValueForm] | None:
    """The type and the form of a number in a word; None for what gets its text at the hit."""
    form, size = _NUMBERS.get(kind.kind), kind.size or 0
    if form is None or size not in (1, 2, 4, 8):
        return None
    if form is FormKind.POINTER:
        target = kind.target
        if is_reference(kind) or kind.owner is not None or target.kind in ct.CHARS:
            return None
        return FieldType(ValueKind.HEX, size), ValueForm(form)
    if form is FormKind.REAL:
        real = FieldType(ValueKind.FLOAT, size)
        return (real, ValueForm(form)) if size in FLOAT_SIZES else None
    if is_rust and form is FormKind.CHARACTER:
        return None
    if form is FormKind.CHARACTER and size != 1:
        return None
    value = ValueKind.SIGNED if kind.is_signed else ValueKind.UNSIGNED
    names = named(kind.resolved) if form is FormKind.ENUMERATION else ()
    return FieldType(value, size), ValueForm(form, names)


def _fetch(
    scope: ScopeVariables, name: str, where: VariableLocation, kind: FieldType
) -> FetchArg | None:
    """The fetch of a number at the entry; None where it is in no register and not on the stack."""
    if where.where not in (Where.REGISTER, Where.MEMORY):
        return None
    try:
        found = scope.resolve(name)
    except VariableError:
        return None
    if found.kind is None or found.kind.size != kind.size or found.kind.width:
        return None
    base = Base(Source.AT_ENTRY, fetch=(found.base, found.derefs))
    return FetchArg(name, name, base, (), kind)


class TypedValues:
    """Makes texts of values at the entries and returns of one function."""

    def __init__(
        self,
        session: Session,
        files: Files,
        address: Callable[[], int],
        options: PrintOptions = DEFAULT,
    ) -> None:
        """Nothing is looked at before the first hit.

        Args:
            session: the guest.
            files: its debug information.
            address: of the function's entry, known when it is hit.
            options: how values are printed.
        """
        self._options = options
        self._session = session
        self._files = files
        self._address = address

    def arguments(self, wanted: TypedArguments) -> Callable[[], Sequence[int | bytes]]:
        """Reads arguments at a hit: numbers, and texts that end with a NUL."""
        pairs = tuple(zip(wanted.columns, wanted.places, strict=True))

        def values() -> Sequence[int | bytes]:
            scope = self._scope
            found: list[int | bytes] = []
            for (_, _, form), (kind, where) in pairs:
                value = scope.located(kind, where)
                is_text = form is None or form.kind is FormKind.TEXT
                if not is_text:
                    found.append(self._number(value))
                else:
                    found.append(self._text(value, brief=wanted.brief))
            return found

        return values

    def result(self, wanted: TypedResult) -> Callable[[int], bytes]:
        """Makes the text of a result, from the address that was kept for it at the entry."""
        kind = wanted.kind
        assert kind is not None, "numbers need no text"

        def text(kept: int) -> bytes:
            try:
                value = self._scope.results.value(
                    kind,
                    self._session.cpu.read_register,
                    language=wanted.language,
                    address=kept or None,
                )
            except _TROUBLE as error:
                return _ended(marked_error(error))
            return _ended("?") if value is None else self._text(value)

        return text

    def kept(self, wanted: TypedResult) -> Callable[[], int] | None:
        """Reads the address of a result in memory, where the return will not tell it."""
        results = self._session.arch.abi.results
        if results is None or wanted.kind is None or results().exit:
            return None
        name, read = results().entry, self._session.cpu.read_register
        return lambda: read(name)

    @cached_property
    def _scope(self) -> FrameScope:
        return FrameScope(
            self._session,
            self._files,
            GuestFrame(self._address(), ""),
            number=0,
            exact=True,
            write_memory=_nobody,
            write_register=_nobody,
            convenience={},
            values=[],
        )

    @cached_property
    def _printer(self) -> Printer:
        return Printer(self._scope, self._scope.symbol, self._options)

    def _number(self, value: TypedValue) -> int:
        try:
            if value.missing:
                return 0
            if value.type.kind is TypeKind.FLOAT:
                return int.from_bytes(value.raw, value.order)
            return value.number
        except _TROUBLE:
            return 0

    def _text(self, value: TypedValue, *, brief: bool = False) -> bytes:
        try:
            text = bare_pointer(self._printer.text(value))
            return _ended(_ADDRESSED.sub("", text) if brief else text)
        except _TROUBLE as error:
            return _ended(marked_error(error))


def _ended(text: str) -> bytes:
    """A text as rows hold it, with a NUL behind it."""
    data = text.encode(errors="replace").replace(b"\0", b"")
    return (data if len(data) <= _LONGEST else data[:_LONGEST] + b"...") + b"\0"


def _nobody(place: int | str, data: bytes | int) -> None:
    """Values are looked at here, and not changed."""
    raise CommandError("nothing is changed by looking at it")
