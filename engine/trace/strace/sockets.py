"""Addresses, messages and options of sockets."""

import socket
import struct
from typing import Final

from engine.trace.strace.buffers import array_text, bytes_at, vectors
from engine.trace.strace.call import Kind, TracedCall, Words, pointer, signed
from engine.trace.strace.names import name_set
from engine.trace.strace.netlink import is_netlink, messages_text
from engine.trace.strace.quoting import quoted
from engine.trace.strace.scalars import descriptor, padded
from engine.trace.strace.structures import struct_form, struct_text

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _AF_PACKET = 1, 2, 10, 16, 17
_TYPE: Final = 0xF
_ADDRESS_MAX: Final = 128
_SOL_SOCKET: Final = 1
_CONTROL_MAX: Final = 1 << 16
_SCM_RIGHTS, _SCM_CREDENTIALS = 1, 2
_OPTIONS: Final = {
    0: "sock_ip_options", 1: "sock_options", 6: "sock_tcp_options", 17: "sock_udp_options",
    41: "sock_ipv6_options", 270: "sock_netlink_options",
}  # fmt: skip
_SO_ERROR, _SO_LINGER, _SO_PEERCRED = 4, 13, 17
_TIMES: Final = frozenset((20, 21, 66, 67))
_WHOLE: Final = frozenset((_SO_ERROR, _SO_LINGER, _SO_PEERCRED)) | _TIMES


