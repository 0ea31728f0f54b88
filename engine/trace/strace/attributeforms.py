"""Forms of netlink attributes that hold no attributes themselves: numbers, texts, addresses."""

import struct
from collections.abc import Callable
from socket import AF_INET6, inet_ntoa, inet_ntop
from typing import Final, NamedTuple

from engine.trace.strace.call import TracedCall, Words
from engine.trace.strace.names import name_set
from engine.trace.strace.quoting import quoted
from engine.trace.strace.scalars import SCALARS, hexadecimal
from engine.trace.strace.structures import StructForm, struct_form, struct_text

_AF_INET: Final = 2
_ADDRESS_MAX: Final = 32
"""Bytes of a hardware address at most (MAX_ADDR_LEN)."""
_HARDWARE_SIZES: Final = {0: 7, 1: 6, 3: 7, 6: 6, 7: 1, 15: 2}
"""Bytes of hardware addresses that are shown, by the number that strace takes for the hardware's
type: of an interface's own addresses it is the family of the message."""
_TICKS: Final = 100
"""Ticks of a second in what netlink says (USER_HZ)."""
_KIND_MAX: Final = 64
"""Bytes of the name of an interface's kind from which on strace does not heed it."""
_GUID_LAYOUTS: Final = {12: "IQ", 16: "I4xQ"}
"""Struct ifla_vf_guid by its size: 32-bit programs have no hole in it."""


class AttributeBytes(NamedTuple):
    """The bytes of one attribute, and where they come from.

    Attributes:
        call: whose message it is in.
        data: its bytes.
        family: of the message, for addresses.
        kind: its number.
        links: kinds of an interface and of its port that attributes before this one named.
    """

    call: TracedCall
    data: bytes
    family: int
    kind: int = 0
    links: dict[str, str] | None = None


def bytes_text(call: TracedCall, data: bytes) -> str:
    """Bytes without a form: hexadecimal digits, cut at what -s says."""
    most = call.style.string_max
    return quoted(data[:most], 2) + ("..." if len(data) > most else "")


def number_text(held: AttributeBytes, words: Words) -> str | None:
    """A number of a format of `struct`, shown as a scalar."""
    form, kind, *more = words
    form = held.call.facts.order + form
    if len(held.data) < struct.calcsize(form):
        return None
    (value,) = struct.unpack_from(form, held.data)
    return SCALARS[kind](held.call, value, tuple(more))


def _any_number(held: AttributeBytes, words: Words) -> str | None:
    """A number of as many bytes as there are, by name."""
    if len(held.data) > 8:
        return None
    value = int.from_bytes(held.data, held.call.facts.byteorder)
    return name_set(words[1]).value(value)


def _string(held: AttributeBytes, words: Words) -> str:
    """Text up to the NUL that ends it."""
    call = held.call
    shown = held.data[: call.style.string_max]
    if shown and not shown[-1] and not call.style.hexadecimal:
        return quoted(shown[:-1])
    return quoted(shown, call.style.hexadecimal) + "..."


def _first_string(held: AttributeBytes, words: Words) -> str:
    """Text up to its first NUL."""
    call = held.call
    most = call.style.string_max
    text, end, _ = held.data[: most + 1].partition(b"\0")
    more = "" if end else "..."
    return quoted(text[:most], call.style.hexadecimal) + more


def _at_most_a_word(held: AttributeBytes, words: Words) -> str | None:
    """A number that strace shows of no more than eight bytes."""
    return number_text(held, words[1:]) if len(held.data) <= 8 else None


def _struct(held: AttributeBytes, words: Words) -> str | None:
    form = struct_form(words[1])
    last = form.fields[-1]
    size = last.offset + struct.calcsize("<" + last.form)
    return struct_text(held.call, held.data, form) if len(held.data) >= size else None


def _grown_struct(held: AttributeBytes, words: Words) -> str | None:
    """A structure that older kernels have with fewer fields, of the sizes in its words."""
    form, size = struct_form(words[1]), len(held.data)
    if size >= form.size:
        return struct_text(held.call, held.data, form)
    if str(size) not in words[2:]:
        return None
    fields = tuple(each for each in form.fields if each.offset < size)
    return struct_text(held.call, held.data, StructForm(size, fields, -1))


def _ticks(held: AttributeBytes, words: Words) -> str | None:
    """A time in ticks of as many bytes as there are, with its seconds as a comment."""
    if len(held.data) > 8:
        return None
    value = int.from_bytes(held.data, held.call.facts.byteorder)
    seconds, rest = divmod(value, _TICKS)
    return f"{value} /* {seconds}.{rest:02d} s */" if value else "0"


