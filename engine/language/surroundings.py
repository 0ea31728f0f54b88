"""The meaning of an expression's names: what a place in a program gives an expression."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from engine.language.value_types import CType
from engine.language.values import Order, Place, TypedValue

if TYPE_CHECKING:
    from engine.language.convenience_functions import ConvenienceFunction
    from engine.language.go_program import GoProgram
    from engine.language.languages import Language
    from engine.language.user_printers import UserPrinters


class Surroundings(Protocol):
    """Names, memory and the user's own values, as an expression finds them.

    Attributes:
        order: of bytes.
        pointer: bytes of a pointer.
        language: of the code there: expressions, types and values are written so.
        go: what a program of Go tells of its types; None for other programs.
        is_cpp: the code there is C++'s.
        pages: memory that is other than the program's.
        printers: functions of the user's that print values.
    """

    @property
    def order(self) -> Order:
        """The order of bytes."""

    @property
    def pointer(self) -> int:
        """Bytes of a pointer."""

    @property
    def language(self) -> "Language":
        """The language of the code there."""

    @property
    def go(self) -> "GoProgram | None":
        """The types that a program of Go tells of; None for other programs."""

    @property
    def is_cpp(self) -> bool:
        """True if the code there is C++'s."""

    @property
    def pages(self) -> Mapping[int, bytes]:
        """Memory that is other than the program's, see `TypedValue.pages`."""

    @property
    def printers(self) -> "UserPrinters | None":
        """Functions of the user's that print values; None for none."""

    def expanded(self, text: str) -> str:
        """An expression with the macros of the code there expanded.

        Raises:
            CommandError: the arguments of one do not fit it.
        """

    def afterwards(self, pages: Mapping[int, bytes]) -> "Surroundings":
        """The same with other memory in some pages: what a called function has left."""

    def local(self, name: str) -> TypedValue | None:
        """A variable of the function alone; None where there is none."""

    def functions(self, name: str, *, nearest: bool = True) -> list[TypedValue]:
        """Functions of a name; of those in namespaces and classes its last word is enough.

        Args:
            name: of them.
            nearest: only those with the least in front of the name, if there are such.
        """

    def is_namespace(self, name: str) -> bool:
        """True if a name is that of a namespace of C++."""

    def linked(self, name: str) -> int | None:
        """The address of what the linker calls so, or its demangled name; None for none."""

    def variable(self, name: str, scope: str = "") -> TypedValue | None:
        """A variable or function; None where there is none.

        Args:
            name: of it.
            scope: the file or function that it is in, "" for what is in sight.
        """

    def type(self, words: tuple[str, ...]) -> CType | None:
        """A type by name: ("struct", "node"), ("size_t",)."""

    def at_entry(self, name: str) -> TypedValue:
        """A parameter as it was at the function's first instruction.

        Raises:
            CommandError: it is no parameter.
        """

    def prefers_type(self, name: str) -> bool:
        """True if a name is that of a type in a nearer file than that of a variable."""

    def type_of_vtable(self, address: int) -> CType | None:
        """The type whose methods a table of Rust holds; None where nobody says."""

    def symbol(self, address: int) -> str:
        """An address as "main+4"; "" where no symbol covers it."""

    def register(self, name: str) -> TypedValue | None:
        """A register; None where there is none of the name."""

    def convenience(self, name: str) -> TypedValue | None:
        """A variable of the user's own, `$i`; None while it has no value."""

    def function(self, name: str) -> "ConvenienceFunction | None":
        """A function of the debugger's own, `$_strlen`, by name without the dollar; None: none."""

    def set_convenience(self, name: str, value: TypedValue) -> None:
        """Give one a value."""

    def history(self, number: int) -> TypedValue:
        """A value of before: from 1 on, or 0 and less to count from the last one.

        Raises:
            CommandError: there is none.
        """

    def read(self, address: int, size: int) -> bytes:
        """Memory.

        Raises:
            GuestFaultError: it cannot be read.
        """

    def store(self, place: Place, data: bytes) -> None:
        """Change memory or a register.

        Raises:
            CommandError: it cannot be changed.
        """

    def construct(self, address: int, kind: CType, arguments: list[TypedValue]) -> TypedValue:
        """Make an object by a constructor of the program's.

        Args:
            address: of the constructor.
            kind: its class.
            arguments: those behind the object.

        Raises:
            CommandError: it cannot be called, or does not return.
        """

    def call(self, address: int, result: CType, arguments: list[TypedValue]) -> TypedValue:
        """Call a function of the program.

        Raises:
            CommandError: it cannot be called, or does not return.
        """
