"""The structure that bpf takes, by command: `bpf.txt`, and what it cannot say."""

import struct
from collections.abc import Callable
from functools import cache
from typing import Final

from msgspec import Struct

from engine.trace.strace.buffers import array_text, bytes_at, path_at, string_at
from engine.trace.strace.call import Kind, TracedCall, Words, pointer
from engine.trace.strace.names import name_set, table_lines
from engine.trace.strace.quoting import quoted
from engine.trace.strace.scalars import SCALARS, descriptor, hexadecimal

_SIZE_MAX: Final = 4096
_PREFIX: Final = "BPF_"
_NUMA_NODE, _REPLACE = 4, 4
_NO_NODE: Final = (1 << 32) - 1
_NAME_MAX: Final = 128
_PROG_QUERY: Final = 16
_PERF_EVENT, _KPROBE_MULTI, _ITERATOR = 41, 42, 28


class AttributeField(Struct, frozen=True):
    """A field of what a command takes.

    Attributes:
        name: as it is shown.
        offset: of its first byte.
        form: of `struct`.
        kind: how it is shown.
        words: of the kind.
        optional: those from here on are shown where the size reaches this one.
    """

    name: str
    offset: int
    form: str
    kind: str
    words: Words
    optional: bool


class CommandForm(Struct, frozen=True):
    """The form of a command's structure.

    Attributes:
        wrapper: name of the structure that the fields stand in, "" for none.
        fields: all of them.
        size: of what is known of it in bytes.
    """

    wrapper: str
    fields: tuple[AttributeField, ...]
    size: int


class GivenAttribute(Struct, frozen=True):
    """The structure that a call gives.

    Attributes:
        call: the call.
        data: its bytes, with zeros behind them up to the size that is known.
        size: of them as it is given.
        numbers: values of the fields that are numbers, by name.
    """

    call: TracedCall
    data: bytes
    size: int
    numbers: dict[str, int]


@cache
def _forms() -> dict[int, CommandForm]:
    numbers = dict(name_set("bpf_commands").names)
    found = {}
    for line in table_lines("bpf.txt"):
        name, *words = line.split()
        name, _, wrapper = name.partition("/")
        found[numbers[_PREFIX + name]] = _made(wrapper, words)
    return found


