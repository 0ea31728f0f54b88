"""Arguments of calls about processes and threads: clone, wait, prctl, futex, capabilities."""

import struct
from typing import Final

from engine.trace.strace.buffers import array_text, bytes_at, string_at
from engine.trace.strace.call import Kind, TracedCall, Words, pointer, signed
from engine.trace.strace.names import name_set, signal_name
from engine.trace.strace.quoting import quoted
from engine.trace.strace.scalars import descriptor, hexadecimal, padded
from engine.trace.strace.structures import struct_at

_PIDFD, _PARENT_SETTID, _SETTLS = 0x1000, 0x100000, 0x80000
_CHILD_SETTID, _CHILD_CLEARTID = 0x1000000, 0x200000
_INTO_CGROUP: Final = 0x200000000
_CSIGNAL: Final = 0xFF
_CLONE_ARGS: Final = (64, 80, 88)


def clone_is_late(call: TracedCall) -> bool:
    """True if some of clone's arguments are shown when it returns."""
    late = _PIDFD | _PARENT_SETTID | _CHILD_SETTID | _CHILD_CLEARTID | _SETTLS
    return bool(call.arguments[0] & late)


def clone_text(call: TracedCall) -> tuple[str, str]:
    """The arguments of clone: those shown when it is made, those when it returns."""
    value = call.arguments
    flags, signal = value[0] & ~_CSIGNAL & 0xFFFFFFFFFFFFFFFF, value[0] & _CSIGNAL
    at = 1
    parts = [f"child_stack={pointer(value[at])}"]
    if call.name == "clone2":
        parts.append(f"stack_size={hexadecimal(value[2])}")
        at = 2
    text = name_set("clone_flags").flags(flags) if flags else ""
    parts.append("flags=" + "|".join(filter(None, (text, signal_name(signal) if signal else ""))))
    if not flags and not signal:
        parts[-1] = "flags=0"
    parent, child, tls = at + 1, at + 2, at + 3
    if call.facts.linux.clone_backwards:
        child, tls = tls, child
    more = []
    if flags & (_PARENT_SETTID | _PIDFD):
        number = None if call.failed else call.number(value[parent], 4, signed=True)
        shown = pointer(value[parent]) if number is None else f"[{number}]"
        more.append(f"parent_tid={shown}")
    if flags & _SETTLS and tls < len(value):
        more.append(f"tls={pointer(value[tls])}")
    if flags & (_CHILD_SETTID | _CHILD_CLEARTID):
        more.append(f"child_tidptr={pointer(value[child])}")
    return ", ".join(parts), "".join(f", {each}" for each in more)


def _clone(call: TracedCall, index: int, words: Words) -> str:
    return clone_text(call)[0]


def clone_rest(call: TracedCall, index: int, words: Words) -> str:
    """The arguments of clone that are shown when it returns."""
    return clone_text(call)[1]


def clone_args_are_late(call: TracedCall) -> bool:
    """True if clone3 stores something."""
    flags = call.number(call.arguments[0])
    return bool((flags or 0) & (_PIDFD | _PARENT_SETTID))


def clone_args_rest(call: TracedCall, index: int, words: Words) -> str:
    """The ids that clone3 has stored, behind an arrow."""
    data = None if call.failed else call.read(call.arguments[index], 40)
    if data is None:
        return ""
    flags, pidfd, _, parent, _ = struct.unpack(call.facts.order + "5Q", data)
    stored = []
    if flags & _PIDFD and (number := call.number(pidfd, 4, signed=True)) is not None:
        stored.append(f"pidfd=[{descriptor(call, number)}]")
    if flags & _PARENT_SETTID and (number := call.number(parent, 4, signed=True)) is not None:
        stored.append(f"parent_tid=[{number}]")
    return f" => {{{', '.join(stored)}}}" if stored else ""


