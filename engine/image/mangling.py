"""Comparing what a user types with a demangled name."""

import re
from typing import Final

# Words that stand in a demangled name but not, or not as they are, in the mangled one.
_NOT_MANGLED: Final = frozenset(
    {
        *("allocator", "basic_string", "iostream", "istream", "ostream"),  # Sa Sb Sd Si So
        *("anonymous", "auto", "bool", "char", "const", "decltype", "delete", "double", "float"),
        *("int", "long", "namespace", "new", "operator", "short", "signed", "std", "string"),
        *("unsigned", "void", "volatile"),
    }
)
_CLOSED: Final = re.compile(r"(?<!operator)> (?=>)")


def identifier(name: str) -> str:
    """A word of `name` that the mangled form holds literally; "" when there is none.

    The last word of the path is best: "ns::Box<int>::push(int)" gives "push".
    """
    path = _strip_groups(name)
    words = [w for w in re.findall(r"[^\W\d]\w*", path) if w not in _NOT_MANGLED]
    return words[-1] if words else ""


def spellings(demangled: str) -> frozenset[str]:
    """All the ways to write a demangled name.

    "void ns::f<int>(int)" is also "ns::f<int>(int)", "ns::f<int>" and "ns::f"; of Rust
    "ns::f::<u32>" is also "ns::f". Brackets that close each other's contents have a space between
    them, as GNU's demangler writes it, or none.
    """
    forms = {demangled}
    head = demangled
    for suffix in (" const", " volatile", " &", " &&"):
        head = head.removesuffix(suffix)
    if head.endswith(")") and " (." not in head:  # " (.cold)" marks a part, not parameters
        opening = _opening(head)
        signature = head[opening:] + demangled[len(head) :]
        path = head[:opening]
        start = _last_space(path)
        if path:
            forms |= {path, path[start:], path[start:] + signature, _strip_groups(path[start:])}
    elif head.endswith(">") and "::<" in head:  # Rust's, with the types that it was made for
        forms.add(_without_types(head))
    if "> >" in demangled:
        forms |= {_CLOSED.sub(">", form) for form in forms}
    return frozenset(form for form in forms if form)


def _without_types(path: str) -> str:
    """A path of Rust without the types at its end: "core::mem::swap::<u32>"."""
    depth = 0
    for index in range(len(path) - 1, -1, -1):
        is_arrow = path[index] == ">" and path[index - 1 : index] == "-"
        depth += ((path[index] == ">") - (path[index] == "<")) * (not is_arrow)
        if not depth:
            return path[:index].removesuffix("::")
    return path


def _opening(text: str) -> int:
    """Index of the parenthesis that the last character closes; 0 if there is none."""
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        depth += (text[index] == ")") - (text[index] == "(")
        if depth == 0:
            return index
    return 0


def _last_space(path: str) -> int:
    """The start of the name behind its return type: after the last space outside brackets."""
    depth = start = 0
    for index, char in enumerate(path):
        depth += (char in "<(") - (char in ">)")
        if char == " " and depth == 0 and not path[:index].endswith("operator"):
            start = index + 1
    return start


def _strip_groups(path: str) -> str:
    """Drop template arguments and parameters, with everything inside them."""
    kept: list[str] = []
    depth = 0
    for char in path:
        depth += char in "<("
        if depth == 0:
            kept.append(char)
        if char in ">)" and depth:
            depth -= 1
    return "".join(kept)
