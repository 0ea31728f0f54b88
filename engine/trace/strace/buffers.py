"""Strings, buffers, and arrays of them."""

import struct
from collections.abc import Callable, Iterator
from typing import Final

from engine.trace.strace.call import PATH_MAX, Kind, TracedCall, Words, pointer, signed
from engine.trace.strace.names import name_set
from engine.trace.strace.quoting import quoted
from engine.trace.strace.scalars import SCALARS

_HOST_NAME: Final = 64
"""Bytes of a host's name at most (__NEW_UTS_LEN)."""
_ENTRIES: Final = 1 << 16


def path_at(call: TracedCall, address: int) -> str:
    """A path: whole, up to PATH_MAX."""
    found = call.cstring(address, PATH_MAX)
    if found is None:
        return pointer(address)
    text, ended = found
    return quoted(text, call.style.hexadecimal) + ("" if ended else "...")


def string_at(call: TracedCall, address: int, limit: int | None = None) -> str:
    """A string up to its NUL, cut at what -s says."""
    most = call.style.string_max if limit is None else limit
    found = call.cstring(address, most + 1)
    if found is None:
        return pointer(address)
    text, _ = found
    more = "..." if len(text) > most and limit is None else ""
    return quoted(text[:most], call.style.hexadecimal) + more


def bytes_at(call: TracedCall, address: int, size: int) -> str:
    """So many bytes, cut at what -s says."""
    size &= (1 << 64) - 1
    most = min(size, call.style.string_max)
    data = call.peek(address, most)
    if data is None:
        return pointer(address)
    return quoted(data, call.style.hexadecimal) + ("..." if size > most else "")


def array_text(
    call: TracedCall,
    address: int,
    count: int,
    size: int,
    show: Callable[[bytes], str],
    limit: int | None = None,
) -> str:
    """The elements of an array in brackets.

    Args:
        call: whose it is.
        address: of the first element.
        count: of elements.
        size: of one in bytes.
        show: one element.
        limit: elements that are shown; what -s says if not given.
    """
    if not address or (call.plain and count):
        return pointer(address)
    if not count:
        return "[]"
    most = call.style.string_max if limit is None else limit
    found: list[str] = []
    for index in range(call.count(count)):
        if index >= most and not call.whole:
            found.append("...")
            break
        data = call.read(address + index * size, size)
        if data is None:
            if not found:
                return pointer(address)
            found.append(f"... /* {pointer(address + index * size)} */")
            break
        found.append(show(data))
    return f"[{', '.join(found)}]"


def _path(call: TracedCall, index: int, words: Words) -> str:
    return path_at(call, call.arguments[index])