def _clone_arguments(call: TracedCall, index: int, words: Words) -> str:
    """Struct clone_args."""
    address, size = call.arguments[index], call.arguments[int(words[0])]
    length = min(size, _CLONE_ARGS[-1])
    data = call.read(address, length) if length >= _CLONE_ARGS[0] else None
    if data is None:
        return pointer(address)
    flags, pidfd, child, parent, signal, stack, stack_size, tls, tids, count, cgroup = (
        struct.unpack(call.facts.order + "11Q", data.ljust(88, b"\0"))
    )
    known, more = name_set("clone_flags"), name_set("clone3_flags")
    low = flags & sum({bit for _, bit in known.names})
    names = [each.flags(part) for each, part in ((known, low), (more, flags & ~low)) if part]
    parts = [f"flags={'|'.join(names) or '0'}"]
    if flags & _PIDFD:
        parts.append(f"pidfd={pointer(pidfd)}")
    if flags & (_CHILD_SETTID | _CHILD_CLEARTID):
        parts.append(f"child_tid={pointer(child)}")
    if flags & _PARENT_SETTID:
        parts.append(f"parent_tid={pointer(parent)}")
    parts.append(f"exit_signal={signal_name(signal) if signal < 1 << 31 else signal}")
    parts += [f"stack={pointer(stack)}", f"stack_size={hexadecimal(stack_size)}"]
    if flags & _SETTLS:
        parts.append(f"tls={pointer(tls)}")
    if tids or count:
        shown = pointer(tids)
        if tids and 0 < count <= 32:
            order = call.facts.order
            shown = array_text(
                call, tids, count, 4, lambda one: str(struct.unpack(order + "i", one)[0])
            )
        parts += [f"set_tid={shown}", f"set_tid_size={count}"]
    if length > 80 and (cgroup or flags & _INTO_CGROUP):
        parts.append(f"cgroup={cgroup}")
    return f"{{{', '.join(parts)}}}"


