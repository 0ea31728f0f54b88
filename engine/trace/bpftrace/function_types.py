"""The types that single functions give, where a row of `functions` cannot say it in a column.

Texts are those of bpftrace 0.26 (src/ast/passes/types/type_resolver.cpp).
"""

import ipaddress
from collections.abc import Callable, Mapping
from typing import Final, Literal

from msgspec.structs import asdict

from engine.trace.bpftrace.c_types import Space
from engine.trace.bpftrace.folding import Constant, KnownRecord
from engine.trace.bpftrace.folding import literal_type as known_type
from engine.trace.bpftrace.function_use import FunctionUse
from engine.trace.bpftrace.tokens import whole_number
from engine.trace.bpftrace.tree import Name
from engine.trace.bpftrace.type_rules import (
    integer_of,
    kind_name,
    type_name,
    type_size,
)
from engine.trace.bpftrace.types import (
    BOOL,
    INT64,
    UINT64,
    Array,
    BufferType,
    Integer,
    Pointer,
    StackType,
    SymbolType,
    TextType,
    Type,
)

StackMode = Literal["bpftrace", "perf", "raw", "build_id"]

_BUFFER_HEAD: Final = 4
"""Bytes that bpftrace puts before a buffer (AsyncEvent::Buf)."""
_MAX_STACK: Final = 1024
_MODES: Final[Mapping[str, StackMode]] = {
    "bpftrace": "bpftrace",
    "perf": "perf",
    "raw": "raw",
    "build_id": "build_id",
}
_CLOCKS: Final = ("monotonic", "boot", "tai", "sw_tai")
FUNCTION_PROVIDERS: Final = ("kprobe", "kretprobe", "uprobe", "uretprobe", "fentry", "fexit")
"""Providers whose places are functions."""


def string_type(site: FunctionUse) -> Type | None:
    """`str(address)`, `str(address, length)`."""
    most = site.findings.config.max_strlen
    length = site.number(1)
    if length is None:
        return TextType(most)
    if length < 0:
        site.error(f"{site.name}cannot use negative length ({length})")
    elif length + 1 > most:
        site.findings.warning(
            f"length param ({length}) is too long and will be shortened to {most} bytes "
            "(see BPFTRACE_MAX_STRLEN)",
            site.node,
        )
    else:
        return TextType(length + 1)
    return TextType(most)


def buffer_type(site: FunctionUse) -> Type | None:
    """`buf(array)`, `buf(address, length)`."""
    most = max(site.findings.config.max_strlen - _BUFFER_HEAD, 1)
    kind = site.kind(0)
    if len(site.arguments) == 1 and kind is None:
        return None
    size = site.number(1)
    if len(site.arguments) == 1 and isinstance(kind, Array):
        size = type_size(kind)
    return BufferType(most if size is None or size < 0 else min(size, most))


def address_type(site: FunctionUse) -> Type | None:
    """`pton("127.0.0.1")`."""
    text = site.text(0)
    if text is None:
        site.error(f"{site.name}() expects a string literal at the first argument")
        return None
    if "." not in text and ":" not in text:
        site.error(f"{site.name}() expects an string argument of an IPv4/IPv6 address, got {text}")
        return None
    try:
        size = len(ipaddress.ip_address(text).packed)
    except ValueError:
        site.error(f"{site.name}() expects a valid IPv4/IPv6 address, got {text}")
        return None
    return Array(Integer(8, signed=False), size)


def stack_type(site: FunctionUse) -> Type | None:
    """`kstack`, `ustack(perf, 3)`, `ustack(5)`."""
    kernel = site.name == "kstack"
    mode, limit = site.findings.config.stack_mode, 127
    rest = list(range(len(site.arguments)))
    if rest and isinstance(site.arguments[0], Name):
        word = site.arguments[0].name
        if word in _MODES:
            mode = _MODES[word]
        else:
            site.findings.error(
                f"Error parsing stack mode: {site.name}: Invalid value for stack_mode: valid "
                "values are bpftrace, perf, raw, and build_id.",
                site.arguments[0],
            )
        rest = rest[1:]
    elif len(rest) == 2:
        site.error("Expected stack mode as first argument")
        rest = rest[1:]
    if rest:
        given = site.number(rest[0])
        if given is None or given < 0:
            site.error(f"{site.name}: invalid limit value")
        elif given > _MAX_STACK:
            site.error(
                f"{site.name}([int limit]): limit shouldn't exceed {_MAX_STACK}, {given} given"
            )
        else:
            limit = given
    if kernel and mode == "build_id":
        if site.arguments:
            site.error("'build_id' stack mode can only be used for ustack")
        else:
            site.findings.warning(
                "'build_id' stack mode can only be used for ustack. Falling back to 'raw' mode.",
                site.node,
            )
        mode = "raw"
    return StackType("kernel" if kernel else "user", mode, limit)


