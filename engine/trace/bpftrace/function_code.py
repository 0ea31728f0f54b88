"""Python for each builtin and each function of scripts.

`FUNCTIONS` has a maker for each name that a checked script may call or ask for: it gives the code
of the value, and adds lines that it needs. What a function means is told by bpftrace's
docs/stdlib.md; what it takes was checked.
"""

import signal
from collections.abc import Callable
from typing import Any, Final, Literal

from engine.trace.bpftrace import tree
from engine.trace.bpftrace.arithmetic import swapped_bytes
from engine.trace.bpftrace.call_code import ActionCalls, Maker
from engine.trace.bpftrace.conversion_code import integer_of
from engine.trace.bpftrace.formats import PrintFormat
from engine.trace.bpftrace.maps import SCALAR
from engine.trace.bpftrace.output import ScriptPlace, TextKind
from engine.trace.bpftrace.string_functions import (
    compare_memory,
    compare_strings,
    concatenated,
    contains_string,
    error_text,
    find_string,
    inet_value,
    mac_value,
    network_bytes,
    signal_text,
    string_length,
)
from engine.trace.bpftrace.type_rules import type_size
from engine.trace.bpftrace.types import (
    VOID,
    Array,
    BufferType,
    Integer,
    Pointer,
    StackType,
    SymbolType,
    TextType,
    Type,
)
from engine.trace.bpftrace.value_names import clock_text
from engine.trace.bpftrace.values import (
    CgroupPathValue,
    StackValue,
    SymbolValue,
    TimestampValue,
    UsernameValue,
)

_NOTHING: Final = "None"
_JIFFY: Final = 4_000_000
"""Nanoseconds of a tick of the clock (CONFIG_HZ=250)."""


def _fixed(code: str) -> Maker:
    """A builtin whose code is always the same."""
    return lambda calls, node: code


# -- output -----------------------------------------------------------------------------------


def _formatted(calls: ActionCalls, node: tree.CallExpression) -> str:
    """The code of the text of a format and its arguments."""
    form = calls.constant(calls.argument(node, 0))
    assert isinstance(form, bytes)
    count = range(1, len(node.arguments))
    kinds = [calls.expressions.type_of(calls.argument(node, number)) for number in count]
    render = PrintFormat.of(form).renderer(kinds, calls.expressions.state.names)
    codes = calls.codes(node, 1)
    values = f"({', '.join(codes)}{',' if len(codes) == 1 else ''})"
    return f"{calls.lines.constant(render, ('format', node))}({values})"


def _text(kind: TextKind) -> Maker:
    def make(calls: ActionCalls, node: tree.CallExpression) -> str:
        write = calls.helper(calls.expressions.state.output.text, "output.text")
        calls.lines.add(f"{write}({kind!r}, {_formatted(calls, node)})")
        return _NOTHING

    return make


def _message(severity: Literal["ERROR", "WARNING"]) -> Maker:
    def make(calls: ActionCalls, node: tree.CallExpression) -> str:
        state = calls.expressions.state
        spans = (node.span, *calls.expressions.script.uses.get(node, ()))
        found = [ScriptPlace(state.text, span) for span in spans]
        places = calls.lines.constant(found, ("places", node))
        tell = calls.helper(state.output.message, "output.message")
        calls.lines.add(f"{tell}({severity!r}, {_formatted(calls, node)}, {places})")
        return _NOTHING

    return make


def _print(calls: ActionCalls, node: tree.CallExpression) -> str:
    state, first = calls.expressions.state, node.arguments[0]
    if isinstance(first, tree.MapName) and calls.expressions.script.types.get(first) is None:
        numbers = calls.codes(node, 1)
        show = calls.helper(state.output.map, "output.map")
        calls.lines.add(f"{show}({', '.join([calls.expressions.map_code(first.name), *numbers])})")
        return _NOTHING
    value = calls.argument(node, 0)
    code, kind = calls.expressions.value(value), calls.expressions.type_of(value)
    show = calls.helper(state.output.value, "output.value")
    calls.lines.add(f"{show}({calls.lines.constant(kind, ('type', kind))}, {code})")
    return _NOTHING


def _time(calls: ActionCalls, node: tree.CallExpression) -> str:
    form = calls.constant(calls.argument(node, 0)) if node.arguments else b"%H:%M:%S\n"
    assert isinstance(form, bytes)
    state = calls.expressions.state

    def tell(nanoseconds: int) -> None:
        seconds = nanoseconds // 1_000_000_000
        state.output.text("time", clock_text(seconds, form, state.names))

    calls.lines.add(f"{calls.helper(tell, ('time', node))}(run.wall() + now)")
    return _NOTHING


