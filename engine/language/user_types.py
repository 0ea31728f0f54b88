"""Types of C++ as users write them: "std::string", "std::map<int, std::string>".

Compilers write out what templates of the library are given by default. The rules are those of
libstdc++'s type printers for gdb (libstdc++-v3/python/libstdcxx/v6/printers.py,
add_one_template_type_printer), which `ptype` and `whatis` use.
"""

import re
from collections.abc import Mapping
from typing import Final

from engine.image.datatypes import (
    MAX_NAME,
    constants_behind,
    is_beyond_parser,
    shorter_numbers,
)

_DEPTH: Final = 64
"""Templates in templates that are read: what stands deeper is written as the file has it."""
_STRINGS: Final = {
    "char": "",
    "wchar_t": "w",
    "char8_t": "u8",
    "char16_t": "u16",
    "char32_t": "u32",
}
_TEXTS: Final = ("string", "string_view")
_LESS, _ALLOCATOR = "std::less<{0}>", "std::allocator<{0}>"
_PAIRS: Final = (
    "std::allocator<std::pair<{0} const, {1}>>",
    "std::allocator<std::pair<const {0}, {1}>>",
)
_DEFAULTS: Final[dict[str, tuple[int, tuple[tuple[str, ...], ...]]]] = {
    **dict.fromkeys(
        ("std::vector", "std::deque", "std::list", "std::forward_list"), (1, ((_ALLOCATOR,),))
    ),
    **dict.fromkeys(("std::set", "std::multiset"), (1, ((_LESS,), (_ALLOCATOR,)))),
    **dict.fromkeys(("std::map", "std::multimap"), (2, ((_LESS,), _PAIRS))),
    **dict.fromkeys(
        ("std::unordered_set", "std::unordered_multiset"),
        (1, (("std::hash<{0}>",), ("std::equal_to<{0}>",), (_ALLOCATOR,))),
    ),
    **dict.fromkeys(
        ("std::unordered_map", "std::unordered_multimap"),
        (2, (("std::hash<{0}>",), ("std::equal_to<{0}>",), _PAIRS)),
    ),
    "std::unique_ptr": (1, (("std::default_delete<{0}>",),)),
}
"""Templates: the number of arguments that stay, and what the others are by default."""


def user_type(text: str) -> str:
    """A type's text without what the library's templates are given by default.

    As in gdb, what such a template is given is written out but for such templates themselves:
    the string in `std::vector<Box<std::basic_string<...> > >` has no other name.

    Args:
        text: the type as the debug information has it, declarators included.
    """
    text = text.replace("::__1::", "::")
    return text if len(text) > MAX_NAME else _printed(text, 0)


def printer_type(text: str) -> str:
    """A type as gdb's printers of values call it: only a template of the library is shortened.

    Args:
        text: the type as the debug information has it, without declarators.
    """
    text = text.replace("::__1::", "::")
    name, bracket, rest = text.partition("<")
    if not bracket or len(text) > MAX_NAME or _closing(text, len(name)) != len(text) - 1:
        return text
    return _known(name, _split(rest[:-1]), 0) or text


def with_names(text: str, names: Mapping[object, str]) -> str:
    """A type's text with a class's own names for the types in its templates' arguments.

    Args:
        text: the type.
        names: by the texts of types.
    """
    return text if len(text) > MAX_NAME else _with_names(text, names, 0)


def _with_names(text: str, names: Mapping[object, str], depth: int) -> str:
    if "<" not in text or depth > _DEPTH:
        return text
    found, at = "", 0
    while (opening := text.find("<", at)) >= 0:
        closing = _closing(text, opening)
        if closing < 0:
            break
        given = _split(text[opening + 1 : closing])
        shown = ", ".join(_named(one, names, depth + 1) for one in given)
        space = " " if shown.endswith(">") else ""
        found += f"{text[at:opening]}<{shown}{space}>"
        at = closing + 1
    return found + text[at:]


