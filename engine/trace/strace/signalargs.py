"""Arguments of calls about signals, and the signals that a program gets."""

import struct
from typing import Final

from engine.trace.strace.call import Kind, TracedCall, Words, pointer, signed
from engine.trace.strace.names import name_set, signal_mask, signal_name
from engine.trace.strace.structures import struct_form, struct_text

SIGINFO_SIZE: Final = 128
_MASK_SIZE: Final = 8
_SIGCHLD, _SIGSYS, _SIGTRAP = 17, 31, 5
_FAULTS: Final = frozenset((4, 7, 8, 11))
_CODES: Final = {
    4: "sigill_codes", 5: "sigtrap_codes", 7: "sigbus_codes", 8: "sigfpe_codes",
    11: "sigsegv_codes", 17: "sigchld_codes", 29: "sigpoll_codes", 31: "sigsys_codes",
}  # fmt: skip
_SI_USER, _SI_TIMER, _SI_SIGIO, _SI_TKILL = 0, -2, -5, -6
_CLD_EXITED: Final = 1


def mask_at(call: TracedCall, address: int, size: int, least: int = _MASK_SIZE) -> str:
    """The signals of the mask at an address."""
    data = call.read(address, size) if least <= size <= _MASK_SIZE else None
    return pointer(address) if data is None else signal_mask(data)


