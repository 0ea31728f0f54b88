"""Everything that a script can call or name and that is built in: one row each.

The list is that of bpftrace 0.26 (docs/stdlib.md; its macros are functions here). What has no
meaning for an emulated guest has a row, too, which says what to do instead.
"""

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from engine.trace.bpftrace import aggregate_rules as aggregates
from engine.trace.bpftrace import function_checks as checks
from engine.trace.bpftrace import function_types as kinds
from engine.trace.bpftrace.function_use import FunctionUse
from engine.trace.bpftrace.type_rules import integer_of, kind_name
from engine.trace.bpftrace.types import (
    BOOL,
    INT64,
    UINT64,
    VOID,
    Integer,
    ShownType,
    SymbolType,
    TextType,
    Type,
)

Wanted = Literal["any", "int", "int literal", "string", "string literal", "word"]
"""The kind of an argument; a word is a name that is no value: `kstack(perf)`."""

TypeRule = Type | Callable[[FunctionUse], Type | None]

_UINT32: Final = Integer(32, signed=False)
_INT32: Final = Integer(32, signed=True)
_MANY: Final = 128
_USER: Final = ("uprobe", "uretprobe", "usdt")
_WITH_REGISTERS: Final = (
    *("kprobe", "kretprobe", "uprobe", "uretprobe", "usdt", "profile", "interval"),
    *("software", "hardware", "watchpoint", "asyncwatchpoint"),
)
_SIGNALLED: Final = (
    *("kprobe", "kretprobe", "uprobe", "uretprobe", "usdt", "tracepoint", "profile"),
    *("fentry", "fexit", "rawtracepoint"),
)


class Function(Struct, frozen=True):
    """A function or a value that is built in.

    Attributes:
        name: of it.
        gives: the type of its value, or the rule that finds it.
        least: arguments that it has at least.
        most: arguments that it has at most.
        wants: what the arguments are, in order; "any" for all that follow.
        check: what else has to hold once all types are known.
        bare: it may stand without brackets.
        providers: it is for probes of these only; empty for all.
        refused: why there is no such thing here, and what to do instead.
    """

    name: str
    gives: TypeRule
    least: int = 0
    most: int = 0
    wants: tuple[Wanted, ...] = ()
    check: Callable[[FunctionUse], None] | None = None
    bare: bool = False
    providers: tuple[str, ...] = ()
    refused: str = ""

    def wanted(self, index: int) -> Wanted:
        """The kind that an argument has to be of."""
        return self.wants[index] if index < len(self.wants) else "any"

    def accepts_count(self, site: FunctionUse) -> bool:
        """The number of arguments is right; else an error was noted."""
        given = len(site.arguments)
        if self.least <= given <= self.most:
            return True
        if self.least == self.most:
            wanted = {0: "no arguments", 1: "one argument"}.get(
                self.least, f"{self.least} arguments"
            )
            text = f"{self.name}() requires {wanted}"
        elif given < self.least:
            wanted = "one argument" if self.least == 1 else f"{self.least} arguments"
            text = f"{self.name}() requires at least {wanted}"
        else:
            wanted = "one argument" if self.most == 1 else f"{self.most} arguments"
            text = f"{self.name}() takes up to {wanted}"
        site.error(f"{text} ({given} provided)")
        return False

    def accepts_kinds(self, site: FunctionUse) -> bool:
        """The types of the arguments are right; else an error was noted."""
        for index in range(len(site.arguments)):
            wanted = self.wanted(index)
            if wanted in ("any", "word"):
                continue
            if site.kind(index) is None and site.findings.errors:
                return False  # why it has no type is told
            kind, _, literal = wanted.partition(" ")
            is_one = kind_name(site.kind(index)) == kind
            if literal and not (is_one and _is_literal(site, index, kind)):
                site.error(
                    f"{self.name}() expects a {kind} literal ({site.given(index)} provided)"
                )
                return False
            if not is_one:
                site.error(
                    f"{self.name}() only supports {kind} arguments ({site.given(index)} provided)"
                )
                return False
        return True


def _is_literal(site: FunctionUse, index: int, kind: str) -> bool:
    return (site.text(index) if kind == "string" else site.number(index)) is not None


def _value(name: str, gives: TypeRule, *, providers: tuple[str, ...] = ()) -> Function:
    return Function(name, gives, bare=True, providers=providers)


def _printing(name: str, check: Callable[[FunctionUse], None] = checks.formatted) -> Function:
    return Function(name, VOID, 1, _MANY, ("string literal",), check)


def _refused(name: str, why: str, *, bare: bool = False) -> Function:
    return Function(name, VOID, 0, _MANY, bare=bare, refused=why)


def _reading(name: str, gives: TypeRule = kinds.string_type) -> Function:
    return Function(name, gives, 1, 2, ("any", "int"), checks.readable)