def _cat(calls: ActionCalls, node: tree.CallExpression) -> str:
    output = calls.expressions.state.output
    most = calls.expressions.script.config.max_cat_bytes

    def show(data: bytes | None) -> None:
        if data is not None:
            output.text("cat", data[:most])

    shown = calls.helper(show, ("cat", node))
    calls.lines.add(f"{shown}(run.file({_formatted(calls, node)}))")
    return _NOTHING


_MOST_JOINED: Final = 16
"""Strings that `join()` prints (bpftrace's join_argnum)."""


def _join(calls: ActionCalls, node: tree.CallExpression) -> str:
    between = calls.constant(calls.argument(node, 1)) if len(node.arguments) > 1 else b" "
    assert isinstance(between, bytes)
    output, size = calls.expressions.state.output, calls.expressions.script.config.max_strlen

    def show(memory: Callable[[int, int], bytes | None], string: Any, address: int) -> None:
        texts = []
        for number in range(_MOST_JOINED):
            raw = memory(address + 8 * number, 8)
            pointer = int.from_bytes(raw or b"", "little")
            if not pointer:
                break
            texts.append(string(pointer, size))
        output.text("join", between.join(texts))

    calls.expressions.needs_memory = True
    shown = calls.helper(show, ("join", node))
    calls.lines.add(f"{shown}(memory, string, {calls.expressions.value(calls.argument(node, 0))})")
    return _NOTHING


# -- maps -------------------------------------------------------------------------------------


def _map_method(method: str) -> Maker:
    def make(calls: ActionCalls, node: tree.CallExpression) -> str:
        calls.lines.add(f"{calls.expressions.map_code(calls.map_name(node))}.{method}()")
        return _NOTHING

    return make


def _key(calls: ActionCalls, node: tree.CallExpression) -> str:
    if len(node.arguments) < 2:
        return str(SCALAR)
    return calls.expressions.value(calls.argument(node, 1))


def _delete(calls: ActionCalls, node: tree.CallExpression) -> str:
    found = calls.expressions.map_code(calls.map_name(node))
    return calls.lines.temporary(f"{found}.delete({_key(calls, node)})")


def _has_key(calls: ActionCalls, node: tree.CallExpression) -> str:
    return f"{calls.expressions.map_code(calls.map_name(node))}.has({_key(calls, node)})"


def _length(calls: ActionCalls, node: tree.CallExpression) -> str:
    first = node.arguments[0]
    if isinstance(first, tree.MapName):
        return f"len({calls.expressions.map_code(first.name)}.entries)"
    return f"len({calls.expressions.value(calls.argument(node, 0))}.frames)"


def _find(calls: ActionCalls, node: tree.CallExpression) -> str:
    variable = calls.argument(node, 2)
    assert isinstance(variable, tree.ScratchName)
    found = calls.expressions.map_code(calls.map_name(node))
    key = calls.lines.kept(_key(calls, node))
    result = calls.lines.temporary(f"{found}.has({key})")
    with calls.lines.block(f"if {result}:"):
        calls.lines.add(f"{calls.expressions.variable(variable)} = {found}.get({key})")
    return result


# -- the task ---------------------------------------------------------------------------------


def _elapsed(calls: ActionCalls, node: tree.CallExpression) -> str:
    return "(now - run.started)"


def _nanoseconds(calls: ActionCalls, node: tree.CallExpression) -> str:
    mode = (
        node.arguments[0].name
        if node.arguments and isinstance(node.arguments[0], tree.Name)
        else ""
    )
    return "(run.wall() + now)" if mode in {"tai", "sw_tai"} else "now"


def _comm(calls: ActionCalls, node: tree.CallExpression) -> str:
    if node.arguments:
        return f"comm({calls.expressions.value(calls.argument(node, 0))})"
    return "comm(thread)"


def _stack(space: Literal["user", "kernel"]) -> Maker:
    def make(calls: ActionCalls, node: tree.CallExpression) -> str:
        calls.stacks.add(space)
        kind = calls.kind(node)
        assert isinstance(kind, StackType)
        process = "process(thread)" if space == "user" else "0"
        number = calls.number if space == "user" else -1
        if kind.mode == "build_id":
            identified = calls.helper(_identified)
            found = f"stack({space!r}, {kind.limit}), {process}, {number}"
            return f"{identified}({found}, run.build_ids)"
        value = calls.helper(StackValue)
        return f"{value}(stack({space!r}, {kind.limit}), {process}, {number})"

    return make


