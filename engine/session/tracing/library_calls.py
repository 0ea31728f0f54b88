"""Arguments and results of functions that no debug information describes, by their prototypes.

Those of the C library and of POSIX stand in a table (`engine/language/libc.h`); a header of the
user's adds to it. The calling convention says where each value is.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final, cast

from engine.arch.base import Arch
from engine.arch.program import Base, FetchArg, FieldType, Source, ValueKind
from engine.errors import CommandError
from engine.fetch.bases import vector_registers
from engine.image.callconv import entry_locations
from engine.image.datatypes import DataType, TypeKind
from engine.image.expressions import VariableLocation, Where
from engine.image.symbols import SymbolTable
from engine.language import prototypes
from engine.language.print_options import chosen_options
from engine.language.prototypes import FunctionPrototype, PrototypeHeader
from engine.language.value_types import MadeType
from engine.session.program.places import Place
from engine.session.tracing.typed_calls import (
    TypedArguments,
    TypedResult,
    number_form,
    typed_arguments,
    typed_result,
)
from engine.trace.graph import Shown
from engine.trace.rows import FormKind, ValueForm
from engine.trace.variables import ScopeVariables

_TABLE: Final = "libc.h"
_LIBRARIES: Final = re.compile(r"(libc|libm|libpthread|libdl|librt|libc\.musl.*)([.-].*)?\.so.*")
"""Files that have the functions of the table."""
_WRAPPED: Final = re.compile(
    r"(?:__libc_|__GI_|_IO_|__)?(?P<name>[a-z_][a-z0-9_]*?)"
    r"(?:_(?:s?sse|avx|evex|erms|fma|generic|unaligned|zva|neon|mte|oryon|simd)[a-z0-9_]*)?"
)
"""Names of implementations, as `__strlen_avx2` of strlen."""
_START: Final = "__libc_start_main"
"""A function that begins programs of glibc and musl."""
_TEXT: Final = FieldType(ValueKind.STRING, 0)
_AS_TEXT: Final = ValueForm(FormKind.TEXT)
_WORD: Final = 8


class TypedFunctions:
    """Types of functions: by debug information, else by a prototype.

    Attributes:
        print_options: how their values are printed.
    """

    def __init__(
        self, arch: Arch, header: str | None = None, printing: Iterable[str] = ()
    ) -> None:
        """Read the user's header.

        Args:
            arch: the guest's.
            header: path of a file of prototypes; None for none.
            printing: how values are shown, see `chosen_options`.

        Raises:
            CommandError: it cannot be read, or has a mistake; or there is no such way.
        """
        self._arch = arch
        self.print_options = chosen_options(printing)
        self._own: dict[str, FunctionPrototype] = {}
        if header is not None:
            self._own = _own(header)

    def arguments(self, place: Place, scope: ScopeVariables) -> TypedArguments | None:
        """The arguments of the function at a place; None where nothing is known of them."""
        found = typed_arguments(scope)
        if found is not None:
            return found
        known = typed_result(scope) is not None
        prototype = self._given(place) if known else self.prototype(place)
        return None if prototype is None else self._passed(prototype)

    def result(
        self, place: Place, scope: ScopeVariables, *, reals: bool = False
    ) -> TypedResult | None:
        """The result of the function at a place, see `typed_result`."""
        found = typed_result(scope, reals=reals)
        if found is not None and found.form.kind is not FormKind.NOTHING:
            return found
        prototype = self.prototype(place) if found is None else self._given(place)
        if prototype is None:
            return found
        kind = _seen(prototype.result)
        if kind.kind is TypeKind.VOID:
            return TypedResult(FieldType(ValueKind.HEX, _WORD), ValueForm(FormKind.NOTHING))
        shown = number_form(kind, is_rust=False)
        if shown is not None and (reals or shown[1].kind is not FormKind.REAL):
            return TypedResult(*shown)
        return TypedResult(_TEXT, _AS_TEXT, kind)

    def prototype(self, place: Place) -> FunctionPrototype | None:
        """The prototype of the function at a place, by its name, or as it was asked for.

        What an indirect function stands for often has no name of its own.
        """
        given = self._given(place)
        if given is not None or place.offset or not self._is_library(place):
            return given
        table = _table().prototypes
        for name in _names(place):
            match = _WRAPPED.fullmatch(name)
            found = table.get(name) or (table.get(match["name"]) if match is not None else None)
            if found is not None:
                return found
        return None

    def _given(self, place: Place) -> FunctionPrototype | None:
        """The prototype in the user's header.

        Debug information of gcc's -g1 has functions without their types, as if each were
        `void f(void)`: then the header knows better.
        """
        names = () if place.offset else _names(place)
        return next((self._own[name] for name in names if name in self._own), None)

    @staticmethod
    def _is_library(place: Place) -> bool:
        """True for a file that has the functions of the table: a static program too.

        A kernel, or a program without the C library, has others under some of the names.
        """
        if _LIBRARIES.fullmatch(place.path.rpartition("/")[2]):
            return True
        return not place.image.interpreter and bool(place.image.once(SymbolTable).find(_START))

    def _passed(self, prototype: FunctionPrototype) -> TypedArguments | None:
        """The arguments that a prototype names."""
        convention = self._arch.abi.calls
        if convention is None or not prototype.parameters:
            return None
        kinds = [_seen(one.type) for one in prototype.parameters]
        where = entry_locations(convention, kinds, _seen(prototype.result), 0, vectors=True)
        columns: list[Shown] = []
        fetches: list[FetchArg] = []
        for parameter, kind, place in zip(prototype.parameters, kinds, where, strict=True):
            shown = number_form(kind, is_rust=False)
            fetch = None if shown is None else self._fetch(parameter.name, place, shown[0])
            if shown is None or fetch is None:
                columns.append((parameter.name, _TEXT, _AS_TEXT))
            else:
                columns.append((parameter.name, *shown))
                fetches.append(fetch)
        if prototype.variadic:
            name, type_, form = columns[-1]
            assert form is not None, "all have one"
            columns[-1] = name, type_, ValueForm(form.kind, form.names, variadic=True)
        numbers = tuple(fetches) if len(fetches) == len(columns) else None
        places = tuple(zip(kinds, where, strict=True))
        return TypedArguments(tuple(columns), numbers, places, brief=True)

    def _fetch(self, name: str, where: VariableLocation, kind: FieldType) -> FetchArg | None:
        """The fetch of a number at the entry."""
        names = {one.dwarf: one.name for one in self._arch.registers if one.dwarf is not None}
        if where.where is Where.REGISTER:
            register = names.get(where.register, "")
            is_vector = register in vector_registers(self._arch).values()
            convention = self._arch.abi.calls
            own_format = convention is not None and convention.own_format
            if own_format and convention is not None and where.register in convention.vectors:
                return None  # its text is made at the hit
            base = Base(Source.VECTOR if is_vector else Source.REGISTER, register=register)
            derefs: tuple[int, ...] = ()
        elif where.where is Where.MEMORY and where.term.register is not None:
            base = Base(Source.REGISTER, register=names.get(where.term.register, ""))
            derefs = (*where.term.derefs, where.term.offset)
        else:
            return None
        at_entry = Base(Source.AT_ENTRY, fetch=(base, derefs))
        return FetchArg(name, name, at_entry, (), kind) if base.register else None


def _names(place: Place) -> list[str]:
    """A function's name, and the one that it was asked for by."""
    typed = place.typed.rpartition(":")[2]
    return [name.partition("@")[0] for name in (place.symbol or "", typed) if name]


def _seen(kind: MadeType) -> DataType:
    """A type of a header as one of debug information: it has all that is asked of those."""
    return cast("DataType", kind)


@lru_cache(maxsize=1)
def _table() -> PrototypeHeader:
    """The table, read once."""
    found = PrototypeHeader()
    path = Path(prototypes.__file__).with_name(_TABLE)
    found.read(path.read_text(encoding="ascii"), _TABLE)
    return found


def _own(path: str) -> dict[str, FunctionPrototype]:
    """The prototypes of a user's header; the types of the table are known in it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"--prototypes {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"--prototypes {path}: it is no text: {error}") from error
    header = _table().child()
    header.read(text, path)
    return header.prototypes
