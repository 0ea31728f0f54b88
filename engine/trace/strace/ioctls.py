"""Requests of ioctl by name, and what their arguments point to."""

import struct
from functools import cache
from typing import Final

from engine.trace.strace.call import Kind, TracedCall, Words, pointer, signed
from engine.trace.strace.names import name_set, table_lines
from engine.trace.strace.quoting import quoted
from engine.trace.strace.scalars import descriptor, hexadecimal
from engine.trace.strace.sockets import address_text
from engine.trace.strace.structures import struct_at

_DIRECTIONS: Final = {0: "_IOC_NONE", 1: "_IOC_WRITE", 2: "_IOC_READ", 3: "_IOC_READ|_IOC_WRITE"}
_TCGETS, _TCSETS, _TCSETSF = 0x5401, 0x5402, 0x5404
_SETTERS: Final = range(_TCSETS, _TCSETSF + 1)
_TCGETS2: Final = 0x802C542A
_SET2: Final = frozenset((0x402C542B, 0x402C542C, 0x402C542D))
_GIVES_NUMBER: Final = frozenset(
    # FIONREAD TIOCOUTQ TIOCGETD TIOCGPGRP TIOCGSID TIOCGSOFTCAR TIOCGEXCL TIOCGPTN TIOCGPKT,
    # BLKROGET BLKSSZGET SIOCATMARK SIOCGPGRP FS_IOC_GETVERSION, FIOQSIZE
    (0x541B, 0x5411, 0x5424, 0x540F, 0x5429, 0x5419, 0x80045440, 0x80045430, 0x80045438,
     0x125E, 0x1268, 0x8905, 0x8904, 0x80087601)
)  # fmt: skip
_TAKES_NUMBER: Final = frozenset(
    # FIONBIO FIOASYNC TIOCSPGRP TIOCSSOFTCAR TIOCPKT TIOCSPTLCK SIOCSPGRP
    (0x5421, 0x5452, 0x5410, 0x541A, 0x5420, 0x40045431, 0x8902)
)
_NO_ARGUMENT: Final = frozenset(
    # FIOCLEX FIONCLEX TIOCSBRK TIOCCBRK TIOCNOTTY TIOCEXCL TIOCNXCL TIOCVHANGUP BLKFLSBUF...
    (0x5451, 0x5450, 0x5427, 0x5428, 0x5422, 0x540C, 0x540D, 0x5437)
)
_GWINSZ, _SWINSZ, _SCTTY, _CBRK, _XONC, _FLSH, _SETD, _LINUX, _STI = (
    0x5413, 0x5414, 0x540E, 0x5409, 0x540A, 0x540B, 0x5423, 0x541C, 0x5412,
)  # fmt: skip
_PEER: Final = 0x5441
_CLONE: Final = 0x40049409
"""FICLONE: its argument is a descriptor."""
_INTERFACES: Final = range(0x8912, 0x8995)
_NUMBER_TEXTS: Final = frozenset((0x5424, 0x5423))


@cache
def _names() -> dict[int, str]:
    found = {}
    for line in table_lines("ioctls.txt"):
        number, names = line.split()
        found[int(number, 0)] = " or ".join(names.split(","))
    return found


def request_name(request: int) -> str:
    """The name of a request, or what its number is made of."""
    found = _names().get(request)
    if found is not None:
        return found
    direction = _DIRECTIONS[request >> 30]
    parts = [direction, f"{request >> 8 & 0xFF:#x}", f"{request & 0xFF:#x}"]
    parts = [parts[0], *(hexadecimal(int(part, 16)) for part in parts[1:])]
    return f"_IOC({', '.join(parts)}, {hexadecimal(request >> 16 & 0x3FFF)})"


def _request(call: TracedCall, index: int, words: Words) -> str:
    return request_name(call.arguments[index] & 0xFFFFFFFF)


def ioctl_is_late(call: TracedCall) -> bool:
    """True if what the argument points to is stored by the call."""
    request = call.arguments[1] & 0xFFFFFFFF
    if request in _GIVES_NUMBER or request in (_TCGETS, _TCGETS2, _GWINSZ):
        return True
    return request in _INTERFACES and request & 1 != 0 and request != 0x8912


