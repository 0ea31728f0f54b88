"""Every function that is built in can be used, or says why not."""

from typing import Final

import pytest
from scriptkit import checked

from engine.trace.bpftrace.functions import ROWS, function
from engine.trace.bpftrace.text import WrongScriptError
from engine.trace.bpftrace.tree import Assignment
from engine.trace.bpftrace.type_rules import type_name

USES: Final = {
    "pid": ("pid(init)", "uint32"),
    "tid": ("tid", "uint32"),
    "uid": ("uid()", "uint64"),
    "gid": ("gid", "uint64"),
    "username": ("username", "username_t"),
    "comm": ("comm", "string[16]"),
    "ppid": ("ppid()", "uint32"),
    "pcomm": ("pcomm", "string[16]"),
    "leader_tid": ("leader_tid", "uint32"),
    "leader_comm": ("leader_comm", "string[16]"),
    "cgroup": ("cgroup", "uint64"),
    "cpu": ("cpu", "uint64"),
    "ncpus": ("ncpus", "uint64"),
    "numaid": ("numaid", "uint64"),
    "usermode": ("usermode", "uint8"),
    "cpid": ("cpid", "uint64"),
    "has_cpid": ("has_cpid", "bool"),
    "curtask": ("curtask", "struct task_struct *"),
    "rand": ("rand", "uint32"),
    "elapsed": ("elapsed", "uint64"),
    "jiffies": ("jiffies", "uint64"),
    "nsecs": ("nsecs(sw_tai)", "uint64"),
    "func": ("func", "usym_t"),
    "probe": ("probe", "string[21]"),
    "probetype": ("probetype", "string[7]"),
    "retval": None,
    "reg": ('reg("ip")', "uint64"),
    "kstack": ("kstack", "kstack_bpftrace_127"),
    "ustack": ("ustack(perf, 3)", "ustack_perf_3"),
    "dw_ustack": ("dw_ustack(5)", "ustack_bpftrace_5"),
    "str": ("str(arg0, 15)", "string[16]"),
    "kstr": ("kstr(arg0)", "string[1024]"),
    "ustr": ("ustr(arg0)", "string[1024]"),
    "buf": ("buf(arg0, 6)", "buffer[10]"),
    "kptr": ("kptr(args.name)", "int8 *"),
    "uptr": ("uptr(args.name)", "int8 *"),
    "kaddr": ('kaddr("jiffies")', "uint64"),
    "uaddr": ('uaddr("environ")', "int64 *"),
    "path": ("path((struct path *)arg0, 64)", "string[64]"),
    "join": None,
    "ksym": ("ksym(arg0)", "ksym_t"),
    "usym": ("usym(args.name)", "usym_t"),
    "ntop": ("ntop(2, arg0)", "inet[24]"),
    "pton": ('pton("::1")', "uint8[16]"),
    "macaddr": ("macaddr(args.name)", "mac_address"),
    "bswap": ("bswap((uint16)1)", "uint16"),
    "cgroupid": ('cgroupid("/sys/fs/cgroup")', "uint64"),
    "cgroup_path": ("cgroup_path(cgroup)", "cgroup_path_t"),
    "strftime": ('strftime("%H:%M", nsecs)', "timestamp"),
    "strerror": ("strerror(2)", "string[64]"),
    "signal_name": ("signal_name(9)", "string[64]"),
    "syscall_name": ("syscall_name(0)", "string[64]"),
    "strncmp": ('strncmp(comm, "ab", 2)', "uint64"),
    "strlen": ("strlen(comm)", "uint64"),
    "strcap": ("strcap(comm)", "int64"),
    "strstr": ('strstr(comm, "a")', "int64"),
    "strcontains": ('strcontains(comm, "a")', "bool"),
    "str_concat": ('str_concat(comm, "a")', "string[1024]"),
    "assert_str": None,
    "default_str_length": ("default_str_length()", "uint64"),
    "is_err": ("is_err(arg0)", "bool"),
    "memcmp": ("memcmp(comm, comm, 4)", "int32"),
    "is_str": ("is_str(comm)", "bool"),
    "is_ptr": ("is_ptr(args.name)", "bool"),
    "is_array": ('is_array(pton("::1"))', "bool"),
    "is_integer": ("is_integer(pid)", "bool"),
    "is_unsigned_integer": ("is_unsigned_integer(pid)", "bool"),
    "is_literal": ("is_literal(5)", "bool"),
    "getopt": ('getopt("n", "a", "what it is")', "string[1024]"),
    "config": ("config.max_map_keys", "int16"),
    "fail": None,
    "assert": None,
    "static_assert": None,
    "printf": None,
    "errorf": None,
    "warnf": None,
    "cat": None,
    "time": None,
    "print": None,
    "exit": None,
    "signal": None,
    "signal_thread": None,
    "unwatch": None,
    "count": ("count()", "count_t"),
    "sum": ("sum(pid)", "usum_t"),
    "min": ("min(-1)", "min_t"),
    "max": ("max(pid)", "umax_t"),
    "avg": ("avg(pid)", "uavg_t"),
    "stats": ("stats(pid)", "ustats_t"),
    "hist": ("hist(pid, 2)", "hist_t"),
    "lhist": ("lhist(pid, 0, 100, 10)", "lhist_t"),
    "tseries": ('tseries(pid, 1s, 10, "max")', "tseries_t"),
    "clear": None,
    "zero": None,
    "len": ("len(@keyed)", "int64"),
    "delete": ("delete(@keyed, 1)", "bool"),
    "has_key": ("has_key(@keyed, 1)", "bool"),
    "find": ("find(@keyed, 1, $v)", "bool"),
    "is_scalar": ("is_scalar(@keyed)", "bool"),
}
"""For each function a use of it in a probe of a program, and the type that it gives."""

