"""ftrace's text of events that are no probes', and what trace options make of any event."""

import re
import struct
from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

from msgspec import Struct

from engine.arch.program import ROW_HEAD, THREAD_MOST
from engine.errors import CommandError
from engine.trace import sched
from engine.trace.fields import FieldKind, own_fields
from engine.trace.formats.base import Names
from engine.trace.formats.values import frames, kernel_frames
from engine.trace.rows import HEAD, Column, EventInfo, EventSource, Value, decode, string_at, whole

TextMaker: TypeAlias = Callable[[Any, int], bytes]
"""The text behind the time, without a newline."""

PREFIX: Final = b"%16s-%-7d [000] ....."
TIME: Final = b" %12d: "
_MEANT: Final = {
    "fields", "raw", "hex", "bin", "verbose", "latency-format", "sym-addr", "sym-offset",
    "context-info", "irq-info", "stacktrace", "userstacktrace", "record-tgid",
}  # fmt: skip
_WITHOUT_EFFECT: Final = {
    "annotate", "block", "disable_on_free", "event-fork", "func-no-repeats", "function-fork",
    "func_stack_trace", "function-trace", "hash-ptr", "markers", "overwrite", "pause-on-trace",
    "print-parent", "printk-msg-only", "record-cmd", "sym-userobj", "trace_printk",
    "trace_printk_dest", "copy_trace_marker",
}  # fmt: skip

OPTIONS: Final = frozenset(_MEANT | _WITHOUT_EFFECT)
"""Trace options of the text, by their names in tracefs."""

USER_STACK: Final = b"<user stack trace>"
"""The head of the frames that are a program's."""
_STACKS: Final = 1 << 12
"""Texts of call stacks to remember: programs have few that they are in again and again."""
_LATENCY_HEAD: Final = b"""\
# tracer: nop
#
# nop latency trace v1.1.5 on kprobe-tui
# --------------------------------------------------------------------
"""
_LATENCY_TAIL: Final = b"""\
#    -----------------
#    | task: -0 (uid:0 nice:0 policy:0 rt_prio:0)
#    -----------------
#
#                    _------=> CPU#            \n\
#                   / _-----=> irqs-off/BH-disabled
#                  | / _----=> need-resched    \n\
#                  || / _---=> hardirq/softirq \n\
#                  ||| / _--=> preempt-depth   \n\
#                  |||| / _-=> migrate-disable \n\
#                  ||||| /     delay           \n\
#  cmd     pid     |||||| time  |   caller     \n\
#     \\   /        ||||||  \\    |    /       \n"""


class TextOptions(Struct, frozen=True):
    """Trace options that change the text (trace_options of tracefs).

    Attributes:
        fields: arguments as `name=0x2a (42)`.
        verbose: no legend.
        latency: short prefixes.
        sym_addr: addresses behind symbols.
        sym_offset: offsets and sizes in a kernel's call stacks.
        symbols: symbols in call stacks, which a kernel does not have for user space.
        binary: "raw", "hex", "bin" for numbers instead of text, else "".
        tgid: the process's id behind the thread's.
        prefix: template of a thread's name and id, and of its process's with `tgid`.
        time: template of the time.
    """

    fields: bool = False
    verbose: bool = False
    latency: bool = False
    sym_addr: bool = False
    sym_offset: bool = False
    symbols: bool = True
    binary: str = ""
    tgid: bool = False
    prefix: bytes = PREFIX
    time: bytes = TIME

    @classmethod
    def of(cls, names: Collection[str]) -> "TextOptions":
        """From names as tracefs has them; `no` in front turns one off.

        Raises:
            CommandError: there is no such option.
        """
        on = {"irq-info", "context-info"}
        for name in names:
            plain = name.removeprefix("no") if name not in _MEANT else name
            if plain not in _MEANT | _WITHOUT_EFFECT:
                known = ", ".join(sorted(_MEANT))
                raise CommandError(f"--option {name}: there is no such option; there are {known}")
            if plain == name:
                on.add(plain)
            else:
                on.discard(plain)
        latency = "latency-format" in on
        prefix, time = PREFIX, TIME
        if latency:
            prefix, time = b"%8.8s-%-7d   0.....", b" %4d: "
        elif "irq-info" not in on:
            prefix = b"%16s-%-7d [000]"
        tgid = "record-tgid" in on and not latency
        if tgid:
            prefix = prefix.replace(b" [", b" (%7d) [")
        binary = next((kind for kind in ("bin", "hex", "raw") if kind in on), "")
        if "context-info" not in on:
            raise CommandError("--option nocontext-info is not part of this version")
        return cls(
            fields="fields" in on,
            verbose="verbose" in on,
            latency=latency,
            sym_addr="sym-addr" in on,
            sym_offset="sym-offset" in on,
            symbols="nosym-userobj" not in names,
            binary=binary,
            tgid=tgid,
            prefix=prefix,
            time=time,
        )


