"""Structures by `structs.txt`, and what it cannot say: stat, statx, timex, times of files."""

import struct
from collections.abc import Callable
from functools import cache
from typing import Final

from msgspec import Struct

from engine.trace.strace.call import Kind, TracedCall, Words, pointer
from engine.trace.strace.names import name_set, table_lines
from engine.trace.strace.quoting import quoted
from engine.trace.strace.scalars import (
    SCALARS,
    device_number,
    file_mode,
    hexadecimal,
    scheduler,
)

_UTIME_NOW: Final = (1 << 30) - 1
_UTIME_OMIT: Final = (1 << 30) - 2
_BYTE_KINDS: Final[dict[str, Callable[[bytes], str | None]]] = {
    "mac": lambda data: data.hex(":"),
    "bytes": lambda data: quoted(data, 2),
    "rest": lambda data: quoted(data, 2) if any(data) else None,
}
"""Fields of bytes: a hardware address, any, and those that a structure has no use for."""


class FieldForm(Struct, frozen=True):
    """A field of a structure.

    Attributes:
        name: as it is shown.
        offset: of its first byte.
        form: of `struct`.
        kind: of `SCALARS`, or one of text, mac, bytes, rest, fsid, hidden.
        words: of the kind.
        nested: the structure within, if it is one.
    """

    name: str
    offset: int
    form: str
    kind: str
    words: Words
    nested: "StructForm | None" = None


class StructForm(Struct, frozen=True):
    """A structure.

    Attributes:
        size: of it in bytes.
        fields: all of them.
        shown: how many are shown where it is not shown whole.
    """

    size: int
    fields: tuple[FieldForm, ...]
    shown: int


@cache
def struct_form(name: str) -> StructForm:
    """The structure of a name; KeyError if there is none."""
    return _made(_lines()[name])


@cache
def _lines() -> dict[str, list[str]]:
    found = {}
    for line in table_lines("structs.txt"):
        name, *words = line.split()
        found[name] = words
    return found