def _identified(
    frames: tuple[int, ...],
    process: int,
    probe: int,
    build_ids: "Callable[[tuple[int, ...], int], tuple[tuple[bytes, int], ...]]",
) -> StackValue:
    """A stack whose frames are shown by the files that they are in."""
    return StackValue(frames, process, probe, build_ids(frames, process))


def _symbol(space: Literal["user", "kernel"]) -> Maker:
    def make(calls: ActionCalls, node: tree.CallExpression) -> str:
        address = calls.expressions.value(calls.argument(node, 0))
        value = calls.helper(SymbolValue)
        if space == "kernel":
            return f"{value}({address})"
        return f"{value}({address}, process(thread), {calls.number})"

    return make


def _path(calls: ActionCalls, node: tree.CallExpression) -> str:
    calls.expressions.needs_memory = True
    return (
        f"run.path({calls.expressions.value(calls.argument(node, 0))}, {_size(calls.kind(node))})"
    )


def _unwatch(calls: ActionCalls, node: tree.CallExpression) -> str:
    calls.lines.add(f"run.unwatch({calls.expressions.value(calls.argument(node, 0))})")
    return _NOTHING


def _function(calls: ActionCalls, node: tree.CallExpression) -> str:
    kind = calls.kind(node)
    if isinstance(kind, SymbolType):
        value = calls.helper(SymbolValue)
        more = f", process(thread), {calls.number}" if kind.space == "user" else ""
        return f"{value}(w[1]{more})"
    return "run.function(w[1])"


def _register(calls: ActionCalls, node: tree.CallExpression) -> str:
    calls.expressions.needs_memory = True
    name = calls.constant(calls.argument(node, 0))
    assert isinstance(name, bytes)
    return f"run.register({name.decode(errors='replace')!r})"


def _address(calls: ActionCalls, node: tree.CallExpression) -> str:
    name = calls.constant(calls.argument(node, 0))
    assert isinstance(name, bytes)
    target = calls.probe.points[0].target if calls.probe.points else ""
    return f"run.symbol_address({name.decode(errors='replace')!r}, {target!r})"


def _exit(calls: ActionCalls, node: tree.CallExpression) -> str:
    code = calls.expressions.value(calls.argument(node, 0)) if node.arguments else "0"
    calls.lines.add(f"run.exit({code})")
    calls.lines.add("return")
    return _NOTHING


def _assert(calls: ActionCalls, node: tree.CallExpression) -> str:
    condition = calls.expressions.condition(calls.argument(node, 0))
    state = calls.expressions.state
    text = calls.constant(calls.argument(node, 1)) or b""
    assert isinstance(text, bytes)
    places = [ScriptPlace(state.text, node.span)]

    def tell() -> None:
        state.output.message("ERROR", b"assert failed: " + text, places)

    with calls.lines.block(f"if not {condition}:"):
        calls.lines.add(f"{calls.helper(tell, ('assert', node))}()")
        calls.lines.add("run.exit(1)")
        calls.lines.add("return")
    return _NOTHING


def _signal(thread: bool) -> Maker:
    def make(calls: ActionCalls, node: tree.CallExpression) -> str:
        value = calls.argument(node, 0)
        name = calls.constant(value)
        if isinstance(name, bytes):
            number = str(int(signal_number(name.decode(errors="replace")) or 0))
        else:
            number = calls.expressions.value(value)
        calls.expressions.needs_memory = True  # it is sent where the guest stands
        calls.lines.add(f"run.signal({number}, {'thread' if thread else 'process(thread)'})")
        return "0" if calls.kind(node) != VOID else _NOTHING

    return make


def signal_number(name: str) -> int | None:
    """The number of a signal by its name, with or without "SIG"; None if there is none."""
    name = name.upper()
    try:
        return signal.Signals[name if name.startswith("SIG") else f"SIG{name}"].value
    except KeyError:
        return None


# -- text and bytes ---------------------------------------------------------------------------


def _str(calls: ActionCalls, node: tree.CallExpression) -> str:
    """The string at an address: `str(address, room)`.

    A room that is given has a byte for the NUL; else there is one more than `max_strlen`, so that
    a string which was cut fills its type, and is shown with the trailer.
    """
    kind, source = calls.kind(node), calls.argument(node, 0)
    assert isinstance(kind, TextType)
    of, most = calls.expressions.type_of(source), calls.expressions.script.config.max_strlen
    given = calls.argument(node, 1) if len(node.arguments) > 1 else None
    room = None if given is None else calls.constant(given)
    size = kind.size
    if given is not None:
        size = max(room - 1, 0) if isinstance(room, int) and room <= most else most
    if isinstance(of, TextType | BufferType):
        code = f"{calls.expressions.value(source)}[:{size}]"
    elif isinstance(of, Array):
        code = f"{calls.helper(text_of)}({calls.expressions.value(source)})[:{size}]"
    else:
        code = calls.text_at(source, size)
    if given is None or isinstance(room, int):
        return code
    limit = calls.lines.kept(calls.expressions.value(given))
    return f"{code}[:max({limit} - 1, 0) if {limit} <= {most} else {most}]"