def latency_header(kept: int | None, written: int | None) -> bytes:
    """The header of the option `latency-format`."""
    shown = kept or 0
    counts = b"# latency: 0 us, #%d/%d, CPU#0 | (M:server VP:0, KP:0, SP:0 HP:0 #P:1)\n" % (
        shown,
        shown if written is None else written,
    )
    return _LATENCY_HEAD + counts + _LATENCY_TAIL


def binary_rows(data: bytes, kind: str) -> bytes:
    """Rows as the options `raw`, `hex` and `bin` print events that have no form of their own."""
    out: list[bytes] = []
    position, end = 0, len(data)
    time = struct.Struct("<8xQ").unpack_from
    while position < end:
        event_id, size, thread = HEAD.unpack_from(data, position)
        if thread > THREAD_MOST:
            event_id, thread = whole(event_id, thread)
        (now,) = time(data, position)
        if kind == "raw":
            out.append(b"%d 0 %d type: %d\n" % (thread, now, event_id))
        elif kind == "hex":
            out.append(b"%08x %08x %016x type: %d\n\n" % (thread, 0, now, event_id))
        else:
            out.append(struct.pack("<IIQ", thread, 0, now) + b"type: %d\n" % event_id)
        position += size * 8
    return b"".join(out)


def text_maker(
    info: EventInfo,
    symbol: Callable[[int], bytes],
    options: TextOptions,
    names: Names,
    stacks: Callable[[], dict[int, bytes]],
) -> TextMaker:
    """The printer of an event's rows.

    Args:
        info: the event.
        symbol: text of an address.
        options: with `fields`, any event; else one that is no probe's.
        names: says how strings are written.
        stacks: texts of call stacks to remember, by their addresses one behind the other; those
            of the program whose rows are printed.
    """
    if info.source is EventSource.STACK:
        return _stack_maker(info, symbol, options, stacks)
    if options.fields:
        return _fields_maker(info, names)
    if info.source is EventSource.KERNEL:
        return _kernel_maker(info, symbol, names)
    if info.source is EventSource.SCHED:
        return _sched_maker(info, names)
    if info.source is EventSource.SYNTHETIC:
        return _synthetic_maker(info, names)
    if names.decodes:
        return _decoded_maker(info, names)
    if info.source is EventSource.SYSCALL_EXIT:
        return _exit_maker(info)
    return _enter_maker(info, names)


def hexadecimal(address: int) -> bytes:
    """The text of an address without a symbol."""
    return b"%#x" % address


def _stack_maker(
    info: EventInfo,
    symbol: Callable[[int], bytes],
    options: TextOptions,
    stacks: Callable[[], dict[int, bytes]],
) -> TextMaker:
    user_symbol, offset = symbol if options.symbols else hexadecimal, options.sym_offset

    def stack(data: Any, position: int) -> bytes:
        words = HEAD.unpack_from(data, position)[1]
        raw = data[position + ROW_HEAD * 8 : position + words * 8]
        kernel = kernel_frames(info, data, position)
        key, known = int.from_bytes(raw + b"\1", "little"), stacks()
        text = known.get(key)
        if text is None:
            addresses = frames(info, data, position)
            lines = [b" => " + _kernel_symbol(symbol(at), offset) for at in addresses[:kernel]]
            if lines:
                lines.insert(0, b"<stack trace>")
            if len(addresses) > kernel or not kernel:
                lines.append(USER_STACK)
                lines += [_frame(at, user_symbol(at)) for at in addresses[kernel:]]
            text = b"\n".join(lines)
            if len(known) >= _STACKS:
                known.clear()
            known[key] = text
        return text

    return stack