def _mask(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if call.failed:
        return pointer(address)
    size = call.arguments[int(words[0])]
    if call.name.startswith("signalfd"):
        size &= (1 << 64) - 1
    least = 1 if call.name == "rt_sigpending" else _MASK_SIZE
    return mask_at(call, address, size, least)


def _mask_of_six(call: TracedCall, index: int, words: Words) -> str:
    """The sixth argument of pselect6: a mask's address and its size."""
    address = call.arguments[index]
    data = call.read(address, 16)
    if data is None:
        return pointer(address)
    mask, size = struct.unpack(call.facts.order + "QQ", data)
    return f"{{sigmask={mask_at(call, mask, size)}, sigsetsize={size}}}"


def _action(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    form = "QQQ8s" if call.facts.linux.restorer else "QQ8s"
    data = None if call.failed else call.read(address, struct.calcsize("<" + form))
    if data is None:
        return pointer(address)
    handler, flags, *more, mask = struct.unpack(call.facts.order + form, data)
    names = {0: "SIG_DFL", 1: "SIG_IGN", (1 << 64) - 1: "SIG_ERR"}
    parts = [
        f"sa_handler={names.get(handler) or pointer(handler)}",
        f"sa_mask={signal_mask(mask)}",
        f"sa_flags={name_set('sigact_flags').flags(flags)}",
    ]
    if more and flags & 0x04000000:
        parts.append(f"sa_restorer={pointer(more[0])}")
    return f"{{{', '.join(parts)}}}"


def signal_info(info: bytes, order: str = "<") -> str:
    """A siginfo_t in braces.

    Args:
        info: its 128 bytes.
        order: of bytes, for `struct`.
    """
    info = info.ljust(SIGINFO_SIZE, b"\0")
    number, error, code = struct.unpack_from(order + "iii", info)
    if not number and not code and not any(info[12:32]):
        return "{}"
    shown = name_set("siginfo_codes").by_number.get(code & 0xFFFFFFFF)
    if shown is None and number in _CODES:
        shown = name_set(_CODES[number]).by_number.get(code)
    parts = [f"si_signo={signal_name(number)}", f"si_code={shown or f'{code & 0xFFFFFFFF:#x}'}"]
    if error:
        import errno

        parts.append(f"si_errno={errno.errorcode.get(error, error)}")
    pid, user = struct.unpack_from(order + "iI", info, 16)
    source = [f"si_pid={pid}", f"si_uid={user}"]
    (whole,) = struct.unpack_from(order + "i", info, 24)
    pointed = int.from_bytes(info[24:32], "little")
    value = [f"si_int={whole}", f"si_ptr={pointer(pointed)}"]
    if code <= 0:
        if code == _SI_TIMER:
            timer, overrun = struct.unpack_from(order + "ii", info, 16)
            parts += [f"si_timerid={timer:#x}" if timer else "si_timerid=0",
                      f"si_overrun={overrun}", *value]  # fmt: skip
        elif code == _SI_SIGIO:
            band, fd = struct.unpack_from(order + "qi", info, 16)
            parts += [f"si_band={band}", f"si_fd={fd}"]
        else:
            has_value = code not in (_SI_USER, _SI_TKILL) and pointed
            parts += source + (value if has_value else [])
    elif number == _SIGCHLD:
        status, user_time, system_time = struct.unpack_from(order + "i4xqq", info, 24)
        shown = str(status) if code == _CLD_EXITED else signal_name(status)
        parts += [*source, f"si_status={shown}"]
        parts += [f"si_utime={_ticks(user_time)}", f"si_stime={_ticks(system_time)}"]
    elif number in _FAULTS or number == _SIGTRAP:
        address = int.from_bytes(info[16:24], "little")
        if number == _SIGTRAP:
            parts += source
        else:
            parts.append(f"si_addr={pointer(address)}")
    elif number == _SIGSYS:
        address, call, arch = struct.unpack_from(order + "QiI", info, 16)
        parts += [f"si_call_addr={pointer(address)}", f"si_syscall={call}", f"si_arch={arch:#x}"]
    elif pid or user or pointed:
        parts += source + (value if pointed else [])
    return f"{{{', '.join(parts)}}}"


def _ticks(value: int) -> str:
    """A clock_t: with its seconds as a comment where it has any."""
    if not value:
        return "0"
    seconds = f"{value // 100}.{value % 100:02d}".rstrip("0").rstrip(".")
    return f"{value} /* {seconds} s */"


def _info(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    data = None if call.failed else call.read(address, SIGINFO_SIZE)
    if data is None:
        return pointer(address)
    return signal_info(data, call.facts.order)


def _frame(call: TracedCall, index: int, words: Words) -> str:
    """The mask of the frame that rt_sigreturn leaves."""
    mask = call.saved.get("mask")
    if call.plain:
        return f"{{mask={pointer(call.saved['mask_at'])}}}"
    return "{mask=[]}" if mask is None else f"{{mask={signal_mask(mask)}}}"


def _event(call: TracedCall, index: int, words: Words) -> str:
    """Struct sigevent."""
    address = call.arguments[index]
    data = call.read(address, 64)
    if data is None:
        return pointer(address)
    order = call.facts.order
    value, number, notify = struct.unpack_from(order + "Qii", data)
    low = signed(value, 32)
    parts = [
        f"sigev_value={{sival_int={low}, sival_ptr={pointer(value)}}}",
        f"sigev_signo={signal_name(number)}",
    ]
    parts.append(f"sigev_notify={name_set('sigev_value').value(notify)}")
    if notify == 4:
        parts.append(f"sigev_notify_thread_id={struct.unpack_from(order + 'i', data, 16)[0]}")
    elif notify == 2:
        function, attribute = struct.unpack_from(order + "QQ", data, 16)
        parts.append(f"sigev_notify_function={pointer(function)}")
        parts.append(f"sigev_notify_attributes={pointer(attribute)}")
    return f"{{{', '.join(parts)}}}"


def _timed(call: TracedCall, index: int, words: Words) -> str:
    """The time that recvmmsg had, as it was when the call was made."""
    address = call.arguments[index]
    data = call.saved.get("timeout")
    return pointer(address) if data is None else struct_text(call, data, struct_form("timespec"))


SIGNALS: Final[dict[str, Kind]] = {
    "sigset": _mask,
    "sigset6": _mask_of_six,
    "sigaction": _action,
    "siginfo": _info,
    "sigframe": _frame,
    "sigevent": _event,
    "recvtimeout": _timed,
}
"""Kinds of arguments about signals."""
