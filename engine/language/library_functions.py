"""Functions of C++'s library that the layout of their argument answers: std::get, any_cast."""

import re
from typing import Final

from engine.errors import CommandError
from engine.language.container_methods import ContainerMethods
from engine.language.reach import Reach
from engine.language.user_types import same_spelling, template_arguments, user_type
from engine.language.values import TypedValue

_WORDS: Final = re.compile(r"((?:std::)?(?:get|any_cast))\s*<(.+)>", re.DOTALL)


def library_function(
    methods: ContainerMethods, reach: Reach, name: str, given: list[TypedValue]
) -> TypedValue | None:
    """The result of a function of the library; None for another function.

    Args:
        methods: answers of containers.
        reach: parts of values.
        name: with its brackets: "std::get<0>".
        given: the arguments.

    Raises:
        CommandError: the container holds no such thing.
        GuestFaultError: memory cannot be read.
    """
    match = _WORDS.fullmatch(name)
    if match is None or len(given) != 1:
        return None
    value, wanted = given[0], match[2].strip()
    held = methods.held(value)
    text = value.type.resolved.text
    if match[1].endswith("any_cast"):
        is_any = re.fullmatch(r"std::(?:\w+::)*any", text)
        return _alternative(methods, value, wanted) if is_any else None
    if "::variant<" in text:
        return _alternative(methods, value, wanted)
    parts = _parts(methods, reach, value)
    if held is None and not parts:
        return None
    if wanted.isdigit():
        if int(wanted) >= len(parts):
            raise CommandError(f"{name}: {user_type(text)} has {len(parts)} parts.")
        return parts[int(wanted)]
    found = [part for part in parts if _is_named(part, wanted)]
    if len(found) != 1:
        raise CommandError(f"{name}: {user_type(text)} has {len(found)} parts of this type.")
    return found[0]


def _parts(methods: ContainerMethods, reach: Reach, value: TypedValue) -> list[TypedValue]:
    """The parts of a tuple, a pair or an array."""
    kind, text = value.type.resolved, value.type.resolved.text
    if re.match(r"std::(?:\w+::)*pair<", text):
        return [reach.member(value, name) for name in ("first", "second")]
    if re.match(r"std::(?:\w+::)*array<", text):
        inner = next((member for member in kind.members if member.type.resolved.count), None)
        if inner is None:
            return []
        elements = reach.member(value, inner.name or "")
        count = elements.type.resolved.count or 0
        return [reach.element(elements, number) for number in range(count)]
    held = methods.held(value)
    if held is None or held.children is None or not re.match(r"std::(?:\w+::)*tuple<", text):
        return []
    return [part for _, part in held.children()]


def _alternative(methods: ContainerMethods, value: TypedValue, wanted: str) -> TypedValue:
    """The thing in a variant or an any, which is of a type or has a number."""
    held = methods.held(value)
    if held is None or held.at is None:
        raise CommandError(f"{user_type(value.type.resolved.text)} holds no value.")
    found = held.at(0)
    index = re.search(r"\[index (\d+)\]", held.title)
    if wanted.isdigit() and index is not None:
        if index[1] == wanted:
            return found
        raise CommandError(f"The variant holds its alternative {index[1]}.")
    if not _is_named(found, wanted):
        raise CommandError(f"It holds a value of type {user_type(found.type.resolved.text)}.")
    return found


def _is_named(value: TypedValue, wanted: str) -> bool:
    texts = (value.type.text, value.type.resolved.text)
    return same_spelling(wanted) in {same_spelling(text) for text in texts}


def arguments_match(wanted: str, whole: str) -> bool:
    """True if a template's name has the arguments that are written, and perhaps defaults behind.

    Args:
        wanted: as the user writes it, "Grid<int>".
        whole: of the debug information, "Grid<int, 3>".
    """
    heads = [text.partition("<")[0].strip() for text in (wanted, whole)]
    if heads[0] != heads[1] and not heads[1].endswith(f"::{heads[0]}"):
        return False
    given, known = (
        [same_spelling(one) for one in template_arguments(text)] for text in (wanted, whole)
    )
    return 0 < len(given) < len(known) and known[: len(given)] == given
