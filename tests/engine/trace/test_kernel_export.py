"""Kernel probes in the words of other tools."""

import shlex

import pytest
from kernelkit import golden_kernel

from engine.trace.kernel_export import render_kernel
from engine.trace.kernel_lines import KernelLines, KernelProbe
from engine.trace.kprobe_events import DYNAMIC_EVENTS, KprobeEvents

KERNEL = golden_kernel("amd64-6.12")


def _probe(line: str) -> KernelProbe:
    words = tuple(line.split())
    lines = KernelLines(KERNEL)
    return lines.kprobe(words) if words[0][0] in "pr" else lines.function_event(words)


def _rendered(form: str, line: str) -> str:
    return render_kernel(form, _probe(line), KERNEL.arch)[0]


@pytest.mark.parametrize(
    "line",
    [
        "p:g/e vfs_read+4 $arg* a=+0(%di):u8[4]",
        "r16:g/e vfs_read r=$retval:s64 count",
        "p:g/e nosuch:foo+4 $comm",
        "f:g/e vfs_read file->f_path.dentry->d_name.name:string",
        "p:g/e 0xffffffff81000000",
    ],
)
def test_tracefs_takes_its_line_again(line: str) -> None:
    KERNEL.refusal = ""
    text = _rendered("tracefs", line)
    command, again, sign, file = shlex.split(text)
    assert (command, sign) == ("echo", ">>")
    events = KprobeEvents(KERNEL)
    first = events.take(line, DYNAMIC_EVENTS)
    second = KprobeEvents(KERNEL).take(again, file.rpartition("/")[2])
    assert first.rc == second.rc == 0
    assert first.shown == second.shown
    assert first.format == second.format


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("p:g/e vfs_read n=$arg3:u64", "g:e=vfs_read n=$arg3:u64"),
        ("p:g/e vfs_read+4 count", "g:e=vfs_read+4 count=%dx:u64"),
        (
            "p:g/e vfs_read a=file->f_path.dentry->d_name.name:string",
            "g:e=vfs_read a=+0(+40(+72(%di))):string",
        ),
        (
            "r:g/e vfs_read r=$retval:s64 count",
            "g:e=vfs_read%return r=$retval:s64 count=$arg3:u64",
        ),
        ("p:g/e 0xffffffff81000000", "g:e=0xffffffff81000000"),
    ],
)
def test_perf_gets_no_names_of_types(line: str, words: str) -> None:
    assert shlex.split(_rendered("perf", line)) == ["perf", "probe", words]


def test_perf_is_told_the_module() -> None:
    text = _rendered("perf", "p:g/e 9pnet:p9_client_walk")
    assert shlex.split(text) == ["perf", "probe", "-m", "9pnet", "g:e=p9_client_walk"]


@pytest.mark.parametrize(
    ("line", "program"),
    [
        (
            "p:g/e vfs_read count c=$comm",
            'kprobe:vfs_read { printf("e: count=%lu c=%s\\n", (uint64)reg("dx"), comm); }',
        ),
        (
            "p:g/e vfs_read a=@jiffies+8:u32 s=$arg1:symbol",
            'kprobe:vfs_read { printf("e: a=%u s=%s\\n", *(uint32*)(kaddr("jiffies")+8),'
            ' ksym(reg("di"))); }',
        ),
        (
            "r:g/e 9pnet:p9_client_walk r=$retval",
            'kretprobe:9pnet:p9_client_walk { printf("e: r=0x%lx\\n", (uint64)retval); }',
        ),
    ],
)
def test_bpftrace_gets_a_program(line: str, program: str) -> None:
    assert shlex.split(_rendered("bpftrace", line)) == ["bpftrace", "-e", program]


@pytest.mark.parametrize(
    ("form", "line", "why"),
    [
        ("perf", "f:g/e vfs_read", "kprobes and uprobes only"),
        ("perf", "r5:g/e vfs_read", "number of instances"),
        ("perf", "p:g-1/e vfs_read", "no group named g-1"),
        ("bpftrace", "t:g/e sched_switch", "rawtracepoint"),
        ("bpftrace", "r:g/e vfs_read count", "argument of the entry"),
        ("bpftrace", "p:g/e 0xffffffff81000000", "no symbol"),
    ],
)
def test_what_cannot_be_said_is_a_comment(form: str, line: str, why: str) -> None:
    text = _rendered(form, line)
    assert text.startswith(f"# {line}: not for {form}: ")
    assert why in text


def test_filters_and_triggers_follow() -> None:
    lines = render_kernel(
        "tracefs", _probe("p:g/e vfs_read"), KERNEL.arch, "n > 1", ("stacktrace",)
    )
    assert lines[1:] == [
        "echo 'n > 1' > /sys/kernel/tracing/events/g/e/filter",
        "echo stacktrace >> /sys/kernel/tracing/events/g/e/trigger",
        "echo 1 > /sys/kernel/tracing/events/g/e/enable",
    ]
