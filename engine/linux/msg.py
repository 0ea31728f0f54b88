"""System V message queues (Linux: ipc/msg.c)."""

import errno
import struct
from typing import Final

from engine.linux.context import SyscallTable, s32, s64
from engine.linux.errno import LinuxError
from engine.linux.memorylimit import HeldMemory
from engine.linux.sysv import (
    IPC_INFO,
    IPC_NOWAIT,
    IPC_RMID,
    IPC_SET,
    IPC_STAT,
    MAY_READ,
    MAY_WRITE,
    MESSAGES,
    OBJECT,
    MessageQueue,
    now,
    order,
    owners,
)
from engine.linux.thread import Thread
from engine.linux.wait import Wait

MSG_STAT, MSG_INFO, MSG_STAT_ANY = 11, 12, 13
MSG_NOERROR, MSG_EXCEPT, MSG_COPY = 0o10000, 0o20000, 0o40000
_LONGEST = 8192
_CAPACITY_AT: Final = 48 + 3 * 8 + 2 * 8
"""Offset of msg_qbytes in struct msqid64_ds."""


def msgget(k: Thread, key: int, flags: int) -> int:
    """Find or make a queue."""
    table = k.machine.sysv.queues
    found = table.by_key(k, key, flags)
    if found is not None:
        return found.id
    number = table.new_id()
    held = HeldMemory(k.machine.memory_limit, OBJECT)
    queue = MessageQueue(s32(key), number, flags & 0o777, *owners(k), now(k), held=held)
    return table.add(queue)


def msgsnd(k: Thread, number: int, address: int, size: int, flags: int) -> int | Wait:
    """Send a message; waits for room."""
    (kind,) = struct.unpack(order(k) + "q", k.memory.read(address, 8))
    if size > _LONGEST or s32(number) < 0 or kind < 1:
        raise LinuxError(errno.EINVAL)
    text = bytes(k.memory.read(address + 8, size))
    queue = k.machine.sysv.queues.by_id(number)
    queue.permits(k, MAY_WRITE)

    def attempt() -> int | None:
        if queue.removed:
            raise LinuxError(errno.EIDRM)
        full = queue.size + size > queue.capacity or len(queue.messages) >= queue.capacity
        if full:
            if flags & IPC_NOWAIT:
                raise LinuxError(errno.EAGAIN)
            return None
        queue.put(kind, text)
        queue.sent, queue.sender = now(k), k.pid
        return 0

    done = attempt()
    return done if done is not None else Wait(attempt, restart=False)


def _wanted(queue: MessageQueue, kind: int, flags: int) -> int | None:
    """The position of the message that a receiver gets, None if there is none yet."""
    messages = queue.messages
    if flags & MSG_COPY:
        return kind if 0 <= kind < len(messages) else None
    if kind == 0:
        return 0 if messages else None
    if kind < 0:
        low = [(have, at) for at, (have, _) in enumerate(messages) if have <= -kind]
        return min(low)[1] if low else None
    other = bool(flags & MSG_EXCEPT)
    return next((at for at, (have, _) in enumerate(messages) if (have == kind) != other), None)


def msgrcv(k: Thread, number: int, address: int, size: int, kind: int, flags: int) -> int | Wait:
    """Receive a message of a type; waits for one."""
    kind = s64(kind)
    if s32(number) < 0 or s64(size) < 0:
        raise LinuxError(errno.EINVAL)
    if flags & MSG_COPY and (flags & MSG_EXCEPT or not flags & IPC_NOWAIT):
        raise LinuxError(errno.EINVAL)
    if flags & MSG_COPY:
        # Linux fills the room for the copy with what the buffer holds (prepare_copy).
        k.memory.read(address, min(size, _LONGEST))
    queue = k.machine.sysv.queues.by_id(number)
    queue.permits(k, MAY_READ)

    def attempt() -> int | None:
        if queue.removed:
            raise LinuxError(errno.EIDRM)
        at = _wanted(queue, kind, flags)
        if at is None:
            if flags & IPC_NOWAIT:
                raise LinuxError(errno.ENOMSG)
            return None
        have, text = queue.messages[at]
        if len(text) > size and not flags & MSG_NOERROR:
            raise LinuxError(errno.E2BIG)
        if flags & MSG_COPY:
            if len(text) > min(size, _LONGEST):  # MSG_NOERROR cuts no copies (copy_msg)
                raise LinuxError(errno.EINVAL)
        else:
            queue.take(at)
            queue.received, queue.receiver = now(k), k.pid
        k.memory.write(address, struct.pack(order(k) + "q", have) + text[:size])
        return min(len(text), size)

    done = attempt()
    return done if done is not None else Wait(attempt, restart=False)


def _told(queue: MessageQueue, form: str) -> bytes:
    times = (queue.sent, queue.received, queue.changed)
    sizes = (queue.size, len(queue.messages), queue.capacity)
    ids = (queue.sender, queue.receiver)
    return queue.perm(form) + struct.pack(form + "3q3Q2i2Q", *times, *sizes, *ids, 0, 0)


def msgctl(k: Thread, number: int, command: int, address: int) -> int:
    """Ask about a queue, change or remove it."""
    table, command, form = k.machine.sysv.queues, s32(command), order(k)
    if s32(number) < 0 or command < 0:
        raise LinuxError(errno.EINVAL)
    if command in (IPC_INFO, MSG_INFO):
        queues = table.all()
        used = (len(queues), sum(len(q.messages) for q in queues), sum(q.size for q in queues))
        pool, maps, most = used if command == MSG_INFO else (MESSAGES, MESSAGES, MESSAGES)
        limits = (pool, maps, _LONGEST, MESSAGES, table.limit, 16, most, 0xFFFF)
        k.memory.write(address, struct.pack(form + "7iH2x", *limits))
        return table.highest()
    if command in (IPC_STAT, MSG_STAT, MSG_STAT_ANY):
        slot, anyone = command != IPC_STAT, command == MSG_STAT_ANY
        queue = table.described(k, number, slot=slot, anyone=anyone)
        k.memory.write(address, _told(queue, form))
        return 0 if command == IPC_STAT else queue.id
    queue = table.by_id(number)
    if command == IPC_SET:
        data = k.memory.read(address, _CAPACITY_AT + 8)
        queue.owned(k)
        (capacity,) = struct.unpack_from(form + "Q", data, _CAPACITY_AT)
        if capacity > MESSAGES and k.uid:
            raise LinuxError(errno.EPERM)
        queue.capacity = capacity
        queue.set(k, data, form)
    elif command == IPC_RMID:
        queue.owned(k)
        queue.removed, queue.held = True, None
        table.remove(queue)
    else:
        raise LinuxError(errno.EINVAL)
    return 0


SYSCALLS: SyscallTable = {"msgget": msgget, "msgsnd": msgsnd, "msgrcv": msgrcv, "msgctl": msgctl}