def _named(given: str, names: Mapping[object, str], depth: int) -> str:
    """A template's argument with a class's own names for types."""
    base, marks = _marked(given)
    inner = names.get(base) or _with_names(base, names, depth)
    return f"{names.get(inner, inner)}{marks}"


def is_known_by_name(text: str) -> bool:
    """True for a class of the library that type printers write by its name alone.

    Args:
        text: the class as the debug information has it, or as users write it.
    """
    name, _, rest = user_type(text).partition("<")
    strings = {f"std::{letter}{word}" for letter in _STRINGS.values() for word in _TEXTS}
    return name in strings if not rest else name in _DEFAULTS and text.count("<") > 0


def same_spelling(text: str) -> str:
    """A type's name in a form in which all ways to write it are equal.

    Arguments that templates have by default, libraries' inner namespaces and spaces are left out.
    """
    if len(text) > MAX_NAME:
        return text
    whole = shorter_numbers(bare_type(text).replace("::__1::", "::"))
    return re.sub(r"(?<!\w) | (?!\w)", "", _shortened(constants_behind(whole), 0))


def template_arguments(text: str) -> list[str]:
    """The arguments in a type's name: those of the last template in it; [] for no template."""
    end = len(text.rstrip())
    if len(text) > MAX_NAME or not text.endswith(">", 0, end):
        return []
    at = 0
    while (opening := text.find("<", at)) >= 0:
        closing = _closing(text, opening)
        if closing < 0:
            break
        if closing == end - 1:
            return _split(text[opening + 1 : closing])
        at = closing + 1
    return []


def bare_type(text: str) -> str:
    """A type's name without the keyword in front: "struct point" is "point"."""
    return re.sub(r"^(struct|class|union|enum) ", "", text)


def _printed(text: str, depth: int) -> str:
    """Write the types in a text by the names that the library's type printers give them."""
    if "<" not in text or depth > _DEPTH:
        return text
    found, at = "", 0
    while (opening := text.find("<", at)) >= 0:
        closing = _closing(text, opening)
        if closing < 0:
            break
        name = _last_name(text, at, opening)
        inner = text[opening + 1 : closing]
        shown = f"{name}<{inner}>"
        if name and not is_beyond_parser(shown):
            given = _split(inner)
            inside = ", ".join(_printed(one, depth + 1) for one in given)
            space = " " if inner.endswith(" ") and inside.endswith(">") else ""
            shown = f"{name}<{inside}{space}>"
            if not text.startswith("::", closing + 1):  # of that, the name is another type's
                shown = _known(name, given, depth) or shown
        found += text[at : opening - len(name)] + shown
        at = closing + 1
    return found + text[at:]


def _known(name: str, given: list[str], depth: int) -> str:
    """A template of the library as its type printers write it; "" for another one."""
    name = name.replace("std::__cxx11::", "std::")
    if name in ("std::basic_string", "std::basic_string_view") and given[0] in _STRINGS:
        return _text_name(name, given)
    kept, defaults = _DEFAULTS.get(name, (0, ()))
    if kept and len(given) == kept:
        return f"{name}<{', '.join(given)}>"  # it has been written so before
    if len(given) != kept + len(defaults) or depth > _DEPTH:
        return ""
    for one, forms in zip(given[kept:], defaults, strict=True):
        if _spelled(one) not in {_spelled(form.format(*given)) for form in forms}:
            return ""
    return f"{name}<{', '.join(_given(one, depth + 1) for one in given[:kept])}>"


def _text_name(name: str, given: list[str]) -> str:
    """The library's own name for a string of some characters; "" for another one."""
    rest = [f"std::char_traits<{given[0]}>", f"std::allocator<{given[0]}>"]
    if given[1:] != rest[: len(given) - 1]:
        return ""
    return f"std::{_STRINGS[given[0]]}{name.removeprefix('std::basic_')}"