def _of_strings(name: str, gives: TypeRule, count: int) -> Function:
    return Function(name, gives, count, count, check=checks.string_like)


def _aggregate(name: str, gives: TypeRule, least: int, most: int) -> Function:
    return Function(name, gives, least, most)


def _task_name(site: FunctionUse) -> None:
    if site.arguments and integer_of(site.kind(0)) is None:
        site.error("Only integer supported for comm()'s pid")


ROWS: Final = (
    # -- what a hit is ---------------------------------------------------------------------
    Function("pid", kinds.identity_type, 0, 1, ("word",), bare=True),
    Function("tid", kinds.identity_type, 0, 1, ("word",), bare=True),
    _value("uid", UINT64),
    _value("gid", UINT64),
    _value("username", ShownType("username")),
    Function(
        "comm",
        lambda site: TextType(64 if site.arguments else 16),
        0,
        1,
        check=_task_name,
        bare=True,
    ),
    _value("ppid", _UINT32),
    _value("pcomm", TextType(16)),
    _value("leader_tid", _UINT32),
    _value("leader_comm", TextType(16)),
    _value("cgroup", UINT64),
    _value("cpu", UINT64),
    _value("ncpus", UINT64),
    _value("numaid", UINT64),
    _value("usermode", Integer(8, signed=False)),
    _value("cpid", UINT64),
    _value("has_cpid", BOOL),
    _value("curtask", kinds.task_type),
    _value("rand", _UINT32),
    _value("elapsed", UINT64),
    _value("jiffies", UINT64),
    Function("nsecs", kinds.clock_type, 0, 1, ("word",), bare=True),
    _value("func", kinds.place_symbol_type),
    _value("probe", kinds.place_type),
    _value("probetype", kinds.provider_type),
    _value("retval", kinds.result_type),
    Function(
        "reg",
        UINT64,
        1,
        1,
        ("string literal",),
        checks.register_name,
        providers=_WITH_REGISTERS,
    ),
    Function("kstack", kinds.stack_type, 0, 2, ("word", "int literal"), bare=True),
    Function("ustack", kinds.stack_type, 0, 2, ("word", "int literal"), bare=True),
    Function("dw_ustack", kinds.stack_type, 0, 2, ("word", "int literal"), bare=True),
    # -- reading memory --------------------------------------------------------------------
    _reading("str"),
    _reading("kstr"),
    _reading("ustr"),
    Function("buf", kinds.buffer_type, 1, 2, ("any", "int"), checks.bytes_there),
    Function("kptr", kinds.in_space("kernel"), 1, 1, check=checks.in_either_space),
    Function("uptr", kinds.in_space("user"), 1, 1, check=checks.in_either_space),
    Function("kaddr", UINT64, 1, 1, ("string literal",), checks.symbol_name),
    Function(
        "uaddr",
        kinds.object_type,
        1,
        1,
        ("string literal",),
        checks.symbol_name,
        providers=_USER,
    ),
    Function("path", kinds.path_type, 1, 2, ("any", "int literal"), checks.kernel_path),
    Function("join", VOID, 1, 2, ("any", "string literal"), checks.several_strings),
    # -- values with a meaning -------------------------------------------------------------
    Function("ksym", SymbolType("kernel"), 1, 1, check=checks.address_of_code),
    Function("usym", SymbolType("user"), 1, 1, check=checks.address_of_code),
    Function("ntop", ShownType("inet"), 1, 2, check=checks.internet_address),
    Function("pton", kinds.address_type, 1, 1),
    Function("macaddr", ShownType("mac"), 1, 1, check=checks.hardware_address),
    Function("bswap", kinds.swapped_type, 1, 1),
    Function("cgroupid", UINT64, 1, 1, ("string literal",)),
    Function("cgroup_path", ShownType("cgroup_path"), 1, 2, ("int", "string")),
    Function("strftime", ShownType("timestamp"), 2, 2, ("string literal", "int"), checks.moment),
    Function("strerror", TextType(64), 1, 1, ("int",)),
    Function("signal_name", TextType(64), 1, 1, ("int",)),
    Function("syscall_name", TextType(64), 1, 1, ("int",)),
    # -- strings ---------------------------------------------------------------------------
    Function("strncmp", UINT64, 3, 3, ("string", "string"), checks.compared_length),
    _of_strings("strlen", UINT64, 1),
    _of_strings("strcap", INT64, 1),
    _of_strings("strstr", INT64, 2),
    _of_strings("strcontains", BOOL, 2),
    _of_strings("str_concat", TextType(1024), 2),
    _of_strings("assert_str", VOID, 1),
    Function("default_str_length", kinds.longest_type, bare=True),
    Function("is_err", BOOL, 1, 1, check=checks.address_of_code),
    Function("memcmp", _INT32, 3, 3, ("any", "any", "int")),
    # -- what is known before the run ------------------------------------------------------
    Function("is_str", kinds.truth_of_kind("string"), 1, 1),
    Function("is_ptr", kinds.truth_of_kind("pointer"), 1, 1),
    Function("is_array", kinds.truth_of_kind("array"), 1, 1),
    Function("is_integer", kinds.truth_of_kind("int"), 1, 1),
    Function("is_unsigned_integer", kinds.truth_of_kind("uint"), 1, 1),
    Function("is_literal", kinds.is_literal_type, 1, 1),
    Function("getopt", kinds.option_type, 1, 3),
    _value("config", kinds.settings_type),
    Function("fail", VOID, 1, _MANY, ("string literal",), checks.failure),
    Function("assert", VOID, 2, 2, ("any", "string")),
    Function("static_assert", VOID, 2, 2, ("any", "string literal"), checks.true_claim),
    # -- output and effects ----------------------------------------------------------------
    _printing("printf"),
    _printing("errorf"),
    _printing("warnf"),
    _printing("cat"),
    Function("time", VOID, 0, 1, ("string literal",)),
    Function("print", VOID, 1, 3, check=checks.printable),
    Function("exit", VOID, 0, 1, ("int",)),
    Function("signal", VOID, 1, 1, check=checks.signal_number, providers=_SIGNALLED),
    Function("signal_thread", VOID, 1, 1, check=checks.signal_number, providers=_SIGNALLED),
    Function("unwatch", VOID, 1, 1, ("int",)),
    # -- what maps gather ------------------------------------------------------------------
    _aggregate("count", aggregates.count_type, 0, 0),
    _aggregate("sum", aggregates.number_aggregate_type, 1, 1),
    _aggregate("min", aggregates.number_aggregate_type, 1, 1),
    _aggregate("max", aggregates.number_aggregate_type, 1, 1),
    _aggregate("avg", aggregates.number_aggregate_type, 1, 1),
    _aggregate("stats", aggregates.number_aggregate_type, 1, 1),
    _aggregate("hist", aggregates.histogram_type, 1, 2),
    _aggregate("lhist", aggregates.linear_histogram_type, 4, 4),
    _aggregate("tseries", aggregates.time_series_type, 3, 4),
    # -- maps: `map_functions` has their rules ---------------------------------------------
    Function("clear", VOID, 1, 1),
    Function("zero", VOID, 1, 1),
    Function("len", INT64, 1, 1, check=checks.stack_depth),
    Function("delete", BOOL, 1, 2),
    Function("has_key", BOOL, 2, 2),
    Function("find", BOOL, 3, 3),
    Function("is_scalar", BOOL, 1, 1),
    # -- what has no meaning here ----------------------------------------------------------
    _refused(
        "system",
        "system() is refused: a script of an emulated guest runs no commands on the host; "
        "print what the command needs and read it behind a pipe",
    ),
    _refused(
        "override",
        "override() is refused: a script only watches the guest; change a result with a "
        "handler instead (kprobe-tui help handlers)",
    ),
    _refused(
        "write_user",
        "write_user() is refused: a script only watches the guest; write its memory in the "
        "debugger instead",
    ),
    _refused(
        "skboutput",
        "skboutput() is refused: there is no BPF helper that writes packets; print their bytes "
        "with buf() instead",
    ),
    _refused(
        "socket_cookie",
        "socket_cookie() is refused: it is a BPF helper; tell sockets apart by their address",
    ),
    _refused(
        "percpu_kaddr",
        'percpu_kaddr() is refused: add __per_cpu_offset[0], at kaddr("__per_cpu_offset"), to '
        "kaddr() of the symbol",
    ),
    _refused(
        "debugf", "debugf() is refused: there is no trace_pipe; use printf(), which is no slower"
    ),
    _refused("kfunc_exist", "kfunc_exist() is refused: no BPF program runs in the guest's kernel"),
    _refused(
        "kfunc_allowed", "kfunc_allowed() is refused: no BPF program runs in the guest's kernel"
    ),
    _refused(
        "ctx",
        "ctx is refused: there is no BPF context; use args, argN, retval or reg()",
        bare=True,
    ),
    _refused("elf_info", "elf_info is refused: it is a part of uaddr(), which does it all"),
    _refused("elf_is_exe", "elf_is_exe is refused: it is a part of uaddr(), which does it all"),
)

FUNCTIONS: Final = {row.name: row for row in ROWS}
ARGUMENTS: Final = {
    f"arg{index}": Function(f"arg{index}", kinds.argument_type, bare=True) for index in range(32)
}
"""`arg0` and so on."""
OBSOLETE: Final = {f"sarg{index}" for index in range(10)}
"""Arguments on the stack, which bpftrace no longer has."""


def function(name: str) -> Function | None:
    """The row of a name; None if nothing of that name is built in."""
    return FUNCTIONS.get(name) or ARGUMENTS.get(name)
