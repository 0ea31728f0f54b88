"""Functions by name as debuggers take them: all code of a name, wherever it stands.

As in gdb (gdb/linespec.c), "grow" is each function of the name in any namespace or class, a
template's name all of its instances, and a function that was inlined each of its copies.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from engine.image import dies
from engine.image.datatypes import constants_behind, shorter_arguments, shorter_numbers
from engine.image.debuginfo import DebugInfo
from engine.image.dies import Die, Unit
from engine.image.dietypes import DieType, qualified
from engine.image.ranges import read_ranges
from engine.image.scopes import FunctionBlock, blaming
from engine.image.symtab import demangle

_SUBPROGRAM, _INLINED, _PARAMETER, _AT_ARTIFICIAL = 0x2E, 0x1D, 0x05, 0x34
CPP: Final = frozenset((0x04, 0x1A, 0x21, 0x2B, 0x3A))
"""DW_LANG_* of C++."""
_C: Final = frozenset((0x01, 0x02, 0x0C, 0x1D, 0x2C))
"""DW_LANG_* of C."""
_RUST: Final = 0x1C
_AT_MAIN_SUBPROGRAM: Final = 0x6A
_OPENING, _CLOSING = "<([{", ">)]}"
_KIND: Final = "functions"
"""The question for functions of a last word, among those whose answers are kept."""


def function_block(unit: Unit, index: int) -> FunctionBlock:
    """The code of an entry of a function, or of an inlined copy."""
    die = Die(unit, unit.shape.offsets[index])
    ranges = read_ranges(die)
    start, end = ranges[0] if ranges else (0, 0)
    return FunctionBlock(
        (unit.offset, index),
        written_name(die),
        start,
        die.tag == _INLINED,
        end,
        any(one.has(_AT_MAIN_SUBPROGRAM) for one in (die, *die.origins())),
        die.linkage_name or "",
    )


def written_name(die: Die) -> str:
    """A function's name as gdb has it: with its parameters in C++, without its result."""
    language = die.unit.root.number(dies.AT_LANGUAGE)
    linkage = die.linkage_name if language != _RUST else None  # its mangling forgets types
    text = demangle(linkage) if linkage else ""
    whole = qualified(die.origins()[-1])
    if text and text != linkage and "<lambda(" not in whole:
        return without_result(text)
    if linkage and language in _C:
        return linkage  # the name of one that a library has renamed: "__GI_raise"
    last = die.origins()[-1]
    name = whole or "?"
    if language not in CPP:
        return name
    name = name.replace(")[", ") [")
    shape = last.unit.shape
    parts = [
        Die(last.unit, shape.offsets[n]) for n in shape.children(last.unit.index(last.offset))
    ]
    first = next((one for one in parts if one.tag == _PARAMETER), None)
    this = first if first is not None and first.has(_AT_ARTIFICIAL) else None
    given = [kind.text for kind in DieType(last).parameters[0]][this is not None :]
    is_const = this is not None and DieType(this.type).target.text.startswith("const ")
    if "<lambda(" not in name:  # gdb cannot bring those into its own form
        given = [canonical(one) for one in given]
    return f"{name}({', '.join(given)}){' const' if is_const else ''}"


def canonical(text: str) -> str:
    """A parameter's type as gdb's parser of C++ names writes it: "char const*"."""
    text = re.sub(r" (?=[*&])", "", text)
    text = constants_behind(f"<{text}>")[1:-1]  # a template's arguments are spelled so
    return re.sub(r"^(volatile) ([\w: ]*\w)", r"\2 \1", text)


def without_result(name: str) -> str:
    """A demangled name without the type in front: templates' names have one."""
    depth, start = 0, 0
    for at, letter in enumerate(name):
        if letter in _OPENING:
            if letter == "(" and not depth and not name.startswith("(anonymous", at):
                break
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
        elif letter == " " and not depth:
            if name.endswith("operator", 0, at):
                break
            start = at + 1
    return name[start:]


_CONSTANT: Final = re.compile(r"\bconst\s+((?:[\w:]+\s*)+(?:<[^<>]*>)?)")
"""A type with the word in front of it that demanglers put behind."""


_STRING: Final = re.compile(
    r"std::(?:\w+::)?basic_string<char, std::(?:\w+::)?char_traits<char>, "
    r"std::(?:\w+::)?allocator<char> ?>"
)


_NUMBERED: Final = re.compile(r"(?<=[<, ])(-?\d+)(?:u|l|ul|ull|ll)(?=[,> ])")
"""A number that a template is given, with the letters of its type as demanglers write them."""


class WantedFunction:
    """A function's name as a user gives it: "grow", "Shape::grow", "geo::Shape::grow(int)".

    Attributes:
        path: all of it but parameters.
        last: the last word of it, without template arguments.
    """

    def __init__(self, text: str, *, whole: bool = False) -> None:
        """Take the name.

        Args:
            text: the name as the user wrote it, perhaps with wildcards.
            whole: nothing stands in front of it.
        """
        text = text.strip()
        self._whole = whole or text.startswith("::")
        text = _plain(shorter_arguments(text.removeprefix("::")))
        path, self._parameters = _split_parameters(text)
        self.path = path
        self._parts = _parts(path)
        self.last = _bare(self._parts[-1]) if self._parts else ""

    def fits(self, die: Die) -> bool:
        """True if a function is meant."""
        parts = _parts(_plain(qualified(die.origins()[-1])))
        wanted = self._parts
        if len(wanted) > len(parts) or (self._whole and len(wanted) != len(parts)):
            return False
        same = all(
            _same_part(one, other)
            for one, other in zip(reversed(wanted), reversed(parts), strict=False)
        )
        if not same or self._parameters is None:
            return same
        return self.fits_parameters(written_name(die))

    def fits_parameters(self, name: str) -> bool:
        """True if a function's whole name has the parameters that the user gave, if any."""
        _, parameters = _split_parameters(name)
        return parameters is None or self._parameters in (None, parameters)