def _socket_type(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    text = name_set("socktypes").value(value & _TYPE)
    more = value & ~_TYPE
    return f"{text}|{name_set('sock_type_flags').flags(more)}" if more else text


def _protocol(call: TracedCall, index: int, words: Words) -> str:
    family, value = call.arguments[0] & 0xFFFFFFFF, call.arguments[index] & 0xFFFFFFFF
    if family in (_AF_INET, _AF_INET6):
        return name_set("inet_protocols").value(value)
    if family == _AF_NETLINK:
        return name_set("netlink_protocols").value(value)
    if family == _AF_PACKET:
        return f"htons({socket.ntohs(value & 0xFFFF):#x})"
    return str(value)


def address_text(call: TracedCall, data: bytes) -> str:
    """A socket's address in braces."""
    if len(data) < 2:
        return pointer(0)
    family = int.from_bytes(data[:2], "little")
    name = name_set("addrfams").value(family)
    parts = [f"sa_family={name}"]
    if family == _AF_UNIX and len(data) > 2:
        path = data[2:110]
        text = path.partition(b"\0")[0] if path[0] else path[1:]
        shown = quoted(text, call.style.hexadecimal)
        parts.append(f"sun_path={'' if path[0] else '@'}{shown}")
    elif family == _AF_INET and len(data) >= 16:
        port = int.from_bytes(data[2:4], "big")
        host = socket.inet_ntoa(data[4:8])
        parts += [f"sin_port=htons({port})", f'sin_addr=inet_addr("{host}")']
    elif family == _AF_INET6 and len(data) >= 24:
        port = int.from_bytes(data[2:4], "big")
        flow = int.from_bytes(data[4:8], "big")
        host = socket.inet_ntop(socket.AF_INET6, data[8:24])
        parts += [
            f"sin6_port=htons({port})",
            f"sin6_flowinfo=htonl({flow})",
            f'inet_pton(AF_INET6, "{host}", &sin6_addr)',
        ]
        if len(data) >= 28:
            parts.append(f"sin6_scope_id={int.from_bytes(data[24:28], 'little')}")
    elif family == _AF_NETLINK and len(data) >= 12:
        pad, pid, groups = struct.unpack_from(call.facts.order + "HiI", data, 2)
        parts += [f"nl_pad={pad:#x}"] * bool(pad)
        parts += [f"nl_pid={pid}", f"nl_groups={padded(groups)}"]
    elif len(data) > 2:
        parts.append(f"sa_data={quoted(data[2:], call.style.hexadecimal)}")
    return f"{{{', '.join(parts)}}}"


def _address_at(call: TracedCall, address: int, size: int) -> str:
    if size < 2 or call.plain:
        return pointer(address)
    data = call.read(address, min(size, _ADDRESS_MAX))
    return pointer(address) if data is None else address_text(call, data)


def _address(call: TracedCall, index: int, words: Words) -> str:
    size = signed(call.arguments[int(words[0])], 32)
    return _address_at(call, call.arguments[index], size)


def note_length(call: TracedCall, index: int) -> None:
    """Note what a length is when the call is made."""
    if not call.plain:
        call.saved[index] = call.number(call.arguments[index], 4, signed=True)


def _out_address(call: TracedCall, index: int, words: Words) -> str:
    place = int(words[0])
    address, before = call.arguments[index], call.saved.get(place)
    after = call.number(call.arguments[place], 4, signed=True)
    if call.failed or before is None or after is None:
        return pointer(address)
    return _address_at(call, address, min(before, after))


def _length(call: TracedCall, index: int, words: Words) -> str:
    address, before = call.arguments[index], call.saved.get(int(words[0]))
    if before is None:
        return pointer(address)
    after = call.number(address, 4, signed=True)
    if call.failed or after is None or after == before:
        return f"[{before}]"
    return f"[{before} => {after}]"


def _rights(call: TracedCall, data: bytes) -> str:
    numbers = struct.unpack_from(f"{call.facts.order}{len(data) // 4}i", data)
    return f"[{', '.join(descriptor(call, number) for number in numbers)}]"


def _control_text(call: TracedCall, address: int, size: int) -> str:
    data = call.read(address, min(size, _CONTROL_MAX)) if size >= 16 else None
    if data is None:
        return pointer(address)
    found, at = [], 0
    while at + 16 <= len(data):
        length, level, kind = struct.unpack_from(call.facts.order + "Qii", data, at)
        body = data[at + 16 : at + max(min(length, len(data) - at), 16)]
        parts = [f"cmsg_len={length}", f"cmsg_level={name_set('socketlayers').value(level)}"]
        if level == _SOL_SOCKET:
            parts.append(f"cmsg_type={name_set('scmvals').value(kind)}")
            if kind == _SCM_RIGHTS and len(body) >= 4:
                parts.append(f"cmsg_data={_rights(call, body)}")
            elif kind == _SCM_CREDENTIALS and len(body) >= 12:
                parts.append(f"cmsg_data={struct_text(call, body, struct_form('ucred'))}")
        else:
            parts.append(f"cmsg_type={kind:#x}")
        found.append(f"{{{', '.join(parts)}}}")
        if length < 16:
            break
        at += -(-length // 8) * 8
    return f"[{', '.join(found)}]"


def message_text(
    call: TracedCall, data: bytes, left: int | None, before: int | None, *, read: bool = True
) -> str:
    """Struct msghdr.

    Args:
        call: whose it is.
        data: its 56 bytes.
        left: bytes that were received; None for as many as there is room for.
        before: msg_namelen when the call was made; None where it does not change.
        read: what its vectors point to is shown.
    """
    name, length, vector, count, control, room, flags = struct.unpack(
        call.facts.order + "Qi4xQQQQi4x", data
    )
    shown = length if before is None else min(before, length)
    family = call.number(name, 2) if shown >= 2 else None
    show_bytes = messages_text if family == _AF_NETLINK else bytes_at
    changed = f"{before} => " if before is not None and before != length else ""
    parts = [
        f"msg_name={_address_at(call, name, shown)}",
        f"msg_namelen={changed}{length}",
        f"msg_iov={vectors(call, vector, count, left, read=read, show_bytes=show_bytes)}",
        f"msg_iovlen={count}",
    ]
    if room:
        parts.append(f"msg_control={_control_text(call, control, room)}")
    parts.append(f"msg_controllen={room}")
    parts.append(f"msg_flags={name_set('msg_flags').flags(flags & 0xFFFFFFFF)}")
    return f"{{{', '.join(parts)}}}"


def _message(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    data = None if call.plain else call.read(address, 56)
    return pointer(address) if data is None else message_text(call, data, None, None)


def note_message(call: TracedCall, index: int) -> None:
    """Note the lengths of names when messages are asked for."""
    address = call.arguments[index]
    call.saved["namelen"] = call.number(address + 8, 4, signed=True)


def note_messages(call: TracedCall, index: int) -> None:
    """The same of several, and the time for all."""
    address, count = call.arguments[index], call.arguments[2] & 0xFFFFFFFF
    for at in range(min(call.count(count), call.style.string_max)):
        call.saved[f"namelen{at}"] = call.number(address + 64 * at + 8, 4, signed=True)
    call.saved["timeout"] = call.read(call.arguments[4], 16)


def _out_message(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    data = None if call.plain else call.read(address, 56)
    before = call.saved.get("namelen")
    if data is None:
        return pointer(address)
    if call.failed:
        return f"{{msg_namelen={before}}}" if before is not None else pointer(address)
    return message_text(call, data, call.result, before)


def _messages(call: TracedCall, index: int, words: Words) -> str:
    if call.failed:
        return pointer(call.arguments[index])

    def show(data: bytes) -> str:
        length = struct.unpack_from(call.facts.order + "I", data, 56)[0]
        return f"{{msg_hdr={message_text(call, data[:56], None, None)}, msg_len={length}}}"

    return array_text(call, call.arguments[index], call.result or 0, 64, show)


def _out_messages(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if call.failed or call.plain or call.result is None:
        return pointer(address)
    found = []
    for at in range(min(call.count(call.result), call.style.string_max)):
        data = call.read(address + 64 * at, 64)
        if data is None:
            break
        length = struct.unpack_from(call.facts.order + "I", data, 56)[0]
        text = message_text(call, data[:56], length, call.saved.get(f"namelen{at}"))
        found.append(f"{{msg_hdr={text}, msg_len={length}}}")
    return f"[{', '.join(found)}]"


def _level(call: TracedCall, index: int, words: Words) -> str:
    return name_set("socketlayers").value(call.arguments[index] & 0xFFFFFFFF)


def _option(call: TracedCall, index: int, words: Words) -> str:
    level = call.arguments[int(words[0])] & 0xFFFFFFFF
    value = call.arguments[index] & 0xFFFFFFFF
    if level in (0, 41):
        kind = "setsock" if call.name == "setsockopt" else "getsock"
        family = "ip" if level == 0 else "ipv6"
        try:
            found = name_set(f"{kind}_{family}_options").by_number.get(value)
        except KeyError:
            found = None
        if found is not None:
            return found
    if level in _OPTIONS:
        return name_set(_OPTIONS[level]).value(value)
    return str(value)


def _option_value(call: TracedCall, address: int, size: int) -> str:
    level, option = call.arguments[1] & 0xFFFFFFFF, call.arguments[2] & 0xFFFFFFFF
    if level == _SOL_SOCKET and option in _WHOLE:
        if option == _SO_LINGER and size >= 8:
            data = call.read(address, 8)
            form = "linger"
        elif option == _SO_PEERCRED and size >= 12:
            data, form = call.read(address, 12), "ucred"
        elif option == _SO_ERROR and size >= 4:
            import errno

            number = call.number(address, 4, signed=True)
            if number is None:
                return pointer(address)
            return f"[{errno.errorcode.get(number, number)}]"
        else:
            data, form = None, ""
        if data is not None:
            return struct_text(call, data, struct_form(form))
    if size == 4:
        number = call.number(address, 4, signed=True)
        return pointer(address) if number is None else f"[{number}]"
    return bytes_at(call, address, size)


def _in_option(call: TracedCall, index: int, words: Words) -> str:
    address, size = call.arguments[index], signed(call.arguments[int(words[0])], 32)
    if size < 0 or call.plain:
        return pointer(address)
    return _option_value(call, address, size)


def _out_option(call: TracedCall, index: int, words: Words) -> str:
    address, place = call.arguments[index], int(words[0])
    size = call.number(call.arguments[place], 4, signed=True)
    before = call.saved.get(place)
    if call.failed or size is None or before is None or size <= 0 or before <= 0:
        return pointer(address)
    return _option_value(call, address, size)


def recvmmsg_result(call: TracedCall, result: int) -> str:
    """The result of recvmmsg, with the time that is left."""
    if not result:
        call.comment = "Timeout"
        return "0"
    data = call.read(call.arguments[4], 16)
    if data is not None:
        call.comment = f"left {struct_text(call, data, struct_form('timespec'))}"
    return str(result)


def _sent(call: TracedCall, index: int, words: Words) -> str:
    """The bytes that sendto sends."""
    address, size = call.arguments[index], call.arguments[int(words[0])]
    show = messages_text if _has_messages(call) else bytes_at
    return show(call, address, size)


def _received(call: TracedCall, index: int, words: Words) -> str:
    """The bytes that recvfrom has received."""
    address, result = call.arguments[index], call.result
    if call.failed or result is None:
        return pointer(address)
    show = messages_text if _has_messages(call) else bytes_at
    return show(call, address, min(result, call.arguments[int(words[0])]))


def _has_messages(call: TracedCall) -> bool:
    return not call.plain and is_netlink(call, call.arguments[0] & 0xFFFFFFFF)


SOCKETS: Final[dict[str, Kind]] = {
    "sent": _sent,
    "received": _received,
    "socktype": _socket_type,
    "protocol": _protocol,
    "sockaddr": _address,
    "outsockaddr": _out_address,
    "socklen": _length,
    "msghdr": _message,
    "outmsghdr": _out_message,
    "mmsghdrs": _messages,
    "outmmsghdrs": _out_messages,
    "socklevel": _level,
    "sockopt": _option,
    "sockvalue": _in_option,
    "outsockvalue": _out_option,
}
"""Kinds of arguments about sockets."""