def _argument(call: TracedCall, index: int, words: Words) -> str | None:
    request, address = call.arguments[1] & 0xFFFFFFFF, call.arguments[index]
    if request in _NO_ARGUMENT:
        return None
    if request in (_TCGETS, _TCGETS2) or request in _SETTERS or request in _SET2:
        return _terminal(call, address, second=request == _TCGETS2 or request in _SET2)
    if request in (_GWINSZ, _SWINSZ):
        return struct_at(call, address, "winsize")
    if request in _GIVES_NUMBER or request in _TAKES_NUMBER or request == _SETD:
        value = (
            None
            if call.failed and request in _GIVES_NUMBER
            else call.number(address, 4, signed=True)
        )
        if value is None:
            return pointer(address)
        if request in _NUMBER_TEXTS:
            return f"[{name_set('term_line_discs').value(value)}]"
        return f"[{value}]"
    if request == _XONC:
        return name_set("tcxonc_options").value(address & 0xFFFFFFFF)
    if request == _FLSH:
        return name_set("tcflsh_options").value(address & 0xFFFFFFFF)
    if request == _CLONE:
        return descriptor(call, address)
    if request in (_SCTTY, _CBRK):
        return str(signed(address, 32))
    if request == _STI:
        data = call.read(address, 1)
        return pointer(address) if data is None else f"[{quoted(data)}]"
    if request == _PEER:
        from engine.trace.strace.scalars import opened_flags

        return opened_flags(call, address)
    if request in _INTERFACES:
        return _interface(call, request, address)
    return hexadecimal(address)


def _interface(call: TracedCall, request: int, address: int) -> str:
    """Struct ifreq: the name of an interface and what is asked for."""
    data = call.read(address, 40)
    if data is None or request == 0x8912:
        return pointer(address)
    name = quoted(data[:16].partition(b"\0")[0])
    order = call.facts.order
    if request == 0x8910:
        return f"{{ifr_ifindex={struct.unpack_from(order + 'i', data, 16)[0]}, ifr_name={name}}}"
    text = f"{{ifr_name={name}"
    if call.failed or call.result is None:
        return f"{text}}}"
    number = struct.unpack_from(order + "i", data, 16)[0]
    shown = {
        0x8921: f"ifr_mtu={number}",
        0x8933: f"ifr_ifindex={number}",
        0x8942: f"ifr_qlen={number}",
    }.get(request)
    if request in (0x8915, 0x8917, 0x8919, 0x891B):
        field = {0x8915: "addr", 0x8917: "dstaddr", 0x8919: "broadaddr", 0x891B: "netmask"}
        shown = f"ifr_{field[request]}={address_text(call, data[16:32])}"
    return f"{text}, {shown}}}" if shown else pointer(address)


def _terminal(call: TracedCall, address: int, *, second: bool) -> str:
    """Struct termios: the kernel's, of 36 bytes, or termios2 with speeds."""
    data = None if call.failed else call.read(address, 44 if second else 36)
    if data is None:
        return pointer(address)
    order = call.facts.order
    taken, given, control, local, line = struct.unpack_from(order + "IIIIB", data)
    parts = [
        f"c_iflag={_bare('term_iflags', taken)}",
        f"c_oflag={_output_flags(given)}",
        f"c_cflag={_control_flags(control)}",
        f"c_lflag={_bare('term_lflags', local)}",
    ]
    if not call.whole:
        return f"{{{', '.join(parts)}, ...}}"
    parts.append(f"c_line={name_set('term_line_discs').value(line)}")
    names = name_set("termios_cc").by_number
    characters = [
        f"[{names.get(at, at)}]={hexadecimal(byte)}" for at, byte in enumerate(data[17:36])
    ]
    parts.append(f"c_cc=[{', '.join(characters)}]")
    if second:
        speeds = struct.unpack_from(order + "II", data, 36)
        parts += [f"c_ispeed={speeds[0]}", f"c_ospeed={speeds[1]}"]
    return f"{{{', '.join(parts)}}}"


def _bare(name: str, value: int) -> str:
    """Flags that strace gives no word for where there are none."""
    return "" if not value else name_set(name).flags(value).partition(" ")[0]


def _output_flags(value: int) -> str:
    parts = []
    for name, mask in (
        ("nldly", 0o400), ("crdly", 0o3000), ("tabdly", 0o14000), ("bsdly", 0o20000),
        ("vtdly", 0o40000), ("ffdly", 0o100000),
    ):  # fmt: skip
        parts.append(name_set(f"term_oflags_{name}").value(value & mask))
        value &= ~mask
    return "|".join([*parts, _bare("term_oflags", value)])


def _control_flags(value: int) -> str:
    parts = [name_set("baud_options").value(value & 0o10017)]
    inner = value >> 16 & 0o10017
    if inner:
        parts.append(f"{name_set('baud_options').value(inner)}<<IBSHIFT")
    parts.append(name_set("term_cflags_csize").value(value & 0o60))
    rest = value & ~(0o10017 | 0o10017 << 16 | 0o60)
    return "|".join([*parts, _bare("term_cflags", rest)])


IOCTLS: Final[dict[str, Kind]] = {"ioctl": _request, "ioctl_argument": _argument}
"""Kinds of arguments of ioctl."""