def _made(words: list[str]) -> StructForm:
    at, largest, shown = 0, 1, -1
    fields: list[FieldForm] = []
    for word in words:
        if word == "...":
            shown = len(fields)
            continue
        name, _, rest = word.partition(":")
        if not rest:
            at += int(name[1:])
            continue
        form, _, kind = rest.partition(":")
        nested = None
        if form.startswith("="):
            nested = struct_form(form[1:])
            size, align = nested.size, 8
        else:
            size = struct.calcsize("<" + form)
            align = struct.calcsize("<" + form[-1])
        at = -(-at // align) * align
        kind, *more = kind.split(":")
        fields.append(FieldForm(name, at, form, kind, tuple(more), nested))
        at += size
        largest = max(largest, align)
    return StructForm(-(-at // largest) * largest, tuple(fields), shown)


def struct_text(call: TracedCall, data: bytes, form: StructForm) -> str:
    """A structure's fields in braces."""
    shown = form.fields if form.shown < 0 or call.whole else form.fields[: form.shown]
    parts = []
    for each in shown:
        text = _field_text(call, data[each.offset :], each)
        if text is not None:
            parts.append(text if each.name == "_" else f"{each.name}={text}")
    if len(shown) < len(form.fields):
        parts.append("...")
    if form.fields[0].name == "_":
        return f"[{', '.join(parts)}]"
    return f"{{{', '.join(parts)}}}"


def _field_text(call: TracedCall, data: bytes, each: FieldForm) -> str | None:
    if each.nested is not None:
        return struct_text(call, data, each.nested)
    values = struct.unpack_from(call.facts.order + each.form, data)
    if each.kind == "text":
        return quoted(values[0].partition(b"\0")[0], call.style.hexadecimal)
    if each.kind == "fsid":
        return f"{{val=[{', '.join(map(hexadecimal, values))}]}}"
    if each.kind in _BYTE_KINDS:
        return _BYTE_KINDS[each.kind](values[0])
    if each.kind == "hidden":
        return None
    show = SCALARS[each.kind]
    texts = [show(call, value, each.words) for value in values]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def struct_at(call: TracedCall, address: int, name: str, *, out: bool = True) -> str:
    """The structure at an address; the address where it cannot be read.

    Args:
        call: whose argument it is.
        address: of the structure.
        name: of it.
        out: the call stores it, where it succeeds.
    """
    form = struct_form(name)
    invalid = (out and call.failed) or call.plain
    data = None if invalid else call.read(address, form.size)
    return pointer(address) if data is None else struct_text(call, data, form)


def _struct(call: TracedCall, index: int, words: Words) -> str:
    return struct_at(call, call.arguments[index], words[0], out=False)


def _out_struct(call: TracedCall, index: int, words: Words) -> str:
    return struct_at(call, call.arguments[index], words[0])


def _time_text(call: TracedCall, data: bytes, kind: str) -> str:
    if kind == "timespec":
        nanoseconds = int.from_bytes(data[8:16], "little")
        if nanoseconds == _UTIME_NOW:
            return "UTIME_NOW"
        if nanoseconds == _UTIME_OMIT:
            return "UTIME_OMIT"
    return struct_text(call, data, struct_form(kind))


def _time_pair(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    data = call.read(address, 32)
    if data is None:
        return pointer(address)
    first, second = (_time_text(call, data[at : at + 16], words[0]) for at in (0, 16))
    first, second = (_dated(text) for text in (first, second))
    return f"[{first}, {second}]"


def _file_times(call: TracedCall, index: int, words: Words) -> str:
    """The struct utimbuf of utime."""
    address = call.arguments[index]
    data = call.read(address, 16)
    if data is None:
        return pointer(address)
    first, second = struct.unpack(call.facts.order + "qq", data)
    return (
        f"{{actime={first}{date_comment(first, 0, 9)}, "
        f"modtime={second}{date_comment(second, 0, 9)}}}"
    )


def _dated(text: str) -> str:
    """A time with its date as a comment."""
    if not text.startswith("{tv_sec="):
        return text
    head, _, tail = text[8:-1].partition(", ")
    seconds, fraction = int(head), int(tail.partition("=")[2])
    return text + date_comment(seconds, fraction, 9 if "nsec" in tail else 6)


def date_comment(seconds: int, fraction: int, digits: int) -> str:
    """The date of a time, as a comment; "" for one that has none."""
    import time

    if not seconds and not fraction:
        return ""
    try:
        local = time.localtime(seconds)
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", local)
        zone = time.strftime("%z", local)
    except (OverflowError, ValueError, OSError):
        return ""
    part = f".{fraction:0{digits}d}" if fraction else ""
    return f" /* {whole}{part}{zone} */"


def stat_at(call: TracedCall, address: int) -> str:
    """Struct stat of the architecture."""
    stat = call.facts.linux.stat_layout
    layout = call.facts.order + stat.form
    data = None if call.failed else call.read(address, struct.calcsize(layout))
    if data is None:
        return pointer(address)
    values = list(struct.unpack(layout, data))
    found: dict[str, int] = {}
    times: dict[str, tuple[int, int]] = {}
    for name in stat.fields:
        if name.endswith("time"):
            times[name] = (values.pop(0), values.pop(0))
        else:
            found[name] = values.pop(0)
    kind = found["mode"] & 0o170000
    is_device = kind in (0o020000, 0o060000)
    end = f"st_rdev={device_number(found['rdev'])}" if is_device else f"st_size={found['size']}"
    if not call.whole:
        return f"{{st_mode={file_mode(call, found['mode'])}, {end}, ...}}"
    parts = [
        f"st_dev={device_number(found['dev'])}",
        f"st_ino={found['ino']}",
        f"st_mode={file_mode(call, found['mode'])}",
        f"st_nlink={found['nlink']}",
        f"st_uid={found['uid']}",
        f"st_gid={found['gid']}",
        f"st_blksize={found['blksize']}",
        f"st_blocks={found['blocks']}",
        end,
    ]
    for name in ("atime", "mtime", "ctime"):
        seconds, fraction = times[name]
        parts.append(f"st_{name}={seconds}{date_comment(seconds, fraction, 9)}")
        parts.append(f"st_{name}_nsec={fraction}")
    return f"{{{', '.join(parts)}}}"


def _stat(call: TracedCall, index: int, words: Words) -> str:
    return stat_at(call, call.arguments[index])


def _statx_flags(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    first = name_set("at_statx_sync_types").value(value & 0x6000)
    rest = value & ~0x6000
    return f"{first}|{name_set('at_flags').flags(rest)}" if rest else first


def _statx(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    data = None if call.failed else call.read(address, 256)
    if data is None:
        return pointer(address)
    order = call.facts.order
    mask, blksize, attributes, nlink, uid, gid, file_type, ino, size, blocks, known = (
        struct.unpack_from(order + "IIQIIIHxxQQQQ", data)
    )
    whole = call.whole
    parts = [f"stx_mask={name_set('statx_masks').flags(mask)}"]
    if whole:
        parts.append(f"stx_blksize={blksize}")
    parts.append(f"stx_attributes={name_set('statx_attrs').flags(attributes)}")
    if whole:
        parts += [
            f"{name}={value}"
            for name, value, bit in (
                ("stx_nlink", nlink, 4),
                ("stx_uid", uid, 8),
                ("stx_gid", gid, 16),
            )
            if mask & bit
        ]
    if mask & 3:
        parts.append(f"stx_mode={file_mode(call, file_type)}")
    if whole and mask & 0x100:
        parts.append(f"stx_ino={ino}")
    if mask & 0x200:
        parts.append(f"stx_size={size}")
    if not whole:
        return f"{{{', '.join(parts)}, ...}}"
    if mask & 0x400:
        parts.append(f"stx_blocks={blocks}")
    parts.append(f"stx_attributes_mask={name_set('statx_attrs').flags(known)}")
    for at, (name, bit) in enumerate(
        (("atime", 0x20), ("btime", 0x800), ("ctime", 0x80), ("mtime", 0x40))
    ):
        if mask & bit:
            seconds, fraction = struct.unpack_from(order + "qI", data, 64 + 16 * at)
            parts.append(
                f"stx_{name}={{tv_sec={seconds}, tv_nsec={fraction}}}"
                f"{date_comment(seconds, fraction, 9)}"
            )
    numbers = struct.unpack_from(order + "IIIIQII", data, 128)
    names = ("stx_rdev_major", "stx_rdev_minor", "stx_dev_major", "stx_dev_minor")
    parts += [f"{name}={value}" for name, value in zip(names, numbers, strict=False)]
    if mask & 0x1000:
        parts.append(f"stx_mnt_id={hexadecimal(numbers[4])}")
    if mask & 0x2000:
        parts.append(f"stx_dio_mem_align={numbers[5]}, stx_dio_offset_align={numbers[6]}")
    return f"{{{', '.join(parts)}}}"


_TIMEX: Final = (
    ("modes", "I", 0), ("offset", "q", 8), ("freq", "q", 16), ("maxerror", "q", 24),
    ("esterror", "q", 32), ("status", "i", 40), ("constant", "q", 48), ("precision", "q", 56),
    ("tolerance", "q", 64), ("time", "qq", 72), ("tick", "q", 88), ("ppsfreq", "q", 96),
    ("jitter", "q", 104), ("shift", "i", 112), ("stabil", "q", 120), ("jitcnt", "q", 128),
    ("calcnt", "q", 136), ("errcnt", "q", 144), ("stbcnt", "q", 152), ("tai", "i", 160),
)  # fmt: skip
_TIMEX_SIZE: Final = 208


def _timex(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    data = None if call.failed else call.read(address, _TIMEX_SIZE)
    if data is None:
        return pointer(address)
    parts = []
    for name, form, at in _TIMEX:
        values = struct.unpack_from(call.facts.order + form, data, at)
        text = str(values[0])
        if name == "modes":
            text = name_set("adjtimex_modes").flags(values[0])
        elif name == "status":
            text = name_set("adjtimex_status").flags(values[0] & 0xFFFFFFFF)
        elif name == "time":
            text = f"{{tv_sec={values[0]}, tv_usec={values[1]}}}"
        parts.append(f"{name}={text}")
    return f"{{{', '.join(parts)}}}"


def _rusage(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if words and (call.result or 0) <= 0:
        return pointer(address)
    return struct_at(call, address, "rusage")


def _remaining(call: TracedCall, index: int, words: Words) -> str:
    """The time that was left to sleep, which an interrupted call tells."""
    address = call.arguments[index]
    if call.name == "clock_nanosleep" and call.arguments[1] & 1:
        return pointer(address)
    if call.saved.get("interrupted"):
        data = call.read(address, 16)
        return (
            pointer(address) if data is None else struct_text(call, data, struct_form("timespec"))
        )
    return pointer(address)


def _schedule_attributes(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    is_set = call.name == "sched_setattr"
    size = call.number(address, 4) if is_set else call.arguments[2] & 0xFFFFFFFF
    data = None if call.failed and not is_set else call.read(address, min(max(size or 0, 48), 56))
    if data is None:
        return pointer(address)
    order = call.facts.order
    length, policy, flags, nice, priority, runtime, deadline, period = struct.unpack_from(
        order + "IIQiIQQQ", data
    )
    parts = [
        f"size={length}",
        f"sched_policy={scheduler(call, policy)}",
        f"sched_flags={name_set('sched_flags').flags(flags)}",
        f"sched_nice={nice}",
        f"sched_priority={priority}",
        f"sched_runtime={runtime}",
        f"sched_deadline={deadline}",
        f"sched_period={period}",
    ]
    if length >= 56 and len(data) >= 56:
        low, high = struct.unpack_from(order + "II", data, 48)
        parts.append(f"sched_util_min={low}, sched_util_max={high}")
    return f"{{{', '.join(parts)}}}"


def _reference(call: TracedCall, index: int, words: Words) -> str:
    """The number that a pointer leads to, in brackets."""
    address = call.arguments[index]
    kind = words[0]
    size = 4 if kind.endswith("4") else 8
    kind = kind.rstrip("48")
    value = None if call.failed else call.number(address, size, signed=kind in ("d", "ld"))
    if value is None:
        return pointer(address)
    if kind == "mempolicy":
        return f"[{name_set('mpol_modes').value(value & 0xFFFF)}]"
    return f"[{SCALARS[kind](call, value, ())}]"


STRUCTURES: Final[dict[str, Kind]] = {
    "struct": _struct,
    "outstruct": _out_struct,
    "timepair": _time_pair,
    "utimbuf": _file_times,
    "stat": _stat,
    "statx": _statx,
    "statx_flags": _statx_flags,
    "timex": _timex,
    "rusage": _rusage,
    "remaining": _remaining,
    "sched_attr": _schedule_attributes,
    "ref": _reference,
}
"""Kinds of arguments that point to structures."""