def _kernel_symbol(symbol: bytes, offset: bool) -> bytes:
    """As the kernel prints a frame of its own (trace_stack_print, seq_print_ip_sym)."""
    name, _, behind = symbol.partition(b"+0x")
    if offset:
        return symbol
    _, space, address = behind.partition(b" <")  # of the option sym-addr
    return name + space + address


def _frame(address: int, symbol: bytes) -> bytes:
    """As the kernel prints a frame of user space, with the symbol it does not have."""
    known = b"" if symbol == hexadecimal(address) else symbol
    return b" => %s <%016x>" % (known, address)


def _fields_maker(info: EventInfo, names: Names) -> TextMaker:
    """print_fields of kernel/trace/trace_output.c."""
    name = info.name.encode(errors="surrogateescape")
    fields = own_fields(info)

    def text(data: Any, position: int) -> bytes:
        parts = [name + b":"]
        for field in fields:
            at = position + field.row
            if field.column is not None and field.column.type.count:
                parts.append(b"%s=<INVALID-SIZE>" % field.name.encode())
                continue
            if field.kind is FieldKind.STRING:
                value = string_at(data, position, struct.unpack_from("<Q", data, at)[0])
                shown = b"(fault)" if value is None else names.shown(value)
            else:
                raw = bytes(data[at : at + field.size])
                number = int.from_bytes(raw, "little")
                signed = int.from_bytes(raw, "little", signed=True)
                if field.size == 1:
                    char = b"'%c' " % number if 0x20 <= number < 0x7F else b""
                    shown = b"%s(%d)" % (char, number)
                else:
                    shown = b"%#x (%d)" % (number, signed)
            parts.append(b"%s=%s" % (field.name.encode(errors="surrogateescape"), shown))
        return b" ".join(parts)

    return text


def _decoded_maker(info: EventInfo, names: Names) -> TextMaker:
    """A system call in strace's words, as far as the row has them."""
    from engine.trace.strace.rowtext import enter_text, exit_text  # few traces have calls

    if info.source is EventSource.SYSCALL_EXIT:
        return exit_text(info, names.arch)
    return enter_text(info, names.arch) or _enter_maker(info, names)


def _call(info: EventInfo) -> bytes:
    return b"sys_" + info.name.split("_", 2)[2].encode()


def _exit_maker(info: EventInfo) -> TextMaker:
    call, result = _call(info), struct.Struct("<Q").unpack_from
    at = info.columns[1].word * 8
    return lambda data, position: b"%s -> 0x%x" % (call, result(data, position + at)[0])


def _enter_maker(info: EventInfo, names: Names) -> TextMaker:
    """print_syscall_enter of kernel/trace/trace_syscalls.c, since it shows strings."""
    call, plain = _call(info), info.record is not None  # without strings it has another text
    numbers = [column for column in info.columns[1:] if not column.type.is_string]
    strings = {column.name: column for column in info.columns if column.type.is_string}
    unpack = struct.Struct(f"<{len(numbers)}Q").unpack_from
    first = numbers[0].word * 8 if numbers else 0
    parts = [(column.name.encode(), strings.get(f"__{column.name}_val")) for column in numbers]
    indexes = {column.name: index for index, column in enumerate(numbers)}

    def text(data: Any, position: int) -> bytes:
        values = unpack(data, position + first) if numbers else ()
        shown = []
        for (name, string), value in zip(parts, values, strict=True):
            one = b"%s: %d" % (name, value) if value < 10 else b"%s: 0x%x" % (name, value)
            if plain:
                one = b"%s: %x" % (name, value)
            if string is not None:
                word = struct.unpack_from("<Q", data, position + string.word * 8)[0]
                found = string_at(data, position, word)
                if found is None:
                    one += b' ""'
                elif string.ctype == "string":
                    one += b" " + names.quoted(found)
                else:
                    one += _bytes(found, values[indexes["count"]])
            shown.append(one)
        return b"%s(%s)" % (call, b", ".join(shown))

    return text


