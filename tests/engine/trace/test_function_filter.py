"""Functions by ftrace's patterns: accepted and refused as Debian's 6.12.117 does in a machine."""

import pytest
from kernelkit import GoldenKernel, golden_kernel

from engine.trace.function_filter import filter_matches
from engine.trace.kprobe_events import DYNAMIC_EVENTS, KprobeEvents

NAMES = ("vfs_read", "vfs_readv", "vfs_write", "tcp_v4_rcv")

ACCEPTED = (
    *("vfs_*", "*_read", "v?s_read", "vfs_[rw]*", "v*d", "[v]fs_read", "*s_r*d", "vfs*re*"),
    *(
        "vfs_rea?",
        "*",
        "**",
        "vfs_*_*",
        "*v*",
        "1",
        "0x4",
        "03",
        "!vfs_read",
        "!vfs_*",
        r"vfs\_read",
    ),
)
REFUSED = (
    *("nosuch*", "vfs_*+0", "9*", "0", "5", "?", "1x", "08", "!nosuch*", "1*", r"\*", "*["),
    *("vfs_readx", "99999999", "tracing_*", "VFS_*"),
)


@pytest.mark.parametrize("text", ACCEPTED)
def test_filters_that_name_a_function(text: str) -> None:
    names = (*NAMES, "vfs_get_tree") if text == "vfs_*_*" else NAMES
    assert filter_matches(text, names)


@pytest.mark.parametrize("text", REFUSED)
def test_filters_that_name_none(text: str) -> None:
    assert not filter_matches(text, NAMES)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("f:g/a vfs_*", "f:g/a vfs_*"),
        ("f vfs_*", "f:fprobes/vfs____entry vfs_*"),
        ("f *vfs_read", "f:fprobes/*vfs_read__entry *vfs_read"),
        ("f vfs_[rw]*", "f:fprobes/vfs_[rw]___entry vfs_[rw]*"),
        ("f:g/a vfs_*%return a=$retval:u8", "f:g/a vfs_*%return a=$retval:u8"),
    ],
)
def test_events_of_functions_take_patterns(line: str, shown: str) -> None:
    kernel: GoldenKernel = golden_kernel("amd64-6.12")
    kernel.refusal, kernel.traceable = "", True
    outcome = KprobeEvents(kernel).take(line, DYNAMIC_EVENTS)
    assert (outcome.rc, outcome.shown) == (0, f"{shown}\n")


def test_a_pattern_without_a_function_is_refused() -> None:
    kernel = golden_kernel("amd64-6.12")
    kernel.refusal, kernel.traceable = "", True
    outcome = KprobeEvents(kernel).take("f:g/a nosuch*", DYNAMIC_EVENTS)
    assert (outcome.rc, outcome.text) == (-22, "Failed to register probe event")
