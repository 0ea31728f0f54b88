"""Events of functions with the arguments and results that their source names (`trace --args`).

Numbers are fetches like those of a definition, which code in the guest may record; where texts,
structures or references are among them, all are read at the hit (`typed_calls`).
"""

from collections.abc import Callable
from functools import cached_property

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.program import Base, FetchArg, FieldType, RecordLayout, Source
from engine.fetch.bases import float_result
from engine.probes.kprobe import Kprobe
from engine.session.guest.session import Session
from engine.session.inspect.program_files import Files
from engine.session.program.places import Place
from engine.session.tracing.library_calls import TypedFunctions
from engine.session.tracing.typed_calls import (
    TypedArguments,
    TypedResult,
    TypedValues,
)
from engine.trace.rows import FormKind, ValueForm
from engine.trace.value_rows import ReadValues
from engine.trace.variables import ScopeVariables

_RESULT = "ret"


class ValuesRead(Struct, frozen=True):
    """The reading of a probe's values at its hits.

    Attributes:
        read: reads them.
        keep: what is kept at the function's entry for them; None for nothing.
    """

    read: ReadValues
    keep: Callable[[], tuple[int, ...]] | None = None


class TypedEvent(Struct, frozen=True):
    """An event on one function, or on its returns.

    Attributes:
        layout: of its rows.
        forms: how each value is shown.
        values: what reads them at a probe; None where they are fetches.
    """

    layout: RecordLayout
    forms: tuple[ValueForm | None, ...]
    values: Callable[[Kprobe], ValuesRead] | None = None


class TypedEvents:
    """Describes the events of functions by their types."""

    def __init__(
        self,
        session: Session,
        functions: TypedFunctions,
        scope_at: Callable[[Place], ScopeVariables],
    ) -> None:
        """Nothing is read before the first function.

        Args:
            session: the guest.
            functions: what is known of them.
            scope_at: the variables at a function's entry.
        """
        self._session = session
        self._functions = functions
        self._scope_at = scope_at

    @cached_property
    def _files(self) -> Files:
        return Files(self._session)

    def of(self, place: Place, *, is_return: bool) -> TypedEvent | None:
        """The event of a function, or of its returns; None where nothing is known of it."""
        scope = self._scope_at(place)
        if is_return:
            result = self._functions.result(place, scope, reals=True)
            return None if result is None else self._returns(result)
        arguments = self._functions.arguments(place, scope)
        return None if arguments is None else self._entries(arguments)

    def _entries(self, wanted: TypedArguments) -> TypedEvent:
        forms = tuple(form for _, _, form in wanted.columns)
        if wanted.fetches is not None:
            args = tuple(map(_at_hit, wanted.fetches))
            return TypedEvent(RecordLayout.of(args), forms)

        def values(probe: Kprobe) -> ValuesRead:
            read = self._values(probe).arguments(wanted)
            return ValuesRead(lambda entry: read())

        layout = RecordLayout.of(tuple(_column(name, kind) for name, kind, _ in wanted.columns))
        return TypedEvent(layout, forms, values)

    def _returns(self, result: TypedResult) -> TypedEvent:
        if result.form.kind is FormKind.NOTHING:
            return TypedEvent(RecordLayout.of((), returns=True), ())
        if result.kind is None:
            arg = FetchArg(_RESULT, "$retval", self._result_base(result), (), result.type)
            return TypedEvent(RecordLayout.of((arg,), returns=True), (result.form,))

        def values(probe: Kprobe) -> ValuesRead:
            made = self._values(probe)
            text, kept = made.result(result), made.kept(result)
            keep = None if kept is None else lambda: (kept(),)
            return ValuesRead(lambda entry: (text(entry[0] if entry else 0),), keep)

        layout = RecordLayout.of((_column(_RESULT, result.type),), returns=True)
        return TypedEvent(layout, (result.form,), values)

    def _result_base(self, result: TypedResult) -> Base:
        arch: Arch = self._session.arch
        register = float_result(arch) if result.form.kind is FormKind.REAL else None
        return Base(Source.RETVAL) if register is None else Base(Source.VECTOR, register=register)

    def _values(self, probe: Kprobe) -> TypedValues:
        options = self._functions.print_options
        return TypedValues(self._session, self._files, lambda: probe.addr or 0, options)


def _at_hit(arg: FetchArg) -> FetchArg:
    """A fetch at a function's entry as one of a probe there."""
    assert arg.base.fetch is not None, "arguments are fetched at the entry"
    base, derefs = arg.base.fetch
    return FetchArg(arg.name, arg.text, base, derefs, arg.type)


def _column(name: str, kind: FieldType) -> FetchArg:
    """The place of a value in rows; nothing fetches it."""
    return FetchArg(name, name, Base(Source.IMMEDIATE), (), kind)
