"""Words that search: find in memory, info functions, variables and types by name."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.errors import CommandError, GuestFaultError
from engine.guest.modules import Module
from engine.image.names import NamedEntry
from engine.language.typetexts import definition_of
from engine.language.value_types import INT, VOID, pointer_to
from engine.language.values import made
from engine.message_text import bare_name
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.word_arguments import split_arguments, split_format

_NAMELESS: Final = "{...}"
_SIZES: Final = {"b": 1, "h": 2, "w": 4, "g": 8}
POINTER: Final = pointer_to(VOID)
_PIECE: Final = 1 << 20
_MOST: Final = 1 << 32
"""Bytes that are searched at once."""


class Searching:
    """Finds things in the guest."""

    def __init__(self, debugger: Debugger) -> None:
        """Search a debugger's guest."""
        self._debugger = debugger

    # -- memory -----------------------------------------------------------------------------

    def find(self, rest: str) -> None:
        """Find values in memory: find [/SIZE][/MOST] START, +LENGTH|END, VALUE..."""
        form, most, text = "", 0, rest
        while text.startswith("/"):
            letters, text = split_format(text)
            digits = re.sub(r"\D", "", letters)
            most = int(digits) if digits else most
            form += re.sub(r"\d", "", letters)
        parts = split_arguments(text)
        debugger = self._debugger
        if not text.strip():
            raise CommandError("Missing search parameters.")
        start = self._address(parts[0])
        if len(parts) < 2:
            raise CommandError("Argument required (expression to compute).")
        if len(parts) < 3:
            raise CommandError("Missing search pattern.")
        if parts[1].startswith("+"):
            end = start + debugger.value(parts[1][1:]).number
            if end <= start:
                raise CommandError("Empty search range.")
        else:
            end = self._address(parts[1]) + 1
            if end <= start:
                raise CommandError("Invalid search space, end precedes start.")
        if end - start > _MOST:
            raise CommandError("Search space too large.")
        wanted = b"".join(self._pattern(part, form) for part in parts[2:])
        found = 0
        printer = debugger.frames.printer(debugger.scope)
        for address in self._found(start, end, wanted):
            debugger.put(printer.address(address))
            debugger.kept.set("_", made(POINTER, address, "little"))
            found += 1
            if found == most:
                break
        debugger.kept.set("numfound", made(INT, found, "little"))
        if not found:
            debugger.put("Pattern not found.")
        else:
            debugger.put(f"{found} pattern{'s' if found > 1 else ''} found.")

    def _address(self, text: str) -> int:
        return self._debugger.value(text).as_address

    def _pattern(self, text: str, form: str) -> bytes:
        value = self._debugger.value(text)
        if text.startswith('"'):
            return value.raw[:-1]
        size = next((_SIZES[letter] for letter in form if letter in _SIZES), 0)
        if not size:
            return value.raw
        return (value.number & (1 << 8 * size) - 1).to_bytes(size, self._debugger.scope.order)

    def _found(self, start: int, end: int, wanted: bytes) -> Iterator[int]:
        """Addresses of a pattern, those that overlap too."""
        read = self._debugger.scope.read
        kept, at = b"", start
        while at < end:
            size = min(_PIECE, end - at)
            try:
                kept += read(at, size)
            except GuestFaultError:
                raise CommandError(
                    f"Unable to access {end - at} bytes of target memory at {at:#x}, "
                    "halting search."
                ) from None
            at += size
            base, place = at - len(kept), kept.find(wanted)
            while place >= 0:
                yield base + place
                place = kept.find(wanted, place + 1)
            kept = kept[max(len(kept) - len(wanted) + 1, 0) :]

    # -- names ------------------------------------------------------------------------------

    def info_functions(self, rest: str) -> None:
        """Functions whose names match: info functions [-q] [-n] [-t TYPE] [REGEXP]."""
        self._names("function", rest)

    def info_variables(self, rest: str) -> None:
        """Variables of files whose names match: info variables [-q] [-n] [-t TYPE] [REGEXP]."""
        self._names("variable", rest)

    def info_types(self, rest: str) -> None:
        """Types whose names match: info types [-q] [REGEXP]."""
        self._names("type", rest)

    def functions(self, rest: str, file: str) -> tuple[list[tuple[str, str, str]], list[str]]:
        """Functions whose names match, in the order of `info functions`.

        Args:
            rest: the regular expression.
            file: the source file that they are in, "" for any.

        Returns:
            Files, names and declarations of those with debug information; names of the others,
            which are in no file.

        Raises:
            CommandError: it is no regular expression.
        """
        pattern = _pattern(rest)
        rows, known = self._matching("function", pattern, whole=True)
        debugged = [
            (path, name, text)
            for path in sorted(path for path in rows if path)
            if not file or path == file or path.endswith("/" + file)
            for name, _, text in sorted(rows[path])
        ]
        others = (
            [] if file else [name for _, name in self._undescribed("function", pattern, known)]
        )
        return debugged, list(dict.fromkeys(others))

    def _modules(self) -> list[Module]:
        """The files to search: before the start the program alone, as gdb knows no other then."""
        found = self._debugger.files.modules()
        return found if self._debugger.started else found[:1]

    def _matching(
        self,
        kind: str,
        pattern: re.Pattern[str],
        *,
        whole: bool = False,
        of_type: re.Pattern[str] | None = None,
    ) -> tuple[dict[str, set[tuple[str, int, str]]], set[str]]:
        """The names of debug information that match, by file, and all that there are.

        Args:
            kind: of what is named.
            pattern: a part of each name.
            whole: files have their whole paths, in place of what compilers were given.
            of_type: a part of what their types are written as; None for any.
        """
        debugger = self._debugger
        rows: dict[str, set[tuple[str, int, str]]] = {}
        known: set[str] = set()
        for module in self._modules():
            names = debugger.files.names(module)
            for one in names.listed(kind) if names is not None else ():
                known.update((one.name, bare_name(one.signature)))
                if not pattern.search(one.name):
                    continue
                if of_type is not None and not of_type.search(one.type.text):
                    continue
                path = (module.lines.file_of(one.unit, one.file) or "") if one.line else ""
                if kind == "function" and not path and one.address is not None:
                    path = (module.lines.line_at(one.address) or ("", 0))[0]  # an assembler's
                text = _declaration(kind, one)
                rows.setdefault(path if whole else debugger.files.written(path), set()).add(
                    (one.signature or one.name, one.line, text)
                )
        return rows, known

    def _names(self, kind: str, rest: str) -> None:
        debugger = self._debugger
        choice, rest = _choice(rest, kind)
        pattern = _pattern(rest)
        of_type = _pattern(choice.type) if choice.type else None
        rows, known = self._matching(kind, pattern, of_type=of_type)
        if not choice.quiet:
            which = f' matching regular expression "{rest}"' if rest else ""
            if choice.type:
                which += f' with type matching regular expression "{choice.type}"'
                which += "" if rest else " "
            debugger.put(f"All {'' if rest else 'defined '}{kind}s{which}:")
        for path in sorted(path for path in rows if path):
            debugger.put("")
            debugger.put(f"File {path}:")
            for _, line, text in sorted(rows[path], key=_order):
                for part in (f"{line}:\t{text}" if line else f"\t{text}").split("\n"):
                    debugger.put(part)
        if rows.get(""):
            debugger.put("")
            for _, _, text in sorted(rows[""]):
                debugger.put(f"\t{text}")
        if kind != "type" and not choice.described and of_type is None:
            self._without_debug(kind, pattern, known)

    def _without_debug(self, kind: str, pattern: re.Pattern[str], known: set[str]) -> None:
        """Show the names that only symbol tables know, by address."""
        debugger = self._debugger
        found = self._undescribed(kind, pattern, known)
        if not found:
            return
        debugger.put("")
        debugger.put("Non-debugging symbols:")
        digits = debugger.control.session.arch.bits // 4
        for address, name in found:
            debugger.put(f"0x{address:0{digits}x}  {name}")

    def _undescribed(
        self, kind: str, pattern: re.Pattern[str], known: set[str]
    ) -> list[tuple[int, str]]:
        """The names that only symbol tables know, by address.

        Of functions, those in no file's code: another name of a function with debug information
        is none of them (gdb/symtab.c, add_matching_msymbols).
        """
        found: set[tuple[int, str]] = set()
        code = kind == "function"
        for module in self._modules():
            for symbol in module.symbols:
                if (
                    symbol.is_function == code
                    and pattern.search(symbol.demangled)
                    and bare_name(symbol.demangled) not in known
                    and not (code and module.lines.line_at(symbol.address))
                ):
                    found.add((symbol.address + module.bias, symbol.demangled))
        return sorted(found)