def text_of(values: tuple[int, ...]) -> bytes:
    """The string that an array of bytes holds."""
    return bytes([each & 255 for each in values]).split(b"\0", 1)[0]


def _buffer(calls: ActionCalls, node: tree.CallExpression) -> str:
    kind, source = calls.kind(node), calls.argument(node, 0)
    assert isinstance(kind, BufferType)
    of = calls.expressions.type_of(source)
    size = kind.size
    if isinstance(of, TextType):
        return f"{calls.expressions.value(source)}.ljust({size}, b'\\0')[:{size}]"
    if isinstance(of, Array):
        width = type_size(of.element)
        pack = calls.helper(lambda values: packed(values, width), ("packed", width))
        return f"{pack}({calls.expressions.value(source)})[:{size}]"
    limit = calls.argument(node, 1) if len(node.arguments) > 1 else None
    if limit is None or calls.constant(limit) is not None:
        return calls.bytes_at(source, size)
    code = calls.bytes_at(source, size)
    return f"{code}[:max({calls.expressions.value(limit)}, 0)]"


def packed(values: tuple[int, ...], width: int) -> bytes:
    """The bytes of an array of numbers."""
    mask = (1 << 8 * width) - 1
    return b"".join([(each & mask).to_bytes(width, "little") for each in values])


def _helper(function: Callable[..., Any]) -> Maker:
    """A function of values alone."""

    def make(calls: ActionCalls, node: tree.CallExpression) -> str:
        return f"{calls.helper(function)}({', '.join(calls.codes(node))})"

    return make


def _memcmp(calls: ActionCalls, node: tree.CallExpression) -> str:
    size = calls.constant(calls.argument(node, 2))
    codes = []
    for number in (0, 1):
        each = calls.argument(node, number)
        if isinstance(calls.expressions.type_of(each), Pointer) and isinstance(size, int):
            codes.append(calls.bytes_at(each, size))
        else:
            codes.append(f"{calls.helper(flat)}({calls.expressions.value(each)})")
    count = calls.expressions.value(calls.argument(node, 2))
    return f"{calls.helper(compare_memory)}({', '.join(codes)}, {count})"


def flat(value: Any) -> bytes:
    """The bytes of a string, a buffer or an array of bytes."""
    return value if isinstance(value, bytes) else packed(value, 1)


def _capacity(calls: ActionCalls, node: tree.CallExpression) -> str:
    """`strcap()`: the room that a string has."""
    source = calls.argument(node, 0)
    calls.expressions.effect(source)
    return str(_size(calls.expressions.type_of(source)))


def _size(kind: Type) -> int:
    return kind.size if isinstance(kind, TextType) else 1024


def _swapped(calls: ActionCalls, node: tree.CallExpression) -> str:
    kind = integer_of(calls.kind(node))
    swap = calls.helper(lambda value: swapped_bytes(value, kind), ("bswap", kind))
    return f"{swap}({calls.expressions.value(calls.argument(node, 0))})"


def _moment(calls: ActionCalls, node: tree.CallExpression) -> str:
    form, moment = calls.constant(calls.argument(node, 0)), calls.argument(node, 1)
    assert isinstance(form, bytes)
    mode = (
        moment.arguments[0]
        if isinstance(moment, tree.CallExpression) and moment.name == "nsecs" and moment.arguments
        else None
    )
    clock = mode.name if isinstance(mode, tree.Name) else "boot"
    value = calls.helper(TimestampValue)
    name = calls.lines.constant(form)
    return f"{value}({calls.expressions.value(moment)}, {name}, {clock!r})"


def _inet(calls: ActionCalls, node: tree.CallExpression) -> str:
    address = calls.argument(node, len(node.arguments) - 1)
    family = (
        calls.expressions.value(calls.argument(node, 0)) if len(node.arguments) > 1 else "None"
    )
    kind = calls.expressions.type_of(address)
    code = calls.expressions.value(address)
    if isinstance(kind, Pointer):
        code = calls.bytes_at(address, 16)
    elif not isinstance(kind, Integer):
        code = f"{calls.helper(flat)}({code})"
    return f"{calls.helper(inet_value)}({code}, {family})"


