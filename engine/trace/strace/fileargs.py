"""Arguments of calls about files, memory and what is waited for: modes, fcntl, poll, select."""

import struct
from typing import Final

from engine.trace.strace.buffers import array_text, path_at, string_at
from engine.trace.strace.call import Kind, TracedCall, Words, pointer, signed
from engine.trace.strace.names import name_set, signal_name
from engine.trace.strace.scalars import (
    device_number,
    hexadecimal,
    octal,
    open_names,
    opened_flags,
)
from engine.trace.strace.structures import struct_at, struct_form, struct_text

_O_CREAT: Final = 0o100
_MAP_TYPE: Final = 0xF
_FIXED_OR_KEPT: Final = 6
_FDS: Final = 1 << 10
_F: Final = dict(
    (
        *(("DUPFD", 0), ("GETFD", 1), ("SETFD", 2), ("GETFL", 3), ("SETFL", 4), ("GETLK", 5)),
        *(("SETLK", 6), ("SETLKW", 7), ("SETOWN", 8), ("GETOWN", 9), ("SETSIG", 10)),
        *(("GETSIG", 11), ("SETOWN_EX", 15), ("GETOWN_EX", 16), ("OFD_GETLK", 36)),
        *(("OFD_SETLK", 37), ("OFD_SETLKW", 38), ("SETLEASE", 1024), ("GETLEASE", 1025)),
        *(("NOTIFY", 1026), ("DUPFD_CLOEXEC", 1030), ("SETPIPE_SZ", 1031)),
        *(("GETPIPE_SZ", 1032), ("ADD_SEALS", 1033), ("GET_SEALS", 1034)),
    )
)
_NONE: Final = frozenset(
    _F[name]
    for name in ("GETFD", "GETFL", "GETOWN", "GETSIG", "GETLEASE", "GETPIPE_SZ", "GET_SEALS")
)


def _open_mode(call: TracedCall, index: int, words: Words) -> str | None:
    """The mode of a file that open may make."""
    flags = call.arguments[int(words[0])]
    temporary = dict(open_names(call).names)["O_TMPFILE"]
    if flags & _O_CREAT or flags & temporary == temporary:
        return octal(call.arguments[index] & 0xFFFF)
    return None


def _open_how(call: TracedCall, index: int, words: Words) -> str:
    address, size = call.arguments[index], call.arguments[3]
    data = call.read(address, 24) if size >= 24 else None
    if data is None:
        return pointer(address)
    flags, mode, resolve = struct.unpack(call.facts.order + "QQQ", data)
    parts = [f"flags={opened_flags(call, flags)}"]
    temporary = dict(open_names(call).names)["O_TMPFILE"]
    if mode or flags & _O_CREAT or flags & temporary == temporary:
        parts.append(f"mode={octal(mode)}")
    parts.append(f"resolve={name_set('open_resolve_flags').flags(resolve)}")
    return f"{{{', '.join(parts)}}}"


def _device(call: TracedCall, index: int, words: Words) -> str | None:
    """The device of mknod, of files that are devices."""
    kind = call.arguments[int(words[0])] & 0o170000
    if kind not in (0o020000, 0o060000):
        return None
    return device_number(call.arguments[index] & 0xFFFFFFFF)


