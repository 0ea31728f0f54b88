"""Checks of single functions, made once all types are known.

Texts are those of bpftrace 0.26 (src/ast/passes/types/type_checker.cpp).
"""

import re
import signal as signals
from typing import Final

from engine.trace.bpftrace.folding import truth
from engine.trace.bpftrace.formats import check_format
from engine.trace.bpftrace.function_use import FunctionUse
from engine.trace.bpftrace.tree import Name, StringLiteral
from engine.trace.bpftrace.type_rules import (
    integer_of,
    is_histogram,
    kind_name,
    same,
    type_name,
    type_size,
)
from engine.trace.bpftrace.types import (
    INT8,
    Array,
    BufferType,
    Pointer,
    StackType,
    Structure,
    TextType,
    Void,
)

_SYMBOL: Final = re.compile(r"[a-zA-Z0-9./_-]+")


def readable(site: FunctionUse) -> None:
    """`str()` takes strings and addresses."""
    kind = site.kind(0)
    is_address = integer_of(kind) is not None or isinstance(kind, TextType | Pointer | Array)
    if not is_address:
        site.error(
            f"{site.name}() expects a string, integer or a pointer type as first argument "
            f"({type_name(kind)} provided)"
        )


def bytes_there(site: FunctionUse) -> None:
    """`buf()` takes arrays, and addresses with a length."""
    kind = site.kind(0)
    if not (integer_of(kind) is not None or isinstance(kind, TextType | Pointer | Array)):
        site.error(
            f"{site.name}() expects an integer, string, or array argument but saw "
            f"{kind_name(kind)}"
        )
    elif len(site.arguments) == 1 and not isinstance(kind, Array):
        site.error(f"{site.name}() expects a length argument for non-array type {kind_name(kind)}")
    length = site.number(1)
    if length is not None and length < 0:
        site.error(f"{site.name}cannot use negative length ({length})")


def address_of_code(site: FunctionUse) -> None:
    """`ksym()` and `usym()` take addresses."""
    if integer_of(site.kind(0)) is None and not isinstance(site.kind(0), Pointer):
        site.error(f"{site.name}() expects an integer or pointer argument")


def internet_address(site: FunctionUse) -> None:
    """`ntop()` takes a number, or 4 or 16 bytes."""
    if len(site.arguments) == 2 and integer_of(site.kind(0)) is None:
        site.error(f"{site.name}() only supports int arguments ({site.given(0)} provided)")
    kind = site.kind(len(site.arguments) - 1)
    if kind is None:
        return
    if isinstance(kind, Array | TextType):
        # A string of C has room for a NUL here, see `c_types`.
        if type_size(kind) - isinstance(kind, TextType) not in (4, 16):
            site.error(f"{site.name}() argument must be 4 or 16 bytes in size")
    elif integer_of(kind) is None:
        site.error(f"{site.name}() expects an integer or array argument, got {kind_name(kind)}")


def hardware_address(site: FunctionUse) -> None:
    """`macaddr()` takes at least 6 bytes, or where they are."""
    kind = site.kind(0)
    if isinstance(site.arguments[0], StringLiteral):
        site.error(f"{site.name}() does not support literal string arguments")
    elif isinstance(kind, Array | TextType | BufferType):
        if type_size(kind) < 6:
            site.error(f"{site.name}() argument must be at least 6 bytes in size")
    elif integer_of(kind) is None and not isinstance(kind, Pointer):
        site.error(
            f"{site.name}() only supports array or pointer arguments ({kind_name(kind)} provided)"
        )


def several_strings(site: FunctionUse) -> None:
    """`join()` takes the address of an array of addresses."""
    kind = site.kind(0)
    if integer_of(kind) is None and not isinstance(kind, Pointer | Array):
        site.error(f"join() only supports int or pointer arguments ({kind_name(kind)} provided)")


def in_either_space(site: FunctionUse) -> None:
    """`kptr()` and `uptr()` take addresses."""
    if integer_of(site.kind(0)) is None and not isinstance(site.kind(0), Pointer):
        site.error(
            f"{site.name}() only supports integer or pointer arguments ({site.given(0)} provided)"
        )


def kernel_path(site: FunctionUse) -> None:
    """`path()` takes a `struct path`, or where one is."""
    if not isinstance(site.kind(0), Structure | Pointer):
        site.error(f"path() only supports pointer or C type argument ({site.given(0)} provided)")


def moment(site: FunctionUse) -> None:
    """`strftime()` takes a time of the machine that does not stand still while it sleeps."""
    number = site.number(1)
    if number is not None and number < 0:
        site.error("strftime() does not accept negative timestamps")
    words = getattr(site.arguments[1], "arguments", ())
    if words and isinstance(words[0], Name) and words[0].name == "monotonic":
        site.error("strftime() can not take a monotonic timestamp")