def _made(wrapper: str, words: list[str]) -> CommandForm:
    at, fields = 0, []
    for word in words:
        if ":" not in word:
            at += int(word[1:])
            continue
        name, form, kind, *more = word.split(":")
        align = struct.calcsize("<" + form[-1])
        at = -(-at // align) * align
        bare = name.removeprefix("+")
        fields.append(AttributeField(bare, at, form, kind, tuple(more), name != bare))
        at += struct.calcsize("<" + form)
    return CommandForm(wrapper, tuple(fields), at)


def _attribute(call: TracedCall, index: int, words: Words) -> str:
    """The union bpf_attr, by the command that takes it."""
    address, size = call.arguments[index], call.arguments[2] & 0xFFFFFFFF
    form = _forms().get(call.arguments[0] & 0xFFFFFFFF)
    if form is None or not 0 < size <= _SIZE_MAX or call.plain:
        return pointer(address)
    data = call.read(address, size)
    if data is None:
        return pointer(address)
    given = GivenAttribute(call, data + bytes(_SIZE_MAX - size), size, {})
    return f"{{{', '.join(_parts(given, form))}}}"


def _parts(given: GivenAttribute, form: CommandForm) -> list[str]:
    parts, end = _fields(given, form), form.size
    if form.wrapper == "link_create" and given.size > form.size:
        more, end = _link(given)
        parts += more
    if form.wrapper:
        parts = [f"{form.wrapper}={{{', '.join(parts)}}}"]
    extra = given.data[end : given.size]
    if any(extra):
        whole = f"extra_data={quoted(extra, 2)} /* bytes {end}..{given.size - 1} */"
        parts.append(whole if given.call.whole else "...")
    return parts


def _fields(given: GivenAttribute, form: CommandForm) -> list[str]:
    for each in form.fields:
        if not each.form.endswith("s"):
            order = given.call.facts.order
            given.numbers[each.name] = struct.unpack_from(
                order + each.form, given.data, each.offset
            )[0]
    parts = []
    for each in form.fields:
        if each.optional and given.size <= each.offset:
            break
        text = _field(given, each)
        if text is not None:
            parts.append(f"{each.name}={text}")
    return parts


def _field(given: GivenAttribute, each: AttributeField) -> str | None:
    if each.kind == "text":
        room = min(struct.calcsize(each.form), given.size - each.offset)
        text, end, _ = given.data[each.offset : each.offset + room].partition(b"\0")
        if not end:  # its last byte is kept for a NUL
            return quoted(text[: room - 1], given.call.style.hexadecimal) + "..."
        return quoted(text, given.call.style.hexadecimal)
    value = given.numbers[each.name]
    if each.kind == "flags":
        return name_set(each.words[0]).flags(value)
    if each.kind == "enum":
        return name_set(each.words[0]).value(value)
    special = _KINDS.get(each.kind)
    if special is not None:
        return special(given, value, each.words)
    return SCALARS[each.kind](given.call, value, each.words)


def bpf_is_late(call: TracedCall) -> bool:
    """True if a command stores what it is asked for."""
    return call.arguments[0] & 0xFFFFFFFF == _PROG_QUERY


# -- kinds of fields ------------------------------------------------------------------------------


def _node(given: GivenAttribute, value: int, words: Words) -> str | None:
    if not given.numbers["map_flags"] & _NUMA_NODE:
        return None
    return f"{value} /* NUMA_NO_NODE */" if value == _NO_NODE else str(value)


def _old_program(given: GivenAttribute, value: int, words: Words) -> str | None:
    return descriptor(given.call, value) if given.numbers["flags"] & _REPLACE else None


def _version(given: GivenAttribute, value: int, words: Words) -> str:
    return f"KERNEL_VERSION({value >> 16}, {value >> 8 & 0xFF}, {value & 0xFF})"


def _bounded_string(call: TracedCall, address: int, size: int) -> str:
    """Text up to its NUL within a buffer."""
    most = call.style.string_max
    found = call.cstring(address, min(size, most + 1)) if address else None
    if found is None:
        return pointer(address)
    text, ended = found
    more = "..." if size and not ended else ""
    return quoted(text[:most], call.style.hexadecimal) + more


def _ids(given: GivenAttribute, value: int, words: Words) -> str:
    def show(data: bytes) -> str:
        return str(int.from_bytes(data, given.call.facts.byteorder))

    if given.call.failed and given.numbers[words[0]]:
        return pointer(value)
    return array_text(given.call, value, given.numbers[words[0]], 4, show)


def _program(given: GivenAttribute, value: int, words: Words) -> str:
    """The instructions of a program, where structures are shown whole."""
    call = given.call
    if not call.whole:
        return pointer(value)
    order = call.facts.order
    count = given.numbers["insn_cnt"]
    return array_text(call, value, count, 8, lambda data: _instruction(order, data))


def _instruction(order: str, data: bytes) -> str:
    code, registers, offset, operand = struct.unpack(order + "BBhI", data)
    low, high = registers & 0xF, registers >> 4
    if order == ">":
        low, high = high, low
    names = name_set("ebpf_regs")
    return (
        f"{{code={_code(code)}, dst_reg={names.value(low)}, src_reg={names.value(high)}, "
        f"off={offset}, imm={hexadecimal(operand)}}}"
    )


def _code(code: int) -> str:
    """The class of an instruction, and the parts that its class has."""
    kind = code & 7
    text = name_set("ebpf_class").value(kind)
    if kind < 4:
        size = _either("bpf_size", "ebpf_size", code & 0x18)
        return f"{text}|{size}|{name_set('ebpf_mode').value(code & 0xE0)}"
    if kind == 6:
        rest = code & ~7
        return f"{text}|{rest:#x} /* BPF_??? */" if rest else text
    operations = "jmp" if kind == 5 else "alu"
    operation = _either(f"bpf_op_{operations}", f"ebpf_op_{operations}", code & 0xF0)
    return f"{text}|{name_set('bpf_src').value(code & 8)}|{operation}"


def _either(first: str, second: str, value: int) -> str:
    names = name_set(first)
    return (names if value in names.by_number else name_set(second)).value(value)


# -- what a link is made to, by the kind of program -----------------------------------------------


def _link(given: GivenAttribute) -> tuple[list[str], int]:
    """The rest of a link's structure, and the offset at which its known part ends."""
    call, order, kind = given.call, given.call.facts.order, given.numbers["attach_type"]
    if not kind:
        (number,) = struct.unpack_from(order + "I", given.data, 16)
        return ([f"target_btf_id={number}"] if number else []), 20
    if kind == _ITERATOR:
        address, count = struct.unpack_from(order + "QI", given.data, 16)

        def show_map(data: bytes) -> str:
            number = int.from_bytes(data, call.facts.byteorder)
            return f"{{map={{map_fd={descriptor(call, number)}}}}}"

        listed = array_text(call, address, count, 4, show_map)
        return [f"iter_info={listed}", f"iter_info_len={count}"], 28
    if kind == _PERF_EVENT:
        (cookie,) = struct.unpack_from(order + "Q", given.data, 16)
        return [f"perf_event={{bpf_cookie={hexadecimal(cookie)}}}"], 24
    if kind == _KPROBE_MULTI:
        return [f"kprobe_multi={{{_probes(given)}}}"], 48
    return [], 16


def _probes(given: GivenAttribute) -> str:
    call, order = given.call, given.call.facts.byteorder
    flags, count, symbols, addresses, cookies = struct.unpack_from(
        call.facts.order + "IIQQQ", given.data, 16
    )

    def show_symbol(data: bytes) -> str:
        return string_at(call, int.from_bytes(data, order))

    def show_number(data: bytes) -> str:
        return hexadecimal(int.from_bytes(data, order))

    names = name_set("bpf_link_create_kprobe_multi_flags").flags(flags)
    return (
        f"flags={names}, cnt={count}, syms={array_text(call, symbols, count, 8, show_symbol)}, "
        f"addrs={array_text(call, addresses, count, 8, show_number)}, "
        f"cookies={array_text(call, cookies, count, 8, show_number)}"
    )


_KINDS: Final[dict[str, Callable[[GivenAttribute, int, Words], str | None]]] = {
    "node": _node,
    "old": _old_program,
    "version": _version,
    "string": lambda given, value, words: string_at(given.call, value),
    "path": lambda given, value, words: path_at(given.call, value),
    "name": lambda given, value, words: _bounded_string(given.call, value, _NAME_MAX),
    "filled": lambda given, value, words: _bounded_string(
        given.call, value, given.numbers[words[0]]
    ),
    "bytes": lambda given, value, words: bytes_at(given.call, value, given.numbers[words[0]]),
    "ids": _ids,
    "program": _program,
}
"""Kinds of fields that are no plain numbers."""

BPF: Final[dict[str, Kind]] = {"bpf_attr": _attribute}
"""Kinds of arguments of bpf."""
