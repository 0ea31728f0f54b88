"""Probes of a booted kernel: where definitions stand, and what their rows have."""

import pytest
from kernelimages import AMD64_61, AMD64_612, image_path

from engine.errors import ProbeError
from engine.session.booted.probes import BootProbe, BootProbes
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import KernelChoice
from engine.session.protocol.requests import ProbeRequest


def opened(name: str) -> OpenedKernel:
    return OpenedKernel.open(image_path(name), KernelChoice())


def placed(name: str, *lines: str) -> tuple[list[BootProbe], BootProbes]:
    probes = BootProbes(opened(name))
    return list(probes.probes(ProbeRequest(lines))), probes


@pytest.mark.slow
def test_an_entry_begins_a_block_and_other_places_need_not() -> None:
    """On 6.12 the row's address lies behind the landing pad, the block begins in front of it."""
    for name, pad in ((AMD64_61, 0), (AMD64_612, 4)):
        kernel = opened(name)
        start = kernel.names.find("vfs_read")
        assert start is not None
        found, _ = placed(name, "p:a vfs_read", "r2:g/b vfs_read%return $retval", "p vfs_read+9")
        entry, back, inside = found
        assert (entry.address, entry.begins, entry.place) == (start + pad, start, start)
        assert (entry.group, entry.event, entry.technique) == ("kprobes", "a", "ftrace")
        assert (back.address, back.place, back.is_return) == (start + pad, start, True)
        assert (back.group, back.event, back.maxactive) == ("g", "b", 2)
        assert (inside.address, inside.begins, inside.place) == (start + 9, None, start + 9)


def test_lines_build_on_each_other_and_may_be_taken_back() -> None:
    found, probes = placed(
        AMD64_61, "p:a vfs_read", "p:b vfs_write", "-:a", "p:b ksys_read", "# none", ""
    )
    assert [one.event for one in found] == ["b", "b"]
    assert probes.listing() == "p:kprobes/b vfs_write\np:kprobes/b ksys_read\n"


@pytest.mark.slow
def test_function_events_are_those_of_newer_kernels() -> None:
    found, _ = placed(AMD64_612, "f:in vfs_open file=$arg2", "f:out vfs_open%return ret=$retval")
    assert [(one.event, one.is_return) for one in found] == [("in", False), ("out", True)]
    with pytest.raises(ProbeError):
        placed(AMD64_61, "f:in vfs_open")


def test_a_probe_in_a_module_waits() -> None:
    found, probes = placed(AMD64_61, "p:a vfs_read", "r3:b ext4:ext4_file_open+0 $retval")
    assert [one.event for one in found] == ["a"]
    (waiting,) = probes.waiting
    assert (waiting.module, waiting.function, waiting.offset) == ("ext4", "ext4_file_open", 0)
    assert (waiting.event_of("ext4_file_open"), waiting.is_return) == ("b", True)
    assert (waiting.maxactive, waiting.told) == (3, "r3:b ext4:ext4_file_open+0 $retval")
    assert list(probes.functions(("fat:fat_*",), "-f", is_return=False)) == []
    assert probes.waiting[1].event_of("fat_a.b") == "p_fat_a_b_0"


def test_patterns_take_what_may_be_probed_and_tell_the_rest() -> None:
    probes = BootProbes(opened(AMD64_61))
    found = list(probes.probes(ProbeRequest((), ("vfs_set_acl*",), ("vfs_rea?",))))
    assert [one.event for one in found] == ["p_vfs_set_acl_prepare_0", "r_vfs_read_0"]
    assert [one.is_return for one in found] == [False, True]
    (remark,) = probes.remarks
    assert any("is notrace" in line for line in remark.lines)
    with pytest.raises(ProbeError, match="no function that matches takes a probe"):
        list(probes.probes(ProbeRequest((), ("do_int3",))))
    with pytest.raises(ProbeError, match="no memory of a booted kernel is watched"):
        list(probes.probes(ProbeRequest((), (), (), watches=("jiffies",))))
