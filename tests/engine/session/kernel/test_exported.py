"""Kernel probes for a real machine's tools, as far as the kernel takes them."""

from kernelkit import golden_kernel

from engine.session.kernel.exported import exported_from

LINES = ("p:g/read vfs_read count", "p:g/read vfs_read count", "p:g/bad vfs_read a=nosuch", "# no")


def test_refused_lines_are_comments() -> None:
    kernel = golden_kernel("amd64-6.12")
    kernel.refusal, kernel.traceable = "", True
    assert list(exported_from(kernel, LINES, "tracefs")) == [
        "echo 'p:g/read vfs_read count=count' >> /sys/kernel/tracing/kprobe_events",
        "echo 1 > /sys/kernel/tracing/events/g/read/enable",
        "# p:g/read vfs_read count: refused: There is already the exact same probe event",
        "# p:g/bad vfs_read a=nosuch: refused: This variable is not found at this probe point",
    ]


def test_places_that_cannot_be_probed_are_comments_too() -> None:
    kernel = golden_kernel("amd64-6.1")
    kernel.refusal = "EILSEQ"
    (line,) = exported_from(kernel, ["p vfs_read+1"], "perf")
    kernel.refusal = ""
    assert line == "# p vfs_read+1: refused: Probe point is not an instruction boundary"