def _order(row: tuple[str, int, str]) -> tuple[bool, tuple[str, int, str]]:
    """Gdb's order: what all files see, and then what one alone does."""
    return row[2].startswith("static "), row


class _NameOptions(NamedTuple):
    """Options of `info functions` and its like.

    Attributes:
        quiet: say no heading.
        described: leave out what only symbol tables know.
        type: a regular expression of their types, "" for all.
    """

    quiet: bool
    described: bool
    type: str


def _choice(rest: str, kind: str) -> tuple[_NameOptions, str]:
    """The options in front of a regular expression, and that."""
    quiet = described = False
    of_type = ""
    while match := re.match(r"-(q|n|t)(?:\s+|$)", rest):
        if kind == "type" and match[1] != "q":
            break
        rest = rest[match.end() :]
        quiet, described = quiet or match[1] == "q", described or match[1] == "n"
        if match[1] == "t":
            of_type, _, rest = rest.partition(" ")
    return _NameOptions(quiet, described, of_type), rest.strip()


def _pattern(rest: str) -> re.Pattern[str]:
    try:
        return re.compile(rest)
    except re.error as error:
        raise CommandError(f"Invalid regexp: {error}") from None


def _declaration(kind: str, one: NamedEntry) -> str:
    """A name as its language declares it."""
    if one.alias is not None:
        text = one.alias.resolved.text
        is_constant = one.alias.text.startswith("const ") and not text.startswith("const ")
        return f"typedef {'const ' if is_constant else ''}{text} {one.name};"
    if kind == "type":
        return f"{one.type.text};" if one.line else one.type.text
    if one.signature.endswith((")", ") const")):
        # C++'s, without the object that it is called for
        text = one.type.resolved.target.declared(one.signature)
    else:
        text = one.type.declared(one.name).replace("const const ", "const ", 1)
        if kind == "function":
            text = re.sub(r"^\? ", "void ", text)
        elif _NAMELESS in text:  # its members are told, as it has no name
            whole = definition_of(one.type)
            text = text.replace(_NAMELESS, whole[whole.index("{") : whole.rindex("}") + 1])
    return f"{'' if one.external else 'static '}{text};"
