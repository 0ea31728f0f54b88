"""Netlink attributes by `attributes.txt`: lengths, types, and what they hold."""

import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from engine.trace.strace.attributeforms import FORMS, AttributeBytes, bytes_text, number_text
from engine.trace.strace.call import Words
from engine.trace.strace.names import name_set, table_lines
from engine.trace.strace.structures import struct_form, struct_text

_HEAD: Final = 4
_NESTED, _NET_BYTEORDER, _TYPE = 0x8000, 0x4000, 0x3FFF
_AF_INET, _AF_BRIDGE, _AF_INET6, _AF_MCTP = 2, 7, 10, 45
_FAMILY_SETS: Final = {_AF_INET: "inet", _AF_INET6: "inet6", _AF_MCTP: "mctp"}
_PROTOCOL_SETS: Final = {_AF_BRIDGE: "brport", _AF_INET6: "inet6"}


class NetlinkSet(NamedTuple):
    """The attributes of one kind of message.

    Attributes:
        unknown: stands behind a number without a name.
        names: of the attributes, by number.
        kinds: (name of the form, its words), by number.
    """

    unknown: str
    names: dict[int, str]
    kinds: dict[int, tuple[str, Words]]


@cache
def attribute_set(name: str) -> NetlinkSet:
    """The set of a name; KeyError if there is none."""
    unknown, *words = _lines()[name]
    found = NetlinkSet(unknown, {}, {})
    for word in words:
        label, _, rest = word.partition("=")
        number, *kind = rest.split(":")
        found.names[int(number)] = label
        if kind:
            found.kinds[int(number)] = kind[0], tuple(kind[1:])
    return found


@cache
def _lines() -> dict[str, list[str]]:
    lines = (line.split() for line in table_lines("attributes.txt"))
    return {name: words for name, *words in lines}


def attributes_text(held: AttributeBytes, name: str) -> str:
    """Attributes one behind the other; several stand in brackets.

    Args:
        held: their bytes.
        name: of their set.
    """
    found = list(_attributes(held, attribute_set(name)))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def _attributes(held: AttributeBytes, known: NetlinkSet) -> Iterator[str]:
    call, rest, count = held.call, held.data, 0
    while True:
        if len(rest) < _HEAD:
            yield bytes_text(call, rest)
            return
        if count == call.style.string_max and not call.whole:
            yield "..."
            return
        size, kind = struct.unpack_from(call.facts.order + "HH", rest)
        yield _attribute(
            held._replace(data=rest[_HEAD:size], kind=kind & _TYPE), size, kind, known
        )
        rest = rest[size + 3 & ~3 :] if size >= _HEAD else b""
        if not rest:
            return
        count += 1


def _attribute(held: AttributeBytes, size: int, kind: int, known: NetlinkSet) -> str:
    flags = "NLA_F_NESTED|" * bool(kind & _NESTED)
    flags += "NLA_F_NET_BYTEORDER|" * bool(kind & _NET_BYTEORDER)
    number = held.kind
    label = known.names.get(number) or f"{number:#x} /* {known.unknown} */"
    head = f"{{nla_len={size}, nla_type={flags}{label}}}"
    if not held.data:
        return head
    form, words = known.kinds.get(number, ("", ()))
    text = _show(held, (form, *words)) if form else None
    return f"[{head}, {bytes_text(held.call, held.data) if text is None else text}]"


def _show(held: AttributeBytes, words: Words) -> str | None:
    """Show bytes in a form and its words; None where they are too few or too many for it."""
    return _FORMS.get(words[0], number_text)(held, words)


# -- the forms that hold attributes ---------------------------------------------------------------


def _nested(held: AttributeBytes, words: Words) -> str:
    return attributes_text(held, words[1])


def _link_information(held: AttributeBytes, words: Words) -> str:
    """IFLA_LINKINFO: data in the form of the kind that stands before them."""
    return attributes_text(held._replace(links={}), "linkinfo")


def _of_link_kind(held: AttributeBytes, words: Words) -> str | None:
    """Attributes, or a structure, of an interface's kind: pairs of the kind and the form."""
    _, which, *forms = words
    kind = (held.links or {}).get(which)
    for name, form, argument in zip(forms[::3], forms[1::3], forms[2::3], strict=True):
        if name == kind:
            return _show(held, (form, argument))
    return None


def _by_family(held: AttributeBytes, words: Words) -> str | None:
    """IFLA_AF_SPEC: attributes of a bridge, or of address families, each by its number."""
    if held.family == _AF_BRIDGE:
        return attributes_text(held, "bridge")
    families = name_set("addrfams")
    kinds: dict[int, tuple[str, Words]] = dict.fromkeys(families.by_number, ("spec", ()))
    known = NetlinkSet(families.unknown, dict(families.by_number), kinds)
    found = list(_attributes(held, known))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def _family_spec(held: AttributeBytes, words: Words) -> str | None:
    name = _FAMILY_SETS.get(held.kind)
    return attributes_text(held, name) if name else None


def _protocol_information(held: AttributeBytes, words: Words) -> str | None:
    """IFLA_PROTINFO: attributes of the message's family."""
    name = _PROTOCOL_SETS.get(held.family)
    return attributes_text(held, name) if name else None


def _several_ways(held: AttributeBytes, words: Words) -> str | None:
    """RTA_MULTIPATH: struct rtnexthop with attributes, one behind the other."""
    form, rest, found = struct_form("rtnexthop"), held.data, []
    if len(rest) < form.size:
        return None
    while len(rest) >= form.size:
        size = min(int.from_bytes(rest[:2], held.call.facts.byteorder), len(rest))
        text = struct_text(held.call, rest, form)
        if size > form.size:
            more = attributes_text(held._replace(data=rest[form.size : size]), "route")
            text = f"[{text}, {more}]"
        found.append(text)
        if size < form.size:
            break
        rest = rest[size + 3 & ~3 :]
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


_FORMS: Final[dict[str, Callable[[AttributeBytes, Words], str | None]]] = {
    **FORMS,
    "nest": _nested,
    "linkinfo": _link_information,
    "ofkind": _of_link_kind,
    "afspec": _by_family,
    "spec": _family_spec,
    "protinfo": _protocol_information,
    "multipath": _several_ways,
}
"""Forms that `attributes.txt` names; any other word is a format of `struct`."""
