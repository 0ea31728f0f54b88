"""Netlink's messages: headers, errors, and those of rtnetlink by `netlink.txt`."""

import errno
import struct
from functools import cache
from typing import Final, NamedTuple

from engine.trace.strace.attributeforms import AttributeBytes, bytes_text
from engine.trace.strace.attributes import attributes_text
from engine.trace.strace.call import TracedCall, pointer
from engine.trace.strace.names import NameSet, name_set, table_lines
from engine.trace.strace.structures import StructForm, struct_form, struct_text

_ROUTE, _UEVENT = 0, 15
_AF_BRIDGE: Final = 7
_HEAD: Final = 16
_ERROR, _DONE, _FIRST_OF_FAMILY = 2, 3, 16
_CAPPED: Final = 0x100
_WITHIN_MOST: Final = 16
"""Errors within each other that are taken apart; a kernel's is about a message that is none."""
_DELACTION, _GETNEIGH = 49, 30
_MORE_FLAGS: Final = {0: "netlink_new_flags", 1: "netlink_delete_flags", 2: "netlink_get_flags"}
"""Flags that a request of rtnetlink has besides those of all messages, by its kind."""


class MessageForm(NamedTuple):
    """The form of a message.

    Attributes:
        head: the structure that it begins with.
        attributes: name of the set that follows.
    """

    head: StructForm
    attributes: str


class MessageHead(NamedTuple):
    """Struct nlmsghdr."""

    size: int
    kind: int
    flags: int
    sequence: int
    port: int


def is_netlink(call: TracedCall, number: int) -> bool:
    """True if a descriptor is a socket whose messages netlink's headers are in front of."""
    protocol = call.netlink_of(number)
    return protocol >= 0 and protocol != _UEVENT


def messages_text(call: TracedCall, address: int, size: int) -> str:
    """Show the messages in a buffer; several stand in brackets."""
    if not address:
        return pointer(0)
    data = call.read(address, size)
    if data is None:
        return pointer(address)
    route = call.netlink_of(call.arguments[0] & 0xFFFFFFFF) == _ROUTE
    found: list[str] = []
    rest = data
    while True:
        if len(rest) < _HEAD:
            found.append(bytes_text(call, rest))
            break
        if len(found) == call.style.string_max and not call.whole:
            found.append("...")
            break
        head = _head(call, rest)
        found.append(_message(call, rest, head, route=route))
        rest = rest[head.size + 3 & ~3 :] if head.size >= _HEAD else b""
        if not rest:
            break
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def _head(call: TracedCall, data: bytes) -> MessageHead:
    return MessageHead(*struct.unpack_from(call.facts.order + "IHHII", data))


def _message(
    call: TracedCall, data: bytes, head: MessageHead, *, route: bool, within: int = 0
) -> str:
    """Show a message, which may stand in errors within each other."""
    parts = [
        f"nlmsg_len={head.size}",
        f"nlmsg_type={_type_text(head.kind, route=route)}",
        f"nlmsg_flags={_flags(head, route=route)}",
        f"nlmsg_seq={head.sequence}",
        f"nlmsg_pid={head.port}",
    ]
    text = f"{{{', '.join(parts)}}}"
    body = data[_HEAD : head.size]
    return f"[{text}, {_body(call, body, head, route=route, within=within)}]" if body else text


def _type_text(kind: int, *, route: bool) -> str:
    own = kind >= _FIRST_OF_FAMILY and route
    return name_set("nl_route_types" if own else "netlink_types").value(kind)


def _flags(head: MessageHead, *, route: bool) -> str:
    more = None
    if head.kind == _ERROR:
        more = "netlink_ack_flags"
    elif head.kind >= _FIRST_OF_FAMILY and route:
        more = "netlink_get_flags" if head.kind == _DELACTION else _MORE_FLAGS.get(head.kind & 3)
    names = name_set("netlink_flags")
    if more is not None:
        names = NameSet(names.unknown, (*names.names, *name_set(more).names), names.by_number)
    return names.flags(head.flags)


def _body(call: TracedCall, data: bytes, head: MessageHead, *, route: bool, within: int) -> str:
    if head.kind == _ERROR and within < _WITHIN_MOST:
        capped = bool(head.flags & _CAPPED)
        return _error(call, data, capped=capped, route=route, within=within + 1)
    if head.kind >= _FIRST_OF_FAMILY and route:
        return _route_body(call, data, head.kind)
    if head.kind == _DONE and len(data) == 4:
        return str(struct.unpack(call.facts.order + "i", data)[0])
    return bytes_text(call, data)


def _error(call: TracedCall, data: bytes, *, capped: bool, route: bool, within: int) -> str:
    """Struct nlmsgerr: an error, the message that it is about, and attributes of the error."""
    if len(data) < 4 + _HEAD:
        return bytes_text(call, data)
    (code,) = struct.unpack_from(call.facts.order + "i", data)
    name = errno.errorcode.get(-code)
    rest = data[4:]
    head = _head(call, rest)
    size = min(len(rest), _HEAD if capped else max(_HEAD, head.size))
    about = _message(call, rest[:size], head, route=route, within=within)
    text = f"{{error={f'-{name}' if name else code}, msg={about}}}"
    if len(rest) <= size:
        return text
    return f"[{text}, {attributes_text(AttributeBytes(call, rest[size:], 0), 'error')}]"


@cache
def _forms() -> dict[int, MessageForm]:
    numbers = dict(name_set("nl_route_types").names)
    found = {}
    for line in table_lines("netlink.txt"):
        head, attributes, *names = line.split()
        form = MessageForm(struct_form(head), attributes)
        found.update({numbers[name]: form for name in names})
    return found


def _route_body(call: TracedCall, data: bytes, kind: int) -> str:
    """A message of rtnetlink: its structure, then its attributes."""
    family = data[0]
    forms = _forms()
    form = forms.get(16 if kind == _GETNEIGH and family == _AF_BRIDGE else kind)
    if form is None:
        more = f", data={bytes_text(call, data[1:])}" if len(data) > 1 else ""
        return f"{{family={name_set('addrfams').value(family)}{more}}}"
    size = form.head.size
    if len(data) < size:
        first = form.head.fields[0].name
        return f"{{{first}={name_set('addrfams').value(family)}, ...}}"
    text = struct_text(call, data, form.head)
    rest = data[size + 3 & ~3 :]
    if not rest:
        return text
    return f"{text}, {attributes_text(AttributeBytes(call, rest, family), form.attributes)}"
