"""Types of C++ as users write them: "std::string", "std::map<int, std::string>".

Compilers write out what templates of the library are given by default. The rules are those of
libstdc++'s type printers for gdb (libstdc++-v3/python/libstdcxx/v6/printers.py,
add_one_template_type_printer), which `ptype` and `whatis` use.
"""

import re
from typing import Final

from engine.image.datatypes import shorter_arguments

_NAME: Final = re.compile(r"(?:const |volatile |class |struct )*[\w:~ ]*?([\w:]+)$")
_DEPTH: Final = 64
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

    Args:
        text: the type as the debug information has it, declarators included.
    """
    return _shortened(text.replace("::__1::", "::"), 0)


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
    return re.sub(r"(?<!\w) | (?!\w)", "", user_type(shorter_arguments(bare_type(text))))


def template_arguments(text: str) -> list[str]:
    """The arguments in a type's name: those of the last template in it; [] for no template."""
    end = len(text.rstrip())
    if not text[:end].endswith(">"):
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


def _shortened(text: str, depth: int) -> str:
    if "<" not in text or depth > _DEPTH:
        return text.replace("std::__cxx11::", "std::")
    found, at = "", 0
    while (opening := text.find("<", at)) >= 0:
        closing = _closing(text, opening)
        if closing < 0:
            break
        before = text[at:opening]
        match = _NAME.search(before)
        name = match[1] if match is not None else ""
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
        rest = [f"std::char_traits<{given[0]}>", f"std::allocator<{given[0]}>"]
        if given[1:] == rest[: len(given) - 1]:
            return f"std::{_STRINGS[given[0]]}{name.removeprefix('std::basic_')}"
    kept, defaults = _DEFAULTS.get(name, (len(given), ()))
    dropped = False
    while len(given) > kept:
        forms = defaults[len(given) - kept - 1] if len(given) - kept <= len(defaults) else ()
        known = {_tight(form.format(*given)) for form in forms}
        if _tight(given[-1]) not in known:
            break
        given, dropped = given[:-1], True
    space = " " if spaced and not dropped and given[-1].endswith(">") else ""
    return f"{name}<{', '.join(given)}{space}>"


def _tight(text: str) -> str:
    """A type without the spaces between closing brackets."""
    return text.replace(" >", ">")


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