def _given(text: str, depth: int) -> str:
    """A type that a template of the library is given, as its type printers write it.

    They write a pointer's mark behind what it leads to, and forget `const` of what they know.
    """
    base, behind = _marked(text)
    behind = behind.lstrip()
    name, bracket, rest = base.partition("<")
    whole = bool(bracket) and _closing(base, len(name)) == len(base) - 1
    marks = re.sub(r"[^*&]", "", behind)
    if shown := _known(name, _split(rest[:-1]), depth) if whole else "":
        return f"{shown}{marks}"
    return f"const {base}{marks}" if marks and behind.startswith("const") else text


def _spelled(text: str) -> str:
    """A type in one of the ways to write it."""
    return re.sub(r"\s+(?=[*&>])", "", constants_behind(text))


def _shortened(text: str, depth: int) -> str:
    if "<" not in text or depth > _DEPTH:
        return text.replace("std::__cxx11::", "std::")
    found, at = "", 0
    while (opening := text.find("<", at)) >= 0:
        closing = _closing(text, opening)
        if closing < 0:
            break
        before = text[at:opening]
        name = _last_name(text, at, opening)
        if not name:
            found, at = found + text[at : closing + 1], closing + 1
            continue
        given = [_shortened(one, depth + 1) for one in _split(text[opening + 1 : closing])]
        spaced = text[closing - 1] == " "  # else it has been made shorter before
        found += before[: len(before) - len(name)] + _template(name, given, spaced=spaced)
        at = closing + 1
    return (found + text[at:]).replace("std::__cxx11::", "std::")


def _template(name: str, given: list[str], *, spaced: bool) -> str:
    name = name.replace("std::__cxx11::", "std::")
    if name in ("std::basic_string", "std::basic_string_view") and given[0] in _STRINGS:
        known = _text_name(name, given)
        if known:
            return known
    kept, defaults = _DEFAULTS.get(name, (len(given), ()))
    dropped = False
    while len(given) > kept:
        forms = defaults[len(given) - kept - 1] if len(given) - kept <= len(defaults) else ()
        if _tight(given[-1]) not in {_tight(form.format(*given)) for form in forms}:
            break
        given, dropped = given[:-1], True
    space = " " if spaced and not dropped and given[-1].endswith(">") else ""
    return f"{name}<{', '.join(given)}{space}>"


def _tight(text: str) -> str:
    """A type without the spaces between closing brackets."""
    return text.replace(" >", ">")


def _last_name(text: str, start: int, end: int) -> str:
    """The name, namespaces included, that a part of a text ends with; "" for none."""
    at = end
    while at > start and (text[at - 1].isalnum() or text[at - 1] in "_:"):
        at -= 1
    return text[at:end]


def _marked(text: str) -> tuple[str, str]:
    """A type, and the marks of pointers, references and constants that stand behind it."""
    at = len(text)
    while size := _mark_before(text, at):
        at -= size
        while at and text[at - 1].isspace():
            at -= 1
    return text[:at], text[at:]


def _mark_before(text: str, end: int) -> int:
    """The letters of the mark that ends at a place; 0 for none."""
    if text.endswith(("*", "&"), 0, end):
        return 1
    for word in ("const", "volatile"):
        begin = end - len(word)
        if text.endswith(word, 0, end) and not re.match(r"\w", text[max(begin - 1, 0) : begin]):
            return len(word)
    return 0


def _closing(text: str, opening: int) -> int:
    """The place of the bracket that closes one; -1 for none."""
    depth = 0
    for at in range(opening, len(text)):
        if text[at] == "<":
            depth += 1
        elif text[at] == ">" and text[at - 1] != "-":
            depth -= 1
            if not depth:
                return at
    return -1


def _split(text: str) -> list[str]:
    """The arguments of a template."""
    found, depth, start = list[str](), 0, 0
    for at, letter in enumerate(text):
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()]
