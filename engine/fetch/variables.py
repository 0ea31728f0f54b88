"""A program's variables, as the reader of arguments asks for them.

The kernel takes names of parameters from BTF, for the functions of the kernel itself. Here they
come from the program's debug information; who reads that stands above this package.
"""

from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.program import Base, FieldType, ValueKind

NOT_TEXT: Final = ""
TEXT_POINTER: Final = "pointer"
TEXT_ARRAY: Final = "array"


class VariableError(Exception):
    """A variable that cannot be fetched.

    Attributes:
        code: the kernel's id of the error.
        offset: characters into the expression.
        why: what the kernel's words do not say.
        at_place: it is the place that is wrong, not the argument.
    """

    def __init__(
        self, code: str, offset: int = 0, why: str = "", *, at_place: bool = False
    ) -> None:
        super().__init__(code, offset, why)
        self.at_place = at_place
        self.code = code
        self.offset = offset
        self.why = why


class Fetched(Struct, frozen=True):
    """The way to fetch a variable.

    Attributes:
        base: where the fetch begins.
        derefs: offsets, innermost first.
        kind: its type; None if none of ours fits (`why` says it), and one must be given.
        string: whether it is text: TEXT_POINTER, TEXT_ARRAY or NOT_TEXT.
        why: why there is no type.
        is_part: only some bits of the register: no other type can be given.
    """

    base: Base
    derefs: tuple[int, ...] = ()
    kind: FieldType | None = None
    string: str = NOT_TEXT
    why: str = ""
    is_part: bool = False

    def as_string(self) -> "Fetched":
        """The text itself; BAD_TYPE4STR if it is none (check_prepare_btf_string_fetch)."""
        if self.string == NOT_TEXT:
            raise VariableError("BAD_TYPE4STR", 0, "only char * and char [] are strings")
        if self.string == TEXT_POINTER:
            return replace(self, derefs=(*self.derefs, 0), kind=FieldType(ValueKind.STRING, 0))
        return replace(self, kind=FieldType(ValueKind.STRING, 0))


class RecordScope(Protocol):
    """The structures that a kernel's BTF describes. All methods raise `VariableError`."""

    def cast(self, text: str, close: int, at: int) -> Fetched:
        """A member behind a value that is taken for the address of a structure.

        Args:
            text: `(STRUCT[,MEMBER])ARG->MEMBER...`; offsets of errors count from its begin.
            close: where the bracket behind the structure is.
            at: where the member's name begins.

        Returns:
            The dereferences and the type; the base is none.
        """

    def task(self, text: str) -> Fetched:
        """A member of the running task: `$current->MEMBER...`."""


class VariableScope(Protocol):
    """The variables that are known at a place. All methods raise `VariableError`."""

    def parameters(self) -> tuple[str, ...]:
        """Names of the function's parameters in order, for `$arg*`."""

    def parameter(self, index: int) -> Fetched | None:
        """The parameter `$argN` (index from 0); None where the calling convention says it."""

    def resolve(self, text: str) -> Fetched:
        """A variable, a part of it or what it points at: `name->field.x[3]`, `*name`."""
