"""The files of tracefs, and who may use them."""

import os
from pathlib import Path

import pytest

from engine.session.live import tracefs
from engine.session.live.tracefs import LiveKernelError, Tracefs, append

LOG = """\
[   12.345678] trace_uprobe: error: Invalid unsigned integer string
  Command: p:g/e /bin/sh:0xzz
                 ^
"""


def test_only_root_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LiveKernelError, match="only root may"):
        Tracefs.found()


def test_where_it_is_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(tracefs, "_MOUNTS", str(mounts))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(LiveKernelError, match="mount -t tracefs"):
        Tracefs.found()
    mounts.write_text("proc /proc proc rw 0 0\nnodev /my\\040own tracefs rw 0 0\n")
    assert Tracefs.found().root == Path("/my own")
    mounts.write_text("a /x tracefs rw 0 0\nb /sys/kernel/tracing tracefs rw 0 0\n")
    assert Tracefs.found().root == Path("/sys/kernel/tracing")


def test_a_kernel_without_kprobes_says_so(tmp_path: Path) -> None:
    found = Tracefs(tmp_path)
    with pytest.raises(LiveKernelError, match=r"no kprobes.*CONFIG_KPROBE_EVENTS"):
        found.define("kprobe_events", "p:g/e do_sys_open")
    assert found.listed("kprobe_events") == []


def test_lines_are_only_ever_appended(tmp_path: Path) -> None:
    (tmp_path / "uprobe_events").write_text("p:others/e /bin/sh:0x10\n")
    Tracefs(tmp_path).define("uprobe_events", "p:g/e /bin/sh:0x20")
    assert Tracefs(tmp_path).listed("uprobe_events") == [
        "p:others/e /bin/sh:0x10",
        "p:g/e /bin/sh:0x20",
    ]


def test_a_refusal_is_told_in_the_kernels_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, text: str) -> None:
        (tmp_path / "error_log").write_text(LOG)
        raise OSError(22, "Invalid argument")

    (tmp_path / "uprobe_events").write_text("")
    monkeypatch.setattr(tracefs, "append", refuse)
    found = Tracefs(tmp_path)
    with pytest.raises(LiveKernelError) as caught:
        found.define("uprobe_events", "p:g/e /bin/sh:0xzz")
    assert "Invalid unsigned integer string, at '/bin/sh:0xzz' (EINVAL)" in str(caught.value)
    with pytest.raises(LiveKernelError, match=r"refuses 'x': EINVAL"):
        found.put(tmp_path / "error_log", "x")  # the log has nothing new


def test_append_is_one_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\n")
    append(tmp_path / "file", "\udce9")
    assert (tmp_path / "file").read_bytes() == b"a\n\xe9\n"
