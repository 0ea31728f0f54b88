"""The text of a function that evaluates fetch arguments, as it grows.

Each argument becomes statements, which may meet a fault, and the expressions of its words.
"""

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from engine.arch.program import Base, FetchArg, FieldType, Source, ValueKind
from engine.errors import GuestFaultError
from engine.fetch.context import STRING_MAX, FetchContext, FetchSite
from engine.fetch.rowparts import array_reader, lay_texts, symbol_finder, texts_reader

_REGISTER_SOURCES: Final = (Source.REGISTER, Source.STACK_POINTER, Source.RETVAL)
_LOW_WORD: Final = (1 << 64) - 1
_LETTERS: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Target(NamedTuple):
    """The properties of a guest that the text of a function depends on.

    Attributes:
        bits: of an address.
        byteorder: "little" or "big".
        stack_pointer: the register's name.
        retval: that of the one with a function's result.
        pc: that of the program counter.
    """

    bits: int
    byteorder: str
    stack_pointer: str
    retval: str
    pc: str


class Bound(NamedTuple):
    """The probe that a function is made for.

    Attributes:
        site: the probe.
        context: the guest.
        event_id: of the rows.
        room: bytes of the longest row.
        cursor: of the sink, if it has that of `engine.trace.staging`.
    """

    site: FetchSite
    context: FetchContext
    event_id: int = 0
    room: int = 0
    cursor: memoryview | None = None


Need: TypeAlias = Callable[[Bound], Any]
"""Makes what a name in the text stands for."""

Captured: TypeAlias = "tuple[Base, tuple[int, ...]] | int | None"
"""One captured value: a fetch's base and dereferences, an argument's number, or the time."""


class UnboundFunction(Struct, frozen=True):
    """A compiled function that has not been bound.

    Attributes:
        factory: makes it, given `needs` by name.
        needs: what its names stand for.
    """

    factory: Callable[..., Any]
    needs: tuple[tuple[str, Need], ...]

    def bind(self, bound: Bound) -> Any:
        """The function for one probe of one guest."""
        return self.factory(**{name: make(bound) for name, make in self.needs})