def _wait_status(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    status = None
    if not call.failed and call.result:
        status = call.number(address, 4)
    return pointer(address) if status is None else f"[{status_text(status)}]"


def status_text(status: int) -> str:
    """A status of wait4 in the words of its macros."""
    signal = status & 0x7F
    if status & 0xFF == 0x7F:
        stop = status >> 8 & 0xFF
        extra = " | 0x80" if stop & 0x80 else ""
        text = f"{{WIFSTOPPED(s) && WSTOPSIG(s) == {signal_name(stop & 0x7F)}{extra}}}"
        event = status >> 16
        return f"{text} | {name_set('ptrace_events').value(event)} << 16" if event else text
    if status == 0xFFFF:
        return "{WIFCONTINUED(s)}"
    if signal:
        core = " && WCOREDUMP(s)" if status & 0x80 else ""
        return f"{{WIFSIGNALED(s) && WTERMSIG(s) == {signal_name(signal)}{core}}}"
    return f"{{WIFEXITED(s) && WEXITSTATUS(s) == {status >> 8 & 0xFF}}}"


# -- prctl -------------------------------------------------------------------------------------

_PR: Final = {
    "SET_PDEATHSIG": 1, "GET_PDEATHSIG": 2, "GET_DUMPABLE": 3, "SET_DUMPABLE": 4,
    "GET_KEEPCAPS": 7, "SET_KEEPCAPS": 8, "GET_TIMING": 13, "SET_TIMING": 14, "SET_NAME": 15,
    "GET_NAME": 16, "GET_SECCOMP": 21, "SET_SECCOMP": 22, "CAPBSET_READ": 23, "CAPBSET_DROP": 24,
    "GET_TSC": 25, "SET_TSC": 26, "GET_SECUREBITS": 27, "SET_SECUREBITS": 28,
    "SET_TIMERSLACK": 29, "GET_TIMERSLACK": 30, "MCE_KILL": 33, "MCE_KILL_GET": 34,
    "SET_MM": 35, "SET_CHILD_SUBREAPER": 36, "GET_CHILD_SUBREAPER": 37,
    "SET_NO_NEW_PRIVS": 38, "GET_NO_NEW_PRIVS": 39, "GET_TID_ADDRESS": 40,
    "SET_THP_DISABLE": 41, "GET_THP_DISABLE": 42, "CAP_AMBIENT": 47, "SET_PTRACER": 0x59616D61,
    "SET_VMA": 0x53564D41,
}  # fmt: skip
_OF_PRCTL: Final = {number: name for name, number in _PR.items()}
_NO_ARGUMENT: Final = frozenset(
    (
        *("GET_DUMPABLE", "GET_KEEPCAPS", "GET_SECCOMP", "GET_TIMERSLACK", "GET_TIMING"),
        "GET_SECUREBITS",
    )
)
_POINTERS: Final = frozenset(
    ["GET_NAME", "GET_PDEATHSIG", "GET_TSC", "GET_CHILD_SUBREAPER", "GET_TID_ADDRESS"]
)


def prctl_is_late(call: TracedCall) -> bool:
    """True if what prctl's second argument points to is stored by the call."""
    return _OF_PRCTL.get(call.arguments[0] & 0xFFFFFFFF, "") in _POINTERS


def _prctl(call: TracedCall, index: int, words: Words) -> str:
    return name_set("prctl_options").value(call.arguments[0] & 0xFFFFFFFF)


def _rest(call: TracedCall, first: int) -> list[str]:
    return [hexadecimal(value) for value in call.arguments[first:5]]


def _prctl_stored(call: TracedCall, name: str, address: int) -> str:
    if call.failed:
        return pointer(address)
    if name == "GET_NAME":
        return string_at(call, address, 16)
    size = 8 if name == "GET_TID_ADDRESS" else 4
    value = call.number(address, size)
    if value is None:
        return pointer(address)
    if name == "GET_PDEATHSIG":
        return f"[{signal_name(value)}]" if value else "[0]"
    if name == "GET_TSC":
        return f"[{name_set('pr_tsc').value(value)}]"
    return f"[{pointer(value) if size == 8 else value}]"


def _prctl_arguments(call: TracedCall, index: int, words: Words) -> str | None:
    name = _OF_PRCTL.get(call.arguments[0] & 0xFFFFFFFF, "")
    second, third = call.arguments[1], call.arguments[2]
    if name in _NO_ARGUMENT:
        return None
    if name in _POINTERS:
        return _prctl_stored(call, name, second)
    if name in ("SET_DUMPABLE", "SET_TSC"):
        return name_set("pr_dumpable" if name == "SET_DUMPABLE" else "pr_tsc").value(second)
    if name in ("CAPBSET_READ", "CAPBSET_DROP"):
        return name_set("cap").value(second)
    if name == "SET_NAME":
        found = call.cstring(second, 16)
        if found is None:
            return pointer(second)
        comm, _ = found
        return quoted(comm[:15], call.style.hexadecimal) + ("..." if len(comm) > 15 else "")
    if name == "SET_PDEATHSIG":
        return str(second) if second > 128 else signal_name(second)
    if name == "SET_PTRACER":
        return "PR_SET_PTRACER_ANY" if signed(second, 32) == -1 else str(signed(second, 32))
    if name == "SET_SECUREBITS":
        return name_set("secbits").flags(second)
    if name == "SET_TIMERSLACK":
        return str(signed(second, 64))
    if name in ("SET_CHILD_SUBREAPER", "SET_KEEPCAPS", "SET_TIMING"):
        return str(second)
    if name in ("SET_NO_NEW_PRIVS", "SET_THP_DISABLE"):
        return ", ".join([str(second), *_rest(call, 2)])
    if name == "SET_SECCOMP":
        text = name_set("seccomp_mode").value(second)
        if second == 1:
            return text
        if second == 2:
            return f"{text}, {_filter(call, third)}"
        return ", ".join([text, *_rest(call, 2)])
    if name == "CAP_AMBIENT":
        text = name_set("pr_cap_ambient").value(second)
        if second in (1, 2, 3):
            return ", ".join([text, name_set("cap").value(third), *_rest(call, 3)])
        return ", ".join([text, *_rest(call, 2)])
    if name == "SET_VMA" and not second:
        text = string_at(call, call.arguments[4])
        return f"PR_SET_VMA_ANON_NAME, {pointer(third)}, {call.arguments[3]}, {text}"
    if name == "MCE_KILL":
        text = name_set("pr_mce_kill").value(second)
        shown = name_set("pr_mce_kill_policy").value(third) if second == 1 else hexadecimal(third)
        return ", ".join([text, shown, *_rest(call, 3)])
    return ", ".join(_rest(call, 1))


def prctl_result(call: TracedCall, result: int) -> str:
    """The result of prctl, by its option."""
    name = _OF_PRCTL.get(call.arguments[0] & 0xFFFFFFFF, "")
    if name == "GET_DUMPABLE":
        call.comment = name_set("pr_dumpable").by_number.get(result, "")
    elif name == "GET_SECUREBITS" and result:
        call.comment = name_set("secbits").flags(result)
        return f"{result:#x}"
    elif name == "MCE_KILL_GET":
        call.comment = name_set("pr_mce_kill_policy").by_number.get(result, "")
    return str(result)


def _filter(call: TracedCall, address: int) -> str:
    """Struct sock_fprog: the filter's length and where it is."""
    data = call.read(address, 16)
    if data is None:
        return pointer(address)
    length, where = struct.unpack(call.facts.order + "H6xQ", data)
    return f"{{len={length}, filter={pointer(where)}}}"


def _seccomp_flags(call: TracedCall, index: int, words: Words) -> str:
    operation, value = call.arguments[0] & 0xFFFFFFFF, call.arguments[index] & 0xFFFFFFFF
    return name_set("seccomp_filter_flags").flags(value) if operation == 1 else hexadecimal(value)


def _seccomp_argument(call: TracedCall, index: int, words: Words) -> str:
    operation, address = call.arguments[0] & 0xFFFFFFFF, call.arguments[index]
    if operation == 1:
        return _filter(call, address)
    if operation == 2:
        value = call.number(address, 4)
        if value is not None:
            return f"[{name_set('seccomp_ret_action').value(value)}]"
    return pointer(address)


# -- futex -------------------------------------------------------------------------------------

_FUTEX_COMMAND: Final = 0x7F
_FUTEX_CLOCK: Final = 0x100
_TIMED: Final = frozenset((0, 6, 9, 11, 13))


def _futex_operation(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    names = name_set("futexops")
    if value & _FUTEX_CLOCK and value & ~_FUTEX_CLOCK in names.by_number:
        return f"{names.by_number[value & ~_FUTEX_CLOCK]}|FUTEX_CLOCK_REALTIME"
    return names.value(value)


def _futex(call: TracedCall, index: int, words: Words) -> str | None:
    _, operation, value, timeout, second, third = call.arguments[:6]
    command = operation & _FUTEX_COMMAND
    value, third, count = value & 0xFFFFFFFF, third & 0xFFFFFFFF, timeout & 0xFFFFFFFF
    time = struct_at(call, timeout, "timespec", out=False) if command in _TIMED else ""
    if command == 0:
        parts = [str(value), time]
    elif command in (6, 13):
        parts = [time]
    elif command in (9, 10):
        bits = name_set("futexbitset").by_number.get(third) or hexadecimal(third)
        parts = [str(value), *([time] if command == 9 else []), bits]
    elif command == 3:
        parts = [str(value), str(count), pointer(second)]
    elif command in (4, 12):
        parts = [str(value), str(count), pointer(second), str(third)]
    elif command == 5:
        parts = [str(value), str(count), pointer(second), _wake_operation(third)]
    elif command == 11:
        parts = [str(value), time, pointer(second)]
    elif command in (1, 2):
        parts = [str(value)]
    elif command in (7, 8):
        return None
    else:
        parts = [str(value), pointer(timeout), pointer(second), hexadecimal(third)]
    return ", ".join(parts)


def _wake_operation(value: int) -> str:
    operation, compared = value >> 28 & 7, value >> 24 & 0xF
    first = "FUTEX_OP_OPARG_SHIFT<<28|" if value >> 28 & 8 else ""
    does = name_set("futexwakeops").by_number.get(operation)
    tests = name_set("futexwakecmps").by_number.get(compared)
    does = f"{does}<<28" if does else f"{operation:#x}<<28 /* FUTEX_OP_??? */"
    tests = f"{tests}<<24" if tests else f"{compared:#x}<<24 /* FUTEX_OP_CMP_??? */"
    return f"{first}{does}|{hexadecimal(value >> 12 & 0xFFF)}<<12|{tests}|" + hexadecimal(
        value & 0xFFF
    )


# -- others ------------------------------------------------------------------------------------


def _capability_header(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    data = call.read(address, 8)
    if data is None:
        return pointer(address)
    version, pid = struct.unpack(call.facts.order + "Ii", data)
    return f"{{version={name_set('cap_version').value(version)}, pid={pid}}}"


def _capabilities(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    version = call.number(call.arguments[0], 4)
    if call.failed or version is None or not call.arguments[0]:
        return pointer(address)
    wide = version in (0x20071026, 0x20080522)
    data = call.read(address, 24 if wide else 12)
    if data is None:
        return pointer(address)
    words_ = struct.unpack(f"{call.facts.order}{len(data) // 4}I", data)
    texts = []
    for at, name in enumerate(("effective", "permitted", "inheritable")):
        bits = words_[at] | (words_[at + 3] << 32 if wide else 0)
        texts.append(f"{name}={_capability_names(bits)}")
    return f"{{{', '.join(texts)}}}"


def _capability_names(bits: int) -> str:
    known = name_set("cap").by_number
    if not bits:
        return "0"
    parts = []
    for low in (0, 32):
        half, rest = bits >> low & 0xFFFFFFFF, 0
        for bit in range(32):
            if half >> bit & 1:
                if low + bit in known:
                    parts.append(f"1<<{known[low + bit]}")
                else:
                    rest |= 1 << bit
        if rest:
            parts.append(f"{rest:#x}")
    return "|".join(parts)


def _personality(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    if value == 0xFFFFFFFF:
        return "0xffffffff"
    text = name_set("personality_types").value(value & 0xFF)
    more = value & ~0xFF
    return f"{text}|{name_set('personality_flags').flags(more)}" if more else text


def personality_result(call: TracedCall, result: int) -> str:
    """The personality that a process had, with its names."""
    text = name_set("personality_types").value(result & 0xFF)
    more = result & 0xFFFFFF00
    call.comment = f"{text}|{name_set('personality_flags').flags(more)}" if more else text
    return hexadecimal(result)


def _arch_argument(call: TracedCall, index: int, words: Words) -> str:
    address = call.arguments[index]
    if arch_prctl_is_late(call):
        value = None if call.failed else call.number(address)
        return pointer(address) if value is None else f"[{pointer(value)}]"
    return pointer(address)


def arch_prctl_is_late(call: TracedCall) -> bool:
    """True if arch_prctl stores what it is asked for."""
    return call.arguments[0] in (0x1003, 0x1004)


def _descriptor_table(call: TracedCall, index: int, words: Words) -> str:
    address, size = call.arguments[index], call.arguments[int(words[0])]
    data = call.read(address, 16) if size == 16 else None
    if data is None:
        return pointer(address)
    entry, base, limit, bits = struct.unpack(call.facts.order + "iIII", data)
    parts = [f"entry_number={entry}", f"base_addr={padded(base)}", f"limit={padded(limit)}"]
    for name, at, mask in (
        ("seg_32bit", 0, 1), ("contents", 1, 3), ("read_exec_only", 3, 1),
        ("limit_in_pages", 4, 1), ("seg_not_present", 5, 1), ("useable", 6, 1), ("lm", 7, 1),
    ):  # fmt: skip
        parts.append(f"{name}={bits >> at & mask}")
    return f"{{{', '.join(parts)}}}"


def _restarted(call: TracedCall, index: int, words: Words) -> str:
    before = call.saved.get("before", "system call")
    return f"<... resuming interrupted {before} ...>"


def _reboot(call: TracedCall, index: int, words: Words) -> str | None:
    if call.arguments[2] & 0xFFFFFFFF == 0xA1B2C3D4:
        return string_at(call, call.arguments[index])
    return None


def _fanotify(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    text = name_set("fan_classes").value(value & 0xC)
    more = value & ~0xC
    return f"{text}|{name_set('fan_init_flags').flags(more)}" if more else text


def _syslog(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    name = name_set("syslog_action_type").by_number.get(value)
    return f"{value} /* {name or 'SYSLOG_ACTION_???'} */"


def _syslog_arguments(call: TracedCall, index: int, words: Words) -> str | None:
    """The buffer, and its size, of actions that have one."""
    action, address, size = call.arguments[0] & 0xFFFFFFFF, *call.arguments[1:3]
    if action in (2, 3, 4):
        text = pointer(address) if call.failed else bytes_at(call, address, call.result or 0)
        return f"{text}, {signed(size, 32)}"
    if action == 8:
        return f"{pointer(address)}, {signed(size, 32)}"
    if action in (0, 1, 5, 6, 7, 9, 10):
        return None
    return f"{pointer(address)}, {signed(size, 32)}"


def syslog_is_late(call: TracedCall) -> bool:
    """True if syslog fills a buffer."""
    return call.arguments[0] & 0xFFFFFFFF in (2, 3, 4)


def _policy(call: TracedCall, index: int, words: Words) -> str:
    value = call.arguments[index] & 0xFFFFFFFF
    text = name_set("mpol_modes").value(value & 0x1FFF)
    more = value & ~0x1FFF
    return f"{text}|{name_set('mpol_mode_flags').flags(more)}" if more else text


def _nodes(call: TracedCall, index: int, words: Words) -> str:
    address, bits = call.arguments[index], call.arguments[int(words[0])]
    size = -(-bits // 64)
    if call.failed or not 0 < size <= 512:
        return pointer(address)
    return array_text(
        call, address, size, 8, lambda data: padded(int.from_bytes(data, "little"), 16)
    )


def _io_priority(call: TracedCall, index: int, words: Words) -> str:
    return priority_text(call.arguments[index] & 0xFFFFFFFF)


def priority_text(value: int) -> str:
    """A priority of input and output: its class and its level."""
    kind = name_set("ioprio_class").value(value >> 13)
    return f"IOPRIO_PRIO_VALUE({kind}, {value & 0x1FFF})"


def _ptrace_address(call: TracedCall, index: int, words: Words) -> str | None:
    return None if not call.arguments[0] else pointer(call.arguments[index])


def _ptrace_data(call: TracedCall, index: int, words: Words) -> str | None:
    command, value = call.arguments[0], call.arguments[index]
    if command in (7, 8, 9, 17, 24):  # CONT, KILL, SINGLESTEP, DETACH, SYSCALL
        return signal_name(value) if value else "0"
    if command in (0x4200, 0x4206):
        return name_set("ptrace_setoptions_flags").flags(value)
    if command in (1, 2, 3):
        number = None if call.failed else call.number(value)
        return pointer(value) if number is None else f"[{hexadecimal(number)}]"
    if command == 0x4202:
        from engine.trace.strace.signalargs import signal_info

        data = None if call.failed else call.read(value, 128)
        return pointer(value) if data is None else signal_info(data, call.facts.order)
    if command in (0x4204, 0x4205):
        data = call.read(value, 16)
        if data is None:
            return pointer(value)
        base, size = struct.unpack(call.facts.order + "QQ", data)
        return f"{{iov_base={pointer(base)}, iov_len={size}}}"
    return hexadecimal(value) if command in (4, 5, 6) else pointer(value)


def ptrace_is_late(call: TracedCall) -> bool:
    """True if ptrace stores what it is asked for."""
    return call.arguments[0] in (1, 2, 3, 0x4202, 0x4204)


TASKS: Final[dict[str, Kind]] = {
    "clone": _clone,
    "clone_args": _clone_arguments,
    "waitstatus": _wait_status,
    "prctl": _prctl,
    "prctl_arguments": _prctl_arguments,
    "seccomp_flags": _seccomp_flags,
    "seccomp_argument": _seccomp_argument,
    "futexop": _futex_operation,
    "futexarguments": _futex,
    "capheader": _capability_header,
    "capdata": _capabilities,
    "personality": _personality,
    "archarg": _arch_argument,
    "ldt": _descriptor_table,
    "restarted": _restarted,
    "rebootarg": _reboot,
    "fanflags": _fanotify,
    "syslog": _syslog,
    "syslogarguments": _syslog_arguments,
    "mempolicy": _policy,
    "nodemask": _nodes,
    "ioprio": _io_priority,
    "ptrace_address": _ptrace_address,
    "ptrace_data": _ptrace_data,
}
"""Kinds of arguments about processes and threads."""