def path_type(site: FunctionUse) -> Type | None:
    """`path(struct path *)`, `path(pointer, size)`."""
    size = site.number(1)
    if len(site.arguments) == 2 and (size is None or size < 0):
        site.error(f"{site.name}: invalid size value, need non-negative literal")
    return TextType(site.findings.config.max_strlen if size is None or size < 0 else size)


def in_space(space: Space) -> Callable[[FunctionUse], Type | None]:
    """The rule of `kptr()` or `uptr()`: the same pointer, to memory of a known kind."""

    def kind_there(site: FunctionUse) -> Type | None:
        kind = site.kind(0)
        return Pointer(kind.target, space) if isinstance(kind, Pointer) else kind

    return kind_there


def object_type(site: FunctionUse) -> Type | None:
    """`uaddr()` leads to a number as large as what the symbol names; else to 64 bits."""
    name, points = site.text(0), site.probe.points
    size: int | None = None
    if name is not None and points:
        size = site.findings.surroundings.symbol_size(name, points[0], kernel=False)
    return Pointer(Integer(8 * size if size in (1, 2, 4) else 64, signed=True), "user")


def swapped_type(site: FunctionUse) -> Type | None:
    """`bswap(number)`."""
    kind = site.kind(0)
    if kind is None:
        return None
    number = integer_of(kind)
    if number is None:
        site.error(f"{site.name}() only supports integer arguments ({kind_name(kind)} provided)")
        return None
    return Integer(number.bits, signed=False)


def clock_type(site: FunctionUse) -> Type | None:
    """`nsecs`, `nsecs(boot)`."""
    if site.arguments:
        word = site.arguments[0]
        name = word.name if isinstance(word, Name) else ""
        if name not in _CLOCKS:
            site.findings.error(
                f"Invalid timestamp mode: {name}"
                if name
                else f"nsecs() only supports timestamp_mode arguments ({site.given(0)} provided)",
                word,
            )
    return UINT64


def identity_type(site: FunctionUse) -> Type | None:
    """`pid`, `tid(init)`."""
    if site.arguments:
        word = site.arguments[0]
        if not isinstance(word, Name):
            site.error(f"{site.name}() only supports curr_ns and init as the argument")
        elif word.name not in ("curr_ns", "init"):
            site.findings.error(
                f"Invalid PID namespace mode: {word.name} (expects: curr_ns or init)", word
            )
    return Integer(32, signed=False)


def place_type(site: FunctionUse) -> Type | None:
    """`probe`, which is known before the run if there is one place."""
    texts = [point.text.encode() for point in site.probe.points]
    if len(texts) == 1 and b"*" not in texts[0]:
        site.findings.constants[site.node] = texts[0]
    return TextType(1 + max(map(len, texts), default=0))


def provider_type(site: FunctionUse) -> Type | None:
    """`probetype`."""
    provider = site.probe.provider
    name = "special" if provider in ("begin", "end", "self") else provider
    site.findings.constants[site.node] = name.encode()
    return TextType(len(name) + 1)


def place_symbol_type(site: FunctionUse) -> Type | None:
    """`func`."""
    provider = site.probe.provider
    if provider not in FUNCTION_PROVIDERS:
        site.error(f"The func builtin can not be used with '{provider}' probes")
    return SymbolType("user" if provider.startswith("u") else "kernel")


def result_type(site: FunctionUse) -> Type | None:
    """`retval`."""
    provider = site.probe.provider
    if provider not in ("kretprobe", "uretprobe", "fentry", "fexit"):
        more = " (try to use args.ret instead)" if provider == "tracepoint" else ""
        site.error(
            "The retval builtin can only be used with 'kretprobe' and 'uretprobe' and 'fentry' "
            f"probes{more}"
        )
        return UINT64
    if provider in ("fentry", "fexit"):
        if site.probe.returns is None:
            site.error("Can't find a field $retval")
        return site.probe.returns
    return UINT64