def _out_path(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    return pointer(address) if call.failed else path_at(call, address)


def _string(call: TracedCall, index: int, words: Words) -> str:
    return string_at(call, call.arguments[index])


def _written(call: TracedCall, index: int, words: Words) -> str:
    size = call.arguments[int(words[0])]
    named = call.name in ("sethostname", "setdomainname")
    if named and not 0 < signed(size, 32) <= _HOST_NAME:
        return pointer(call.arguments[index])
    return bytes_at(call, call.arguments[index], size)


def _buffer(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if call.failed or call.result is None:
        return pointer(address)
    return bytes_at(call, address, call.result)


def _random(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if call.failed or call.result is None:
        return pointer(address)
    most = min(call.result, call.style.string_max)
    data = call.peek(address, most)
    if data is None:
        return pointer(address)
    return quoted(data, 2) + ("..." if call.result > most else "")


def vectors(
    call: TracedCall,
    address: int,
    count: int,
    left: int | None,
    *,
    read: bool,
    show_bytes: Callable[[TracedCall, int, int], str] = bytes_at,
) -> str:
    """An array of struct iovec.

    Args:
        call: whose it is.
        address: of the first.
        count: of them.
        left: bytes that are there in all; None for as many as each says.
        read: what they point to is shown, too.
        show_bytes: shows what one points to.
    """
    rest = left

    def show(data: bytes) -> str:
        nonlocal rest
        base, size = struct.unpack(call.facts.order + "QQ", data)
        text = pointer(base)
        if read:
            shown = size if rest is None else min(size, rest)
            if rest is not None:
                rest -= shown
            nothing = base and rest is not None and not shown
            text = '""' if nothing else show_bytes(call, base, shown)
        return f"{{iov_base={text}, iov_len={size}}}"

    return array_text(call, address, count, 16, show)


def _in_vectors(call: TracedCall, index: int, words: Words) -> str:
    count = call.arguments[int(words[0])]
    return vectors(call, call.arguments[index], count, None, read=True)


def _out_vectors(call: TracedCall, index: int, words: Words) -> str:
    count = call.arguments[int(words[0])]
    read = not call.failed
    return vectors(call, call.arguments[index], count, call.result if read else 0, read=read)


def _bare_vectors(call: TracedCall, index: int, words: Words) -> str:
    count = call.arguments[int(words[0])]
    return vectors(call, call.arguments[index], count, None, read=False)


def _strings(call: TracedCall, index: int, words: Words) -> str:
    """Argv: each of its strings."""
    return strings_at(call, call.arguments[index])


def strings_at(call: TracedCall, address: int) -> str:
    """An array of strings that ends with a null pointer."""
    if not address:
        return "NULL"
    found: list[str] = []
    for index in range(call.count(1 << 12)):
        word = call.number(address + 8 * index)
        if word is None:
            if not found:
                return pointer(address)
            found.append(f"... /* {pointer(address + 8 * index)} */")
            break
        if not word:
            break
        if not call.whole and index >= call.style.string_max:
            found.append("...")
            break
        found.append(string_at(call, word))
    return f"[{', '.join(found)}]"


def _environment(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    return strings_at(call, address) if call.whole else counted_strings(call, address)


def counted_strings(call: TracedCall, address: int) -> str:
    """The address of an array of strings, and how many there are."""
    if not address:
        return "NULL"
    count, unfinished = 0, ""
    while count < 1 << 16:
        word = call.number(address + 8 * count)
        if word is None:
            unfinished = ", unterminated" if count else ""
            break
        if not word:
            break
        count += 1
    else:
        unfinished = ", unterminated"
    if word is None and not count:
        return pointer(address)
    return f"{pointer(address)} /* {count} var{'' if count == 1 else 's'}{unfinished} */"


def _entries(call: TracedCall, data: bytes, wide: bool) -> Iterator[str]:
    order, at = call.facts.order, 0
    head = 19 if wide else 18
    while at + head <= len(data):
        ino, offset, size = struct.unpack_from(order + "QqH", data, at)
        if size < head or at + size > len(data):
            return
        name = data[at + head : at + size].partition(b"\0")[0]
        kind = data[at + 18] if wide else data[at + size - 1]
        parts = [f"d_ino={ino}", f"d_off={offset}", f"d_reclen={size}"]
        text = f"d_name={quoted(name, call.style.hexadecimal)}"
        shown = f"d_type={name_set('dirent_types').value(kind)}"
        yield f"{{{', '.join([*parts, *((shown, text) if wide else (text, shown))])}}}"
        at += size


def _directory_entries(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if call.failed or call.plain or call.result is None:
        return pointer(address)
    data = call.read(address, call.result) if call.result else b""
    if data is None:
        return pointer(address)
    found = list(_entries(call, data[:_ENTRIES], words[0] == "64"))
    if call.whole:
        return f"[{', '.join(found)}]"
    count = len(found)
    return f"{pointer(address)} /* {count} entr{'y' if count == 1 else 'ies'} */"


def _attribute(call: TracedCall, index: int, words: Words) -> str:
    """The value of an extended attribute, with the size that is behind it."""
    address = call.arguments[index]
    if words:
        return bytes_at(call, address, call.arguments[int(words[0])])
    if call.failed or not call.arguments[index + 1]:
        return pointer(address)
    return bytes_at(call, address, call.result or 0)


def _attributes(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if call.failed or not call.arguments[index + 1]:
        return pointer(address)
    return bytes_at(call, address, call.result or 0)


def _numbers(call: TracedCall, address: int, count: int, kind: str) -> str:
    order = call.facts.byteorder
    show = SCALARS[kind]

    def one(data: bytes) -> str:
        return show(call, int.from_bytes(data, order), ())

    return array_text(call, address, count, 4, one)


def _ids(call: TracedCall, index: int, words: Words) -> str:
    count = call.arguments[int(words[0])] & 0xFFFFFFFF
    return _numbers(call, call.arguments[index], count, "id")


def _out_ids(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if call.failed or not call.arguments[0] or call.result is None:
        return pointer(address)
    return _numbers(call, address, call.result, "id")


def _descriptor_pair(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    return pointer(address) if call.failed else _numbers(call, address, 2, "fd")


def _pages(call: TracedCall, index: int, words: Words) -> str:
    """Which pages are resident, of mincore."""
    address, size = call.arguments[index], call.arguments[1]
    data = None if call.failed else call.read(address, -(-size // 4096))
    if data is None:
        return pointer(address)
    shown = data[: call.style.string_max] if not call.whole else data
    texts = [str(byte & 1) for byte in shown]
    if len(shown) < len(data):
        texts.append("...")
    return f"[{', '.join(texts)}]"


def _processors(call: TracedCall, index: int, words: Words) -> str:
    """The processors of an affinity mask."""
    address = call.arguments[index]
    size = call.arguments[1] if words else call.result or 0
    data = None if call.failed and not words else call.read(address, size)
    if data is None or not size:
        return pointer(address)
    mask = int.from_bytes(data, "little")
    found = [str(bit) for bit in range(min(len(data) * 8, 1 << 13)) if mask >> bit & 1]
    return f"[{' '.join(found)}]"


BUFFERS: Final[dict[str, Kind]] = {
    "path": _path,
    "outpath": _out_path,
    "str": _string,
    "wbuf": _written,
    "buf": _buffer,
    "randombytes": _random,
    "wiov": _in_vectors,
    "iov": _out_vectors,
    "iovaddr": _bare_vectors,
    "vmiov": _out_vectors,
    "vmwiov": _in_vectors,
    "strings": _strings,
    "environment": _environment,
    "dirents": _directory_entries,
    "xattr": _attribute,
    "xattrs": _attributes,
    "ids": _ids,
    "outids": _out_ids,
    "fdpair": _descriptor_pair,
    "mincore": _pages,
    "cpuset": _processors,
}
"""Kinds of arguments that are text, bytes, or arrays."""
