"""Results of calls, and what they have left in buffers, in C's words."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NoReturn

from msgspec import Struct

from engine.errors import CommandError, GuestFaultError
from engine.guest.memory import Memory
from engine.image.datatypes import TypeKind
from engine.image.kernel.btftypes import BtfFunction, BtfType, BtfTypes
from engine.language.convenience_functions import ConvenienceFunction
from engine.language.languages import C, Language
from engine.language.printing import Printer
from engine.language.value_types import CType
from engine.language.values import MemoryPlace, Order, Place, TypedValue
from engine.session.kernel.call_arguments import NamedBuffer

_STRING_MAX: Final = 256
_WORD: Final = 8
_SHOWN: Final = 64
"""Bytes of a buffer that are shown."""


class CalledBuffer(Struct, frozen=True):
    """A buffer behind a call.

    Attributes:
        name: of it.
        data: its bytes.
        changed: the call changed it.
        shown: its content: by type where that is known, else as bytes.
    """

    name: str
    data: bytes
    changed: bool
    shown: str = ""


class CallResult(Struct, frozen=True):
    """The outcome of a call.

    Attributes:
        text: the call as written.
        type: of the result in C; "" where the image has no types of the function.
        value: the result as a number of its type; None for void, and where it did not return.
        shown: the result in C's words.
        buffers: those that were named so far.
        printed: text that the kernel printed.
        stubs: names of imports without a function behind them that were called.
        failure: why it did not return; "" where it did.
    """

    text: str
    type: str
    value: int | None
    shown: str
    buffers: tuple[CalledBuffer, ...]
    printed: str
    stubs: tuple[str, ...]
    failure: str

    def lines(self) -> list[str]:
        """The result as people read it; what was printed is not among it."""
        if self.failure:
            found = [f"{self.text} did not return: {self.failure}"]
        else:
            kind = f"({self.type}) " if self.type and self.type != "void" else ""
            found = [f"{self.text} = {kind}{self.shown}"]
        found += [f"    {each.name}: {each.shown}" for each in self.buffers if each.changed]
        if self.stubs:
            found.append(
                f"    imports that nobody exports, answered by 0: {', '.join(self.stubs)}"
            )
        return found


class _Image:
    """The surroundings of values of an image: its memory alone. A `Surroundings`."""

    order: Order = "little"
    pointer = _WORD
    is_cpp = False
    printers = None
    pages: Mapping[int, bytes] = MappingProxyType({})

    def __init__(self, memory: Memory) -> None:
        self.read = memory.peek

    @property
    def language(self) -> Language:
        """Kernels' types are written as C's."""
        return C

    @property
    def go(self) -> None:
        """Kernels are not written in Go."""

    def at_entry(self, name: str) -> TypedValue:
        """None is known: no function is looked at."""
        raise CommandError(f'No symbol "{name}" in current context.')

    def prefers_type(self, name: str) -> bool:
        """Return False: there is one file."""
        return False

    def type_of_vtable(self, address: int) -> CType | None:
        """None: kernels' tables are not looked for."""
        return None

    def variable(self, name: str, scope: str = "") -> TypedValue | None:
        return None

    def type(self, words: tuple[str, ...]) -> CType | None:
        return None

    def symbol(self, address: int) -> str:
        return ""

    def expanded(self, text: str) -> str:
        """The text itself: no macros are known."""
        return text

    def afterwards(self, pages: Mapping[int, bytes]) -> "_Image":
        return self

    def local(self, name: str) -> TypedValue | None:
        return None

    def functions(self, name: str, *, nearest: bool = True) -> list[TypedValue]:
        return []

    def is_namespace(self, name: str) -> bool:
        """Kernels have no namespaces."""
        return False

    def linked(self, name: str) -> int | None:
        return None

    def register(self, name: str) -> TypedValue | None:
        return None

    def convenience(self, name: str) -> TypedValue | None:
        return None

    def function(self, name: str) -> ConvenienceFunction | None:
        """None are there."""
        return None

    def set_convenience(self, name: str, value: TypedValue) -> None:
        return

    def history(self, number: int) -> NoReturn:
        raise CommandError("there is no history")

    def store(self, place: Place, data: bytes) -> NoReturn:
        raise CommandError("nothing is changed here")

    def construct(self, address: int, kind: CType, arguments: list[TypedValue]) -> NoReturn:
        raise CommandError("nothing is called here")

    def call(self, address: int, result: CType, arguments: list[TypedValue]) -> NoReturn:
        raise CommandError("nothing is called here")