class NamedFunctions:
    """The functions of one file's debug information, by name; what was found once is kept."""

    def __init__(self, info: DebugInfo) -> None:
        """Nothing is read yet."""
        self._info = info
        self._found: dict[tuple[str, bool], tuple[FunctionBlock, ...]] = {}

    def find(self, name: str, *, whole: bool = False) -> tuple[FunctionBlock, ...]:
        """All code of a function, or of several of one name.

        Args:
            name: of it, as a user gives it.
            whole: nothing stands in front of it.

        Raises:
            ImageError: the debug information is damaged, or a part of it is missing.
        """
        found = self._found.get((name, whole))
        if found is None:
            found = self._found[name, whole] = tuple(self._read(WantedFunction(name, whole=whole)))
        return found

    def _read(self, wanted: WantedFunction) -> Iterator[FunctionBlock]:
        info, last = self._info, wanted.last
        known = info.known.units(_KIND, last)
        holding: list[int] = []
        with blaming(info.name, f"functions called {last}"):
            units = info.naming_functions(last) if known is None else _at(info, known)
            for unit in units:
                if unit.kind in dies.TYPE_UNITS:
                    continue
                whole = info.whole(unit)
                found = _FunctionsOfUnit(whole, wanted)
                yield from found.blocks()
                if found.has_name or whole is not unit:  # what is in another file may change
                    holding.append(unit.offset)
        if known is None:
            info.keep(_KIND, last, holding)


def _at(info: DebugInfo, offsets: Iterable[int]) -> Iterator[Unit]:
    return (info.unit("info", offset) for offset in offsets)


class _FunctionsOfUnit:
    """The functions of one unit that a user means.

    Attributes:
        has_name: one of them has the last word of the name at least.
    """

    def __init__(self, unit: Unit, wanted: WantedFunction) -> None:
        self._unit, self._wanted = unit, wanted
        self._judged: dict[tuple[int, str, int], bool] = {}
        self.has_name = False

    def blocks(self) -> Iterator[FunctionBlock]:
        """The code of all functions."""
        shape = self._unit.shape
        for index, tag in enumerate(shape.tags):
            if tag not in (_SUBPROGRAM, _INLINED):
                continue
            die = Die(self._unit, shape.offsets[index])
            if not die.has(dies.AT_LOW_PC) and not die.has(dies.AT_RANGES):
                continue
            if self._is_wanted(die) and read_ranges(die):
                yield function_block(self._unit, index)

    def _is_wanted(self, die: Die) -> bool:
        origin = die.reference(dies.AT_ABSTRACT_ORIGIN) or die.reference(dies.AT_SPECIFICATION)
        key = (origin or die).key
        known = self._judged.get(key)
        if known is None:
            name = (origin or die).name
            known = name is not None and _bare(name) == self._wanted.last
            self.has_name |= known
            known = self._judged[key] = known and self._wanted.fits(die)
        return known


def _parts(path: str) -> list[str]:
    """The words of a path: "geo::Box<a::b>::push" has three."""
    found, depth, start = list[str](), 0, 0
    for at, letter in enumerate(path):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if depth <= 0 and path.startswith("::", at):
            found.append("".join(path[start:at].split()))
            start = at + 2
    return [*found, "".join(path[start:].split())]


def _plain(path: str) -> str:
    """A path with strings and numbers in its templates as people write them."""
    if "<" not in path:
        return path
    return _NUMBERED.sub(r"\1", _STRING.sub("std::string", path))


def _split_parameters(text: str) -> tuple[str, str | None]:
    """A function's path, and its parameters in one spelling; None if it is given without."""
    depth = 0
    for at, letter in enumerate(text):
        named = text.endswith("operator", 0, at) or text.startswith("(anonymous namespace)", at)
        if letter == "(" and not depth and not named:
            end = text.rfind(")")
            if end < at:
                break  # it is not closed, so that no function is called so
            return text[:at], _same_parameters(text[at : end + 1])
        depth += (letter in _OPENING) - (letter in _CLOSING)
    return text, None


def _same_parameters(text: str) -> str:
    """Parameters as demanglers write them, without spaces: "(const char *)" is "(charconst*)"."""
    text = _STRING.sub("std::string", shorter_numbers(text))
    found = _CONSTANT.sub(lambda match: f"{match[1].strip()} const", text)
    return "".join(found.split()).replace("(void)", "()")


def _bare(part: str) -> str:
    """A word of a path without template arguments; operators keep their signs."""
    if part.startswith("operator") or "<" not in part:
        return part
    return part[: part.index("<")]


def _same_part(wanted: str, part: str) -> bool:
    part = "".join(part.split())
    return wanted == part or ("<" not in wanted and wanted == _bare(part))
