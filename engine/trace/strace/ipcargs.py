"""Arguments of System V's calls: shared memory, semaphores, messages."""

import struct
from typing import Final

from engine.trace.strace.buffers import array_text, bytes_at
from engine.trace.strace.call import Kind, TracedCall, Words, pointer
from engine.trace.strace.names import name_set
from engine.trace.strace.scalars import octal
from engine.trace.strace.structures import struct_form, struct_text

_SET, _STAT, _INFO = 1, 2, 3
_STATS: Final = {
    "shmctl": (_STAT, 13, 15),
    "semctl": (_STAT, 18, 20),
    "msgctl": (_STAT, 11, 13),
}
_INFOS: Final = {"shmctl": (_INFO, 14), "semctl": (_INFO, 19), "msgctl": (_INFO, 12)}


def _key(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    return "IPC_PRIVATE" if not value else f"{value:#x}"


def _flags(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    return _with_mode(name_set("resource_flags").flags(value & ~0o777), value)


def _with_mode(text: str, value: int) -> str:
    mode = octal(value & 0o777)
    return mode if not value & ~0o777 else f"{text}|{mode}"


def _shared_flags(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    bits = value & ~0o777
    huge = bits & 0x800 and bits >> 26 & 0x3F
    if huge:
        bits &= ~(0x3F << 26)
    text = _with_mode(name_set("shm_resource_flags").flags(bits), bits | value & 0o777)
    if huge:
        first, _, mode = text.rpartition("|")
        text = f"{first}|{huge}<<SHM_HUGE_SHIFT|{mode}"
    return text


def _command(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    wide = value & 0x100
    value &= ~0x100
    name = name_set(f"{call.name[:3]}ctl_flags").value(value)
    return f"IPC_64|{name}" if wide else name


def _command_of(call: TracedCall) -> int:
    return call.arguments[2 if call.name == "semctl" else 1] & 0xFFFFFEFF


def ipc_is_late(call: TracedCall) -> bool:
    """True if what the last argument points to is stored by the call."""
    return _command_of(call) in (*_STATS[call.name], *_INFOS[call.name])


def _permissions(call: TracedCall, data: bytes, *, whole: bool) -> str:
    key, uid, gid, cuid, cgid, mode = struct.unpack_from(call.facts.order + "iIIIII", data)
    text = f"uid={uid}, gid={gid}, mode={octal(mode)}"
    if whole:
        text += f", key={key & 0xFFFFFFFF}, cuid={cuid}, cgid={cgid}"
    return f"{{{text}}}"


def _shared(call: TracedCall, index: int, words: Words) -> str:
    address, command = call.arguments[index], _command_of(call)
    order = call.facts.order
    if command in _STATS["shmctl"] or command == _SET:
        data = None if call.failed else call.read(address, 112)
        if data is None:
            return pointer(address)
        whole = command != _SET
        text = f"shm_perm={_permissions(call, data, whole=whole)}"
        if whole:
            size, atime, dtime, ctime, cpid, lpid, count = struct.unpack_from(
                order + "QqqqiiQ", data, 48
            )
            text += (
                f", shm_segsz={size}, shm_cpid={cpid}, shm_lpid={lpid}, shm_nattch={count}"
                f", shm_atime={atime}, shm_dtime={dtime}, shm_ctime={ctime}"
            )
        return f"{{{text}}}"
    if command in _INFOS["shmctl"] and not call.failed:
        names: tuple[str, ...]
        if command == _INFO:
            names = ("shmmax", "shmmin", "shmmni", "shmseg", "shmall")
            data = call.read(address, 40)
            form = "5Q"
        else:
            names = ("used_ids", "shm_tot", "shm_rss", "shm_swp", "swap_attempts",
                     "swap_successes")  # fmt: skip
            data = call.read(address, 48)
            form = "i4x5Q"
        return (
            pointer(address) if data is None else _named(names, struct.unpack(order + form, data))
        )
    return pointer(address)


def _named(names: tuple[str, ...], values: tuple[int, ...]) -> str:
    return "{" + ", ".join(f"{n}={v}" for n, v in zip(names, values, strict=True)) + "}"


def _semaphores(call: TracedCall, index: int, words: Words) -> str:
    address, command = call.arguments[index], _command_of(call)
    order = call.facts.order
    if command in _STATS["semctl"] or command == _SET:
        data = None if call.failed else call.read(address, 104)
        if data is None:
            return pointer(address)
        whole = command != _SET
        text = f"sem_perm={_permissions(call, data, whole=whole)}"
        if whole:
            step = 16 if call.facts.linux.semid_padded else 8
            otime = struct.unpack_from(order + "q", data, 48)[0]
            ctime = struct.unpack_from(order + "q", data, 48 + step)[0]
            count = struct.unpack_from(order + "Q", data, 48 + 2 * step)[0]
            text += f", sem_otime={otime}, sem_ctime={ctime}, sem_nsems={count}"
        return f"{{{text}}}"
    if command in _INFOS["semctl"] and not call.failed:
        data = call.read(address, 40)
        names = ("semmap", "semmni", "semmns", "semmnu", "semmsl", "semopm", "semume", "semusz",
                 "semvmx", "semaem")  # fmt: skip
        if data is not None:
            return _named(names, struct.unpack(order + "10i", data))
    return pointer(address)


def _messages(call: TracedCall, index: int, words: Words) -> str:
    address, command = call.arguments[index], _command_of(call)
    order = call.facts.order
    if command in _STATS["msgctl"] or command == _SET:
        data = None if call.failed else call.read(address, 120)
        if data is None:
            return pointer(address)
        stime, rtime, ctime, _, number, most, sender, receiver = struct.unpack_from(
            order + "qqqQQQii", data, 48
        )
        if command == _SET:
            return f"{{msg_perm={_permissions(call, data, whole=False)}, msg_qbytes={most}}}"
        return (
            f"{{msg_perm={_permissions(call, data, whole=True)}, msg_stime={stime}"
            f", msg_rtime={rtime}, msg_ctime={ctime}, msg_qnum={number}, msg_qbytes={most}"
            f", msg_lspid={sender}, msg_lrpid={receiver}}}"
        )
    if command in _INFOS["msgctl"] and not call.failed:
        data = call.read(address, 32)
        names = ("msgpool", "msgmap", "msgmax", "msgmnb", "msgmni", "msgssz", "msgtql", "msgseg")
        if data is not None:
            return _named(names, struct.unpack(order + "7iH2x", data))
    return pointer(address)


def _operations(call: TracedCall, index: int, words: Words) -> str:
    count = call.arguments[int(words[0])] & 0xFFFFFFFF
    form = struct_form("sembuf")
    return array_text(
        call, call.arguments[index], count, form.size, lambda data: struct_text(call, data, form)
    )


def _message_buffer(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    size = call.arguments[int(words[0])]
    kind = None if call.failed else call.number(address, 8, signed=True)
    if kind is None:
        return pointer(address)
    return f"{{mtype={kind}, mtext={bytes_at(call, address + 8, size)}}}"


IPC: Final[dict[str, Kind]] = {
    "key": _key,
    "ipcflags": _flags,
    "shmflags": _shared_flags,
    "ipccommand": _command,
    "shmbuf": _shared,
    "semarg": _semaphores,
    "msgarg": _messages,
    "sembufs": _operations,
    "msgbuf": _message_buffer,
}
"""Kinds of arguments of System V's calls."""