OF_TASKS: Final = ("ppid", "pcomm", "leader_tid", "leader_comm")
"""Functions that, given a task, are members of it."""

STATEMENTS: Final = (
    'join(args.name, ","); assert_str(comm); assert(pid > 0, "no process");'
    ' static_assert(sizeof(pid) == 4, "four"); printf("%s %d\\n", comm, pid); errorf("%x", 1);'
    ' warnf("%p", arg0); cat("/proc/%d/maps", pid); time("%H"); print(comm); signal("SIGUSR1");'
    " signal_thread(arg0); unwatch(arg0); clear(@keyed); zero(@keyed);"
    ' if comptime (pid == pid && false) { fail("never"); } exit(3);'
)


def test_the_table_is_whole() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert {row.name for row in ROWS if not row.refused} == set(USES)


def test_each_gives_its_type() -> None:
    uses = {name: use for name, use in USES.items() if use is not None}
    text = "".join([f"@{name} = {use}; " for name, (use, _) in uses.items()])
    script = checked(f"uprobe:/bin/app:work {{ @keyed[1] = 1; let $v; {text} }}")
    given = {
        statement.target.name: type_name(script.maps[statement.target.name].value)  # type: ignore[union-attr]
        for statement in script.probes[0].body.statements
        if isinstance(statement, Assignment) and type(statement.target).__name__ == "MapName"
    }
    assert given == {name: kind for name, (_, kind) in uses.items()}


def test_what_gives_nothing_stands_alone() -> None:
    text = STATEMENTS.replace("if comptime (pid == pid && false)", "if comptime (1 > 2)")
    script = checked(f"uprobe:/bin/app:work {{ @keyed[1] = 1; {text} }}")
    assert [remark.text for remark in script.warnings] == []
    assert script.probes[0].body.statements
    result = checked("uretprobe:/bin/app:work { @ = retval; }").maps[""]
    assert type_name(result.value) == "uint64"


def test_what_has_no_meaning_says_what_to_do() -> None:
    refused = [row for row in ROWS if row.refused]
    assert {row.name for row in refused} >= {"system", "override", "skboutput", "write_user"}
    for row in refused:
        use = row.name if row.bare else f"{row.name}()"
        with pytest.raises(WrongScriptError) as raised:
            checked(f"kprobe:f {{ {use}; }}")
        assert raised.value.remarks[0].text == row.refused
        assert len(row.refused) > 40, "it says what to do instead"


def test_counts_of_arguments() -> None:
    for row in ROWS:
        if row.refused or row.most > 10 or row.name in OF_TASKS:
            continue
        many = ", ".join(["1"] * (row.most + 1))
        gathers = row.name in ("count", "sum", "min", "max", "avg", "stats", "hist", "lhist")
        text = (
            f"@ = {row.name}({many})"
            if gathers or row.name == "tseries"
            else f"{row.name}({many})"
        )
        with pytest.raises(WrongScriptError) as raised:
            checked(f"uprobe:/bin/app:work {{ {text}; }}")
        assert f"{row.name}() " in raised.value.remarks[0].text, row.name


def test_arguments_by_number() -> None:
    assert function("arg31") is not None
    assert function("arg32") is None
    assert function("nosuch") is None