def _kernel_maker(info: EventInfo, symbol: Callable[[int], bytes], names: Names) -> TextMaker:
    """An event of a kernel that is the guest, by its `print fmt`.

    What only the kernel could make a text of is shown by its fields (print_fields).
    """
    from engine.trace.printfmt.text import print_text  # few traces are of kernels
    from engine.trace.printfmt.tokens import UnprintableError

    assert info.record is not None, "a kernel's own event has a record there"
    try:
        make = print_text(info.record.expression, info.columns)
    except UnprintableError:
        return _fields_maker(info, names)
    table, head = {info.id: info}, info.name.encode(errors="surrogateescape") + b": "
    fields = [column.name for column in info.columns]

    def text(data: Any, position: int) -> bytes:
        found = decode(table, data, position).values
        return head + names.shown(make(dict(zip(fields, found, strict=True)), symbol))

    return text


def _sched_maker(info: EventInfo, names: Names) -> TextMaker:
    event, table = sched.BY_NAME[info.name], {info.id: info}
    pieces = re.split(r"\{(\w+)(?::(\w+))?\}", event.text)
    columns = [column.name for column in info.columns]

    def text(data: Any, position: int) -> bytes:
        found = decode(table, data, position).values
        values = dict(zip(columns, found, strict=True))
        out = [info.name.encode(), b": ", pieces[0].encode()]
        for name, form, rest in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            out += (_sched_value(name, values[name], form or "", names), rest.encode())
        return b"".join(out)

    return text


def _sched_value(name: str, value: Value, form: str, names: Names) -> bytes:
    if isinstance(value, bytes):
        return names.shown(value)
    if not isinstance(value, int):
        return b"(fault)"
    if name == "prev_state":
        return sched.state_text(value).encode()
    if name == "group_dead":
        return b"true" if value else b"false"
    return format(value, form).encode()


def _synthetic_maker(info: EventInfo, names: Names) -> TextMaker:
    """print_synth_event of kernel/trace/trace_events_synth.c."""
    table = {info.id: info}

    def text(data: Any, position: int) -> bytes:
        found = decode(table, data, position).values
        out = [info.name.encode(), b": "]
        for at, (column, value) in enumerate(zip(info.columns, found, strict=True)):
            if at and "long[" not in info.columns[at - 1].ctype:  # a stack ends a line
                out.append(b" ")
            out += (column.name.encode(), b"=", _synthetic_value(column, value, names))
        return b"".join(out)

    return text


def _synthetic_value(column: Column, value: Value, names: Names) -> bytes:
    if isinstance(value, bytes):
        if "long[" in column.ctype:  # its lines are ours
            return b"\n".join(map(names.shown, value.split(b"\n")))
        return names.shown(value)
    if not isinstance(value, int):
        return b"(fault)"
    if column.ctype == "gfp_t":
        return b"%x" % value
    if column.type.size < 4:  # as they are, without a sign
        return b"%d" % (value & (1 << 8 * column.type.size) - 1)
    return b"%d" % value


def _bytes(found: bytes, size: int) -> bytes:
    """A buffer: all in hex, and as text if any of it is."""
    more = b", ..." if len(found) < size else b""
    out = b" (%s%s)" % (found.hex(":").encode(), more)
    if any(0x20 <= byte < 0x7F for byte in found):
        text = bytes(byte if 0x20 <= byte < 0x7F else 0x2E for byte in found)
        out += b' "%s"' % text + (b"..." if more else b"")
    return out