class ResultTexts:
    """Words for results."""

    def __init__(
        self, memory: Memory, named: Callable[[int], str], types: tuple[BtfTypes, ...]
    ) -> None:
        """Nothing is read yet.

        Args:
            memory: that functions have worked on.
            named: what lies at an address, as words behind it; "" for nothing known.
            types: of the image.
        """
        self._memory = memory
        self._named = named
        self._printer = Printer(_Image(memory), lambda address: named(address).strip("<>()"))

    def result(self, known: BtfFunction | None, raw: bytes) -> tuple[int | None, str, str]:
        """A result as a number, in words, and its type in C.

        Args:
            known: the function; None where nobody knows its type.
            raw: the bytes of the registers of results, or of the structure that was returned.
        """
        first = int.from_bytes(raw[:_WORD], "little")
        if known is None:
            return first, f"{first:#x} ({_signed(first, _WORD)})", ""
        kind, text = known.returns, known.returns.text
        size = kind.size or _WORD
        if kind.kind is TypeKind.VOID:
            return None, "void", text
        if kind.kind is TypeKind.RECORD:
            return first, self._object(kind, raw[:size], None), text
        value = first & (1 << 8 * min(size, _WORD)) - 1
        if kind.kind is TypeKind.BOOL:
            return value, "true" if value else "false", text
        if kind.kind is TypeKind.POINTER:
            return value, self._pointer(value, kind.resolved), text
        if kind.is_signed:
            value = _signed(value, size)
        if kind.kind is TypeKind.ENUM:
            name = next((name for name, one in kind.resolved.enumerators if one == value), "")
            return value, name or str(value), text
        return value, str(value), text

    def buffer(
        self, name: str, buffer: NamedBuffer, data: bytes, *, changed: bool
    ) -> CalledBuffer:
        """A buffer as it is behind a call."""
        if buffer.type is not None:
            shown = self._object(buffer.type, data, buffer.address)
        else:
            more = "..." if len(data) > _SHOWN else ""
            text = "".join(chr(b) if 32 <= b < 127 else "." for b in data[:_SHOWN])
            shown = f"{data[:_SHOWN].hex(' ')}{more}  {text}{more}"
        return CalledBuffer(name, data, changed, shown)

    def _object(self, kind: BtfType, data: bytes, address: int | None) -> str:
        place = None if address is None else MemoryPlace(address)
        try:
            return self._printer.text(TypedValue(kind, lambda: data, place))
        except (CommandError, GuestFaultError) as error:
            return f"{len(data)} bytes ({error})"

    def _pointer(self, value: int, kind: BtfType) -> str:
        if not value:
            return "NULL"
        error = _signed(value, _WORD)
        if -4095 <= error < 0:
            return f"ERR_PTR({error})"
        if kind.target.kind in (TypeKind.CHAR, TypeKind.UNSIGNED_CHAR):
            try:
                letters = self._memory.read_cstring(value, _STRING_MAX)
            except GuestFaultError:
                letters = b""
            if letters or self._readable(value):
                return f"{value:#x} {_quoted(letters)}"
        named = self._named(value)
        return f"{value:#x} {named}" if named else f"{value:#x}"

    def _readable(self, address: int) -> bool:
        return self._memory.find(address) is not None


def _signed(value: int, size: int) -> int:
    half = 1 << 8 * size - 1
    return (value & 2 * half - 1 ^ half) - half


def _quoted(data: bytes) -> str:
    shown = data.decode("latin-1").encode("unicode_escape").decode("ascii")
    return '"' + shown.replace('"', '\\"') + '"'