def _card(calls: ActionCalls, node: tree.CallExpression) -> str:
    address = calls.argument(node, 0)
    pointed = isinstance(calls.expressions.type_of(address), Pointer)
    if pointed:
        code = calls.bytes_at(address, 6)
    else:
        code = f"{calls.helper(flat)}({calls.expressions.value(address)})"
    return f"{calls.helper(mac_value)}({code})"


def _network(calls: ActionCalls, node: tree.CallExpression) -> str:
    text = calls.constant(calls.argument(node, 0))
    assert isinstance(text, bytes)
    return repr(tuple(network_bytes(text) or b""))


def _username(calls: ActionCalls, node: tree.CallExpression) -> str:
    return f"{calls.helper(UsernameValue)}(run.user(thread))"


def _cgroup_path(calls: ActionCalls, node: tree.CallExpression) -> str:
    return f"{calls.helper(CgroupPathValue)}({', '.join(calls.codes(node))})"


def _failed(calls: ActionCalls, node: tree.CallExpression) -> str:
    """`is_err()`: a pointer that is an error's number."""
    code = calls.lines.kept(calls.expressions.value(calls.argument(node, 0)))
    return f"({code} >= {(1 << 64) - 4095} or -4095 <= {code} < 0)"


def _same(calls: ActionCalls, node: tree.CallExpression) -> str:
    """`uptr()`, `kptr()`: the same address."""
    return calls.expressions.value(calls.argument(node, 0))


FUNCTIONS: Final[dict[str, Maker]] = {
    "assert": _assert,
    "assert_str": _fixed(_NOTHING),
    "bswap": _swapped,
    "buf": _buffer,
    "cat": _cat,
    "cgroup": _fixed("run.cgroup(thread)"),
    "cgroup_path": _cgroup_path,
    "cgroupid": _fixed("run.cgroup(thread)"),
    "clear": _map_method("clear"),
    "comm": _comm,
    "cpid": _fixed("run.main_process()"),
    "cpu": _fixed("0"),
    "curtask": _fixed("run.task()"),
    "delete": _delete,
    "dw_ustack": _stack("user"),
    "elapsed": _elapsed,
    "errorf": _message("ERROR"),
    "exit": _exit,
    "find": _find,
    "func": _function,
    "gid": _fixed("run.group(thread)"),
    "has_cpid": _fixed("True"),
    "has_key": _has_key,
    "is_err": _failed,
    "jiffies": _fixed(f"(now // {_JIFFY})"),
    "join": _join,
    "kaddr": _address,
    "kptr": _same,
    "kstack": _stack("kernel"),
    "kstr": _str,
    "ksym": _symbol("kernel"),
    "leader_comm": _fixed("comm(process(thread))"),
    "leader_tid": _fixed("process(thread)"),
    "len": _length,
    "macaddr": _card,
    "memcmp": _memcmp,
    "ncpus": _fixed("run.processors()"),
    "nsecs": _nanoseconds,
    "ntop": _inet,
    "numaid": _fixed("0"),
    "path": _path,
    "pcomm": _fixed("comm(run.parent(thread))"),
    "pid": _fixed("process(thread)"),
    "ppid": _fixed("run.parent(thread)"),
    "print": _print,
    "printf": _text("printf"),
    "probe": _fixed("probe_name"),
    "pton": _network,
    "rand": _fixed("run.random()"),
    "reg": _register,
    "signal": _signal(thread=False),
    "signal_name": _helper(signal_text),
    "signal_thread": _signal(thread=True),
    "str": _str,
    "str_concat": _helper(concatenated),
    "strcap": _capacity,
    "strcontains": _helper(contains_string),
    "strerror": _helper(error_text),
    "strftime": _moment,
    "strlen": _helper(string_length),
    "strncmp": _helper(compare_strings),
    "strstr": _helper(find_string),
    "syscall_name": lambda calls, node: f"run.syscall_name({', '.join(calls.codes(node))})",
    "tid": _fixed("thread"),
    "time": _time,
    "uaddr": _address,
    "uid": _fixed("run.user(thread)"),
    "unwatch": _unwatch,
    "uptr": _same,
    "username": _username,
    "usermode": _fixed("int(run.user_mode())"),
    "ustack": _stack("user"),
    "ustr": _str,
    "usym": _symbol("user"),
    "warnf": _message("WARNING"),
    "zero": _map_method("zero"),
}
"""Makers of the code of each builtin and function, by its name."""
