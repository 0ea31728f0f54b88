"""Scripts against a kernel's image: what is checked before a machine is made for it."""

import pytest
from kernelimages import AMD64_61, image_path

from engine.errors import KprobeTuiError
from engine.session.booted.script.attached_boot import CheckedBoot
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import KernelChoice
from engine.session.protocol.scripts import BootScriptRequest
from engine.session.tracing.script.script_source import script_source
from engine.trace.bpftrace.text import Span
from engine.trace.bpftrace.tree import AttachPoint
from engine.trace.bpftrace.types import INT8, INT64, UINT64, Array, Integer, Pointer, TextType

_KERNELS: dict[str, OpenedKernel] = {}
INT32 = Integer(32, signed=True)


def checked(script: str, kernel: str = AMD64_61) -> CheckedBoot:
    opened = _KERNELS.get(kernel)
    if opened is None:
        opened = _KERNELS[kernel] = OpenedKernel.open(image_path(kernel), KernelChoice())
    request = BootScriptRequest("stdin", script)
    text, tree = script_source(request.name, request.text, ())
    return CheckedBoot(opened, request, text, tree)


def point(provider: str, function: str, target: str = "") -> AttachPoint:
    text = ":".join(filter(None, (provider, target, function)))
    return AttachPoint(Span(0, 0), text, provider, (function,), target=target, function=function)


def test_arguments_come_from_btf_and_from_the_tables_of_the_image() -> None:
    types = checked("kprobe:vfs_read { }").types
    read = types.arguments(point("fentry", "vfs_read", "vmlinux"))
    assert read is not None
    assert list(read) == ["file", "buf", "count", "pos"]
    assert (read["count"], types.returns(point("fexit", "vfs_read"))) == (UINT64, INT64)
    assert types.argument_place(point("fentry", "vfs_read"), "pos") == 3
    assert types.arguments(point("fentry", "no_such_function")) is None
    seventh = types.argument_place(point("fentry", "ip_append_data"), "transhdrlen")
    assert seventh == 5
    assert types.argument_place(point("fentry", "ip_append_data"), "ipc") == 6
    switch = types.arguments(point("tracepoint", "sched_switch", "sched"))
    assert switch is not None
    assert (switch["prev_comm"], switch["prev_pid"]) == (TextType(16), INT32)
    issue = types.arguments(point("tracepoint", "block_rq_issue", "block"))
    assert issue is not None
    assert (issue["cmd"], issue["rwbs"]) == (INT64, TextType(8))
    opens = types.arguments(point("tracepoint", "sys_enter_openat", "syscalls"))
    assert opens == {
        "__syscall_nr": INT32,
        "dfd": INT64,
        "filename": Pointer(INT8, "user"),
        "flags": INT64,
        "mode": UINT64,
    }
    raw = types.arguments(point("tracepoint", "sys_enter", "raw_syscalls"))
    assert raw == {"id": INT64, "args": Array(UINT64, 6)}
    fork = types.arguments(point("rawtracepoint", "sched_process_fork", "vmlinux"))
    assert fork is not None
    assert list(fork) == ["parent", "child"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kprobe:vfs_read, tracepoint:syscalls:sys_enter_read { }", ""),
        ("tracepoint:raw_syscalls:sys_exit { }", ""),
        (
            "tracepoint:sched:sched_wakeup*, rawtracepoint:kfree_skb { }",
            "trace_event=sched:sched_wakeup,sched:sched_wakeup_new,skb:kfree_skb",
        ),
    ],
)
def test_a_kernel_is_told_to_enable_the_tracepoints_that_only_it_can_tell(
    script: str, words: str
) -> None:
    assert checked(script).words() == words


def test_what_the_user_tells_the_kernel_stays() -> None:
    """A kernel takes the last word of a name: the user's own events stand in ours."""
    script = checked("tracepoint:sched:sched_switch { }")
    told = script.words("trace_event=block:* quiet panic=1 trace_event=irq:*")
    assert told == "quiet panic=1 trace_event=sched:sched_switch,irq:*"
    assert checked("kprobe:vfs_read { }").words("trace_event=irq:* x") == "trace_event=irq:* x"


def test_all_events_of_a_group_are_one_word() -> None:
    """So that all events of a kernel fit into its command line."""
    told = checked("rawtracepoint:* { }").words()
    assert "sched:*" in told.removeprefix("trace_event=").split(",")
    assert len(told) < 1500


@pytest.mark.slow
def test_what_a_booted_kernel_does_not_have_is_refused_at_its_place() -> None:
    """One error each, with what to do instead."""
    for script, told in (
        ("hardware:cycles:100 { }", "no counters of its hardware"),
        ("watchpoint:0x1000:8:w { }", "probe the functions that write it"),
        ("self:signal:SIGUSR1 { }", "interval probes run its actions"),
        ('kprobe:vfs_read { signal("KILL"); }', "signal is refused: a script only watches"),
        ("kprobe:vfs_read { print(username); }", "username is refused"),
        ('kprobe:vfs_read { cat("/proc/uptime"); }', "cat is refused"),
        ("fentry:vfs_read { print(args.nothing); }", "nothing"),
    ):
        with pytest.raises(KprobeTuiError) as failure:
            checked(script).words()
        assert told in str(failure.value), script
