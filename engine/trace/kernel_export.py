"""Definitions of kernel probes as text for tools of a real machine: tracefs, perf, bpftrace.

For tracefs a definition is what it was, with the names that `$arg*` stands for. The other tools
do not know BTF's names: they get the registers and dereferences behind them. What a tool cannot
express is a line of comment that says so.
"""

import re
from collections.abc import Sequence
from typing import Final

from engine.arch.base import Arch
from engine.arch.program import FetchArg, Source
from engine.trace.export import (
    FORMS,
    TRACEFS,
    BpfImage,
    CannotError,
    bpftrace_arg,
    quoted,
    register_name,
    type_name,
)
from engine.trace.kernel_lines import KernelProbe
from engine.trace.place_syntax import Address, SymbolPlace

_PLAIN_SYMBOL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_NAMED: Final = re.compile(r"[A-Za-z_]|\$retval(->|\.)")
_IMAGE: Final = BpfImage(kernel=True)


def render_kernel(
    form: str, probe: KernelProbe, arch: Arch, condition: str = "", triggers: Sequence[str] = ()
) -> list[str]:
    """The lines for one definition.

    Args:
        form: one of `FORMS` of `engine.trace.export`.
        probe: the definition.
        arch: of the kernel.
        condition: filter of the event, "" for none.
        triggers: of the event.
    """
    one = probe.definition
    try:
        line = _LINES[form](probe, arch)
    except CannotError as error:
        return [f"# {one.command}: not for {form}: {error}"]
    return [line, *FORMS[form].enabled(one.group, one.event, condition, triggers)]


def _tracefs(probe: KernelProbe, arch: Arch) -> str:
    file = "kprobe_events" if probe.definition.kind == "kprobe" else "dynamic_events"
    line = probe.listing(probe.definition.maxactive)
    return f"echo {quoted(line)} >> {TRACEFS}/{file}"


def _place(probe: KernelProbe) -> tuple[str, str, int]:
    """Module, symbol and offset of a place that is no address."""
    target = probe.definition.target
    if not isinstance(target, SymbolPlace) or not _PLAIN_SYMBOL.fullmatch(target.name):
        raise CannotError("the place has no symbol that it could be named by")
    return target.module, target.name, target.offset


def _perf(probe: KernelProbe, arch: Arch) -> str:
    one = probe.definition
    if one.kind != "kprobe":
        raise CannotError("perf probe makes kprobes and uprobes only")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", one.group):
        raise CannotError(f"perf takes no group named {one.group}")
    if isinstance(one.target, Address):
        module, where = "", f"{one.target.value:#x}"
    else:
        module, symbol, offset = _place(probe)
        where = symbol + (f"+{offset}" if offset else "")
    if one.maxactive:
        raise CannotError("perf probe leaves the number of instances to the kernel")
    if one.is_return:
        where += "%return"
    words = [f"{one.group}:{one.event}={where}"]
    words += [f"{arg.name}={_raw(arg, arch)}" for arg in one.args]
    option = f"-m {quoted(module)} " if module else ""
    return f"perf probe {option}{quoted(' '.join(words))}"


def _raw(arg: FetchArg, arch: Arch) -> str:
    """An argument without names of BTF."""
    if not _NAMED.match(arg.text):
        return arg.text
    base = arg.base
    match base.source:
        case Source.REGISTER:
            text = f"%{register_name(base.register, arch)}"
        case Source.STACK:
            text = f"$stack{base.value}"
        case Source.ENTRY:
            text = f"$arg{base.value + 1}"
        case Source.RETVAL:
            text = "$retval"
        case _:
            raise CannotError(f"{arg.name} has no words there")
    for offset in arg.derefs:
        text = f"{offset:+d}({text})"
    return f"{text}:{type_name(arg.type)}"


def _bpftrace(probe: KernelProbe, arch: Arch) -> str:
    one = probe.definition
    if probe.tracepoint:
        raise CannotError("its arguments are those of rawtracepoint, by number")
    module, symbol, offset = _place(probe)
    where = f"{module}:{symbol}" if module else symbol
    if offset:
        if one.is_return:
            raise CannotError("kretprobe takes a function's name")
        where += f"+{offset}"
    formats, values = [], []
    for arg in one.args:
        form, found = bpftrace_arg(arg, arch, _IMAGE)
        formats.append(f"{arg.name}={form}")
        values += found
    text = " ".join([f"{one.event}:", *formats])
    call = ", ".join([f'"{text}\\n"', *values])
    kind = "kretprobe" if one.is_return else "kprobe"
    return f"bpftrace -e {quoted(f'{kind}:{where} {{ printf({call}); }}')}"


_LINES: Final = {"tracefs": _tracefs, "perf": _perf, "bpftrace": _bpftrace}