def stack_depth(site: FunctionUse) -> None:
    """`len()` of something that is no map takes a stack."""
    if not isinstance(site.kind(0), StackType):
        site.error("call to len() expects a map, ustack, or kstack")


def register_name(site: FunctionUse) -> None:
    """`reg()` takes a register of the guest."""
    name = site.text(0)
    known = site.findings.surroundings.registers
    if name is not None and name not in known:
        site.error(
            f"'{name}' is not a valid register on this architecture",
            f"Registers are {', '.join(known)}." if known else "",
        )


def symbol_name(site: FunctionUse) -> None:
    """`kaddr()` and `uaddr()` take a symbol that is there."""
    name = site.text(0)
    if name is None:
        return
    if not _SYMBOL.fullmatch(name):
        site.error(
            f"{site.name}() expects a string that is a valid symbol (^[a-zA-Z0-9./_-]+$) as input "
            f'("{name}" provided)'
        )
        return
    kernel = site.name == "kaddr"
    points = site.probe.points
    if points and site.findings.surroundings.symbol_size(name, points[0], kernel) is None:
        what = "Failed to resolve kernel symbol" if kernel else "Could not resolve symbol"
        site.error(f"{what}: {name}")


def compared_length(site: FunctionUse) -> None:
    """`strncmp()` takes a length that is known."""
    length = site.number(2)
    if length is None or length < 0:
        site.error("Builtin strncmp requires a non-negative literal")


def string_like(site: FunctionUse) -> None:
    """`strlen()` and the like take strings, arrays of characters and addresses of them."""
    for index in range(len(site.arguments)):
        kind = site.kind(index)
        if isinstance(kind, TextType) or kind_name(kind) == "string":
            continue
        if isinstance(kind, Array):
            if not same(kind.element, INT8):
                site.error("string-like arrays must contain a char-like type")
        elif isinstance(kind, Pointer):
            if not same(kind.target, INT8):
                site.error("string-like pointers must point to a char-like type")
        else:
            site.error("string-like values must be either strings, arrays or pointers")


def signal_number(site: FunctionUse) -> None:
    """`signal()` takes a number from 1 to 64, or a name."""
    value = site.known(0)
    if isinstance(value, bytes):
        name = value.decode("utf-8", "replace").upper()
        name = name if name.startswith("S") else f"SIG{name}"
        if name not in signals.Signals.__members__:
            site.error(f"Invalid string for signal: {site.text(0)}")
        return
    if integer_of(site.kind(0)) is None:
        site.error(f"{site.name}() accepts a string literal or an integer")
    elif site.number(0) is not None and not 1 <= (site.number(0) or 0) <= 64:
        site.error(
            f"{site.name}() accepts a string literal or an integer between 1 and 64 (inclusive)"
        )


def formatted(site: FunctionUse) -> None:
    """`printf()` and the like: what is given fits the format."""
    value = site.known(0)
    kinds = [site.kind(index) for index in range(1, len(site.arguments))]
    if not isinstance(value, bytes):
        return
    for index, kind in enumerate(kinds):
        if kind is None or isinstance(kind, Void) or is_histogram(kind):
            if kind is not None or not site.findings.errors:
                name = type_name(kind)
                text = f"{site.name}() can not print {name}"
                site.findings.error(text, site.arguments[index + 1])
            return
    error = check_format(value, [kind for kind in kinds if kind is not None])
    if error is not None:
        site.error(error)


def failure(site: FunctionUse) -> None:
    """`fail()` that is reached ends it all."""
    values = [site.known(index) for index in range(len(site.arguments))]
    if any(value is None for value in values):
        site.error("fail() arguments need to be literals")
        return
    text = site.text(0)
    if text is None:
        site.error("first argument to fail() must be a string literal")
        return
    rest = iter(values[1:])

    def shown(match: re.Match[str]) -> str:
        value = next(rest, None)
        if match[0] == "%%":
            return "%"
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    site.error(re.sub(r"%[-+ #0-9.hlLjzt]*[a-zA-Z%]", shown, text))


def true_claim(site: FunctionUse) -> None:
    """`static_assert()` of what is not true ends it all."""
    value = site.known(0)
    if value is None:
        site.error("Unable to resolve comptime expression")
    elif not truth(value):
        site.error(site.text(1) or "static_assert failed")


def printable(site: FunctionUse) -> None:
    """`print()` of a value takes nothing but the value."""
    kind = site.kind(0)
    if kind is None and site.findings.errors:
        return  # why it has no type is told
    if is_histogram(kind):
        site.error(
            f"Map type {type_name(kind)} cannot print the value of individual keys. You must "
            "print the whole map."
        )
    elif kind is None or isinstance(kind, Void):
        site.error(f"{type_name(kind)} type passed to {site.name}() is not printable")
    elif len(site.arguments) != 1:
        site.error(f"Non-map print() only takes 1 argument, {len(site.arguments)} found")