class FunctionText:
    """One function.

    Attributes:
        lines: statements so far.
        needs: what their names stand for.
        texts: variables with strings' bytes, or with sequences of them.
        many: for each of `texts` how many strings it has, 0 for one that is no sequence.
    """

    def __init__(
        self,
        machine: Target,
        captured: Sequence[Captured] = (),
        *,
        single: bool = False,
        pc: str = "",
    ) -> None:
        """Begin.

        Args:
            machine: what runs the guest.
            captured: what the function is given from the entry.
            single: there will be one string: `length` is to be its length, or -1.
            pc: the expression of the program counter; "" = the processor is asked.
        """
        self.lines: list[str] = []
        self.needs: dict[str, Need] = {}
        self.texts: list[str] = []
        self.many: list[int] = []
        self._machine = machine
        self._captured = captured
        self._single = single
        self._pc = pc
        self._registers: list[str] = []
        self._names = 0
        self._mask = hex((1 << machine.bits) - 1)
        self._word = machine.bits // 8

    def function(self, parameters: str, lines: list[str]) -> UnboundFunction:
        """Compile it."""
        if self._registers:
            names = tuple(self._registers)
            self.needs["read"] = lambda bound: bound.context.cpu.reader(names)
            unpacked = "".join(f"r{index}, " for index in range(len(names)))
            lines = [f"({unpacked}) = read()", *lines]
        source = [f"def make({', '.join(self.needs)}):", f"    def record({parameters}):"]
        source += [f"        {line}" for line in lines] + ["    return record"]
        scope: dict[str, Any] = {"Fault": GuestFaultError}
        exec("\n".join(source), scope)
        return UnboundFunction(scope["make"], tuple(self.needs.items()))

    # -- names ----------------------------------------------------------------------------

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _need(self, make: Need) -> str:
        """A name for what is made when the function is bound."""
        name = self._name("n")
        self.needs[name] = make
        return name

    def _register(self, name: str) -> str:
        if self._pc and name == self._machine.pc:
            return self._pc
        if name not in self._registers:
            self._registers.append(name)
        return f"r{self._registers.index(name)}"

    def _guard(self, lines: Sequence[str], otherwise: Sequence[str]) -> None:
        """Add statements, and what takes their place after a fault."""
        self.lines += ["try:", *(f"    {line}" for line in lines)]
        self.lines += ["except Fault:", *(f"    {line}" for line in otherwise)]

    def _guarded(self, expression: str, otherwise: str) -> str:
        """A variable with what an expression gives, or with something else after a fault."""
        name = self._name("v")
        self._guard((f"{name} = {expression}",), (f"{name} = {otherwise}",))
        return name

    # -- arguments ------------------------------------------------------------------------

    def argument(self, arg: FetchArg) -> list[str]:
        """The expressions of an argument's words; those of strings come last of all."""
        count = arg.type.count
        if not arg.type.is_string and arg.base.source not in (Source.COMM, Source.TEXT):
            return [f"*{self._array(arg)}"] if count else [self.number(arg)]
        at = len(self.texts)
        self.texts.append(self._strings(arg) if count else self._string(arg))
        self.many.append(count)
        return [f"*w{at}" if count else f"w{at}"]

    def number(self, arg: FetchArg) -> str:
        """The expression of a number."""
        address = self._address(arg)
        if address is None:
            found = self._value(arg.base)
        else:
            load = self._loader(arg.type.size)
            found = self._guarded(f"{load}({address})[0]", "0")
        return _bits(found, arg.type) if arg.type.width else found

    def _value(self, base: Base) -> str:
        """The value that an argument begins with."""
        source = base.source
        if source in _REGISTER_SOURCES:
            return self._register(self._register_of(base))
        if source is Source.INDEXED:
            index = f"{self._register(base.text.decode())} * {base.value}"
            whole = f"{self._register(base.register)} + {index}" if base.register else index
            return f"({whole} & {(1 << self._machine.bits) - 1})"
        if source is Source.VECTOR:
            return f"({self._register(base.register)} & {_LOW_WORD})"
        if source in (Source.ENTRY, Source.AT_ENTRY):
            wanted = base.value if source is Source.ENTRY else base.fetch
            return f"e{self._captured.index(wanted)}"
        if source is Source.DURATION:
            return f"(now() - e{self._captured.index(None)})"
        if source is Source.STACK:
            place = self._moved(
                self._register(self._machine.stack_pointer), base.value * self._word
            )
            return self._guarded(f"{self._loader(self._word)}({place})[0]", "0")
        if source is Source.SYMBOL:
            name = base.text.decode(errors="surrogateescape")
            mask = (1 << self._machine.bits) - 1
            make = partial(symbol_finder, name, base.value, mask)
            return f"{self._need(lambda bound: make(bound.context.where))}()"
        if source is Source.IMAGE:
            mask = (1 << self._machine.bits) - 1
            return self._need(lambda bound: base.value + bound.site.image_base & mask)
        bits = self._machine.bits if source is Source.ADDRESS else 64
        return str(base.value & (1 << bits) - 1)

    def _register_of(self, base: Base) -> str:
        if base.source is Source.RETVAL:
            return self._machine.retval
        return base.register if base.source is Source.REGISTER else self._machine.stack_pointer

    def _address(self, arg: FetchArg) -> str | None:
        """The address of the element, None for one that is not in memory; it may fault."""
        derefs = arg.derefs
        if arg.base.source in (Source.ADDRESS, Source.IMAGE, Source.SYMBOL):
            derefs = (0, *derefs)
        if not derefs:
            return None
        address = self._moved(self._value(arg.base), derefs[0])
        for offset in derefs[1:]:
            address = self._moved(f"{self._loader(self._word)}({address})[0]", offset)
        return address

    def _moved(self, value: str, offset: int) -> str:
        """A value plus an offset, as an address."""
        if not offset and value in (f"r{index}" for index in range(len(self._registers))):
            return value
        return f"{value} + {offset} & {self._mask}"

    def _format(self, size: int) -> str:
        """A number's format for `struct`."""
        return f"{'<' if self._machine.byteorder == 'little' else '>'}{_LETTERS[size]}"

    def _loader(self, size: int) -> str:
        layout = struct.Struct(self._format(size))
        return self._need(lambda bound: bound.context.memory.reader(layout))

    def _array(self, arg: FetchArg) -> str:
        """The expression of an array's numbers."""
        address = self._address(arg)
        if address is None:
            raise ValueError(f"{arg.text}: an array that is not in memory")
        element, count = self._format(arg.type.size), arg.type.count
        mask = (1 << self._machine.bits) - 1
        load = self._need(lambda bound: array_reader(bound.context.memory, element, count, mask))
        found = self._guarded(f"{load}({address})", f"(0,) * {count}")
        return f"[{_bits('one', arg.type)} for one in {found}]" if arg.type.width else found

    # -- strings --------------------------------------------------------------------------

    def _string(self, arg: FetchArg) -> str:
        """A variable with a string's bytes and their NUL; nothing if it cannot be read.

        Of a single one without its NUL: the packing adds that.
        """
        source, name = arg.base.source, self._name("t")
        if source is Source.COMM:
            found = f"{self._need(lambda bound: bound.context.comm)}(thread_id)"
        elif source is Source.TEXT:
            text = arg.base.text[: STRING_MAX - 1]
            found = self._need(lambda bound: text)
        elif arg.type.kind is ValueKind.SYMSTR:
            symbol = self._need(lambda bound: bound.context.symbol)
            found = f"{symbol}({self.number(arg)}).encode()"
        else:
            address = self._address(arg)
            if address is None:
                raise ValueError(f"{arg.text}: a string that is not in memory")
            load = self._need(lambda bound: bound.context.memory.text_reader(STRING_MAX - 1))
            found = f"{load}({address})"
        if self._single:
            read = f"{name} = {found}", f"length = len({name})"
            self._guard(read, (f"{name} = b''", "length = -1"))
        else:
            self._guard((f"{name} = {found} + b'\\0'",), (f"{name} = b''",))
        return name

    def _strings(self, arg: FetchArg) -> str:
        """A variable with a sequence of strings, each with its NUL."""
        name, count = self._name("t"), arg.type.count
        if arg.type.kind is ValueKind.SYMSTR:
            symbol = self._need(lambda bound: bound.context.symbol)
            array = self._array(arg)
            self.lines.append(f"{name} = [{symbol}(v).encode() + b'\\0' for v in {array}]")
            return name
        address = self._address(arg)
        if address is None:
            raise ValueError(f"{arg.text}: a string that is not in memory")
        pointer, mask = self._format(self._word), (1 << self._machine.bits) - 1
        load = self._need(lambda bound: texts_reader(bound.context.memory, pointer, count, mask))
        self._guard((f"{name} = {load}({address})",), (f"{name} = (b'',) * {count}",))
        return name

    def short_texts(self, fixed: int) -> list[str]:
        """Words of strings that fit in any case, and `data` and `size`."""
        lines = [f"end = {fixed}"]
        for index, name in enumerate(self.texts):
            lines += [f"length = len({name})", f"w{index} = end | length << 32", "end += length"]
        joined = f"b''.join(({', '.join(self.texts)}))" if len(self.texts) > 2 else None
        return [*lines, f"data = {joined or ' + '.join(self.texts)}", "size = end + 7 & -8"]

    def any_texts(self, fixed: int) -> list[str]:
        """The same for those that may have to be cut."""
        self.needs["lay"] = lambda bound: partial(lay_texts, fixed, bound.room)
        each = [f"*{t}" if many > 0 else t for t, many in zip(self.texts, self.many, strict=True)]
        lines, at = [f"words, data = lay(({', '.join(each)},))"], 0
        for index, many in enumerate(self.many):
            more = max(many, 1)
            part = f"words[{at}:{at + more}]" if many > 0 else f"words[{at}]"
            lines.append(f"w{index} = {part}")
            at += more
        return [*lines, f"size = {fixed} + len(data) + 7 & -8"]


def _bits(word: str, kind: FieldType) -> str:
    """The expression of a bitfield in a word; a signed one is as its element stores it."""
    found = f"{word} >> {kind.offset} & {(1 << kind.width) - 1}"
    if kind.kind is not ValueKind.SIGNED:
        return found
    sign = 1 << kind.width - 1
    return f"(({found}) ^ {sign}) - {sign} & {(1 << 8 * kind.size) - 1}"
