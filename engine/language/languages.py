"""The languages that programs are written in: how expressions, types and values look in each.

A language is an object that leads to the modules of its family; they are imported when a program
of the language is looked at. A further language is such an object and a line in LANGUAGES.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from engine.language.evaluation import Evaluator
    from engine.language.printing import Printer
    from engine.language.surroundings import Surroundings
    from engine.language.syntax import Expression
    from engine.language.value_types import CType
    from engine.language.values import TypedValue


class Forms:
    """The forms of values in a language; these leave all to the printer, which writes C's."""

    brackets = ("{", "}")
    """Around the elements of an array."""

    def whole(self, value: "TypedValue", letter: str) -> str | None:
        """A value as `print` shows it; None to have its parts written one by one."""
        return None

    def brief(self, value: "TypedValue") -> str | None:
        """A value in a list of others; None for the same text as `print`'s."""
        return None

    def partial(self, value: "TypedValue", *, lines: bool) -> str | None:
        """A value of which a part is lost; None where too little of it is left."""
        return None

    def scalar(self, value: "TypedValue") -> str | None:
        """A value without parts; None for one that C prints alike."""
        return None

    def record(self, value: "TypedValue", letter: str, depth: int) -> str | None:
        """A structure; None for one that C prints alike."""
        return None

    def quoted(self, raw: bytes, length: int) -> str | None:
        """The text of a container by its first bytes and the number of all; None for C's form."""
        return None

    def opens(self, value: "TypedValue") -> bool | None:
        """True if a value has parts; None to have its type decide."""
        return None

    def parts(self, value: "TypedValue") -> "Iterator[tuple[str, TypedValue]] | None":
        """The parts of a value that opens, with their names; None for those of its type."""
        return None


class Language(Protocol):
    """A language of programs."""

    @property
    def code(self) -> int:
        """DW_LANG_* of the units that are written in it; 0 for C and all that is like it."""

    @property
    def is_named_by_dwarf(self) -> bool:
        """True if functions are called as in the debug information, not as for the linker."""

    def tree(self, text: str, around: "Surroundings") -> "Expression":
        """The tree of an expression.

        Raises:
            CommandError: it means nothing.
        """

    def evaluator(self, around: "Surroundings") -> "Evaluator":
        """Finds values of such trees."""

    def forms(self, printer: "Printer") -> Forms:
        """The forms of values, written by a printer."""

    def type_text(self, kind: "CType") -> str:
        """A type by its name, one that an expression has made among them."""

    def held_type(self, text: str, around: "Surroundings") -> str | None:
        """The type of what an expression's value holds; None for a value that holds nothing."""

    def definition(self, kind: "CType") -> str | None:
        """`type = ...`: a type with its parts; None to have it written as C's."""


class CLanguage:
    """C, C++ and all that gdb shows like them."""

    code = 0
    is_named_by_dwarf = False

    def tree(self, text: str, around: "Surroundings") -> "Expression":
        """The tree of an expression."""
        from engine.language.evaluation import checker, is_known, is_type
        from engine.language.syntax import parse

        known = is_type(around), is_known(around)
        return parse(around.expanded(text), *known, checker(around))

    def evaluator(self, around: "Surroundings") -> "Evaluator":
        """Finds values of such trees."""
        if around.is_cpp:
            from engine.language.cpp_evaluation import CppEvaluator

            return CppEvaluator(around)
        from engine.language.evaluation import Evaluator

        return Evaluator(around)

    def forms(self, printer: "Printer") -> Forms:
        """The printer's own forms."""
        return Forms()

    def type_text(self, kind: "CType") -> str:
        """A type as C spells it."""
        return kind.text

    def held_type(self, text: str, around: "Surroundings") -> str | None:
        """No value is of two types."""
        return None

    def definition(self, kind: "CType") -> str | None:
        """C's are written by `typetexts`."""
        return None


class RustLanguage:
    """Rust."""

    code = 0x1C
    is_named_by_dwarf = True

    def tree(self, text: str, around: "Surroundings") -> "Expression":
        """The tree of an expression."""
        from engine.language.rust_syntax import parse_rust

        return parse_rust(text)

    def evaluator(self, around: "Surroundings") -> "Evaluator":
        """Finds values of such trees."""
        from engine.language.rust_evaluation import RustEvaluator

        return RustEvaluator(around)

    def forms(self, printer: "Printer") -> Forms:
        """As gdb has them."""
        from engine.language.rust_printing import RustForms

        return RustForms(printer.reach, printer.options, printer.part)

    def type_text(self, kind: "CType") -> str:
        """A type as Rust spells it."""
        from engine.language.rust_types import rust_text

        return rust_text(kind)

    def held_type(self, text: str, around: "Surroundings") -> str | None:
        """No value is of two types."""
        return None

    def definition(self, kind: "CType") -> str | None:
        """A structure with its parts, an enumeration with its variants."""
        from engine.language.rust_types import rust_definition

        return rust_definition(kind)


class GoLanguage:
    """Go."""

    code = 0x16
    is_named_by_dwarf = True

    def tree(self, text: str, around: "Surroundings") -> "Expression":
        """The tree of an expression."""
        from engine.language.go_syntax import parse_go

        return parse_go(text)

    def evaluator(self, around: "Surroundings") -> "Evaluator":
        """Finds values of such trees."""
        from engine.language.go_evaluation import GoEvaluator

        return GoEvaluator(around)

    def forms(self, printer: "Printer") -> Forms:
        """As delve has them."""
        from engine.language.go_printing import GoForms

        return GoForms(printer)

    def type_text(self, kind: "CType") -> str:
        """A type as Go spells it."""
        from engine.language.go_types import go_text

        return go_text(kind)

    def held_type(self, text: str, around: "Surroundings") -> str | None:
        """The type of what is in an interface: "void" in a nil one."""
        from engine.language.go_evaluation import held_type

        return held_type(text, around)

    def definition(self, kind: "CType") -> str | None:
        """A structure with its fields, an interface, or what else a name stands for."""
        from engine.language.go_types import go_definition

        return go_definition(kind)


C: Final = CLanguage()
RUST: Final = RustLanguage()
GO: Final = GoLanguage()
LANGUAGES: Final[tuple[Language, ...]] = (C, RUST, GO)
LANGUAGE_NAMES: Final = {
    **dict.fromkeys((0x01, 0x02, 0x0C, 0x1D, 0x2C), "c"),
    **dict.fromkeys((0x04, 0x1A, 0x21, 0x2B, 0x3A), "c++"),
    0x13: "d",
    0x16: "go",
    0x1C: "rust",
    0x8001: "asm",
}
"""DW_LANG_* as gdb names them."""
_BY_CODE: Final = {one.code: one for one in LANGUAGES}


def language_of(code: int) -> Language:
    """The language of units with a DW_LANG_*; C for those that have no family here."""
    return _BY_CODE.get(code, C)