def _map_flags(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    names = name_set("mmap_flags")
    first = names.by_number.get(value & _MAP_TYPE)
    rest = value & ~_MAP_TYPE
    if first is None:
        return names.flags(value)
    pages = rest >> 26 & 0x3F
    huge = bool(rest & 0x40000) and pages
    if huge:
        rest &= ~(0x3F << 26)
    text = first
    if rest:
        more = name_set("mmap_flags").flags(rest)
        text = f"{first}|{more.partition(' ')[0]}"
    return f"{text}|{pages}<<MAP_HUGE_SHIFT" if huge else text


def _mremap_target(call: TracedCall, index: int, words: Words) -> str | None:
    return pointer(call.arguments[index]) if call.arguments[3] & _FIXED_OR_KEPT else None


def note_offset(call: TracedCall, index: int) -> None:
    """Note the offset that sendfile begins at."""
    call.saved["offset"] = call.number(call.arguments[index], signed=True)


def _send_offset(call: TracedCall, index: int, words: Words) -> str:
    """The offset of sendfile, which a call that succeeds changes."""
    address = call.arguments[index]
    value = call.number(address, signed=True)
    before = call.saved.get("offset")
    if before is None:
        return pointer(address)
    if call.failed or not call.result or value is None or value == before:
        return f"[{before}]"
    return f"[{before}] => [{value}]"


def _fcntl(call: TracedCall, index: int, words: Words) -> str | None:
    command, value = call.arguments[1] & 0xFFFFFFFF, call.arguments[index]
    if command in _NONE:
        return None
    if command in (_F["DUPFD"], _F["DUPFD_CLOEXEC"], _F["SETPIPE_SZ"], _F["SETOWN"]):
        return str(signed(value, 32))
    if command == _F["SETFD"]:
        return name_set("fdflags").flags(value & 0xFFFFFFFF)
    if command == _F["SETFL"]:
        return opened_flags(call, value)
    if command in (_F["SETLK"], _F["SETLKW"], _F["OFD_SETLK"], _F["OFD_SETLKW"]):
        return struct_at(call, value, "flock", out=False)
    if command in (_F["GETLK"], _F["OFD_GETLK"]):
        return struct_at(call, value, "flock_found")
    if command in (_F["GETOWN_EX"], _F["SETOWN_EX"]):
        return struct_at(call, value, "f_owner_ex")
    if command == _F["SETSIG"]:
        return signal_name(signed(value, 32))
    for name, names in (("NOTIFY", "notifyflags"), ("ADD_SEALS", "f_seals")):
        if command == _F[name]:
            return name_set(names).flags(value & 0xFFFFFFFF)
    if command == _F["SETLEASE"]:
        return name_set("lockfcmds").value(value)
    return hexadecimal(value)


def fcntl_is_late(call: TracedCall) -> bool:
    """True if fcntl stores what it is asked for."""
    late = (_F["GETLK"], _F["OFD_GETLK"], _F["GETOWN_EX"])
    return call.arguments[1] & 0xFFFFFFFF in late


def fcntl_result(call: TracedCall, result: int) -> str:
    """The result of fcntl, by its command."""
    command = call.arguments[1] & 0xFFFFFFFF
    if command in (_F["DUPFD"], _F["DUPFD_CLOEXEC"]):
        return call_descriptor(call, result)
    if command == _F["GETFL"]:
        call.comment = f"flags {opened_flags(call, result)}"
        return f"{result:#x}"
    if command == _F["GETLEASE"]:
        call.comment = name_set("lockfcmds").value(result)
        return hexadecimal(result)
    if not result:
        return "0"
    if command == _F["GETFD"]:
        call.comment = f"flags {name_set('fdflags').flags(result)}"
        return f"{result:#x}"
    if command == _F["GET_SEALS"]:
        call.comment = f"seals {name_set('f_seals').flags(result)}"
        return f"{result:#x}"
    if command == _F["GETSIG"]:
        call.comment = signal_name(result)
    return str(result)


def call_descriptor(call: TracedCall, result: int) -> str:
    """A descriptor that a call gives, with its file where that is asked for."""
    path = call.path_of(result) if call.style.paths else ""
    return f"{result}<{path}>" if path else str(result)


def _poll_list(call: TracedCall, index: int, words: Words) -> str:
    count = call.arguments[int(words[0])] & 0xFFFFFFFF
    events = name_set("pollflags")
    order = call.facts.order

    def show(data: bytes) -> str:
        fd, wanted, _ = struct.unpack(order + "iHH", data)
        if fd < 0:
            return f"{{fd={fd}}}"
        return f"{{fd={call_descriptor(call, fd)}, events={events.flags(wanted)}}}"

    return array_text(call, call.arguments[index], count, 8, show)


def poll_result(call: TracedCall, result: int) -> str:
    """The comment of poll: descriptors that something has happened to."""
    if not result:
        call.comment = "Timeout"
        return "0"
    if call.plain:
        return str(result)
    count = call.arguments[1] & 0xFFFFFFFF
    found: list[str] = []
    events = name_set("pollflags")
    for index in range(call.count(count)):
        data = call.read(call.arguments[0] + 8 * index, 8)
        if data is None:
            break
        fd, _, came = struct.unpack(call.facts.order + "iHH", data)
        if not came:
            continue
        if len(found) >= call.style.string_max and not call.whole:
            found.append("...")
            break
        found.append(f"{{fd={call_descriptor(call, fd)}, revents={events.flags(came)}}}")
    left = ""
    if call.name == "ppoll" and (call.arguments[2] or 0):
        text = struct_at(call, call.arguments[2], "timespec")
        left = f", left {text}" if text.startswith("{") else ""
    call.comment = f"[{', '.join(found)}]{left}"
    return str(result)


def _descriptor_set(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    limit = min(max(signed(call.arguments[0], 32), 0), _FDS)
    data = call.read(address, -(-limit // 64) * 8)
    if data is None or not address:
        return pointer(address)
    return f"[{' '.join(_members(call, data, limit))}]"


def _members(call: TracedCall, data: bytes, limit: int) -> list[str]:
    mask = int.from_bytes(data, "little")
    return [call_descriptor(call, fd) for fd in range(limit) if mask >> fd & 1]


def select_result(call: TracedCall, result: int) -> str:
    """The comment of select: what is ready, and the time that is left."""
    parts = []
    limit = min(max(signed(call.arguments[0], 32), 0), _FDS)
    ready = result
    for index, word in ((1, "in"), (2, "out"), (3, "except")):
        address = call.arguments[index]
        data = call.peek(address, -(-limit // 64) * 8) if address and ready else None
        if data is None:
            continue
        members = _members(call, data, limit)
        ready -= len(members)
        if members:
            parts.append(f"{word} [{' '.join(members)}]")
    if not result:
        call.comment = "Timeout"
        return "0"
    address = call.arguments[4]
    name = "timeval" if call.name == "select" else "timespec"
    data = call.read(address, 16) if address else None
    if data is not None:
        parts.append(f"left {struct_text(call, data, struct_form(name))}")
    elif address and call.plain:
        parts.append(f"left {pointer(address)}")
    call.comment = ", ".join(parts)
    return str(result)


def _event_text(call: TracedCall, data: bytes) -> str:
    order, packed = call.facts.order, call.facts.linux.epoll_packed
    events, value = struct.unpack(order + ("IQ" if packed else "I4xQ"), data)
    names = name_set("epollevents").flags(events)
    return f"{{events={names}, data={{u32={value & 0xFFFFFFFF}, u64={value}}}}}"


def _epoll_event(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if call.arguments[1] & 0xFFFFFFFF == 2:
        return pointer(address)
    data = call.read(address, 12 if call.facts.linux.epoll_packed else 16)
    return pointer(address) if data is None else _event_text(call, data)


def _epoll_events(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if call.failed or call.result is None:
        return pointer(address)
    size = 12 if call.facts.linux.epoll_packed else 16
    return array_text(call, address, call.result, size, lambda data: _event_text(call, data))


def _mount_source(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if call.arguments[3] & (0x20 | 0x1000):
        return path_at(call, address)
    return string_at(call, address)


def _mount_type(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    ignored = call.arguments[3] & (0x20 | 0x1000 | 0x2000 | 0x40000 | 0x80000 | 0x100000)
    return pointer(address) if ignored else string_at(call, address)


def _mount_flags(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index]
    names, magic = name_set("mount_flags"), 0xC0ED0000
    if value & 0xFFFF0000 == magic:
        rest = value & ~0xFFFF0000
        return f"MS_MGC_VAL|{names.flags(rest)}" if rest else "MS_MGC_VAL"
    return names.flags(value)


def _mount_data(call: TracedCall, index: int, words: Words) -> str:
    return _mount_type(call, index, words)


_URING: Final = ("sq_off", "cq_off")


def note_parameters(call: TracedCall, index: int) -> None:
    """Note what io_uring_setup is asked for."""
    call.saved["uring"] = call.read(call.arguments[index], 40)


def _uring_parameters(call: TracedCall, index: int, words: Words) -> str:
    """Struct io_uring_params: what is asked for, then what came of it."""
    address = call.arguments[index]
    data = call.read(address, 40)
    before: bytes | None = call.saved.get("uring")
    if before is None:
        return pointer(address)
    flags, cpu, idle = struct.unpack_from(call.facts.order + "III", before, 8)
    parts = [f"flags={name_set('uring_setup_flags').flags(flags)}"]
    parts += [f"sq_thread_cpu={cpu}", f"sq_thread_idle={idle}"]
    if call.failed or data is None:
        return f"{{{', '.join(parts)}}}"
    sq, cq = struct.unpack_from(call.facts.order + "II", data)
    features = int.from_bytes(data[20:24], "little")
    parts += [f"sq_entries={sq}", f"cq_entries={cq}"]
    parts.append(f"features={name_set('uring_setup_features').flags(features)}")
    offsets = call.read(address + 40, 80)
    if offsets is not None:
        sub = ("head", "tail", "ring_mask", "ring_entries", "flags", "dropped", "array")
        cub = ("head", "tail", "ring_mask", "ring_entries", "overflow", "cqes", "flags")
        for at, (name, fields) in enumerate(zip(_URING, (sub, cub), strict=True)):
            numbers = struct.unpack_from(call.facts.order + "7I", offsets, 40 * at)
            text = ", ".join(f"{field}={n}" for field, n in zip(fields, numbers, strict=True))
            parts.append(f"{name}={{{text}}}")
    return f"{{{', '.join(parts)}}}"


FILES: Final[dict[str, Kind]] = {
    "omode": _open_mode,
    "open_how": _open_how,
    "device": _device,
    "mapflags": _map_flags,
    "mremap_target": _mremap_target,
    "sendoffset": _send_offset,
    "fcntl": _fcntl,
    "pollfds": _poll_list,
    "fdset": _descriptor_set,
    "epoll_event": _epoll_event,
    "epoll_events": _epoll_events,
    "mount_source": _mount_source,
    "mount_type": _mount_type,
    "mount_flags": _mount_flags,
    "mount_data": _mount_data,
    "uring_params": _uring_parameters,
}
"""Kinds of arguments of calls about files and memory."""
