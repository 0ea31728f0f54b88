"""The semantic tests in bpftrace's sources, read out of their C++."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

_CALL = re.compile(r"\btest\(")
_EXPECTED = re.compile(
    r"(Error|Warning|NoWarning)\s*\{\s*(<S>|cast_warn)?|UnsafeMode|NoFeatures|Mock|Types|<S>"
)
_RAW = re.compile(r'R"([^(]*)\(')


class SemanticCase(Struct, frozen=True):
    """A script and what bpftrace says of it.

    Attributes:
        script: its text.
        error: what is printed; "" for any error; None for a script that is right.
        warning: a part of what is printed; None for none that is looked at.
        no_warning: what is not printed.
        flags: what the test sets up: "Mock", "NoFeatures", "UnsafeMode", "Types".
    """

    script: str
    error: str | None
    warning: str | None
    no_warning: str | None
    flags: frozenset[str]


def literal(text: str, at: int) -> tuple[str | None, int]:
    """The strings of C++ that stand at a place, put together, and the place behind them."""
    found: str | None = None
    while True:
        while text[at] in " \t\n":
            at += 1
        if text.startswith("//", at):
            at = text.index("\n", at)
            continue
        raw = _RAW.match(text, at)
        if raw is not None:
            end = f'){raw[1]}"'
            behind = text.index(end, raw.end())
            found = (found or "") + text[raw.end() : behind]
            at = behind + len(end)
        elif text[at] == '"':
            behind = at + 1
            while text[behind] != '"':
                behind += 2 if text[behind] == "\\" else 1
            part = text[at + 1 : behind]
            found = (found or "") + (part.encode().decode("unicode_escape"))
            at = behind + 1
        else:
            return found, at


def semantic_cases(source: Path) -> Iterator[SemanticCase]:
    """The calls of `test(...)` in tests/type_checker.cpp that are given a whole script."""
    text = (source / "tests" / "type_checker.cpp").read_text()
    for match in _CALL.finditer(text):
        script, at = literal(text, match.end())
        if script is None:
            continue
        words, strings, depth = "", [], 1
        while depth:
            if text[at] == '"' or text.startswith('R"', at):
                string, at = literal(text, at)
                strings.append(string)
                words += "<S>"
                continue
            depth += (text[at] in "({") - (text[at] in ")}")
            words += text[at]
            at += 1
        if not words.strip().startswith("+"):
            yield _case(script.lstrip("\n"), re.sub(r"//[^\n]*", "", words), strings)


def _case(script: str, words: str, strings: list[str | None]) -> SemanticCase:
    rest = iter(strings)
    expected: dict[str, str] = {}
    flags = set()
    for match in _EXPECTED.finditer(words):
        if match[1] is not None:
            given = next(rest) if match[2] == "<S>" else None
            expected[match[1]] = "being cast to type" if match[2] == "cast_warn" else given or ""
        elif match[0] == "<S>":
            next(rest, None)
        else:
            flags.add(match[0])
    return SemanticCase(
        script,
        expected.get("Error"),
        expected.get("Warning"),
        expected.get("NoWarning"),
        frozenset(flags),
    )


_DECLARATION = re.compile(
    r"^(?:struct \w+ \{\};|struct \w+ \{.*?^\};|enum \w+ \{.*?^\};|typedef struct \{.*?^\} \w+;"
    r"|typedef [^;{]*;)",
    re.MULTILINE | re.DOTALL,
)


def declared_types(source: Path) -> str:
    """The types of C that these tests know of, without variables and functions."""
    text = (source / "tests" / "data" / "data_source.c").read_text()
    return "\n".join(match[0] for match in _DECLARATION.finditer(text))