def argument_type(site: FunctionUse) -> Type | None:
    """`arg0`, `arg1`, ..."""
    provider = site.probe.provider
    index = int(site.name.removeprefix("arg"))
    if provider not in ("kprobe", "uprobe", "usdt", "rawtracepoint"):
        site.error(
            f"The {site.name} builtin can only be used with 'kprobes', 'uprobes' and 'usdt' probes"
        )
    elif provider == "usdt":
        known = site.probe.usdt
        if known is not None and index >= len(known):
            site.error(f"The marker has {len(known)} arguments: there is no {site.name}")
        elif known is not None:
            return known[index]
    return UINT64


def task_type(site: FunctionUse) -> Type | None:
    """`curtask`."""
    data = site.findings.lookup.named("struct task_struct", "kernel")
    return UINT64 if data is None else Pointer(data, "kernel")


def truth_of_kind(name: str) -> Callable[[FunctionUse], Type | None]:
    """The rule of `is_str()` and the like: known as soon as the argument's type is."""

    def known_truth(site: FunctionUse) -> Type | None:
        kind = site.kind(0)
        if kind is None:
            return None
        value = kind_name(kind) == name
        if name == "uint":
            value = integer_of(kind) is not None and type_name(kind).startswith("u")
        site.findings.constants[site.node] = value
        return BOOL

    return known_truth


def is_literal_type(site: FunctionUse) -> Type | None:
    """`is_literal()`."""
    site.findings.constants[site.node] = site.known(0) is not None
    return BOOL


def option_type(site: FunctionUse) -> Type | None:
    """`getopt(name, default, description)`: what the command line says, else the default."""
    name = site.text(0)
    if name is None:
        site.findings.error(
            "First argument to 'getopt' must be a string literal.", site.arguments[0]
        )
        return None
    default = site.known(1)
    if len(site.arguments) > 1 and not isinstance(default, int | bytes):
        site.findings.error(
            "Second argument to 'getopt' must be a string literal, integer literal, or a boolean "
            "literal.",
            site.arguments[1],
        )
        return None
    wanted = False if default is None else default
    earlier = site.findings.options.setdefault(name, wanted)
    if type(earlier) is not type(wanted) or earlier != wanted:
        shown = earlier.decode("utf-8", "replace") if isinstance(earlier, bytes) else earlier
        shown = str(shown).lower() if isinstance(shown, bool) else shown
        site.error(
            f"Command line option '{name}' needs to have the same default value in all places it "
            f"is used. Previous default value: {shown}"
        )
        return None
    described = site.text(2) or ""
    other = site.findings.descriptions.setdefault(name, described) or described
    site.findings.descriptions[name] = other
    if described and described != other:
        site.error(
            f"Command line option '{name}' must have the same description in all places it's "
            "used. Hint: You can wrap it in a macro"
        )
    value = _option(site, name, wanted)
    site.findings.constants[site.node] = value
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, bytes):
        return TextType(max(site.findings.config.max_strlen, len(value) + 1))
    return INT64 if isinstance(wanted, int) and wanted < 0 else UINT64


def _option(site: FunctionUse, name: str, default: Constant) -> Constant:
    for word in site.findings.parameters:
        option, equals, text = word.removeprefix("--").partition("=")
        if not word.startswith("--") or option != name:
            continue
        if isinstance(default, bool):
            if not equals or text.lower() in ("true", "1"):
                return True
            if text.lower() in ("false", "0"):
                return False
            _wrong_option(site, name, text, "expects a boolean (e.g. 'true')")
        elif isinstance(default, bytes):
            if equals:
                return text.encode("utf-8", "surrogateescape")
            _wrong_option(site, name, "true", "expects a string")
        else:
            value = whole_number(text.removeprefix("-"))
            if isinstance(value, str):
                why = "invalid integer" if equals else "expects an integer"
                _wrong_option(site, name, text if equals else "true", why)
                return default
            return -value if text.startswith("-") else value
    return default


def _wrong_option(site: FunctionUse, name: str, value: str, why: str) -> None:
    """An option of the command line has a value that the script cannot take."""
    text = f"program command line option --{name} {why} (value: {value})"
    site.findings.remarks.error(text, site.node.span, placed=False)


def longest_type(site: FunctionUse) -> Type | None:
    """`default_str_length`: what `str()` reads at most."""
    site.findings.constants[site.node] = site.findings.config.max_strlen
    return UINT64


def settings_type(site: FunctionUse) -> Type | None:
    """`config`: a record of the settings."""
    fields: dict[str, Constant] = {}
    for name, value in asdict(site.findings.config).items():
        if name == "unstable":
            fields |= {feature: word.encode() for feature, word in value}
        else:
            fields[name] = value.encode() if isinstance(value, str) else value
    record = KnownRecord(fields)
    site.findings.constants[site.node] = record
    return known_type(record)
