"""Numbers as arguments and as fields of structures."""

from typing import Final

from engine.trace.strace.call import Scalar, TracedCall, Words, pointer, signed
from engine.trace.strace.names import NameSet, name_set, signal_name

_LOW: Final = (1 << 32) - 1
_AT_FDCWD: Final = -100
_TYPE: Final = 0o170000
_O_DIRECTORY: Final = "O_DIRECTORY"
_LOOPBACK: Final = 1
_INFINITY: Final = (1 << 64) - 1


def _int(call: TracedCall, value: int, words: Words) -> str:
    return str(signed(value, 32))


def _unsigned(call: TracedCall, value: int, words: Words) -> str:
    return str(value & _LOW)


def _long(call: TracedCall, value: int, words: Words) -> str:
    return str(signed(value, 64))


def _unsigned_long(call: TracedCall, value: int, words: Words) -> str:
    return str(value & (1 << 64) - 1)


def hexadecimal(value: int) -> str:
    """A number as %#x shows it."""
    return f"{value:#x}" if value else "0"


def padded(value: int, width: int = 8) -> str:
    """A number as %#08x shows it."""
    return f"{value:#0{width}x}" if value else "0" * width


def _hex(call: TracedCall, value: int, words: Words) -> str:
    return hexadecimal(value & _LOW)


def _long_hex(call: TracedCall, value: int, words: Words) -> str:
    return hexadecimal(value & (1 << 64) - 1)


def octal(value: int) -> str:
    """A number as %#03o shows it."""
    return f"0{value:02o}" if value else "000"


def mode(call: TracedCall, value: int, words: Words) -> str:
    """Permissions."""
    return octal(value & 0xFFFF)


def file_mode(call: TracedCall, value: int, words: Words = ()) -> str:
    """The type of a file and its permissions."""
    value &= 0xFFFF
    name = name_set("modetypes").by_number.get(value & _TYPE)
    if name is None:
        return octal(value)
    bits = "".join(
        f"|{text}"
        for text, bit in (("S_ISUID", 0o4000), ("S_ISGID", 0o2000), ("S_ISVTX", 0o1000))
        if value & bit
    )
    return f"{name}{bits}|{octal(value & 0o777)}"


def descriptor(call: TracedCall, value: int, words: Words = ()) -> str:
    """A descriptor, with its file where that is asked for."""
    number = signed(value, 32)
    path = call.path_of(number) if call.style.paths and number >= 0 else ""
    return f"{number}<{path}>" if path else str(number)


def directory(call: TracedCall, value: int, words: Words) -> str:
    """The descriptor of a directory."""
    if signed(value, 32) != _AT_FDCWD:
        return descriptor(call, value)
    path = call.path_of(_AT_FDCWD) if call.style.paths else ""
    return f"AT_FDCWD<{path}>" if path else "AT_FDCWD"


def _flags(call: TracedCall, value: int, words: Words) -> str:
    if words[0] == "open_mode_flags":
        return opened_flags(call, value, access=False)
    return name_set(words[0]).flags(value & _LOW)


def _enum(call: TracedCall, value: int, words: Words) -> str:
    return name_set(words[0]).value(value & _LOW)


def open_names(call: TracedCall) -> NameSet:
    """O_ flags of the architecture."""
    known = name_set("open_mode_flags")
    own = dict(call.facts.linux.open_flags)
    if not own:
        return known
    directory_flag = own.get(_O_DIRECTORY, 0x10000)
    pairs = tuple(
        (name, 0x400000 | directory_flag if name == "O_TMPFILE" else own.get(name, number))
        for name, number in known.names
    )
    return NameSet(known.unknown, pairs, {})


def opened_flags(call: TracedCall, value: int, *, access: bool = True) -> str:
    """Flags of open.

    Args:
        call: for its architecture.
        value: the flags.
        access: whether O_RDONLY and so on are among them.
    """
    value &= _LOW
    names = open_names(call)
    if not access:
        return names.flags(value)
    first = name_set("open_access_modes").by_number[value & 3]
    rest = value & ~3
    if not rest:
        return first
    text = names.flags(rest)
    return f"{first}|{text.partition(' ')[0]}"


def clock(call: TracedCall, value: int, words: Words) -> str:
    """A clock: a name, or that of a process or thread."""
    number = signed(value, 32)
    if number >= 0:
        return name_set("clocknames").value(number)
    pid, thread, kind = ~(number >> 3), number & 4, number & 3
    if kind == 3 and not thread:
        return f"FD_TO_CLOCKID({descriptor(call, pid)})"
    name = name_set("cpuclocknames").value(kind)
    return f"MAKE_{'THREAD' if thread else 'PROCESS'}_CPUCLOCK({pid}, {name})"


def device_number(value: int) -> str:
    """A device by its major and minor number."""
    major = value >> 8 & 0xFFF | value >> 32 & 0xFFFFF000
    minor = value & 0xFF | value >> 12 & 0xFFFFFF00
    return f"makedev({hexadecimal(major)}, {hexadecimal(minor)})"


def user(call: TracedCall, value: int, words: Words) -> str:
    """A user's or group's id."""
    value &= _LOW
    return "-1" if value == _LOW else str(value)


def resource_limit(call: TracedCall, value: int, words: Words) -> str:
    """A limit: a multiple of 1024 where it is one."""
    if value == _INFINITY:
        return "RLIM64_INFINITY"
    if value > 1024 and not value % 1024:
        return f"{value // 1024}*1024"
    return str(value)


def scheduler(call: TracedCall, value: int, words: Words = ()) -> str:
    """A scheduling policy."""
    reset, policy = value & 0x40000000, value & 0xFFFFFFFF & ~0x40000000
    text = name_set("schedulers").value(policy)
    return f"{text}|SCHED_RESET_ON_FORK" if reset else text


def _signal(call: TracedCall, value: int, words: Words) -> str:
    return signal_name(signed(value, 32))


def _address(call: TracedCall, value: int, words: Words) -> str:
    return pointer(value)


def interface(call: TracedCall, value: int, words: Words) -> str:
    """A network interface: guests have `lo` alone."""
    value &= _LOW
    return 'if_nametoindex("lo")' if value == _LOOPBACK else str(value)


def _ethernet_protocol(call: TracedCall, value: int, words: Words) -> str:
    """A protocol of Ethernet, in the network's order; the word stands behind an unknown one."""
    number = int.from_bytes((value & 0xFFFF).to_bytes(2, call.facts.byteorder), "big")
    known = name_set("ethernet_protocols")
    return f"htons({NameSet(words[0], known.names, known.by_number).value(number)})"


SCALARS: Final[dict[str, Scalar]] = {
    "d": _int,
    "u": _unsigned,
    "ld": _long,
    "lu": _unsigned_long,
    "x": _hex,
    "lx": _long_hex,
    "mode": mode,
    "filemode": file_mode,
    "fd": descriptor,
    "dirfd": directory,
    "flags": _flags,
    "enum": _enum,
    "clock": clock,
    "id": user,
    "rlim": resource_limit,
    "scheduler": scheduler,
    "signal": _signal,
    "addr": _address,
    "ifindex": interface,
    "ethproto": _ethernet_protocol,
    "oflags": lambda call, value, words: opened_flags(call, value),
    "oflagsonly": lambda call, value, words: opened_flags(call, value, access=False),
}
"""The kinds of numbers, each a function of (call, number, words of the kind)."""