def _indexed(held: AttributeBytes, words: Words) -> str | None:
    """An array of numbers, each behind the name of its place."""
    _, form, kind, places = words
    call, size = held.call, struct.calcsize(form)
    count = len(held.data) // size
    if not count:
        return None
    numbers = struct.unpack_from(f"{call.facts.order}{count}{form}", held.data)
    names = name_set(places)
    most = count if call.whole else min(count, call.style.string_max)
    found = [
        f"[{names.value(place, 'd')}]={SCALARS[kind](call, number, ())}"
        for place, number in enumerate(numbers[:most])
    ]
    return f"[{', '.join((*found, '...') if most < count else found)}]"


def _guid(held: AttributeBytes, words: Words) -> str | None:
    """Struct ifla_vf_guid."""
    layout = _GUID_LAYOUTS.get(len(held.data))
    if layout is None:
        return None
    function, number = struct.unpack(held.call.facts.order + layout, held.data)
    return f"{{vf={function}, guid={hexadecimal(number)}}}"


def _vlan(held: AttributeBytes, words: Words) -> str | None:
    """Struct bridge_vlan_info, and bytes that come behind it."""
    form = struct_form("bridge_vlan_info")
    if len(held.data) < form.size:
        return None
    text, rest = struct_text(held.call, held.data, form), held.data[form.size :]
    return f"{text}, {bytes_text(held.call, rest)}" if rest else text


def _link_kind(held: AttributeBytes, words: Words) -> str:
    """The kind of an interface or of its port, which says what its data are."""
    if held.links is not None:
        fits = len(held.data) < _KIND_MAX
        name = held.data.partition(b"\0")[0] if fits else b""
        held.links[words[1]] = name.decode(errors="replace")
    return _first_string(held, words)


def internet_address(call: TracedCall, data: bytes, family: int, field: str = "") -> str:
    """An address of the internet; bytes where it is none.

    Args:
        call: whose it is.
        data: its bytes.
        family: of the address.
        field: of the structure that it is in.
    """
    if family == _AF_INET and len(data) >= 4:
        return f'{field}{"=" * bool(field)}inet_addr("{inet_ntoa(data[:4])}")'
    if family == AF_INET6 and len(data) >= 16:
        more = f", &{field}" if field else ""
        return f'inet_pton(AF_INET6, "{inet_ntop(AF_INET6, data[:16])}"{more})'
    return f"{field}{'=' * bool(field)}{bytes_text(call, data)}"


def _address(held: AttributeBytes, words: Words) -> str:
    return internet_address(held.call, held.data, held.family)


def _short_address(held: AttributeBytes, words: Words) -> str | None:
    return internet_address(held.call, held.data, _AF_INET) if len(held.data) >= 4 else None


def _long_address(held: AttributeBytes, words: Words) -> str | None:
    if len(held.data) < 16:
        return None
    return internet_address(held.call, held.data, AF_INET6)


def _hardware_address(held: AttributeBytes, words: Words) -> str | None:
    if len(held.data) > _ADDRESS_MAX:
        return None
    size = _HARDWARE_SIZES.get(held.family, 255) if words[0] == "hwaddr" else 255
    return held.data[:size].hex(":")


def _big_endian(held: AttributeBytes, words: Words) -> str | None:
    name, size = ("htons", 2) if words[0] == "port" else ("htobe64", 8)
    if len(held.data) < size:
        return None
    return f"{name}({int.from_bytes(held.data[:size], 'big')})"


def _via(held: AttributeBytes, words: Words) -> str | None:
    """Struct rtvia: a gateway of another family."""
    if len(held.data) < 2:
        return None
    family = int.from_bytes(held.data[:2], held.call.facts.byteorder)
    text = f"rtvia_family={name_set('addrfams').value(family)}"
    if len(held.data) > 2:
        text += f", {internet_address(held.call, held.data[2:], family, 'rtvia_addr')}"
    return f"{{{text}}}"


def _byte_list(held: AttributeBytes, words: Words) -> str:
    return f"[{', '.join(map(str, held.data))}]"


FORMS: Final[dict[str, Callable[[AttributeBytes, Words], str | None]]] = {
    "str": _string,
    "cstr": _first_string,
    "struct": _struct,
    "grown": _grown_struct,
    "number": _any_number,
    "short": _at_most_a_word,
    "ticks": _ticks,
    "indexed": _indexed,
    "address": _address,
    "in4": _short_address,
    "in6": _long_address,
    "hwaddr": _hardware_address,
    "mac": _hardware_address,
    "port": _big_endian,
    "tunnel": _big_endian,
    "via": _via,
    "bytes": _byte_list,
    "guid": _guid,
    "vlan": _vlan,
    "linkkind": _link_kind,
}
"""The forms that `attributes.txt` names; any other word is a format of `struct`."""
